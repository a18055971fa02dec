"""Tests of the random and expert returns that normalise returns, and of pairs that cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ngt.experience.reference import references, unscored


def test_means_and_standard_errors_by_hand() -> None:
    made = references(np.array([-2.0, 2.0]), np.array([1.0, 2.0, 6.0]))
    assert made == pytest.approx(
        {"random": 0.0, "expert": 3.0, "random_error": 2.0, "expert_error": np.sqrt(7 / 3)}
    )
    alone = references(np.array([-282.0]), np.array([1.0]))
    assert alone == {"random": -282.0, "expert": 1.0}, "one episode must have no standard error"


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ({"random": 0.0, "expert": 1.0}, ""),
        ({"random": 49.5, "expert": 49.0}, "49, is not above the random policy's, 49.5"),
        ({"random": -40.0, "expert": -55.0}, "is not above"),
        ({"random": 7.0, "expert": 7.0}, "is not above"),
        ({"random": 0.0, "expert": 10.0, "random_error": 3.0, "expert_error": 4.0}, ""),
        (
            {"random": 0.0, "expert": 9.99, "random_error": 3.0, "expert_error": 4.0},
            "less than 2 standard errors of the difference (5) above",
        ),
        ({"random": 0.0, "expert": 7.9, "expert_error": 4.0}, "standard errors"),
        ({"random": 0.0, "expert": 8.0, "expert_error": 4.0}, ""),
    ],
)
def test_which_references_give_no_scores(reference: dict[str, Any], reason: str) -> None:
    found = unscored(reference)
    assert bool(found) == bool(reason) and reason in found
