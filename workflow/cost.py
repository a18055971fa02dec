"""What a plan asks of a cluster, printed behind a dry run."""

from __future__ import annotations

import atexit
import logging
from collections import defaultdict
from typing import Any

HEAD = ("rule", "jobs", "CPU-hours", "GPU-hours", "hours a job", "memory a job", "disk")


class Asked(logging.Handler):
    """Gathers the resources of the jobs that Snakemake says it would run.

    Rules that ask for nothing are run beside Snakemake.
    """

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def emit(self, record: logging.LogRecord) -> None:
        """Snakemake tells each job in a record of its own, and at last that nothing was run."""
        asked = getattr(record, "resources", None)
        if asked is not None and asked.get("parts"):
            self.jobs[getattr(record, "rule_name", "")].append(dict(asked.items()))
        elif self.jobs and record.getMessage().startswith("This was a dry-run"):
            atexit.register(print, f"\nWhat the jobs ask (upper estimates):\n{self.table()}")

    def table(self) -> str:
        """One line a rule and one of sums; hours are those asked, not those that will be used."""
        rows: list[tuple[str, ...]] = [HEAD]
        sums: list[Any] = [0, 0.0, 0.0, 0.0]
        for rule, jobs in self.jobs.items():
            hours = [job["runtime"] / 60 for job in jobs]
            memory = [job["mem_mb"] / 1000 for job in jobs]
            own = [
                len(jobs),
                sum(_hours(job) * job["cpus_per_task"] for job in jobs),
                sum(_hours(job) * job.get("gpu", 0) for job in jobs),
                sum(job["disk_mb"] / 1000 for job in jobs),
            ]
            sums = [a + b for a, b in zip(sums, own, strict=True)]
            rows.append(_row(rule, own, _range(hours, "h"), _range(memory, "GB")))
        rows.append(_row("total", sums, "", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


def _hours(job: dict[str, Any]) -> float:
    """Of all the jobs that it may take, one after another."""
    hours: float = job["runtime"] / 60 * job["parts"]
    return hours


def _row(name: str, own: list[Any], hours: str, memory: str) -> tuple[str, ...]:
    jobs, cpu, gpu, disk = own
    return name, f"{jobs}", f"{cpu:.0f}", f"{gpu:.0f}", hours, memory, f"{disk:.0f} GB"


def _range(values: list[float], unit: str) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
