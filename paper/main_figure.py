"""Learning curves of every method, env and number of demonstrations (the paper's main figure).

python -m paper.main_figure --scale quick --out results/main_figure.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ngt.config import Config
from ngt.runs import RunKey
from paper import cli, panels

if TYPE_CHECKING:
    import pandas as pd

NAME = "main_figure"


def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """A row an env, a column a number of demonstrations, a line a method."""
    rows = panels.by_method(config, NAME)
    return panels.draw(runs, config, absent, rows, rates=config.figures[NAME].rates)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
