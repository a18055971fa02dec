"""Tests of Minari datasets: made with Minari's EpisodeBuffer, then read, written and converted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector.episode_buffer import EpisodeBuffer

from ngt.errors import UserError
from ngt.experience import envs
from ngt.experience.demos import Demos, from_episodes
from ngt.foreign.minari import read, write

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which Minari keeps datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def play(env: gym.Env[Any, Any], seed: int, steps: int = 1000) -> EpisodeBuffer:
    """Return an episode of random actions, with the env's observations left in float64."""
    env.action_space.seed(seed)
    obs, actions, rewards, ends = [env.reset(seed=seed)[0]], [], [], []
    for _ in range(steps):
        actions.append(env.action_space.sample())
        after, reward, terminated, truncated, _ = env.step(actions[-1])
        obs.append(after)
        rewards.append(float(reward))
        ends.append((terminated, truncated))
        if terminated or truncated:
            break
    terminations, truncations = map(list, zip(*ends, strict=True))
    return EpisodeBuffer(None, seed, None, obs, actions, rewards, terminations, truncations)


def dataset(env_id: str, name: str, steps: int = 1000) -> list[EpisodeBuffer]:
    env = gym.make(env_id)
    buffers = [play(env, seed, steps) for seed in (3, 4)]
    minari.create_dataset_from_buffers(name, buffers, env=env)
    env.close()
    return buffers


def imported(name: str, env: str) -> Demos:
    return from_episodes(env, read(Path(name), env).episodes, np.zeros(1), name, actions="env")


def test_a_dataset_made_on_hopper_is_read(root: Path) -> None:
    buffers = dataset("Hopper-v4", "lab/hopper-v0")
    for source in (Path("lab/hopper-v0"), root / "lab/hopper-v0", root / "lab/hopper-v0/data"):
        found = read(source, "Hopper-v4")
        assert found.notes == [] and found.gym_id == "Hopper-v4"
        for episode, buffer in zip(found.episodes, buffers, strict=True):
            assert np.array_equal(episode.obs, np.array(buffer.observations))
            assert np.array_equal(episode.action, np.array(buffer.actions))
            assert episode.reward.tolist() == buffer.rewards
            assert episode.terminated and episode.seed == buffer.seed


@pytest.mark.parametrize("env", ["Hopper-v4", "Pendulum-v1"])
def test_round_trip(env: str) -> None:
    """Convert a dataset from Minari's format to ours, back to Minari's, and to ours again.

    Converting back to Minari's format keeps float32 precision. The result of the last conversion
    must be bitwise identical to that of the first.
    """
    dataset(env, "first-v0")
    ours = imported("first-v0", env)
    write(ours, "second-v0", "here")
    first, second = minari.load_dataset("first-v0"), minari.load_dataset("second-v0")
    assert first.env_spec == second.env_spec
    assert first.observation_space == second.observation_space
    assert first.action_space == second.action_space
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(np.float32(a.observations), np.float32(b.observations))
        assert a.actions.dtype == b.actions.dtype and np.array_equal(a.actions, b.actions)
        assert np.array_equal(np.float32(a.rewards), np.float32(b.rewards))
        assert np.array_equal(a.terminations, b.terminations)
        assert np.array_equal(a.truncations, b.truncations)
    again = imported("second-v0", env)
    for name in ("obs", "action", "reward", "length", "terminated", "seeds"):
        assert np.array_equal(getattr(again, name), getattr(ours, name)), name
    assert np.allclose(again.returns, ours.returns)  # sums in float32 and in float64
    assert np.abs(ours.action).max() <= 1.0


def test_observations_that_are_dictionaries_are_flattened() -> None:
    inner = spaces.Dict({"b": spaces.Box(-9, 9, (2,)), "a": spaces.Box(-9, 9, (1,))})
    space = spaces.Tuple([inner, spaces.Box(-9, 9, ())])
    first = {"a": np.array([[1.0], [2.0]]), "b": np.array([[3.0, 4.0], [5.0, 6.0]])}
    buffer = EpisodeBuffer(
        observations=(first, np.array([7.0, 8.0])),
        actions=np.zeros((1, 1), np.float32),
        rewards=[0.0],
        terminations=[False],
        truncations=[True],
    )
    box = spaces.Box(-1, 1, (1,))
    minari.create_dataset_from_buffers(
        "nested-v0", [buffer], observation_space=space, action_space=box
    )
    found = read(Path("nested-v0"), "Pendulum-v1")
    rows = [
        spaces.flatten(space, ({k: v[i].astype(np.float32) for k, v in first.items()}, last))
        for i, last in enumerate([np.float32(7.0), np.float32(8.0)])
    ]
    assert found.gym_id is None and np.array_equal(found.episodes[0].obs, rows)


class Odd(gym.Env[Any, Any]):
    """An env whose bounds are not symmetric."""

    def __init__(self, low: float, high: float, dtype: str, render_mode: Any = None) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,))
        self.action_space = spaces.Box(low, high, (1,), np.dtype(dtype).type)


def register(monkeypatch: pytest.MonkeyPatch, entry: Any, **kwargs: Any) -> Demos:
    """Register an env with this entry point, and return demonstrations of its extreme actions."""
    monkeypatch.setattr(gym.envs.registration, "registry", dict(gym.registry))
    gym.envs.registration.registry.pop("Odd-v0", None)
    gym.register("Odd-v0", entry_point=entry, max_episode_steps=9, kwargs=kwargs)
    low, high = kwargs["low"], kwargs["high"]
    task = envs.Task("Odd-v0", "Odd-v0", 2, 1, low, high, 9)
    monkeypatch.setattr(envs, "TASKS", {**envs.TASKS, "Odd-v0": task})
    action = np.array([[1.0], [-1.0]], np.float32)
    return Demos(
        env="Odd-v0",
        obs=np.zeros((3, 2), np.float32),
        action=action,
        reward=np.zeros(2, np.float32),
        length=np.array([2]),
        terminated=np.array([False]),
        returns=np.zeros(1),
        seeds=np.array([-1]),
        random_returns=np.zeros(1),
        source="odd",
    )


@pytest.mark.parametrize(
    "low, high, dtype", [(0.1, 0.7, "float64"), (-0.4, 3.0, "float64"), (0.2, 0.9, "float32")]
)
def test_written_actions_are_within_the_envs_bounds(
    monkeypatch: pytest.MonkeyPatch, low: float, high: float, dtype: str
) -> None:
    demos = register(monkeypatch, f"{__name__}:Odd", low=low, high=high, dtype=dtype)
    write(demos, "odd-v0", "here")
    (episode,) = minari.load_dataset("odd-v0")
    space = minari.load_dataset("odd-v0").action_space
    assert all(space.contains(action) for action in episode.actions), episode.actions


def test_a_class_as_entry_point_is_written_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    facts: dict[str, Any] = {"low": -1.0, "high": 1.0, "dtype": "float32"}
    write(register(monkeypatch, Odd, **facts), "odd-v0", "here")
    assert minari.load_dataset("odd-v0").env_spec.entry_point == f"{__name__}:Odd"
    entries = {"lambda-v0": lambda **kw: Odd(**kw), "local-v0": type("X", (Odd,), {})}
    for name, entry in entries.items():
        with pytest.raises(
            UserError, match=r"env 'Odd-v0': a dataset can't name this env .*regist"
        ):
            write(register(monkeypatch, entry, **facts), name, "here")


def test_what_is_refused(root: Path) -> None:
    with pytest.raises(UserError, match="no such dataset"):
        read(Path("lab/none-v0"), "Hopper-v4")
    dataset("Hopper-v4", "hopper-v0", steps=3)
    ours = imported("hopper-v0", "Hopper-v4")
    with pytest.raises(UserError, match="--id: dataset hopper-v0 exists"):
        write(ours, "hopper-v0", "here")
    with pytest.raises(UserError, match="--id: found 'no version'"):
        write(ours, "no version", "here")
    odd = dataclasses.replace(ours, source=None)
    with pytest.raises(AttributeError), pytest.MonkeyPatch.context() as patch:
        patch.setattr("ngt.foreign.minari._buffers", lambda *_: [None])
        write(odd, "half-v0", "here")
    assert not (root / "half-v0").exists(), "a failed write must leave no dataset"
    meta = root / "hopper-v0/data/metadata.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "minari_version": "9.0.0"}))
    with pytest.raises(UserError, match=r"minari can't read it.*9\.0\.0"):
        read(root / "hopper-v0", "Hopper-v4")
    meta.write_text("nonsense")
    with pytest.raises(UserError, match="minari can't read it"):
        read(root / "hopper-v0", "Hopper-v4")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "minari", None)
    with pytest.raises(UserError, match=r"needs the package minari .*pip install h5py"):
        read(Path("any"), "Hopper-v4")


def test_seeds_that_are_too_large_are_left_out(root: Path) -> None:
    dataset("Hopper-v4", "hopper-v0", steps=3)
    with h5py.File(root / "hopper-v0/data/main_data.hdf5", "a") as file:
        file["episode_0"].attrs["seed"] = np.uint64(2**63)
    assert [e.seed for e in read(root / "hopper-v0", "Hopper-v4").episodes] == [-1, 4]
