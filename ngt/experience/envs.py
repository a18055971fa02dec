"""The tasks and how their environments are made: flat float32 observations, actions in [-1, 1].

To add a task, give the env to gymnasium (`gym.register`) and its facts to `register(Task(...))`.
Each time an env is made, these facts are compared with the live env.
"""

import contextlib
import difflib
import importlib
import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.wrappers import DtypeObservation, FlattenObservation, RescaleAction

from ngt.errors import UserError
from ngt.experience.workers import Arrays, Died, Group, Play, Workers, layout, reason
from ngt.state import State
from ngt.text import check_name

Env = gym.Env[np.ndarray, np.ndarray]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """One environment: what the registry knows about it."""

    id: str  # what users write: "Ant-v4", "walker-walk"
    gym_id: str  # what gymnasium.make gets: "dm_control/walker-walk-v0"
    obs: int  # flat sizes
    act: int
    low: float  # action bounds of the env itself, the same in every dimension
    high: float
    time_limit: int  # steps, then the episode is truncated
    kwargs: Mapping[str, Any] = field(default_factory=dict, hash=False)  # to gymnasium.make
    # The env takes `terminate_when_unhealthy`, and it alone decides whether episodes can end as
    # `terminated`. False: there is no such choice (no other task below ever terminates).
    can_terminate: bool = False
    # Mean returns published with the authors' code, for judging our experts and nothing else:
    # their episodes never end early and their Ant has 27 observations.
    published_random: float | None = None
    published_expert: float | None = None
    # Mean return that this suite wants of an expert that it ships; None: it means to ship none.
    aim: float | None = None

    def least_episode(self, terminate_when_unhealthy: bool = True) -> int:
        """Steps that episodes last at least, in the mean over a training.

        A random policy's: 21 on Walker2d-v4, 24 on Hopper-v4, 25 on Humanoid-v4, 160 on Ant-v4.
        """
        return 20 if self.can_terminate and terminate_when_unhealthy else self.time_limit


TASKS: dict[str, Task] = {}

# Why a known id is not offered, and the id to use in its place.
REFUSED = {
    "Pusher-v4": (
        "gymnasium refuses it on mujoco >= 3 (its object is lighter than air and is never pushed)",
        "Pusher-v5",
    ),
}


def register(task: Task) -> None:
    """Add a task; adding the same one twice is fine, another one with a known id is not."""
    check_name(task.id, "task id")  # its gym_id may be any
    if TASKS.setdefault(task.id, task) != task:
        raise UserError(f"task id {task.id!r} is already registered: choose another id")


def get_task(task_id: str) -> Task:
    if task_id in TASKS:
        return TASKS[task_id]
    if task_id in REFUSED:
        reason, instead = REFUSED[task_id]
        raise UserError(f"env {task_id!r} is refused: {reason}: use {instead}")
    nearest = difflib.get_close_matches(task_id, TASKS, n=3, cutoff=0.6) or sorted(TASKS)
    raise UserError(
        f"env {task_id!r} is unknown: use one of {', '.join(nearest)}, or add it by "
        "ngt.experience.envs.register in a module that the config's `imports` names"
    )


_FORCES = {"use_contact_forces": True}  # Ant-v4 has 27 observations without

for _task in (
    Task("Ant-v4", "Ant-v4", 111, 8, -1.0, 1.0, 1000, _FORCES, True, -62, 6160),
    Task("HalfCheetah-v4", "HalfCheetah-v4", 17, 6, -1.0, 1.0, 1000, {}, False, -282, 14200, 7000),
    Task("Hopper-v4", "Hopper-v4", 11, 3, -1.0, 1.0, 1000, {}, True, -74, 3510, 2800),
    Task("Humanoid-v4", "Humanoid-v4", 376, 17, -0.4, 0.4, 1000, {}, True, 120, 6190),
    Task("Pusher-v5", "Pusher-v5", 23, 7, -2.0, 2.0, 100, {}, False, -150, -31, -40),
    Task("Walker2d-v4", "Walker2d-v4", 17, 6, -1.0, 1.0, 1000, {}, True, 3, 6270, 3500),
    Task("walker-walk", "dm_control/walker-walk-v0", 24, 6, -1.0, 1.0, 1000, aim=800),
    Task("cheetah-run", "dm_control/cheetah-run-v0", 17, 6, -1.0, 1.0, 1000, aim=600),
    Task("finger-spin", "dm_control/finger-spin-v0", 9, 2, -1.0, 1.0, 1000, aim=800),
    # Small ones, for trials and tests.
    Task("Pendulum-v1", "Pendulum-v1", 3, 1, -2.0, 2.0, 200),
    Task("Reacher-v5", "Reacher-v5", 10, 2, -1.0, 1.0, 50),
):
    register(_task)
OURS = frozenset(TASKS)  # the tests make each of them

_ENDLESS = frozenset(task.id for task in TASKS.values() if not task.can_terminate)  # of these


def never_terminates(task_id: str, terminate_when_unhealthy: bool = True) -> bool:
    """Return whether no episode of a task is known to end but by its time limit.

    False for a task of your own without the choice, of which nothing is known.
    """
    can = get_task(task_id).can_terminate
    return task_id in _ENDLESS or (can and not terminate_when_unhealthy)


def _leaves(space: spaces.Space[Any]) -> list[spaces.Space[Any]]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return [leaf for part in parts for leaf in _leaves(part)]
    return [space]


def check_space(
    env_id: str, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> None:
    """Refuse what the agent can't handle: it wants flat vectors and one bounded action box."""
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
    """Hide the user's choice of a renderer from imports that need none: a wrong one fails them."""
    names = ("MUJOCO_GL", "PYOPENGL_PLATFORM")
    before = {name: os.environ[name] for name in names if name in os.environ}
    if not wanted:
        os.environ.pop("PYOPENGL_PLATFORM", None)
        os.environ["MUJOCO_GL"] = "disable"  # else dm_control looks for a window system
    try:
        yield
    except (ImportError, RuntimeError, AttributeError) as error:  # each GL library has its own
        if not wanted:
            raise
        raise UserError(
            f"MUJOCO_GL: {os.environ.get('MUJOCO_GL')} can't render here ({reason(error):.200}); "
            f"use egl or osmesa"
        ) from None
    finally:
        if not wanted:
            del os.environ["MUJOCO_GL"]
            os.environ.update(before)


def _import_dm_control(env_id: str) -> None:
    """Late: it costs seconds, and dm_control picks its renderer, for the whole process."""
    try:
        importlib.import_module("dm_control.suite")
        gym.register_envs(importlib.import_module("shimmy"))
    except ImportError as error:
        raise UserError(
            f"env {env_id!r} needs dm_control ({error}): pip install 'shimmy[dm-control]'"
        ) from error


def _log_mujoco(message: str) -> None:
    level = logging.DEBUG if "deprecated" in message else logging.WARNING
    _log.log(level, "mujoco: %s", message)


def _catch_mujoco_warnings() -> None:
    """MuJoCo's own handler writes MUJOCO_LOG.TXT into the working directory."""
    with contextlib.suppress(ImportError):  # no env that needs it can be made then
        importlib.import_module("mujoco").set_mju_user_warning(_log_mujoco)


def _check_live(task: Task, env: gym.Env[Any, Any]) -> None:
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
                "correct the Task or its kwargs, or install the gymnasium it was written for"
            )


def _make(task: Task, terminate_when_unhealthy: bool, render_mode: str | None = None) -> Env:
    with _renderer(render_mode is not None):
        return _make_here(task, terminate_when_unhealthy, render_mode)


def _make_here(task: Task, terminate_when_unhealthy: bool, render_mode: str | None) -> Env:
    if task.gym_id.startswith("dm_control/"):
        _import_dm_control(task.id)
    _catch_mujoco_warnings()
    kwargs = dict(task.kwargs)
    if task.can_terminate:
        kwargs["terminate_when_unhealthy"] = terminate_when_unhealthy
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date")  # the paper's ids are v4
        warnings.filterwarnings("ignore", message=".*precision lowered")  # float32 is wanted
        try:
            if gym.spec(task.gym_id).max_episode_steps is None:  # so with dm_control, which
                kwargs["max_episode_steps"] = task.time_limit  # truncates by itself
            env: gym.Env[Any, Any] = gym.make(
                task.gym_id, render_mode=render_mode, disable_env_checker=True, **kwargs
            )
        except (gym.error.Error, ImportError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"env {task.id!r}: gymnasium can't make it: {reason}") from error
        try:
            _check_live(task, env)
        except UserError:
            env.close()
            raise
        one = np.ones(task.act, env.action_space.dtype)
        return RescaleAction(DtypeObservation(FlattenObservation(env), np.float32), -one, one)


def make(
    task_id: str, *, terminate_when_unhealthy: bool = True, render_mode: str | None = None
) -> Env:
    """One env: flat float32 observations, actions in [-1, 1] rescaled to the env's own bounds.

    A task without the choice (`Task.can_terminate`) ignores `terminate_when_unhealthy`.
    To render without a display, start the process with MUJOCO_GL=egl. dm_control picks its
    renderer once a process: make the env that renders before any other.
    """
    return _make(get_task(task_id), terminate_when_unhealthy, render_mode)


def check_registered(names: Iterable[str]) -> None:
    """Make each of these tasks once, but for the suite's own, so that a mistake is found early.

    Errors: what the agent can't handle, and what an env raises, are UserErrors.
    """
    for name in dict.fromkeys(names):
        if name in OURS:
            continue
        try:
            make(name).close()
        except UserError:
            raise
        except Exception as error:  # whatever its code raises
            raise UserError(f"env {name!r} raised {reason(error)}; mend it") from error


class _Episodes(gym.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray]):
    """Gives every episode a seed of its own, so that one can be played again from its start.

    Infos are dropped: nobody reads them, and batching them costs a tenth of the speed or more.
    """

    base, episode = 0, 0  # the seed of the last reset that named one, episodes since
    resume: tuple[int, np.ndarray] | None = None  # the next reset goes to this episode and step

    def __init__(self, env: Env, largest_seed: int) -> None:
        super().__init__(env)
        self.largest_seed = largest_seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        self.base, self.episode = (self.base, self.episode + 1) if seed is None else (seed, 0)
        actions: Sequence[np.ndarray] | np.ndarray = ()
        if self.resume is not None:
            (self.episode, actions), self.resume = self.resume, None
        own = self.base
        if self.episode > 0:
            mixed = np.random.SeedSequence((self.base, self.episode)).generate_state(1, np.uint64)
            own = int(mixed[0] >> 1)
        obs = self.env.reset(seed=own % (self.largest_seed + 1), options=options)[0]
        for action in actions:
            obs = self.env.step(action)[0]
        return obs, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        return *self.env.step(action)[:4], {}


def _make_bare(task: Task, terminate_when_unhealthy: bool) -> Env:
    dm_control = task.gym_id.startswith("dm_control/")  # its RandomState takes 32 bits
    return _Episodes(_make(task, terminate_when_unhealthy), 2**32 - 1 if dm_control else 2**63 - 1)


class Step(NamedTuple):
    """One transition of every env."""

    obs: np.ndarray  # (num, obs) what the policy sees next: a reset observation after an end
    next_obs: np.ndarray  # (num, obs) what followed the action: the final one at an end
    reward: np.ndarray  # (num,) float64
    terminated: np.ndarray  # (num,) bool: no bootstrap
    truncated: np.ndarray  # (num,) bool: bootstrap from next_obs


class VectorEnv:
    """`num` copies of a task in lockstep.

    An env that ends is reset within the step (gymnasium's SAME_STEP), so every step is `num` real
    transitions and there are no dead ones (action ignored, reward 0) to skip or count.

    workers=0 steps the envs here, one after another. Else so many processes share them; the numbers
    are the same.
    """

    def __init__(
        self, task_id: str, num: int, *, terminate_when_unhealthy: bool = True, workers: int = 0
    ) -> None:
        self.task = get_task(task_id)
        self.num = num
        self._never_terminates = not terminate_when_unhealthy
        self._actions = np.zeros((num, self.task.time_limit, self.task.act), np.float32)
        make_one = partial(_make_bare, self.task, terminate_when_unhealthy)
        sizes = num, self.task.obs, self.task.act
        self._envs: Group | Workers
        if workers == 0:
            here = Arrays(*(np.zeros(shape, kind) for shape, kind in layout(*sizes)))
            self._envs = Group(make_one, here)
        else:
            with self._said():
                self._envs = Workers(make_one, *sizes, workers)

    def reset(self, seeds: Sequence[int], plays: Sequence[Play] | None = None) -> np.ndarray:
        """Start all envs, each from its own seed; return (num, obs) float32."""
        if len(seeds) != self.num:
            raise ValueError(f"seeds of length {len(seeds)} for {self.num} envs")
        self._seed = np.array([int(seed) for seed in seeds])
        self._episode, self._length = np.zeros(self.num, np.int64), np.zeros(self.num, np.int64)
        with self._said():
            self._envs.reset(self._seed.tolist(), plays)
        return self._envs.arrays.obs.copy()

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        """Report what an env raises, a mistake of its author, in one line."""
        try:
            yield
        except UserError:
            raise
        except Died as error:
            raise UserError(
                f"env {self.task.id!r}: {error}; the same command resumes from the last checkpoint"
            ) from error
        except Exception as error:
            raise UserError(
                f"env {self.task.id!r} raised {reason(error)}; fix it, then the same command "
                f"resumes from the last checkpoint"
            ) from error

    def state(self, envs: slice = slice(None)) -> State:
        """Return where these envs stand: seeds, episode numbers, and the actions taken in those."""
        longest = max(self._length[envs].max(), 1)
        arrays = {
            "seed": self._seed,
            "episode": self._episode,
            "length": self._length,
            "actions": self._actions[:, :longest],
        }
        return State({n: torch.from_numpy(array[envs].copy()) for n, array in arrays.items()})

    def restore(self, states: Sequence[State]) -> np.ndarray:
        """Replay every env's episode up to where `state` was taken; return (num, obs).

        states: consecutive shares of the envs. No env's internals are saved, so this works for
        every env whose seed determines it.
        """
        seed, episode, length = (
            torch.cat([state.tensors[name] for state in states]).numpy()
            for name in ("seed", "episode", "length")
        )
        taken = [row for state in states for row in state.tensors["actions"].numpy()]
        plays = [(int(e), a[:n]) for e, a, n in zip(episode, taken, length, strict=True)]
        obs = self.reset(seed.tolist(), plays)
        self._episode, self._length = episode, length
        for own, (_, actions) in zip(self._actions, plays, strict=True):
            own[: len(actions)] = actions
        return obs

    def step(self, action: np.ndarray) -> Step:
        """Take (num, act) actions in [-1, 1].

        One that is not finite is refused and no env moves: MuJoCo would take it as 0, other envs
        would return NaN.
        """
        action = np.asarray(action, dtype=np.float32)
        if action.shape != (self.num, self.task.act):
            raise ValueError(f"action {action.shape} is not ({self.num}, {self.task.act})")
        if not np.isfinite(action).all():
            raise UserError(
                f"env {self.task.id!r}: an action is not finite: the policy has diverged, "
                f"take another"
            )
        arrays = self._envs.arrays
        arrays.action[:] = action
        with self._said():
            self._envs.step()
        step = Step(*(array.copy() for array in arrays[1:]))
        if self._never_terminates and step.terminated.any():
            raise UserError(
                f"env {self.task.id!r} terminated with terminate_when_unhealthy=False, which it "
                "does not know: use terminate_when_unhealthy=True"
            )
        ended = step.terminated | step.truncated
        self._actions[np.arange(self.num), self._length] = action
        self._length = np.where(ended, 0, self._length + 1)
        self._episode += ended
        return step

    def close(self) -> None:
        self._envs.close()
