"""A table of the paper's claims.

Each row has the paper's words, our result, our verdict, and the rule that gives the verdict. The
results are those of one scale, i.e. of a config in workflow/config/.
"""

import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ngt.errors import UserError
from ngt.files import read_json
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import read_keys
from ngt.settings.config import Config
from ngt.settings.load import load
from paper import register
from paper.claims.claims import claims
from paper.claims.rules import EXPERT, LEARNS, STRONG
from paper.claims.verdicts import EXPERT_SHARE, Claim, Evidence, Outcome, Verdict
from paper.command import Made, Options
from paper.drawing.table import Cell, Column, Table
from paper.numbers import coverage, statistics
from paper.source import cite
from paper.words import ABSENT

WRONG = 0.025  # share of 95% intervals that lie entirely above (or entirely below) the true value

COLUMNS = {
    "claim": Column("claim", width=0.12),
    "verdict": Column("verdict", width=0.08),
    "tendency": Column("tendency here", width=0.085),
    "rule": Column("rule", width=0.115),
    "ours": Column("ours", width=0.13),
    "source": Column("the paper", width=0.11),
    "where": Column("where", width=0.1),
    "runs": Column("runs"),
    "seeds": Column("seeds"),
    "artefact": Column("artefact", width=0.075),
}

# The sections of the GPU measurements, and the fields that each row of a section must have.
GPU = {
    "rates": {"model", "env", "pack", "eager_ms", "graph_ms", "memory_gb", "buffer_gb"},
    "training": {"model", "env", "pack", "env_steps_per_second"},
}


def read_gpu(path: Path) -> Mapping[str, Any] | None:
    """Return the measurements that `make gpu-check` wrote, or None if the file does not exist."""
    if not path.exists():
        return None
    data: Any = read_json(path)
    try:
        fine = isinstance(data["device"], str) and all(
            fields <= row.keys() for section, fields in GPU.items() for row in data[section]
        )
    except (TypeError, KeyError, AttributeError):
        fine = False
    if not fine:
        raise UserError(f"{path}: not what `make gpu-check` writes; run it again")
    return typing.cast("Mapping[str, Any]", data)


def collect(config: Config, layout: Layout, options: Options) -> Evidence:
    """Read all runs of the config and the GPU measurements."""
    runs = read_keys(
        layout,
        config,
        run_table(config),
        "figures",
        allow_partial=options.allow_partial,
        other_settings=options.other_settings,
        selected=options.selected,
    )
    gpu = read_gpu(Path(register.GPU))
    return Evidence(config, load({"scale": "paper"}), runs, gpu)


def table(e: Evidence) -> Table:
    """Return the table, with one row per claim."""
    found = [(claim, claim.rule.judge(e)) for claim in claims(e.paper)]
    rows = [
        {
            "claim": claim.text,
            "where": cite(claim.where),
            "source": claim.source,
            "ours": finding.text(),
            "runs": len(finding.keys) or None,
            "seeds": finding.seeds,
            "verdict": finding.verdict,
            "tendency": finding.tendency,
            "rule": claim.rule.text(e.paper),
            "artefact": claim.rule.artefact or None,
        }
        for claim, finding in found
    ]
    caption = f"The paper's claims, judged at scale {e.config.scale}."
    lack = ABSENT[e.config.records]
    marks = [f"PARTIAL: runs {lack}: {len(e.runs.absent)}."] if e.runs.absent else []
    return Table(caption, COLUMNS, rows, [*tallies(rows), *notes(e, found)], marks)


def about_machines(row: Mapping[str, Cell]) -> bool:
    """Return True if a row's claim is about speed or memory.

    The rules for such claims use timed runs, or no runs.
    """
    return row["artefact"] in (None, register.SPEED)


def tallies(rows: Sequence[Mapping[str, Cell]]) -> list[str]:
    """Return one sentence that counts the verdicts on imitation, and one for speed and memory.

    rows: rows of the table.
    """
    out = []
    for about, machines in (("imitation", False), ("machines (speed, memory)", True)):
        some = [row for row in rows if about_machines(row) == machines]
        count = Counter(row["verdict"] for row in some)
        text = ", ".join(f"{count[v]} {v}" for v in typing.get_args(Verdict) if count[v])
        if some:
            out.append(f"Verdicts on {about}: {text}.")
    return out


def notes(e: Evidence, found: Sequence[tuple[Claim, Outcome]]) -> list[str]:
    """Return notes that explain how the verdicts are reached."""
    config, paper = e.config, e.paper
    out = [
        f"Reproduced: the rule holds for every part of the claim (task, env, "
        f"method). Partly: it holds for some parts. Not reproduced: it holds for no part. Exceeds: "
        f"the result is more than the paper reports. Expert too weak: an expert of these runs has "
        f"less than {EXPERT_SHARE:.0%} of the return published with the authors' code, counted "
        f"from the random policy's return; envs without a published return are exempt. Measured, "
        f"not comparable: measured on another GPU than the paper's. No verdict: measured with "
        f"other code. Not run at this scale: runs of scale paper for the claim are missing, have "
        f"other settings, have no scores or, for speeds, are not from equal GPUs; the available "
        f"results are shown. Not published: runs of the claim are not among the published records.",
        "Tendency here: agrees if most values of this scale lie on the claim's side of their "
        "thresholds, whatever their intervals; contradicts if most lie on the other side. Silent "
        "if there are no values, if equally many lie on each side, if no value is comparable with "
        "the paper's, or if the paper's runs are on a single env on which there are no runs here. "
        "The tendency never affects the verdict.",
        f"Scores: mean of a run's last {config.window} evaluations, normalised: random 0, expert "
        f"1. In brackets: for a mean or a difference of means, the 95% t interval over seeds; for "
        f"a difference of IQMs, the 95% stratified bootstrap ({config.statistics.reps} "
        f"repetitions); for a standard deviation, a one-sided 95% chi-square bound at each end. A "
        f"rule must hold for the whole interval. The thresholds are ours, because the "
        f"paper gives none: expert {EXPERT:g}, strong {STRONG:g}, learns {LEARNS:g}.",
    ]
    shown = {key for _, finding in found for key in finding.keys}
    cells = Counter((*key.cell, key.demos) for key in shown)
    tasks = {(key.env, key.demos) for key in shown}
    text = coverage.caution(cells.values(), "mean", "IQM", "std", tasks=len(tasks))
    out += [many(found), *([text] if text else [])]
    if config.train.steps < paper.train.steps:
        out.append(f"Env steps of a run: {config.train.steps:,}; the paper: {paper.train.steps:,}.")
    out += statistics.unscored(e.runs.rows)
    out += filter(None, [str(statistics.diverged(e.runs.rows, e.runs.records))])
    return out


def many(found: Sequence[tuple[Claim, Outcome]]) -> str:
    """Return a note on how many rules are judged together, and how often their checks can err."""
    judged = ("reproduced", "partly", "not reproduced", "exceeds")
    checks = sum(len(outcome.checks) for _, outcome in found if outcome.verdict in judged)
    if not checks:
        return f"{len(found)} rules are judged at once. None of them has a verdict from its checks."
    return (
        f"{len(found)} rules are judged at once, with {checks} checks behind their verdicts and "
        f"no correction for multiple comparisons. Each check can err: if all true values were "
        f"exactly at their thresholds, about {WRONG:.1%} of the checks on intervals would hold."
    )


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make the table from all runs of the config."""
    return Made(table(collect(config, layout, options)))
