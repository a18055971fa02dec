"""What the paper's claims are judged by: final scores of cells, speeds, a GPU's rates.

A claim is about cells of the paper's run table. It has a verdict where their runs of scale `paper`
are all there, with the paper's settings; what there is otherwise is shown without one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ngt.runs.keys import RunKey, run_table
from ngt.runs.table import Runs, unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash, resolve
from paper.drawing.panels import demonstrations
from paper.numbers import speed, statistics
from paper.numbers.curves import AXES
from paper.numbers.statistics import Array, Scores

Verdict = Literal["reproduced", "partly", "not reproduced", "not run at this scale"]
By = Literal["task", "env", "all"]

FEW = 3  # parts that are all shown; of more, the one furthest from its threshold


@dataclass(frozen=True)
class Cells:
    """Runs of an artefact: those of its cells that have all that is asked for."""

    figure: str
    methods: tuple[str, ...]
    envs: tuple[str, ...] = ()  # all where empty
    without: str = ""  # an env
    demos: tuple[int, ...] = ()  # all where empty
    mode: str = ""  # all where empty
    rate: int = 0  # all where 0
    title: str = ""  # what they are called besides env and demonstrations

    def keys(self, config: Config) -> list[RunKey]:
        """The runs at a scale."""
        if self.figure not in config.figures:
            return []
        return [
            key for key in run_table(config, [self.figure], beside=True)
            if key.method in self.methods
            and (not self.envs or key.env in self.envs)
            and key.env != self.without
            and (not self.demos or key.demos in self.demos)
            and self.mode in ("", key.mode)
            and self.rate in (0, key.rate)
        ]  # fmt: skip


class Part(NamedTuple):
    """One thing that a claim says, and how far it is from failing.

    margin: above 0 where it holds, below where it does not; NaN where that is not known.
    """

    name: str
    text: str
    margin: float
    strict: bool = False  # at 0 it does not hold

    @property
    def holds(self) -> bool | None:
        """None: not known."""
        if math.isnan(self.margin):
            return None
        return self.margin > 0 if self.strict else self.margin >= 0


@dataclass(frozen=True)
class Finding:
    """What was found of a claim."""

    parts: Sequence[Part]
    whole: bool  # whether it is what the claim is about, and not a part or another machine
    keys: frozenset[RunKey] = frozenset()  # the runs that it is made from
    ours: str = ""  # what is shown; the parts where empty
    on: str = ""  # the machine, or the envs of scores that do not name theirs
    unscored: frozenset[str] = frozenset()  # envs that it is about whose scores are missing

    @property
    def verdict(self) -> Verdict:
        """Reproduced where all parts hold, partly where some do."""
        held = [part.holds for part in self.parts]
        if not self.whole or not held or None in held:
            return "not run at this scale"
        return "reproduced" if all(held) else "partly" if any(held) else "not reproduced"

    @property
    def seeds(self) -> str | None:
        """Runs of a cell; None where it is made from no runs."""
        counts = sorted(Counter((*key.cell, key.demos) for key in self.keys).values())
        return "–".join(map(str, sorted({counts[0], counts[-1]}))) if counts else None

    def text(self) -> str | None:
        """The parts, or of many how many hold and the one of least margin."""
        known = [part for part in self.parts if part.holds is not None]
        if self.ours or not self.parts:
            shown = self.ours
        elif len(self.parts) <= FEW:
            shown = "; ".join(f"{p.name}: {p.text}" if p.name else p.text for p in self.parts)
        elif known:
            least = min(known, key=lambda part: part.margin)
            held = sum(bool(part.holds) for part in known)
            shown = f"{held} of {len(known)}; by the least margin, {least.name}: {least.text}"
        else:
            shown = f"{len(self.parts)} values of one seed each"
        lack = ", ".join(sorted(self.unscored))
        parts = (shown, self.on and f"({self.on})", lack and f"[no scores on {lack}]")
        return " ".join(part for part in parts if part) or None


@dataclass(frozen=True)
class Evidence:
    """All runs of a scale, the paper's run table beside it, and a GPU's rates where they are."""

    config: Config
    paper: Config
    runs: Runs
    gpu: Mapping[str, Any] | None = None
    scores: dict[RunKey, float] = field(init=False)
    silent: frozenset[RunKey] = field(init=False)  # diverged before their first evaluation

    def __post_init__(self) -> None:
        """Final scores once for all claims."""
        scores = statistics.final(self.runs.rows, self.runs.records, self.config.window)
        object.__setattr__(self, "scores", scores)
        silent = statistics.diverged(self.runs.rows, self.runs.records).silent
        object.__setattr__(self, "silent", silent)

    @cached_property
    def decisive(self) -> frozenset[RunKey]:
        """The paper's runs that are there with its settings, and that have scores.

        Their demonstrations may be others.
        """
        if self.config.window != self.paper.window:
            return frozenset()
        keys = [key for key in run_table(self.paper, beside=True) if key in self.scores]
        wanted = {}
        for cell in {key.cell for key in keys}:
            ours = resolve(self.config, *cell)
            if ours == replace(resolve(self.paper, *cell), demos_source=ours.demos_source):
                wanted[cell] = config_hash(ours)
        records = self.runs.records
        return frozenset(
            key for key in keys
            if key.cell in wanted and records[key].get("config_hash") == wanted[key.cell]
        )  # fmt: skip

    def whole(self, *cells: Cells) -> bool:
        """Whether all of the paper's runs of these cells are there, as they must be to decide."""
        return all(key in self.decisive for some in cells for key in some.keys(self.paper))

    def keys(self, cells: Cells) -> list[RunKey]:
        """The paper's runs of these cells where they decide; else those of the scale."""
        return cells.keys(self.paper if self.whole(cells) else self.config)

    def complete(self, cells: Cells) -> list[RunKey]:
        """The runs of those tasks that lack none; empty where a method has no such task."""
        tasks: dict[statistics.Task, list[RunKey]] = {}
        for key in self.keys(cells):
            tasks.setdefault((key.env, key.demos), []).append(key)
        whole = [keys for keys in tasks.values() if all(key in self.scores for key in keys)]
        keys = [key for some in whole for key in some]
        return keys if {key.method for key in keys} == set(cells.methods) else []

    def groups(self, cells: Sequence[Cells], by: By) -> Iterator[tuple[str, Scores]]:
        """Scores a group of tasks, and what the group is called."""
        for some in cells:
            keys = self.complete(some)
            if not keys:
                continue
            scores = statistics.gather(keys, self.scores, some.figure)
            for name, tasks in _groups(scores, by).items():
                label = ", ".join(part for part in (some.title, name) if part)
                yield label, scores.only(tasks)

    def unscored(self, *cells: Cells) -> frozenset[str]:
        """The envs of these cells whose scores are missing."""
        lack = unscored_envs(self.runs.rows)
        return frozenset(k.env for some in cells for k in some.keys(self.config) if k.env in lack)

    def rates(self, cells: Cells) -> dict[RunKey, Array]:
        """Env steps a second of each run: over each stretch of it, in order.

        Of timed runs that have times. Stretches are `paper.numbers.speed`'s, and do not overlap.
        """
        rows = self.runs.rows
        if rows is None:
            return {}
        out = {}
        for key in self.keys(cells):
            run = rows[np.logical_and.reduce([rows[axis] == getattr(key, axis) for axis in AXES])]
            if run["seconds"].notna().any():
                steps, seconds = speed.clock(run, str(key))
                rate = speed.rates(steps, seconds)[1]
                out[key] = rate[:: -speed.reach(steps)][::-1]
        return out

    def unevaluated(self, keys: Iterable[RunKey], scores: Scores) -> int:
        """How many of these runs, of the scores' tasks and methods, diverged before a score."""
        return sum(
            key in self.silent and (key.env, key.demos) in scores.tasks and key.method in scores.of
            for key in keys
        )

    def machines(self, cells: Cells) -> set[tuple[str, str]]:
        """(device, machine) of the runs that are there."""
        records = self.runs.records
        there = (records[key] for key in self.keys(cells) if key in records)
        return {(str(run.get("device")), str(run.get("machine"))) for run in there}


def _groups(scores: Scores, by: By) -> dict[str, list[statistics.Task]]:
    """Tasks by the name of their group."""
    out: dict[str, list[statistics.Task]] = {}
    for env, demos in scores.tasks:
        names = {"all": "", "env": env, "task": f"{env}, {demonstrations(demos)}"}
        out.setdefault(names[by], []).append((env, demos))
    return out
