"""Tests of a run's folder: it has a fixed set of files, and `run.json` is written last."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.files import read_json
from ngt.runs.provenance import source_hash
from ngt.runs.status import status_of
from ngt.runs.writer import RunWriter
from ngt.settings.config import CellConfig, SacConfig
from ngt.settings.resolve import config_hash

CELL = CellConfig("Pendulum-v1", "ngt", "ngt.potential:Potential", sac=SacConfig(hidden=(4,)))
ROOT = Path(__file__).resolve().parents[3]
PARTS = ["config.json.part", "eval.csv.part", "train.csv.part"]
FILES = ["config.json", "eval.csv", "policy.safetensors", "run.json", "train.csv"]


def tensors() -> dict[str, torch.Tensor]:
    return Policy(Actor(3, 1, CELL.sac, [0]), None).snapshot(0)


def write(folder: Path, **record: Any) -> RunWriter:
    """Write a complete run with two evaluations and return its writer."""
    writer = RunWriter(folder, {"run": "a/b", "seed": 3}, CELL)
    writer.training({"step": 100, "update": 25, "loss": 1 / 3, "train_return": math.nan})
    writer.evaluation(100, np.array([-1.5, 0.1 + 0.2]), np.array([200, 7]))
    writer.training({"step": 200, "update": 50, "loss": 1e-9, "train_return": 5.0})
    writer.evaluation(200, np.array([1e-17, 2.0]), np.array([1, 2]))
    writer.finish(tensors(), {"status": "finished", "step": 200, **record})
    return writer


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_writer_resumes_another_one(tmp_path: Path) -> None:
    """Check that restoring a writer's state drops later rows and keeps the columns."""
    first = RunWriter(tmp_path / "a", {}, CELL)
    first.training({"step": 100, "update": 25, "loss": 0.5})
    first.evaluation(100, [1.0], [2])
    state = first.state()
    later = RunWriter(tmp_path / "b", {}, CELL)
    for step in (50, 100, 150):
        later.training({"step": step, "loss": 0.5})
        later.evaluation(step, [3.0, 4.0], [5, 6])
    later.restore(state)
    assert later.state().data["eval.csv"] == state.data["eval.csv"]
    for writer in (first, later):
        writer.training({"update": 50, "step": 200, "loss": 0.25})
    texts = [(tmp_path / name / "train.csv.part").read_text() for name in ("a", "b")]
    assert texts[0] == texts[1] == "step,update,loss\n100,25,0.5\n200,50,0.25\n"


def test_what_a_run_leaves(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    write(folder, updates=50)
    assert names(folder) == FILES
    assert (folder / "eval.csv").read_text() == (
        "step,episode,return,length\n"
        "100,0,-1.5,200\n100,1,0.30000000000000004,7\n200,0,1e-17,1\n200,1,2.0,2\n"
    ), "returns must be exact"
    assert (folder / "train.csv").read_text() == (
        "step,update,loss,train_return\n100,25,0.333333,nan\n200,50,1e-09,5\n"
    )
    config = read_json(folder / "config.json")
    assert config["key"] == {"run": "a/b", "seed": 3}
    assert config["sac"]["hidden"] == [4] and config["train"]["steps"] == 10_000_000
    assert set(config) == {"key", *(f.name for f in dataclasses.fields(CellConfig))}
    run = read_json(folder / "run.json")
    assert (run["key"], run["status"]) == ({"run": "a/b", "seed": 3}, "finished")
    assert run["config_hash"] == config_hash(CELL)
    assert (run["step"], run["updates"], run["threads"]) == (200, 50, torch.get_num_threads())
    assert run["wall_seconds"] >= 0
    loaded, env = policy.load(folder / "policy.safetensors")
    assert env == "Pendulum-v1"
    assert all(torch.equal(a, tensors()[n]) for n, a in loaded.state_dict().items())


def test_provenance_names_source_versions_and_machine(tmp_path: Path) -> None:
    write(tmp_path)
    run = read_json(tmp_path / "run.json")
    assert run["source_hash"] == source_hash(CELL.model) and len(run["source_hash"]) == 16
    assert torch.__version__.startswith(run["versions"]["torch"].split("+")[0])
    assert run["versions"]["numpy"] == np.__version__
    assert set(run["versions"]) >= {"gymnasium", "mujoco"}
    assert run["python"] == ".".join(map(str, sys.version_info[:3]))
    assert run["machine"].startswith("Linux" if sys.platform == "linux" else "")
    assert run["dirty"] in (True, False, None)
    assert run["commit"] is None or len(run["commit"]) == 40


def test_a_run_on_a_gpu_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"card of {device}")
    for device in ("cpu", "cuda:1"):
        write(tmp_path / device, device=device)
    on_cpu, on_gpu = (read_json(tmp_path / device / "run.json") for device in ("cpu", "cuda:1"))
    assert on_gpu["gpu"] == "card of cuda:1"
    assert on_gpu.keys() - on_cpu.keys() == {"gpu"}


# ---------------------------------------------------------------- run.json is last


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_until_the_end_the_former_run_is_whole(tmp_path: Path) -> None:
    write(tmp_path, reference={})
    for name in ("done.abc", "done.abd", "done", "other.abc"):
        (tmp_path / name).touch()
    former = contents(tmp_path)
    writer = RunWriter(tmp_path, {"run": "a/b"}, dataclasses.replace(CELL, rate=5))
    writer.training({"step": 100, "update": 25})
    writer.evaluation(100, [1.0], [2])
    text = (tmp_path / "eval.csv.part").read_text()
    assert text == "step,episode,return,length\n100,0,1.0,2\n", (
        "the file must be a new one that grows with each evaluation"
    )
    assert contents(tmp_path) == former
    assert set(PARTS) < set(names(tmp_path)) and (tmp_path / "done.abc").exists()
    assert status_of(tmp_path, {"run": "a/b", "seed": 3}, config_hash(CELL)).status == "finished"
    writer.finish(tensors(), {"status": "finished", "step": 100, "reference": {}})
    kept = sorted([*FILES, "done", "former", "other.abc"])
    assert names(tmp_path) == kept, "the receipts (done.*) must be removed"
    (place,) = (tmp_path / "former").iterdir()
    assert contents(place) == former and place.name.startswith(config_hash(CELL))
    assert (tmp_path / "eval.csv").read_text() == text
    assert read_json(tmp_path / "config.json")["rate"] == 5
    assert status_of(tmp_path, {"run": "a/b"}, config_hash(writer.cell)).status == "finished"


def test_an_exception_at_the_beginning_leaves_the_former_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    write(tmp_path)
    former = contents(tmp_path)
    monkeypatch.setattr("ngt.runs.writer.provenance", fail)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path)
    assert contents(tmp_path) == former


@pytest.mark.parametrize("broken", ["ngt.agent.policy.save", "ngt.runs.writer.config_hash"])
def test_a_full_disk_at_the_end_leaves_the_former_run_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    write(tmp_path)
    former = contents(tmp_path)
    monkeypatch.setattr(broken, fail)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path)
    assert contents(tmp_path) == former


def test_run_json_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    real = Path.replace

    def watched(path: Path, target: Path) -> Path:
        if target.name == "run.json":
            seen.append(names(tmp_path))
        return real(path, target)

    monkeypatch.setattr(Path, "replace", watched)
    write(tmp_path)
    assert seen == [sorted([*(n for n in FILES if n != "run.json"), "run.json.part"])]
    assert (tmp_path / "eval.csv").read_text().count("\n") == 5


@pytest.mark.parametrize("again", [False, True])
def test_a_kill_leaves_what_was_written_and_the_former_run(tmp_path: Path, again: bool) -> None:
    if again:
        write(tmp_path)
    former = contents(tmp_path) if again else {}
    code = (
        "import os, pathlib, sys\n"
        "from ngt.settings.config import CellConfig\n"
        "from ngt.runs.writer import RunWriter\n"
        "writer = RunWriter(pathlib.Path(sys.argv[1]), {}, CellConfig('Pendulum-v1', 'ngt'))\n"
        "writer.evaluation(100, [1.0], [2])\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=False)
    assert done.returncode == -9
    assert names(tmp_path) == sorted([*former, *PARTS])
    assert (tmp_path / "eval.csv.part").read_text().endswith("\n100,0,1.0,2\n")
    assert not again or contents(tmp_path) == former
