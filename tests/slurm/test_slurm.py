"""The workflow on a real Slurm: jobs are lost in four ways, and the numbers stay the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIGURE = "results/main_figure.pdf"
RUNS, LOGS = Path("results/test/runs/Pendulum-v1"), Path("results/test/logs/train/Pendulum-v1")
ONE = "state-action-demos1-rate20/seed0"

METHODS = ("ngt", "dac-r", "pwil", "wdac")
GRID = f"""
figures: {{main_figure: {{methods: [{", ".join(METHODS)}], demos: [1], seeds: [0]}}}}
train: {{steps: 6000, eval_every: 2000}}
expert: {{train: {{steps: 400}}}}
envs: {{Pendulum-v1: {{demos: ''}}}}
checkpoint_every: 500
"""
ONE_RUN = "figures: {main_figure: {methods: [bc], demos: [1], seeds: [0]}}\ntrain: {steps: 400}\n"

pytestmark = [pytest.mark.long, pytest.mark.slurm]


class Grid(NamedTuple):
    """A grid of runs made through Slurm, and the same grid made without Slurm."""

    here: Path  # the checkout that ran without Slurm
    there: Path  # the checkout that ran through Slurm
    lost: dict[str, str]  # how each method's job was lost
    said: str  # Snakemake's output


def start(folder: Path, slurm: Any, *args: str, grid: str = GRID) -> subprocess.Popen[str]:
    """Start Snakemake in a checkout at scale `test`."""
    env = slurm.env | {
        "PATH": f"{Path(sys.executable).parent}:{slurm.env['PATH']}",
        "OMP_NUM_THREADS": "1",
    }
    (folder / "grid.yaml").write_text(grid)
    own = ("--configfile", "grid.yaml", "--config", "scale=test")
    with open(folder / "said", "w") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", FIGURE, *own, *args],
            cwd=folder,
            text=True,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )


def through(slurm: Any) -> tuple[str, ...]:
    """Return the options for the Slurm profile, without accounting and without delays."""
    soon = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5")
    return (
        "--workflow-profile",
        "workflow/profiles/slurm",
        "--slurm-status-command",
        "squeue",
        *soon,
    )


def checkout(folder: Path) -> Path:
    """Copy the files that the workflow needs into a new folder; return the folder."""
    (folder / "tests").mkdir(parents=True)
    for name in ("workflow", "ngt", "baselines", "paper", "data", "tests/data"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Snakefile", folder)
    return folder


def finish(process: subprocess.Popen[str], folder: Path) -> str:
    """Wait for Snakemake to succeed and return its output."""
    code = process.wait(400)
    said = (folder / "said").read_text()
    assert code == 0, said
    return said


@pytest.fixture(scope="module")
def grid(slurm: Any, tmp_path_factory: pytest.TempPathFactory) -> Grid:
    """Run the grid without Slurm and through Slurm; there, each training run loses a job."""
    here, there = (checkout(tmp_path_factory.mktemp(n) / "suite") for n in ("here", "there"))
    both = {here: start(here, slurm, "--cores", "1"), there: start(there, slurm, *through(slurm))}
    try:
        lost = disturb(slurm, there)
        said = {folder: finish(process, folder) for folder, process in both.items()}
        return Grid(here, there, lost, said[there])
    finally:
        for process in both.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)


def disturb(slurm: Any, folder: Path) -> dict[str, str]:
    """Lose four jobs on two nodes: by a time limit, a scancel, a kill and a crash."""
    held: dict[str, int] = {}

    def hold() -> bool:
        """Stop each training process at its first checkpoint; return True if all are stopped."""
        for method in METHODS:
            if method not in held and list(folder.glob(f"{RUNS / method / ONE}/checkpoint/step-*")):
                held[method] = trainer(folder, method)
                os.kill(held[method], signal.SIGSTOP)
        return len(held) == len(METHODS)

    def state(job: str) -> str:
        return slurm.jobs("all")[job][1]

    slurm.until(hold, 240, "every training run has a checkpoint")
    of = {text.split("_")[4]: (job, node) for job, (node, _, text) in slurm.jobs().items()}
    first = of[METHODS[0]][1]
    limited, cancelled = (m for m in METHODS if of[m][1] == first)
    killed, crashed = (m for m in METHODS if of[m][1] != first)

    # The new limit is shorter than the time by which the profile's signal precedes a limit. So
    # Slurm's next check sends the signal. Slurm checks twice a minute.
    slurm.call("scontrol", "update", f"jobid={of[limited][0]}", "timelimit=5")
    slurm.call("scancel", of[cancelled][0])  # this also wakes the process
    os.kill(held[killed], signal.SIGKILL)
    slurm.until(lambda: state(of[killed][0]) == "FAILED", 30, "the killed job has failed")
    slurm.crash(of[crashed][1])
    slurm.until(lambda: state(of[crashed][0]) == "PENDING", 30, "Slurm starts it again")
    # Otherwise the job would not start for another 2 minutes.
    slurm.call("scontrol", "update", f"jobid={of[crashed][0]}", "starttime=now")
    slurm.revive(of[crashed][1])
    slurm.until(lambda: not stands_still(held[limited]), 90, "the time limit's notice wakes it")
    return {limited: "limit", cancelled: "scancel", killed: "kill", crashed: "crash"}


def trainer(folder: Path, method: str) -> int:
    """Return the id of the process that trains a method in a checkout."""
    command = ["-m", "ngt", "train", f"Pendulum-v1/{method}/{ONE}"]

    def is_it(process: Path) -> bool:
        try:
            said = (process / "cmdline").read_text().split("\0")
            return said[1:5] == command and (process / "cwd").readlink() == folder
        except OSError:  # the process has ended
            return False

    (found,) = filter(is_it, Path("/proc").glob("[0-9]*"))
    return int(found.name)


def stands_still(pid: int) -> bool:
    """Return True if the process exists and is stopped."""
    try:
        return "State:\tT" in Path(f"/proc/{pid}/status").read_text()
    except OSError:  # the process has ended
        return False


def test_the_same_numbers_as_here(grid: Grid) -> None:
    for method in METHODS:
        file = RUNS / method / ONE / "eval.csv"
        assert (grid.there / file).read_bytes() == (grid.here / file).read_bytes(), method
    # The figures' stamps, which are hashes of inputs, differ, because the records' times differ.
    there, here = (
        re.sub(rb"drawn from [0-9a-f]{16}", b"", (folder / FIGURE).read_bytes())
        for folder in (grid.there, grid.here)
    )
    assert there == here


def test_every_lost_job_resumes_from_its_checkpoint(grid: Grid) -> None:
    assert sorted(grid.lost.values()) == ["crash", "kill", "limit", "scancel"]
    for method, how in grid.lost.items():
        (log,) = (grid.there / LOGS / method).rglob("*.log")
        went_on = re.search(r"resumes from its checkpoint at step (\d+)", log.read_text())
        assert went_on and int(went_on[1]) > 0, f"{how}: {log.read_text()}"


def test_a_job_that_is_told_to_stop_writes_a_checkpoint_first(grid: Grid) -> None:
    """Check that the next attempt resumes at the step that Snakemake prints from the job's log."""
    for how in ("limit", "scancel"):
        (method,) = (m for m, h in grid.lost.items() if h == how)
        (log,) = (grid.there / LOGS / method).rglob("*.log")
        at = re.search(r"resumes from its checkpoint at step (\d+)", log.read_text())
        assert at and f"ngt: stopped at step {at[1]}; the same command" in grid.said


def test_an_edit_of_the_config_file_does_not_affect_queued_jobs(slurm: Any, tmp_path: Path) -> None:
    """Make the config file invalid while the only training job waits in the queue."""
    folder = checkout(tmp_path / "suite")
    slurm.call("scontrol", "update", "partitionname=cpu", "state=down")
    process = start(folder, slurm, *through(slurm), grid=ONE_RUN)
    try:
        slurm.until(lambda: slurm.jobs("PENDING"), 240, "the job is queued")
        (folder / "grid.yaml").write_text("train: {steps")
        slurm.call("scontrol", "update", "partitionname=cpu", "state=up")
        finish(process, folder)
    finally:
        slurm.call("scontrol", "update", "partitionname=cpu", "state=up")
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    record = json.loads((folder / RUNS / "bc" / ONE / "run.json").read_text())
    assert record["step"] == 400
