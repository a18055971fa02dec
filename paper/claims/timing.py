"""Rules for the claims about speed: the paper's speeds, and checks of our runs' speeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ngt.runs.keys import RunKey
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims.checks import Check
from paper.claims.verdicts import Cells, Evidence, Outcome
from paper.numbers import speed, statistics
from paper.numbers.statistics import Array, Estimate

# The paper's speeds: env steps per second on each of these envs, averaged over the first 200 000
# steps of training on one RTX 4090.
REPORTED_ENVS = ("Humanoid-v4", "Walker2d-v4")
REPORTED = {
    "pwil": (631, 749),
    "diffail": (659, 929),
    "ngt": (712, 967),
    "dac-r": (741, 953),
    "mmd-dac": (749, 977),
    "wdac": (763, 978),
}
UNKNOWN = Estimate(math.nan, math.nan, math.nan)
STEADY = 0.05  # two speeds count as equal up to this relative difference
_WITHIN = f"{100 * STEADY:g} %"


@dataclass(frozen=True)
class TimingRule:
    """A rule that calls a function to judge the evidence.

    words: a description of the rule.
    judge: the function, which returns the rule's outcome.
    """

    words: str
    judge: Callable[[Evidence], Outcome]
    artefact: str = speed.NAME  # name of the table that shows the runs; empty if there are none

    def text(self, paper: Config) -> str:
        """Return the rule in words."""
        return self.words


def timed(config: Config, *bases: str) -> tuple[str, ...]:
    """Return the variants whose runs are timed, such as `speed-dac` for dac-r.

    bases: the names of the methods on which the variants are based.
    """
    methods = config.figures[speed.NAME].methods
    names = {speed.base(config, method): method for method in methods}
    return tuple(names[base] for base in bases)


def reported_order(env: str) -> list[str]:
    """Return the methods from the slowest to the fastest on an env, according to the paper."""
    return sorted(REPORTED, key=lambda base: REPORTED[base][REPORTED_ENVS.index(env)])


def order(env: str) -> TimingRule:
    """Return a rule: on an env, the methods' speeds have the same order as in the paper.

    The rule ignores pairs of methods that are about equally fast in the paper.
    """

    def judge(e: Evidence) -> Outcome:
        column = REPORTED_ENVS.index(env)
        bases = reported_order(env)
        names = dict(zip(bases, timed(e.paper, *bases), strict=True))
        cells = Cells(speed.NAME, tuple(names.values()), envs=(env,))
        clocks = e.clocks(cells)
        found = {base: _mean_rates(clocks, name, env) for base, name in names.items()}
        checks = []
        for a, b in itertools.combinations(bases, 2):
            if REPORTED[b][column] > REPORTED[a][column] * (1 + STEADY):
                known = len(found[a]) and len(found[b])
                apart = statistics.difference(found[b], found[a]) if known else UNKNOWN
                name = f"{names[a]} < {names[b]}"
                checks.append(Check(name, "", apart.low, strict=True, lean=apart.value))
        means = {base: float(rates.mean()) for base, rates in found.items() if len(rates)}
        shown = sorted(means.items(), key=lambda item: item[1])
        ours = " < ".join(f"{method_label(e.paper, names[b])} {rate:.0f}" for b, rate in shown)
        if checks and None not in (held := [check.holds for check in checks]):
            ours += f"; {sum(map(bool, held))} of {len(held)} pairs"
        return _on_equal_gpus(e, cells, checks if means else [], clocks, ours)

    words = (
        f"for each two methods more than {_WITHIN} apart in the paper, the paper's faster one is "
        "faster: difference of the mean rates since the start > 0, over repeats; on equal GPUs"
    )
    return TimingRule(words, judge)


def flat(base: str) -> TimingRule:
    """Return a rule: a method's speeds in the last two fifths of its runs are about equal.

    This rule is stricter than the paper's claim: the paper's curves show means since the start of
    training, which hide a change at the end.
    """
    words = f"last fifth of the run within {_WITHIN} of the fourth on each env"
    return _trend(words, base, -2, lambda change: STEADY - abs(change))


def falling(base: str) -> TimingRule:
    """Return a rule: a method's speed falls from the second fifth of its runs to the last fifth.

    The first fifth is not used, because its time includes the start-up.
    """
    words = f"last fifth of the run {_WITHIN} or more below the second on each env"
    return _trend(words, base, 1, lambda change: -STEADY - change)


def _trend(words: str, base: str, earlier: int, margin: Callable[[float], float]) -> TimingRule:
    def judge(e: Evidence) -> Outcome:
        cells = Cells(speed.NAME, timed(e.paper, base))
        clocks, changes = e.clocks(cells), dict[str, list[float]]()
        for key, clock in clocks.items():
            rates = speed.stretches(*clock)
            change = float(rates[-1] / rates[earlier] - 1) if len(rates) > 2 else math.nan
            changes.setdefault(key.env, []).append(change)
        means = {env: float(np.mean(each)) for env, each in changes.items()}
        checks = [Check(env, _percent(change), margin(change)) for env, change in means.items()]
        return _on_equal_gpus(e, cells, checks, clocks)

    return TimingRule(f"{words}, mean of the repeats; on equal GPUs", judge)


def on_par(base: str, other: str) -> TimingRule:
    """Return a rule: the speeds of two methods, averaged over whole runs, are about equal."""

    def judge(e: Evidence) -> Outcome:
        first, second = timed(e.paper, base, other)
        cells = Cells(speed.NAME, (first, second))
        clocks, checks = e.clocks(cells), list[Check]()
        for env in dict.fromkeys(key.env for key in clocks):
            a, b = (_mean_rates(clocks, method, env) for method in (first, second))
            change = float(a.mean() / b.mean() - 1) if len(a) and len(b) else math.nan
            checks.append(Check(env, _percent(change), STEADY - abs(change)))
        return _on_equal_gpus(e, cells, checks, clocks)

    words = f"mean rates since the start within {_WITHIN} on each env, over repeats; on equal GPUs"
    return TimingRule(words, judge)


def _mean_rates(clocks: Mapping[RunKey, tuple[Array, Array]], method: str, env: str) -> Array:
    """Return the mean speed of each of a method's runs on an env, shape (repeats, 1)."""
    found = [speed.mean_rate(*c) for k, c in clocks.items() if (k.method, k.env) == (method, env)]
    return np.array(found)[:, None]


def _percent(change: float) -> str:
    if math.isnan(change):
        return "too few evaluations"
    return f"{round(100 * change, 1) + 0.0:+.1f} %".replace("-", "−")


def _on_equal_gpus(
    e: Evidence, cells: Cells, checks: Sequence[Check], runs: Iterable[RunKey], ours: str = ""
) -> Outcome:
    """Return an outcome that decides on a claim only if all runs were trained on equal GPUs.

    The machines must be equal as well. Machines and GPUs are equal if their names are. Otherwise
    the outcome has no tendency either.
    """
    machines = e.machines(cells)
    gpu = len(machines) == 1 and all(machine.gpu for machine in machines)
    on = "; ".join(sorted(f"{machine.name}, {machine.device}" for machine in machines))
    return Outcome(
        checks,
        gpu and e.decides(cells),
        frozenset(runs),
        ours,
        on,
        instead=None if gpu else "measured, not comparable",
        unpublished=e.lacks(cells),
    )
