"""Ten seeds: a line each, and how far apart they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Make = Callable[..., Any]
NAME = "seeds_figure"


@pytest.fixture
def study(paper_study: Make) -> Any:
    """Ten seeds whose score stands at a tenth of their place, one of them diverged half-way."""
    made = paper_study(NAME, window=2, demos=[1])
    for key in made.table():
        score = (key.seed + 1) / 10
        made.write(key, [score] * (3 if key.seed == 4 else 6), diverged=key.seed == 4)
    return made


def test_every_seed_has_its_line(study: Any, drawn: Make) -> None:
    seen = drawn(study, NAME)
    (mean,) = seen.strong(0)
    np.testing.assert_allclose(mean.get_ydata(), 0.55)
    thin = [line.get_ydata() for line in seen.figure.axes[0].lines if line.get_alpha()]
    np.testing.assert_allclose([y[0] for y in thin], np.arange(1, 11) / 10)
    assert [int(np.isfinite(y).sum()) for y in thin] == [6] * 4 + [3] + [6] * 5
    assert "Thin lines: each run's running mean over 2 evaluations" in seen.notes
    assert "n = 10 seeds a curve" in seen.notes


def test_the_spread_of_final_scores_is_said(study: Any, drawn: Make) -> None:
    std = np.std(np.arange(1, 11) / 10, ddof=1)
    assert drawn(study, NAME).above(0) == (
        f"n = 10 final scores: mean 0.55, std {std:.2f}, min 0.10, max 1.00"
    )


def test_one_seed_has_no_spread(paper_study: Make, drawn: Make) -> None:
    study = paper_study(NAME, demos=[1], seeds=[3])
    study.write(*study.table(), [-0.25] * 6)
    assert drawn(study, NAME).above(0) == (
        "n = 1 final scores: mean −0.25, std none, min −0.25, max −0.25"
    )
