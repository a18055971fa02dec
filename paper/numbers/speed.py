"""Training speeds for the speed table, the speed figure and the claims."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ngt.errors import UserError
from ngt.settings.config import Config
from ngt.settings.resolve import find_method
from paper.register import SPEED

NAME = SPEED  # the entry of `figures` in the config whose runs are timed
STRETCH = 0.2  # speeds are measured over stretches, each of which is this fraction of a run

Array = NDArray[np.float64]


class Machine(NamedTuple):
    """The machine that trained a run.

    device: the GPU's name, or "cpu". If the record lacks the GPU's name, the CUDA device, such as
    "cuda:0".
    gpu: True if `device` is a GPU's name.
    """

    name: str
    device: str
    gpu: bool


def machine(record: Mapping[str, Any]) -> Machine:
    """Return the machine that trained a run, given the run's record."""
    device = str(record.get("gpu") or record.get("device"))
    return Machine(str(record.get("machine")), device, bool(record.get("gpu")))


def base(config: Config, method: str) -> str:
    """Return the method on which a timed variant is based, such as `dac-r` for `speed-dac`."""
    return find_method(config, method).like or method


def clock(run: pd.DataFrame, name: str) -> tuple[Array, Array]:
    """Return the env step of each evaluation of a run, and the seconds of training until then.

    Both arrays start with 0.

    name: the run's name, for error messages.
    """
    rows = run.dropna(subset="seconds").sort_values("step")
    if rows.empty:
        raise UserError(f"run {name}: it recorded no times; train it again")
    steps = np.concatenate([[0.0], rows["step"].to_numpy(float)])
    return steps, np.concatenate([[0.0], rows["seconds"].to_numpy(float)])


def reach(steps: Array) -> int:
    """Return how many evaluations a stretch of a run contains.

    steps: the env steps of the run's evaluations, as `clock` returns them.
    """
    return max(1, round(STRETCH * (len(steps) - 1)))


def mean_rate(steps: Array, seconds: Array) -> float:
    """Return the mean number of env steps per second over a whole run."""
    return float(steps[-1] / max(seconds[-1], 1e-9))


def stretches(steps: Array, seconds: Array) -> Array:
    """Return the env steps per second in each of a run's stretches that do not overlap.

    The last stretch ends at the end of the run.
    """
    return rates(steps, seconds)[1][:: -reach(steps)][::-1]


def rates(steps: Array, seconds: Array) -> tuple[Array, Array]:
    """Return each stretch's last env step, and the env steps per second in the stretch.

    A stretch ends at every evaluation except the first few, so stretches overlap.
    """
    n = reach(steps)
    passed = np.maximum(seconds[n:] - seconds[:-n], 1e-9)
    return steps[n:], (steps[n:] - steps[:-n]) / passed
