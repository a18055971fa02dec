"""Functions that compute estimates with bootstrap intervals.

The estimates are interquartile means, probabilities of improvement and performance profiles.
rliable's stratified bootstrap resamples seeds within each task. Importing rliable takes seconds, so
only modules that need such estimates import this module.
"""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from rliable import library, metrics

from ngt.seeding import derive
from ngt.settings.config import StatisticsConfig
from paper.numbers.statistics import Array, Estimate, mean


@contextlib.contextmanager
def seeded(seed: int, *axes: str | int) -> Iterator[None]:
    """Seed NumPy's global generator inside a `with` block, and restore its state afterwards.

    rliable draws only from this generator; it ignores its own `random_state` argument.

    axes: names and numbers that are combined with the seed; different axes give independent random
    numbers.
    """
    state = np.random.get_state()
    np.random.seed(derive(seed, *axes) % 2**32)
    try:
        yield
    finally:
        np.random.set_state(state)


@cache
def say_once(text: str) -> None:
    """Print a progress message on stderr, but each text only once."""
    print(text, file=sys.stderr, flush=True)


def estimates(
    function: Callable[..., Any],
    arrays: Sequence[Array],
    settings: StatisticsConfig,
    *axes: str | int,
) -> list[Estimate]:
    """Return each number that function(*arrays) returns, with a bootstrap interval.

    arrays: scores of shape (seeds, tasks); each array is resampled independently.
    axes: names and numbers for the random generator (see `seeded`). Use different axes for
    different intervals, so that their resamples are independent.
    """
    data: Any = list(arrays) if len(arrays) > 1 else arrays[0]
    if min(len(a) for a in arrays) < 2:
        values = np.ravel(function(*arrays))
        return [Estimate(float(v), math.nan, math.nan) for v in values]
    say_once(f"paper: bootstrap of {settings.reps} repetitions per interval; this may take minutes")
    with seeded(settings.seed, *axes):
        points, ends = library.get_interval_estimates(
            {"": data}, lambda *a: np.ravel(function(*a)), reps=settings.reps
        )
    return [Estimate(*map(float, row)) for row in zip(points[""], *ends[""], strict=True)]


def aggregates(
    scores: Array, settings: StatisticsConfig, *axes: str | int
) -> tuple[Estimate, Estimate]:
    """Return the interquartile mean and the optimality gap of all scores.

    The optimality gap is the mean of max(0, 1 - score), so its interval is cut at 0.
    """
    iqm = estimates(metrics.aggregate_iqm, [scores], settings, "aggregates", *axes)[0]
    gap = mean(1 - np.minimum(scores, 1))
    return iqm, gap._replace(low=float(np.maximum(gap.low, 0)))


def improvement(x: Array, y: Array, settings: StatisticsConfig, *axes: str | int) -> Estimate:
    """Return the probability that a score in x exceeds a score in y on the same task.

    The probability is averaged over tasks. A tie counts half.
    """
    return estimates(metrics.probability_of_improvement, [x, y], settings, "improvement", *axes)[0]


def profile(
    scores: Array, taus: Array, settings: StatisticsConfig, *axes: str | int
) -> list[Estimate]:
    """Return the share of scores that are strictly above each of the thresholds `taus`."""
    function = library.score_distributions
    return estimates(lambda s: function(s, taus), [scores], settings, "profile", *axes)


def iqm_difference(x: Array, y: Array, settings: StatisticsConfig, *axes: str | int) -> Estimate:
    """Return the interquartile mean of x minus the interquartile mean of y."""
    iqm = metrics.aggregate_iqm
    return estimates(lambda a, b: iqm(a) - iqm(b), [x, y], settings, "difference", *axes)[0]
