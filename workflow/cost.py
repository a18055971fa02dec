"""The resources that the workflow requests from a cluster, and the cost of all runs at a scale.

    python -m workflow.cost paper [--site site.yaml]

prints Markdown tables of GPU-hours, core-hours without a GPU, totals for larger and smaller grids,
and memory per run. As in the workflow, each job trains a pack, i.e. a group of runs. The hours are
computed from the speeds in `workflow.resources`, without margins. A dry run of the workflow prints
the resources that the workflow's jobs request, with margins. A scale is a config in
workflow/config/.
"""

import atexit
import dataclasses
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ngt.errors import UserError
from ngt.runs.keys import packs, run_table
from ngt.settings.config import CellConfig, Config
from ngt.settings.load import load, read_yaml
from ngt.settings.options import Parser, add_config, read_configs
from ngt.settings.resolve import demos_file, method_label, resolve, resolve_expert
from paper.command import one_line_errors
from workflow.resources import (
    MARGIN,
    START,
    GpuSite,
    Site,
    device_mb,
    env_workers,
    pack_size,
    site_of,
    used_minutes,
)

EXPERTS = "experts"
DAY = 24  # hours; many clusters stop a job after a day
BUFFERS = (1, 2, 4)  # buffer sizes in the memory table, in millions of transitions
ASKED = ("rule", "jobs", "CPU-hours", "GPU-hours", "hours per job", "memory per job", "disk")

ABOUT = (
    f"What the jobs request, as upper estimates: {MARGIN:g} times the measured time, plus "
    f"{START:g} minutes to start each training. To see what they use: "
    "python -m workflow.cost SCALE"
)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    first, *rest = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *rest])


# ---------------------------------------------------------------- resources of a plan


class Asked(logging.Handler):
    """A log handler that collects the resources of a dry run's jobs and prints the sums.

    Rules that request no resources are left out, since they run on the same machine as Snakemake.

    Args:
        site: the cluster on which the jobs run.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site = site
        self.jobs: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def emit(self, record: logging.LogRecord) -> None:
        """Collect the resources in the log record of a job; after a dry run, print the table."""
        asked = getattr(record, "resources", None)
        if asked is not None and asked.get("parts"):
            self.jobs[getattr(record, "rule_name", "")].append(dict(asked.items()))
        elif self.jobs and record.getMessage().startswith("This was a dry-run"):
            warnings = self.too_long() + self.too_large()
            atexit.register(print, f"\n{ABOUT}\n\n{self.table()}\n{warnings}")

    def table(self) -> str:
        """Return a table of requested resources, with one row per rule and a row of sums."""
        sums = {rule: _sums(jobs) for rule, jobs in self.jobs.items()}
        rows = [
            _row(
                rule,
                sums[rule],
                _range([job["runtime"] / 60 for job in jobs], "h"),
                _range([job["mem_mb"] / 1000 for job in jobs], "GB"),
            )
            for rule, jobs in self.jobs.items()
        ]
        total = [sum(column) for column in zip(*sums.values(), strict=True)]
        return markdown(ASKED, [*rows, _row("total", total, "", "")])

    def too_long(self) -> str:
        """Return a warning about jobs that request more than DAY hours.

        Return "" if there are no such jobs, or if the user's config sets a time limit.
        """
        hours = [job["runtime"] / 60 for jobs in self.jobs.values() for job in jobs]
        if self.site.max_hours or not (long := [h for h in hours if h > DAY]):
            return ""
        return (
            f"\nJobs that request more than {DAY} hours: {len(long)}, the longest {max(long):.0f} "
            "hours. If your cluster allows less, write its limit as cluster.max_hours in site.yaml "
            "(docs/cluster.md). Longer training then takes several jobs, or packs are split.\n"
        )

    def too_large(self) -> str:
        """Return warnings about jobs that need more memory than the site's limits, or ""."""
        above = self._above("memory_gb", self.site.memory_gb, "mem_mb")
        if self.site.gpu is not None:
            above += self._above("gpu.memory_gb", self.site.gpu.memory_gb, "gpu_mb")
        return above

    def _above(self, name: str, limit: float | None, resource: str) -> str:
        """Return a warning about jobs that need more of a resource, in MB, than a limit, in GB."""
        needed = [job.get(resource, 0) / 1000 for jobs in self.jobs.values() for job in jobs]
        if limit is None or not (above := [size for size in needed if size > limit]):
            return ""
        return (
            f"\nJobs that need more than cluster.{name}, which is {limit:g} GB: {len(above)}, the "
            f"largest {max(above):.1f} GB. A single run can't be split. Raise the limit if your "
            "cluster has more memory, or lower train.buffer, which changes the results.\n"
        )


def _sums(jobs: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the number of jobs, their CPU-hours and GPU-hours, and their disk space in GB."""
    hours = [job["runtime"] / 60 * job["parts"] for job in jobs]
    return [
        len(jobs),
        sum(h * job["cpus_per_task"] for h, job in zip(hours, jobs, strict=True)),
        sum(h * job.get("gpu", 0) for h, job in zip(hours, jobs, strict=True)),
        sum(job["disk_mb"] / 1000 for job in jobs),
    ]


def _row(rule: str, sums: Sequence[float], hours: str, memory: str) -> list[str]:
    jobs, cpu, gpu, disk = (f"{value:.0f}" for value in sums)
    return [rule, jobs, cpu, gpu, hours, memory, f"{disk} GB"]


def _range(values: Sequence[float], unit: str) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


# ---------------------------------------------------------------- cost of a scale


class Cost(NamedTuple):
    """The cost of training some runs, with GPUs and without GPUs.

    runs: number of runs.
    gpu: GPU-hours, if GPUs are used.
    beside: core-hours of the CPU cores that are used alongside these GPUs.
    cores: core-hours, if no GPU is used.
    """

    runs: float = 0
    gpu: float = 0.0
    beside: float = 0.0
    cores: float = 0.0


Costs = dict[tuple[str, str], Cost]  # by method and env


def added(costs: Iterable[Cost]) -> Cost:
    """Return the sum of some costs."""
    return Cost(*map(sum, zip(Cost(), *costs, strict=True)))


def pack_cost(cell: CellConfig, runs: int, site: Site) -> Cost:
    """Return the cost of a pack of runs, which share the settings `cell`.

    The field `cores` assumes that each run trains alone on one core.
    """
    assert site.gpu is not None
    hours = used_minutes(cell, runs, site) / 60
    return Cost(
        runs,
        gpu=hours,
        beside=hours * (1 + env_workers(cell, runs, site.gpu)),
        cores=runs * used_minutes(cell, 1, Site()) / 60,
    )


def costs_of(config: Config, site: Site) -> Costs:
    """Return the cost of all runs of a config and of the experts that are trained for them.

    The keys are the method and the env.
    """
    found: dict[tuple[str, str], list[Cost]] = defaultdict(list)
    keys = run_table(config)
    for name, own in groupby(keys, lambda key: key.cell):
        cell = resolve(config, *name)
        found[method_label(config, cell.method), cell.env] += [
            pack_cost(cell, len(pack), site)
            for pack in packs(list(own), pack_size(cell, config.pack, site))
        ]
    trained = {key.env for key in keys if not demos_file(config, key.env)}
    for env in sorted(trained):
        found[EXPERTS, env] = [pack_cost(resolve_expert(config, env), 1, site)]
    return {place: added(costs) for place, costs in found.items()}


def by_method_and_env(costs: Costs, value: Callable[[Cost], float]) -> str:
    """Return a table of `value` with one row per method and one column per env, plus all sums."""
    envs = sorted({env for _, env in costs})
    rows = []
    for method in dict.fromkeys(method for method, _ in sorted(costs)):
        own = {env: value(cost) for (name, env), cost in costs.items() if name == method}
        shown = (_number(own[env]) if env in own else "" for env in envs)
        rows.append([method, *shown, _number(sum(own.values()))])
    sums = [sum(value(cost) for (_, e), cost in costs.items() if e == env) for env in envs]
    rows.append(["all", *map(_number, [*sums, sum(sums)])])
    return markdown(["method", *envs, "all"], rows)


def growth(config: Config, site: Site) -> str:
    """Return a table of the total cost of a config's runs, and of more or fewer runs."""

    def changed(name: str, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Config:
        figures = {}
        for figure, entry in config.figures.items():
            values: dict[str, Any] = {name: change(getattr(entry, name))}
            figures[figure] = dataclasses.replace(entry, **values)
        return dataclasses.replace(config, figures=figures)

    def twice(values: tuple[int, ...]) -> tuple[int, ...]:
        return (*values, *(max(values) + 1 + i for i in range(len(values))))

    cases = {
        "unchanged": config,
        "twice the seeds": changed("seeds", twice),
        "twice the numbers of demonstrations": changed("demos", twice),
        "one seed": changed("seeds", lambda seeds: seeds[:1]),
        "packs of 4": dataclasses.replace(config, pack=4),
        "no packs": dataclasses.replace(config, pack=1),
    }
    head = ["grid", "runs", "GPU-hours", "core-hours beside them", "core-hours without"]
    totals = {name: added(costs_of(case, site).values()) for name, case in cases.items()}
    return markdown(head, [[name, *map(_number, total)] for name, total in totals.items()])


def memory(config: Config, method: str) -> str:
    """Return a table of the memory that one run of a method needs, in GB, by env and buffer size.

    The table shows memory on the device that trains the run.
    """
    rows = []
    for env in sorted({key.env for key in run_table(config)}):
        cell = resolve(config, env, method, "state-action", 20)
        trains = (dataclasses.replace(cell.train, buffer=n * 10**6) for n in BUFFERS)
        sizes = (device_mb(dataclasses.replace(cell, train=train)) / 1000 for train in trains)
        rows.append([env, *(f"{size:.2f}" for size in sizes)])
    return markdown(["env", *(f"{n} million transitions" for n in BUFFERS)], rows)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables of the cost of a scale or of the user's settings."""
    one_line_errors("workflow.cost", lambda: run(arguments))


def run(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and print the tables."""
    parser = Parser(prog="python -m workflow.cost", description=__doc__)
    parser.add_argument("scale", nargs="?", help="name of a workflow/config/<scale>.yaml")
    add_config(parser)
    parser.add_argument("--site", type=Path, help="the cluster's YAML file, as for the workflow")
    args = parser.parse_args(arguments)
    own = read_configs(args.config)
    config = load({**own, "scale": args.scale} if args.scale else own)
    site = Site(gpu=GpuSite(env_workers=12))
    if args.site is not None:
        given = read_yaml(args.site)
        site = site_of(given)
        if other := next((name for name in given if name != "cluster"), None):
            raise UserError(
                f"--site: {args.site} has the setting {other}, but only `cluster` is read from it; "
                f"move {other} to a file for --config"
            )
        site = dataclasses.replace(site, gpu=site.gpu or GpuSite())
    costs = costs_of(config, site)
    for title, table in (
        ("GPU-hours", by_method_and_env(costs, lambda cost: cost.gpu)),
        ("Core-hours without a GPU", by_method_and_env(costs, lambda cost: cost.cores)),
        ("Larger and smaller grids", growth(config, site)),
        ("Memory of a run on its training device, GB", memory(config, "ngt")),
    ):
        print(f"{title}:\n\n{table}\n")


if __name__ == "__main__":
    main()
