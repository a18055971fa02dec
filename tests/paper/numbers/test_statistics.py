"""Means, spreads and their intervals, compared with hand-computed numbers and SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from ngt.errors import UserError
from ngt.runs.keys import RunKey
from ngt.runs.table import read_runs
from paper.numbers import statistics
from paper.numbers.statistics import Estimate, gather


def key(method: str, seed: int, env: str = "Pendulum-v1", demos: int = 1) -> RunKey:
    return RunKey(env, method, "state-action", 20, demos, seed)


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


# --- values


def test_values_by_hand() -> None:
    assert statistics.mean(np.array([[0.0, 1.0], [0.1, 1.2], [0.8, 0.2]])).value == (
        pytest.approx(3.3 / 6)
    )
    two = statistics.spread(np.array([[0.0, 1.0], [0.2, 1.4]])).value
    assert two == pytest.approx(math.sqrt((0.02 + 0.08) / 2)), (
        "the spread must be the root of the mean sample variance"
    )


def test_a_difference_has_a_sign() -> None:
    x, y = column(0.0, 0.1, 0.2, 9.0), column(1.0, 1.0, 1.0, 1.0)
    assert statistics.difference(x, y).value == pytest.approx(9.3 / 4 - 1)


# --- intervals


def test_the_interval_of_a_mean_is_student_s() -> None:
    """Check that the t interval of three seeds extends 4.303 standard errors to each side."""
    e = statistics.mean(column(0.0, 1.0, 2.0))
    half = 4.30265 / math.sqrt(3)
    assert e == pytest.approx((1.0, 1 - half, 1 + half), rel=1e-5)
    assert statistics.mean(column(0.5, 0.5, 0.5)) == (0.5, 0.5, 0.5)


def test_tasks_and_methods_keep_their_own_variances() -> None:
    """Check that an interval is not widened by distant tasks or by tasks with equal scores."""
    assert statistics.mean(np.array([[0.0, 10.0], [0.0, 10.0]])) == (5.0, 5.0, 5.0)
    alone = statistics.mean(column(0.0, 1.0, 2.0))
    both = statistics.mean(np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]]))
    assert both.high - both.value == pytest.approx((alone.high - alone.value) / 2)
    x, y = np.random.default_rng(0).normal(size=(2, 4, 1))
    welch = scipy.stats.ttest_ind(x.ravel(), y.ravel(), equal_var=False).confidence_interval()
    found = statistics.difference(x, y)
    assert (found.low, found.high) == pytest.approx((welch.low, welch.high))


def test_the_bounds_of_a_spread_are_chi_square() -> None:
    """Check four seeds with the chi-square quantiles for 3 degrees of freedom, 0.352 and 7.815."""
    found = statistics.spread(column(0.0, 1.0, 2.0, 3.0))
    root = math.sqrt(5 / 3)
    expected = (root, root * math.sqrt(3 / 7.8147), root * math.sqrt(3 / 0.35185))
    assert found == pytest.approx(expected, rel=1e-4)


def test_one_seed_has_no_interval() -> None:
    alone = statistics.mean(column(0.5))
    assert alone.value == 0.5 and math.isnan(alone.low) and math.isnan(alone.high)
    against = statistics.difference(column(0.5), column(0.1, 0.3))
    assert against.value == pytest.approx(0.3) and math.isnan(against.low)


def test_text() -> None:
    assert Estimate(-0.126, -0.2, 0.3).text() == "−0.13 [−0.20, 0.30]"
    assert str(Estimate(0.5, math.nan, math.nan)) == "0.50"
    assert Estimate(0.5, 0.25, 0.75).text("{:.1f}") == "0.5 [0.2, 0.8]"


# --- matrices


def test_a_matrix_is_seeds_by_tasks() -> None:
    keys = [key(m, s, demos=k) for m in ("ngt", "bc") for k in (1, 4) for s in (0, 1)]
    scores = {k: k.seed + 10.0 * k.demos + 100 * (k.method == "bc") for k in keys}
    found = gather(list(reversed(keys)), scores, "f")
    assert found.tasks == (("Pendulum-v1", 1), ("Pendulum-v1", 4))
    assert found.of["ngt"].tolist() == [[10, 40], [11, 41]]
    assert found.of["bc"].tolist() == [[110, 140], [111, 141]]
    assert found.at(4).of["ngt"].tolist() == [[40], [41]]
    assert found.at(4).tasks == (("Pendulum-v1", 4),)
    assert (found.silent, found.left_out) == ((), ())


def test_a_task_that_a_method_lacks_a_run_of_is_left_out_for_all() -> None:
    keys = [key(m, s, demos=k) for m in ("ngt", "bc", "red") for k in (1, 4) for s in (0, 1)]
    there = {k: 1.0 for k in keys if k.method != "red" and k != key("bc", 1, demos=4)}
    found = gather(keys, there, "f")
    assert found.silent == ("red",)
    assert found.left_out == (("Pendulum-v1", 4),)
    assert {m: s.shape for m, s in found.of.items()} == {"ngt": (2, 1), "bc": (2, 1)}
    with pytest.raises(UserError, match=r"f: no task has all its runs; .*/bc/.*seed0, for exa"):
        gather(keys, {key("ngt", 0): 1.0}, "f")


def test_two_rates_are_no_task() -> None:
    other = RunKey("Pendulum-v1", "ngt", "state-action", 10, 1, 0)
    with pytest.raises(UserError, match="choose one input mode and one rate"):
        gather([key("ngt", 0), other], {}, "f")


def test_final_scores_of_runs(make_study) -> None:
    study = make_study(methods=["ngt"], demos=[1], seeds=[0, 1, 2], window=2)
    study.write(study.key("ngt", seed=0), [9.0, 0.4, 0.8])
    study.write(study.key("ngt", seed=1), [0.3], diverged=True)
    study.write(study.key("ngt", seed=2), [], diverged=True)
    runs, _ = read_runs(study.layout, study.config, "main_figure")
    found = statistics.final(runs, study.table(), 2)
    assert [found[k] for k in sorted(found)] == pytest.approx([0.6, 0.3, 0.0])
    assert statistics.final(None, [], 2) == {}


def test_a_run_without_any_row_diverged_before_an_evaluation() -> None:
    """Check that a run without rows counts as diverged, since a finished run has rows."""
    lost = statistics.diverged(None, [key("ngt", 0)])
    assert lost.runs == lost.silent == {key("ngt", 0)}
