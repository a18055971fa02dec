"""A table of final scores in the main figure, by env, number of demonstrations and method."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ngt.runs.keys import Layout, RunKey, run_table
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.command import Made, Options, read
from paper.drawing.table import Cell, Column, Table
from paper.numbers import coverage, statistics
from paper.words import ABSENT

FIGURE = "main_figure"

COLUMNS = {
    "env": Column("env"),
    "demos": Column("demonstrations"),
    "method": Column("method"),
    "return": Column("return", "{:.1f}"),
    "mean": Column("mean"),
    "low": Column("low"),
    "high": Column("high"),
    "runs": Column("runs"),
    "scores": Column("each seed's score", several=True),
    "diverged": Column("diverged"),
}


def rows(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey]) -> Iterator[dict[str, Cell]]:
    """Yield one row for each env, number of demonstrations and method, in the config's order.

    If there are no runs for a row, its values are empty.
    """
    plan, wanted = config.figures[FIGURE], sorted(run_table(config, [FIGURE]))
    present = sorted(set(wanted) - set(absent))
    scores = statistics.final(runs, present, config.window)
    returns = statistics.final_returns(runs, present, config.window)
    lost = statistics.diverged(runs, present).runs
    for env, demos, method in itertools.product(plan.envs, plan.demos, plan.methods):
        planned = [k for k in wanted if (k.env, k.demos, k.method) == (env, demos, method)]
        keys = [key for key in planned if key in present]
        row: dict[str, Cell] = dict.fromkeys(COLUMNS) | {
            "env": env,
            "demos": demos,
            "method": method_label(config, method),
            "return": float(np.mean([returns[key] for key in keys])) if keys else None,
            "runs": len(keys),
            "diverged": sum(key in lost for key in keys),
        }
        if keys and all(key in scores for key in keys):
            each = np.array([[scores[key]] for key in keys])
            estimate = statistics.mean(each)
            row |= zip(("mean", "low", "high"), estimate, strict=True)
            row["scores"] = [scores.get(key) for key in planned]
        yield row


def table(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Table:
    """Return the table of final scores.

    runs: rows of `ngt.runs.table.read_runs`.
    absent: the keys of missing runs.
    """
    window, made = config.window, list(rows(runs, config, absent))
    counts = [row["runs"] for row in made if isinstance(row["runs"], int)]
    notes = [
        f"Scale {config.scale}. A run's score is the mean of its last {window} evaluations, "
        f"normalised: random 0, expert 1. low, high: 95% t interval of the mean over seeds; empty "
        f"for one seed. {coverage.caution(counts, 'mean')}".rstrip(),
        "return: mean over seeds of the same evaluations, not normalised.",
        *statistics.unscored(runs),
    ]
    present = sorted(set(run_table(config, [FIGURE])) - set(absent))
    if diverged := str(statistics.diverged(runs, present)):
        notes.append(diverged)
    marks = [f"PARTIAL: runs {ABSENT[config.records]}: {len(absent)}."] if absent else []
    caption = "Final scores of the main figure's runs: mean over seeds, its interval, each score."
    return Table(caption, COLUMNS, made, notes, marks)


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the table from the scale's runs."""
    runs, absent = read(config, layout, options)
    return Made(table(runs, config, absent))
