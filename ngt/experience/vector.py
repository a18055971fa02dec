"""Vectors of envs: copies of a task's env that step together, in this or in other processes."""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch

from ngt.errors import UserError
from ngt.experience.envs import Task, get_task, make_task
from ngt.experience.workers import Arrays, Died, Env, Group, Play, Workers, layout, reason
from ngt.state import State


class _Episodes(gym.Wrapper[np.ndarray, np.ndarray, np.ndarray, np.ndarray]):
    """An env that gives each episode a seed, so that the episode can be replayed.

    The first episode after a reset with a seed uses this seed. The seeds of later episodes are
    derived from this seed and the episode's number. The info dicts that gymnasium returns are
    dropped, since nothing reads them and batching them costs a tenth of the speed.
    """

    base, episode = 0, 0  # last seed passed to `reset`; number of episodes since then
    resume: Play | None = None  # episode and actions that the next reset replays

    def __init__(self, env: Env, largest_seed: int) -> None:
        super().__init__(env)
        self.largest_seed = largest_seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        self.base, self.episode = (self.base, self.episode + 1) if seed is None else (seed, 0)
        (self.episode, actions), self.resume = self.resume or (self.episode, ()), None
        own_seed = self.base
        if self.episode > 0:
            mixed = np.random.SeedSequence((self.base, self.episode)).generate_state(1, np.uint64)
            own_seed = int(mixed[0] >> 1)
        obs = self.env.reset(seed=own_seed % (self.largest_seed + 1), options=options)[0]
        for action in actions:
            obs = self.env.step(action)[0]
        return obs, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        return *self.env.step(action)[:4], {}


def _make_seeded(task: Task, terminate_when_unhealthy: bool) -> Env:
    # dm_control passes the seed to NumPy's RandomState, whose seeds have at most 32 bits.
    bits = 32 if task.gym_id.startswith("dm_control/") else 63
    return _Episodes(make_task(task, terminate_when_unhealthy), 2**bits - 1)


class Step(NamedTuple):
    """One transition of every env."""

    # (num, obs), the policy's next input; at an episode's end, the next episode's first obs
    obs: np.ndarray
    # (num, obs), the observation after the action; at an episode's end, this episode's last obs
    next_obs: np.ndarray
    reward: np.ndarray  # (num,), float64
    terminated: np.ndarray  # (num,), bool; True if the env ended the episode
    truncated: np.ndarray  # (num,), bool; True if the time limit ended the episode


class VectorEnv:
    """`num` copies of a task's env that step together.

    An env whose episode ends is reset within the same step (gymnasium's SAME_STEP). Every step
    therefore gives `num` real transitions, and no action is ignored by an env that only resets.

    With workers=0, this process steps the envs one after another. Otherwise the envs are divided
    among `workers` processes. The results are the same with any number of processes.
    """

    def __init__(
        self, task_id: str, num: int, *, terminate_when_unhealthy: bool = True, workers: int = 0
    ) -> None:
        self.task = get_task(task_id)
        self.num = num
        self._never_terminates = not terminate_when_unhealthy
        self._actions = np.zeros((num, self.task.time_limit, self.task.act), np.float32)
        make_one = partial(_make_seeded, self.task, terminate_when_unhealthy)
        sizes = num, self.task.obs, self.task.act
        self._envs: Group | Workers
        if workers == 0:
            here = Arrays(*(np.zeros(shape, kind) for shape, kind in layout(*sizes)))
            self._envs = Group(make_one, here)
        else:
            with self._reported():
                self._envs = Workers(make_one, *sizes, workers)

    def reset(self, seeds: Sequence[int], plays: Sequence[Play] | None = None) -> np.ndarray:
        """Start every env from its own seed; return the observations, (num, obs) float32.

        plays: for each env, the episode to start and the actions to replay in it.
        """
        if len(seeds) != self.num:
            raise ValueError(f"seeds of length {len(seeds)} for {self.num} envs")
        self._seed = np.array([int(seed) for seed in seeds])
        self._episode, self._length = np.zeros(self.num, np.int64), np.zeros(self.num, np.int64)
        with self._reported():
            self._envs.reset(self._seed.tolist(), plays)
        return self._envs.arrays.obs.copy()

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn any exception raised by an env into a one-line UserError."""
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
        """Return each env's seed, its episode number and the actions taken in that episode."""
        arrays = {
            "seed": self._seed,
            "episode": self._episode,
            "length": self._length,
            "actions": self._actions[:, : max(self._length[envs].max(), 1)],
        }
        return State({n: torch.from_numpy(array[envs].copy()) for n, array in arrays.items()})

    def restore(self, states: Sequence[State]) -> np.ndarray:
        """Replay each env's episode up to the saved step; return the next observations, (num, obs).

        This works for every env whose observations depend only on its seed and the actions.

        states: the results of `state` for consecutive slices that together contain all envs.
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
        """Step every env with actions (num, act) in [-1, 1].

        If an action is not finite, raise UserError without stepping any env. MuJoCo would treat
        such an action as 0, and other envs would return NaN.
        """
        action = np.asarray(action, dtype=np.float32)
        if action.shape != (self.num, self.task.act):
            raise ValueError(f"action {action.shape} is not ({self.num}, {self.task.act})")
        if not np.isfinite(action).all():
            raise UserError(
                f"env {self.task.id!r}: an action is not finite: the policy has diverged; "
                f"use another policy"
            )
        arrays = self._envs.arrays
        arrays.action[:] = action
        with self._reported():
            self._envs.step()
        step = Step(*(array.copy() for array in arrays[1:]))
        if self._never_terminates and step.terminated.any():
            raise UserError(
                f"env {self.task.id!r} terminated despite terminate_when_unhealthy=False; "
                "use terminate_when_unhealthy=True"
            )
        ended = step.terminated | step.truncated
        self._actions[np.arange(self.num), self._length] = action
        self._length = np.where(ended, 0, self._length + 1)
        self._episode += ended
        return step

    def close(self) -> None:
        self._envs.close()
