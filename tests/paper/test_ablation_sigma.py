"""Widths of HL-Gauss: the reward's AUC, and where it is under 0.5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from paper.drawing import style

Make = Callable[..., Any]
NAME = "ablation_sigma"
PRINTED, EQUAL = "NGT (σ = 0.25 expert, 0.05 agent)", "NGT (σ = 0.1)"


@pytest.fixture
def draw(paper_study: Make, drawn: Make) -> Make:
    """draw(printed, equal): two seeds a method, with these AUCs at four evaluations."""

    def make(printed: Sequence[float], equal: Sequence[float], **axes: Any) -> Any:
        study = paper_study(NAME, window=2, seeds=[0, 1], **{"demos": [4], **axes})
        for key in study.table():
            study.write(key, [0.5] * 4, auc=printed if key.method == "ngt" else equal)
        return drawn(study, NAME)

    return make


def test_auc_is_drawn_beside_returns_and_what_is_inverted_is_marked(draw: Make) -> None:
    seen = draw([0.9, 0.7, 0.4, 0.2], [0.9, 0.9, 0.8, 0.8])
    returns, auc = seen.figure.axes
    assert seen.legend[:2] == [PRINTED, EQUAL]
    first, second = seen.strong(1)
    np.testing.assert_allclose(first.get_ydata(), [0.9, 0.8, 0.55, 0.3])
    np.testing.assert_allclose(second.get_ydata(), [0.9, 0.9, 0.85, 0.8])
    assert seen.above(1) == f"inverted: {PRINTED} at 50% of evaluations"
    assert {text.get_color() for text in auc.texts} == {style.ALERT}
    (shade,) = auc.patches
    assert shade.get_bbox().y1 == 0.5 and shade.get_bbox().y0 == auc.get_ylim()[0]
    assert not returns.patches and not returns.texts
    assert returns.get_ylim() == (-0.1, 1.1)
    assert auc.get_ylim() == pytest.approx((0.18, 1.02))
    assert {"AUC 0.5: no better than chance", "inverted reward"} < set(seen.legend)
    assert "under 0.5 the reward is inverted" in seen.notes


def test_nothing_is_inverted(draw: Make) -> None:
    seen = draw([0.5, 0.6, 0.7, 0.8], [0.9] * 4, demos=[1, 4])
    assert [seen.above(panel) for panel in range(4)] == ["", "", *["never under 0.5"] * 2]
    assert seen.figure.axes[2].get_ylim() == pytest.approx((0.4, 1.02))


def test_a_small_share_is_not_none(paper_study: Make, drawn: Make) -> None:
    study = paper_study(NAME, seeds=[0], demos=[4])
    for key in study.table():
        study.write(key, [0.5] * 300, auc=[0.4] + [0.9] * 299)
    parts = "; ".join(f"{label} at under 1%" for label in (PRINTED, EQUAL))
    assert drawn(study, NAME).above(1) == f"inverted: {parts} of evaluations"


def test_no_auc_is_said(draw: Make) -> None:
    seen = draw([], [])
    assert seen.above(1) == "no AUC was logged"
    assert seen.strong(1) == []
