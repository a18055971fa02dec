"""NGT over ten seeds, each one's curve (the paper's Fig. 10seeds).

python -m paper.seeds_figure --scale quick --out results/seeds_figure.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ngt.runs.table import final_scores
from ngt.settings.config import Config
from paper.drawing import style
from paper.drawing.panels import SCORE, Place, Series
from paper.figures.curves import CurveFigure, Remark

if TYPE_CHECKING:
    import pandas as pd


def spread(place: Place, here: Sequence[tuple[Series, pd.DataFrame]], config: Config) -> Remark:
    """A panel's final scores: how many, and how far apart."""
    parts = []
    for one, runs in here:
        scores = final_scores(runs, config.window)["score"]
        if len(scores):
            name = f"{one.label}, " if len(here) > 1 else ""
            std = f"{scores.std(ddof=1):.2f}" if len(scores) > 1 else "none"
            what = "scores" if place.measure == SCORE else "returns"
            parts.append(
                f"{name}n~=~{len(scores)} final {what}: mean~{scores.mean():.2f}, std~{std}, "
                f"min~{scores.min():.2f}, max~{scores.max():.2f}"
            )
    return ("; ".join(parts).replace("-", "−"), style.GREY) if parts else None


FIGURE = CurveFigure("seeds_figure", __doc__, each=True, remark=spread)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()
