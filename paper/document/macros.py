r"""Write macros.tex, which has every number and every outcome in the text of main.tex as a macro.

\Name           a number, a name or a clause; empty if unknown (see \given in main.tex)
\csname KIND@X  a text on the artefact X. KIND is `title`, `caption`, `origin` (its number in the
                paper), `gap` (the reason why X is missing) or `says` (a summary of the claims that
                X decides).

A scale is a config in workflow/config/. An artefact is a figure or a table of a scale's results.
Published records are results that ship with the suite.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ngt.errors import UserError
from ngt.runs.provenance import provenance
from ngt.runs.status import COMPLETE
from ngt.runs.table import Runs, unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label, resolve_expert
from ngt.text import amount
from paper.claims.verdicts import FEW
from paper.document.findings import UNDECIDED, count_tasks, estimate, side, tasks_words
from paper.document.report import Item, about
from paper.drawing.table import Cell, Table
from paper.drawing.tex import escape
from paper.numbers.coverage import caution
from paper.numbers.statistics import reference
from paper.register import FIGURES, TABLES, Artefact, envs
from paper.source import cite
from paper.words import listed, show

Row = Mapping[str, Cell]
Tables = Mapping[str, Table]

MACHINE = "machine"  # the key of claims about a machine's measurements, which have no artefact


def macros(config: Config, runs: Runs, found: Sequence[Item], warning: str = "") -> str:
    """Return the text of macros.tex.

    found: the scale's figures and tables.
    warning: a warning about published records that do not have the config's settings, or empty.
    """
    tables = {item.anchor: item.table for item in found if item.table is not None}
    aggregates = rows_of(tables, "aggregate_table")
    values = {
        **of_scale(config, aggregates),
        **of_runs(runs),
        **of_verdicts(tables),
        **of_aggregates(aggregates, config),
        **of_source(),
        "OtherSettings": warning,
    }
    lines = [rf"\newcommand*{{\{name}}}{{{escape(str(value))}}}" for name, value in values.items()]
    gaps = {item.anchor: item.gap for item in found if item.gap}
    captions = {item.anchor: item.caption for item in found if item.caption}
    for artefact in (*FIGURES.values(), *TABLES.values()):
        lines += of_artefact(config, artefact, gaps, captions)
    says = claims_by_artefact(rows_of(tables, "claims_table")) | {"references": references(runs)}
    names = (*FIGURES, *TABLES, MACHINE, "references")
    lines += [_named("says", name, says.get(name, "")) for name in names]
    return "\n".join(lines) + "\n"


def _named(kind: str, name: str, text: str) -> str:
    """Return the definition of a macro whose name has characters other than letters."""
    body = escape(text, breakable=True)
    return rf"\expandafter\def\csname {kind}@{name}\endcsname{{{body}}}"


# The verdicts that the report counts one by one. All other verdicts are counted together.
COUNTED = ("reproduced", "partly", "not reproduced", *UNDECIDED)

# The columns that this module reads from each table.
COLUMNS = {
    "claims_table": {"claim", "ours", "verdict", "artefact"},
    "theory_table": {"verdict"},
    "aggregate_table": {"demos", "method", "tasks"}
    | {f"{key}{end}" for key in ("iqm", "better") for end in ("", "_low", "_high")},
}


def rows_of(tables: Tables, name: str) -> Sequence[Row]:
    """Return the rows of the table `name`, or no rows if the table is missing.

    Raise UserError if the table lacks one of COLUMNS.
    """
    if name not in tables:
        return ()
    if absent := sorted(COLUMNS[name] - set(tables[name].columns)):
        raise UserError(f"{name}.json: lacks column {absent[0]}; make the table again")
    return tables[name].rows


def of_scale(config: Config, aggregates: Sequence[Row]) -> dict[str, Any]:
    """Return the scale's envs, demonstrations, rates and seeds, and some of its settings.

    aggregates: rows of aggregate_table.
    """
    plans = config.figures.values()

    def axis(name: str) -> list[Any]:
        return sorted({value for plan in plans for value in getattr(plan, name)})

    seeds = sorted({len(plan.seeds) for plan in plans})
    return {
        "Scale": config.scale,
        "Window": config.window,
        "Envs": listed(envs(config)),
        "Demos": listed(axis("demos")),
        "Rates": listed(axis("rates")),
        "Seeds": f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else listed(seeds),
        "Steps": f"{config.train.steps:,}",
        "Batch": config.train.batch,
        "Lockstep": config.train.num_envs,
        "EvalEvery": f"{config.train.eval_every:,}",
        "EvalEpisodes": config.train.eval_episodes,
        "ExpertEpisodes": config.expert.episodes,
        "ExpertPolicy": _expert_policy(config),
        "Reps": config.statistics.reps,
        "Coverage": caution(seeds, "mean", "IQM", "P", tasks=count_tasks(aggregates)),
    }


def _expert_policy(config: Config) -> str:
    """Return the words for the policy that is recorded as an env's expert."""
    words = {"best": "The policy of its best evaluation", "last": "Its last policy"}
    found: dict[str, list[str]] = {}
    for env in envs(config):
        found.setdefault(resolve_expert(config, env).train.keep, []).append(env)
    if len(found) == 1:
        return words[next(iter(found))]
    return " or ".join(f"{words[keep]} ({listed(names)})" for keep, names in found.items())


def of_runs(runs: Runs) -> dict[str, Any]:
    """Return the number of runs with each status."""
    count = Counter(status.status for status in runs.statuses.values())
    return {
        "Runs": len(runs.statuses),
        "RunsFinished": count["finished"],
        "RunsDiverged": count["diverged"],
        "RunsMissing": len(runs.statuses) - sum(count[name] for name in COMPLETE) or "",
    }


def of_verdicts(tables: Tables) -> dict[str, Any]:
    """Return the number of claims and of statements with each verdict."""
    claims = Counter(str(row["verdict"]) for row in rows_of(tables, "claims_table"))
    theory = Counter(str(row["verdict"]) for row in rows_of(tables, "theory_table"))
    return {
        "Claims": claims.total(),
        "ClaimsReproduced": claims["reproduced"],
        "ClaimsPartly": claims["partly"],
        "ClaimsNot": claims["not reproduced"],
        "ClaimsNotRun": sum(claims[verdict] for verdict in UNDECIDED),
        "ClaimsOther": claims.total() - sum(claims[verdict] for verdict in COUNTED),
        "Statements": theory.total(),
        "StatementsHold": theory["holds"],
        "StatementsLoose": theory["loose"],
        "StatementsFalse": theory["false"],
    }


def of_aggregates(rows: Sequence[Row], config: Config) -> dict[str, Any]:
    """Return the reference method's interquartile mean, and how other methods compare with it."""
    name = reference(config)
    label = method_label(config, name) if name else ""
    ours = {str(r["demos"]): estimate(r, "iqm") for r in rows if r["method"] == label}
    unscored = "all" in ours and ours["all"] is None
    mine = ours.pop("all", None)
    others = [r for r in rows if r["demos"] == "all" and r["method"] != label]
    means = {str(r["method"]): mean for r in others if mine and (mean := estimate(r, "iqm"))}
    best = max(means, key=lambda name: means[name].value, default="")
    chances = [chance for r in others if (chance := estimate(r, "better"))]
    known = best and any(not math.isnan(chance.low) for chance in chances)
    sides = Counter(map(side, chances))
    higher = sum(mean.value > mine.value for mean in means.values() if mine)
    return {
        "ReferenceLabel": label,
        "ReferenceIqm": mine or "",
        "ReferenceTasks": tasks_words(config, rows) if mine else "",
        "ReferenceIqmByDemos": listed(f"{mean} with {demos}" for demos, mean in ours.items()),
        "NoScores": "no task of the main figure has scores" if unscored else "",
        "OtherMethods": amount(len(means), "other method"),
        "HigherMethods": f"{higher or 'none'} {'have' if higher > 1 else 'has'}",
        "BestMethod": best,
        "BestIqm": means.get(best, ""),
        "ReferenceBetter": sides["above"] if known else "",
        "ReferenceWorse": sides["below"] if known else "",
        "ReferenceNoWidth": sides["no width"] or "",
    }


def of_source() -> dict[str, str]:
    """Return the commit, source hash and library versions with which this report is made."""
    made = provenance()
    commit = f"commit {made['commit'][:12]}" if made["commit"] else "no git checkout"
    versions = [f"{name} {value}" for name, value in made["versions"].items() if value]
    return {
        "Commit": commit + ", with uncommitted changes" * bool(made["dirty"]),
        "SourceHash": made["source_hash"],
        "Versions": listed([f"Python {made['python']}", *versions]),
    }


def of_artefact(
    config: Config, artefact: Artefact, gaps: Mapping[str, str], captions: Mapping[str, str]
) -> Iterator[str]:
    """Yield the macros for an artefact's title, origin and caption, and why it is missing."""
    needed = "expert of this suite" if artefact.experts else "runs"
    absent = f"scale {config.scale} has no {needed} for it"
    yield _named("title", artefact.name, artefact.title)
    yield _named("origin", artefact.name, cite(artefact.source))
    caption = captions.get(artefact.name) or about(config, artefact)[1]
    yield _named("caption", artefact.name, caption)
    yield _named("gap", artefact.name, gaps.get(artefact.name, absent))


def claims_by_artefact(rows: Sequence[Row]) -> dict[str, str]:
    """Return a summary of the claims that each artefact decides."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row["artefact"] or MACHINE), []).append(row)
    return {name: summary(group) for name, group in groups.items()}


def summary(rows: Sequence[Row]) -> str:
    """Return a text on some claims.

    Up to FEW claims are listed with verdict and evidence. If there are more claims, the text counts
    their verdicts.
    """
    if len(rows) <= FEW:
        # The results of claims without a decision are listed apart, after the verdicts.
        judged = [row["verdict"] not in UNDECIDED for row in rows]
        each = "; ".join(
            f"{row['claim']} – {row['verdict']}" + f" ({row['ours']})" * bool(row["ours"] and known)
            for row, known in zip(rows, judged, strict=True)
        )
        seen = "; ".join(
            f"{row['claim']}: {row['ours']}"
            for row, known in zip(rows, judged, strict=True)
            if row["ours"] and not known
        )
        return f"Claimed: {each}." + f" Found here, without a verdict: {seen}." * bool(seen)
    count = Counter(str(row["verdict"]).replace("partly", "reproduced in part") for row in rows)
    verdicts = listed(f"{n} {'is' if n == 1 else 'are'} {word}" for word, n in count.most_common())
    return f"Of the {len(rows)} claims that these runs decide, {verdicts}."


def references(runs: Runs) -> str:
    """Return, for each env, the returns of a random policy and of the expert."""
    if runs.rows is None:
        return ""
    each = runs.rows.groupby("env", sort=False)[["random", "expert"]].first()
    unscored = unscored_envs(runs.rows)
    texts = (
        f"{env} {show(row['random'], '{:,.0f}')} and {show(row['expert'], '{:,.0f}')}"
        + f" (no scores there: {unscored.get(str(env))})" * (env in unscored)
        for env, row in each.iterrows()
    )
    return "; ".join(texts)
