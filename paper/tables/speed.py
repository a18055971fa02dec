"""The env steps per second of each method beside the paper's (the paper's table of speeds)."""

from __future__ import annotations

from ngt.runs.keys import Layout, run_table
from ngt.runs.table import source
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims.timing import REPORTED, REPORTED_ENVS
from paper.command import Made, Options, read
from paper.drawing.panels import plan_of
from paper.drawing.table import Cell, Column, Table
from paper.numbers import speed
from paper.numbers.speed import NAME

REFERENCE = "ngt"  # whose rate is 1


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make a row per method: its rate at the end of a run on each env, alone and over NGT's."""
    runs, absent = read(config, layout, options)
    plan = plan_of(config, NAME, one=("modes", "rates", "demos", "seeds"))
    at_end: dict[tuple[str, str], float] = {
        (env, method): speed.rates(*speed.clock(run, f"{env}/{method}"))[1][-1]
        for (env, method), run in runs.groupby(["env", "method"])
    }
    ours = next((m for m in plan.methods if speed.base(config, m) == REFERENCE), None)
    columns = {"method": Column("method")}
    heads = {env: env for env in plan.envs} | {f"paper {e}": f"paper: {e}" for e in REPORTED_ENVS}
    for key, head in heads.items():
        columns[f"{key} steps/s"] = Column(f"{head}\nenv steps/s", "{:.0f}")
        columns[f"{key} relative"] = Column("over\nNGT's", "{:.2f}")
    rows: list[dict[str, Cell]] = []
    for method in plan.methods:
        row: dict[str, Cell] = {"method": method_label(config, method)}
        for env in plan.envs:
            rate, reference = at_end.get((env, method)), at_end.get((env, ours or ""))
            row[f"{env} steps/s"] = rate
            row[f"{env} relative"] = rate / reference if rate and reference else None
        theirs = REPORTED.get(speed.base(config, method))
        for i, env in enumerate(REPORTED_ENVS):
            row[f"paper {env} steps/s"] = theirs and theirs[i]
            row[f"paper {env} relative"] = theirs and theirs[i] / REPORTED[REFERENCE][i]
        rows.append(row)
    records = source(layout, config, other_settings=options.other_settings)
    made = [records.read(key).run for key in run_table(config, [NAME]) if key not in absent]
    machines = sorted({f"{run.get('machine')} ({run.get('device')})" for run in made})
    steps = sorted({int(step) for step in runs.groupby(["env", "method"])["step"].max()})
    notes = [
        f"Scale {config.scale}. A run in a process of its own on: {'; '.join(machines)}. Rate over "
        f"the last {speed.STRETCH:.0%} of {' or '.join(f'{s:,}' for s in steps)} env steps, "
        f"evaluations left out.",
        "paper: one NVIDIA RTX 4090, at 200,000 env steps. Rates of different machines do not "
        "compare; the columns over NGT's do.",
    ]
    marks = [f"PARTIAL: {len(absent)} runs are missing."] if absent else []
    return Made(Table("Speed of training", columns, rows, notes, marks))
