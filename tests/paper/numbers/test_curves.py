"""Curves and levels, compared with numbers computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.runs.table import read_runs
from paper.numbers import curves


@pytest.fixture
def rows(make_study: Callable[..., Any]) -> Callable[..., Any]:
    """Return rows({seed: scores}, diverged=seeds), which makes the rows of one method's runs."""

    def read(scores: dict[int, list[float]], diverged: tuple[int, ...] = ()) -> Any:
        study = make_study(methods=["ngt"], demos=[1], seeds=list(scores))
        for seed, values in scores.items():
            study.write(study.key("ngt", seed=seed), values, diverged=seed in diverged)
        return read_runs(study.layout, study.config, "main_figure")[0]

    return read


def test_curve(rows: Callable[..., Any]) -> None:
    c = curves.curve(rows({0: [0.0, 0.3, 0.6, 0.9], 1: [0.2, 0.2, 0.8, 0.2]}), window=2)
    smooth = np.array([[0.0, 0.15, 0.45, 0.75], [0.2, 0.2, 0.5, 0.5]])
    np.testing.assert_array_equal(c.step, [10_000, 20_000, 30_000, 40_000])
    np.testing.assert_allclose(c.mean, [0.1, 0.175, 0.475, 0.625], atol=1e-12)
    np.testing.assert_allclose(c.std, np.abs(smooth[0] - smooth[1]) / np.sqrt(2), atol=1e-12)
    np.testing.assert_allclose(c.raw, [0.1, 0.25, 0.7, 0.55], atol=1e-12)
    assert (c.ends, c.seeds) == ([], 2)


def test_one_seed_has_no_spread(rows: Callable[..., Any]) -> None:
    runs = rows({0: [0.0, 1.0]})
    assert np.isnan(curves.curve(runs, 3).std).all()
    assert np.isnan(curves.level(runs, 3).std)
    assert curves.level(runs, 3).mean == pytest.approx(0.5)


def test_a_diverged_run_counts_with_its_last_value(rows: Callable[..., Any]) -> None:
    c = curves.curve(rows({0: [0.2, 0.4], 1: [0.0, 0.0, 0.6, 0.6]}, diverged=(0,)), window=2)
    np.testing.assert_allclose(c.mean, [0.1, 0.15, 0.3, 0.45], atol=1e-12)
    np.testing.assert_allclose(c.raw, [0.1, 0.2, 0.5, 0.5], atol=1e-12)
    assert c.ends == [(20_000.0, pytest.approx(0.3))]
    assert c.seeds == 2


def test_a_hole_in_a_finished_run_is_an_error(rows: Callable[..., Any]) -> None:
    runs = rows({0: [0.2, 0.4, 0.6], 1: [0.0, 0.1]})
    with pytest.raises(UserError, match="seed1: no evaluation at step 30000"):
        curves.curve(runs, 2)


def test_level_is_the_mean_of_final_scores(rows: Callable[..., Any]) -> None:
    runs = rows({0: [9.0, 0.2, 0.4], 1: [9.0, 0.5, 0.7], 2: [0.6]}, diverged=(2,))
    at = curves.level(runs, window=2)
    assert at.mean == pytest.approx((0.3 + 0.6 + 0.6) / 3)
    assert at.std == pytest.approx(np.std([0.3, 0.6, 0.6], ddof=1))
    assert at.ends == [pytest.approx(0.6)]
    assert at.seeds == 3


def test_only_a_diverged_run_may_have_a_score_that_is_not_finite(
    rows: Callable[..., Any],
) -> None:
    nan = float("nan")
    runs = rows({0: [0.2, 0.4], 1: [0.2, nan]}, diverged=(1,))
    assert curves.curve(curves.usable(runs), 1).ends == [(10_000.0, pytest.approx(0.2))]
    runs["status"] = "finished"
    with pytest.raises(UserError, match=r"seed1: its score at step 20000 is not finite"):
        curves.usable(runs)


@pytest.mark.parametrize(
    ("steps", "unit", "word"),
    [(400, 1, ""), (40_000, 1e3, " (10³)"), (400_000, 1e3, " (10³)"), (10**7, 1e6, " (10⁶)")],
)
def test_units_of_steps(steps: int, unit: float, word: str) -> None:
    assert curves.unit(steps) == (unit, word)


def test_each_run_ends_where_it_diverged(rows: Callable[..., Any]) -> None:
    c = curves.curve(rows({0: [0.2, 0.4], 1: [0.0, 0.0, 0.6]}, diverged=(0,)), window=2)
    np.testing.assert_allclose(c.each, [[0.2, 0.3, np.nan], [0.0, 0.0, 0.3]], atol=1e-12)


def test_references_are_one_pair_an_env(rows: Callable[..., Any]) -> None:
    runs = rows({0: [0.1], 1: [0.2]})
    assert curves.reference(runs, "Pendulum-v1") == (-200.0, 300.0)
    assert curves.reference(runs, "Hopper-v4") is None
    runs.loc[0, "random"] = -100.0
    with pytest.raises(UserError, match=r"Pendulum-v1: their random and expert returns differ"):
        curves.reference(runs, "Pendulum-v1")
