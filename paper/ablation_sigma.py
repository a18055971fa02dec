"""NGT with equal widths of HL-Gauss, and the reward's AUC (not in the paper).

python -m paper.ablation_sigma --scale quick --out results/ablation_sigma.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ngt.settings.config import Config
from paper.drawing import style
from paper.drawing.panels import AUC, SCORE, Place, Series
from paper.figures.curves import CurveFigure, Remark, variants

if TYPE_CHECKING:
    import pandas as pd


def inverted(place: Place, here: Sequence[tuple[Series, pd.DataFrame]], _: Config) -> Remark:
    """How often a panel's AUC is under 0.5, among all evaluations of its runs."""
    if place.measure != AUC:
        return None
    if all(runs.empty for _, runs in here):
        return "no AUC was logged", style.GREY
    shares = [(one.label, float((runs["score"] < 0.5).mean())) for one, runs in here if len(runs)]
    parts = [f"{label.replace(' ', '~')} at~{share(x)}" for label, x in shares if x > 0]
    if not parts:
        return "never under 0.5", style.GREY
    return f"inverted: {'; '.join(parts)} of~evaluations", style.ALERT


def share(part: float) -> str:
    """A share in whole per cent, which does not say 0 of what there is."""
    return f"{part:.0%}" if part >= 0.005 else "under~1%"


FIGURE = CurveFigure(
    "ablation_sigma", __doc__, series=variants, measures=(SCORE, AUC), remark=inverted
)
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()
