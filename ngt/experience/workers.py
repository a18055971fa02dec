"""Envs stepped in a row, here or by processes that each have a share of them.

What goes in and out of a step lies in arrays that stay where they are; for processes that is shared
memory, so that a step costs each of them one short message each way.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ngt.errors import UserError

Env = gym.Env[np.ndarray, np.ndarray]
Shapes = Sequence[tuple[tuple[int, ...], type]]
Play = tuple[int, NDArray[np.float32]]  # episode and actions that an env's next reset goes to
PATIENCE = 1.0  # seconds between a process's looks at whether its parent is there


class Raised(Exception):
    """What an env raised in a process of its own, in words."""


class Died(Exception):
    """How a process of envs ended, in words, before it answered."""


def ending(code: int | None) -> str:
    """Say how a process ended."""
    if code is None or code >= 0:
        return f"a process that steps envs ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    whys: dict[int, str] = {
        signal.SIGKILL: ", perhaps for want of memory: use fewer envs or fewer --env-workers",
        signal.SIGSEGV: ", by a fault in the env's compiled code",
    }
    return f"a process that steps envs was killed by {name}{whys.get(-code, '')}"


def reason(error: Exception) -> str:
    """An exception in one line."""
    if isinstance(error, Raised):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


class Arrays(NamedTuple):
    """A step of `num` envs."""

    action: NDArray[np.float32]  # (num, act)
    obs: NDArray[np.float32]  # (num, obs) what the policy sees next: of a reset after an end
    next_obs: NDArray[np.float32]  # (num, obs) what followed the action
    reward: NDArray[np.float64]  # (num,)
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


def layout(num: int, obs: int, act: int) -> Shapes:
    """Shape and type of each array of `Arrays`."""
    wide, one = (num, obs), (num,)
    return [
        ((num, act), np.float32), (wide, np.float32), (wide, np.float32), (one, np.float64),
        (one, np.bool_), (one, np.bool_),
    ]  # fmt: skip


class Group:
    """Envs stepped one after another; one that ends is reset within the step."""

    def __init__(self, make: Callable[[], Env], arrays: Arrays) -> None:
        self.arrays = arrays
        self.envs = [make() for _ in arrays.reward]

    def reset(self, seeds: Sequence[int], plays: Sequence[Play] | None = None) -> None:
        """Start every env from its seed; with plays, go on to where they lead."""
        for i, env in enumerate(self.envs):
            if plays is not None:
                env.resume = plays[i]  # type: ignore[attr-defined]
            self.arrays.obs[i] = env.reset(seed=seeds[i])[0]

    def step(self) -> None:
        """Take the actions that lie in the arrays."""
        action, obs, next_obs, reward, terminated, truncated = self.arrays
        for i, env in enumerate(self.envs):
            seen, reward[i], terminated[i], truncated[i], _ = env.step(action[i])
            next_obs[i] = seen  # before a reset, which may change it in place
            obs[i] = env.reset()[0] if terminated[i] or truncated[i] else seen

    def close(self) -> None:
        for env in self.envs:
            env.close()


class Workers:
    """A `Group` in each of up to `count` processes, as even as can be.

    They end with `close`, and with this process, however it ends: signals that are sent to the
    whole group of processes do not stop them before.
    """

    def __init__(self, make: Callable[[], Env], num: int, obs: int, act: int, count: int) -> None:
        context = multiprocessing.get_context()
        shapes = layout(num, obs, act)
        sizes = [int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in shapes]
        memory = [context.RawArray("b", size) for size in sizes]
        self.arrays = _view(memory, shapes)
        ends = np.linspace(0, num, min(count, num) + 1).astype(int).tolist()
        self.shares = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        self._end = Finalize(self, _end, (self.pipes, self.processes), exitpriority=10)
        for share in self.shares:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, ours, os.getpid(), make, memory, shapes, share),
                daemon=True,
            )  # fmt: skip
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        self._answers()

    def reset(self, seeds: Sequence[int], plays: Sequence[Play] | None = None) -> None:
        """As `Group.reset`."""
        for pipe, share in zip(self.pipes, self.shares, strict=True):
            self._tell(pipe, (seeds[share], None if plays is None else plays[share]))
        self._answers()

    def step(self) -> None:
        """As `Group.step`."""
        for pipe in self.pipes:
            self._tell(pipe, None)
        self._answers()

    def _tell(self, pipe: Connection, message: Any) -> None:
        with contextlib.suppress(OSError):  # a process that is gone is missed when it should answer
            pipe.send(message)

    def _answers(self) -> None:
        """Wait for all; raise what the first of them raised."""
        errors = []
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            try:
                errors.append(pipe.recv())
            except (EOFError, OSError):
                process.join(PATIENCE)
                errors.append(Died(ending(process.exitcode)))
        for error in errors:
            if error is not None:
                raise error

    def close(self) -> None:
        self._end()


def _view(memory: Sequence[Any], shapes: Shapes, share: slice = slice(None)) -> Arrays:
    parts = zip(memory, shapes, strict=True)
    return Arrays(*(np.frombuffer(raw, kind).reshape(shape)[share] for raw, (shape, kind) in parts))


def _end(pipes: list[Connection], processes: list[Any]) -> None:
    for pipe in pipes:
        pipe.close()
    for process in processes:
        process.join(PATIENCE)
        process.kill()  # where an env does not come back
        process.join()


def _serve(
    pipe: Connection, other: Connection, parent: int, make: Callable[[], Env],
    memory: Sequence[Any], shapes: Shapes, share: slice,
) -> None:  # fmt: skip
    """A process's life: make its envs, answer each message with None or what was raised."""
    other.close()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):  # its parent's to heed
        signal.signal(number, signal.SIG_IGN)
    group: Group | None = None

    def told(message: Any) -> None:
        nonlocal group
        if group is None:
            group = Group(make, _view(memory, shapes, share))
        elif message is None:
            group.step()
        else:
            group.reset(*message)

    message: Any = None  # the first is nobody's: to make the envs
    answer: Exception | None
    while True:
        try:
            told(message)
            answer = None
        except UserError as error:
            answer = error
        except Exception as error:
            answer = Raised(reason(error))
        try:
            pipe.send(answer)
            while not pipe.poll(PATIENCE):
                if os.getppid() != parent:
                    return
            message = pipe.recv()
        except (EOFError, OSError):  # the parent is gone, or has closed its end
            return
