"""NGT over ten seeds, each one's curve (the paper's Fig. 10seeds).

python -m paper.seeds_figure --scale quick --out results/seeds_figure.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ngt.config import Config
from ngt.results import final_scores
from paper.curve_figure import CurveFigure
from paper.panels import Place, Series

if TYPE_CHECKING:
    import pandas as pd


def spread(
    place: Place, here: Sequence[tuple[Series, pd.DataFrame]], config: Config
) -> str | None:  # fmt: skip
    """The final scores of a panel's runs: how many, and how far apart."""
    parts = []
    for one, runs in here:
        scores = final_scores(runs, config.window)["score"]
        if scores.empty:
            continue
        name = f"{one.label}, " if len(here) > 1 else ""
        std = f"{scores.std(ddof=1):.2f}" if len(scores) > 1 else "–"
        parts.append(
            f"{name}n = {len(scores)}: final score {scores.mean():.2f}, std {std}, "
            f"min {scores.min():.2f}, max {scores.max():.2f}"
        )
    return "; ".join(parts).replace("-", "−").replace(" = ", "~=~") or None


FIGURE = CurveFigure("seeds_figure", __doc__, each=True, remark=spread)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()
