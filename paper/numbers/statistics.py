"""Aggregates over tasks with 95% intervals, by rliable.

A task is an env with a number of demonstrations. A score is a run's final score, so episodes are
averaged inside a seed, and seeds are the unit: the stratified bootstrap resamples them within each
task.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rliable import library, metrics

from ngt.errors import UserError
from ngt.runs.keys import RunKey
from ngt.runs.table import final_scores, unscored_envs
from ngt.seeding import derive
from ngt.settings.config import StatisticsConfig
from paper.numbers.curves import AXES, usable
from paper.words import listed, show

if TYPE_CHECKING:
    import pandas as pd

OURS = "ngt"  # the method that the others are compared with
UNEVALUATED = 0.0  # score of a run that diverged before its first evaluation: a random policy's

# How often a bootstrap's 95% interval of the mean of n normal scores covers the true mean. Up to
# n = 3 all scores are the least one in more than 2.5% of the draws, so that the interval reaches
# from the least score to the greatest, and covers in 1 - 2^(1 - n) of all cases.
COVERAGE = {2: 0.50, 3: 0.75, 4: 0.80, 5: 0.84, 6: 0.86, 7: 0.88, 8: 0.89, 9: 0.89, 10: 0.90}

Array = NDArray[np.float64]
Task = tuple[str, int]  # env, demonstrations


class Estimate(NamedTuple):
    """A value and its 95% interval; NaN ends where one seed leaves nothing to resample."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.text()

    def text(self, number: str = "{:.2f}") -> str:
        """As `0.86 [0.84, 0.91]`; without brackets where there is no interval."""
        value, low, high = (show(float(x), number) for x in self)
        return value if math.isnan(self.low) else f"{value} [{low}, {high}]"


# ---------------------------------------------------------------- scores


def final(runs: pd.DataFrame | None, present: Iterable[RunKey], window: int) -> dict[RunKey, float]:
    """The final score of each run that is there, but for those on `unscored_envs`.

    runs: rows of `ngt.runs.table.read_runs`; None where no run is there.
    """
    if runs is None:
        return {}
    lack = unscored_envs(runs)
    found = _by_run(final_scores(usable(runs), window))
    return {key: found.get(key, UNEVALUATED) for key in present if key.env not in lack}


def final_returns(
    runs: pd.DataFrame, present: Iterable[RunKey], window: int
) -> dict[RunKey, float]:  # fmt: skip
    """The final return of each run that is there; one without an evaluation has a random policy's.

    NaN if no run of its env has an evaluation. Arguments as `final`.
    """
    found = _by_run(final_scores(usable(runs), window, "return"))
    random: dict[str, float] = dict(zip(runs["env"], runs["random"], strict=True))
    return {key: found.get(key, random.get(key.env, math.nan)) for key in present}


def _by_run(final: pd.DataFrame) -> dict[RunKey, float]:
    rows = final.itertuples(index=False, name=None)
    return {RunKey(*row[:-1]): float(row[-1]) for row in rows}


def unscored(runs: pd.DataFrame | None) -> list[str]:
    """A sentence for each env whose scores are missing, with the reason."""
    return [f"No scores on {env}: {reason}." for env, reason in unscored_envs(runs).items()]


class Diverged(NamedTuple):
    """Runs that ended early, and those of them that had no evaluation yet."""

    runs: frozenset[RunKey]
    silent: frozenset[RunKey]

    def __str__(self) -> str:
        """What is said of them; empty where there are none."""
        n, early = len(self.runs), len(self.silent)
        if not n:
            return ""
        none = f" ({early} of them had none and count{'s' * (early == 1)} as 0)" if early else ""
        many = "s diverged and count" if n > 1 else " diverged and counts"
        return f"{n} run{many} with the evaluations until then{none}."


def diverged(runs: pd.DataFrame | None, present: Iterable[RunKey]) -> Diverged:
    """Those among the runs that are there. Arguments as `final`."""
    status: dict[RunKey, str] = {}
    if runs is not None:
        rows = runs[[*AXES, "status"]].drop_duplicates().itertuples(index=False, name=None)
        status = {RunKey(*row[:-1]): row[-1] for row in rows}
    keys = frozenset(key for key in present if status.get(key, "diverged") == "diverged")
    return Diverged(keys, keys - status.keys())


@dataclass(frozen=True)
class Scores:
    """Final scores of methods that are compared on the same tasks.

    of: a matrix (seeds, tasks) a method. silent: methods without any run. left_out: tasks on which
    another method lacks a run, since rliable wants all seeds of all tasks.
    """

    tasks: tuple[Task, ...]
    of: Mapping[str, Array]
    silent: tuple[str, ...] = ()
    left_out: tuple[Task, ...] = ()

    def at(self, demos: int) -> Scores:
        """The tasks with this many demonstrations."""
        return self.only([task for task in self.tasks if task[1] == demos])

    def only(self, tasks: Collection[Task]) -> Scores:
        """Some of the tasks."""
        at = [i for i, task in enumerate(self.tasks) if task in tasks]
        some = {method: scores[:, at] for method, scores in self.of.items()}
        return Scores(tuple(self.tasks[i] for i in at), some, self.silent, self.left_out)


def gather(keys: Sequence[RunKey], scores: Mapping[RunKey, float], where: str) -> Scores:
    """The matrices of all methods among the keys, whose seeds are the same on every task.

    scores: of the runs that are there, of `final`. where: the artefact. UserError where no task is
    whole, or where a task has two input modes or rates.
    """
    cells: dict[str, dict[Task, list[RunKey]]] = {}
    for key in sorted(keys):
        cell = cells.setdefault(key.method, {}).setdefault((key.env, key.demos), [])
        if cell and (key.mode, key.rate) != (cell[0].mode, cell[0].rate):
            raise UserError(f"{where}: {key} and {cell[0]}: choose one input mode and one rate")
        cell.append(key)
    there = {m: any(k in scores for ks in c.values() for k in ks) for m, c in cells.items()}
    tasks = list(dict.fromkeys(task for cell in cells.values() for task in cell))
    whole = [
        task for task in tasks
        if all(k in scores for m, c in cells.items() if there[m] for k in c[task])
    ]  # fmt: skip
    if not whole or not any(there.values()):
        lacking = next(key for key in sorted(keys) if key not in scores)
        raise UserError(f"{where}: no task has all its runs, {lacking} for one; train them first")
    return Scores(
        tuple(whole),
        {
            method: np.array([[scores[k] for k in cell[task]] for task in whole]).T
            for method, cell in cells.items()
            if there[method]
        },
        tuple(method for method in cells if not there[method]),
        tuple(task for task in tasks if task not in whole),
    )


def nothing(present: Iterable[RunKey], seeds: int) -> Scores:
    """The scores where no task has any: of the methods that have runs."""
    methods = dict.fromkeys(key.method for key in present)
    return Scores((), {method: np.empty((seeds, 0)) for method in methods})


# ---------------------------------------------------------------- intervals


def coverage(seeds: int) -> str:
    """COVERAGE as text; more seeds than it has cover more often."""
    most = max(COVERAGE)
    return f"{COVERAGE[seeds]:.0%}" if seeds <= most else f"over {COVERAGE[most]:.0%}"


def over_many(seeds: int) -> float:
    """The coverage where the mean is over so many tasks that it is normal.

    Resampling n scores gives their variance (n - 1) / n times.
    """
    return math.erf(1.959964 * math.sqrt((seeds - 1) / seeds) / math.sqrt(2))


def caution(seeds: Iterable[int], *, tasks: int = 1) -> str:
    """How often 95% intervals from these numbers of seeds cover; empty if there is no interval.

    tasks: over how many at most an interval is formed.
    """
    counts = sorted({n for n in seeds if n > 1})
    if not counts:
        return ""
    names, shares = listed(counts), listed(map(coverage, counts))
    text = f"With {names} seeds a nominal 95% interval of a mean covers the true one in about "
    text += f"{shares} of cases (one task, normal scores)"
    if tasks > 1:
        text += f", over many tasks in {listed(f'{over_many(n):.0%}' for n in counts)}"
    if counts[0] <= 3:
        text += "; on one task, that of up to 3 seeds reaches from the least score to the greatest"
    return f"{text}."


# ---------------------------------------------------------------- estimates


@contextlib.contextmanager
def seeded(seed: int, *axes: str | int) -> Iterator[None]:
    """NumPy's global generator at a state named by the axes; its own state is put back after.

    rliable draws from it alone and ignores the `random_state` that it takes.
    """
    state = np.random.get_state()
    np.random.seed(derive(seed, *axes) % 2**32)
    try:
        yield
    finally:
        np.random.set_state(state)


def estimates(
    function: Callable[..., Any], arrays: Sequence[Array], settings: StatisticsConfig,
    *axes: str | int,
) -> list[Estimate]:  # fmt: skip
    """Each number of function(*arrays), with its interval.

    arrays: (seeds, tasks) each, resampled independently. axes: name the draws, so that an interval
    depends on no other.
    """
    data: Any = list(arrays) if len(arrays) > 1 else arrays[0]
    if min(len(a) for a in arrays) < 2:
        values = np.ravel(function(*arrays))
        return [Estimate(float(v), math.nan, math.nan) for v in values]
    with seeded(settings.seed, *axes):
        points, ends = library.get_interval_estimates(
            {"": data}, lambda *a: np.ravel(function(*a)), reps=settings.reps
        )
    return [Estimate(*map(float, row)) for row in zip(points[""], *ends[""], strict=True)]


def aggregates(
    scores: Array, settings: StatisticsConfig, *axes: str | int
) -> tuple[Estimate, Estimate]:
    """Interquartile mean and optimality gap over all runs and tasks."""

    def both(s: Array) -> list[float]:
        return [metrics.aggregate_iqm(s), metrics.aggregate_optimality_gap(s)]

    iqm, gap = estimates(both, [scores], settings, "aggregates", *axes)
    return iqm, gap


def improvement(x: Array, y: Array, settings: StatisticsConfig, *axes: str | int) -> Estimate:
    """Probability that a run of x scores above one of y, averaged over tasks; a tie is a half."""
    return estimates(metrics.probability_of_improvement, [x, y], settings, "improvement", *axes)[0]


def profile(
    scores: Array, taus: Array, settings: StatisticsConfig, *axes: str | int
) -> list[Estimate]:
    """Share of runs that score strictly above each tau."""
    function = library.score_distributions
    return estimates(lambda s: function(s, taus), [scores], settings, "profile", *axes)


def mean(scores: Array, settings: StatisticsConfig, *axes: str | int) -> Estimate:
    """Mean over all runs and tasks."""
    return estimates(metrics.aggregate_mean, [scores], settings, "mean", *axes)[0]


def difference(
    x: Array, y: Array, settings: StatisticsConfig, *axes: str | int,
    of: Callable[[Array], Any] = metrics.aggregate_mean,
) -> Estimate:  # fmt: skip
    """of(x) − of(y)."""
    return estimates(lambda a, b: of(a) - of(b), [x, y], settings, "difference", *axes)[0]


def spread(scores: Array, settings: StatisticsConfig, *axes: str | int) -> Estimate:
    """Standard deviation over seeds (sample, n − 1), averaged over tasks."""
    return estimates(
        lambda s: np.std(s, axis=0, ddof=1).mean(), [scores], settings, "spread", *axes
    )[0]  # fmt: skip
