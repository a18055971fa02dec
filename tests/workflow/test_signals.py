"""The workflow and its jobs when signals stop or kill them."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from tests.workflow.checkouts import FIGURE, begin, checkout, finished, snakemake

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_a_killed_grid_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    """Kill Snakemake and its jobs three times during 12 runs; then let Snakemake finish."""
    folder = checkout(tmp_path / "suite")
    grid = """
        pack: 2
        figures: {main_figure: {methods: [ngt, bc], demos: [1, 2], seeds: [0, 1, 2]}}
        train: {steps: 1200}
        checkpoint_every: 100
    """
    (folder / "grid.yaml").write_text(textwrap.dedent(grid))
    args = (FIGURE, "--configfile", "grid.yaml", "--config", "scale=test")
    seen: dict[Path, int] = {}
    instants = random.Random(0)
    for kill in range(3):
        process = begin(folder, *args)
        while process.poll() is None and len(finished(folder)) < 3 * kill + 1:
            time.sleep(0.05)
        time.sleep(instants.uniform(0, 3))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = finished(folder)
        assert {path: now[path] for path in seen} == seen, "finished runs must not change"
        seen = now
        assert snakemake(folder, *args, "--unlock").returncode == 0
    assert 0 < len(seen) < 12
    done = snakemake(folder, *args, "--rerun-incomplete")
    assert done.returncode == 0, done.stdout
    now = finished(folder)
    assert len(now) == 12 and {path: now[path] for path in seen} == seen
    assert (folder / FIGURE).exists()


def test_a_killed_job_is_tried_again_and_resumes(tmp_path: Path) -> None:
    """Kill the training job once, under the default profile."""
    folder = checkout(tmp_path / "suite")
    process = begin_one_run(folder, 4000, "--workflow-profile", "workflow/profiles/default")
    wait_for_checkpoint(folder, process)
    files = Path(f"/proc/{process.pid}/task").glob("*/children")
    (trainer,) = (int(child) for file in files for child in file.read_text().split())
    os.kill(trainer, signal.SIGKILL)
    assert process.wait(600) == 0 and (folder / FIGURE).exists()
    (log,) = (folder / "results/test/logs/train").rglob("*.log")
    assert re.search(r"resumes from its checkpoint at step [1-9]", log.read_text())


@pytest.mark.parametrize("profile", [(), ("--workflow-profile", "workflow/profiles/default")])
def test_sigterm_to_the_whole_group_ends_it_and_the_last_job_leaves_a_checkpoint(
    tmp_path: Path, profile: tuple[str, ...]
) -> None:
    """Send the signal to the last job and to Snakemake at the same time."""
    folder = checkout(tmp_path / "suite")
    process = begin_one_run(folder, 400_000, *profile)
    try:
        wait_for_checkpoint(folder, process)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(120) != 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    (log,) = (folder / "results/test/logs/train").rglob("*.log")
    assert re.search(r"stopped at step [1-9]", log.read_text())
    assert not (folder / FIGURE).exists() and not finished(folder)


def begin_one_run(folder: Path, steps: int, *profile: str) -> subprocess.Popen[bytes]:
    """Start Snakemake on the main figure of a single run, with a checkpoint every 100 steps."""
    grid = f"""
        figures: {{main_figure: {{methods: [ngt], demos: [1], seeds: [0]}}}}
        train: {{steps: {steps}}}
        checkpoint_every: 100
    """
    (folder / "grid.yaml").write_text(textwrap.dedent(grid))
    return begin(folder, FIGURE, "--configfile", "grid.yaml", "--config", "scale=test", *profile)


def wait_for_checkpoint(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the run has a checkpoint or Snakemake has ended."""
    runs = folder / "results/test/runs"
    while process.poll() is None and not list(runs.rglob("checkpoint/step-*.json")):
        time.sleep(0.05)
