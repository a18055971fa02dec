"""The parts of a diagram: boxes of text, arrows between their edges, and a legend."""

from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch
from matplotlib.path import Path

# Font size of titles and of other text, in points, and the distance between lines, in inches.
TITLE, SMALL, LINE = 7.0, 6.5, 0.128

Kind = Literal["trained", "frozen", "data", "formula"]
Flow = Literal["expert", "agent", "plain", "gradient"]
Side = Literal["left", "right", "top", "bottom"]

BOXES: dict[Kind, dict[str, Any]] = {
    "trained": {"facecolor": "white", "edgecolor": "black", "linewidth": 1.8},
    "frozen": {"facecolor": "#d4d4d4", "edgecolor": "black", "linewidth": 1.0, "linestyle": "--"},
    "data": {"facecolor": "white", "edgecolor": "#404040", "linewidth": 0.7},
    "formula": {"facecolor": "white", "edgecolor": "#404040", "linewidth": 0.7},
}
FLOWS: dict[Flow, dict[str, Any]] = {
    "expert": {"color": "#0072B2", "linestyle": (0, (7, 1.3, 1.2, 1.3))},
    "agent": {"color": "#D55E00", "linestyle": (0, (4, 1.6))},
    "plain": {"color": "#404040", "linestyle": "-"},
    "gradient": {"color": "black", "linestyle": (0, (1, 1.2))},
}


@dataclass(frozen=True)
class Box:
    """A box centred on (x, y), in inches. The first line of the text is the title."""

    x: float
    y: float
    width: float
    height: float
    kind: Kind
    lines: tuple[str, ...]

    def at(self, side: Side, shift: float = 0.0) -> tuple[float, float]:
        """Return the middle of a side of the box, moved by `shift` inches.

        A point on the left or right side moves up; a point at the top or bottom moves to the right.
        """
        if side in ("left", "right"):
            return self.x + self.width / 2 * (1 if side == "right" else -1), self.y + shift
        return self.x + shift, self.y + self.height / 2 * (1 if side == "top" else -1)


@dataclass(frozen=True)
class Arrow:
    """A line through points, with a tip at the last point."""

    flow: Flow
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Label:
    """Text next to an arrow. `ha` and `va` align it with the point (x, y), as in matplotlib."""

    x: float
    y: float
    text: str
    ha: str = "center"
    va: str = "bottom"
    color: str = "black"


def add_box(axes: Axes, name: str, box: Box) -> None:
    """Draw a box and its text, which is centred. The first line is bold.

    The ids (gids) of box and text in the drawing are box:<name> and text:<name>.
    """
    shape = "round,pad=0,rounding_size=0.09" if box.kind == "data" else "square,pad=0"
    corner, look = (box.x - box.width / 2, box.y - box.height / 2), BOXES[box.kind]
    patch = FancyBboxPatch(corner, box.width, box.height, boxstyle=shape, zorder=2, **look)
    patch.set_gid(f"box:{name}")
    axes.add_patch(patch)
    for i, line in enumerate(box.lines):
        y = box.y + LINE * ((len(box.lines) - 1) / 2 - i)
        font: Any = {"fontsize": SMALL} if i else {"fontsize": TITLE, "fontweight": "bold"}
        axes.text(box.x, y, line, ha="center", va="center", zorder=3, gid=f"text:{name}", **font)


def add_arrow(axes: Axes, gid: str, arrow: Arrow) -> None:
    """Draw an arrow: a line with square corners and a solid tip."""
    look = FLOWS[arrow.flow]
    x, y = zip(*arrow.points, strict=True)
    axes.plot(x, y, linewidth=1.0, solid_joinstyle="miter", gid=gid, zorder=1, **look)
    tip = FancyArrowPatch(
        path=Path(arrow.points[-2:]),
        arrowstyle="-|>,head_width=0.3,head_length=0.5",
        mutation_scale=9,
        linewidth=0,
        color=look["color"],
        shrinkA=0,
        shrinkB=0,
        zorder=1,
    )
    axes.add_patch(tip)


def add_label(axes: Axes, gid: str, label: Label) -> None:
    """Draw the text of a label."""
    text = axes.text(label.x, label.y, label.text, fontsize=SMALL, linespacing=1.15, gid=gid)
    text.set(ha=label.ha, va=label.va, color=label.color)


def add_legend(axes: Axes, x: float, y: float) -> None:
    """Draw a legend of the kinds of boxes and arrows in one row, centred at (x, y)."""
    kinds: tuple[Kind, ...] = ("trained", "frozen")
    flows: dict[str, Flow] = {
        "expert data": "expert",
        "agent data": "agent",
        "both, or other": "plain",
        "gradient": "gradient",
    }
    handles: list[Artist] = [Patch(label=kind, **BOXES[kind]) for kind in kinds]
    handles += [
        Line2D([], [], label=text, linewidth=1.0, **FLOWS[flow]) for text, flow in flows.items()
    ]
    axes.legend(
        handles=handles,
        ncols=len(handles),
        loc="center",
        bbox_transform=axes.transData,
        bbox_to_anchor=(x, y),
        fontsize=SMALL,
        handlelength=2.6,
    )
