"""Tasks and their envs. Envs have flat float32 observations, and actions in [-1, 1].

A task states facts about an env, such as its sizes. To add a task, register the env with gymnasium
(`gym.register`), then register the facts with `register(Task(...))`. Every env that is made is
compared with its task.
"""

import contextlib
import difflib
import importlib
import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import (
    DtypeObservation,
    FlattenObservation,
    RescaleAction,
    TransformAction,
)

from ngt.errors import UserError
from ngt.experience.workers import Env, reason
from ngt.text import check_name

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """Facts about one env."""

    id: str  # the id that users write, such as "Ant-v4" or "walker-walk"
    gym_id: str  # the id for gymnasium.make, such as "dm_control/walker-walk-v0"
    obs: int  # number of values in a flat observation
    act: int  # number of values in an action
    low: float  # the env's own lower action bound, the same in every dimension
    high: float  # the env's own upper action bound, the same in every dimension
    time_limit: int  # number of steps after which an episode is truncated
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)  # for gymnasium.make
    # True if the env accepts the `terminate_when_unhealthy` option and terminates episodes only if
    # this option is True. False if the env has no such option. The suite's own tasks that lack the
    # option never terminate.
    can_terminate: bool = False
    # Mean returns published with the code of NGT's authors. These returns are only a rough guide to
    # the quality of this suite's experts: in the authors' code, episodes never end early, and Ant's
    # observations have size 27.
    published_random: float | None = None
    published_expert: float | None = None
    # The mean return that the expert in data/ should reach, or None if data/ should have no expert.
    aim: float | None = None

    @property
    def half_range(self) -> float:
        """Return half the width of the action bounds."""
        return 0.5 * (self.high - self.low)

    def least_episode(self, terminate_when_unhealthy: bool = True) -> int:
        """Return a lower bound on the mean length of episodes during training.

        On average, the episodes of a random policy have 21 steps on Walker2d-v4, 24 on Hopper-v4
        and 25 on Humanoid-v4.
        """
        return 20 if self.can_terminate and terminate_when_unhealthy else self.time_limit


TASKS: dict[str, Task] = {}

# Maps the id of each env that the suite refuses to the reason and the id to use instead.
REFUSED = {
    "Pusher-v4": (
        "gymnasium refuses it on mujoco >= 3 (its object is lighter than air and is never pushed)",
        "Pusher-v5",
    ),
}


def register(task: Task) -> None:
    """Add a task. Raise UserError if the id already belongs to a different task."""
    check_name(task.id, "task id")  # gym_id may be any text, so it is not checked
    if TASKS.setdefault(task.id, task) != task:
        raise UserError(f"task id {task.id!r} is already registered; choose another id")


def get_task(task_id: str) -> Task:
    """Return a registered task, or raise a UserError that lists similar ids."""
    if task_id in TASKS:
        return TASKS[task_id]
    if task_id in REFUSED:
        why, instead = REFUSED[task_id]
        raise UserError(f"env {task_id!r} is refused: {why}; use {instead}")
    nearest = difflib.get_close_matches(task_id, TASKS, n=3, cutoff=0.6) or sorted(TASKS)
    raise UserError(
        f"env {task_id!r} is unknown: use one of {', '.join(nearest)}, or add it with "
        "ngt.experience.envs.register in a module listed in the config's `imports`"
    )


# In the paper's table, Ant's observations have size 111. The authors' public code uses Gymnasium's
# default, without contact forces, where observations have size 27. In this suite, the default is
# called Ant-27.
_FORCES = {"use_contact_forces": True}

for _task in (
    Task("Ant-v4", "Ant-v4", 111, 8, -1.0, 1.0, 1000, _FORCES, True, -62, 6160, 4000),
    Task("HalfCheetah-v4", "HalfCheetah-v4", 17, 6, -1.0, 1.0, 1000, {}, False, -282, 14200, 7000),
    Task("Hopper-v4", "Hopper-v4", 11, 3, -1.0, 1.0, 1000, {}, True, -74, 3510, 2800),
    Task("Humanoid-v4", "Humanoid-v4", 376, 17, -0.4, 0.4, 1000, {}, True, 120, 6190, 5000),
    Task("Pusher-v5", "Pusher-v5", 23, 7, -2.0, 2.0, 100, {}, False, -150, -31, -40),
    Task("Walker2d-v4", "Walker2d-v4", 17, 6, -1.0, 1.0, 1000, {}, True, 3, 6270, 3500),
    Task("walker-walk", "dm_control/walker-walk-v0", 24, 6, -1.0, 1.0, 1000, aim=800),
    Task("cheetah-run", "dm_control/cheetah-run-v0", 17, 6, -1.0, 1.0, 1000, aim=600),
    Task("finger-spin", "dm_control/finger-spin-v0", 9, 2, -1.0, 1.0, 1000, aim=800),
    # Ant with observations of size 27, as an alternative reading of the paper.
    Task("Ant-27", "Ant-v4", 27, 8, -1.0, 1.0, 1000, {}, True, -62, 6160),
    # Small tasks for trials and tests.
    Task("Pendulum-v1", "Pendulum-v1", 3, 1, -2.0, 2.0, 200),
    Task("Reacher-v5", "Reacher-v5", 10, 2, -1.0, 1.0, 50),
):
    register(_task)
OURS = frozenset(TASKS)  # the suite's own tasks; the tests make an env of each task

_ENDLESS = frozenset(task.id for task in TASKS.values() if not task.can_terminate)


def never_terminates(task_id: str, terminate_when_unhealthy: bool = True) -> bool:
    """Return True if a task's episodes are known to end only at the time limit.

    Return False for a user's own task that lacks the `terminate_when_unhealthy` option, since
    nothing is known about the task's episodes.
    """
    return task_id in _ENDLESS or (get_task(task_id).can_terminate and not terminate_when_unhealthy)


def _leaves(space: spaces.Space[Any]) -> list[spaces.Space[Any]]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return [leaf for part in parts for leaf in _leaves(part)]
    return [space]


def check_space(
    env_id: str, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> None:
    """Check that the agent supports an env's observation and action spaces."""
    bad = f"env {env_id!r}: action space {action_space}".replace("\n", " ")
    if not isinstance(action_space, spaces.Box) or action_space.dtype.kind != "f":
        raise UserError(f"{bad} is not continuous: use an env with one float Box of actions")
    if len(action_space.shape) != 1:
        raise UserError(f"{bad} has {len(action_space.shape)} dimensions: flatten it to 1")
    if not action_space.is_bounded():
        raise UserError(f"{bad} is unbounded: give it finite bounds")
    low, high = action_space.low, action_space.high
    if (low != low[0]).any() or (high != high[0]).any() or low[0] >= high[0]:
        raise UserError(
            f"{bad} has bounds that are empty or differ between dimensions: wrap the env in "
            "gymnasium.wrappers.RescaleAction(env, -1.0, 1.0)"
        )
    for leaf in _leaves(observation_space):
        if not isinstance(leaf, spaces.Box) or len(leaf.shape) > 1:
            raise UserError(
                f"env {env_id!r}: observation space {leaf} is not a vector: ".replace("\n", " ")
                + "use an env whose observations are Box vectors, or a Dict or Tuple of them"
            )


@contextlib.contextmanager
def _renderer(wanted: bool) -> Iterator[None]:
    """Hide the user's choice of renderer within this context, unless rendering is wanted.

    Without this context, imports would fail if the chosen renderer does not work.
    """
    names = ("MUJOCO_GL", "PYOPENGL_PLATFORM")
    before = {name: os.environ[name] for name in names if name in os.environ}
    if not wanted:
        os.environ.pop("PYOPENGL_PLATFORM", None)
        os.environ["MUJOCO_GL"] = "disable"  # otherwise, dm_control would look for a window system
    try:
        yield
    except (ImportError, RuntimeError, AttributeError) as error:  # GL libraries raise any of these
        if not wanted:
            raise
        raise UserError(
            f"MUJOCO_GL: {os.environ.get('MUJOCO_GL')} can't render here ({reason(error):.200}); "
            f"set it to egl or osmesa"
        ) from None
    finally:
        if not wanted:
            del os.environ["MUJOCO_GL"]
            os.environ.update(before)


def _import_dm_control(env_id: str) -> None:
    """Import dm_control, which takes seconds and fixes the process's choice of renderer."""
    try:
        importlib.import_module("dm_control.suite")
        gym.register_envs(importlib.import_module("shimmy"))
    except ImportError as error:
        raise UserError(
            f"env {env_id!r} needs dm_control ({error}); run pip install 'shimmy[dm-control]'"
        ) from error


def _log_mujoco(message: str) -> None:
    (_log.debug if "deprecated" in message else _log.warning)("mujoco: %s", message)


def _catch_mujoco_warnings() -> None:
    """Log MuJoCo's warnings, which MuJoCo itself would write to the file MUJOCO_LOG.TXT."""
    with contextlib.suppress(ImportError):  # without MuJoCo there are no such warnings
        importlib.import_module("mujoco").set_mju_user_warning(_log_mujoco)


def _check_live(task: Task, env: gym.Env[Any, Any]) -> None:
    """Check that an env has the spaces, bounds and time limit that its task states."""
    check_space(task.id, env.observation_space, env.action_space)
    box = env.action_space
    assert isinstance(box, spaces.Box) and env.spec is not None
    for name, live, known in (
        ("obs", spaces.utils.flatdim(env.observation_space), task.obs),
        ("act", box.shape[0], task.act),
        ("low", box.low[0], box.dtype.type(task.low)),
        ("high", box.high[0], box.dtype.type(task.high)),
        ("time_limit", env.spec.max_episode_steps, task.time_limit),
    ):
        if live != known:
            raise UserError(
                f"env {task.id!r}: {name} is {live} in the live env and {known} in its Task: "
                "correct the Task or its kwargs, or install the gymnasium version it is meant for"
            )


def make_task(task: Task, terminate_when_unhealthy: bool, render_mode: str | None = None) -> Env:
    """Make one env of a task in the same way as `make`."""
    kwargs = dict(task.kwargs)
    if task.can_terminate:
        kwargs["terminate_when_unhealthy"] = terminate_when_unhealthy
    with _renderer(render_mode is not None), warnings.catch_warnings():
        if task.gym_id.startswith("dm_control/"):
            _import_dm_control(task.id)
        _catch_mujoco_warnings()
        warnings.filterwarnings("ignore", message=".*is out of date")  # the paper uses v4 envs
        warnings.filterwarnings("ignore", message=".*precision lowered")  # float32 is wanted
        try:
            if gym.spec(task.gym_id).max_episode_steps is None:  # dm_control truncates episodes
                kwargs["max_episode_steps"] = task.time_limit
            env: gym.Env[Any, Any] = gym.make(
                task.gym_id, render_mode=render_mode, disable_env_checker=True, **kwargs
            )
        except (gym.error.Error, ImportError, TypeError) as error:
            raise UserError(
                f"env {task.id!r}: gymnasium can't make it: {' '.join(str(error).split())}"
            ) from error
        try:
            _check_live(task, env)
        except UserError:
            env.close()
            raise
        return _rescaled(DtypeObservation(FlattenObservation(env), np.float32))


def _rescaled(env: Env) -> Env:
    """Return the env with actions in [-1, 1], which are rescaled to the env's own bounds.

    Rounding may put rescaled actions just outside bounds that are not symmetric. Only in this case,
    clip them, since clipping slows down each step.
    """
    box = env.action_space
    assert isinstance(box, spaces.Box)
    one = np.ones(box.shape, box.dtype)
    plain = RescaleAction(env, -one, one)
    if all(box.contains(plain.func(bound)) for bound in (-one, one)):
        return plain
    inside = TransformAction(env, lambda action: action.clip(box.low, box.high), box)
    return RescaleAction(inside, -one, one)


def make(
    task_id: str, *, terminate_when_unhealthy: bool = True, render_mode: str | None = None
) -> Env:
    """Make one env that takes actions in [-1, 1] and rescales them to the env's own bounds.

    `terminate_when_unhealthy` has no effect if the task lacks this option (`Task.can_terminate`).
    To render without a display, start the process with MUJOCO_GL=egl. dm_control chooses its
    renderer once per process, so make the env for rendering first.
    """
    return make_task(get_task(task_id), terminate_when_unhealthy, render_mode)


def check_registered(names: Iterable[str]) -> None:
    """Make an env of each named task that is not one of the suite's own, to find mistakes early.

    Raise UserError if the agent does not support an env, or if an exception occurs while an env is
    made.
    """
    for name in [n for n in dict.fromkeys(names) if n not in OURS]:
        try:
            make(name).close()
        except UserError:
            raise
        except Exception as error:  # the env's own code may raise anything
            raise UserError(f"env {name!r} raised {reason(error)}; fix it") from error
