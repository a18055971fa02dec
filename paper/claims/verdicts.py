"""Claims, the runs that decide on them, and how checks on these runs lead to a verdict.

A claim is about some of the paper's runs, for example one method's runs on some envs. A claim is
judged only if all of these runs exist with the settings of the `paper` scale, i.e. of the config
workflow/config/paper.yaml. Otherwise the scores of similar runs are shown without a verdict.
`Outcome.verdict` computes the verdict. Published records are shipped evaluations of earlier runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from ngt.experience.envs import get_task
from ngt.runs.keys import RunKey, run_table
from ngt.runs.table import Runs, unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import config_hash, resolve
from paper.claims.checks import Check
from paper.drawing.panels import demonstrations
from paper.numbers import speed, statistics
from paper.numbers.curves import AXES
from paper.numbers.statistics import Array, Scores, Task

Verdict = Literal[
    "reproduced",
    "partly",
    "not reproduced",
    "exceeds",  # our result is better than the paper's
    "expert too weak",
    "not comparable: settings not given",
    "measured, not comparable",  # measured on a different GPU from the paper's, or on none
    "no verdict",  # measured with a different version of the code
    "not run at this scale",
    "not published",  # runs of this scale are not among the published records
]
Tendency = Literal["agrees", "contradicts", "silent"]
Grouping = Literal["task", "env", "all"]  # a task is an env with a number of demonstrations

# An expert is weak if its return is less than this share of the return published with the authors'
# code. A random policy's return is subtracted from both returns.
EXPERT_SHARE = 0.9
INCOMPARABLE: tuple[Verdict, ...] = ("measured, not comparable", "no verdict")
FEW = 3  # if a claim has at most this many checks, all of them are shown


@dataclass(frozen=True)
class Cells:
    """A selection of a figure's runs. An empty field does not restrict the selection."""

    figure: str
    methods: tuple[str, ...]
    envs: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # envs to leave out
    demos: tuple[int, ...] = ()
    mode: str = ""
    rate: int = 0
    title: str = ""  # a name for the selection, shown before the env and demonstrations

    def keys(self, config: Config) -> list[RunKey]:
        """Return the keys of the selected runs at a config's scale."""
        if self.figure not in config.figures:
            return []
        return [key for key in run_table(config, [self.figure], beside=True) if self._has(key)]

    def _has(self, key: RunKey) -> bool:
        return (
            key.method in self.methods
            and (not self.envs or key.env in self.envs)
            and key.env not in self.without
            and (not self.demos or key.demos in self.demos)
            and self.mode in ("", key.mode)
            and self.rate in (0, key.rate)
        )


class Experts(NamedTuple):
    """How the experts that some runs imitate compare with the returns that the authors published.

    weak: the share that the expert reaches, for each env on which this is below EXPERT_SHARE.
    unknown: envs without a published return.
    """

    weak: Mapping[str, float] = {}
    unknown: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Return a note about weak experts and about envs without a published return, or ""."""
        weak = (
            f"{env}'s has {share:.0%} of the published return" for env, share in self.weak.items()
        )
        unknown = ", ".join(sorted(self.unknown))
        parts = (*weak, unknown and f"no published return to compare with on {unknown}")
        text = "; ".join(part for part in parts if part)
        return f"[expert: {text}]" if text else ""


NO_EXPERTS = Experts()


@dataclass(frozen=True)
class Outcome:
    """The result of judging a claim."""

    checks: Sequence[Check]
    decides: bool  # True if all needed runs have the paper's settings; for speeds, on equal GPUs
    keys: frozenset[RunKey] = frozenset()  # the runs on which the checks are based
    ours: str = ""  # text to show instead of the checks
    on: str = ""  # the measured machine, or the envs if the checks do not name them
    unscored: frozenset[str] = frozenset()  # the claim's envs without scores (no usable expert)
    instead: Verdict | None = None  # a verdict that replaces the one from the checks
    experts: Experts = NO_EXPERTS
    beside: str = ""  # results that are shown but not judged
    unpublished: bool = False  # True if runs of this scale are not among the published records
    elsewhere: bool = False  # True if the paper's runs are on one env, and ours on different envs

    @property
    def verdict(self) -> Verdict:
        """Return the verdict: "reproduced" if all checks hold, "partly" if some hold, and so on."""
        held = [check.holds for check in self.checks]
        if self.decides and self.instead == "no verdict":
            return "no verdict"
        if not self.decides or not held or None in held:
            return "not published" if self.unpublished else "not run at this scale"
        if self.instead or self.experts.weak:
            return self.instead or "expert too weak"
        return "reproduced" if all(held) else "partly" if any(held) else "not reproduced"

    @property
    def tendency(self) -> Tendency:
        """Return on which side of the thresholds most values lie, without regard to intervals.

        The tendency is "silent" if no value is known, if equally many values lie on both sides, or
        if the values are on different envs from the paper's or not comparable with the paper's.
        """
        known = [check.leans for check in self.checks if check.leans is not None]
        side = 2 * sum(known) - len(known)
        if side == 0 or self.elsewhere or self.instead in INCOMPARABLE:
            return "silent"
        return "agrees" if side > 0 else "contradicts"

    @property
    def seeds(self) -> str | None:
        """Return the number of seeds per method and task, or its range; None without runs."""
        counts = sorted(Counter((*key.cell, key.demos) for key in self.keys).values())
        return "–".join(map(str, sorted({counts[0], counts[-1]}))) if counts else None

    def text(self) -> str | None:
        """Return the checks as text, or None if there is nothing to show.

        If there are more than FEW checks, the text counts those that hold, and shows the check that
        fails by the most or, if all checks hold, the one that is closest to failing.
        """
        known = [check for check in self.checks if check.holds is not None]
        if self.ours or not self.checks:
            shown = self.ours
        elif len(self.checks) <= FEW:
            shown = "; ".join(f"{c.name}: {c.text}" if c.name else c.text for c in self.checks)
        elif known:
            least = min(known, key=lambda check: check.margin)
            held = f"{sum(bool(check.holds) for check in known)} of {len(known)} hold"
            which = "closest to failing" if least.holds else "fails by the most"
            shown = f"{held}; {which}: {least.name}: {least.text}"
        else:
            shown = f"{len(self.checks)} checks, each on a single seed"
        lack = ", ".join(sorted(self.unscored))
        pieces = (
            shown,
            self.on and f"({self.on})",
            lack and f"[no scores on {lack}]",
            self.beside and f"[not judged: {self.beside}]",
            str(self.experts),
        )
        return " ".join(piece for piece in pieces if piece) or None


@dataclass(frozen=True)
class Evidence:
    """The data that rules judge.

    config: the config of the scale whose runs are judged.
    paper: the config of the `paper` scale.
    runs: all of the config's runs that exist.
    gpu: the measurements of `make gpu-check`, or None if there are none.
    """

    config: Config
    paper: Config
    runs: Runs
    gpu: Mapping[str, Any] | None = None
    scores: dict[RunKey, float] = field(init=False)
    silent: frozenset[RunKey] = field(init=False)  # runs that diverged before an evaluation

    def __post_init__(self) -> None:
        """Compute the final scores of all runs, which all rules use."""
        scores = statistics.final(self.runs.rows, self.runs.records, self.config.window)
        object.__setattr__(self, "scores", scores)
        silent = statistics.diverged(self.runs.rows, self.runs.records).silent
        object.__setattr__(self, "silent", silent)

    @cached_property
    def decisive(self) -> frozenset[RunKey]:
        """Return the runs of the `paper` scale that have a score and that scale's settings.

        The demonstrations of these runs may come from a different source than in the `paper` scale.
        """
        if self.config.window != self.paper.window:
            return frozenset()
        keys = [key for key in run_table(self.paper, beside=True) if key in self.scores]
        wanted = {}
        for cell in {key.cell for key in keys}:
            ours = resolve(self.config, *cell)
            if ours == replace(resolve(self.paper, *cell), demos_source=ours.demos_source):
                wanted[cell] = config_hash(ours)
        hashes = {key: self.runs.records[key].get("config_hash") for key in keys}
        return frozenset(
            key for key in keys if key.cell in wanted and hashes[key] == wanted[key.cell]
        )

    def decides(self, *cells: Cells) -> bool:
        """Return True if all selected runs of the `paper` scale are `decisive`."""
        return all(key in self.decisive for some in cells for key in some.keys(self.paper))

    def lacks(self, *cells: Cells) -> bool:
        """Return True if some selected runs of this scale are not among the published records."""
        absent = set(self.runs.absent) if self.config.records == "published" else set()
        return any(key in absent for some in cells for key in some.keys(self.config))

    def elsewhere(self, *cells: Cells) -> bool:
        """Return True if the paper's selected runs are on one env, and ours on different envs."""
        theirs = {key.env for some in cells for key in some.keys(self.paper)}
        return len(theirs) == 1 and not theirs & {k.env for some in cells for k in self.keys(some)}

    def experts(self, *cells: Cells) -> Experts:
        """Return how the experts that the selected runs imitate compare with published returns.

        Return NO_EXPERTS unless all selected runs of the `paper` scale are `decisive`.
        """
        if not self.decides(*cells):
            return NO_EXPERTS
        weak: dict[str, float] = {}
        unknown = set()
        for key in sorted(key for some in cells for key in some.keys(self.paper)):
            published = get_task(key.env).published_expert
            if published is None:
                unknown.add(key.env)
                continue
            reference = self.runs.records[key]["reference"]
            share = statistics.share(reference["expert"], reference["random"], published)
            if share < EXPERT_SHARE:
                weak[key.env] = min(share, weak.get(key.env, share))
        return Experts(weak, frozenset(unknown))

    def keys(self, cells: Cells) -> list[RunKey]:
        """Select the runs of the `paper` scale if all are `decisive`, else of this scale."""
        return cells.keys(self.paper if self.decides(cells) else self.config)

    def complete(self, cells: Cells) -> list[RunKey]:
        """Return the selected runs on each task on which every selected run has a score.

        Leave out tasks on which a selected method has no run.
        """
        tasks: dict[Task, list[RunKey]] = {}
        for key in self.keys(cells):
            tasks.setdefault((key.env, key.demos), []).append(key)
        whole = [keys for keys in tasks.values() if all(key in self.scores for key in keys)]
        wanted = set(cells.methods)
        return [k for keys in whole if {key.method for key in keys} == wanted for k in keys]

    def groups(self, cells: Cells, by: Grouping) -> Iterator[tuple[str, Scores]]:
        """Group the selected tasks, and yield the name and the scores of each group."""
        keys = self.complete(cells)
        if not keys:
            return
        scores = statistics.gather(keys, self.scores, cells.figure)
        groups: dict[str, list[Task]] = {}
        for env, demos in scores.tasks:
            names = {"all": "", "env": env, "task": f"{env}, {demonstrations(demos)}"}
            groups.setdefault(names[by], []).append((env, demos))
        for name, tasks in groups.items():
            yield ", ".join(part for part in (cells.title, name) if part), scores.only(tasks)

    def unscored(self, *cells: Cells) -> frozenset[str]:
        """Return the envs of selected runs on which returns cannot be normalised to scores."""
        lack = unscored_envs(self.runs.rows)
        return frozenset(k.env for some in cells for k in some.keys(self.config) if k.env in lack)

    def clocks(self, cells: Cells) -> dict[RunKey, tuple[Array, Array]]:
        """Return the steps and seconds of `speed.clock` for each selected run that logged times."""
        rows = self.runs.rows
        if rows is None:
            return {}
        out = {}
        for key in self.keys(cells):
            run = rows[np.logical_and.reduce([rows[axis] == getattr(key, axis) for axis in AXES])]
            if run["seconds"].notna().any():
                out[key] = speed.clock(run, str(key))
        return out

    def unevaluated(self, keys: Iterable[RunKey], scores: Scores) -> int:
        """Return how many of the runs with these scores diverged before their first evaluation."""
        return sum(
            key in self.silent and (key.env, key.demos) in scores.tasks and key.method in scores.of
            for key in keys
        )

    def machines(self, cells: Cells) -> set[speed.Machine]:
        """Return the machines that trained the selected runs."""
        records = self.runs.records
        return {speed.machine(records[key]) for key in self.keys(cells) if key in records}


class Rule(Protocol):
    """A rule that judges a claim."""

    @property
    def artefact(self) -> str:
        """Return the name of the figure or table that shows the runs, or "" without runs."""

    def judge(self, e: Evidence, /) -> Outcome:
        """Judge the evidence, and return the outcome."""

    def text(self, paper: Config) -> str:
        """Return the rule in words."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    key: a short name.
    text: the claim in our words.
    where: where the paper makes the claim.
    source: the paper's words or numbers.
    rule: the rule that judges the claim.
    """

    key: str
    text: str
    where: str
    source: str
    rule: Rule
