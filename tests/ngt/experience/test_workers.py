"""Tests of env processes: they give the same numbers as one process, report faults and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ngt.errors import UserError
from ngt.experience import envs, vector
from ngt.experience.envs import TASKS, Task
from ngt.experience.vector import VectorEnv
from ngt.experience.workers import Workers, ending


def assert_same(a: Any, b: Any) -> None:
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype and np.array_equal(x, y)


@pytest.mark.parametrize(
    ("workers", "shares"), [(1, [5]), (2, [2, 3]), (3, [1, 2, 2]), (5, [1] * 5), (9, [1] * 5)]
)
def test_shares_are_even_and_numbers_those_of_one_process(workers: int, shares: list[int]) -> None:
    """Compare env processes with envs in this process, also after ends and after a restore."""
    here, there = VectorEnv("Hopper-v4", 5), VectorEnv("Hopper-v4", 5, workers=workers)
    assert isinstance(there._envs, Workers)
    assert [s.stop - s.start for s in there._envs.shares] == shares
    assert len({p.pid for p in there._envs.processes} - {os.getpid()}) == len(shares)
    rng = np.random.default_rng(0)
    assert np.array_equal(here.reset(range(5)), there.reset(range(5)))
    ended = 0
    for t in range(80):
        if t == 60:
            state = here.state()
            assert_same(state.tensors.values(), there.state().tensors.values())
            shares = [here.state(slice(0, 2)), here.state(slice(2, 5))]
            there.reset([9] * 5)
            assert np.array_equal(there.restore(shares), here.restore([state]))
        action = rng.uniform(-1, 1, (5, 3))
        a, b = here.step(action), there.step(action)
        assert_same(a, b)
        ended += int(a.terminated.sum())
    assert ended > 5
    here.close()
    there.close()


class Faulty(gym.Env[np.ndarray, np.ndarray]):
    """An env that raises at its third step."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode, self.taken = render_mode, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(3), {}

    def step(self, action: np.ndarray) -> Any:
        self.taken += 1
        if self.taken == 3:
            raise RuntimeError("the simulator\nis unstable")
        return np.zeros(3), 0.0, False, False, {}


gym.register("Faulty-v0", Faulty, max_episode_steps=9)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("Faulty-v0", "Faulty-v0", 3, 1, -1.0, 1.0, 9)
    monkeypatch.setattr(envs, "TASKS", {**TASKS, task.id: task})


@pytest.mark.parametrize("workers", [0, 2])
def test_what_an_env_raises_is_one_line(faulty: None, workers: int) -> None:
    env = VectorEnv("Faulty-v0", 3, workers=workers)
    env.reset(range(3))
    with pytest.raises(UserError) as error:
        for _ in range(3):
            env.step(np.zeros((3, 1)))
    assert str(error.value) == (
        "env 'Faulty-v0' raised RuntimeError: the simulator is unstable; fix it, then the same "
        "command resumes from the last checkpoint"
    )
    env.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_env_that_cannot_be_made_is_refused_alike(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    wrong = Task("wrong", "Hopper-v4", 12, 3, -1.0, 1.0, 1000)
    monkeypatch.setattr(envs, "TASKS", {**TASKS, "wrong": wrong})
    with pytest.raises(UserError, match="env 'wrong': obs is 11 in the live env and 12"):
        VectorEnv("wrong", 2, workers=workers)


def test_a_process_that_was_killed_is_named() -> None:
    env = VectorEnv("Pendulum-v1", 4, workers=2)
    env.reset(range(4))
    assert isinstance(env._envs, Workers)
    env._envs.processes[1].kill()
    with pytest.raises(UserError, match=r"'Pendulum-v1': .* killed by SIGKILL.* memory") as raised:
        env.step(np.zeros((4, 1)))
    assert "mend" not in str(raised.value)
    env.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "exit code 3"),
        (-11, "SIGSEGV because of a fault"),
        (-15, "SIGTERM"),
        (-64, "SIGRTMAX"),
        (-99, "signal 99"),
    ],
)
def test_how_a_process_ended_is_said(code: int, words: str) -> None:
    assert words in ending(code)


def killed() -> Any:
    """Kill the current process, as the system does if an env needs too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_killed_while_it_makes_its_envs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector, "_make_seeded", lambda *_: killed())
    with pytest.raises(UserError, match="killed by SIGKILL"):
        VectorEnv("Pendulum-v1", 2, workers=1)


def test_signals_to_the_whole_group_are_the_parents_to_heed() -> None:
    """Check that env processes ignore signals, so that training still reaches a checkpoint.

    A cluster sends its signals to every process of a job.
    """
    env = VectorEnv("Pendulum-v1", 2, workers=2)
    env.reset(range(2))
    assert isinstance(env._envs, Workers)
    for process in env._envs.processes:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            os.kill(process.pid, number)
    assert np.isfinite(env.step(np.zeros((2, 1))).obs).all()
    start, processes = time.monotonic(), env._envs.processes
    env.close()
    env.close()
    assert not any(process.is_alive() for process in processes)
    assert time.monotonic() - start < 1.0, "the processes must end without being killed"


def is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["kill -9", "while stepping", "leaves"])
def test_processes_end_with_their_parent(how: str) -> None:
    """Kill the parent, kill it during a step, or let it exit without closing its envs."""
    code = """
        import os, sys, time
        import numpy as np
        from ngt.experience.vector import VectorEnv

        env = VectorEnv("Pendulum-v1", 4, workers=2)
        env.reset(range(4))
        child = os.fork()  # outlives the parent and holds its pipes
        if child == 0:
            time.sleep(30)
            os._exit(0)
        print(child, *(p.pid for p in env._envs.processes), flush=True)
        while sys.argv[1] == "while stepping":
            env.step(np.zeros((4, 1)))
        if sys.argv[1] == "kill -9":
            time.sleep(30)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None and parent.stderr is not None
    child, *pids = map(int, parent.stdout.readline().split())
    try:
        if how != "leaves":
            assert all(is_there(pid) for pid in pids)
            time.sleep(0.2)
            parent.kill()
        assert parent.wait(20) == (0 if how == "leaves" else -signal.SIGKILL)
        deadline = time.monotonic() + 10
        while any(is_there(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(is_there(pid) for pid in pids)
    finally:
        os.kill(child, signal.SIGKILL)
    assert parent.stderr.read() == "", "the parent must print no error"
    parent.stdout.close()
    parent.stderr.close()
