"""Rules that judge claims on final scores.

A rule compares a statistic of scores with a threshold. Each rule can also describe itself in words.
The paper gives few numbers, so this module chooses the numbers that words such as "strong" stand
for. paper/claims/verdicts.py turns the outcome of a rule into a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rliable import metrics

from ngt.runs.keys import RunKey
from ngt.settings.config import Config, StatisticsConfig
from ngt.settings.resolve import method_label
from paper.claims.checks import Check
from paper.claims.verdicts import NO_EXPERTS, Cells, Evidence, Grouping, Outcome, Verdict
from paper.numbers import bootstrap, statistics
from paper.numbers.statistics import OURS, Estimate, Scores
from paper.words import show

# Thresholds for normalised scores; 0 is the score of a random policy, and 1 that of the expert. A
# check holds only if the whole confidence interval lies on the right side of the threshold.
EXPERT = 0.9  # score of an expert; not 1, since two evaluations of one policy may differ by 0.1
STRONG = 0.75  # score of a strong method, halfway between LEARNS and the expert's score of 1
LEARNS = 0.5  # a method learns if its interval is above this score, and fails if it is below
MARGIN = 0.1  # smallest difference between two scores that matters
TIGHT = 0.1  # a standard deviation over seeds is small if its upper 95% bound is below this

Stat = Literal["mean", "IQM", "std"]
Sign = Literal["≥", ">", "≤", "<", "±"]  # ±: between minus the level and the level
Pair = tuple[str, ...]  # one method, or two methods: the first minus the second counts

# Functions for the scores of a single method (ALONE), and for each of two methods that are
# compared.
ALONE = {"mean": statistics.mean, "std": statistics.spread}
COMPARED = {"mean": metrics.aggregate_mean, "IQM": metrics.aggregate_iqm}
UNKNOWN_SETTINGS: Verdict = "not comparable: settings not given"


@dataclass(frozen=True)
class Bound:
    """A bound on a statistic of scores, such as mean ≥ 0.9."""

    stat: Stat
    sign: Sign
    level: float

    def __str__(self) -> str:
        if self.sign == "±":
            return f"within ±{self.level:g}"
        return f"{self.sign} {self.level:g}".replace("-", "−")

    @property
    def strict(self) -> bool:
        """Return True if a statistic that equals the level violates the bound."""
        return self.sign in "<>"

    def margin(self, found: Estimate) -> float:
        """Return how far an estimate's interval is within the bound; negative if it is outside."""
        if self.sign == "±":
            return self.level - max(-found.low, found.high)
        return self.level - found.high if self.sign in "≤<" else found.low - self.level

    def check(self, name: str, scores: Scores, pair: Pair, settings: StatisticsConfig) -> Check:
        """Check this bound for a statistic of the scores on a group of tasks.

        name: the name of the group of tasks.
        pair: the method whose scores count, or the two methods that are compared.
        """
        if len(pair) == 1:
            found = ALONE[self.stat](scores.of[pair[0]])
            text = f"std {found}" if self.stat == "std" else str(found)
        else:
            function, (x, y) = COMPARED[self.stat], (scores.of[method] for method in pair)
            if self.stat == "IQM":
                found = bootstrap.iqm_difference(x, y, settings, *pair, name)
            else:
                found = statistics.difference(x, y)
            first, second = (show(float(function(scores))) for scores in (x, y))
            text = f"{first} − {f'({second})' if second.startswith('−') else second} = {found}"
        value = Estimate(*[found.value] * 3)
        return Check(name, text, self.margin(found), self.strict, self.margin(value))


@dataclass(frozen=True)
class ScoreRule:
    """A rule that holds if at least one of its bounds holds in each group of tasks.

    A task is an env with a number of demonstrations.

    cells: selections of runs. A selection has either one method, or two methods whose difference
    (first minus second) is bounded.
    by: how tasks are grouped: each task alone, all tasks on an env together, or all tasks together.
    most: require the bounds in more than half of the groups, instead of in all groups.
    beside: an env whose results are shown but not judged.
    instead: a verdict that replaces the computed verdict.
    """

    bounds: tuple[Bound, ...]
    cells: tuple[Cells, ...]
    by: Grouping = "task"
    most: bool = False
    beside: str = ""
    instead: Verdict | None = None

    @property
    def judged(self) -> tuple[Cells, ...]:
        """Return the selections of runs without the env `beside`, whose results are only shown."""
        if not self.beside:
            return self.cells
        return tuple(replace(some, without=(*some.without, self.beside)) for some in self.cells)

    @property
    def claims_likeness(self) -> bool:
        """Return True if the rule claims that runs, or two methods, have similar scores.

        Such a rule fails if runs diverged before their first evaluation. All of these runs have the
        score 0, so their scores would otherwise seem similar.
        """
        compares = len(self.cells[0].methods) == 2
        return all(not b.strict and (compares or b.stat == "std") for b in self.bounds)

    @property
    def artefact(self) -> str:
        """Return the name of the figure that shows the runs."""
        return self.cells[0].figure

    def judge(self, e: Evidence) -> Outcome:
        """Check all groups of tasks, and return the outcome."""
        keys = frozenset(key for some in self.judged for key in e.complete(some))
        checks = self._checks(e, self.judged, self.by)
        decides = e.decides(*self.judged)
        named = decides or self.by != "all"  # the claim or the checks already name the envs
        return Outcome(
            _more_than_half(checks) if self.most else checks,
            decides,
            keys,
            on="" if named else ", ".join(sorted({key.env for key in keys})),
            unscored=e.unscored(*self.cells),
            instead=self.instead,
            experts=e.experts(*self.judged),
            beside=self._beside(e),
            unpublished=e.lacks(*self.judged),
            elsewhere=e.elsewhere(*self.judged),
        )

    def _checks(self, e: Evidence, cells: Iterable[Cells], by: Grouping) -> list[Check]:
        return [
            self._check(e, some.methods, e.complete(some), name, scores)
            for some in cells
            for name, scores in e.groups(some, by)
        ]

    def _beside(self, e: Evidence) -> str:
        """Return a text with the results on the env `beside`, or "" if there is no such env."""
        if not self.beside:
            return ""
        cells = (replace(some, envs=(self.beside,)) for some in self.cells)
        checks = self._checks(e, cells, "env")
        return "; ".join(f"{check.name}: {check.text}" for check in checks)

    def _check(
        self, e: Evidence, pair: Pair, keys: Iterable[RunKey], name: str, scores: Scores
    ) -> Check:
        lost = e.unevaluated(keys, scores) if self.claims_likeness else 0
        if lost:
            return Check(name, f"{lost} diverged before an evaluation", -math.inf)
        checks = [bound.check(name, scores, pair, e.config.statistics) for bound in self.bounds]
        # The rule holds if at least one bound holds, so the largest margin counts. With a single
        # seed, all margins are NaN.
        text = ", ".join(check.text for check in reversed(checks))
        margin = max(check.margin for check in checks)
        leans = [lean for c in checks if (lean := c.lean) is not None and not math.isnan(lean)]
        lean = max(leans, default=math.nan)
        return checks[0]._replace(text=text, margin=margin, lean=lean)

    def text(self, paper: Config) -> str:
        """Describe the rule in words: the bounds, and the groups in which the bounds must hold."""
        bounds = ", or ".join(f"{self.quantity(b.stat, paper)} {b}" for b in self.bounds)
        comma = "," if len(self.bounds) > 1 else ""
        return f"{bounds}{comma}{self.scope(paper)}"

    def quantity(self, stat: Stat, paper: Config) -> str:
        """Name the quantity that is bounded, for example "difference of the means"."""
        first, *others = self.cells[0].methods
        if stat == "std":
            return "standard deviation over seeds"
        if others and first == OURS:
            return f"difference of the {stat}s"
        demos = {key.demos for some in self.judged for key in some.keys(paper)}
        over = " over demonstrations" if self.by != "task" and len(demos) > 1 else ""
        minus = "".join(f" − {method_label(paper, method)}'s" for method in others)
        return f"{stat}{over}{minus}"

    def scope(self, paper: Config) -> str:
        """Describe the groups in which bounds must hold, and mention the env `beside`."""
        beside = f"; {self.beside} is shown but not judged" if self.beside else ""
        return f" {self._where(paper)}".rstrip() + beside

    def _where(self, paper: Config) -> str:
        """Describe the groups in which bounds must hold; return "" if there is only one group."""
        keys = [key for some in self.judged for key in some.keys(paper)]
        several = len(self.cells) > 1
        if self.most:
            return "for more than half of baselines and tasks" if several else "on more than half"
        if several and self.by == "task":
            return f"in each of the {self.artefact.removesuffix('_figure')}'s cells"
        each = "for each" if several else ""
        if self.by != "all" and len({key.env for key in keys}) > 1:
            return f"{each} on each {self.by}".lstrip()
        if each:
            return each
        if self.by == "task" and len({key.demos for key in keys}) > 1:
            return "with each number of demonstrations"
        return ""


def bounded(stat: Stat, sign: Sign, level: float, *cells: Cells, **more: Any) -> ScoreRule:
    """Return a rule with a single bound.

    more: further fields of the ScoreRule.
    """
    return ScoreRule((Bound(stat, sign, level),), cells, **more)


@dataclass(frozen=True)
class Together:
    """Several rules on the same statistic. The claim holds only if all checks of all rules hold."""

    rules: tuple[ScoreRule, ...]

    @property
    def artefact(self) -> str:
        """Return the name of the figure that shows the runs of the first rule."""
        return self.rules[0].artefact

    def judge(self, e: Evidence) -> Outcome:
        """Return an outcome with a single check: the one of all checks that is closest to failing.

        The outcome's text describes all checks.
        """
        found = [rule.judge(e) for rule in self.rules]
        checks = [check for outcome in found for check in outcome.checks]
        together = Outcome(
            checks,
            all(outcome.decides for outcome in found),
            frozenset().union(*(outcome.keys for outcome in found)),
            unscored=frozenset().union(*(outcome.unscored for outcome in found)),
            beside="; ".join(outcome.beside for outcome in found if outcome.beside),
            experts=e.experts(*(cells for rule in self.rules for cells in rule.judged)),
            unpublished=any(outcome.unpublished for outcome in found),
            elsewhere=any(outcome.elsewhere for outcome in found),
        )
        if not checks:
            return together
        least = min(checks, key=lambda check: (check.holds is not None, check.margin))
        alone = replace(together, experts=NO_EXPERTS, unscored=frozenset(), beside="")
        shown = alone.text() or ""
        leans = [check.leans for check in checks]
        known = all(outcome.checks for outcome in found) and None not in leans
        lean = (1.0 if all(leans) else -1.0) if known else math.nan
        return replace(together, checks=[least._replace(lean=lean)], ours=shown)

    def text(self, paper: Config) -> str:
        """Describe the rules in words: the statistic, each bound, and the groups of tasks."""
        first = self.rules[0]
        bounds = [
            f"{rule.cells[0].title if len(rule.cells) == 1 else 'each other'}'s {bound}"
            for rule in self.rules
            for bound in rule.bounds
        ]
        text = f"{first.quantity(first.bounds[0].stat, paper)}: {', '.join(bounds)}"
        return text + first.scope(paper)


def _more_than_half(checks: Sequence[Check]) -> list[Check]:
    """Return a single check, which holds if more than half of the given checks hold.

    Checks with an unknown result do not count. Return an empty list if no check has a value.
    """
    known = [check.holds for check in checks if check.holds is not None]
    leans = [check.leans for check in checks if check.leans is not None]
    if not leans:
        return []
    text = f"{sum(known)} of {len(known)}" if known else ""
    share, lean = (sum(each) / len(each) - 0.5 if each else math.nan for each in (known, leans))
    return [Check("", text, share, strict=True, lean=lean)]
