"""A table of each method's env steps per second, next to the rates that the paper reports."""

import numpy as np

from ngt.runs.keys import Layout, run_table
from ngt.runs.table import source
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.claims.timing import REPORTED, REPORTED_ENVS
from paper.command import Made, Options, read
from paper.drawing.table import Cell, Column, Table
from paper.numbers import speed, statistics
from paper.numbers.speed import NAME
from paper.register import one_task
from paper.words import ABSENT


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Make a table of env steps per second, and of their ratios to the reference method's."""
    runs, absent = read(config, layout, options)
    plan = one_task(config, NAME)
    means: dict[tuple[str, str], float] = {}
    ends: dict[tuple[str, str], float] = {}
    for (env, method), some in runs.groupby(["env", "method"]):
        clocks = [speed.clock(run, f"{env}/{method}") for _, run in some.groupby("seed")]
        means[env, method] = float(np.mean([speed.mean_rate(*clock) for clock in clocks]))
        ends[env, method] = float(np.mean([speed.stretches(*clock)[-1] for clock in clocks]))
    name = statistics.reference(config) or speed.base(config, plan.methods[0])
    label = method_label(config, name)
    ours = next((m for m in plan.methods if speed.base(config, m) == name), None)
    shown = REPORTED.get(name)
    columns = {"method": Column("method")}
    heads = {env: env for env in plan.envs} | {f"paper {e}": f"paper: {e}" for e in REPORTED_ENVS}
    for key, head in heads.items():
        columns[f"{key} steps/s"] = Column(f"{head}\nenv steps/s", "{:.0f}")
        if key in plan.envs:
            columns[f"{key} last"] = Column("last\nfifth", "{:.0f}")
        columns[f"{key} relative"] = Column(f"over\n{label}'s", "{:.2f}")
    rows: list[dict[str, Cell]] = []
    for method in plan.methods:
        row: dict[str, Cell] = {"method": method_label(config, method)}
        for env in plan.envs:
            rate, reference = means.get((env, method)), means.get((env, ours or ""))
            row[f"{env} steps/s"] = rate
            row[f"{env} last"] = ends.get((env, method))
            row[f"{env} relative"] = rate / reference if rate and reference else None
        theirs = REPORTED.get(speed.base(config, method))
        for i, env in enumerate(REPORTED_ENVS):
            row[f"paper {env} steps/s"] = theirs and theirs[i]
            row[f"paper {env} relative"] = theirs and shown and theirs[i] / shown[i]
        rows.append(row)
    records = source(layout, config, other_settings=options.other_settings)
    made = [records.read(key).run for key in run_table(config, [NAME]) if key not in absent]
    machines = sorted({f"{one.name} ({one.device})" for one in map(speed.machine, made)})
    steps = sorted({int(step) for step in runs.groupby(["env", "method"])["step"].max()})
    count = len(plan.seeds)
    repeats = f"Each is the mean of {count} repeats." if count > 1 else "Each is from one run."
    notes = [
        f"Scale {config.scale}. Each run had its own process on: {'; '.join(machines)}. env "
        f"steps/s: the mean since the start, over {' or '.join(f'{s:,}' for s in steps)} env "
        f"steps, as the paper reports it. last fifth: the rate over the last "
        f"{speed.STRETCH:.0%} of the run. Evaluations are left out. {repeats}",
        "paper: one NVIDIA RTX 4090, at 200,000 env steps. Rates on different machines cannot be "
        "compared.",
    ]
    marks = [f"PARTIAL: {len(absent)} runs are {ABSENT[config.records]}."] if absent else []
    return Made(Table("Speed of training", columns, rows, notes, marks))
