"""Final scores of the main figure's runs as a table (Markdown).

python -m paper.main_table --scale quick

A final score is the mean of a run's last evaluations, normalised: random 0, expert 1. The interval
is a 95% percentile bootstrap of the mean over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ngt.cli import Parser
from ngt.config import Config, method_label
from ngt.results import final_scores, read_runs
from ngt.seeding import rng
from paper import cli

if TYPE_CHECKING:
    import pandas as pd

FIGURE, RESAMPLES = "main_figure", 2000


def interval(scores: NDArray[np.float64], *axes: str | int) -> tuple[float, float]:
    """95% percentile-bootstrap interval of the mean; the axes name the draws."""
    index = rng(0, "bootstrap", *axes).integers(len(scores), size=(RESAMPLES, len(scores)))
    low, high = np.quantile(scores[index].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def table(runs: pd.DataFrame, config: Config) -> str:
    """One row a method and env, one column a number of demonstrations.

    runs: rows of `ngt.results.read_runs`. A run that diverged before its last evaluation counts
    with the evaluations that it has, and its method is marked.
    """
    plan = config.figures[FIGURE]
    final = final_scores(runs, config.window)
    diverged = runs[runs["status"] == "diverged"]
    heads = [f"{k} demonstration{'s' * (k != 1)}" for k in plan.demos]
    lines = ["| env | method | " + " | ".join(heads) + " |", "|---" * (2 + len(heads)) + "|"]
    for env in plan.envs:
        for method in plan.methods:
            cells = []
            for k in plan.demos:
                here = (final["env"] == env) & (final["method"] == method) & (final["demos"] == k)
                rows = final[here].sort_values("seed")
                cells.append(cell(rows["score"].to_numpy(), env, method, k))
            lost = diverged[(diverged["env"] == env) & (diverged["method"] == method)]
            mark = f" ({lost.groupby(['demos', 'seed']).ngroups} diverged)" if len(lost) else ""
            lines.append(f"| {env} | {method_label(config, method)}{mark} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(scores: NDArray[np.float64], *axes: str | int) -> str:
    """Mean, interval and every seed's score."""
    if len(scores) == 0:
        return "no run"
    low, high = interval(scores, *axes)
    each = ", ".join(f"{score:.2f}" for score in scores)
    return f"{scores.mean():.2f} [{low:.2f}, {high:.2f}] ({each})"


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = Parser(prog="python -m paper.main_table", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--allow-partial", action="store_true", help="the runs that there are")
    cli.add_settings(parser)

    def run() -> None:
        args = parser.parse_args(argv)
        config, layout = cli.settings(args)
        runs, absent = read_runs(layout, config, FIGURE, allow_partial=args.allow_partial)
        print(table(runs, config))
        if absent:
            print(f"\npartial, runs missing: {len(absent)}")

    cli.one_line_errors("main_table", run)


if __name__ == "__main__":
    main()
