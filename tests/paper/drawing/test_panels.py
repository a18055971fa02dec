"""A panel's limits, and settings for which a figure allows only one value."""

from __future__ import annotations

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.settings.config import Config, FigureConfig
from paper.drawing import style
from paper.drawing.panels import AUC, RETURN, SCORE, Measure, Panel, Place, plan_of

LOOK = style.LOOKS["ngt"]


def panel(measure: Measure, ends: tuple[float, float] | None, values: list[float]) -> Panel:
    axes = style.new_figure(2, 2).subplots()
    made = Panel(axes, Config(), Place("Hopper-v4", "state-action", 1, measure), ends)
    made.lines.append((LOOK, np.arange(len(values), dtype=float), np.array(values)))
    return made


@pytest.mark.parametrize(
    ("measure", "ends", "values", "limits"),
    [
        (SCORE, (0.0, 1.0), [0.2, np.nan], (-0.1, 1.1)),
        (SCORE, (0.0, 1.0), [-0.3, 1.2], (-0.32, 1.22)),
        (SCORE, (0.0, 1.0), [-9.0, 9.0], (-0.5, 1.5)),
        (RETURN, (-200.0, 300.0), [0.0], (-250.0, 350.0)),
        (RETURN, (-200.0, 300.0), [-900.0, 400.0], (-450.0, 410.0)),
        (RETURN, (300.0, -200.0), [0.0], (-250.0, 350.0)),  # the expert is worse than random
        (AUC, None, [0.7], (0.4, 1.02)),
        (AUC, None, [0.1, 1.1], (0.08, 1.12)),
    ],
)
def test_limits(
    measure: Measure,
    ends: tuple[float, float] | None,
    values: list[float],
    limits: tuple[float, float],
) -> None:
    assert panel(measure, ends, values).limits() == pytest.approx(limits)


def test_without_any_run_of_its_env_a_return_has_no_scale() -> None:
    empty = panel(RETURN, None, [])
    empty.lines.clear()
    assert empty.finish(10.0, *empty.limits()) == []
    assert len(empty.axes.lines) == 0 and len(empty.axes.get_yticks()) == 0


def test_the_worst_value_cut_is_a_score() -> None:
    cut = panel(RETURN, (-200.0, 300.0), [-1200.0, 800.0, -700.0])
    assert cut.finish(3.0, *cut.limits()) == pytest.approx([-2.0, 2.0])


def test_one_value_where_one_is_shown() -> None:
    plan = FigureConfig(methods=("ngt",), envs=("Hopper-v4",), rates=(10, 20))
    config = Config(figures={"x": plan})
    assert plan_of(config, "x", one=["modes"]) is plan
    with pytest.raises(UserError, match=r"figures\.x\.rates: found \[10, 20\]; this figure needs"):
        plan_of(config, "x")
