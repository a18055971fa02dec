"""Tests of `ngt video`: what it shows side by side, its files, and rendering with OpenGL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.commands.views.video import comment_of
from ngt.experience import shipped
from ngt.experience.envs import get_task
from ngt.files import sha256
from ngt.settings.config import SacConfig
from ngt.settings.load import import_module
from ngt.views.clip import LARGEST

ROOT = Path(__file__).resolve().parents[4]
CHEETAH = shipped.DATA / "HalfCheetah-v4" / shipped.POLICY

# A user's own env: a bright column that the action moves. Frames need no OpenGL.
OWN = """
import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from ngt.experience.envs import Task, register

class Column(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space, action_space = Box(-1, 1, (2,)), Box(-1, 1, (1,))

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 30.0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.at = float(np.clip(self.at + action[0], 0, 59))
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def render(self):
        frame = np.zeros((60, 60, 3), np.uint8)
        frame[40:, int(self.at)] = 255
        return frame

gym.register("Column-v0", entry_point=Column)
register(Task("Column-v0", "Column-v0", obs=2, act=1, low=-1.0, high=1.0, time_limit=20))
"""
# The same env, but episodes end after 5 steps unless `terminate_when_unhealthy` is off.
FALL = """
from column_env import *

class Fall(Column):
    def __init__(self, render_mode=None, terminate_when_unhealthy=True):
        super().__init__(render_mode)
        self.ends = terminate_when_unhealthy

    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, reward, self.ends and self.at > 34, *rest[1:]

gym.register("Fall-v0", entry_point=Fall)
register(Task("Fall-v0", "Fall-v0", 2, 1, -1.0, 1.0, 20, can_terminate=True))
"""
RUN = "Column-v0/ngt/state-action-demos1-rate20/seed0"


@pytest.fixture(autouse=True)
def renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the command's choice of renderers after the test."""
    monkeypatch.setenv("MUJOCO_GL", "egl")
    for device in ("VIDEO", "AUDIO"):
        monkeypatch.setenv(f"SDL_{device}DRIVER", "dummy")


def save(file: Path, env: str, bias: float = 0.0) -> Path:
    """Save a policy whose mean action is shifted by a bias."""
    task, sac = get_task(env), SacConfig(hidden=(8,))
    torch.manual_seed(0)
    tensors = Policy(Actor(task.obs, task.act, sac, [0]), None).snapshot(0)
    last = [name for name in tensors if name.endswith("bias")][-1]
    tensors[last][..., : task.act] += bias
    file.parent.mkdir(parents=True, exist_ok=True)
    policy.save(file, tensors, env, sac)
    return file


def frames_of(file: Path) -> list[np.ndarray]:
    with Image.open(file) as image:
        out = []
        for i in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(i)
            out.append(np.asarray(image.convert("RGB"), float))
        return out


def test_an_own_env_with_its_expert(
    ngt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check an agent that moves right beside an expert that moves left."""
    (tmp_path / "column_env.py").write_text(OWN)
    (tmp_path / "mine.yaml").write_text("imports: [column_env]\n")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("column_env")
    agent = save(tmp_path / "results/test/runs" / RUN / shipped.POLICY, "Column-v0", 9.0)
    how = ["--config", "mine.yaml", "--scale", "test", "--out", "a.gif"]
    said = ngt("video", RUN, *how)
    assert said[0].startswith("Column-v0: no expert to show") and "a.gif: 2.0 s, " in said[1]
    assert np.shape(frames_of(tmp_path / "a.gif")) == (20, 320, 320, 3)

    expert = save(tmp_path / "results/test/experts/Column-v0" / shipped.POLICY, "Column-v0", -9.0)
    said = ngt("video", RUN, *how, "--seconds", "1")
    assert said[1:] == [
        f"  ngt: results/test/runs/{RUN}/{shipped.POLICY}",
        f"  expert: results/test/experts/Column-v0/{shipped.POLICY}",
    ]
    frames = frames_of(tmp_path / "a.gif")
    assert np.shape(frames) == (10, 320, 640, 3)
    ways = [
        [float(frame[240:, side].mean(axis=(0, 2)).argmax()) for frame in frames]
        for side in (slice(0, 320), slice(320, 640))
    ]
    assert ways[0][0] < ways[0][-1] and ways[1][0] > ways[1][-1]
    with Image.open(tmp_path / "a.gif") as image:
        words = image.info["comment"].decode()
    assert words == f"policy sha256 {sha256(agent)}, {sha256(expert)}"

    ngt("video", "Column-v0", *how[:-1], "b.GIF")
    assert len(frames_of(tmp_path / "b.GIF")) == 20
    assert len(ngt("video", "Column-v0", *how)) == 2, "an env's video shows its expert alone"
    with Image.open(tmp_path / "a.gif") as image:
        assert image.info["comment"].decode() == comment_of(expert)
    ngt("video", str(agent.parent), *how, "--alone")
    with Image.open(tmp_path / "a.gif") as image:
        assert image.info["comment"].decode() == comment_of(agent)


def test_a_run_is_filmed_with_its_own_settings(
    ngt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "column_env.py").write_text(OWN)
    (tmp_path / "fall_env.py").write_text(FALL)
    monkeypatch.syspath_prepend(tmp_path)
    import_module("fall_env")
    file = save(tmp_path / "run" / shipped.POLICY, "Fall-v0", 9.0)
    film = ["video", "run", "--alone", "--out", "a.gif", "--set", "imports=[fall_env]"]
    for own, more, frames in (
        ('{"terminate_when_unhealthy": true}', [], 5),
        ('{"terminate_when_unhealthy": false}', [], 20),
        ('{"terminate_when_unhealthy": false}', ["--set", "terminate_when_unhealthy=true"], 5),
    ):
        (file.parent / "config.json").write_text(own)
        ngt(*film, *more)
        assert len(frames_of(tmp_path / "a.gif")) == frames


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["HalfCheetah-v4"], "the following arguments are required: --out"),
        (["HalfCheeta-v4", "--out", "a.gif"], "'HalfCheeta-v4' is unknown"),
        (["HalfCheetah-v4", "--out", "a.avi"], "a.avi is not a video"),
        (["HalfCheetah-v4", "--out", "a.gif", "--seconds", "0"], "must be above 0"),
        (["HalfCheetah-v4", "--out", "a.gif", "--seconds", "nan"], "must be above 0"),
        (["HalfCheetah-v4", "--out", "a.gif", "--seconds", "inf"], "must be above 0 and finite"),
        (["HalfCheetah-v4", "--out", "a.gif", "--seed", "-1"], "--seed: must be at least 0, fou"),
        (["Reacher-v5", "--out", "a.gif"], "env Reacher-v5: has no expert"),
        (
            ["Reacher-v5", "--out", "a.gif", "--scale", "test", "--set", "pack=3"],
            "train one with `ngt expert Reacher-v5 --scale test --set pack=3`",
        ),
        (["Reacher-v5/ngt", "--out", "a.gif"], "not a run key"),
        ([RUN.replace("Column-v0", "Reacher-v5"), "--out", "a.gif"], "no such file"),
        (["no.safetensors", "--out", "a.gif"], "policy no.safetensors: no such file"),
    ],
)
def test_mistakes(refused: Any, tmp_path: Path, arguments: list[str], part: str) -> None:
    assert part in refused("video", *arguments) and list(tmp_path.glob("*.*")) == []


def record(
    folder: Path, source: str, *more: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process, since a process has only one renderer."""
    return subprocess.run(
        [sys.executable, "-m", "ngt", "video", source, "--out", "a.gif", *more],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MUJOCO_GL": "egl", **variables},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "env", ["HalfCheetah-v4", pytest.param("Pusher-v5", marks=pytest.mark.long), "finger-spin"]
)
def test_a_video_of_an_env(tmp_path: Path, env: str) -> None:
    """Check that a policy and the shipped expert move, for no longer than requested."""
    file = save(tmp_path / "policy.safetensors", env)
    done = record(tmp_path, str(file), "--seconds", "0.5")
    if "can't render here" in done.stderr:
        pytest.skip("EGL is not available")
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "a.gif") as image:
        words = image.info["comment"].decode()
        assert 9 <= image.n_frames <= 13  # type: ignore[attr-defined]
    assert words == comment_of(file, shipped.DATA / env / shipped.POLICY)
    frames = frames_of(tmp_path / "a.gif")
    assert (tmp_path / "a.gif").stat().st_size <= 2 * LARGEST and frames[0].std() > 5, (
        "there must be more than one colour"
    )
    for half in np.split(np.array([frames[0], frames[-1]]), 2, axis=2):
        assert np.abs(half[1] - half[0]).mean() > 0.1


@pytest.mark.slow
def test_without_a_renderer_it_says_what_to_install(tmp_path: Path) -> None:
    done = record(tmp_path, "HalfCheetah-v4", MUJOCO_GL="glfw", DISPLAY="")
    assert done.returncode == 2 and not (tmp_path / "a.gif").exists()
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("ngt: error: MUJOCO_GL: glfw can't render here")
    assert "libegl1" in line
