"""Return of NGT over demonstrations, subsampling rates and input modes (the paper's Fig. grid).

python -m paper.grid_figure --scale quick --out results/grid_figure.pdf
"""

from __future__ import annotations

from ngt.errors import UserError
from ngt.settings.config import Config
from ngt.settings.resolve import method_rate
from paper.drawing import style
from paper.drawing.notes import nth
from paper.drawing.panels import RETURN, Series, plan_of
from paper.figures.curves import CurveFigure


def rates(config: Config, name: str) -> list[Series]:
    """A line a rate, the more it keeps the darker."""
    plan = plan_of(config, name, one=["methods"])
    (method,) = plan.methods
    if plan.beside:
        raise UserError(f"figures.{name}.beside: found {plan.beside[0]}, this figure shows none")
    if (own := method_rate(config, method)) is not None:
        raise UserError(f"figures.{name}.methods: {method} has rate {own}; name one of any rate")
    ordered = sorted(plan.rates)
    return [
        Series(
            method, rate, f"every {nth(rate)} transition" if rate > 1 else "every transition", look
        )
        for rate, look in zip(ordered, style.ramp(len(ordered)), strict=True)
    ]


FIGURE = CurveFigure("grid_figure", __doc__, series=rates, measures=(RETURN,))
draw, main = FIGURE.draw, FIGURE.main

if __name__ == "__main__":
    main()
