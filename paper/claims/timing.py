"""Rules on speed and memory: what the paper reports, and functions that compare runs with it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ngt.experience.envs import get_task
from ngt.experience.replay import peak_bytes
from ngt.runs.keys import RunKey
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims.evidence import Cells, Check, Evidence, Outcome
from paper.numbers import speed

# The paper's table: env steps per second after 200 000 on one RTX 4090, on each of the envs.
REPORTED_ENVS = ("Humanoid-v4", "Walker2d-v4")
REPORTED = {
    "pwil": (631, 749),
    "diffail": (659, 929),
    "ngt": (712, 967),
    "dac-r": (741, 953),
    "mmd-dac": (749, 977),
    "wdac": (763, 978),
}
GRAPHS = 3.0  # times as fast
CARD = 24.0  # GB of an RTX 4090
HOURS = 5.0  # of a training on HUMANOID
HUMANOID = "Humanoid-v4"

STEADY = 0.05  # of a rate: two stretches of a run that is alone on a machine differ by as much
_WITHIN = f"{100 * STEADY:g} %"
_FILE = "results/published/gpu.json"
_ALONE = f"in every measurement of a run alone ({_FILE})"


@dataclass(frozen=True)
class TimingRule:
    """A rule that is a function, with what it does in words."""

    words: str
    judge: Callable[[Evidence], Outcome]
    artefact: str = speed.NAME  # empty if the rule is about no run

    def text(self, paper: Config) -> str:
        """Return the words."""
        return self.words


# --- speeds of runs


def timed(config: Config, *bases: str) -> tuple[str, ...]:
    """Return the names of the timed variants of methods, such as `speed-dac` of dac-r."""
    methods = config.figures[speed.NAME].methods
    names = {speed.base(config, method): method for method in methods}
    return tuple(names[base] for base in bases)


def reported_order(env: str) -> list[str]:
    """Return the methods from the slowest to the fastest in the paper."""
    return sorted(REPORTED, key=lambda base: REPORTED[base][REPORTED_ENVS.index(env)])


def order(env: str) -> TimingRule:
    """Return the rule that the methods' speeds have the paper's order."""

    def judge(e: Evidence) -> Outcome:
        methods = timed(e.paper, *reported_order(env))
        cells = Cells(speed.NAME, methods, envs=(env,))
        found = e.rates(cells)
        last = {key.method: float(rates[-1]) for key, rates in found.items()}
        checks = [
            Check(f"{a} < {b}", "", last.get(b, math.nan) - last.get(a, math.nan), strict=True)
            for a, b in itertools.pairwise(methods)
        ]
        shown = sorted(last.items(), key=lambda item: item[1])
        ours = " < ".join(f"{method_label(e.paper, m)} {rate:.0f}" for m, rate in shown)
        return _on_one_gpu(e, cells, checks if last else [], found, ours)

    words = "each faster than the one before, at the end of one run each; on one GPU"
    return TimingRule(words, judge)


def flat(base: str) -> TimingRule:
    """Return the rule that the rate over the last stretch of a run equals the one before it."""
    words = f"last fifth of the run within {_WITHIN} of the fourth on each env; on one GPU"
    return _trend(words, base, -2, lambda change: STEADY - abs(change))


def falling(base: str) -> TimingRule:
    """Return the rule that the rate falls from the second stretch of a run to the last.

    The first stretch includes the start-up.
    """
    words = f"last fifth of the run {_WITHIN} or more below the second on each env; on one GPU"
    return _trend(words, base, 1, lambda change: -STEADY - change)


def _trend(words: str, base: str, earlier: int, margin: Callable[[float], float]) -> TimingRule:
    def judge(e: Evidence) -> Outcome:
        cells = Cells(speed.NAME, timed(e.paper, base))
        found, checks = e.rates(cells), list[Check]()
        for key, rates in found.items():
            change = float(rates[-1] / rates[earlier] - 1) if len(rates) > 2 else math.nan
            checks.append(Check(key.env, _percent(change), margin(change)))
        return _on_one_gpu(e, cells, checks, found)

    return TimingRule(words, judge)


def on_par(base: str, other: str) -> TimingRule:
    """Return the rule that two methods are equally fast at the end of their runs."""

    def judge(e: Evidence) -> Outcome:
        first, second = timed(e.paper, base, other)
        cells = Cells(speed.NAME, (first, second))
        found, checks = e.rates(cells), list[Check]()
        last = {(key.env, key.method): float(rates[-1]) for key, rates in found.items()}
        for env in dict.fromkeys(env for env, _ in last):
            change = last.get((env, first), math.nan) / last.get((env, second), math.nan) - 1
            checks.append(Check(env, _percent(change), STEADY - abs(change)))
        return _on_one_gpu(e, cells, checks, found)

    return TimingRule(f"within {_WITHIN} on each env; on one GPU", judge)


def _percent(change: float) -> str:
    if math.isnan(change):
        return "too few evaluations"
    return f"{100 * change:+.1f} %".replace("-", "−")


def _on_one_gpu(
    e: Evidence, cells: Cells, checks: Sequence[Check], runs: Iterable[RunKey], ours: str = ""
) -> Outcome:
    """Return an outcome that decides only if all runs are from the same machine with a GPU."""
    machines = e.machines(cells)
    gpu = len(machines) == 1 and all(device.startswith("cuda") for device, _ in machines)
    on = "; ".join(sorted(f"{machine}, {device}" for device, machine in machines))
    return Outcome(checks, gpu and e.decides(cells), frozenset(runs), ours, on)


# --- measurements of a GPU, as `make gpu-check` writes them


def _measured(
    e: Evidence, section: str, check: Callable[[Mapping[str, Any]], Check | None]
) -> Outcome:
    """Check each measurement of a run alone, but for those of which `check` returns None."""
    if e.gpu is None:
        return Outcome([], decides=False)
    found = [check(row) for row in e.gpu[section] if row["pack"] == 1]
    checks = [one for one in found if one is not None]
    return Outcome(checks, bool(checks), on=e.gpu["device"])


def _judge_graphs(e: Evidence) -> Outcome:
    def check(row: Mapping[str, Any]) -> Check:
        ratio = row["eager_ms"] / row["graph_ms"]
        return Check(f"{row['model']} on {row['env']}", f"{ratio:.1f} times", ratio - GRAPHS)

    return _measured(e, "rates", check)


def _judge_memory(e: Evidence) -> Outcome:
    """Put the paper's whole buffer in place of the measured one."""

    def check(row: Mapping[str, Any]) -> Check:
        task, rows = get_task(row["env"]), e.paper.train.buffer
        buffer = peak_bytes(rows, task.obs, task.act, rows // task.least_episode()) / 1e9
        full = row["memory_gb"] - row["buffer_gb"] + buffer
        return Check(f"{row['model']} on {row['env']}", f"{full:.1f} GB", CARD - full)

    return _measured(e, "rates", check)


def _judge_hours(e: Evidence) -> Outcome:
    def check(row: Mapping[str, Any]) -> Check | None:
        if (row["model"], row["env"]) != ("NGT", HUMANOID):
            return None
        took = e.paper.train.steps / row["env_steps_per_second"] / 3600
        return Check("", f"{took:.1f} h", HOURS - took)

    return _measured(e, "training", check)


GRAPHS_RULE = TimingRule(
    f"eager / graph ≥ {GRAPHS:g}, time of an update, {_ALONE}", _judge_graphs, artefact=""
)
MEMORY_RULE = TimingRule(
    f"peak with the whole buffer ≤ {CARD:g} GB, {_ALONE}", _judge_memory, artefact=""
)
HOURS_RULE = TimingRule(
    f"10⁷ env steps in ≤ {HOURS:g} h at the rate of NGT alone ({_FILE})", _judge_hours, artefact=""
)
