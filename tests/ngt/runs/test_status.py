"""Tests of a run folder's status, which depends on the folder's content alone."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.files import read_json, write_json
from ngt.runs.status import described, other_settings, status_of
from ngt.runs.writer import RunWriter
from ngt.settings.config import CellConfig, SacConfig
from ngt.settings.load import load
from ngt.settings.resolve import config_hash, plain, resolve

CELL = CellConfig("Pendulum-v1", "ngt", "ngt.potential:Potential", sac=SacConfig(hidden=(4,)))
HASH = config_hash(CELL)
KEY = {"run": "a/b", "seed": 3}


def write(folder: Path, key: dict[str, Any] = KEY, **record: Any) -> Path:
    """Write a complete run and return its folder."""
    writer = RunWriter(folder, key, CELL)
    writer.training({"step": 100, "update": 25})
    writer.evaluation(100, [-1.5], [200])
    tensors = Policy(Actor(3, 1, CELL.sac, [0]), None).snapshot(0)
    writer.finish(tensors, {"status": "finished", "step": 200, "reference": {}, **record})
    return folder


def status(folder: Path, key: dict[str, Any] = KEY, cell: CellConfig = CELL, **more: Any) -> str:
    return status_of(folder, key, config_hash(cell), **more).status


def test_a_complete_run_is_of_its_key_settings_and_demonstrations(tmp_path: Path) -> None:
    assert status(tmp_path) == "missing"
    write(tmp_path, reference={"demos": "abc", "random": 1.0})
    assert status(tmp_path) == status(tmp_path, reference={"demos": "abc"}) == "finished"
    changed = dataclasses.replace(CELL, sac=SacConfig(hidden=(5,)))
    assert status(tmp_path, cell=changed) == "stale", "the settings differ"
    assert status(tmp_path, {"run": "a/b", "seed": 4}) == "stale", "the run differs"
    assert status(tmp_path, reference={"demos": "abd"}) == "stale", "the demonstrations differ"
    write(tmp_path, status="diverged", tensor="obs")
    assert status(tmp_path) == "diverged", "divergence must be the run's result"
    assert status(tmp_path, reference={"demos": "abd"}) == "stale", (
        "a record that names no demonstrations must be stale"
    )
    for text in ("[1]", '{"config_hash":'):
        (tmp_path / "run.json").write_text(text)
        assert status(tmp_path) == "damaged"


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        (None, None, ""),
        ("entropy_units", "tanh", 'sac.entropy_units is "env" in the result and "tanh" in the'),
        ("power_iterations", 1, "params.power_iterations is 3 in the result and 1 in the config"),
        ("demos_source", "f" * 16, "demonstrations of another expert, or from another file"),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_the_setting_that_differs_is_named(
    tmp_path: Path, setting: str | None, value: Any, said: str, whole: bool
) -> None:
    """Change a setting to the value that older records lack, or the demonstrations."""
    cell = resolve(load({}), "Pendulum-v1", "ngt", "state-action", 20)
    made = dataclasses.asdict(cell) if whole else plain(cell)  # `plain` leaves out former values
    write_json(tmp_path / "config.json", {"key": KEY, **made})
    wanted = {
        None: cell,
        "entropy_units": replace(cell, sac=replace(cell.sac, entropy_units=value)),
        "power_iterations": replace(cell, params={**cell.params, "power_iterations": value}),
        "demos_source": replace(cell, demos_source=value),
    }[setting]
    found = other_settings(tmp_path, wanted)
    assert found.startswith(said) and bool(found) == bool(said)


def test_a_setting_that_is_gone_is_named(tmp_path: Path) -> None:
    cell = resolve(load({}), "Pendulum-v1", "ngt", "state-action", 20)
    write_json(tmp_path / "config.json", {**dataclasses.asdict(cell), "old": 1})
    assert other_settings(tmp_path, cell) == "old is 1 in the result and not set in the config"


@pytest.mark.parametrize("line", ["²,0,1.0,200", "9" * 5000, "", "step", "7a"])
def test_an_unfinished_run_whose_last_evaluation_is_damaged(tmp_path: Path, line: str) -> None:
    (tmp_path / "eval.csv.part").write_text(f"step,episode\n100,0\n{line}\n", encoding="utf-8")
    assert status_of(tmp_path, KEY, HASH)[:2] == ("part", "last evaluation at step 0")


def test_another_key_is_named(tmp_path: Path) -> None:
    def note(key: dict[str, Any]) -> str:
        return status_of(tmp_path, key, HASH).note

    write(tmp_path)
    assert note({"run": "a/c", "seed": 3}) == "run.json belongs to another run, a/b"
    expert = {"env": "Pendulum-v1", "method": "expert", "seed": 1000}
    write(tmp_path, expert)
    assert note({**expert, "seed": 5}) == "trained with expert.seed 1000, not 5"
    other = "run.json belongs to another run, Pendulum-v1/expert"
    assert note({**expert, "env": "Hopper-v4"}) == note(KEY) == other
    record = read_json(tmp_path / "run.json") or {}
    write_json(tmp_path / "run.json", {**record, "key": None})
    assert note(KEY) == "run.json names no run"


@pytest.mark.parametrize("name", ["eval.csv", "train.csv", "policy.safetensors", "config.json"])
def test_every_file_that_was_cut_or_removed_is_damage(tmp_path: Path, name: str) -> None:
    file = write(tmp_path) / name
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    found = status_of(tmp_path, KEY, HASH)
    assert found.status == "damaged" and str(file) in found.note
    file.unlink()
    assert status(tmp_path) == "damaged"
    file.write_bytes(whole)
    assert status(tmp_path) == "finished", "time stamps must not count"


def test_a_record_without_checksums_needs_its_evaluations(tmp_path: Path) -> None:
    record = read_json(write(tmp_path) / "run.json") or {}
    write_json(tmp_path / "run.json", {**record, "files": {}})
    assert status(tmp_path) == "finished"
    (tmp_path / "eval.csv").unlink()
    assert status(tmp_path) == "damaged"


def test_a_demonstration_file_says_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "demos.npz"
    for meta in ({"env": "é", "source": "a" * 16}, {"env": "x" * 5000}):
        np.savez_compressed(file, obs=np.zeros(3), meta=np.array(json.dumps(meta)))
        assert described(file) == meta
    for array in ("[1]", "{", 3):
        np.savez(file, meta=np.array(array))
        assert described(file) == {}
    assert described(tmp_path / "missing.npz") == {}
