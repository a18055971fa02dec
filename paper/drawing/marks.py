"""The markers on lines, which name each method where colours cannot."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.path import Path

from paper.drawing.style import Look
from paper.numbers.curves import Array

SPOTS = 4  # markers on each line
MARKER: dict[str, Any] = {
    "linestyle": "none",
    "markeredgecolor": "white",
    "markeredgewidth": 0.3,
    "clip_on": False,
}
# An arrow whose tip is at the origin. No method's marker is an arrow.
UP = Path([(0, -1), (0, 0), (-0.35, -0.4), (0, 0), (0.35, -0.4)], [1, 2, 1, 2, 2])
DOWN = Path(-np.asarray(UP.vertices), UP.codes)
ARROW: dict[str, Any] = {"markersize": 16, "fillstyle": "none", "markeredgewidth": 1.0}


def spots(number: int, count: int, start: float, end: float) -> Array:
    """Return the x values of the markers on line `number` of `count`, between start and end.

    Lines with the same start and end have no x value in common, so no marker hides another.
    """
    shares = (np.arange(SPOTS) + (number + 0.5) / count) / SPOTS
    out: Array = start + shares * (end - start)
    return out


def draw(axes: Axes, x: Array, y: Array, look: Look, zorder: float) -> None:
    """Draw markers. Those at the edge of the axes are drawn whole."""
    axes.plot(x, y, color=look.color, marker=look.marker, zorder=zorder, **MARKER)


def arrow(
    axes: Axes, x: float, y: float, look: Look, *, above: bool, sideways: bool = False
) -> None:
    """Draw an arrow at the edge of the axes, towards a line's values beyond it.

    sideways: True if the values are beyond the x axis instead of the y axis.
    """
    marker = UP if above else DOWN
    if sideways:
        marker = Path(np.asarray(marker.vertices)[:, ::-1], marker.codes)
    look_of: dict[str, Any] = {"linestyle": "none", "zorder": 700, "clip_on": False, **ARROW}
    axes.plot(x, y, color=look.color, marker=marker, **look_of)


class Mean(NamedTuple):
    """The strong line of a method: a curve, or a horizontal line.

    line: the keywords of the line.
    place: the line's number, and the number of lines in the figure.
    step: x of a curve; None for a horizontal line.
    value: y of a curve, or the single y of a horizontal line.
    """

    line: dict[str, Any]
    look: Look
    place: tuple[int, int]
    step: Array | None
    value: Array

    def mark(self, axes: Axes, steps: float, low: float, high: float) -> None:
        """Draw the markers in front of all lines.

        Beyond the limits low and high, draw the line and its markers along the edge.

        steps: x at which a horizontal line ends.
        """
        x, y = self.step, self.value
        if x is None:
            x, y = np.array([0.0, steps]), np.repeat(y, 2)
        edge = np.where((y < low) | (y > high), np.clip(y, low, high), np.nan)
        if np.isfinite(edge).any():
            axes.plot(x, edge, **{**self.line, "zorder": 399}, clip_on=False)
        at = spots(*self.place, float(x[0]), float(x[-1]))
        shown = np.clip(np.interp(at, x, y), low, high)
        draw(axes, at, shown, self.look, self.line["zorder"] + 200)
