"""Bootstrap estimates, compared with hand-computed numbers and rliable's, and their pitfalls."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from ngt.settings.config import StatisticsConfig
from paper.numbers import bootstrap, statistics

FEW = StatisticsConfig(reps=200)
ONE = StatisticsConfig(reps=1)


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def test_against_the_official_numbers(vectors: Any) -> None:
    official = {name: array.numpy() for name, array in vectors("rliable").items()}
    scores = [official[f"scores_{i}"] for i in range(len(official["iqm"]))]
    for i, x in enumerate(scores):
        iqm, gap = bootstrap.aggregates(x, ONE)
        assert iqm.value == pytest.approx(official["iqm"][i], abs=1e-12)
        assert gap.value == pytest.approx(official["optimality_gap"][i], abs=1e-12)
        assert statistics.mean(x).value == pytest.approx(official["mean"][i], abs=1e-12)
        shares = [e.value for e in bootstrap.profile(x, official["taus"], ONE)]
        np.testing.assert_allclose(shares, official["profile"][i], atol=1e-12)
        for j, y in enumerate(scores):
            value = bootstrap.improvement(x, y, ONE).value
            assert value == pytest.approx(official["prob_improvement"][i, j], abs=1e-12)


def test_values_by_hand() -> None:
    scores = np.array([[0.0, 1.0], [0.1, 1.2], [0.8, 0.2]])  # 3 seeds, 2 tasks
    iqm, gap = bootstrap.aggregates(scores, ONE)
    assert iqm.value == pytest.approx((0.1 + 0.2 + 0.8 + 1.0) / 4), (
        "the IQM must cut floor(0.25 x 6) = 1 score at each end"
    )
    assert gap.value == pytest.approx(1 - (0 + 0.1 + 0.8 + 1.0 + 1.0 + 0.2) / 6), (
        "a score above 1 must count as 1"
    )


def test_a_tie_is_half_a_win() -> None:
    x, y = column(0.5, 1.0), column(0.5, 0.2)
    assert bootstrap.improvement(x, y, ONE).value == pytest.approx((0.5 + 1 + 1 + 1) / 4)
    assert bootstrap.improvement(y, x, ONE).value == pytest.approx(1 - 3.5 / 4)
    assert bootstrap.improvement(x, x, ONE).value == 0.5


def test_a_profile_counts_strictly_above() -> None:
    shares = bootstrap.profile(column(0.5, 0.5, 1.0), np.array([0.4, 0.5, 1.0]), ONE)
    assert [e.value for e in shares] == pytest.approx([1.0, 1 / 3, 0.0])


def test_a_difference_of_interquartile_means_has_a_sign() -> None:
    x, y = column(0.0, 0.1, 0.2, 9.0), column(1.0, 1.0, 1.0, 1.0)
    assert bootstrap.iqm_difference(x, y, ONE).value == pytest.approx(0.15 - 1)


def test_draws_are_named_and_leave_the_global_generator_alone() -> None:
    scores = np.random.default_rng(1).normal(size=(5, 3))
    first = bootstrap.aggregates(scores, FEW, "a")
    np.random.seed(7)
    expected = np.random.random(3)
    np.random.seed(7)
    assert bootstrap.aggregates(scores, FEW, "a") == first, "earlier draws must have no effect"
    assert (np.random.random(3) == expected).all()
    assert bootstrap.aggregates(scores, FEW, "b") != first
    other = StatisticsConfig(reps=200, seed=1)
    assert bootstrap.aggregates(scores, other, "a") != first
    np.random.seed(7)
    with pytest.raises(ZeroDivisionError):
        bootstrap.estimates(lambda s: 1 / 0, [scores], FEW)
    assert (np.random.random(3) == expected).all(), "an error must leave the generator alone"


def test_the_number_of_repetitions_is_the_config_s() -> None:
    calls = []
    bootstrap.estimates(lambda s: calls.append(1) or [0.0], [column(1.0, 2.0)], FEW)
    assert len(calls) - FEW.reps in (1, 2), "only the value itself may add calls"


def test_a_bootstrap_says_once_what_takes_time(capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap.say_once.cache_clear()
    for axis in ("a", "b"):
        bootstrap.aggregates(column(0.5, 1.0), ONE, axis)
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and f"bootstrap of {ONE.reps} repetitions" in said.err
    assert not said.out


def test_only_bootstraps_import_rliable() -> None:
    """Check that figures without a bootstrap start without rliable and scipy.stats."""
    code = "import sys, paper.figures.curves; print(*{'rliable', 'scipy.stats'} & {*sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""
