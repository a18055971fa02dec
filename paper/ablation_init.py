"""Ablation: the output layers initialised after Kaiming instead of orthogonally.

python -m paper.ablation_init --scale paper --out results/ablation_init.pdf
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

NAME = "ablation_init"


def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """The variant and, first, what it is compared with."""
    return ablations.draw(NAME, runs, config, absent)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
