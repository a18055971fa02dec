"""Ablation: the size m of the embedding.

python -m paper.ablation_embedding --scale paper --out results/ablation_embedding.pdf
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

NAME = "ablation_embedding"


def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """A line a size, from light to dark."""
    return ablations.draw(NAME, runs, config, absent, ordered_by="m")


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    cli.main(NAME, (__doc__ or "").splitlines()[0], draw, argv)


if __name__ == "__main__":
    main()
