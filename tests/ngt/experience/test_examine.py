"""Tests of suspicious demonstrations, with ends or columns that the env cannot have produced."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.experience import envs
from ngt.experience.demos import Demos, Episode, assemble, load, save
from ngt.experience.examine import doubts, listed, measure_spread
from ngt.experience.vector import VectorEnv

WALKER = "Walker2d-v4"


def random_episodes(env: str, steps: list[int]) -> list[Episode]:
    """Return episodes of a random policy, each cut off after at most the given steps."""
    vec, dice, out = VectorEnv(env, 1), np.random.default_rng(0), []
    for seed, most in enumerate(steps):
        obs, actions, rewards, ended = [vec.reset([seed])[0]], [], [], False
        while len(actions) < most and not ended:
            actions.append(dice.uniform(-1, 1, vec.task.act).astype(np.float32))
            step = vec.step(actions[-1][None])
            obs.append(step.next_obs[0])
            rewards.append(step.reward[0])
            ended = bool(step.terminated[0])
        out.append(Episode(np.array(obs), np.array(actions), np.array(rewards), ended))
    vec.close()
    return out


def made(env: str, *episodes: Episode) -> Demos:
    return assemble(env, episodes, np.zeros(1), "by hand")


def still(episode: Episode, columns: Any, value: float = 0.0) -> Episode:
    """Return a copy of the episode in which some columns never change."""
    obs = episode.obs.copy()
    obs[:, columns] = value
    return episode._replace(obs=obs)


def long(env: str, ended: bool) -> Episode:
    """Return an episode of random numbers that lasts until the time limit."""
    task, dice = envs.get_task(env), np.random.default_rng(0)
    steps = task.time_limit
    obs, action = dice.normal(size=(steps + 1, task.obs)), np.zeros((steps, task.act))
    return Episode(obs, action, np.zeros(steps), ended)


# ---------------------------------------------------------------- ends


def test_an_end_at_the_time_limit() -> None:
    episodes = long(WALKER, True), long(WALKER, False), long(WALKER, True), long(WALKER, True)
    (doubt,) = doubts(made(WALKER, *episodes))
    assert doubt.startswith("episodes 0, 2 to 3: terminated at step 1000")


def test_an_end_before_the_time_limit_is_no_doubt() -> None:
    (fell,) = random_episodes(WALKER, [1000])
    assert fell.terminated and len(fell.action) < 1000
    demos = made(WALKER, fell, long(WALKER, False))
    assert doubts(demos) == []
    (doubt,) = doubts(demos, terminate_when_unhealthy=False)
    assert doubt.startswith(f"episode 0: terminated, but {WALKER} never does with terminate_when")


def test_an_end_on_an_env_that_never_terminates() -> None:
    (episode,) = random_episodes("Pendulum-v1", [200])
    (doubt,) = doubts(made("Pendulum-v1", episode, episode._replace(terminated=True)))
    assert doubt.startswith("episode 1: terminated, but Pendulum-v1 never does: ")


def test_an_episode_that_is_cut_off() -> None:
    """Check that only an episode's last step may be absent, as in imports without its next_obs."""
    ends = made("Pendulum-v1", *random_episodes("Pendulum-v1", [50, 200, 199, 198]))
    (doubt,) = doubts(ends)
    assert doubt.startswith("episodes 0, 3: cut off, neither terminated nor at step 200")


def test_nothing_is_known_of_ends_on_a_task_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = dataclasses.replace(envs.get_task("Pendulum-v1"), id="mine")
    monkeypatch.setitem(envs.TASKS, "mine", mine)
    (episode,) = random_episodes("mine", [30])
    assert doubts(made("mine", episode._replace(terminated=True))) == []
    (doubt,) = doubts(made("mine", long("mine", True)))
    assert "which is the time limit of mine" in doubt


# ---------------------------------------------------------------- columns


@pytest.mark.slow
def test_contact_forces_that_are_missing_are_told_from_those_that_are_always_zero() -> None:
    cut = random_episodes("Ant-v4", [300, 300])
    episodes = [episode._replace(terminated=True) for episode in cut]
    whole = made("Ant-v4", *episodes)
    constant = np.ptp(whole.obs, axis=0) == 0
    assert 20 <= constant.sum() <= 60 and doubts(whole) == []
    (doubt,) = doubts(made("Ant-v4", *[still(e, slice(27, None)) for e in episodes]))
    assert doubt.startswith("episodes 0 to 1: columns 27 to 110 of obs never change")


def test_the_episodes_and_columns_are_named() -> None:
    a, b, c = random_episodes(WALKER, [1000] * 3)
    found = doubts(made(WALKER, still(a, [2]), b, still(c, [0, 5, 6, 7], 1.5)))
    assert [text.partition(" of obs")[0] for text in found] == [
        "episode 0: column 2",
        "episode 2: columns 0, 5 to 7",
    ]


def test_a_goal_that_is_the_same_for_an_episode_is_no_doubt() -> None:
    episodes = random_episodes("Reacher-v5", [50])
    assert (np.ptp(episodes[0].obs, axis=0) == 0).sum() == 2
    assert doubts(made("Reacher-v5", *episodes)) == []


def test_the_spread_is_the_same_each_time() -> None:
    first = measure_spread("Pendulum-v1")
    assert (first > 0).all() and first.dtype == np.float32
    assert np.array_equal(first, measure_spread("Pendulum-v1"))


# ---------------------------------------------------------------- files


@pytest.fixture
def odd() -> Demos:
    (episode,) = random_episodes("Pendulum-v1", [200])
    return made("Pendulum-v1", still(episode, [1]))


def test_writing_and_reading_warn(odd: Demos, tmp_path: Path) -> None:
    path = tmp_path / "odd.npz"
    for act in (lambda: save(path, odd), lambda: load(path)):
        with pytest.warns(UserWarning, match=r"odd\.npz: episode 0: column 1 of obs"):
            act()
    with pytest.raises(UserError, match=r"odd\.npz: episode 0: column 1 of obs"):
        load(path, strict=True)
    with pytest.warns(UserWarning):
        again = load(path)
    assert odd.spread is not None and again.spread is not None
    assert np.array_equal(odd.spread, again.spread)


def test_a_file_without_spread_is_read_without_a_word_and_has_the_same_checksum(
    odd: Demos, tmp_path: Path
) -> None:
    bare = dataclasses.replace(odd, spread=None)
    assert bare.checksum == odd.checksum
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(tmp_path / "bare.npz", bare)
        assert load(tmp_path / "bare.npz", strict=True).spread is None


def test_numbers_are_listed_with_their_ranges() -> None:
    assert listed("column", [3]) == "column 3"
    assert listed("column", [0, 2, 3, 4, 9]) == "columns 0, 2 to 4, 9"


def test_what_never_terminates() -> None:
    assert envs.never_terminates("HalfCheetah-v4") and not envs.never_terminates("Hopper-v4")
    assert envs.never_terminates("Hopper-v4", terminate_when_unhealthy=False)
