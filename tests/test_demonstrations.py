"""docs/demonstrations.md: all its commands, run in order in an empty folder."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from ngt import cli
from ngt.experience import demos
from ngt.foreign import imitation
from tests.pages import ROOT, every_block, read

PAGE = read("demonstrations.md")


def others(folder: Path) -> None:
    """Write the files that the page expects: a D4RL file, an imitation dataset and plain arrays."""
    shutil.copytree(ROOT / "tests/data/imitation-hopper", folder / "rollouts")
    parts = imitation.read(folder / "rollouts", "Hopper-v4").episodes
    last = np.concatenate([np.arange(len(e.action)) == len(e.action) - 1 for e in parts])
    arrays = {
        "observations": np.concatenate([e.obs[:-1] for e in parts]),
        "actions": np.concatenate([e.action for e in parts]),
        "rewards": np.concatenate([e.reward for e in parts]),
        "terminals": last,
        "timeouts": np.zeros_like(last),
    }
    with h5py.File(folder / "hopper_expert-v2.hdf5", "w") as file:
        for name, array in arrays.items():
            file[name] = np.concatenate([array] * 8)  # 16 episodes, which the page imports
    following = np.concatenate([e.obs[1:] for e in parts])
    np.savez(folder / "arrays.npz", **arrays, next_observations=following)


@pytest.mark.slow
def test_the_page_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    others(tmp_path)
    for language, block in every_block(PAGE):
        if language == "python":
            exec(compile(block, "docs/demonstrations.md", "exec"), {"__name__": "page"})
        elif not language:
            for line in block.splitlines():
                name, *arguments = shlex.split(line)
                assert name == "ngt"
                if "Hopper-v4" in arguments:
                    arguments += ["--scale", "test"]  # fewer random episodes
                cli.main(arguments)
    data = {file.stem: demos.load(file) for file in tmp_path.glob("*.npz") if file.stem != "arrays"}
    for name in ("obs", "action", "reward", "length", "terminated", "seeds"):
        assert np.array_equal(getattr(data["mine"], name), getattr(data["again"], name)), name
    buffers = data["buffers"]
    assert buffers.length.tolist() == [200] * 4 and buffers.seeds.tolist() == [0, 1, 2, 3]
    assert not buffers.terminated.any() and np.abs(buffers.action).max() > 0.9
    assert buffers.source == "minari buffers-v0"
    assert "jax" not in sys.modules
    assert data["mine"].expert > data["mine"].random + 100.0
    whole, cut = data["imitation"], data["d4rl"]
    assert np.array_equal(whole.action, data["arrays-ngt"].action)
    left_out = np.tile(whole.length, 8) - cut.length
    assert left_out.tolist() == [1] * 16, "D4RL's file has no next_observations"
    run = "results/test/runs/Pendulum-v1/ngt/state-action-demos4-rate20/seed0/run.json"
    assert (tmp_path / run).exists()
    assert "finished in" in capsys.readouterr().out
