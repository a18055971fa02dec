"""Estimates with bootstrap intervals: interquartile means, improvements and profiles.

rliable's stratified bootstrap resamples seeds within each task. rliable takes seconds to import, so
only modules that draw such an estimate import this one.
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
    """Seed NumPy's global generator from the named axes, and restore its state at the end.

    rliable draws from that generator alone and ignores its own argument `random_state`.
    """
    state = np.random.get_state()
    np.random.seed(derive(seed, *axes) % 2**32)
    try:
        yield
    finally:
        np.random.set_state(state)


@cache
def say_once(text: str) -> None:
    """Print a line on stderr for a waiting user, at most once per text."""
    print(text, file=sys.stderr, flush=True)


def estimates(
    function: Callable[..., Any],
    arrays: Sequence[Array],
    settings: StatisticsConfig,
    *axes: str | int,
) -> list[Estimate]:
    """Return an estimate, with its interval, of each number that function(*arrays) returns.

    arrays: scores of shape (seeds, tasks), each resampled independently.
    axes: names for the random draws, so that different intervals use independent draws.
    """
    data: Any = list(arrays) if len(arrays) > 1 else arrays[0]
    if min(len(a) for a in arrays) < 2:
        values = np.ravel(function(*arrays))
        return [Estimate(float(v), math.nan, math.nan) for v in values]
    say_once(f"paper: bootstrap of {settings.reps} repetitions per interval; this takes minutes")
    with seeded(settings.seed, *axes):
        points, ends = library.get_interval_estimates(
            {"": data}, lambda *a: np.ravel(function(*a)), reps=settings.reps
        )
    return [Estimate(*map(float, row)) for row in zip(points[""], *ends[""], strict=True)]


def aggregates(
    scores: Array, settings: StatisticsConfig, *axes: str | int
) -> tuple[Estimate, Estimate]:
    """Return the interquartile mean and the optimality gap over all runs and tasks.

    The gap is the mean shortfall of the scores from 1.
    """
    iqm = estimates(metrics.aggregate_iqm, [scores], settings, "aggregates", *axes)[0]
    return iqm, mean(1 - np.minimum(scores, 1))


def improvement(x: Array, y: Array, settings: StatisticsConfig, *axes: str | int) -> Estimate:
    """Return the probability that a run of x beats a run of y, averaged over tasks.

    A tie counts half.
    """
    return estimates(metrics.probability_of_improvement, [x, y], settings, "improvement", *axes)[0]


def profile(
    scores: Array, taus: Array, settings: StatisticsConfig, *axes: str | int
) -> list[Estimate]:
    """Return the share of runs that score strictly above each tau."""
    function = library.score_distributions
    return estimates(lambda s: function(s, taus), [scores], settings, "profile", *axes)


def iqm_difference(x: Array, y: Array, settings: StatisticsConfig, *axes: str | int) -> Estimate:
    """Return the difference of the interquartile means, x minus y, with its interval."""
    iqm = metrics.aggregate_iqm
    return estimates(lambda a, b: iqm(a) - iqm(b), [x, y], settings, "difference", *axes)[0]
