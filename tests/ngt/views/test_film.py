"""Films of envs that cannot be filmed: one line says why."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from ngt.errors import UserError
from ngt.experience import envs
from ngt.experience.envs import Task
from ngt.views.film import film, step_seconds

NAME = "Unseen-v0"


class Unseen(gym.Env):
    """An env whose `shown` is the picture, or the exception, that render() gives."""

    shown: Any = None
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, **_: Any) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), 0.0, False, False, {}

    def render(self) -> Any:
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Register the env; return a policy of it."""
    monkeypatch.setattr(envs, "TASKS", dict(envs.TASKS))
    envs.register(Task(NAME, NAME, obs=2, act=1, low=-1.0, high=1.0, time_limit=9))
    gym.register(NAME, entry_point=Unseen)
    yield lambda obs: obs[..., :1]
    del gym.registry[NAME]


def test_a_picture_for_each_frame(actor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unseen, "shown", np.zeros((4, 6, 3), np.uint8))
    clip = film(NAME, actor, 0, 0.5)
    assert len(clip.frames) == 5 and clip.seconds == 0.1
    assert len(film(NAME, actor, 0, 60.0).frames) == 9, "the episode ends at its time limit"
    assert len(film(NAME, actor, 0, 1e-9).frames) == 1, "a clip has at least one frame"


@pytest.mark.parametrize(
    ("shown", "part"),
    [
        (None, "render() returned NoneType of shape (), expected a picture"),
        (np.zeros((4, 6)), "of shape (4, 6), expected a picture"),
        (ValueError("no colours"), "its render() raised ValueError: no colours"),
        (
            gym.error.DependencyNotInstalled("pygame is missing, run pip"),
            "pygame is missing; pip install av",
        ),
    ],
)
def test_an_env_that_cannot_be_filmed(
    actor: Any, monkeypatch: pytest.MonkeyPatch, shown: Any, part: str
) -> None:
    monkeypatch.setattr(Unseen, "shown", shown)
    with pytest.raises(UserError, match=NAME) as error:
        film(NAME, actor, 0, 1.0)
    assert part in str(error.value)


def test_the_time_of_a_step() -> None:
    def env(**facts: Any) -> Any:
        return SimpleNamespace(unwrapped=SimpleNamespace(**facts), metadata={"render_fps": 50})

    assert step_seconds("x", env()) == 0.02 and step_seconds("x", env(dt=0.1)) == 0.1
    assert step_seconds("x", env(dt=np.float32(0.25))) == 0.25
    for odd in ("now", 0, float("nan"), float("inf")):
        with pytest.raises(UserError, match=f"`dt` or 1 / render_fps, are {odd!r}, not a number"):
            step_seconds("x", env(dt=odd))
    text = SimpleNamespace(unwrapped=SimpleNamespace(), metadata={"render_fps": "30"})
    with pytest.raises(UserError, match="`dt` or 1 / render_fps, are '30', not a number"):
        step_seconds("x", text)  # type: ignore[arg-type]
    bare = SimpleNamespace(unwrapped=SimpleNamespace(), metadata={})
    with pytest.raises(UserError, match="its metadata lacks 'render_fps'"):
        step_seconds("x", bare)  # type: ignore[arg-type]
