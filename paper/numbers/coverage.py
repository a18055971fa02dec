"""How often a nominal 95% interval covers the true value, found by simulation.

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

# The distributions of the simulated scores, with words for each. `draw` defines the distributions.
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
TASKS = 6  # number of tasks in the simulation of several tasks; their mean scores span 0.2 to 1

# Percentage of simulations in which the interval covers the true value, for each number in SEEDS:
# first for scores on one task, then for scores on TASKS tasks.
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

# The scale of the spread of scores over seeds, and the share of runs that fail, i.e. score near 0.
SPREAD, FAILS = 0.1, 0.1
DRAWS = {"mean": 20_000, "std": 20_000, "IQM": 1000, "P": 1000}  # number of simulated sets of runs
REPS = 400  # number of resamples of a bootstrap


def caution(seeds: Iterable[int], *kinds: Kind, tasks: int = 1) -> str:
    """Return a sentence per kind of interval that says how often it covers the true value.

    Return an empty text if every interval is from a single seed.

    seeds: the numbers of seeds from which the intervals are computed.
    tasks: the largest number of tasks from which an interval is computed.
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
    """Return the percentages in COVERAGE of a kind of interval, one per distribution.

    For more seeds than the largest number in SEEDS, return the percentages of that number.

    several: 0 for intervals over one task, 1 for intervals over several tasks.
    """
    at = SEEDS.index(min(seeds, SEEDS[-1]))
    return [COVERAGE[kind, shape][several][at] for shape in SHAPES]


def _plain(shares: Sequence[int]) -> str:
    return f"{shares[0]}%, {shares[1]}% or {shares[2]}%"


# ---------------------------------------------------------------- simulation


def draw(rng: np.random.Generator, shape: Shape, size: tuple[int, ...]) -> Array:
    """Draw and return scores from a distribution, with shape `size` = (..., seeds, tasks).

    Skewed scores are log-normal. If runs can fail, a share FAILS of them scores near 0.
    """
    centres = np.linspace(0.2, 1.0, size[-1]) if size[-1] > 1 else np.ones(1)
    if shape == "skewed":
        return centres + SPREAD * (np.exp(rng.standard_normal(size)) - math.exp(0.5))
    runs = np.where(rng.random(size) < FAILS, 0.0, centres) if shape == "failing" else centres
    return runs + SPREAD * rng.standard_normal(size) * (0.5 if shape == "failing" else 1)


def iqm(scores: Array) -> Array:
    """Return the interquartile mean over the last axis."""
    cut = scores.shape[-1] // 4
    return np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut].mean(axis=-1)


def beaten(x: Array, y: Array) -> Array:
    """Return the share of pairs of scores in which x is larger than y, averaged over tasks."""
    return (x[..., :, None, :] > y[..., None, :, :]).mean(axis=(-3, -2, -1))


def resampled(rng: np.random.Generator, scores: Array) -> Array:
    """Return REPS resamples of the scores (..., seeds, tasks), shape (..., REPS, seeds, tasks).

    The seeds of each task are resampled independently.
    """
    size = (*scores.shape[:-2], REPS, *scores.shape[-2:])
    at = rng.integers(0, scores.shape[-2], size)
    return np.take_along_axis(scores[..., None, :, :], at, axis=-2)


@cache
def truth(kind: Kind, shape: Shape, tasks: int) -> float:
    """Return the value that an interval of this kind should cover.

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
    """Return the share of simulated sets of runs whose interval covers the true value.

    draws: the number of simulated sets; 0 stands for the number in DRAWS.
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
    """Repeat the simulation and yield the lines of COVERAGE, one per kind and distribution."""
    for kind in KINDS:
        for shape in SHAPES:
            one, several = (
                tuple(round(100 * covered(kind, shape, seeds, tasks)) for seeds in SEEDS)
                for tasks in (1, TASKS)
            )
            yield f'("{kind}", "{shape}"): ({one}, {several}),'


if __name__ == "__main__":
    print(*simulated(), sep="\n")
