"""A panel's limits, and settings for which a figure allows only one value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ngt.settings.config import Config
from ngt.settings.load import load
from paper.drawing import notes, style
from paper.drawing.panels import (
    AUC,
    BANDS,
    RETURN,
    SCORE,
    Measure,
    Panel,
    Place,
    Series,
)
from paper.numbers.curves import AXES

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


def test_the_worst_value_cut_has_the_unit_of_the_axis() -> None:
    cut = panel(RETURN, (-200.0, 300.0), [-1200.0, 800.0, -700.0])
    found = cut.finish(3.0, *cut.limits())
    assert [(place.env, value, above) for place, value, above in found] == [
        ("Hopper-v4", -1200.0, False),
        ("Hopper-v4", 800.0, True),
    ]
    less = found[0]._replace(value=-900.0)
    (note,) = notes.warnings(pd.DataFrame(columns=["status", *AXES]), 1, [], [less, found[0]], [])
    assert note.text.endswith("reach −1,200."), "the farthest value on each side counts"
    (note,) = notes.warnings(pd.DataFrame(columns=["status", *AXES]), 1, [], found, [])
    assert note.text == "↓ ↑: cut. The returns on Hopper-v4 reach −1,200 and 800."


def test_the_value_farthest_beyond_the_axis_is_found_where_all_are_negative() -> None:
    cut = panel(RETURN, (-1500.0, -1000.0), [-1200.0, -600.0])
    cut.lines.append((LOOK, np.arange(2.0), np.array([-300.0, -1200.0])))
    (found,) = cut.finish(1.0, *cut.limits())
    assert (found.value, found.above) == (-300.0, True)


def runs(value: float) -> pd.DataFrame:
    """Return two seeds, 0.2 apart, around a score."""
    rows = [(s, step, value + 0.2 * s - 0.1) for s in (0, 1) for step in (1, 2, 3)]
    return pd.DataFrame(rows, columns=["seed", "step", "score"]).assign(status="finished")


@pytest.mark.parametrize(("count", "bands"), [(BANDS, BANDS), (BANDS + 1, 1)])
def test_only_a_few_lines_all_have_a_band(count: int, bands: int) -> None:
    crowded = panel(SCORE, (0.0, 1.0), [0.2])
    crowded.config = load({"scale": "quick"})
    for number in range(count):
        series = Series("ngt", 20, "NGT", LOOK, reference=number == 1)
        crowded.add(runs(0.5), series, number, count)
    assert len(crowded.axes.collections) == bands
    thin = [line for line in crowded.axes.lines if line.get_alpha()]
    assert len(thin) == (count if count <= BANDS else 0)
    assert len(crowded.means) == count


def test_a_mean_beyond_the_axes_is_drawn_along_the_edge() -> None:
    cut = panel(SCORE, (0.0, 1.0), [0.2])
    cut.config = load({"scale": "quick"})
    cut.add(runs(-7.0), Series("ngt", 20, "NGT", LOOK), 0, 1)
    cut.finish(3.0, *cut.limits())
    (edge,) = (line for line in cut.axes.lines if line.get_zorder() == 399)
    np.testing.assert_array_equal(edge.get_ydata(), [-0.5] * 3)


def test_thin_lines_have_the_dashes_of_their_method() -> None:
    few = panel(SCORE, (0.0, 1.0), [0.2])
    few.config = load({"scale": "quick"})
    for number, look in enumerate((LOOK, style.LOOKS["bc"])):
        few.add(runs(0.5), Series("ngt", 20, "NGT", look), number, 2)
    thin = [line for line in few.axes.lines if line.get_alpha()]
    assert [line.get_linestyle() for line in thin] == ["-", "--"]
