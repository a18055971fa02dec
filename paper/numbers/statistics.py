"""Final scores, and statistics over seeds and tasks, with 95% intervals.

A task is the pair of an env and a number of demonstrations. Here, a score is a run's final score,
i.e. the mean over the run's last evaluations (paper/numbers/scores.py). Means have t intervals;
interquartile means and probabilities of improvement have bootstrap intervals
(paper/numbers/bootstrap.py). `paper.numbers.coverage` simulates how often the intervals cover the
true value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import chdtri, stdtrit

from ngt.errors import UserError
from ngt.runs.keys import RunKey
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config
from paper.numbers.curves import AXES, usable
from paper.numbers.scores import UNEVALUATED, final_scores
from paper.register import MAIN
from paper.words import show

OURS = "ngt"  # the method that the paper introduces and makes claims about

Array = NDArray[np.float64]
Task = tuple[str, int]  # env and number of demonstrations


def reference(config: Config) -> str:
    """Return the method with which all other methods are compared, or "" if there is none.

    Raise UserError if the config chooses a method that the main figure does not show.
    """
    plan = config.figures.get(MAIN[0])
    name = config.statistics.reference or (plan.methods[0] if plan else "")
    if plan and name not in plan.methods:
        raise UserError(
            f"statistics.reference: {name} is not among figures.{MAIN[0]}.methods; choose one of "
            f"{', '.join(plan.methods)}"
        )
    return name


class Estimate(NamedTuple):
    """A value and the ends of its 95% interval, which are NaN for a single seed.

    For a standard deviation, each end is a one-sided 95% bound.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.text()

    def text(self, number: str = "{:.2f}") -> str:
        """Format the estimate as `0.86 [0.84, 0.91]`, or as `0.86` if there is no interval."""
        value, low, high = (show(float(x), number) for x in self)
        return value if math.isnan(self.low) else f"{value} [{low}, {high}]"


# ---------------------------------------------------------------- scores


def final(runs: pd.DataFrame | None, present: Iterable[RunKey], window: int) -> dict[RunKey, float]:
    """Return the final score of each run, except for runs on envs without scores.

    runs: the rows that `ngt.runs.table.read_runs` returns, or None if there are no runs.
    present: the keys of the runs that exist, including runs without an evaluation.
    window: how many of a run's last evaluations to average.
    """
    if runs is None:
        return {}
    lack = unscored_envs(runs)
    found = _by_run(final_scores(usable(runs), window))
    return {key: found.get(key, UNEVALUATED) for key in present if key.env not in lack}


def final_returns(
    runs: pd.DataFrame, present: Iterable[RunKey], window: int
) -> dict[RunKey, float]:
    """Return each run's final return, which is not normalised. `final` explains the arguments.

    If a run has no evaluation, its final return is that of a random policy, or NaN if no run on the
    same env has an evaluation.
    """
    found = _by_run(final_scores(usable(runs), window, "return"))
    random: dict[str, float] = dict(zip(runs["env"], runs["random"], strict=True))
    return {key: found.get(key, random.get(key.env, math.nan)) for key in present}


def share(value: float, random: float, published: float) -> float:
    """Rescale a return so that 0 is a random policy's return and 1 is the published return.

    Returns may be negative, so the plain ratio to the published return would be meaningless.
    """
    return (value - random) / (published - random)


def _by_run(final: pd.DataFrame) -> dict[RunKey, float]:
    rows = final.itertuples(index=False, name=None)
    return {RunKey(*row[:-1]): float(row[-1]) for row in rows}


def unscored(runs: pd.DataFrame | None) -> list[str]:
    """Return one sentence per env without scores, which gives the reason."""
    return [f"No scores on {env}: {reason}." for env, reason in unscored_envs(runs).items()]


class Diverged(NamedTuple):
    """The runs that ended early because a number in training became infinite or NaN."""

    runs: frozenset[RunKey]
    silent: frozenset[RunKey]  # the diverged runs without an evaluation

    def __str__(self) -> str:
        """Return a sentence about the runs, or an empty string if there are none."""
        n, early = len(self.runs), len(self.silent)
        if not n:
            return ""
        none = f" ({early} of them had none and count{'s' * (early == 1)} as 0)" if early else ""
        many = "s diverged and count" if n > 1 else " diverged and counts"
        return f"{n} run{many} with the evaluations until then{none}."


def diverged(runs: pd.DataFrame | None, present: Iterable[RunKey]) -> Diverged:
    """Return the existing runs that diverged. `final` explains the arguments."""
    status: dict[RunKey, str] = {}
    if runs is not None:
        rows = runs[[*AXES, "status"]].drop_duplicates().itertuples(index=False, name=None)
        status = {RunKey(*row[:-1]): row[-1] for row in rows}
    keys = frozenset(key for key in present if status.get(key, "diverged") == "diverged")
    return Diverged(keys, keys - status.keys())


@dataclass(frozen=True)
class Scores:
    """Final scores of methods on the same tasks.

    of: maps each method to a matrix of scores, shape (seeds, tasks).
    silent: the methods without any run.
    left_out: the tasks that are not in `tasks` because some method lacks a run on them or, by the
    config's `only`, has none. rliable needs all seeds of all tasks.
    """

    tasks: tuple[Task, ...]
    of: Mapping[str, Array]
    silent: tuple[str, ...] = ()
    left_out: tuple[Task, ...] = ()

    def at(self, demos: int) -> Scores:
        """Return the scores on the tasks with this number of demonstrations."""
        return self.only([task for task in self.tasks if task[1] == demos])

    def only(self, tasks: Collection[Task]) -> Scores:
        """Return the scores on some of the tasks."""
        at = [i for i, task in enumerate(self.tasks) if task in tasks]
        some = {method: scores[:, at] for method, scores in self.of.items()}
        return Scores(tuple(self.tasks[i] for i in at), some, self.silent, self.left_out)


def gather(
    keys: Sequence[RunKey],
    scores: Mapping[RunKey, float],
    where: str,
    *,
    none_is_fine: bool = False,
) -> Scores:
    """Return the scores of all methods in the keys. All tasks must have the same seeds.

    Raise UserError if a task has runs with different input modes or rates. Also raise UserError if
    no task has all of its runs, unless `none_is_fine` is set.

    scores: the final scores of the existing runs, as `final` returns them.
    where: the name of the figure or table, for error messages.
    """
    cells: dict[str, dict[Task, list[RunKey]]] = {}
    for key in sorted(keys):
        cell = cells.setdefault(key.method, {}).setdefault((key.env, key.demos), [])
        if cell and (key.mode, key.rate) != (cell[0].mode, cell[0].rate):
            raise UserError(f"{where}: {key} and {cell[0]}: choose one input mode and one rate")
        cell.append(key)
    present = {m: any(k in scores for ks in c.values() for k in ks) for m, c in cells.items()}
    tasks = list(dict.fromkeys(task for cell in cells.values() for task in cell))
    shown = {method: cell for method, cell in cells.items() if present[method]}
    whole = shared(keys, scores, shown)
    if none_is_fine and not whole:
        return nothing(scores, len({key.seed for key in keys}))
    if not whole or not shown:
        lacking = next((key for key in sorted(keys) if key not in scores), None)
        if lacking is None:
            raise UserError(f"{where}: no env has all methods; list more envs in `only`")
        raise UserError(f"{where}: no task has all its runs; first train {lacking}, for example")
    return Scores(
        tuple(whole),
        {
            method: np.array([[scores[k] for k in cell[task]] for task in whole]).T
            for method, cell in shown.items()
        },
        tuple(method for method in cells if not present[method]),
        tuple(task for task in tasks if task not in whole),
    )


def shared(
    keys: Iterable[RunKey], present: Collection[RunKey], methods: Iterable[str]
) -> list[Task]:
    """Return the tasks on which each of the methods has all its runs, and at least one.

    Only on these tasks can the methods be compared.

    keys: the planned runs.
    present: the runs that exist.
    """
    whole: dict[Task, dict[str, bool]] = {}
    for key in sorted(keys):
        cell = whole.setdefault((key.env, key.demos), {})
        cell[key.method] = cell.get(key.method, True) and key in present
    wanted = list(methods)
    return [task for task, cell in whole.items() if all(cell.get(m, False) for m in wanted)]


def nothing(present: Iterable[RunKey], seeds: int) -> Scores:
    """Return empty scores, i.e. scores on no tasks, for the methods that have runs.

    seeds: the number of rows of each method's empty matrix.
    """
    methods = dict.fromkeys(key.method for key in present)
    return Scores((), {method: np.empty((seeds, 0)) for method in methods})


# ---------------------------------------------------------------- estimates


def mean(scores: Array) -> Estimate:
    """Return the mean of scores of shape (seeds, tasks), with its t interval."""
    return difference(scores)


def difference(x: Array, y: Array | None = None) -> Estimate:
    """Return the mean of x minus the mean of y, with a t interval.

    Without y, return the mean of x.
    """
    if min(len(a) for a in (x, y) if a is not None) < 2:
        value = float(np.mean(x) - (0 if y is None else np.mean(y)))
        return Estimate(value, math.nan, math.nan)
    return Estimate(*map(float, t_interval(x, y)))


def spread(scores: Array) -> Estimate:
    """Return the standard deviation over seeds, pooled over tasks, of scores (seeds, tasks).

    The ends of the interval are chi-square bounds.
    """
    if len(scores) < 2:
        return Estimate(math.nan, math.nan, math.nan)
    return Estimate(*map(float, chi_square_bounds(scores)))


# ---------------------------------------------------------------- intervals


def t_interval(x: Array, y: Array | None = None) -> tuple[Array, Array, Array]:
    """Return the mean of x, minus the mean of y if y is given, and the ends of its 95% interval.

    Means are taken over seeds and tasks. Because the variance over seeds differs between tasks, the
    degrees of freedom follow Welch and Satterthwaite.

    x, y: scores of shape (..., seeds, tasks).
    """
    value, variance, per_freedom = np.zeros(()), np.zeros(()), np.zeros(())
    for sign, scores in ((1, x), (-1, y)):
        if scores is not None:
            seeds, tasks = scores.shape[-2:]
            each = np.var(scores, axis=-2, ddof=1) / (seeds * tasks**2)
            value = value + sign * scores.mean(axis=(-2, -1))
            variance = variance + each.sum(axis=-1)
            per_freedom = per_freedom + (each**2).sum(axis=-1) / (seeds - 1)
    # If no task has any variance, the interval is a point, whatever the degrees of freedom are.
    freedom = np.where(per_freedom > 0, variance**2 / np.where(per_freedom > 0, per_freedom, 1), 1)
    half = stdtrit(freedom, 0.975) * np.sqrt(variance)
    return value, value - half, value + half


def chi_square_bounds(scores: Array) -> tuple[Array, Array, Array]:
    """Return the standard deviation over seeds, and its lower and upper bounds.

    Each bound is a one-sided 95% bound. To compute the standard deviation, the sample variance over
    seeds is averaged over tasks before the square root is taken.

    scores: shape (..., seeds, tasks).
    """
    seeds, tasks = scores.shape[-2:]
    freedom = (seeds - 1) * tasks
    variance = np.var(scores, axis=-2, ddof=1).mean(axis=-1)
    low, high = (np.sqrt(variance * freedom / chdtri(freedom, q)) for q in (0.05, 0.95))
    return np.sqrt(variance), low, high
