"""The state of a folder from its content alone, and the receipts that are written against it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.errors import UserError
from ngt.files import read_json, write_json
from ngt.runs.state import certify, named_by, recorded, state
from ngt.runs.writer import RunWriter
from ngt.settings.config import CellConfig, SacConfig
from ngt.settings.resolve import config_hash

CELL = CellConfig("Pendulum-v1", "ngt", "ngt.potential:Potential", sac=SacConfig(hidden=(4,)))
HASH = config_hash(CELL)
KEY = {"run": "a/b", "seed": 3}
DEMOS = Path(__file__).resolve().parents[3] / "data" / "finger-spin" / "demos.npz"


def write(folder: Path, key: dict[str, Any] = KEY, **record: Any) -> Path:
    """A complete run."""
    writer = RunWriter(folder, key, CELL)
    writer.training({"step": 100, "update": 25})
    writer.evaluation(100, [-1.5], [200])
    tensors = Policy(Actor(3, 1, CELL.sac, [0]), None).snapshot(0)
    writer.finish(tensors, {"status": "finished", "step": 200, "reference": {}, **record})
    return folder


def status(folder: Path, key: dict[str, Any] = KEY, cell: CellConfig = CELL, **more: Any) -> str:
    return state(folder, key, config_hash(cell), **more).status


def test_a_complete_run_is_of_its_key_settings_and_demonstrations(tmp_path: Path) -> None:
    assert status(tmp_path) == "missing"
    write(tmp_path, reference={"demos": "abc", "random": 1.0})
    assert status(tmp_path) == status(tmp_path, reference={"demos": "abc"}) == "finished"
    changed = dataclasses.replace(CELL, sac=SacConfig(hidden=(5,)))
    assert status(tmp_path, cell=changed) == "stale", "other settings"
    assert status(tmp_path, {"run": "a/b", "seed": 4}) == "stale", "another run"
    assert status(tmp_path, reference={"demos": "abd"}) == "stale", "other demonstrations"
    write(tmp_path, status="diverged", tensor="obs")
    assert status(tmp_path) == "diverged", "its result is that it diverged"
    assert status(tmp_path, reference={"demos": "abd"}) == "stale", "it names none"
    for text in ("[1]", '{"config_hash":'):
        (tmp_path / "run.json").write_text(text)
        assert status(tmp_path) == "damaged"


@pytest.mark.parametrize("name", ["eval.csv", "train.csv", "policy.safetensors", "config.json"])
def test_every_file_that_was_cut_or_removed_is_damage(tmp_path: Path, name: str) -> None:
    file = write(tmp_path) / name
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    found = state(tmp_path, KEY, HASH)
    assert found.status == "damaged" and str(file) in found.note
    file.unlink()
    assert status(tmp_path) == "damaged"
    file.write_bytes(whole)
    assert status(tmp_path) == "finished", "no time stamp counts"


def test_a_record_without_checksums_needs_its_evaluations(tmp_path: Path) -> None:
    record = read_json(write(tmp_path) / "run.json") or {}
    write_json(tmp_path / "run.json", {**record, "files": {}})
    assert status(tmp_path) == "finished"
    (tmp_path / "eval.csv").unlink()
    assert status(tmp_path) == "damaged"


def test_a_runs_receipt_is_written_against_its_own_record(tmp_path: Path) -> None:
    write(tmp_path)
    receipt = tmp_path / f"done.{named_by('a/b', HASH)}"
    certify(receipt)
    assert receipt.exists()
    false = tmp_path / f"done.{named_by('a/b', 'f' * 16)}"
    with pytest.raises(UserError, match=r"was planned"):
        certify(false)
    assert not false.exists()
    (tmp_path / "policy.safetensors").unlink()
    with pytest.raises(UserError, match=r"policy\.safetensors"):
        certify(receipt)
    (tmp_path / "run.json").unlink()
    with pytest.raises(UserError, match=r"missing or unreadable"):
        certify(receipt)


def test_an_experts_and_a_recordings_receipt(tmp_path: Path) -> None:
    write(tmp_path, {"env": "Pendulum-v1", "method": "expert", "seed": 0})
    certify(tmp_path / f"done.{HASH}")
    with pytest.raises(UserError, match=r"was planned"):
        certify(tmp_path / "done.0000000000000000")
    source = recorded(DEMOS)["source"]
    file = tmp_path / "finger-spin.npz"
    file.write_bytes(DEMOS.read_bytes())
    certify(tmp_path / f"finger-spin.done.{source}")
    with pytest.raises(UserError, match=r"recorded from"):
        certify(tmp_path / "finger-spin.done.0000000000000000")
    file.write_bytes(DEMOS.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"recorded from None"):
        certify(tmp_path / f"finger-spin.done.{source}")


def test_the_command_is_one_line_and_imports_nothing_large(tmp_path: Path) -> None:
    """It runs once for each run of the workflow."""
    code = "import sys, ngt.runs.state; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"import json; {code}"], capture_output=True, text=True, check=True
    )
    assert not {"torch", "numpy", "gymnasium", "yaml"} & set(json.loads(done.stdout))
    receipt = str(tmp_path / "done.0000000000000000")
    done = subprocess.run(
        [sys.executable, "-m", "ngt.runs.state", receipt],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
