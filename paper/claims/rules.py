"""Rules that a claim is judged by, and every threshold in them.

The paper gives few numbers: what its words mean in numbers is decided here, once.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rliable import metrics

from ngt.experience.envs import get_task
from ngt.experience.replay import peak_bytes
from ngt.runs.keys import RunKey
from ngt.settings.config import Config, StatisticsConfig
from ngt.settings.resolve import method_label
from paper.claims.evidence import By, Cells, Evidence, Finding, Part
from paper.numbers import speed, statistics
from paper.numbers.speed import PAPER, PAPER_ENVS
from paper.numbers.statistics import OURS, Array, Estimate, Scores

Judge = Callable[[Evidence], Finding]
# (bootstrap settings, name of the group, its scores) -> part
Measure = Callable[[StatisticsConfig, str, Scores], Part]

# Normalised scores, random 0 and expert 1. An interval must lie wholly on one side.
EXPERT = 0.9  # a tenth short: one evaluation of the same policy differs by as much from the next
STRONG = 0.75  # nearer to the expert than to halfway
LEARNS = 0.5  # halfway: wholly above it learns, wholly below it fails
MARGIN = 0.1  # the least difference that matters: EXPERT's tenth
TIGHT = 0.1  # standard deviation over seeds: the same tenth
STEADY = 0.05  # of a rate; what two stretches of one run differ by on a machine of its own

# The paper's own figures.
GRAPHS = 3.0  # times as fast
CARD = 24.0  # GB, an RTX 4090
HOURS = 5.0  # of a training on Humanoid-v4


# ---------------------------------------------------------------- scores


def _judge(measure: Measure, cells: Sequence[Cells], by: By, scored: bool = False) -> Judge:
    """scored: where a run diverged before it had a score, the rule does not hold."""

    def judge(e: Evidence) -> Finding:
        keys = frozenset(key for some in cells for key in e.complete(some))
        parts = []
        for name, scores in e.groups(cells, by):
            lost = e.unevaluated(keys, scores) if scored else 0
            if lost:
                parts.append(Part(name, f"{lost} diverged before an evaluation", -math.inf))
            else:
                parts.append(measure(e.config.statistics, name, scores))
        whole = e.whole(*cells)
        said = whole or by != "all"  # which envs it is about
        on = "" if said else ", ".join(sorted({key.env for key in keys}))
        return Finding(parts, whole, keys, on=on, unscored=e.unscored(*cells))

    return judge


def reaches(level: float, *cells: Cells, by: By = "task") -> Judge:
    """The mean's interval lies at or above a level. Cells of one method."""

    def measure(settings: StatisticsConfig, name: str, scores: Scores) -> Part:
        mean = statistics.mean(_only(scores), settings, name)
        return Part(name, str(mean), mean.low - level)

    return _judge(measure, cells, by)


def fails(level: float, *cells: Cells, by: By = "task") -> Judge:
    """The mean's interval lies below a level. Cells of one method."""

    def measure(settings: StatisticsConfig, name: str, scores: Scores) -> Part:
        mean = statistics.mean(_only(scores), settings, name)
        return Part(name, str(mean), level - mean.high, strict=True)

    return _judge(measure, cells, by)


def tight(*cells: Cells) -> Judge:
    """The interval of the standard deviation over seeds ends at TIGHT. Cells of one method."""

    def measure(settings: StatisticsConfig, name: str, scores: Scores) -> Part:
        spread = statistics.spread(_only(scores), settings, name)
        return Part(name, f"std {spread}", TIGHT - spread.high)

    return _judge(measure, cells, "task", scored=True)


def unsteady(*cells: Cells) -> Judge:
    """The standard deviation is above TIGHT, or the mean's interval below EXPERT."""

    def measure(settings: StatisticsConfig, name: str, scores: Scores) -> Part:
        mean = statistics.mean(_only(scores), settings, name)
        spread = statistics.spread(_only(scores), settings, name)
        margin = max(spread.value - TIGHT, EXPERT - mean.high)
        known = not math.isnan(mean.high)
        return Part(name, f"{mean}, std {spread.value:.2f}", margin if known else math.nan, True)

    return _judge(measure, cells, "task")


def ahead(*cells: Cells) -> Judge:
    """The interval of NGT's IQM minus another's lies above 0. Cells of NGT and another method."""

    def measure(settings: StatisticsConfig, name: str, scores: Scores) -> Part:
        text, gap = _difference(scores, OURS, settings, name, metrics.aggregate_iqm)
        return Part(name, text, gap.low, strict=True)

    return _judge(measure, cells, "all")


def close(*cells: Cells, by: By = "env") -> Judge:
    """The interval of a variant's mean minus NGT's lies at or above -MARGIN."""

    def measure(settings: StatisticsConfig, name: str, scores: Scores) -> Part:
        text, gap = _difference(scores, _variant(scores), settings, name, metrics.aggregate_mean)
        return Part(name, text, gap.low + MARGIN)

    return _judge(measure, cells, by, scored=True)


def worse(by_more_than: float, *cells: Cells) -> Judge:
    """The interval of a variant's mean minus NGT's lies below 0, or below -`by_more_than`."""

    def measure(settings: StatisticsConfig, name: str, scores: Scores) -> Part:
        text, gap = _difference(scores, _variant(scores), settings, name, metrics.aggregate_mean)
        return Part(name, text, -by_more_than - gap.high, strict=True)

    return _judge(measure, cells, "env")


def _only(scores: Scores) -> Array:
    (matrix,) = scores.of.values()
    return matrix


def _variant(scores: Scores) -> str:
    (other,) = set(scores.of) - {OURS}
    return other


def _difference(
    scores: Scores, first: str, settings: StatisticsConfig, name: str, of: Callable[[Array], Any]
) -> tuple[str, Estimate]:
    """of(first) − of(the other), and in words."""
    (second,) = set(scores.of) - {first}
    x, y = scores.of[first], scores.of[second]
    gap = statistics.difference(x, y, settings, first, second, name, of=of)
    return f"{of(x):.2f} − {of(y):.2f} = {gap}".replace("-", "−"), gap


def most(judge: Judge) -> Judge:
    """As one part: more than half of another judge's parts hold."""

    def judged(e: Evidence) -> Finding:
        found = judge(e)
        known = [part.holds for part in found.parts if part.holds is not None]
        share = sum(known) / len(known) - 0.5 if known else math.nan
        part = Part("", f"{sum(known)} of {len(known)}", share, strict=True)
        return dataclasses.replace(found, parts=[part] if known else [])

    return judged


def every(*judges: Judge) -> Judge:
    """As one part: all parts of several judges hold."""

    def judged(e: Evidence) -> Finding:
        found = [judge(e) for judge in judges]
        parts = [part for f in found for part in f.parts]
        together = Finding(
            parts, all(f.whole for f in found), frozenset(key for f in found for key in f.keys),
            unscored=frozenset(env for f in found for env in f.unscored),
        )  # fmt: skip
        if not parts:
            return together
        least = min(parts, key=lambda part: (part.holds is not None, part.margin))
        return dataclasses.replace(together, parts=[least], ours=together.text() or "")

    return judged


# ---------------------------------------------------------------- speed


def timed(config: Config, *bases: str) -> tuple[str, ...]:
    """The timed runs' names of methods: `speed-dac` of dac-r."""
    methods = config.figures[speed.NAME].methods
    names = {speed.base(config, method): method for method in methods}
    return tuple(names[base] for base in bases)


def paper_order(env: str) -> list[str]:
    """Methods from the slowest to the fastest in the paper."""
    return sorted(PAPER, key=lambda base: PAPER[base][PAPER_ENVS.index(env)])


def order(env: str) -> Judge:
    """Each method is faster at the end of its run than the one before it in the paper's order."""

    def judge(e: Evidence) -> Finding:
        methods = timed(e.paper, *paper_order(env))
        cells = Cells(speed.NAME, methods, envs=(env,))
        found = e.rates(cells)
        last = {key.method: float(rates[-1]) for key, rates in found.items()}
        parts = [
            Part(f"{a} < {b}", "", last.get(b, math.nan) - last.get(a, math.nan), strict=True)
            for a, b in itertools.pairwise(methods)
        ]
        shown = sorted(last.items(), key=lambda item: item[1])
        ours = " < ".join(f"{method_label(e.paper, m)} {rate:.0f}" for m, rate in shown)
        return _timing(e, cells, parts if last else [], found, ours)

    return judge


def flat(base: str) -> Judge:
    """The rate over the run's last stretch is within STEADY of that over the one before."""
    return _trend(base, -2, lambda change: STEADY - abs(change))


def falling(base: str) -> Judge:
    """The rate over the run's last stretch is below that over its second by STEADY or more.

    The first holds the start-up.
    """
    return _trend(base, 1, lambda change: -STEADY - change)


def _trend(base: str, earlier: int, margin: Callable[[float], float]) -> Judge:
    def judge(e: Evidence) -> Finding:
        cells = Cells(speed.NAME, timed(e.paper, base))
        found, parts = e.rates(cells), list[Part]()
        for key, rates in found.items():
            change = float(rates[-1] / rates[earlier] - 1) if len(rates) > 2 else math.nan
            parts.append(Part(key.env, _percent(change), margin(change)))
        return _timing(e, cells, parts, found)

    return judge


def on_par(base: str, other: str) -> Judge:
    """The rates of two methods at the end of their runs are within STEADY."""

    def judge(e: Evidence) -> Finding:
        first, second = timed(e.paper, base, other)
        cells = Cells(speed.NAME, (first, second))
        found, parts = e.rates(cells), list[Part]()
        last = {(key.env, key.method): float(rates[-1]) for key, rates in found.items()}
        for env in dict.fromkeys(env for env, _ in last):
            change = last.get((env, first), math.nan) / last.get((env, second), math.nan) - 1
            parts.append(Part(env, _percent(change), STEADY - abs(change)))
        return _timing(e, cells, parts, found)

    return judge


def _percent(change: float) -> str:
    if math.isnan(change):
        return "too few evaluations"
    return f"{100 * change:+.1f} %".replace("-", "−")


def _timing(
    e: Evidence, cells: Cells, parts: Sequence[Part], runs: Iterable[RunKey], ours: str = ""
) -> Finding:
    """The paper's speeds are one GPU's: runs elsewhere, or on several machines, decide nothing."""
    machines = e.machines(cells)
    gpu = len(machines) == 1 and all(device.startswith("cuda") for device, _ in machines)
    on = "; ".join(sorted(f"{machine}, {device}" for device, machine in machines))
    return Finding(parts, gpu and e.whole(cells), frozenset(runs), ours, on)


# ---------------------------------------------------------------- what a GPU gives


def _measured(e: Evidence, part: Callable[[Evidence, Mapping[str, Any]], Part]) -> Finding:
    """A part for each measurement of a run alone, of what `make gpu-check` wrote."""
    if e.gpu is None:
        return Finding([], whole=False)
    rows = [row for row in e.gpu["rates"] if row["pack"] == 1]
    return Finding([part(e, row) for row in rows], bool(rows), on=e.gpu["device"])


def graphs(e: Evidence) -> Finding:
    """An update replayed as a graph is GRAPHS times as fast as call by call."""

    def part(e: Evidence, row: Mapping[str, Any]) -> Part:
        ratio = row["eager_ms"] / row["graph_ms"]
        return Part(f"{row['model']} on {row['env']}", f"{ratio:.1f} times", ratio - GRAPHS)

    return _measured(e, part)


def memory(e: Evidence) -> Finding:
    """A training with the paper's buffer fits the paper's card."""

    def part(e: Evidence, row: Mapping[str, Any]) -> Part:
        task, rows = get_task(row["env"]), e.paper.train.buffer
        buffer = peak_bytes(rows, task.obs, task.act, rows // task.least_episode()) / 1e9
        full = row["memory_gb"] - row["buffer_gb"] + buffer
        return Part(f"{row['model']} on {row['env']}", f"{full:.1f} GB", CARD - full)

    return _measured(e, part)


def hours(e: Evidence) -> Finding:
    """A training on Humanoid-v4 takes HOURS at most."""
    if e.gpu is None:
        return Finding([], whole=False)
    parts = []
    for row in e.gpu["training"]:
        if (row["model"], row["env"], row["pack"]) == ("NGT", "Humanoid-v4", 1):
            took = e.paper.train.steps / row["env_steps_per_second"] / 3600
            parts.append(Part("", f"{took:.1f} h", HOURS - took))
    return Finding(parts, bool(parts), on=e.gpu["device"])
