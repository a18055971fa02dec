"""What a dry run says that its jobs ask."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from workflow.cost import Asked

ROOT = Path(__file__).resolve().parents[2]
SITE = """
cluster:
  partition: cpu
  max_hours: 48
  memory_gb: 180
  gpu: {partition: fast, memory_gb: 80, env_workers: 12}
"""


def tell(handler: Asked, rule: str, **resources: Any) -> None:
    """A record as Snakemake makes one for each job."""
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, "", None, None)
    record.rule_name, record.resources = rule, resources
    handler.handle(record)


def test_sums_by_hand() -> None:
    asked = Asked()
    tell(asked, "record", runtime=30, mem_mb=2000, disk_mb=500, cpus_per_task=1, parts=1)
    tell(asked, "figure", mem_mb=1000)  # made beside Snakemake
    for minutes, gpu, parts in ((90, 1, 1), (120, 2, 3)):
        tell(asked, "train", runtime=minutes, gpu=gpu, mem_mb=500 * minutes, disk_mb=4000,
             cpus_per_task=13, parts=parts)  # fmt: skip
    rows = [re.split(r" {2,}", line) for line in asked.table().splitlines()]
    assert rows == [
        ["rule", "jobs", "CPU-hours", "GPU-hours", "hours a job", "memory a job", "disk"],
        ["record", "1", "0", "0", "0.5 h", "2.0 GB", "0 GB"],
        ["train", "2", "98", "14", "1.5 to 2.0 h", "45.0 to 60.0 GB", "8 GB"],
        ["total", "3", "98", "14", "8 GB"],
    ]


def dry_run(*args: str, path: str = os.environ["PATH"]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--dry-run", "--workflow-profile",
         "workflow/profiles/slurm", *args],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def counts(table: str) -> dict[str, int]:
    """Rule -> jobs, of Snakemake's table or of ours."""
    return {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)(?: .*)?$", table, re.MULTILINE)}


@pytest.mark.slow
def test_the_papers_grid_says_what_it_asks_without_slurm(tmp_path: Path) -> None:
    """All of scale `paper`; no program of Slurm's is on the path."""
    for name in ("which", "sh", "bash"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    (tmp_path / "site.yaml").write_text(SITE)
    args = ("--quiet", "rules", "--configfile", f"{tmp_path}/site.yaml", "--config", "scale=paper")
    start = time.monotonic()
    plan, _, asked = dry_run(*args, path=f"{Path(sys.executable).parent}:{tmp_path}").rpartition(
        "What the"
    )
    assert time.monotonic() - start < 60, "10 seconds on an idle machine"
    jobs, planned = counts(asked), counts(plan)
    assert jobs == {r: planned[r] for r in ("expert", "record", "train")} | {"total": jobs["total"]}
    assert jobs["expert"] == 9 and jobs["train"] > 116, "more packs than cells: Humanoid's are cut"
    line = next(x for x in asked.splitlines() if x.startswith("train"))
    cpu, gpu = map(int, line.split()[2:4])
    assert 500 < gpu < 10_000, line
    assert 2 * gpu < cpu <= 13 * gpu, "13 cores beside a GPU, and one for what steps no env"


@pytest.mark.slow
def test_a_wrong_site_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("cluster: {partitions: cpu}")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "--configfile", f"{tmp_path}/site.yaml"],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    assert "cluster.partitions: unknown key; did you mean partition" in done.stdout
