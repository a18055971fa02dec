"""A table of the main figure's scores, aggregated over tasks (not in the paper).

A task is a pair of an env and a number of demonstrations.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from ngt.errors import UserError
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.command import Made, Options, read
from paper.drawing.style import Note
from paper.drawing.table import Cell, Column, Table
from paper.numbers import bootstrap, coverage, statistics
from paper.numbers.statistics import Diverged, Estimate, Scores
from paper.words import ABSENT

FIGURE = "main_figure"

COLUMNS = {
    "demos": Column("demonstrations"),
    "method": Column("method"),
    "tasks": Column("tasks"),
    "iqm": Column("IQM"),
    "iqm_low": Column("low"),
    "iqm_high": Column("high"),
    "gap": Column("gap"),
    "gap_low": Column("low"),
    "gap_high": Column("high"),
    "better": Column("P"),
    "better_low": Column("low"),
    "better_high": Column("high"),
    "runs": Column("runs"),
    "diverged": Column("diverged"),
}


@dataclass(frozen=True)
class Aggregates:
    """The scores of the main figure's runs, from which aggregates are computed."""

    config: Config
    reference: str  # the method with which all other methods are compared
    scores: Scores
    diverged: Diverged  # the runs that diverged
    absent: tuple[RunKey, ...]  # the runs that are missing
    unscored: tuple[str, ...] = ()  # a sentence about each env without scores

    @property
    def methods(self) -> list[str]:
        """Return the methods that have runs, in the order of the main figure's list."""
        return [m for m in self.config.figures[FIGURE].methods if m in self.scores.of]

    @property
    def seeds(self) -> int:
        """Return the number of seeds per method and task, as set in the config."""
        return len(self.config.figures[FIGURE].seeds)

    def groups(self) -> Iterator[tuple[str, Scores]]:
        """Yield the name and scores of each group of tasks.

        The first group has all tasks. If the tasks have several numbers of demonstrations, one
        group for each of these numbers follows.
        """
        yield "all", self.scores
        numbers = sorted({demos for _, demos in self.scores.tasks})
        if len(numbers) > 1:
            yield from ((str(k), self.scores.at(k)) for k in numbers)

    def lost(self, method: str, scores: Scores) -> int:
        """Return how many of a method's runs diverged on the tasks of these scores."""
        return sum(
            key.method == method and (key.env, key.demos) in scores.tasks
            for key in self.diverged.runs
        )

    def both(
        self, method: str, scores: Scores, group: str = "all"
    ) -> tuple[Estimate | None, Estimate | None]:
        """Return the interquartile mean and the optimality gap of a method's scores.

        Return (None, None) if there are no scores.

        group: the name of the group of tasks; the bootstrap's random seed depends on it.
        """
        if not scores.tasks:
            return None, None
        return bootstrap.aggregates(scores.of[method], self.config.statistics, group, method)

    def better(self, method: str, scores: Scores, group: str = "all") -> Estimate | None:
        """Return the probability that a run of the reference method beats a run of `method`.

        Return None if `method` is the reference method, or if the reference method has no run.
        """
        if method == self.reference or self.reference not in scores.of:
            return None
        return self.beats(self.reference, method, scores, group)

    def beats(self, x: str, y: str, scores: Scores, group: str = "all") -> Estimate | None:
        """Return the probability that a run of method x beats a run of method y.

        Return None if there are no scores.
        """
        if not scores.tasks:
            return None
        if y == self.reference:  # use the same random draws as `better`
            value, low, high = self.beats(y, x, scores, group) or [math.nan] * 3
            return Estimate(1 - value, 1 - high, 1 - low)
        draws = (group, y) if x == self.reference else (group, x, y)
        pair = (scores.of[x], scores.of[y])
        return bootstrap.improvement(*pair, self.config.statistics, *draws)

    @property
    def label(self) -> str:
        """Return the label of the method with which all other methods are compared."""
        return method_label(self.config, self.reference)


def collect(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey]) -> Aggregates:
    """Compute and return the scores of the main figure's runs.

    Raise UserError if the reference method has no run, except with published records.

    runs: the rows that `ngt.runs.table.read_runs` returned.
    absent: the keys of missing runs.
    """
    lack = unscored_envs(runs)
    keys = run_table(config, [FIGURE])
    present = sorted(set(keys) - set(absent))
    scored = [key for key in keys if key.env not in lack]
    seeds, published = len(config.figures[FIGURE].seeds), config.records == "published"
    scores = statistics.nothing(present, seeds)
    if scored:
        final = statistics.final(runs, present, config.window)
        scores = statistics.gather(scored, final, FIGURE, none_is_fine=published)
    reference = statistics.reference(config)
    if reference not in scores.of and not published:
        raise UserError(
            f"figures.{FIGURE}.methods: {reference}, with which all others are compared, has no "
            f"run; train it, or choose another as statistics.reference"
        )
    return Aggregates(
        config,
        reference,
        scores,
        statistics.diverged(runs, present),
        tuple(absent),
        tuple(statistics.unscored(runs)),
    )


def notes(a: Aggregates, *, pairs: bool = False) -> list[Note]:
    """Return notes that explain scores, aggregates and intervals, and name missing runs.

    pairs: True if only P is shown, for pairs of methods.
    """
    window, tasks, n = a.config.window, len(a.scores.tasks), a.seeds
    score = f"mean of its last {window} evaluations" if window > 1 else "last evaluation"
    text = (
        f"Scale {a.config.scale}: {tasks} task{'s' * (tasks != 1)} (an env with a number of "
        f"demonstrations), n = {n} seed{'s' * (n != 1)} per task. A run's score is the {score}, "
        f"normalised: random 0, expert 1. "
    )
    if not pairs:
        text += (
            f"IQM: mean of the middle half of all scores; optimality gap: mean shortfall of the "
            f"scores from 1; P({a.label} > method): probability that a run of {a.label} scores "
            f"higher than one of the method on the same task. "
        )
    text += f"A tie counts half. {_intervals(a, pairs)}"
    out = [Note(text)]
    if a.unscored:
        out.append(Note(f"{' '.join(a.unscored)} They are left out here.", alert=True))
    if a.diverged.runs:
        out.append(Note(str(a.diverged)))
    if a.absent:
        runs = "1 run is" if len(a.absent) == 1 else f"{len(a.absent)} runs are"
        text = f"PARTIAL: {runs} {ABSENT[a.config.records]}."
        if not tasks and not a.unscored:
            text += " No aggregates: they need all runs of some task."
        elif a.reference not in a.scores.of and not pairs:
            text += f" No P, since {a.label} has no run."
        if a.scores.silent:
            labels = ", ".join(method_label(a.config, m) for m in a.scores.silent)
            text += f" Methods without any run: {labels}."
        out.append(Note(text, alert=True))
    if a.scores.left_out:
        left_out = ", ".join(f"{env} with {k}" for env, k in a.scores.left_out)
        text = f"Tasks left out for all methods, since some method lacks a run there: {left_out}."
        out.append(Note(text, alert=bool(a.absent)))
    return out


def _intervals(a: Aggregates, pairs: bool) -> str:
    """Explain the intervals, and say how often they cover the true value."""
    n, tasks = a.seeds, len(a.scores.tasks)
    if n == 1:
        return "One seed per task leaves nothing to resample, so there are no intervals."
    kinds = (
        f"a stratified bootstrap over seeds within each task ({a.config.statistics.reps} "
        f"repetitions)"
    )
    if not pairs:
        kinds = f"a t interval, cut at 0, for the gap, which is a mean; {kinds} for the IQM and P"
    shown = ("P",) if pairs else ("mean", "IQM", "P")
    return (
        f"All intervals are 95%: {kinds}. If all runs of one method score higher than all runs of "
        f"the other, P is 0 or 1, and its interval has no width, so that it does not show how "
        f"certain P is. {coverage.caution([n], *shown, tasks=tasks)}"
    )


def rows(a: Aggregates) -> Iterator[dict[str, Cell]]:
    """Yield one row for each method in each group of tasks."""
    for group, scores in a.groups():
        for method in a.methods:
            found = (*a.both(method, scores, group), a.better(method, scores, group))
            row: dict[str, Cell] = {"demos": group, "method": method_label(a.config, method)}
            row["tasks"] = len(scores.tasks)
            for key, e in zip(("iqm", "gap", "better"), found, strict=True):
                row |= zip((key, f"{key}_low", f"{key}_high"), e or [None] * 3, strict=True)
            yield {**row, "runs": scores.of[method].size, "diverged": a.lost(method, scores)}


def table(a: Aggregates) -> Table:
    """Return the table of aggregates."""
    caption = (
        "Aggregates over tasks, for all numbers of demonstrations together and for each "
        f"separately: interquartile mean, optimality gap and P({a.label} > method), each with its "
        f"95% interval (low, high)."
    )
    said, marks = ([n.text for n in notes(a) if n.alert == alert] for alert in (False, True))
    return Table(caption, COLUMNS, list(rows(a)), said, marks)


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the runs of the main figure and make the table from them."""
    runs, absent = read(config, layout, options)
    return Made(table(collect(runs, config, absent)))
