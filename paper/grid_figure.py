"""Return of NGT over demonstrations, subsampling rates and input modes (the paper's Fig. grid).

python -m paper.grid_figure --scale quick --out results/grid_figure.pdf
"""

from __future__ import annotations

from ngt.config import Config, FigureConfig, method_rate
from ngt.errors import UserError
from paper import style
from paper.curve_figure import CurveFigure, only
from paper.notes import nth
from paper.panels import RETURN, Series


def rates(config: Config, plan: FigureConfig, name: str) -> list[Series]:
    """A line a rate, the one that keeps most first and darkest."""
    method = only(plan, name, "methods")
    if plan.beside:
        raise UserError(f"figures.{name}.beside: found {plan.beside[0]}, this figure shows none")
    if (own := method_rate(config, method)) is not None:
        raise UserError(f"figures.{name}.methods: {method} has rate {own}; name one of any rate")
    ordered = sorted(plan.rates)
    return [
        Series(method, rate, f"every {nth(rate)}", look)
        for rate, look in zip(ordered, style.ramp(len(ordered)), strict=True)
    ]


FIGURE = CurveFigure("grid_figure", __doc__, series=rates, measures=(RETURN,))
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()
