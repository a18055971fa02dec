"""Units of actions: the env's own units (`env`), or fractions of the env's bound (`unit`).

Fractions lie in [-1, 1]. The suite stores actions as fractions. Most files from other projects use
the env's own units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.experience.envs import Task

UNITS = ("env", "unit")
ROUNDING = 1e-5  # largest excess over the bound due to float32 rounding, as a share of the bound


def to_unit(
    actions: Sequence[NDArray[Any]], unit: str, task: Task, where: str
) -> list[NDArray[Any]]:
    """Convert each episode's actions to fractions of the env's bound.

    Raise UserError if the unit is unknown or an action is outside the env's bounds.
    """
    if unit not in UNITS:
        raise UserError(
            f"{where}: actions: found {unit!r}, expected 'env' (the env's own units) or 'unit' "
            f"(fractions of its bound, in [-1, 1])"
        )
    if unit == "unit":
        return list(actions)
    found = []
    for episode, array in enumerate(map(np.atleast_1d, actions)):
        fraction = (array.astype(np.float64) - _middle(task)) / task.half_range
        if len(outside := np.argwhere(np.abs(fraction) > 1.0 + ROUNDING)):
            place = tuple(outside[0])
            raise UserError(
                f"{where}: episode {episode}: action: row {place[0]}: found {array[place]:.6g}, "
                f"expected {task.low:g} to {task.high:g} on {task.id}; check that the actions are "
                f"of this env, and clip those that the env clipped itself"
            )
        found.append(np.clip(fraction, -1.0, 1.0))
    return found


def to_env(actions: NDArray[Any], task: Task) -> NDArray[np.float64]:
    """Convert actions from fractions in [-1, 1] to the env's own units, within its bounds."""
    rescaled = actions.astype(np.float64) * task.half_range + _middle(task)
    return rescaled.clip(task.low, task.high)  # rounding may put them just outside


def ambiguity(actions: Sequence[NDArray[Any]], unit: str, task: Task) -> str:
    """Return a warning if actions could be in either unit, otherwise an empty string.

    unit: the unit that was assumed when the actions were read.
    """
    given = np.concatenate([array.ravel() for array in actions])
    largest = float(np.abs(given).max(initial=0.0))
    as_env = float(np.abs(given - _middle(task)).max(initial=0.0)) / task.half_range
    same = (task.low, task.high) == (-1.0, 1.0)
    if same or largest > 1.0 + ROUNDING or as_env > 1.0 + ROUNDING:
        return ""
    return (
        f"the largest action is {largest:.4g}, which fits both units on {task.id}: it is "
        f"{as_env:.1%} of the bound if it is in the env's units (env) and {largest:.1%} if it is a "
        f"fraction of the bound (unit); it was read as {unit!r}"
    )


def _middle(task: Task) -> float:
    return 0.5 * (task.low + task.high)
