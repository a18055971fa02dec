"""Tests of `ngt export`, which writes demonstrations as a Minari dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngt.experience import demos

ROOT = Path(__file__).resolve().parents[4]
FILE = ROOT / "tests/data/Pendulum-v1.npz"


def test_there_and_back(
    ngt: Any, refused: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    (said,) = ngt("export", "minari", str(FILE), "--id", "lab/pendulum-v0")
    assert said.startswith(f"{tmp_path}/minari/lab/pendulum-v0: 4 episodes of Pendulum-v1")
    how = ["--env", "Pendulum-v1", "--scale", "test", "--actions", "env", "--out", "back.npz"]
    ngt("import", "minari", "lab/pendulum-v0", *how)
    first, back = demos.load(FILE), demos.load(tmp_path / "back.npz")
    assert (first.action == back.action).all()
    assert (first.obs == back.obs).all() and (first.seeds == back.seeds).all()
    assert "exists" in refused("export", "minari", str(FILE), "--id", "lab/pendulum-v0")


def test_files_that_are_no_demonstrations(refused: Any, tmp_path: Path) -> None:
    how = ["--id", "lab/x-v0"]
    said = refused("export", "minari", "none.npz", *how)
    assert "none.npz: no such file; `ngt record` writes it, or name another file" in said
    np.savez(tmp_path / "theirs.npz", obs=np.zeros((2, 3)))
    said = refused("export", "minari", "theirs.npz", *how)
    assert "theirs.npz: it seems to be a NumPy archive of another layout; `ngt import npz" in said
