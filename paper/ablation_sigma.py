"""NGT with equal widths of HL-Gauss, and the reward's AUC (not in the paper).

python -m paper.ablation_sigma --scale quick --out results/ablation_sigma.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ngt.config import Config
from paper.curve_figure import CurveFigure, variants
from paper.panels import AUC, SCORE, Place, Series

if TYPE_CHECKING:
    import pandas as pd


def inverted(
    place: Place, here: Sequence[tuple[Series, pd.DataFrame]], config: Config
) -> str | None:  # fmt: skip
    """How much of a panel's AUC is under 0.5, of all its runs and evaluations."""
    if place.measure != AUC:
        return None
    if all(runs.empty for _, runs in here):
        return "no AUC was logged"
    parts = [f"{one.label} {(runs['score'] < 0.5).mean():.0%}" for one, runs in here if len(runs)]
    return f"under 0.5: {'; '.join(part.replace(' ', '~') for part in parts)}"


FIGURE = CurveFigure(
    "ablation_sigma", __doc__, series=variants, measures=(SCORE, AUC), remark=inverted
)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()
