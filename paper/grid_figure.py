"""NGT's unnormalised return over demonstrations, subsampling rates and input modes (Fig. grid).

python -m paper.grid_figure --scale paper --out results/grid_figure.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ngt.config import Config
from ngt.runs import RunKey
from paper import cli, curves, panels
from paper.panels import Line, Spec

if TYPE_CHECKING:
    import pandas as pd

NAME = "grid_figure"


def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """A row an env and input mode, a column a number of demonstrations, a line a rate."""
    plan = panels.plan_of(config, NAME, one=("methods",))
    (method,) = plan.methods
    looks = dict(zip(sorted(plan.rates, reverse=True), panels.ramp(len(plan.rates)), strict=True))
    rows = []
    for env in plan.envs:
        here = runs[runs["env"] == env]
        if here.empty:
            continue  # a partial table without any run of it
        measure = curves.unnormalised(here["random"].iloc[0], here["expert"].iloc[0])
        for mode in plan.modes:
            rows.append(
                [
                    Spec(
                        env, panels.demonstrations(k),
                        tuple(
                            Line(
                                f"every {curves.nth(rate)} transition" if rate > 1
                                else "every transition",
                                looks[rate], method,
                                panels.keys_of(config, plan, method, env, k, mode, rate),
                            )
                            for rate in sorted(plan.rates)
                        ),
                        f"{env}\n{mode}\n{measure.label}", measure,
                    )
                    for k in plan.demos
                ]
            )  # fmt: skip
    return panels.draw(runs, config, absent, rows)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
