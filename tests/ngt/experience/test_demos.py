"""Tests of demonstrations: recording, subsampling, files, units of actions and packs.

A pack is a group of runs trained together.
"""

from __future__ import annotations

import dataclasses
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ngt.errors import UserError
from ngt.experience import envs
from ngt.experience.demos import (
    ARRAYS,
    Demos,
    DemoSet,
    Episode,
    assemble,
    from_episodes,
    load,
    record,
    record_random,
    save,
    subsample,
)
from ngt.experience.envs import Task
from ngt.experience.replay import Batch
from ngt.experience.units import ambiguity

END, LIMIT = 33, 40  # step at which the toy env ends an episode, and its time limit


class Clock(gym.Env[np.ndarray, np.ndarray]):
    """A toy env that may end at step END.

    It observes the number of steps in the episode and a number drawn for each episode.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-3.0, 3.0, (1,), np.float32)

    def __init__(self, render_mode: str | None = None, terminate_when_unhealthy: bool = True):
        self.render_mode, self.ends = render_mode, terminate_when_unhealthy

    def observe(self) -> np.ndarray:
        return np.array([self.count, self.name], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.count, self.name = 0, int(self.np_random.integers(1000))
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.count += 1
        ended = self.ends and self.count == END
        return self.observe(), 0.5 * self.count + float(action[0]), ended, False, {}


gym.register("ngt/Clock-v0", Clock)
CLOCK = Task("clock", "ngt/Clock-v0", 2, 1, -3.0, 3.0, LIMIT, can_terminate=True)
LONG = Task("long", "ngt/Clock-v0", 2, 1, -3.0, 3.0, 1000)


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for task in (CLOCK, LONG):
        monkeypatch.setitem(envs.TASKS, task.id, task)


def half(obs: Tensor) -> Tensor:
    """Return the toy policy's action, which starts at 0.5 and falls by 0.01 with each step."""
    return 0.5 - 0.01 * obs[..., :1]


def clock(terminate: bool = True, episodes: int = 3, seed: int = 7) -> Demos:
    return record("clock", half, episodes, seed, source="toy", terminate_when_unhealthy=terminate)


def episode(length: int, name: float = 0.0, terminated: bool = False) -> Episode:
    obs = np.stack([np.arange(length + 1.0), np.full(length + 1, name)], axis=1)
    return Episode(obs, np.zeros((length, 1)), np.arange(length) * 1.0, terminated)


def made(*episodes: Episode, env: str = "long") -> Demos:
    return assemble(env, episodes, np.array([0.0]), "by hand")


# ---------------------------------------------------------------- recording


def test_record_on_pendulum() -> None:
    def swing(obs: Tensor) -> Tensor:
        return (-0.3 * obs[..., 2:3]).clamp(-1.0, 1.0)

    demos = record("Pendulum-v1", swing, 2, 3, source="toy", terminate_when_unhealthy=True)
    assert (demos.env, demos.source) == ("Pendulum-v1", "toy")
    assert demos.length.tolist() == [200, 200]
    assert demos.obs.shape == (2 * 201, 3) and demos.action.shape == (2 * 200, 1)
    for name, (dtype, dims) in ARRAYS.items():
        array = getattr(demos, name)
        assert (array.dtype, array.ndim) == (np.dtype(dtype), dims)
    acts = np.ones(402, bool)
    acts[[200, 401]] = False  # an episode has one more observation than it has actions
    assert np.array_equal(demos.action, swing(torch.from_numpy(demos.obs[acts])).numpy())
    # Replay the episodes one after another in a single env, with the recorded seeds.
    env = envs.make("Pendulum-v1")
    for i, seed in enumerate(demos.seeds):
        obs = [env.reset(seed=int(seed))[0]]
        rewards = []
        for action in demos.action[200 * i : 200 * (i + 1)]:
            step = env.step(action)
            obs.append(step[0])
            rewards.append(float(step[1]))
        assert np.array_equal(demos.obs[201 * i : 201 * (i + 1)], np.stack(obs))
        assert np.allclose(demos.reward[200 * i : 200 * (i + 1)], rewards, rtol=1e-6)
        assert demos.returns[i] == pytest.approx(sum(rewards), rel=1e-6)
    env.close()
    assert len(demos.random_returns) == 2
    assert demos.expert == demos.returns.mean() and demos.random == demos.random_returns.mean()


@pytest.mark.parametrize("terminate", [True, False])
def test_the_last_observation_is_the_true_final_one(terminate: bool) -> None:
    demos = clock(terminate)
    length = END if terminate else LIMIT
    assert demos.length.tolist() == [length] * 3
    counts = demos.obs[:, 0].reshape(3, length + 1)
    assert np.array_equal(counts, [np.arange(length + 1)] * 3), (
        "no observation after a reset must be stored"
    )
    names = demos.obs[:, 1].reshape(3, length + 1)
    assert (names == names[:, :1]).all() and len(set(names[:, 0])) == 3
    assert demos.terminated.tolist() == [terminate] * 3
    steps = np.arange(length)
    assert np.allclose(demos.action[:length, 0], 0.5 - 0.01 * steps)
    # the env receives actions times its bound of 3
    assert np.allclose(demos.reward[:length], 0.5 * (steps + 1) + 3 * (0.5 - 0.01 * steps))
    assert np.allclose(demos.returns, demos.reward[:length].sum())


def test_recording_depends_on_its_seed_and_nothing_else() -> None:
    first, again, other = clock(), clock(), clock(seed=8)
    assert first.checksum == again.checksum != other.checksum
    assert not set(first.seeds) & set(other.seeds)
    more = clock(episodes=4)
    assert np.array_equal(more.seeds[:3], first.seeds), (
        "a larger request must start with the same episodes"
    )
    assert np.array_equal(more.random_returns[:3], first.random_returns)
    assert len(set(first.random_returns)) == 3


# ---------------------------------------------------------------- subsampling


@pytest.mark.parametrize("terminate", [True, False])
@pytest.mark.parametrize("rate", [1, 3, 20])
def test_a_kept_transition_has_its_own_successor(terminate: bool, rate: int) -> None:
    demos = clock(terminate)
    for seed in range(6):
        batch = subsample(demos, 3, rate, seed)
        obs, after = batch.obs[0], batch.next_obs[0]
        assert torch.equal(after[:, 0], obs[:, 0] + 1), (
            "next_obs must be the observation at t + 1, not the next one that is kept"
        )
        assert torch.equal(after[:, 1], obs[:, 1]), "next_obs must be from the same episode"
        assert torch.allclose(batch.action[0], half(obs))
        assert torch.allclose(batch.reward[0], 0.5 * after[:, 0] + 3 * half(obs)[:, 0])
        last = after[:, 0] == (END if terminate else LIMIT)
        assert torch.equal(batch.terminated[0], (last & terminate).float())
        assert {x.dtype for x in batch} == {torch.float32}


def test_offsets_are_below_the_rate_and_of_seed_env_and_episode() -> None:
    demos = made(*(episode(1000, name) for name in range(4)))

    def offsets(data: Demos, seed: int, count: int = 4, rate: int = 20) -> list[int]:
        batch = subsample(data, count, rate, seed)
        starts = [batch.obs[0][batch.obs[0, :, 1] == name, 0] for name in range(count)]
        assert all(torch.equal(s.diff(), torch.full((len(s) - 1,), float(rate))) for s in starts)
        return [int(s[0]) for s in starts]

    drawn = [offsets(demos, seed) for seed in range(30)]
    assert {x for row in drawn for x in row} == set(range(20)), "every offset must occur"
    assert len({tuple(row) for row in drawn}) == 30
    assert offsets(demos, 0) == drawn[0]
    assert offsets(demos, 0, count=2) == drawn[0][:2]
    others = dataclasses.replace(
        demos, action=demos.action + 0.5, reward=demos.reward + 1, source="another expert"
    )
    assert offsets(others, 0) == drawn[0], "offsets must not depend on the content"
    renamed = dataclasses.replace(demos, env="another")
    assert offsets(renamed, 0) != drawn[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 33))
def test_fewer_demonstrations_are_a_prefix_of_more(seed: int, rate: int) -> None:
    demos = made(*(episode(n, n) for n in (40, 33, 35, 100)))
    whole = subsample(demos, 4, rate, seed)
    for count in (1, 2, 3):
        part = subsample(demos, count, rate, seed)
        rows = part.obs.shape[1]
        assert rows < whole.obs.shape[1]
        assert all(torch.equal(a, b[:, :rows]) for a, b in zip(part, whole, strict=True))


@pytest.mark.parametrize(
    ("length", "rate", "rows"),
    [
        (1000, 50, {20}),
        (1000, 20, {50}),
        (100, 20, {5}),
        (1000, 1, {1000}),
        (20, 20, {1}),
        (50, 20, {2, 3}),
    ],
)
def test_how_many_rows_a_demonstration_gives(length: int, rate: int, rows: set[int]) -> None:
    demos = made(episode(length))
    counts = {subsample(demos, 1, rate, seed).obs.shape[1] for seed in range(20)}
    assert counts == rows


def test_rate_one_keeps_every_transition() -> None:
    demos = clock()
    batch = subsample(demos, 3, 1, 0)
    assert torch.equal(batch.action[0], torch.from_numpy(demos.action))
    assert torch.equal(batch.reward[0], torch.from_numpy(demos.reward))
    assert int(batch.terminated.sum()) == 3
    assert batch.terminated[0].nonzero().flatten().tolist() == [32, 65, 98]


def test_terminal_flags_stand_on_last_steps_of_terminated_episodes_alone() -> None:
    demos = made(episode(5, 0, True), episode(6, 1, False), episode(7, 2, True))
    batch = subsample(demos, 3, 1, 0)
    assert batch.terminated[0].tolist() == [0, 0, 0, 0, 1, *[0] * 6, 0, 0, 0, 0, 0, 0, 1]
    none = subsample(made(episode(8, 0, True)), 1, 4, 0)
    kept_last = none.obs[0, -1, 0] == 7
    assert none.terminated[0].tolist() == [0.0, float(kept_last)]


def test_what_can_not_be_subsampled() -> None:
    demos = made(episode(100), episode(7))
    with pytest.raises(UserError) as caught:
        subsample(demos, 3, 5, 0, "demonstrations my.npz")
    assert str(caught.value) == (
        "demonstrations my.npz: field 'demos': requested 3, found 2 episodes; "
        "request 1 to 2, or record more"
    )
    with pytest.raises(UserError, match="requested 0, found 2"):
        subsample(demos, 0, 5, 0)
    with pytest.raises(UserError) as caught:
        subsample(demos, 2, 8, 0, "demonstrations my.npz")
    assert str(caught.value) == (
        "demonstrations my.npz: episode 1 has 7 steps, fewer than rate 8; "
        "lower the rate or leave the episode out"
    )
    assert subsample(demos, 1, 8, 0).obs.shape[1] in (12, 13), "the short episode must not be used"


# ---------------------------------------------------------------- files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "er" / "clock.npz"
    save(path, clock())
    return path


def equal(a: Demos, b: Demos) -> bool:
    return (a.env, a.source) == (b.env, b.source) and all(
        getattr(a, n).dtype == getattr(b, n).dtype and np.array_equal(getattr(a, n), getattr(b, n))
        for n in ARRAYS
    )


def test_round_trip_is_exact(file: Path) -> None:
    back = load(file, "clock")
    assert equal(back, clock())
    assert back.checksum == clock().checksum
    assert equal(load(file), back), "the env must be optional"
    assert list(file.parent.iterdir()) == [file], "no temporary file must remain"


def test_a_file_does_not_depend_on_when_it_was_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, text = load(file).checksum, file.read_bytes()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3e6)
    save(file, clock())
    assert load(file).checksum == before
    assert file.read_bytes() == text


def test_checksum_is_of_env_shapes_and_bytes() -> None:
    demos = clock()
    changed = [dataclasses.replace(demos, env="long")]
    for name in ARRAYS:
        array = getattr(demos, name).copy()
        array.flat[-1] = not array.flat[-1]
        changed.append(dataclasses.replace(demos, **{name: array}))
    changed.append(dataclasses.replace(demos, obs=demos.obs.reshape(-1, 1)))
    sums = {d.checksum for d in [demos, *changed]}
    assert len(sums) == 1 + len(changed)
    assert dataclasses.replace(demos, source="other words").checksum == demos.checksum


def message(path: Path, env: str | None = "clock") -> str:
    """Return the one-line error of `load` without the file's name at its start."""
    with pytest.raises(UserError) as caught:
        load(path, env)
    text = str(caught.value)
    assert "\n" not in text and text.startswith(f"demonstrations {path}: ")
    return text.removeprefix(f"demonstrations {path}: ")


def rewrite(path: Path, **arrays: Any) -> None:
    """Replace arrays of a file but keep its checksum; None omits an array."""
    with np.load(path) as archive:
        data = {**archive, **arrays}
    np.savez(path, **{name: array for name, array in data.items() if array is not None})


def remeta(path: Path, **fields: Any) -> None:
    with np.load(path) as archive:
        meta = json.loads(str(archive["meta"]))
    meta = {k: v for k, v in {**meta, **fields}.items() if v is not None}
    rewrite(path, meta=np.array(json.dumps(meta)))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    said = message(tmp_path / "none.npz")
    assert said == "no such file; `ngt record` writes it, or name another file"


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_truncated_file(file: Path, part: float) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: int(part * len(data))])
    assert message(file).startswith("truncated, or not a NumPy archive (")


def test_a_file_of_something_else(file: Path, tmp_path: Path) -> None:
    file.write_text("step,return\n1,2\n")
    assert message(file) == "truncated, or not a NumPy archive (File is not a zip file)"
    assert message(tmp_path).startswith("truncated, or not a NumPy archive (")
    np.save(tmp_path / "one.npy", np.zeros(3))
    assert message(tmp_path / "one.npy").startswith("truncated, or not a NumPy archive (")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("obs.npy", "text")
    assert message(file).startswith("field 'obs': truncated, or not a NumPy archive (")
    np.savez(file, obs=np.zeros(3))
    assert message(file).startswith(
        "field 'meta' is missing or not JSON; write the file with ngt.experience.demos.save"
    )


@settings(max_examples=60, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_harmless(
    where: float, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Flip one bit of a file: it must be noticed unless it is in an unread part, such as a date."""
    path = tmp_path_factory.getbasetemp() / "flipped.npz"
    whole = made(episode(3), episode(4))
    save(path, whole)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    path.write_bytes(content)
    try:
        back = load(path, "long")
    except UserError as error:
        assert str(error).startswith(f"demonstrations {path}: ") and "\n" not in str(error)
    else:
        assert equal(back, whole)


def test_a_changed_value_is_noticed(file: Path) -> None:
    reward = load(file).reward.copy()
    reward[5] += 1e-3
    checksum = load(file).checksum
    rewrite(file, reward=reward)
    said = message(file)
    assert said.startswith("field 'checksum': found ")
    assert f"expected {checksum[:12]}; the file was changed or damaged" in said


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array(file: Path, name: str) -> None:
    rewrite(file, **{name: None})
    said = message(file)
    found = ", ".join(["meta", *(n for n in ARRAYS if n != name), "spread"])
    assert said == f"field {name!r} is missing; found {found}"


@pytest.mark.parametrize("name", ARRAYS)
def test_a_wrong_type_of_array(file: Path, name: str) -> None:
    dtype, dims = ARRAYS[name]
    array = getattr(load(file), name)
    rewrite(file, **{name: np.zeros(array.shape, "float16")})
    expected = f"expected {dtype} with {dims}"
    assert message(file) == f"field {name!r}: found float16 with {dims} dimensions, {expected}"
    rewrite(file, **{name: array[None]})
    assert message(file) == (
        f"field {name!r}: found {dtype} with {dims + 1} dimensions, {expected}"
    )


def test_an_array_of_objects_is_refused(file: Path) -> None:
    rewrite(file, obs=np.array([{"a": 1}], object))
    said = message(file)
    assert said.startswith("field 'obs': truncated, or not a NumPy archive (Object arrays cannot")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        (
            {"obs": np.zeros((102, 3), np.float32)},
            "field 'obs': found shape (102, 3), expected (102, 2) on clock",
        ),
        (
            {"obs": np.zeros((101, 2), np.float32)},
            "field 'obs': found shape (101, 2), expected (102, 2) on clock",
        ),
        (
            {"action": np.zeros((99, 2), np.float32)},
            "field 'action': found shape (99, 2), expected (99, 1) on clock",
        ),
        (
            {"reward": np.zeros(98, np.float32)},
            "field 'reward': found shape (98,), expected (99,) on clock",
        ),
        (
            {"terminated": np.zeros(2, bool)},
            "field 'terminated': found shape (2,), expected (3,) on clock",
        ),
        (
            {"length": np.array([33, 33, 41])},
            "field 'length': found 41 steps, expected at most 40 on clock",
        ),
        ({"length": np.array([33, 66, 0])}, "field 'length': found [33, 66, 0], expected >= 1"),
        ({"length": np.zeros(0, np.int64)}, "field 'length': found [], expected >= 1"),
        ({"random_returns": np.zeros(0)}, "field 'random_returns': found none, expected at least"),
        (
            {"action": np.full((99, 1), 3.0, np.float32)},
            "field 'action': episode 0, row 0: found 3, expected values in [-1, 1]; ",
        ),
        (
            {"action": np.full((99, 1), -1.5, np.float32)},
            "field 'action': episode 0, row 0: found -1.5, expected",
        ),
        ({"spread": np.zeros(3, np.float32)}, "field 'spread': found shape (3,), expected (2,)"),
        ({"spread": np.zeros(2)}, "field 'spread': found float64 with 1 dimensions, expected"),
        ({"spread": np.full(2, np.nan, np.float32)}, "field 'spread': expected numbers >= 0"),
    ],
)
def test_arrays_that_do_not_fit_the_env(file: Path, arrays: Any, expected: str) -> None:
    rewrite(file, **arrays)
    assert message(file).startswith(expected)


@pytest.mark.parametrize("name", ["obs", "action", "reward", "returns", "random_returns"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_non_finite_value(file: Path, name: str, value: float) -> None:
    array = getattr(load(file), name).copy()
    array.flat[[0, -1]] = value
    rewrite(file, **{name: array})
    row = "" if "returns" in name else ", row 0"
    assert message(file) == (
        f"field {name!r}: episode 0{row}: found {value}, expected finite numbers"
    )


def test_the_episode_and_row_of_a_bad_value_are_named() -> None:
    good = episode(5)
    for name, row in (("obs", 5), ("action", 4), ("reward", 0)):
        array = getattr(good, name).copy()
        array[row] = np.nan
        with pytest.raises(UserError, match=f"field '{name}': episode 1, row {row}: found nan"):
            made(episode(7), good._replace(**{name: array}), episode(3))


def test_a_number_too_large_for_float32_is_said_to_be_that() -> None:
    obs = episode(5).obs
    obs[2, 1] = 1e39
    with pytest.raises(UserError, match=r"episode 1: obs: row 2: found 1e\+39, .* float32"):
        made(episode(5), episode(5)._replace(obs=obs))
    obs[2, 1] = 3e38
    assert made(episode(5)._replace(obs=obs)).obs.max() == np.float32(3e38)


def test_shapes_of_another_env_are_refused_before_the_unit_of_actions() -> None:
    other = episode(5)._replace(obs=np.zeros((6, 11)), action=np.full((5, 3), 9.0))
    with pytest.raises(UserError, match=r"episode 0: obs: found shape \(6, 11\), expected \(6, "):
        from_episodes("Pendulum-v1", [other], np.zeros(1), "a user", actions="env")


def test_an_action_just_outside_is_told_from_one() -> None:
    action = np.zeros((5, 1))
    action[3] = 1 + 1e-7
    with pytest.raises(UserError, match=r"episode 0, row 3: found 1\.00000012, expected values"):
        made(episode(5)._replace(action=action))
    action[3] = 1 + 1e-9  # rounds to 1 in float32
    assert made(episode(5)._replace(action=action)).action.max() == 1.0


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"format": "others"}, "field 'format': found 'others', expected 'ngt-demos'"),
        ({"format": None}, "field 'format': found None, expected 'ngt-demos'"),
        ({"version": 2}, "field 'version': found 2, expected 1"),
        ({"version": None}, "field 'version': found None, expected 1"),
        ({"env": None}, "field 'env': found None, expected text"),
        ({"checksum": 5}, "field 'checksum': found 5, expected text"),
        ({"env": "long"}, "field 'env': found long, expected clock; use a file recorded on it"),
    ],
)
def test_wrong_facts(file: Path, fields: dict[str, Any], expected: str) -> None:
    remeta(file, **fields)
    assert message(file) == expected


@pytest.mark.parametrize("text", ["{", "", "3", "[1]", "null"])
def test_facts_that_are_no_json_mapping(file: Path, text: str) -> None:
    rewrite(file, meta=np.array(text))
    assert message(file).startswith(("field 'meta' is missing or not JSON", "field 'format': "))


def test_a_file_of_another_env(file: Path) -> None:
    said = message(file, "Pendulum-v1")
    assert said == ("field 'env': found clock, expected Pendulum-v1; use a file recorded on it")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"obs": np.zeros((5, 2))}, "episode 0: obs: found shape (5, 2), expected (6, 2) for 5 a"),
        ({"obs": np.zeros((6, 3))}, "episode 0: obs: found shape (6, 3), expected (6, 2)"),
        ({"action": 1.0}, "episode 0: obs: found shape (6, 2), expected (1, 2) for 0 actions"),
        ({"action": None}, "episode 0: action: found no array of numbers"),
        ({"reward": [[1.0], [2.0, 3.0]]}, "episode 0: reward: found no array of numbers"),
        ({"obs": np.full((6, 2), "x")}, "episode 0: obs: found no array of numbers"),
        ({"action": np.full((5, 1), 2.0)}, "field 'action': episode 0, row 0: found 2, expected"),
        ({"reward": np.full(5, np.nan)}, "field 'reward': episode 0, row 0: found nan"),
        ({"action": torch.zeros(5, 1, requires_grad=True)}, "episode 0: action: found no array"),
        ({"seed": None}, "episode 0: seed: found None, expected a 64-bit integer"),
        ({"seed": 2**64}, "episode 0: seed: found 18446744073709551616, expected a 64-bit int"),
        ({"seed": 1.7}, "episode 0: seed: found 1.7, expected a 64-bit integer"),
        ({"terminated": None}, "episode 0: terminated: found None, expected one bool"),
        ({"terminated": "False"}, "episode 0: terminated: found 'False', expected one bool"),
        ({"terminated": np.nan}, "episode 0: terminated: found nan, expected one bool"),
        ({"terminated": np.zeros(5, bool)}, "episode 0: terminated: found array([False, False"),
    ],
)
def test_ones_own_episodes_are_checked_as_well(change: Any, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        made(episode(5)._replace(**change))
    assert str(caught.value).startswith(f"episodes: {expected}")


def test_episodes_may_come_from_a_generator(tmp_path: Path) -> None:
    episodes = (episode(steps)._replace(terminated=np.bool_(steps == 4)) for steps in (4, 5))
    demos = from_episodes("long", episodes, np.zeros(1), "x", actions="unit")
    assert demos.length.tolist() == [4, 5] and demos.terminated.tolist() == [True, False]
    save(f"{tmp_path}/a.npz", demos)
    assert load(f"{tmp_path}/a.npz").checksum == demos.checksum
    with pytest.raises(UserError, match="episode 0: found a tuple, expected an Episode"):
        from_episodes("long", [(1, 2, 3)], np.zeros(1), "x", actions="unit")  # type: ignore


def test_each_of_ones_own_episodes_is_checked_by_itself() -> None:
    short = episode(5)._replace(obs=np.zeros((5, 2)))
    with pytest.raises(UserError, match=r"episode 1: obs: found shape \(5, 2\), expected \(6, 2\)"):
        made(episode(5), short, episode(5)._replace(obs=np.zeros((7, 2))))
    with pytest.raises(UserError, match="episodes: found none"):
        from_episodes("long", [], np.zeros(1), "x", actions="unit")
    for wrong in (None, ["x"]):
        with pytest.raises(UserError, match="random_returns: found no array of numbers"):
            assemble("long", [episode(5)], wrong, "x")  # type: ignore[arg-type]
    assert assemble("long", [episode(5)], 3.0, "x").random == 3.0  # type: ignore[arg-type]


# ---------------------------------------------------------------- units of actions


def acting(value: float) -> Episode:
    return episode(4)._replace(action=np.full((4, 1), value))


def test_actions_in_the_envs_units_are_divided_by_its_bound() -> None:
    demos = from_episodes("long", [acting(3.0), acting(-1.5)], np.zeros(1), "x", actions="env")
    assert demos.action[:, 0].tolist() == [1.0] * 4 + [-0.5] * 4
    rounded = from_episodes("long", [acting(3.00001)], np.zeros(1), "x", actions="env")
    assert rounded.action.max() == 1.0
    with pytest.raises(UserError, match=r"episode 1: action: row 0: found 3\.1, expected -3 to 3"):
        from_episodes("long", [acting(0.0), acting(3.1)], np.zeros(1), "x", actions="env")


def test_the_unit_of_actions_has_to_be_stated() -> None:
    with pytest.raises(TypeError, match="actions"):
        from_episodes("long", [acting(1.0)], np.zeros(1), "x")  # type: ignore[call-arg]
    with pytest.raises(UserError, match="actions: found 'raw', expected 'env'"):
        from_episodes("long", [acting(1.0)], np.zeros(1), "x", actions="raw")


@pytest.mark.parametrize(
    ("env", "value", "numbers"),
    [("Humanoid-v4", 0.4, ("100.0%", "40.0%")), ("Pendulum-v1", 0.5, ("25.0%", "50.0%"))],
)
def test_actions_that_fit_both_units_are_told_with_two_numbers(
    env: str, value: float, numbers: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ngt.experience.demos.measure_spread", lambda env: None)
    task = envs.get_task(env)
    given = Episode(
        np.zeros((3, task.obs)), np.full((2, task.act), -value), np.zeros(2), terminated=False
    )
    for unit in ("env", "unit"):
        with pytest.warns(UserWarning, match="fits both units") as told:
            from_episodes(env, [given], np.zeros(1), "x", actions=unit)
        text = str(told[0].message)
        assert all(number in text for number in numbers) and text.endswith(f"read as {unit!r}")


@pytest.mark.parametrize(("value", "unit"), [(2.5, "env"), (0.3, "unit")])
def test_nothing_is_told_of_actions_that_fit_one_unit(value: float, unit: str) -> None:
    env = "long" if unit == "env" else "Hopper-v4"  # Hopper's bound is 1, so both units agree
    task = envs.get_task(env)
    assert not ambiguity([np.full((2, task.act), value)], unit, task)


def test_the_recorded_random_policy_is_the_reference_of_record() -> None:
    played = record_random("clock", 3, 7, terminate_when_unhealthy=True)
    assert np.array_equal(played.returns, clock().random_returns)
    assert np.array_equal(played.returns, played.random_returns)
    assert np.abs(played.action).max() > 0.5 and played.source == "uniform random"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"action": np.full((5, 1), 2.0, np.float32)}, "field 'action': episode 0, row 0: found 2"),
        ({"reward": np.zeros(5)}, "field 'reward': found float64 with 1 dimensions"),
        ({"source": None}, "field 'source': found None, expected text"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, change: Any, part: str) -> None:
    with pytest.raises(UserError, match=f"demonstrations .*a.npz: {part}"):
        save(tmp_path / "a.npz", dataclasses.replace(made(episode(5)), **change))
    assert list(tmp_path.iterdir()) == []


def test_ones_own_episodes(tmp_path: Path) -> None:
    demos = made(episode(5, 1.0, True), episode(6, 2.0))
    assert demos.returns.tolist() == [10.0, 15.0]
    assert demos.terminated.tolist() == [True, False]
    assert demos.seeds.tolist() == [-1, -1]
    save(tmp_path / "own.npz", demos)
    assert equal(load(tmp_path / "own.npz", "long"), demos)


# ---------------------------------------------------------------- demonstration sets of a pack


def test_sets_of_different_sizes_never_yield_padding(
    make_batch: Callable[..., Batch],
) -> None:
    sizes = (3, 7, 5)
    sets = [make_batch(1, size, 2, 1, seed=i) for i, size in enumerate(sizes)]
    # rows of zeros would be padding
    assert all((field != 0).all() for s in sets for field in (s.obs, s.action, s.reward))
    demos = DemoSet(sets)
    generator = np.random.default_rng(0)
    index = torch.from_numpy(generator.integers(0, 1 << 48, (3, 4096)))
    drawn = demos.sample(index)
    for run, (size, own) in enumerate(zip(sizes, sets, strict=True)):
        row = index[run] % size
        for field, mine in zip(drawn, own, strict=True):
            assert torch.equal(field[run], mine[0, row])
        counts = torch.bincount(row, minlength=size).double() / 4096
        assert (counts - 1 / size).abs().max() < 0.03, "rows must occur about equally often"
    assert drawn.obs.shape == (3, 4096, 2) and drawn.reward.shape == (3, 4096)


def test_every_row_of_every_set_can_be_drawn(make_batch: Callable[..., Batch]) -> None:
    sizes = (2, 5)
    sets = [make_batch(1, size, 2, 1, seed=i) for i, size in enumerate(sizes)]
    drawn = DemoSet(sets).sample(torch.arange(10).expand(2, 10))
    assert torch.equal(drawn.obs[0], sets[0].obs[0].repeat(5, 1))
    assert torch.equal(drawn.obs[1], sets[1].obs[0].repeat(2, 1))


def test_a_set_draws_the_same_rows_alone_and_in_a_pack(make_batch: Callable[..., Batch]) -> None:
    sets = [make_batch(1, size, 2, 1, seed=size) for size in (4, 9)]
    index = torch.randint(0, 1 << 48, (2, 32), generator=torch.Generator().manual_seed(0))
    both = DemoSet(sets).sample(index)
    for run in (0, 1):
        alone = DemoSet([sets[run]]).sample(index[run : run + 1])
        assert all(torch.equal(a[run : run + 1], b) for a, b in zip(both, alone, strict=True))
