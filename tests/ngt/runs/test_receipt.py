"""Tests of receipts (done.*), which are written only if they match the files beside them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.files import checksum, write_json
from ngt.runs.receipt import certify, receipt_hash
from ngt.runs.status import described

HASH = "0123456789abcdef"
DEMOS = Path(__file__).resolve().parents[3] / "data" / "finger-spin" / "demos.npz"


def write(folder: Path, **key: Any) -> None:
    """Write a run.json and a policy into the folder."""
    policy = folder / "policy.safetensors"
    policy.write_bytes(b"weights")
    files = {policy.name: checksum(policy)}
    write_json(folder / "run.json", {"key": key, "config_hash": HASH, "files": files})


def test_a_runs_receipt_is_written_against_its_own_record(tmp_path: Path) -> None:
    write(tmp_path, run="a/b", seed=3)
    receipt = tmp_path / f"done.{receipt_hash('a/b', HASH)}"
    certify(receipt)
    assert receipt.exists()
    false = tmp_path / f"done.{receipt_hash('a/b', 'f' * 16)}"
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
    write(tmp_path, env="Pendulum-v1", method="expert", seed=0)
    certify(tmp_path / f"done.{HASH}")
    with pytest.raises(UserError, match=r"was planned"):
        certify(tmp_path / "done.0000000000000000")
    source = described(DEMOS)["source"]
    file = tmp_path / "finger-spin.npz"
    file.write_bytes(DEMOS.read_bytes())
    certify(tmp_path / f"finger-spin.done.{source}")
    with pytest.raises(UserError, match=r"recorded from"):
        certify(tmp_path / "finger-spin.done.0000000000000000")
    file.write_bytes(DEMOS.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"recorded from None"):
        certify(tmp_path / f"finger-spin.done.{source}")


def test_the_command_is_one_line_and_imports_nothing_large(tmp_path: Path) -> None:
    """Check the imports of a command that the workflow starts once per run."""
    code = "import sys, ngt.runs.receipt; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"import json; {code}"], capture_output=True, text=True, check=True
    )
    assert not {"torch", "numpy", "gymnasium", "yaml"} & set(json.loads(done.stdout))
    receipt = str(tmp_path / "done.0000000000000000")
    done = subprocess.run(
        [sys.executable, "-m", "ngt.runs.receipt", receipt],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
