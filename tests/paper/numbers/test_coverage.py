"""The coverage that texts state for intervals, compared with simulations of the intervals."""

from __future__ import annotations

import numpy as np
import pytest
from rliable import metrics

from ngt.settings.config import StatisticsConfig
from paper.numbers import bootstrap, coverage
from paper.numbers.coverage import COVERAGE, SEEDS, SHAPES, TASKS, Kind, Shape, covered
from paper.numbers.statistics import t_interval

PARAMETERS = pytest.mark.parametrize("seeds", [3, 4, 10])


@PARAMETERS
@pytest.mark.parametrize("tasks", [1, 2, TASKS])
def test_a_mean_of_normal_scores_is_covered_within_two_points(seeds: int, tasks: int) -> None:
    assert covered("mean", "normal", seeds, tasks) == pytest.approx(0.95, abs=0.02)


@PARAMETERS
def test_a_difference_of_means_is_covered_within_two_points(seeds: int) -> None:
    """Compare two methods with equal spreads, then two whose spreads differ by a factor of 2."""
    rng = np.random.default_rng(seeds)
    for wider in (1.0, 2.0):
        x, y = rng.standard_normal((2, 20_000, seeds, 1))
        _, low, high = t_interval(x, wider * y)
        assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("seeds", [2, 3, 4, 10])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["mean", "std"])
def test_the_coverage_stated_is_that_of_the_intervals(kind: Kind, shape: Shape, seeds: int) -> None:
    for tasks, stated in zip((1, TASKS), COVERAGE[kind, shape], strict=True):
        found = 100 * covered(kind, shape, seeds, tasks)
        assert found == pytest.approx(stated[SEEDS.index(seeds)], abs=1.5)


@pytest.mark.parametrize("seeds", [3, 10])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["IQM", "P"])
def test_the_coverage_stated_is_that_of_the_bootstrap(kind: Kind, shape: Shape, seeds: int) -> None:
    found = 100 * covered(kind, shape, seeds, draws=300)
    assert found == pytest.approx(COVERAGE[kind, shape][0][SEEDS.index(seeds)], abs=6)


def test_the_simulated_bootstrap_is_rliable_s() -> None:
    rng = np.random.default_rng(0)
    x, y = coverage.draw(rng, "skewed", (2, 4, 6))
    of_rliable = bootstrap.estimates(metrics.aggregate_iqm, [x], StatisticsConfig(reps=4000))[0]
    again = coverage.iqm(
        np.concatenate([coverage.resampled(rng, x).reshape(-1, 24) for _ in range(10)])
    )
    assert coverage.iqm(x.ravel()) == pytest.approx(of_rliable.value)
    ends = np.percentile(again, [2.5, 97.5])
    assert ends == pytest.approx([of_rliable.low, of_rliable.high], abs=0.01)
    better = bootstrap.improvement(x, y, StatisticsConfig(reps=1)).value
    assert coverage.beaten(x, y) == pytest.approx(better)


def test_a_caution_names_every_number_of_seeds_once() -> None:
    assert coverage.caution([], "mean") == coverage.caution([1, 1], "mean") == ""
    text = coverage.caution([10, 3, 3, 1], "mean")
    skewed = COVERAGE["mean", "skewed"][0][SEEDS.index(3)]
    assert f"{skewed}% (skewed scores)" in text
    assert text.count("3 seeds") == text.count("10 seeds") == 1
    assert "tasks" in coverage.caution([3], "mean", tasks=2) and "tasks" not in text
    assert coverage.caution([40], "mean") == coverage.caution([10], "mean").replace("10", "40", 1)
    assert coverage.caution([3], "mean", "IQM").count("With 3 seeds") == 2
