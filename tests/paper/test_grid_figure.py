"""The grid: returns by input mode, demonstrations and rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ngt.errors import UserError
from paper import grid_figure
from paper.drawing import style

Make = Callable[..., Any]
NAME = "grid_figure"


def test_returns_by_mode_and_rate(paper_study: Make, fill: Make, drawn: Make) -> None:
    study = paper_study(NAME, window=2, seeds=[0, 1], rates=[50, 1, 10])
    fill(study)
    for seed, score in enumerate((0.5, 0.7)):
        key = study.key("ngt", 11, seed, "Humanoid-v4", mode="state-state", rate=50)
        study.write(key, [score] * 6)
    seen = drawn(study, NAME)
    assert seen.legend == [
        "every transition", "every 10th transition", "every 50th transition", "expert", "random",
    ]  # fmt: skip
    panels = np.array(seen.figure.axes).reshape(2, 3)
    assert [axes.get_ylabel() for axes in panels[:, 0]] == [
        f"Humanoid-v4, {mode}\nreturn" for mode in ("state-action", "state-state")
    ]
    last = seen.strong(5)
    np.testing.assert_allclose(last[2].get_ydata(), -200 + 0.6 * 500)  # random -200, expert 300
    assert [line.get_color() for line in last] == [look.color for look in style.ramp(3)]
    for axes in panels.ravel():
        grey = {float(x.get_ydata()[0]) for x in axes.lines if x.get_color() == style.GREY}
        assert grey == {-200.0, 300.0}
        assert axes.get_ylim() == (-250.0, 350.0)
    assert "All lines are NGT" in seen.notes
    assert "not normalised" in seen.notes and "0 is the return" not in seen.notes


def test_cut_returns_are_told_as_scores(paper_study: Make, fill: Make, drawn: Make) -> None:
    study = paper_study(NAME, seeds=[0], demos=[1], rates=[20], modes=["state-action"])
    study.write(*study.table(), [0.0, -4.0, -4.0, -4.0])
    seen = drawn(study, NAME)
    assert seen.figure.axes[0].get_ylim()[0] == -450.0
    assert "end at −0.5 and 1.5 (random 0, expert 1); the data reach −4." in seen.notes


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"methods": ["ngt", "bc"]}, r"methods: found \[ngt, bc\], this figure shows one"),
        ({"methods": ["bc-full"]}, r"methods: bc-full has rate 1; name one of any rate"),
        ({"beside": ["bc"]}, r"beside: found bc, this figure shows none"),
    ],
)
def test_one_method_of_any_rate(paper_study: Make, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=rf"figures\.grid_figure\.{text}"):
        grid_figure.rates(paper_study(NAME, **changes).config, NAME)
