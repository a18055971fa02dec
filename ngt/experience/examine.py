"""Checks of demonstrations: errors are raised, and implausible data causes a warning."""

from __future__ import annotations

import contextlib
import itertools
import operator
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.experience.envs import Task, get_task, never_terminates
from ngt.experience.vector import VectorEnv
from ngt.seeding import derive, rng
from ngt.text import ranges

if TYPE_CHECKING:
    from ngt.experience.demos import Demos, Episode

SPREAD_STEPS = 1000  # number of steps of the random policy in `measure_spread`

ARRAYS = {  # name -> dtype in the file and number of dimensions
    "obs": ("float32", 2),  # all episodes, one after another; T + 1 rows for an episode of T steps
    "action": ("float32", 2),  # values in [-1, 1], T rows per episode
    "reward": ("float32", 1),
    "length": ("int64", 1),  # number of steps T of each episode
    "terminated": ("bool", 1),  # True for each episode that the env ended before its time limit
    "returns": ("float64", 1),
    "seeds": ("int64", 1),  # the env seed of each episode
    "random_returns": ("float64", 1),  # returns of a uniform-random policy
}
# A file may lack the `spread` array. A file's checksum does not cover this array, since it does not
# describe the episodes.
OPTIONAL = {
    "spread": ("float32", 1)  # each observation column's spread under a random policy
}


# ---------------------------------------------------------------- errors


def arrays_of(
    episodes: Sequence[Episode], task: Task
) -> tuple[list[NDArray[Any]], list[NDArray[Any]], list[NDArray[Any]]]:
    """Return the observations, actions and rewards of each episode, with shapes that fit the env.

    Raise UserError for the first array that does not hold numbers or has a wrong shape.
    """
    found: tuple[list[NDArray[Any]], list[NDArray[Any]], list[NDArray[Any]]] = [], [], []
    names = "obs", "action", "reward"
    for i, episode in enumerate(episodes):
        where = f"episodes: episode {i}"
        arrays = [numbers(getattr(episode, name), f"{where}: {name}") for name in names]
        steps = len(arrays[1]) if arrays[1].ndim else 0
        shapes = (steps + 1, task.obs), (steps, task.act), (steps,)
        for name, array, shape, kept in zip(names, arrays, shapes, found, strict=True):
            if array.shape != shape:
                raise UserError(
                    f"{where}: {name}: found shape {array.shape}, expected {shape} for {steps} "
                    f"actions on {task.id}"
                )
            kept.append(array)
    return found


def facts_of(episodes: Sequence[Episode]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return whether the env terminated each episode, and each episode's seed.

    Raise UserError for the first episode whose `terminated` is not a single bool or whose seed is
    not a 64-bit integer.
    """
    ends, seeds = [], []
    for i, episode in enumerate(episodes):
        end = np.asarray(episode.terminated)
        if end.shape != () or end.dtype != np.bool_:
            raise UserError(
                f"episodes: episode {i}: terminated: found {episode.terminated!r:.60}, expected "
                f"one bool for the episode: True if the env itself ended it"
            )
        ends.append(bool(end))
        try:
            seeds.append(np.int64(operator.index(episode.seed)))
        except (TypeError, OverflowError):
            raise UserError(
                f"episodes: episode {i}: seed: found {episode.seed!r:.60}, expected a 64-bit "
                f"integer, or -1 if it is unknown"
            ) from None
    return np.array(ends, np.bool_), np.array(seeds, np.int64)


def check(demos: Demos, where: str) -> None:
    """Check the type, shape and range of every field. Raise UserError for the first wrong field."""
    _check_types(demos, where)
    task = get_task(demos.env)
    length = demos.length
    if len(length) == 0 or (length < 1).any():
        raise UserError(f"{where}: field 'length': found {length.tolist()}, expected >= 1 each")
    if (length > task.time_limit).any():
        raise UserError(
            f"{where}: field 'length': found {length.max()} steps, expected at most "
            f"{task.time_limit} on {demos.env}"
        )
    steps, episodes = int(length.sum()), len(length)
    shapes = {"obs": (steps + episodes, task.obs), "action": (steps, task.act), "reward": (steps,)}
    shapes |= dict.fromkeys(("terminated", "returns", "seeds"), (episodes,))
    if demos.spread is not None:
        shapes["spread"] = (task.obs,)
    for name, shape in shapes.items():
        found = getattr(demos, name).shape
        if found != shape:
            raise UserError(
                f"{where}: field {name!r}: found shape {found}, expected {shape} on {demos.env}"
            )
    if len(demos.random_returns) == 0:
        raise UserError(f"{where}: field 'random_returns': found none, expected at least 1")
    _check_values(demos, where)


def _check_types(demos: Demos, where: str) -> None:
    for name, (dtype, dims) in (ARRAYS | OPTIONAL).items():
        array = getattr(demos, name)
        if array is None and name in OPTIONAL:
            continue
        if array.dtype != np.dtype(dtype) or array.ndim != dims:
            raise UserError(
                f"{where}: field {name!r}: found {array.dtype} with {array.ndim} dimensions, "
                f"expected {dtype} with {dims}"
            )
    if not isinstance(demos.source, str):
        raise UserError(f"{where}: field 'source': found {demos.source!r}, expected text")


def _check_values(demos: Demos, where: str) -> None:
    for name in ("obs", "action", "reward", "returns", "random_returns"):
        array = getattr(demos, name)
        if (place := _first(~np.isfinite(array))) is not None:
            raise UserError(
                f"{where}: field {name!r}: {_row(demos, name, place[0])}: found {array[place]}, "
                f"expected finite numbers"
            )
    if demos.spread is not None and not (demos.spread >= 0).all():
        raise UserError(f"{where}: field 'spread': expected numbers >= 0")
    if (place := _first(np.abs(demos.action) > 1.0)) is not None:
        raise UserError(
            f"{where}: field 'action': {_row(demos, 'action', place[0])}: found "
            f"{demos.action[place]:.9g}, expected values in [-1, 1]; divide by the env's bound, or "
            f"clip values that only rounding put outside"
        )


def _first(bad: NDArray[np.bool_]) -> tuple[int, ...] | None:
    """Return the index of the first true entry, or None if no entry is true."""
    places = np.argwhere(bad)
    return tuple(int(i) for i in places[0]) if len(places) else None


def _row(demos: Demos, name: str, row: int) -> str:
    """Describe a row of an array by its episode and its number within the episode."""
    if name in ("returns", "random_returns"):
        return f"episode {row}"
    ends = np.cumsum(demos.length + (name == "obs"))
    episode = int(np.searchsorted(ends, row, side="right"))
    return f"episode {episode}, row {row - (ends[episode - 1] if episode else 0)}"


def numbers(values: Any, where: str) -> NDArray[Any]:
    """Convert values to an array of real numbers. Raise UserError if they are not numbers."""
    try:
        array = np.asarray(values)
    except (ValueError, RuntimeError):  # e.g. rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "fiub":
        raise UserError(f"{where}: found no array of numbers; pass one")
    return array


def to_float32(array: NDArray[Any], where: str) -> NDArray[np.float32]:
    """Convert an array to float32. Raise UserError if a finite number is too large for float32."""
    with np.errstate(over="ignore"):
        cast = array.astype(np.float32)
    if (place := _first(np.isinf(cast) & np.isfinite(array))) is not None:
        raise UserError(
            f"{where}: row {place[0]}: found {array[place]:.6g}, which is finite but too large for "
            f"float32 (at most 3.4e38); rescale the values"
        )
    return cast


# ---------------------------------------------------------------- implausible data


def measure_spread(env: str) -> NDArray[np.float32]:
    """Return each observation column's typical range within an episode of a random policy.

    A column's range in an episode is its maximum minus its minimum. The result is the median of the
    ranges over episodes. The result is therefore 0 for a column that is constant in most episodes,
    such as the position of a goal, or the force on a body that seldom touches anything. The seed is
    fixed, so the same env gives the same numbers.
    """
    dice = rng(0, "spread", env)
    with contextlib.closing(VectorEnv(env, 1)) as vec:
        episodes = [[vec.reset([derive(0, "spread", env)])[0]]]
        for _ in range(SPREAD_STEPS):
            step = vec.step(dice.uniform(-1.0, 1.0, (1, vec.task.act)))
            episodes[-1].append(step.next_obs[0])
            if step.terminated[0] or step.truncated[0]:
                episodes.append([step.obs[0]])
    moved = [np.ptp(rows, axis=0) for rows in episodes if len(rows) > 1]
    return np.median(moved, axis=0).astype(np.float32)


def doubts(demos: Demos, terminate_when_unhealthy: bool = True) -> list[str]:
    """Return one line of text for each kind of data that the env cannot have produced.

    terminate_when_unhealthy: the value of this env option in training.
    """
    ended, limit = demos.terminated, get_task(demos.env).time_limit
    absorbing = "an absorbing method would learn a false end; write terminated=False"
    if never_terminates(demos.env, terminate_when_unhealthy):
        never = "" if never_terminates(demos.env) else " with terminate_when_unhealthy=False"
        wrong, why = np.flatnonzero(ended), f", but {demos.env} never does{never}"
    else:
        wrong = np.flatnonzero(ended & (demos.length == limit))
        why = f" at step {limit}, which is the time limit of {demos.env}"
    found = [f"{listed('episode', wrong)}: terminated{why}: {absorbing}"] if len(wrong) else []
    # An import that lacks the last next_obs omits an episode's last step.
    short = np.flatnonzero(~ended & (demos.length < limit - 1))
    if len(short):
        found.append(
            f"{listed('episode', short)}: cut off, neither terminated nor at step {limit}, which "
            f"is the time limit of {demos.env}: score 1 is the mean return of complete episodes; "
            f"record them to their end"
        )
    return found + _still(demos)


def _still(demos: Demos) -> list[str]:
    """Return one line of text for each set of observation columns that some episodes never change.

    A block of adjacent constant columns is reported only if at least one of these columns changes
    under a random policy.
    """
    if demos.spread is None:
        return []
    where: dict[str, list[int]] = {}  # columns -> episodes
    starts = np.cumsum(demos.length + 1) - demos.length - 1
    for episode, (start, length) in enumerate(zip(starts, demos.length, strict=True)):
        still = np.ptp(demos.obs[start : start + length + 1], axis=0) == 0
        columns = list[int]()
        for constant, group in itertools.groupby(range(len(still)), key=lambda c: bool(still[c])):
            block = list(group)  # reported as a whole, even if some columns never change
            if constant and (demos.spread[block] > 0).any():
                columns += block
        if columns:
            where.setdefault(listed("column", columns), []).append(episode)
    return [
        f"{listed('episode', episodes)}: {columns} of obs never change, though some of them do "
        f"under a random policy on {demos.env}; check that they were recorded"
        for columns, episodes in where.items()
    ]


def listed(noun: str, numbers: Iterable[int]) -> str:
    """Format increasing numbers as text with ranges, such as `columns 3, 27 to 110`."""
    rising = list(numbers)
    parts = [str(low) if low == high else f"{low} to {high}" for low, high in ranges(rising)]
    return f"{noun}{'s' if len(rising) > 1 else ''} {', '.join(parts)}"


def tell(
    demos: Demos, where: str, *, strict: bool = False, terminate_when_unhealthy: bool = True
) -> None:
    """Warn of each line that `doubts` returns. If `strict`, raise UserError for the first line."""
    for doubt in doubts(demos, terminate_when_unhealthy):
        if strict:
            raise UserError(f"{where}: {doubt}")
        warnings.warn(f"{where}: {doubt}", stacklevel=3)
