"""Markers of lines: whole at the edge, none hidden by another, and none alike in a figure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ngt.settings.load import load
from paper.drawing import marks, style
from paper.drawing.marks import Mean
from paper.figures.curves import CURVE_FIGURES

Array = np.ndarray
LOOK = style.LOOKS["ngt"]


def marked(value: list[float], step: Array | None) -> list[tuple[Array, Array]]:
    """Return x and y of what is drawn of a line, between the limits 0 and 1."""
    axes = style.new_figure(2, 2).subplots()
    line = {**LOOK.line, "zorder": 401}
    Mean(line, LOOK, (0, 2), step, np.array(value)).mark(axes, 10.0, 0.0, 1.0)
    for one in axes.lines:
        assert not one.get_clip_on(), "nothing is cut at the edge of the axes"
    return [(np.asarray(one.get_xdata()), np.asarray(one.get_ydata())) for one in axes.lines]


@pytest.mark.parametrize("count", [1, 2, 10])
def test_no_two_lines_have_markers_at_one_place(count: int) -> None:
    every = [marks.spots(number, count, 5.0, 9.0) for number in range(count)]
    found = np.sort(np.concatenate(every))
    assert len(found) == count * marks.SPOTS
    np.testing.assert_allclose(np.diff(found), 4.0 / len(found))
    assert found[0] > 5.0 and found[-1] < 9.0


def test_markers_lie_on_the_curve_between_its_steps() -> None:
    ((x, y),) = marked([0.0, 1.0], np.array([2.0, 6.0]))
    np.testing.assert_allclose(x, [2.25, 3.25, 4.25, 5.25])
    np.testing.assert_allclose(y, (x - 2.0) / 4.0)


def test_a_horizontal_line_has_markers_over_all_steps() -> None:
    ((x, y),) = marked([0.3], None)
    np.testing.assert_allclose(x, [0.625, 3.125, 5.625, 8.125])
    np.testing.assert_allclose(y, [0.3] * 4)


@pytest.mark.parametrize(("value", "edge"), [(-7.0, 0.0), (3.0, 1.0)])
def test_markers_of_a_line_beyond_the_limits_lie_at_the_edge(value: float, edge: float) -> None:
    for step, values in ((None, [value]), (np.array([0.0, 10.0]), [value] * 2)):
        (_, along), (_, at) = marked(values, step)
        np.testing.assert_array_equal(along, [edge] * 2)
        np.testing.assert_array_equal(at, [edge] * 4)


def test_an_arrow_points_out_of_the_axes() -> None:
    for marker, side in ((marks.UP, -1.0), (marks.DOWN, 1.0)):
        heights = marker.vertices[:, 1]
        assert sorted({*np.sign(heights)}) == sorted([0.0, side])


@pytest.mark.parametrize("scale", ["quick", "lite", "paper"])
def test_no_two_methods_of_a_figure_have_one_marker(scale: str) -> None:
    config = load({"scale": scale})
    for name in CURVE_FIGURES.keys() & config.figures.keys():
        series = CURVE_FIGURES[name].series(config, name)
        for one, other in itertools.combinations(series, 2):
            assert one.look.marker != other.look.marker, f"{name}: {one.label} and {other.label}"
