"""Training under faults: kills, full and read-only disks, broken envs, clocks.

After each fault, finished files are intact. The same command resumes and ends with the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ngt import cli
from ngt.experience.envs import TASKS, Task, register
from ngt.runs.lock import locked
from ngt.training import checkpoint
from ngt.training.trainer import Trainer

pytestmark = pytest.mark.slow

SMALL = ("--scale", "test", "--set", "expert.train.steps=600", "--set", "checkpoint_every=100")
EXPERT = Path("test/experts/Pendulum-v1")
RESULTS = ("config.json", "eval.csv", "train.csv", "policy.safetensors")


def command(root: Path, *more: str, env: str = "Pendulum-v1") -> list[str]:
    return ["expert", env, "--results", str(root), *SMALL, *more]


def run(root: Path, *more: str, env: str = "Pendulum-v1") -> tuple[int, str]:
    """Run the command in this process and return its exit code and last line of output."""
    import io

    out = io.StringIO()
    try:
        with contextlib.redirect_stderr(out), contextlib.redirect_stdout(out):
            cli.main(command(root, *more, env=env))
    except SystemExit as end:
        return int(end.code or 0), out.getvalue().strip().splitlines()[-1]
    return 0, out.getvalue().strip().splitlines()[-1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed run."""
    root = tmp_path_factory.mktemp("whole")
    assert run(root)[0] == 0
    return root / EXPERT


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed run with other settings."""
    root = tmp_path_factory.mktemp("former")
    assert run(root, "--set", "expert.train.steps=100", "--set", "checkpoint_every=0")[0] == 0
    return root / EXPERT


def stop(root: Path, step: int) -> None:
    """Train up to a step at which the command gets a SIGTERM and leaves a checkpoint."""
    marks = Trainer._log_evaluate_save

    def signalled(trainer: Trainer, stride: int) -> None:
        if trainer.step == step:
            os.kill(os.getpid(), signal.SIGTERM)
        marks(trainer, stride)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_log_evaluate_save", signalled)
        assert run(root)[0] == os.EX_TEMPFAIL
    assert checkpoint.steps(root / EXPERT)[0] == step


def assert_same(folder: Path, whole: Path) -> None:
    assert {p.name for p in folder.iterdir()} == {*RESULTS, "run.json"}
    for name in RESULTS:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name


# ---------------------------------------------------------------- kills


@pytest.mark.long
def test_25_kills_at_random_instants(tmp_path: Path) -> None:
    """Kill 25 attempts, each forked from a process that has already trained undisturbed."""
    script = """
        import json, os, random, signal, sys, time
        from pathlib import Path
        import torch
        from ngt import cli
        from ngt.training import checkpoint

        torch.set_num_threads(1)
        undisturbed, disturbed, folder = json.loads(sys.argv[1])
        cli.main(undisturbed)

        def attempt():
            pid = os.fork()
            if pid == 0:
                try:
                    cli.main(disturbed)
                    os._exit(0)
                except SystemExit as end:
                    os._exit(end.code or 0)
            return pid

        instants, kills = random.Random(0), 0
        for _ in range(25):
            before, pid = checkpoint.steps(Path(folder))[:1], attempt()
            while checkpoint.steps(Path(folder))[:1] == before:
                assert os.waitpid(pid, os.WNOHANG)[0] == 0, "the attempt ended by itself"
                time.sleep(0.001)
            time.sleep(instants.uniform(0, 0.15))
            os.kill(pid, signal.SIGKILL)
            kills += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        print("KILLS", kills, "LAST", os.waitstatus_to_exitcode(os.waitpid(attempt(), 0)[1]))
    """
    more = ("--set", "expert.train.steps=10000")
    folder = tmp_path / "b" / EXPERT
    told = json.dumps([*(command(tmp_path / root, *more) for root in "ab"), str(folder)])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), told],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "KILLS 25 LAST 0" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("resumes from its checkpoint at step") == 25, done.stdout
    assert_same(folder, tmp_path / "a" / EXPERT)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_kill_between_any_two_files_of_a_checkpoint(
    tmp_path: Path, whole: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill the process when it has written `after` files of its fourth checkpoint."""

    class Killed(BaseException):
        pass

    written, real = [0], checkpoint.atomic

    @contextlib.contextmanager
    def dying(path: Path) -> Iterator[Path]:
        if path.parent.name == "checkpoint":
            written[0] += 1
            if written[0] == 3 * 3 + 1 + after:  # each checkpoint writes rows, state and manifest
                raise Killed
        with real(path) as temporary:
            yield temporary

    monkeypatch.setattr(checkpoint, "atomic", dying)
    monkeypatch.setattr("ngt.files.atomic", dying)
    with pytest.raises(Killed):
        cli.main(command(tmp_path))
    monkeypatch.undo()
    assert checkpoint.steps(tmp_path / EXPERT)[0] == (300 if after < 3 else 400)
    assert run(tmp_path)[0] == 0
    assert_same(tmp_path / EXPERT, whole)


# ---------------------------------------------------------------- disks


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """Return a mounted file system of 1 MB, or skip the test."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True
    )
    if done.returncode:
        pytest.skip("this machine cannot mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Fill the disk, leaving `leave` bytes free."""
    ballast = disk / "ballast"
    free = shutil.disk_usage(disk).free
    ballast.write_bytes(b"\0" * max(free - leave, 0))
    return ballast


@pytest.mark.parametrize("leave", [0, 8_192, 65_536])
def test_a_full_disk(tmpfs: Path, former: Path, whole: Path, leave: int) -> None:
    root = tmpfs / "results"
    shutil.copytree(former, root / EXPERT)
    finished = {p.name: p.read_bytes() for p in (root / EXPERT).iterdir()}
    ballast = fill(tmpfs, leave)
    code, line = run(root, "--fresh")
    assert code == 2 and line.startswith("ngt: error: ") and "No space left on device" in line
    assert str(tmpfs) in line or "output" in line
    for name, content in finished.items():
        assert (root / EXPERT / name).read_bytes() == content, "the former run must stay intact"
    ballast.unlink()
    assert run(root, "--fresh")[0] == 0
    assert_same(root / EXPERT, whole)


def test_a_disk_that_fills_up_while_it_trains(tmpfs: Path, whole: Path) -> None:
    root = tmpfs / "results"
    ballast = fill(tmpfs, 120_000)  # room for some checkpoints, but not for all
    code, line = run(root)
    assert code == 2 and "No space left on device" in line
    steps = checkpoint.steps(root / EXPERT)
    assert steps and not (root / EXPERT / "run.json").exists()
    ballast.unlink()
    assert run(root)[0] == 0
    assert_same(root / EXPERT, whole)


def test_a_disk_on_which_nobody_may_write(tmpfs: Path, whole: Path) -> None:
    shutil.copytree(whole, tmpfs / "results" / EXPERT)
    subprocess.run(["mount", "-o", "remount,ro", str(tmpfs)], check=True)
    code, line = run(tmpfs / "results", "--fresh")
    assert code == 2 and line.startswith(f"ngt: error: {tmpfs}/results/test/experts")
    assert line.endswith("Read-only file system")
    assert run(tmpfs / "results")[1].startswith("expert Pendulum-v1: finished already")
    assert_same(tmpfs / "results" / EXPERT, whole)


# ---------------------------------------------------------------- two commands at once


def test_a_second_trainer_says_who_holds_the_folder(tmp_path: Path) -> None:
    with locked(tmp_path / EXPERT):
        code, line = run(tmp_path)
    assert code == 2
    assert line == (
        f"ngt: error: {tmp_path / EXPERT}: being trained by process {os.getpid()} on "
        f"{os.uname().nodename}; wait for it, or stop it"
    )
    assert list((tmp_path / EXPERT).iterdir()) == []


def test_a_killed_trainer_holds_nothing(tmp_path: Path) -> None:
    code = f"""
        import time, pathlib
        from ngt.runs.lock import locked
        with locked(pathlib.Path({str(tmp_path / EXPERT)!r})):
            print("held", flush=True)
            time.sleep(60)
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    assert "being trained by process" in run(tmp_path)[1]
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert run(tmp_path, "--set", "expert.train.steps=200")[0] == 0


# ---------------------------------------------------------------- envs


class Broken(gym.Env[np.ndarray, np.ndarray]):
    """An env with constant observations that breaks after `at` steps in total."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    at, how, taken = 500, "", 0

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(3), {}

    def step(self, action: np.ndarray) -> Any:
        type(self).taken += 1
        obs, reward = np.full(3, 0.1), float(-abs(action[0]))
        if type(self).taken >= self.at:
            if self.how == "raises":
                raise RuntimeError("the simulator\nis unstable")
            obs = np.full(3, np.nan) if self.how == "obs" else obs
            reward = np.nan if self.how == "reward" else reward
        return obs, reward, False, False, {}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Broken]]:
    monkeypatch.setattr(Broken, "taken", 0)
    gym.register("Broken-v0", Broken, max_episode_steps=100)
    monkeypatch.setitem(TASKS, "Broken-v0", None)
    del TASKS["Broken-v0"]
    register(Task("Broken-v0", "Broken-v0", 3, 1, -1.0, 1.0, 100))
    yield Broken
    del gym.registry["Broken-v0"]


def test_an_env_that_raises_is_named_and_the_run_can_go_on(
    tmp_path: Path, broken: type[Broken], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broken, "how", "raises")
    code, line = run(tmp_path, env="Broken-v0")
    assert code == 2 and line == (
        "ngt: error: env 'Broken-v0' raised RuntimeError: the simulator is unstable; fix it, then "
        "the same command resumes from the last checkpoint"
    )
    folder = tmp_path / "test/experts/Broken-v0"
    assert checkpoint.steps(folder) and not (folder / "run.json").exists()
    monkeypatch.setattr(broken, "how", "")
    assert run(tmp_path, env="Broken-v0")[0] == 0
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"


@pytest.mark.parametrize("how", ["obs", "reward"])
def test_an_env_that_returns_nan_ends_the_run_as_diverged(
    tmp_path: Path, broken: type[Broken], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(broken, "how", how)
    code, line = run(tmp_path, env="Broken-v0")
    assert code == 0 and "diverged at step" in line and "is not finite" in line
    record = json.loads((tmp_path / "test/experts/Broken-v0/run.json").read_text())
    assert record["status"] == "diverged" and record["step"] < 600
    if how == "obs":
        assert record["tensor"] == "obs"


# ---------------------------------------------------------------- clocks


def test_a_clock_that_goes_backwards_changes_nothing(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [2e9]

    def backwards() -> float:
        now[0] -= 1000.0
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    monkeypatch.setattr(time, "time_ns", lambda: int(backwards() * 1e9))
    assert run(tmp_path)[0] == 0
    assert_same(tmp_path / EXPERT, whole)
    record = json.loads((tmp_path / EXPERT / "run.json").read_text())
    assert record["train_seconds"] >= 0 and record["steps_per_second"] > 0


# ---------------------------------------------------------------- another run's folder


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    stop(tmp_path, 120)
    code, line = run(tmp_path, "--set", "sac.gamma=0.5")
    assert code == 2 and "config.sac.gamma was 0.99 and is now 0.5" in line
    assert line.endswith("or start over with --restart")


# ---------------------------------------------------------------- damaged checkpoints


def test_damage_anywhere_in_a_checkpoint_costs_at_most_the_checkpoint(
    tmp_path: Path, whole: Path
) -> None:
    """Truncate each of the newest checkpoint's last three files, or flip one bit in it."""
    base = tmp_path / "base"
    stop(base, 252)
    newest = checkpoint.steps(base / EXPERT)[0]
    names = json.loads((base / EXPERT / f"checkpoint/step-{newest}.json").read_text())["files"]
    rng = random.Random(1)
    for i, name in enumerate([*names, f"step-{newest}.json"][-3:]):
        root = tmp_path / f"damaged{i}"
        shutil.copytree(base, root)
        file = root / EXPERT / "checkpoint" / name
        content = bytearray(file.read_bytes())
        if rng.random() < 0.5:
            content = content[: rng.randrange(len(content))]
        else:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        file.write_bytes(content)
        code, _ = run(root)
        assert code == 0, name
        assert_same(root / EXPERT, whole)
