"""What the runs of a scale show, in a few sentences that are computed from the scale's tables.

A scale is a config in workflow/config/.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from ngt.runs.keys import run_table
from ngt.runs.table import Runs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.drawing.table import Cell
from paper.numbers.statistics import Estimate, reference
from paper.register import MAIN
from paper.tables.claims import about_machines
from paper.words import ABSENT, listed

# The columns that the sentences need.
COLUMNS = {
    "aggregate_table": {"demos", "method", "iqm", "better"},
    "claims_table": {"verdict", "tendency", "artefact"},
}
UNDECIDED = ("not run at this scale", "not published")

Row = Mapping[str, Cell]


def estimate(row: Row, key: str) -> Estimate | None:
    """Return an aggregate of a row with its interval, or None if the row has no value."""
    if row[key] is None:
        return None
    ends = (row[key], row[f"{key}_low"], row[f"{key}_high"])
    return Estimate(*(float("nan") if x is None else float(x) for x in ends))


def sentences(
    config: Config, runs: Runs, aggregates: Sequence[Row], claims: Sequence[Row], gaps: int
) -> Iterator[str]:
    """Yield sentences on what was run, how the methods compare, the claims, and what is missing.

    aggregates, claims: rows of aggregate_table and of claims_table; empty if the table is missing.
    gaps: the number of missing figures and tables.
    """
    yield _run(config, runs)
    label = method_label(config, name) if (name := reference(config)) else ""
    rows = {str(row["method"]): row for row in aggregates if row["demos"] == "all"}
    means = {method: mean for method, row in rows.items() if (mean := estimate(row, "iqm"))}
    if label in means:
        yield _rank(label, means)
        yield from _pairs(label, rows)
    else:
        yield f"There are no aggregates over tasks, so {label or 'no method'} has no rank here."
    if claims:
        yield _claims(claims)
    yield _lacks(config, runs, gaps)


def _run(config: Config, runs: Runs) -> str:
    plan = config.figures.get(MAIN[0])
    main = set(run_table(config, MAIN)) if plan else set()
    text = f"{len(runs.records)} of {len(runs.statuses)} runs of scale {config.scale} are drawn"
    if plan:
        here, words = sum(key in main for key in runs.records), listed(plan.envs)
        text += (
            f", {here} of {len(main)} in the main figure: {len(plan.methods)} methods on {words} "
            f"with {listed(plan.demos)} demonstrations and {len(plan.seeds)} seeds"
        )
    return f"{text}. A run takes {config.train.steps:,} env steps."


def _rank(label: str, means: Mapping[str, Estimate]) -> str:
    ordered = sorted(means, key=lambda method: -means[method].value)
    place, first = ordered.index(label) + 1, ordered[0]
    text = (
        f"{label}'s interquartile mean score over all tasks is {means[label]} (random 0, expert "
        f"1), number {place} of {len(ordered)} methods"
    )
    return f"{text}." if first == label else f"{text}; the highest is {first}'s, {means[first]}."


def _pairs(label: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield a sentence that compares the reference method, `label`, with each other method."""
    groups: dict[str, list[str]] = {"ahead of": [], "behind": [], "not told apart from": []}
    for method, row in rows.items():
        if (chance := estimate(row, "better")) is None:
            continue
        unknown = math.isnan(chance.low)
        side = "ahead of" if not unknown and chance.low > 0.5 else "not told apart from"
        side = "behind" if not unknown and chance.high < 0.5 else side
        groups[side].append(f"{method} ({chance})")
    parts = [f"{side} {', '.join(found)}" for side, found in groups.items() if found]
    if parts:
        yield (
            f"{label} is {'; '.join(parts)}. The numbers are the probability that a run of {label} "
            f"scores higher on the same task, with its 95% interval. Two methods are told apart if "
            f"the whole interval lies on one side of 0.5."
        )


def _claims(rows: Sequence[Row]) -> str:
    some = [row for row in rows if not about_machines(row)]
    decided = [row for row in some if row["verdict"] not in UNDECIDED]
    agree, contradict = (
        sum(row["tendency"] == word for row in some) for word in ("agrees", "contradicts")
    )
    held = sum(row["verdict"] == "reproduced" for row in decided)
    verdicts = f"{len(decided)} {'has' if len(decided) == 1 else 'have'} a verdict"
    if decided:
        verdicts += f", “reproduced” for {held}"
    return (
        f"Of the paper's {len(some)} claims on imitation, {verdicts}. Whatever the verdicts, the "
        f"values here agree with {agree} of them and contradict {contradict}."
    )


def _lacks(config: Config, runs: Runs, gaps: int) -> str:
    parts = {f"Runs {ABSENT[config.records]}": len(runs.absent), "Figures or tables missing": gaps}
    said = " ".join(f"{what}: {n}." for what, n in parts.items() if n)
    return said or "No run, figure or table of this scale is missing."
