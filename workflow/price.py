"""What all runs of a scale cost, by method and env, from measured speeds and without margins.

    python -m workflow.price paper [--site site.yaml]

prints Markdown tables: hours of a GPU (a pack a job, as the workflow makes them), hours of cores
where there is none, memory of a run, and how the sums grow. The speeds are those of
`workflow.resources`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ngt.runs.keys import packs, run_table
from ngt.settings.config import CellConfig, Config
from ngt.settings.load import load
from ngt.settings.resolve import method_label, resolve, resolve_expert
from workflow.resources import (
    GpuSite,
    Site,
    device_mb,
    env_workers,
    pack_size,
    site_of,
    used_minutes,
)

ALONE = Site()  # a core a run
EXPERTS = "experts"
Ints = tuple[int, ...]


class Price(NamedTuple):
    """Of some runs: hours of GPUs, of the cores beside them, and of cores where there is none."""

    runs: float = 0
    gpu: float = 0.0
    beside: float = 0.0
    cores: float = 0.0

    def plus(self, other: Price) -> Price:
        return Price(*(a + b for a, b in zip(self, other, strict=True)))


Table = dict[tuple[str, str], Price]  # by method and env


def price(cell: CellConfig, runs: int, site: Site) -> Price:
    """Of a pack."""
    assert site.gpu is not None
    hours = used_minutes(cell, runs, site) / 60
    alone = runs * used_minutes(cell, 1, ALONE) / 60
    return Price(runs, hours, hours * (1 + env_workers(cell, runs, site.gpu)), alone)


def table(config: Config, site: Site) -> Table:
    """Of every run of a config, and of its experts."""
    out: Table = defaultdict(Price)
    keys = run_table(config)
    for name in sorted({key.cell for key in keys}):
        cell, own = resolve(config, *name), [key for key in keys if key.cell == name]
        for pack in packs(own, pack_size(cell, config.pack, site)):
            at = (method_label(config, cell.method), cell.env)
            out[at] = out[at].plus(price(cell, len(pack), site))
    for env in sorted({key.env for key in keys}):
        out[EXPERTS, env] = price(resolve_expert(config, env), 1, site)
    return dict(out)


def total(prices: Table) -> Price:
    """Of all."""
    out = Price()
    for one in prices.values():
        out = out.plus(one)
    return out


def by_method_and_env(prices: Table, value: Callable[[Price], float]) -> str:
    """A line a method, a column an env, sums at the edges."""
    methods = list(dict.fromkeys(method for method, _ in sorted(prices)))
    envs = sorted({env for _, env in prices})
    lines = [["method", *envs, "all"]]
    for method in methods:
        own = [prices.get((method, env)) for env in envs]
        held = [0.0 if p is None else value(p) for p in own]
        lines.append([method, *("" if p is None else _number(value(p)) for p in own),
                      _number(sum(held))])  # fmt: skip
    sums = [sum(value(p) for (_, e), p in prices.items() if e == env) for env in envs]
    lines.append(["all", *map(_number, sums), _number(sum(sums))])
    return markdown(lines)


def growth(config: Config, site: Site) -> str:
    """Sums of the grid as it is, and of larger and smaller ones."""

    def with_figures(name: str, change: Callable[[Ints], Ints]) -> Config:
        figures = {}
        for figure, f in config.figures.items():
            changed: dict[str, Any] = {name: change(getattr(f, name))}
            figures[figure] = dataclasses.replace(f, **changed)
        return dataclasses.replace(config, figures=figures)

    def twice(values: Ints) -> Ints:
        return (*values, *(max(values) + 1 + i for i in range(len(values))))

    cases = {
        "as it is": config,
        "twice the seeds": with_figures("seeds", twice),
        "twice the numbers of demonstrations": with_figures("demos", twice),
        "one seed": with_figures("seeds", lambda seeds: seeds[:1]),
        "packs of 4": dataclasses.replace(config, pack=4),
        "no packs": dataclasses.replace(config, pack=1),
    }
    lines = [["grid", "runs", "GPU-hours", "core-hours beside them", "core-hours without"]]
    for name, changed in cases.items():
        runs, *hours = total(table(changed, site))
        lines.append([name, _number(runs), *map(_number, hours)])
    return markdown(lines)


def memory(config: Config, method: str) -> str:
    """Memory of a run where it trains, by env and buffer, in GB."""
    buffers = (1_000_000, 2_000_000, 4_000_000)
    lines = [["env", *(f"{rows // 10**6} million transitions" for rows in buffers)]]
    for env in sorted({key.env for key in run_table(config)}):
        cell = resolve(config, env, method, "state-action", 20)
        sizes = []
        for rows in buffers:
            train = dataclasses.replace(cell.train, buffer=rows)
            sizes.append(device_mb(dataclasses.replace(cell, train=train)) / 1000)
        lines.append([env, *(f"{size:.2f}" for size in sizes)])
    return markdown(lines)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table; the first line is its head."""
    head, *rest = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rest])


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables of a scale."""
    parser = argparse.ArgumentParser(prog="python -m workflow.price", description=__doc__)
    parser.add_argument("scale")
    parser.add_argument("--site", type=Path, help="as for the workflow; its GPU and env processes")
    args = parser.parse_args(arguments)
    config = load({"scale": args.scale})
    site = Site(gpu=GpuSite(env_workers=12))
    if args.site is not None:
        site = site_of(yaml.safe_load(args.site.read_text(encoding="utf-8")))
        site = dataclasses.replace(site, gpu=site.gpu or GpuSite())
    prices = table(config, site)
    for title, text in (
        ("GPU-hours", by_method_and_env(prices, lambda p: p.gpu)),
        ("Core-hours without a GPU", by_method_and_env(prices, lambda p: p.cores)),
        ("How the sums grow", growth(config, site)),
        ("Memory of a run where it trains, GB", memory(config, "ngt")),
    ):
        print(f"{title}:\n\n{text}\n")


if __name__ == "__main__":
    main()
