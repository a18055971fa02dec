"""Videos: small files with all frames and a comment on the policy; rendering with OpenGL."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.errors import UserError
from ngt.experience import shipped
from ngt.experience.envs import get_task
from ngt.settings.config import SacConfig
from paper.handbook import video
from paper.handbook.video import QUALITY, Clip, encode, shrink

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def clip() -> Clip:
    """Return a clip of a white square that moves over static noise."""
    ground = np.random.default_rng(0).integers(0, 200, (120, 160, 3), np.uint8)
    frames = []
    for i in range(10):
        frame = ground.copy()
        frame[40:80, 10 * i : 10 * i + 40] = 255
        frames.append(frame)
    return Clip(frames, 0.05)


def frames_of(content: bytes) -> list[np.ndarray]:
    with Image.open(io.BytesIO(content)) as image:
        out = []
        for i in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(i)
            out.append(np.asarray(image.convert("RGB"), float))
        return out


def test_a_gif_has_the_frames_their_time_and_its_words(clip: Clip) -> None:
    content = encode(clip, 160, 1, 64, "of mine")
    with Image.open(io.BytesIO(content)) as image:
        assert image.size == (160, 120) and image.info["duration"] == 50
        assert image.info["comment"] == b"of mine" and image.info["loop"] == 0
    shown = frames_of(content)
    assert len(shown) == 10
    for i, frame in enumerate(shown):
        assert frame[45:75, 10 * i + 5 : 10 * i + 35].mean() > 240, (
            "the square is in the wrong place"
        )
    still = [frame[:30] for frame in shown]
    assert all(np.array_equal(still[0], other) for other in still), "the background flickers"
    half = encode(clip, 80, 2, 16, "")
    with Image.open(io.BytesIO(half)) as image:
        assert image.size == (80, 60) and image.info["duration"] == 100
    assert len(frames_of(half)) == 5 and len(half) < len(content)


def test_the_best_quality_that_fits(clip: Clip) -> None:
    sizes = [len(encode(clip, *quality, "")) for quality in QUALITY]
    assert len(shrink(clip, "", sizes[0])) == sizes[0]
    limit = sizes[0] - 1
    first = next(size for size in sizes if size <= limit)
    assert len(shrink(clip, "", limit)) == first
    with pytest.raises(UserError, match=r"--seconds: [0-9]+ bytes at the lowest quality"):
        shrink(clip, "", min(sizes) - 1)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["HalfCheetah-v4"], "the following arguments are required: --out"),
        (["HalfCheeta-v4", "--out", "a.gif"], "'HalfCheeta-v4' is unknown"),
        (["HalfCheetah-v4", "--out", "a.mp4"], "a.mp4 is not a .gif"),
        (["HalfCheetah-v4", "--out", "a.gif", "--seconds", "0"], "must be above 0"),
        (["Reacher-v5", "--out", "a.gif"], "no expert of Reacher-v5 ships"),
        (["Reacher-v5", "--out", "a.gif", "--policy", "cheetah"], "trained on HalfCheetah-v4"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    part: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    cheetah = shipped.DATA / "HalfCheetah-v4" / shipped.POLICY
    (tmp_path / "cheetah").write_bytes(cheetah.read_bytes())
    with pytest.raises(SystemExit) as stop:
        video.main(arguments)
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.startswith("video: error: ") and err.count("\n") == 1
    assert part in err and list(tmp_path.glob("*.gif")) == []


def record(
    folder: Path, env: str, *more: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a new process, since a process has only one renderer."""
    return subprocess.run(
        [sys.executable, "-m", "paper.handbook.video", env, "--out", str(folder / "a.gif"), *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MUJOCO_GL": "egl", **variables},
    )


@pytest.mark.slow
@pytest.mark.parametrize("env", ["HalfCheetah-v4", "Pusher-v5", "finger-spin"])
def test_a_video_of_an_env(tmp_path: Path, env: str) -> None:
    """Check that the video moves and is no longer than requested."""
    task, sac = get_task(env), SacConfig(hidden=(8,))
    torch.manual_seed(0)
    tensors = Policy(Actor(task.obs, task.act, sac, [0]), None).snapshot(0)
    policy.save(tmp_path / "policy", tensors, env, sac)
    done = record(tmp_path, env, "--policy", str(tmp_path / "policy"), "--seconds", "0.5")
    if "can't render here" in done.stderr:
        pytest.skip("EGL is not available")
    assert done.returncode == 0, done.stderr
    content = (tmp_path / "a.gif").read_bytes()
    with Image.open(io.BytesIO(content)) as image:
        assert image.info["comment"].decode() == video.comment_of(tmp_path / "policy")
        assert 9 <= image.n_frames <= 13  # type: ignore[attr-defined]
    frames = frames_of(content)
    assert len(content) <= video.LARGEST and frames[0].std() > 5, (
        "there must be more than one colour"
    )
    assert np.abs(frames[-1] - frames[0]).mean() > 0.1


@pytest.mark.slow
def test_without_a_renderer_it_says_what_to_install(tmp_path: Path) -> None:
    done = record(tmp_path, "HalfCheetah-v4", MUJOCO_GL="glfw", DISPLAY="")
    assert done.returncode == 2 and not (tmp_path / "a.gif").exists()
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("video: error: MUJOCO_GL: glfw can't render here")
    assert "libegl1" in line
