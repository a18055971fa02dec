"""Checkouts in which tests run the workflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ngt.experience import demos
from ngt.experience.demos import Episode, assemble

ROOT = Path(__file__).resolve().parents[2]
FIGURE = "results/main_figure.pdf"
EXPERT = ("expert", "trained", "record", "recorded")  # the rules that make an expert


def environment() -> dict[str, str]:
    """Return variables with which the jobs find `python` and use one thread each."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"}


def snakemake(folder: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a checkout; return the process, with stdout and stderr merged.

    variables: environment variables, besides those of `environment`.
    """
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *args],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=1800,
        env=environment() | variables,
    )


def jobs(output: str) -> dict[str, int]:
    """Return each rule's number of jobs, from the table that Snakemake prints."""
    return {
        name: int(count)
        for name, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)
        if name != "total"
    }


def dry_run(folder: Path, *args: str) -> dict[str, int]:
    done = snakemake(folder, "--dry-run", *args)
    assert done.returncode == 0, done.stdout
    return jobs(done.stdout)


def unstamped(content: bytes) -> bytes:
    """Return the content of a figure's file without its stamp, which is a hash of its inputs."""
    return re.sub(rb"drawn from [0-9a-f]{16}", b"", content)


def checkout(folder: Path) -> Path:
    """Copy the files that the workflow needs into a new folder; return the folder."""
    keep = ("Snakefile", "workflow", "ngt", "baselines", "paper", "data", "tests/data")
    (folder / "tests").mkdir(parents=True)
    for name in keep:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )
        else:
            shutil.copy(source, folder / name)
    return folder


def begin(folder: Path, *args: str) -> subprocess.Popen[bytes]:
    """Start Snakemake in a checkout, in its own process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", *args],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment(),
    )


def finished(folder: Path) -> dict[Path, int]:
    """Return the modification time of each finished run's record."""
    return {p: p.stat().st_mtime_ns for p in (folder / "results/test/runs").rglob("run.json")}


SMALL: dict[str, Any] = {
    "scale": "test",
    "figures": {
        "main_figure": {
            "methods": ["ngt"],
            "envs": ["Pendulum-v1"],
            "demos": [1],
            "seeds": [0, 1],
        }
    },
    "envs": {"Pendulum-v1": {"demos": "own.npz"}},
    "train": {"steps": 120, "eval_every": 40, "log_every": 40, "eval_episodes": 1},
}
OTHER = {**SMALL, "methods": {"ngt": {"params": {"m": 7}}}}
EVERY = {"settings": 1, "train": 1, "pack": 1, "run": 2, "figure": 1}
RUN = "results/test/runs/Pendulum-v1/ngt/state-action-demos1-rate20/seed{}"


def small(folder: Path) -> Path:
    """Return a checkout with two configs, each for two short runs that imitate a recorded file."""
    checkout(folder)
    rng = np.random.default_rng(0)
    steps = 200
    episode = Episode(
        rng.standard_normal((steps + 1, 3)), rng.uniform(-1, 1, (steps, 1)), -np.ones(steps), False
    )
    data = assemble("Pendulum-v1", [episode], np.array([-1200.0]), "drawn")
    demos.save(folder / "own.npz", data)
    for name, settings in (("base", SMALL), ("other", OTHER)):
        (folder / f"{name}.yaml").write_text(json.dumps(settings))
    return folder


def run_small(folder: Path, name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return snakemake(folder, "--configfile", f"{name}.yaml", *args, "--", FIGURE)


def planned_small(folder: Path, name: str, *args: str) -> dict[str, int]:
    done = run_small(folder, name, "--dry-run", *args)
    assert done.returncode == 0, done.stdout
    return jobs(done.stdout)
