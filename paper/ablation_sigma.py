"""Ablation, not in the paper: HL-Gauss with equal widths on both sides; and the reward's AUC.

python -m paper.ablation_sigma --scale paper --out results/ablation_sigma.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ngt.config import Config
from ngt.runs import RunKey
from paper import ablations, cli

if TYPE_CHECKING:
    import pandas as pd

NAME = "ablation_sigma"


def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """Returns, and below them how well the reward tells the expert from the agent."""
    return ablations.draw(NAME, runs, config, absent, auc=True)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
