"""NGT over many seeds: each run, their mean and spread (the paper's Fig. 10seeds).

python -m paper.seeds_figure --scale paper --out results/seeds_figure.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ngt.config import Config
from ngt.results import final_scores
from ngt.runs import RunKey
from paper import cli, panels
from paper.style import Note

if TYPE_CHECKING:
    import pandas as pd

NAME = "seeds_figure"


def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """A row an env, a column a number of demonstrations, a thin line a seed."""
    plan = panels.plan_of(config, NAME, one=("methods", "modes", "rates"))
    rows = [
        [replace(spec, each_seed=True) for spec in row] for row in panels.by_method(config, NAME)
    ]
    notes = [Note("Thinnest lines: each run's running mean."), *_spread(runs, config)]
    return panels.draw(runs, config, absent, rows, notes, plan.rates)


def _spread(runs: pd.DataFrame, config: Config) -> list[Note]:
    """Final scores of each cell in a sentence."""
    final = final_scores(runs, config.window)
    notes = []
    for (env, demos), cell in final.groupby(["env", "demos"], sort=False):
        s = cell["score"]
        spread = f", standard deviation {s.std(ddof=1):.2f}" if len(s) > 1 else ""
        notes.append(
            Note(
                f"{env}, {panels.demonstrations(int(demos))}: final scores of {len(s)} seeds from "
                f"{s.min():.2f} to {s.max():.2f}, mean {s.mean():.2f}{spread}."
            )
        )
    return notes


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
