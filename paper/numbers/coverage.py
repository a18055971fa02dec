"""A simulation of how often nominal 95% intervals cover the true value.

`python -m paper.numbers.coverage` repeats the simulation and prints the values of COVERAGE.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal

import numpy as np

from paper.numbers.statistics import Array, chi_square_bounds, t_interval

Kind = Literal["mean", "IQM", "P", "std"]
Shape = Literal["normal", "skewed", "failing"]

# The distributions of the simulated scores, each with a description. `draw` defines the
# distributions.
SHAPES: dict[Shape, str] = {
    "normal": "normal scores",
    "skewed": "skewed scores",
    "failing": "one run in ten fails",
}
KINDS: dict[Kind, str] = {
    "mean": "a nominal 95% interval covers the true mean",
    "IQM": "a nominal 95% interval covers the true IQM",
    "P": "a nominal 95% interval covers the true probability of improvement",
    "std": "the 95% upper bound of a standard deviation lies above the true value",
}
TASKS = 6  # number of tasks where several are simulated; their mean scores range from 0.2 to 1

# For each kind of interval and each distribution: the percentages of simulations in which the
# interval covers the true value, for each number of seeds in SEEDS. The first tuple is for scores
# on one task, and the second for scores on TASKS tasks.
SEEDS = range(2, 11)
COVERAGE: dict[tuple[Kind, Shape], tuple[tuple[int, ...], tuple[int, ...]]] = {
    ("mean", "normal"): (
        (95, 95, 95, 95, 95, 95, 95, 95, 95),
        (98, 96, 96, 96, 95, 95, 95, 95, 95),
    ),
    ("mean", "skewed"): (
        (90, 84, 83, 82, 82, 82, 83, 84, 84),
        (93, 90, 89, 90, 90, 90, 90, 91, 91),
    ),
    ("mean", "failing"): (
        (85, 66, 50, 46, 48, 52, 56, 61, 65),
        (78, 81, 86, 88, 90, 91, 92, 92, 92),
    ),
    ("IQM", "normal"): ((49, 73, 87, 90, 92, 91, 94, 94, 93), (76, 86, 88, 90, 90, 92, 93, 93, 92)),
    ("IQM", "skewed"): ((49, 71, 87, 89, 90, 89, 94, 93, 94), (70, 81, 85, 87, 88, 91, 92, 91, 90)),
    ("IQM", "failing"): (
        (51, 75, 88, 89, 89, 90, 93, 92, 92),
        (57, 72, 78, 82, 85, 88, 87, 90, 89),
    ),
    ("P", "normal"): ((47, 70, 83, 85, 89, 90, 89, 91, 90), (86, 88, 93, 94, 92, 94, 93, 94, 95)),
    ("P", "skewed"): ((45, 67, 80, 86, 86, 85, 88, 90, 91), (83, 90, 91, 93, 92, 94, 93, 94, 94)),
    ("P", "failing"): ((36, 52, 64, 77, 77, 80, 82, 83, 86), (84, 90, 90, 92, 93, 93, 93, 92, 93)),
    ("std", "normal"): ((95, 95, 95, 95, 95, 95, 95, 95, 95), (95, 95, 95, 95, 95, 95, 95, 95, 95)),
    ("std", "skewed"): ((87, 74, 66, 61, 58, 56, 55, 54, 54), (64, 57, 54, 53, 52, 52, 51, 51, 50)),
    ("std", "failing"): (
        (76, 38, 35, 41, 47, 51, 56, 62, 65),
        (61, 68, 71, 72, 73, 74, 73, 74, 74),
    ),
}

# SPREAD: the scale of the scores' spread over seeds. FAILS: the probability that a run fails, i.e.
# scores near 0, in the "failing" distribution.
SPREAD, FAILS = 0.1, 0.1
DRAWS = {"mean": 20_000, "std": 20_000, "IQM": 1000, "P": 1000}  # number of simulated sets of runs
REPS = 400  # number of resamples of a bootstrap


def caution(seeds: Iterable[int], *kinds: Kind, tasks: int = 1) -> str:
    """Say how often intervals cover the true value, in one sentence per kind of interval.

    Return an empty string if each interval is computed from a single seed.

    seeds: the numbers of seeds from which the intervals are computed.
    tasks: the largest number of tasks from which any of the intervals is computed.
    """
    counts = sorted({n for n in seeds if n > 1})
    return " ".join(_sentence(kind, counts, tasks) for kind in kinds if counts)


def _sentence(kind: Kind, counts: Iterable[int], tasks: int) -> str:
    text = ""
    for n in counts:
        one, several = (_shares(kind, n, i) for i in (0, 1))
        if text:
            text += f"; with {n} seeds in about {_plain(one)}"
        else:
            cases = [f"{share}% ({word})" for share, word in zip(one, SHAPES.values(), strict=True)]
            first, second, third = cases
            first = first.replace("%", "% of cases", 1)
            text = f"With {n} seeds, {KINDS[kind]} in about {first}, {second} or {third}"
        text += f", over {TASKS} tasks in {_plain(several)}" if tasks > 1 else ""
    return f"{text}."


def _shares(kind: Kind, seeds: int, several: int) -> list[int]:
    """Look up a kind of interval in COVERAGE, and return one percentage per distribution.

    If there are more seeds than SEEDS includes, use the largest number in SEEDS.

    several: 0 for intervals over one task, 1 for intervals over several tasks.
    """
    at = SEEDS.index(min(seeds, SEEDS[-1]))
    return [COVERAGE[kind, shape][several][at] for shape in SHAPES]


def _plain(shares: Sequence[int]) -> str:
    return f"{shares[0]}%, {shares[1]}% or {shares[2]}%"


# ---------------------------------------------------------------- simulation


def draw(rng: np.random.Generator, shape: Shape, size: tuple[int, ...]) -> Array:
    """Draw scores from a distribution, with shape `size` = (..., seeds, tasks).

    Skewed scores are log-normal. In the "failing" distribution, each run fails with probability
    FAILS and then scores near 0.
    """
    centres = np.linspace(0.2, 1.0, size[-1]) if size[-1] > 1 else np.ones(1)
    if shape == "skewed":
        return centres + SPREAD * (np.exp(rng.standard_normal(size)) - math.exp(0.5))
    runs = np.where(rng.random(size) < FAILS, 0.0, centres) if shape == "failing" else centres
    return runs + SPREAD * rng.standard_normal(size) * (0.5 if shape == "failing" else 1)


def iqm(scores: Array) -> Array:
    """Return the interquartile mean of the scores along the last axis."""
    cut = scores.shape[-1] // 4
    return np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut].mean(axis=-1)


def beaten(x: Array, y: Array) -> Array:
    """Return the share of pairs of scores in which x is larger than y, averaged over the tasks."""
    return (x[..., :, None, :] > y[..., None, :, :]).mean(axis=(-3, -2, -1))


def resampled(rng: np.random.Generator, scores: Array) -> Array:
    """Resample scores of shape (..., seeds, tasks) to shape (..., REPS, seeds, tasks).

    The seeds of each task are resampled independently.
    """
    size = (*scores.shape[:-2], REPS, *scores.shape[-2:])
    at = rng.integers(0, scores.shape[-2], size)
    return np.take_along_axis(scores[..., None, :, :], at, axis=-2)


@cache
def truth(kind: Kind, shape: Shape, tasks: int) -> float:
    """Return the true value, which an interval of this kind should cover.

    The value is estimated from 400 000 runs per task.
    """
    rng = np.random.default_rng(0)
    x, y = (draw(rng, shape, (400_000, tasks)) for _ in range(2))
    if kind == "IQM":
        return float(iqm(x.ravel()))
    if kind == "P":
        return float((x > y - SPREAD).mean())
    return float(x.mean() if kind == "mean" else np.sqrt(x.var(axis=0).mean()))


def covered(kind: Kind, shape: Shape, seeds: int, tasks: int = 1, draws: int = 0) -> float:
    """Simulate sets of runs, and return the share of sets whose interval covers the true value.

    draws: the number of simulated sets; 0 means the number in DRAWS.
    """
    rng, true, size = np.random.default_rng(seeds), truth(kind, shape, tasks), (seeds, tasks)
    hits, draws = [], draws or DRAWS[kind]
    for n in [draws] if kind in ("mean", "std") else [50] * (draws // 50):
        x = draw(rng, shape, (n, *size))
        if kind == "mean":
            _, low, high = t_interval(x)
        elif kind == "std":
            _, _, high = chi_square_bounds(x)
            low = np.zeros(())
        elif kind == "IQM":
            again = iqm(resampled(rng, x).reshape(n, REPS, -1))
            low, high = np.percentile(again, [2.5, 97.5], axis=1)
        else:
            y = draw(rng, shape, (n, *size)) - SPREAD
            again = beaten(resampled(rng, x), resampled(rng, y))
            low, high = np.percentile(again, [2.5, 97.5], axis=1)
        hits.append(np.mean((low <= true) & (true <= high)))
    return float(np.mean(hits))


def simulated() -> Iterator[str]:
    """Repeat the simulation; yield the lines of COVERAGE, one per kind and distribution."""
    for kind in KINDS:
        for shape in SHAPES:
            one, several = (
                tuple(round(100 * covered(kind, shape, seeds, tasks)) for seeds in SEEDS)
                for tasks in (1, TASKS)
            )
            yield f'("{kind}", "{shape}"): ({one}, {several}),'


if __name__ == "__main__":
    print(*simulated(), sep="\n")
