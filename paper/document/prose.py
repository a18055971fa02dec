r"""numbers.tex: every number and every outcome in the text of main.tex, as LaTeX macros.

\Name        a number or a name
title@x      and caption@x, gap@x, says@x: of the artefact x, for \csname: its title, its caption,
             why it is not there, what the claims that rest on it come to
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ngt.errors import UserError
from ngt.runs.provenance import provenance
from ngt.runs.status import COMPLETE
from ngt.runs.table import Runs, unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims.evidence import FEW
from paper.document.report import Item, about
from paper.drawing.table import Cell, Table, tex
from paper.numbers.statistics import OURS, Estimate, caution
from paper.register import FIGURES, TABLES, Artefact, envs
from paper.words import listed, show

Row = Mapping[str, Cell]
Tables = Mapping[str, Table]

MACHINE = "machine"  # what claims rest on that no artefact shows


def numbers(config: Config, runs: Runs, found: Sequence[Item], mark: str = "") -> str:
    """The file. found: the scale's artefacts, with the tables that are there. mark: a warning."""
    tables = {item.anchor: item.table for item in found if item.table is not None}
    macros = {**of_scale(config), **of_runs(runs), **of_verdicts(tables), **of_source()}
    macros["OtherSettings"] = f" {mark}" * bool(mark)
    macros["NgtIqm"] = iqm(rows_of(tables, "aggregate_table"), config)
    lines = [rf"\newcommand{{\{name}}}{{{tex(str(value))}}}" for name, value in macros.items()]
    gaps = {item.anchor: item.gap for item in found if item.gap}
    for artefact in (*FIGURES.values(), *TABLES.values()):
        lines += of_artefact(config, artefact, gaps)
    says = {**claims_by_artefact(rows_of(tables, "claims_table"))}
    says["aggregate"] = aggregate(rows_of(tables, "aggregate_table"), config)
    says["references"] = references(runs)
    for name in (*FIGURES, *TABLES, MACHINE, "aggregate", "references"):
        lines.append(_named("says", name, says.get(name, "")))
    return "\n".join(lines) + "\n"


def _named(kind: str, name: str, text: str) -> str:
    """A macro whose name has other characters than letters."""
    return rf"\expandafter\def\csname {kind}@{name}\endcsname{{{tex(text, wraps=True)}}}"


# What is read of a table.
COLUMNS = {
    "claims_table": {"claim", "ours", "verdict", "artefact"},
    "theory_table": {"verdict"},
    "aggregate_table": {"demos", "method"}
    | {f"{key}{end}" for key in ("iqm", "better") for end in ("", "_low", "_high")},
}


def rows_of(tables: Tables, name: str) -> Sequence[Row]:
    """The rows of a table that may not be there; UserError where it lacks a column."""
    if name not in tables:
        return ()
    if lack := sorted(COLUMNS[name] - set(tables[name].columns)):
        raise UserError(f"{name}.json: lacks column {lack[0]}; make the table again")
    return tables[name].rows


# ---------------------------------------------------------------- names and numbers


def of_scale(config: Config) -> dict[str, Any]:
    """What the scale runs."""
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
        "Reps": config.statistics.reps,
        "Coverage": caution(seeds, tasks=sum(len(p.envs) * len(p.demos) for p in plans)),
    }


def of_runs(runs: Runs) -> dict[str, Any]:
    """How many there are, by status."""
    count = Counter(status.status for status in runs.statuses.values())
    absent = len(runs.statuses) - sum(count[name] for name in COMPLETE)
    return {
        "Runs": len(runs.statuses),
        "RunsFinished": count["finished"],
        "RunsDiverged": count["diverged"],
        "RunsMissing": f" and {absent} are missing, so that this report is partial" * bool(absent),
    }


def of_verdicts(tables: Tables) -> dict[str, Any]:
    """How the paper's claims and statements fare."""
    claims = Counter(str(row["verdict"]) for row in rows_of(tables, "claims_table"))
    theory = Counter(str(row["verdict"]) for row in rows_of(tables, "theory_table"))
    return {
        "Claims": claims.total(),
        "ClaimsReproduced": claims["reproduced"],
        "ClaimsPartly": claims["partly"],
        "ClaimsNot": claims["not reproduced"],
        "ClaimsNotRun": claims["not run at this scale"],
        "Statements": theory.total(),
        "StatementsHold": theory["holds"],
        "StatementsLoose": theory["loose"],
        "StatementsFalse": theory["false"],
    }


def of_source() -> dict[str, str]:
    """The code that this report is made with."""
    made = provenance()
    commit = f"commit {made['commit'][:12]}" if made["commit"] else "no git checkout"
    versions = [f"{name} {value}" for name, value in made["versions"].items() if value]
    return {
        "Commit": commit + ", with uncommitted changes" * bool(made["dirty"]),
        "SourceHash": made["source_hash"],
        "Versions": listed([f"Python {made['python']}", *versions]),
    }


# ---------------------------------------------------------------- artefacts


def of_artefact(config: Config, artefact: Artefact, gaps: Mapping[str, str]) -> Iterator[str]:
    """Title, caption, and what stands in the place of one that is not there."""
    what = "expert of this suite" if artefact.experts else "runs"
    lacks = f"scale {config.scale} has no {what} for it"
    yield _named("title", artefact.name, artefact.title)
    yield _named("caption", artefact.name, about(config, artefact)[1])
    yield _named("gap", artefact.name, gaps.get(artefact.name, lacks))


def claims_by_artefact(rows: Sequence[Row]) -> dict[str, str]:
    """For each artefact, what the claims that rest on it come to."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row["artefact"] or MACHINE), []).append(row)
    return {name: claims(group) for name, group in groups.items()}


def claims(rows: Sequence[Row]) -> str:
    """A few claims with verdict and evidence; of more, how many have which verdict."""
    if len(rows) <= FEW:
        each = "; ".join(
            f"{row['claim']} – {row['verdict']}" + (f" ({row['ours']})" if row["ours"] else "")
            for row in rows
        )
        return f"Claimed: {each}."
    count = Counter(str(row["verdict"]).replace("partly", "reproduced in part") for row in rows)
    verdicts = listed(f"{n} {'is' if n == 1 else 'are'} {word}" for word, n in count.most_common())
    return f"Of the {len(rows)} claims that the paper rests on these runs {verdicts}."


# ---------------------------------------------------------------- outcomes


def estimate(row: Row | None, key: str) -> Estimate | None:
    """A value of the aggregates and its interval; None where it has none."""
    if row is None or row[key] is None:
        return None
    ends = (row[key], row[f"{key}_low"], row[f"{key}_high"])
    return Estimate(*(float("nan") if x is None else float(x) for x in ends))


def _ours(rows: Sequence[Row], config: Config, demos: str) -> Row | None:
    label = method_label(config, OURS)
    return next((r for r in rows if (r["demos"], r["method"]) == (demos, label)), None)


def iqm(rows: Sequence[Row], config: Config) -> str:
    """NGT's interquartile mean over all tasks."""
    return str(estimate(_ours(rows, config, "all"), "iqm") or "not known")


def aggregate(rows: Sequence[Row], config: Config) -> str:
    """Where NGT stands among the methods."""
    own = _ours(rows, config, "all")
    mine = estimate(own, "iqm")
    if own is None:
        return ""
    if mine is None:
        return "No task of the main figure has scores, so that nothing is averaged over them."
    others = [r for r in rows if r["demos"] == "all" and r is not own]
    means = {str(r["method"]): e for r in others if (e := estimate(r, "iqm"))}
    better = [e for r in others if (e := estimate(r, "better"))]
    text = f"Over all tasks of the main figure NGT's interquartile mean is {mine}"
    parts = [r for r in rows if r["method"] == own["method"] and r is not own]
    if parts:
        each = (f"{estimate(r, 'iqm')} with {r['demos']}" for r in parts)
        text += f", and by number of demonstrations {listed(each)}"
    if not means:
        return f"{text}."
    best = max(means, key=lambda name: means[name].value)
    higher = sum(e.value > mine.value for e in means.values())
    text += (
        f". Of the {len(means)} other methods {higher} have a higher one; the highest among them "
        f"is that of {best}, {means[best]}. "
    )
    if all(math.isnan(e.low) for e in better):
        return text.rstrip()
    above, below = sum(e.low > 0.5 for e in better), sum(e.high < 0.5 for e in better)
    return text + (
        f"The probability that a run of NGT scores higher than one of a method on the same task "
        f"lies, with its whole interval, above one half for {above} of them and below for {below}."
    )


def references(runs: Runs) -> str:
    """The returns that scores are normalised by."""
    if runs.rows is None:
        return ""
    each = runs.rows.groupby("env", sort=False)[["random", "expert"]].first()
    lack = unscored_envs(runs.rows)
    texts = (
        f"{env} {show(row['random'], '{:,.0f}')} and {show(row['expert'], '{:,.0f}')}"
        + f" (no scores there: {lack.get(str(env))})" * (env in lack)
        for env, row in each.iterrows()
    )
    return "; ".join(texts)
