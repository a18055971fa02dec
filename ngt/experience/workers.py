"""Groups of envs. One process steps all envs of a group, one after another.

The inputs and outputs of a step are in arrays at fixed addresses. If there are several processes,
the arrays are in shared memory. A step therefore needs only a short message to each process and a
short answer.
"""

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ngt.errors import UserError

Env = gym.Env[np.ndarray, np.ndarray]
Shapes = Sequence[tuple[tuple[int, ...], type]]
Play = tuple[int, NDArray[np.float32]]  # an episode's number and the actions to replay in it
PATIENCE = 1.0  # seconds between a process's checks that its parent is alive


class Raised(Exception):
    """An env raised an error in a worker process. The message describes this error."""


class Died(Exception):
    """A worker process ended before it answered. The message describes how the process ended."""


def ending(code: int | None) -> str:
    """Describe how a process ended, given its exit code."""
    if code is None or code >= 0:
        return f"a process that steps envs ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    whys: dict[int, str] = {
        signal.SIGKILL: ", perhaps for lack of memory: use fewer envs or fewer --env-workers",
        signal.SIGSEGV: " because of a fault in the env's compiled code",
    }
    return f"a process that steps envs was killed by {name}{whys.get(-code, '')}"


def reason(error: Exception) -> str:
    """Describe an exception in one line of text."""
    name = "" if isinstance(error, Raised) else f"{type(error).__name__}: "
    return name + " ".join(str(error).split())


class Arrays(NamedTuple):
    """The actions and results of one step of `num` envs, as in `ngt.experience.vector.Step`."""

    action: NDArray[np.float32]  # (num, act)
    obs: NDArray[np.float32]  # (num, obs)
    next_obs: NDArray[np.float32]  # (num, obs)
    reward: NDArray[np.float64]  # (num,)
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


def layout(num: int, obs: int, act: int) -> Shapes:
    """Return the shape and type of each field of `Arrays`."""
    return [
        ((num, act), np.float32),
        ((num, obs), np.float32),
        ((num, obs), np.float32),
        ((num,), np.float64),
        ((num,), np.bool_),
        ((num,), np.bool_),
    ]


class Group:
    """Envs that are stepped one after another. A step resets each env whose episode ends."""

    def __init__(self, make: Callable[[], Env], arrays: Arrays) -> None:
        self.arrays = arrays
        self.envs = [make() for _ in arrays.reward]

    def reset(self, seeds: Sequence[int], plays: Sequence[Play] | None = None) -> None:
        """Start every env from its seed. If `plays` is given, also replay an episode per env."""
        for i, env in enumerate(self.envs):
            if plays is not None:
                env.resume = plays[i]  # type: ignore[attr-defined]
            self.arrays.obs[i] = env.reset(seed=seeds[i])[0]

    def step(self) -> None:
        """Step every env with the actions in the arrays."""
        action, obs, next_obs, reward, terminated, truncated = self.arrays
        for i, env in enumerate(self.envs):
            seen, reward[i], terminated[i], truncated[i], _ = env.step(action[i])
            next_obs[i] = seen  # copied now, since a reset may change `seen` in place
            obs[i] = env.reset()[0] if terminated[i] or truncated[i] else seen

    def close(self) -> None:
        for env in self.envs:
            env.close()


class Workers:
    """Up to `count` worker processes, which share `num` envs as equally as possible.

    Each process has one `Group`. The processes end on `close`, or when their parent ends for any
    reason. The processes ignore SIGINT, SIGTERM and SIGUSR1. If such a signal is sent to the whole
    process group, only the parent handles the signal.
    """

    def __init__(self, make: Callable[[], Env], num: int, obs: int, act: int, count: int) -> None:
        context = multiprocessing.get_context()
        shapes = layout(num, obs, act)
        sizes = [int(np.prod(shape)) * np.dtype(kind).itemsize for shape, kind in shapes]
        memory = [context.RawArray("b", size) for size in sizes]
        self.arrays = _view(memory, shapes, slice(None))
        ends = np.linspace(0, num, min(count, num) + 1).astype(int).tolist()
        self.shares = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        self._end = Finalize(self, _end, (self.pipes, self.processes), exitpriority=10)
        for share in self.shares:
            ours, theirs = context.Pipe()
            args = theirs, ours, os.getpid(), make, partial(_view, memory, shapes, share)
            process = context.Process(target=_serve, args=args, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        self._answers()

    def reset(self, seeds: Sequence[int], plays: Sequence[Play] | None = None) -> None:
        """Reset the envs of all processes, as `Group.reset` does."""
        for pipe, share in zip(self.pipes, self.shares, strict=True):
            self._send(pipe, (seeds[share], None if plays is None else plays[share]))
        self._answers()

    def step(self) -> None:
        """Step the envs of all processes, as `Group.step` does."""
        for pipe in self.pipes:
            self._send(pipe, None)
        self._answers()

    def _send(self, pipe: Connection, message: Any) -> None:
        with contextlib.suppress(OSError):  # `_answers` reports a process that has ended
            pipe.send(message)

    def _answers(self) -> None:
        """Wait for every process's answer; raise the first error among the answers."""
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


def _view(memory: Sequence[Any], shapes: Shapes, share: slice) -> Arrays:
    """Return arrays in shared memory for the envs in the slice `share`."""
    return Arrays(
        *(
            np.frombuffer(raw, kind).reshape(shape)[share]
            for raw, (shape, kind) in zip(memory, shapes, strict=True)
        )
    )


def _end(pipes: list[Connection], processes: list[Any]) -> None:
    for pipe in pipes:
        pipe.close()
    for process in processes:
        process.join(PATIENCE)
        process.kill()  # in case an env never returns
        process.join()


def _serve(
    pipe: Connection,
    other: Connection,
    parent: int,
    make: Callable[[], Env],
    arrays: Callable[[], Arrays],
) -> None:
    """Make the envs, then handle each message and reply with None or with an error."""
    other.close()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):  # the parent handles them
        signal.signal(number, signal.SIG_IGN)
    group: Group | None = None

    def follow(message: Any) -> None:
        nonlocal group
        if group is None:
            group = Group(make, arrays())
        elif message is None:
            group.step()
        else:
            group.reset(*message)

    message: Any = None  # the first call of `follow` makes the envs, without a message
    answer: Exception | None
    while True:
        try:
            follow(message)
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
        except (EOFError, OSError):  # the parent has ended or has closed its end of the pipe
            return
