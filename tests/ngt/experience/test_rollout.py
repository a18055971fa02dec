"""Tests of rollouts, which play one whole episode in each env, each with its own seed.

A pack is a group of runs trained together.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ngt.agent.policy import Policy
from ngt.agent.sac import Actor
from ngt.experience import envs
from ngt.experience.envs import Task, make
from ngt.experience.rollout import Evaluator, rollout
from ngt.experience.vector import VectorEnv
from ngt.seeding import derive
from ngt.settings.config import SacConfig

LIMIT = 12


class Fuse(gym.Env[np.ndarray, np.ndarray]):
    """A toy env whose reward is the step's number; its seed sets its length, 2 to 9 steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.count, self.end = 0, int(self.np_random.integers(2, 10))
        return np.array([0, self.end], np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.count += 1
        obs = np.array([self.count, self.end], np.float32)
        return obs, float(self.count), self.count == self.end, False, {}


gym.register("ngt/Fuse-v0", Fuse)
FUSE = Task("fuse", "ngt/Fuse-v0", 2, 1, -1.0, 1.0, LIMIT)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(envs.TASKS, FUSE.id, FUSE)


def still(obs: Tensor) -> Tensor:
    return torch.zeros(*obs.shape[:-1], 1)


def policies(env: str, seeds: list[int]) -> Policy:
    task = envs.get_task(env)
    return Policy(Actor(task.obs, task.act, SacConfig(hidden=(16,)), seeds), None)


def by_hand(env: str, act: Any, seed: int) -> tuple[float, int]:
    """Play one episode in a plain env and return its return and length."""
    single = make(env)
    obs, _ = single.reset(seed=seed)
    total, length, done = 0.0, 0, False
    while not done:
        action = act(torch.from_numpy(obs)[None, None])[0, 0].numpy()
        obs, reward, terminated, truncated, _ = single.step(action)
        total, length, done = total + float(reward), length + 1, terminated or truncated
    single.close()
    return total, length


# ---------------------------------------------------------------- one rollout


def test_one_whole_episode_from_each_env() -> None:
    seeds = list(range(20))
    env = VectorEnv("fuse", 20)
    result = rollout(env, still, seeds, runs=4, keep=True)
    env.close()
    ends = [by_hand("fuse", still, seed)[1] for seed in seeds]
    assert len(set(ends)) > 3, "the episodes must differ in length"
    assert result.lengths.reshape(-1).tolist() == ends
    assert result.returns.reshape(-1).tolist() == [n * (n + 1) / 2 for n in ends], (
        "each env must play one episode"
    )
    assert result.lengths.shape == result.returns.shape == (4, 5)
    assert len(result.episodes) == 20
    for (obs, action, reward, terminated), n in zip(result.episodes, ends, strict=True):
        assert (len(obs), len(action), len(reward)) == (n + 1, n, n)
        assert obs[:, 0].tolist() == list(range(n + 1)), (
            "the final observation must be the true one"
        )
        assert reward.tolist() == list(range(1, n + 1))
        assert terminated


def test_a_rollout_may_be_repeated_on_the_same_envs() -> None:
    env = VectorEnv("fuse", 6)
    first = rollout(env, still, list(range(6)), runs=1)
    other = rollout(env, still, list(range(6, 12)), runs=1)
    again = rollout(env, still, list(range(6)), runs=1)
    env.close()
    assert np.array_equal(first.returns, again.returns)
    assert not np.array_equal(first.returns, other.returns)
    assert first.episodes == [], "episodes must be kept only on request"


@pytest.mark.parametrize("env", ["Pendulum-v1", "Hopper-v4"])
def test_returns_equal_a_loop_over_a_single_env(env: str) -> None:
    policy, seeds = policies(env, [3]), [11, 12, 13]
    vector = VectorEnv(env, 3)
    result = rollout(vector, policy, seeds, runs=1)
    vector.close()
    hand = [by_hand(env, policy, seed) for seed in seeds]
    assert result.lengths[0].tolist() == [length for _, length in hand]
    # a batch of three and a batch of one may round differently
    assert np.allclose(result.returns[0], [total for total, _ in hand], rtol=1e-4)


# ---------------------------------------------------------------- evaluations


def seeds_of(evaluator: Evaluator, index: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run an evaluation and return the env seeds that it uses."""
    seen: list[list[int]] = []
    reset = evaluator.env.reset

    def watched(seeds: Any) -> Any:
        seen.append(list(seeds))
        return reset(seeds)

    monkeypatch.setattr(evaluator.env, "reset", watched)
    evaluator.run(still, index)
    return seen[0]


def test_every_episode_has_a_new_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [(0, 1), (1, 1), (0, 4)]  # (seed, demonstrations)
    evaluator = Evaluator("fuse", keys, 5)
    drawn = [seeds_of(evaluator, index, monkeypatch) for index in range(4)]
    evaluator.close()
    flat = [seed for seeds in drawn for seed in seeds]
    assert len(set(flat)) == len(flat) == 4 * 3 * 5
    # Seeds are ordered by run, then episode. They do not depend on the method.
    assert drawn[2] == [derive(s, "eval", "fuse", k, 2, e) for s, k in keys for e in range(5)]


def test_seeds_of_a_run_do_not_depend_on_the_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = Evaluator("fuse", [(0, 1), (1, 4)], 3)
    alone = Evaluator("fuse", [(1, 4)], 3)
    longer = Evaluator("fuse", [(1, 4)], 5)
    own = seeds_of(alone, 7, monkeypatch)
    assert seeds_of(pack, 7, monkeypatch)[3:] == own
    assert seeds_of(longer, 7, monkeypatch)[:3] == own
    for evaluator in (pack, alone, longer):
        evaluator.close()


def test_policies_in_one_call_equal_one_by_one() -> None:
    keys, inits = [(0, 1), (1, 1), (2, 4)], [5, 6, 7]
    together = Evaluator("Pendulum-v1", keys, 2)
    result = together.run(policies("Pendulum-v1", inits), 3)
    together.close()
    assert len({tuple(row) for row in result.returns}) == 3
    for run, (key, init) in enumerate(zip(keys, inits, strict=True)):
        alone = Evaluator("Pendulum-v1", [key], 2)
        single = alone.run(policies("Pendulum-v1", [init]), 3)
        alone.close()
        assert np.allclose(single.returns[0], result.returns[run], rtol=1e-5)
        assert np.array_equal(single.lengths[0], result.lengths[run])


def test_the_choice_to_terminate_reaches_the_envs() -> None:
    lengths = {}
    for terminate in (True, False):
        evaluator = Evaluator("Hopper-v4", [(0, 1)], 2, terminate_when_unhealthy=terminate)
        lengths[terminate] = evaluator.run(policies("Hopper-v4", [0]), 0).lengths
        evaluator.close()
    assert (lengths[False] == 1000).all()
    assert (lengths[True] < 1000).all()
