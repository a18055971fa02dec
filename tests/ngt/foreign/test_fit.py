"""Tests of the check that a foreign file's episodes are of the env that the user named."""

from __future__ import annotations

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.experience import envs
from ngt.experience.demos import Episode
from ngt.experience.envs import Task
from ngt.foreign.fit import check_fit
from ngt.foreign.found import Found


def found(obs: int, act: int, gym_id: str | None = None) -> Found:
    episode = Episode(np.zeros((4, obs)), np.full((3, act), 9.0), np.zeros(3), False)
    return Found([episode], gym_id=gym_id)


@pytest.mark.parametrize(
    ("episodes", "env", "part"),
    [
        (found(11, 3), "Walker2d-v4", "; pass --env Hopper-v4"),
        (found(17, 6), "Hopper-v4", "pass --env HalfCheetah-v4 or --env Walker2d-v4 or --env"),
        (found(5, 4), "Hopper-v4", "add the env of these episodes with ngt.experience.envs.reg"),
        (
            found(11, 3, "Hopper-v5"),
            "Walker2d-v4",
            "it was recorded on Hopper-v5, not on Walker2d-v4; pass --env Hopper-v4",
        ),
        (found(17, 6, "Walker2d-v5"), "Hopper-v4", "not on Hopper-v4; pass --env Walker2d-v4"),
        (found(27, 8, "Ant-v4"), "Ant-v4", "on Ant-v4; pass --env Ant-27"),
        (
            found(348, 17, "Humanoid-v5"),
            "Humanoid-v4",
            "on Humanoid-v5, not on Humanoid-v4; add Humanoid-v5 with ngt.experience.envs.reg",
        ),
    ],
)
def test_other_shapes_are_refused_with_both_shapes_and_the_env_to_pass(
    episodes: Found, env: str, part: str
) -> None:
    (episode,), task = episodes.episodes, envs.get_task(env)
    shapes = [episode.obs.shape[1:], episode.action.shape[1:], (task.obs,), (task.act,)]
    with pytest.raises(UserError) as caught:
        check_fit(episodes, env, "npz a.npz")
    said = str(caught.value)
    assert said.startswith(
        "npz a.npz: found observations of shape {} and actions of shape {}, expected {} and {} on "
        "{}; ".format(*shapes, env)
    )
    assert part in said and "unit" not in said and "clip" not in said and "\n" not in said


def test_equal_shapes_of_another_env_are_refused() -> None:
    """HalfCheetah and Walker2d have equal shapes, so only the file's own env tells them apart."""
    with pytest.raises(UserError) as caught:
        check_fit(found(17, 6, "HalfCheetah-v5"), "Walker2d-v4", "minari a")
    assert str(caught.value) == (
        "minari a: it was recorded on HalfCheetah-v5, not on Walker2d-v4; pass --env HalfCheetah-v4"
    )


def test_another_version_or_an_env_of_the_users_own_gets_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(envs.TASKS, "Mine", Task("Mine", "Mine-v0", 11, 3, -1.0, 1.0, 10))
    for episodes, env in (
        (found(11, 3, "Hopper-v5"), "Hopper-v4"),
        (found(11, 3, "Hopper-v4"), "Mine"),
        (found(11, 3, "Strange-v0"), "Hopper-v4"),
    ):
        check_fit(episodes, env, "minari a")
        assert episodes.notes == [f"it was recorded on {episodes.gym_id}, not on {env}"]


def test_the_env_itself_gets_no_note() -> None:
    for episodes, env in (
        (found(11, 3, "Hopper-v4"), "Hopper-v4"),
        (found(11, 3), "Hopper-v4"),
        (found(24, 6, "dm_control/walker-walk-v0"), "walker-walk"),
        (found(27, 8, "Ant-v4"), "Ant-27"),
    ):
        check_fit(episodes, env, "minari a")
        assert episodes.notes == []
