"""What the runs of a scale show, in a few sentences that are computed from the scale's tables.

A scale is a config in workflow/config/.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from ngt.runs.keys import run_table
from ngt.runs.table import Runs
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.resolve import method_label
from ngt.text import amount
from paper.claims.envs import SIXTH
from paper.drawing.table import Cell
from paper.numbers.coverage import caution
from paper.numbers.statistics import Estimate, reference
from paper.register import MAIN
from paper.tables.claims import about_machines
from paper.words import ABSENT, listed

# The columns that the sentences need.
COLUMNS = {
    "aggregate_table": {"demos", "method", "tasks", "iqm", "better"},
    "claims_table": {"verdict", "tendency", "artefact"},
}
UNDECIDED = ("not run at this scale", "not published")

Row = Mapping[str, Cell]


def estimate(row: Row, key: str) -> Estimate | None:
    """Return an aggregate of a row with its interval, or None if the row has no value."""
    if row[key] is None:
        return None
    ends = (row[key], row[f"{key}_low"], row[f"{key}_high"])
    return Estimate(*(float(x) if isinstance(x, int | float) else float("nan") for x in ends))


def count_tasks(rows: Sequence[Row]) -> int:
    """Return the number of tasks on which rows of aggregate_table rest, or 0 without rows."""
    counts = (row["tasks"] for row in rows)
    return max((n for n in counts if isinstance(n, int)), default=0)


def tasks_words(config: Config, rows: Sequence[Row]) -> str:
    """Say on how many of the main figure's tasks these rows of aggregate_table rest.

    A partial main figure has tasks that no aggregate can use, since some method lacks runs there.
    """
    plan, n = config.figures[MAIN[0]], count_tasks(rows)
    whole = len(plan.envs) * len(plan.demos)
    part = f"{n} of the {whole} tasks" if n < whole else f"all {n} tasks" if n > 1 else "the task"
    return f"{part} of the main figure"


def side(chance: Estimate) -> str:
    """Return on which side of 0.5 the interval of a P(reference > method) lies.

    Return "above", "below", or "neither" if the interval includes 0.5 or is missing. Return "no
    width" if its ends are equal. This happens, whatever the number of seeds, if all runs of one
    method score higher than all runs of the other, so it does not show how certain the order is.
    """
    if math.isnan(chance.low):
        return "neither"
    if chance.low == chance.high != 0.5:
        return "no width"
    return "above" if chance.low > 0.5 else "below" if chance.high < 0.5 else "neither"


def sentences(
    config: Config, runs: Runs, aggregates: Sequence[Row], claims: Sequence[Row], gaps: int
) -> Iterator[str]:
    """Yield sentences on what was run, how the methods compare, the claims, and what is missing.

    aggregates, claims: rows of aggregate_table and of claims_table; empty if the table is missing.
    gaps: the number of missing figures and tables.
    """
    yield _run(config, runs)
    yield from _differs(config, runs)
    label = method_label(config, name) if (name := reference(config)) else ""
    rows = {str(row["method"]): row for row in aggregates if row["demos"] == "all"}
    means = {method: mean for method, row in rows.items() if (mean := estimate(row, "iqm"))}
    if label in means:
        yield _rank(label, means, tasks_words(config, aggregates))
        yield from _pairs(config, label, rows)
    else:
        yield f"There is no aggregate over tasks of {label or 'a reference'}, so it has no rank."
    if claims:
        yield _claims(claims)
    yield _lacks(config, runs, gaps)


def _run(config: Config, runs: Runs) -> str:
    plan = config.figures.get(MAIN[0])
    text = f"{len(runs.records)} of {len(runs.statuses)} runs of scale {config.scale} are drawn. "
    if plan:
        main = run_table(config, MAIN)
        here = [key for key in main if key in runs.records]
        methods, envs, demos = (
            sorted({getattr(key, name) for key in here}) for name in ("method", "env", "demos")
        )
        text += (
            f"The main figure has {len(main)}: {amount(len(plan.methods), 'method')} on "
            f"{listed(plan.envs)} with {listed(plan.demos)} demonstrations and "
            f"{amount(len(plan.seeds), 'seed')}. "
        )
        if len(here) < len(main):
            which = f"{amount(len(methods), 'method')} on {listed(envs)} with {listed(demos)}"
            text += f"{len(here)} of them are drawn" + f": {which} demonstrations" * bool(here)
            text += ". "
    return f"{text}A run takes {config.train.steps:,} env steps."


def _differs(config: Config, runs: Runs) -> Iterator[str]:
    """Yield a sentence that says what of the paper's main figure is not here."""
    paper, main = load({"scale": "paper"}), MAIN[0]
    if config.scale == paper.scale or main not in config.figures:
        return
    here = {key.env for key in set(run_table(config, MAIN)) & set(runs.records)}
    absent = [env for env in paper.figures[main].envs if env not in {*here, SIXTH}]
    verb = "has" if len(absent) == 1 else "have"
    text = f"Of the paper's envs, {listed(absent)} {verb} no runs here. " if absent else ""
    yield (
        f"This is not the paper's experiment. {text}A run of the paper takes "
        f"{paper.train.steps:,} env steps, and some settings differ (see Settings)."
    )


def _rank(label: str, means: Mapping[str, Estimate], tasks: str) -> str:
    ordered = sorted(means, key=lambda method: -means[method].value)
    place = ordered.index(label)
    text = (
        f"{label}'s interquartile mean score over {tasks} is {means[label]} (random 0, "
        f"expert 1; in brackets: 95% interval), number {place + 1} of {len(ordered)} methods."
    )
    for word, some in (("Higher", ordered[:place]), ("Lower", ordered[place + 1 :])):
        if some:
            text += f" {word}: {', '.join(f'{method} {means[method]}' for method in some)}."
    return text


def _pairs(config: Config, label: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield sentences that compare the reference method, `label`, with each other method."""
    groups: dict[str, list[str]] = {"above": [], "below": [], "neither": [], "no width": []}
    for method, row in rows.items():
        if chance := estimate(row, "better"):
            groups[side(chance)].append(f"{method} ({chance})")
    apart = groups.pop("no width")
    words = {"neither": "not told apart from"}
    parts = [f"{words.get(k, k)} 0.5 for {', '.join(some)}" for k, some in groups.items() if some]
    if parts:
        yield (
            f"The probability that a run of {label} scores higher than another method's run on the "
            f"same task, with its whole 95% interval, is {'; '.join(parts)}."
        )
    if apart:
        yield (
            f"The interval has no width, and so does not show how certain the order is, for "
            f"{', '.join(apart)}. This happens if, on each task, all runs of one method score "
            f"higher than all runs of the other."
        )
    if (parts or apart) and (plan := config.figures.get(MAIN[0])):
        yield caution([len(plan.seeds)], "P", tasks=count_tasks(list(rows.values())))
        yield (
            "The claims below compare interquartile means instead, so that they can differ from "
            "these probabilities."
        )


def _claims(rows: Sequence[Row]) -> str:
    some = [row for row in rows if not about_machines(row)]
    decided = [row for row in some if row["verdict"] not in UNDECIDED]
    agree, contradict = (
        sum(row["tendency"] == word for row in some) for word in ("agrees", "contradicts")
    )
    held = sum(row["verdict"] == "reproduced" for row in decided)
    verdicts = f"{len(decided) or 'none'} {'have' if len(decided) > 1 else 'has'} a verdict"
    if decided:
        verdicts += f", “reproduced” for {held}"
    silent = len(some) - agree - contradict
    return (
        f"Of the paper's {len(some)} claims on imitation, {verdicts}. Without regard to verdicts, "
        f"the values here agree with {amount(agree, 'claim')}, contradict {contradict}, and say "
        f"nothing on {silent}."
    )


def _lacks(config: Config, runs: Runs, gaps: int) -> str:
    parts = {f"Runs {ABSENT[config.records]}": len(runs.absent), "Figures or tables missing": gaps}
    said = " ".join(f"{what}: {n}." for what, n in parts.items() if n)
    return said or "Every run, figure and table of this scale is here."
