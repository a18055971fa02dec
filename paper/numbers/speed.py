"""Training speeds for the speed table, the speed figure and the claims."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.settings.config import Config
from ngt.settings.resolve import find_method
from paper.register import SPEED

NAME = SPEED  # the entry of the config's `figures` with the runs whose speed is reported
STRETCH = 0.2  # a stretch is this fraction of a run; speeds are measured over stretches

Array = NDArray[np.float64]


def base(config: Config, method: str) -> str:
    """Return the method on which a timed variant is based, such as `dac-r` for `speed-dac`."""
    return find_method(config, method).like or method


def clock(run: pd.DataFrame, name: str) -> tuple[Array, Array]:
    """Return the env steps of a run's evaluations, and the seconds of training until each of these.

    Both arrays start with 0.

    name: the name of the run, for an error message.
    """
    rows = run.dropna(subset="seconds").sort_values("step")
    if rows.empty:
        raise UserError(f"run {name}: it recorded no times; train it again")
    steps = np.concatenate([[0.0], rows["step"].to_numpy(float)])
    return steps, np.concatenate([[0.0], rows["seconds"].to_numpy(float)])


def reach(steps: Array) -> int:
    """Return the number of evaluations in a stretch of a run.

    steps: the env steps of the run's evaluations, as `clock` returns them.
    """
    return max(1, round(STRETCH * (len(steps) - 1)))


def mean_rate(steps: Array, seconds: Array) -> float:
    """Return the env steps per second over a whole run."""
    return float(steps[-1] / max(seconds[-1], 1e-9))


def stretches(steps: Array, seconds: Array) -> Array:
    """Return the env steps per second in stretches that do not overlap.

    The last stretch ends with the run.
    """
    return rates(steps, seconds)[1][:: -reach(steps)][::-1]


def rates(steps: Array, seconds: Array) -> tuple[Array, Array]:
    """Return the last step of each stretch of a run, and the env steps per second in the stretch.

    A stretch ends at each evaluation, except for the first few. Stretches therefore overlap.
    """
    n = reach(steps)
    passed = np.maximum(seconds[n:] - seconds[:-n], 1e-9)
    return steps[n:], (steps[n:] - steps[:-n]) / passed
