"""Panels of learning curves, for every figure with env steps on the x axis."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from ngt.runs.keys import RunKey
from ngt.settings.config import Config, Mode
from paper.drawing import marks, style
from paper.drawing.marks import Mean
from paper.drawing.style import Look
from paper.numbers import curves
from paper.numbers.curves import Array, Curve, Level

EXPERT: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (4, 3))}
RANDOM: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (1, 2))}
EVEN: dict[str, Any] = {"color": style.ALERT, "linewidth": 0.9, "linestyle": (0, (6, 2, 1, 2))}
INVERTED: dict[str, Any] = {"color": style.ALERT, "alpha": 0.09, "linewidth": 0}
DIVERGED: dict[str, Any] = {"color": style.ALERT, "marker": "x", "linestyle": "none"}
CROSS: dict[str, Any] = {"markersize": 4.5, "markeredgewidth": 1.2}

REMARK_SIZE = 5.5  # font size of the text above a panel, in points
THIN = 0.45  # width of background lines, in points
# A panel with more lines than this has no thin lines, and only the reference has a band
# (docs/artefacts.md says why).
BANDS = 4

SHOWN = (-0.1, 1.1)  # smallest y range of a panel, in normalised returns
LIMIT = (-0.5, 1.5)  # largest y range of a panel, in normalised returns


def demonstrations(count: int) -> str:
    """Return a number of demonstrations in words."""
    return f"{count} demonstration{'s' * (count != 1)}"


class Measure(NamedTuple):
    """The quantity on the y axis.

    column: the quantity's column in the rows of `ngt.runs.table.read_runs`.
    label: the label of the axis.
    tick: the distance between ticks; None lets matplotlib choose.
    """

    column: str
    label: str
    tick: float | None = None


SCORE = Measure("score", "normalised return", 0.5)
RETURN = Measure("return", "return")
AUC = Measure("auc", "AUC of the reward", 0.25)


class Series(NamedTuple):
    """A line in every panel: a method at a subsampling rate."""

    method: str
    rate: int
    label: str
    look: Look
    reference: bool = False  # True for the line with which all others are compared

    @property
    def width(self) -> float:
        """Return the width of the line in points."""
        return 1.5 if self.reference else 1.1


class Cut(NamedTuple):
    """A value beyond a panel's axes, in the unit of its y axis."""

    place: "Place"
    value: float
    above: bool  # True if the value is above the axes


class Place(NamedTuple):
    """The content of a panel: an env, an input mode, a number of demonstrations and a measure."""

    env: str
    mode: Mode
    demos: int
    measure: Measure = SCORE

    def cell(self, series: Series) -> tuple[str, str, Mode, int, int]:
        """Return the values in the columns `curves.CELL` that select a series' rows here."""
        return (self.env, series.method, self.mode, series.rate, self.demos)

    def holds(self, key: RunKey) -> bool:
        """Return True if a run belongs to this panel, whatever its method."""
        return (key.env, key.mode, key.demos) == (self.env, self.mode, self.demos)


@dataclass(eq=False)
class Panel:
    """The axes of a panel, and what is drawn in them.

    ends: the returns of a random policy and of the expert, if they are drawn as lines.
    scored: True if returns can be normalised with the returns of a random policy and the expert.
    last: the largest env step.
    seeds: the number of runs of each series.
    lines: look, x and y of every curve, thin line and edge of a band.
    means: every curve and every horizontal line.
    levels: look and band of every horizontal line.
    crosses: x and y of the points at which runs diverged; an x of None means the right edge.
    remarks: text and colour of each remark above the panel.
    """

    axes: Axes
    config: Config
    place: Place
    ends: tuple[float, float] | None
    scored: bool = True
    last: float = 0.0
    seeds: list[int] = field(default_factory=list)
    lines: list[tuple[Look, Array, Array]] = field(default_factory=list)
    means: list[Mean] = field(default_factory=list)
    levels: list[tuple[Look, Array]] = field(default_factory=list)
    crosses: list[tuple[float | None, float]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)

    def add(
        self, runs: pd.DataFrame, series: Series, number: int, count: int, *, each: bool = False
    ) -> None:
        """Draw series `number` of `count`. The first series lies on top, and markers are staggered.

        runs: the rows of the series, with the panel's measure in column `score`.
        each: if True, thin lines show single seeds; otherwise a thin line shows the unsmoothed
        mean.
        """
        if runs.empty:
            return
        backed = series.reference or count <= BANDS
        if curves.offline(self.config, series.method, self.place.env):
            at = curves.level(runs, self.config.window)
            self._add_level(at, series, number, count, backed=backed)
        else:
            c = curves.curve(runs, self.config.window)
            self._add_curve(c, series, number, count)
            if backed:
                thin = c.each if each else [c.raw] * (self.config.window > 1 and count <= BANDS)
                self._add_background(c, series.look, count - number, thin)

    def _add_curve(self, c: Curve, series: Series, number: int, count: int) -> None:
        look = series.look
        strong = self._strong(series, number, count)
        self.axes.plot(c.step, c.mean, **strong)
        self.lines.append((look, c.step, c.mean))
        self.means.append(Mean(strong, look, (number, count), c.step, c.mean))
        self.crosses += c.ends
        self.seeds.append(c.seeds)
        self.last = max(self.last, float(c.step[-1]))

    @staticmethod
    def _strong(series: Series, number: int, count: int) -> dict[str, Any]:
        """Return the keywords of a strong line."""
        return {**series.look.line, "linewidth": series.width, "zorder": 400 + count - number}

    def _add_background(self, c: Curve, look: Look, front: int, thin: Iterable[Array]) -> None:
        """Draw thin lines and the band behind a curve."""
        for y in thin:
            alpha, zorder = 0.35 if y is c.raw else 0.6, 200 + front
            self.axes.plot(c.step, y, **look.line, linewidth=THIN, alpha=alpha, zorder=zorder)
            self.lines.append((look, c.step, y))
        if c.seeds > 1:
            low, high = c.mean - c.std, c.mean + c.std
            self.axes.fill_between(
                c.step, low, high, color=look.color, alpha=0.13, linewidth=0, zorder=front
            )
            self.lines += [(look, c.step, low), (look, c.step, high)]

    def _add_level(
        self, at: Level, series: Series, number: int, count: int, *, backed: bool
    ) -> None:
        look, spread = series.look, at.std if at.seeds > 1 and backed else 0.0
        strong, front = self._strong(series, number, count), count - number
        self.axes.axhline(at.mean, **strong)
        band = at.mean + np.array([-1.0, 1.0]) * spread
        if spread:
            self.axes.axhspan(*band, color=look.color, alpha=0.13, linewidth=0, zorder=front)
        self.levels.append((look, band))
        self.means.append(Mean(strong, look, (number, count), None, np.array([at.mean])))
        self.crosses += [(None, end) for end in at.ends]
        self.seeds.append(at.seeds)

    @property
    def unit(self) -> tuple[Measure, str]:
        """Return a key that is equal for panels with comparable y values.

        Returns can be compared only within one env.
        """
        measure = self.place.measure
        return measure, self.place.env if measure == RETURN else ""

    def values(self) -> Array:
        """Return every finite y value that is drawn."""
        own = [0.42, 1.0] if self.place.measure == AUC else list(self.ends or ())
        ys = [y for _, _, y in self.lines] + [y for _, y in self.levels]
        every = np.concatenate([own, *ys])
        return every[np.isfinite(every)]

    def limits(self) -> tuple[float, float]:
        """Return the y limits that the panel needs, within LIMIT."""
        values = self.values()
        if not len(values):
            return 0.0, 1.0
        if self.ends is None:
            return values.min() - 0.02, values.max() + 0.02
        if not self.scored:
            pad = 0.05 * float(np.ptp(values)) or 1.0
            return values.min() - pad, values.max() + pad
        random, expert = self.ends
        shown = sorted(random + (expert - random) * np.array(SHOWN))
        limit = sorted(random + (expert - random) * np.array(LIMIT))
        pad = 0.02 * abs(expert - random)
        low = max(min(shown[0], values.min() - pad), limit[0])
        return low, min(max(shown[1], values.max() + pad), limit[1])

    def finish(self, steps: float, low: float, high: float) -> list[Cut]:
        """Set the limits. Draw references, markers, crosses, and an arrow at each line that is cut.

        A mean beyond the limits is drawn along the edge. Return the most extreme values beyond the
        limits.
        """
        self.axes.set(xlim=(0, steps), ylim=(low, high))
        if self.place.measure == AUC:
            self.axes.axhspan(low, 0.5, **INVERTED, zorder=0)
            self.axes.axhline(0.5, **EVEN, zorder=300)
        elif self.ends is not None:
            for value, line in zip(self.ends, (RANDOM, EXPERT), strict=True):
                self.axes.axhline(value, **line, zorder=300)
        else:
            self.axes.set_yticks([])
        cross: dict[str, Any] = {**DIVERGED, **CROSS, "zorder": 800, "clip_on": False}
        for step, score in self.crosses:
            self.axes.plot(steps if step is None else step, np.clip(score, low, high), **cross)
        for mean in self.means:
            mean.mark(self.axes, steps, low, high)
        worst = self._cut(steps, low, high)
        for (look, above), (x, _) in worst.items():
            marks.arrow(self.axes, x, high if above else low, look, above=above)
        return [Cut(self.place, y, above) for (_, above), (_, y) in worst.items()]

    def _cut(
        self, steps: float, low: float, high: float
    ) -> dict[tuple[Look, bool], tuple[float, float]]:
        """Return each line's point farthest below the limits, and its point farthest above them.

        A key is the line's look, and True for a point above. Lines within the limits are left out.
        """
        worst: dict[tuple[Look, bool], tuple[float, float]] = {}
        far: dict[tuple[Look, bool], float] = {}
        levels = [
            (look, np.full(2, steps * (0.95 - 0.05 * i)), y)
            for i, (look, y) in enumerate(self.levels)
        ]
        for look, x, y in [*self.lines, *levels]:
            for above, at in ((False, int(np.nanargmin(y))), (True, int(np.nanargmax(y)))):
                past = float(y[at] - high if above else low - y[at])
                if past > far.get((look, above), 0.0):
                    far[look, above] = past
                    worst[look, above] = (float(x[at]), float(y[at]))
        return worst


Rows = Sequence[Sequence[Panel]]


def finish(rows: Rows) -> list[Cut]:
    """Set limits and ticks. Panels with the same unit in a row share their y limits.

    Return the most extreme values beyond the limits.
    """
    cut: list[Cut] = []
    lasts = [max(panel.last for panel in row) for row in rows]
    longest = max(lasts) or 1.0
    scale, word = curves.unit(longest)
    same = len(set(lasts) - {0.0}) <= 1
    for number, (row, last) in enumerate(zip(rows, lasts, strict=True)):
        below = rows[number + 1] if number + 1 < len(rows) else ()
        for column, panel in enumerate(row):
            axes, tick = panel.axes, panel.place.measure.tick
            alike = [other for other in row if other.unit == panel.unit]
            lows, highs = zip(*(other.limits() for other in alike), strict=True)
            cut += panel.finish(last or longest, min(lows), max(highs))
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / scale:g}"))
            if panel.ends is not None or panel.place.measure == AUC:
                nice = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
                axes.yaxis.set_major_locator(MultipleLocator(tick) if tick else nice)
            axes.tick_params(labelleft=panel is alike[0])
            if column >= len(below):
                axes.set_xlabel(f"env steps{word}")
            elif same:
                axes.tick_params(labelbottom=False)
    return cut


def headings(figure: Figure, rows: Rows, titles: Sequence[Sequence[str]]) -> None:
    """Write the titles, with the panels' remarks below them. Enlarge the figure to make room."""
    whole, height = figure.get_size_inches()
    width = (whole - 0.6) / len(rows[0]) - 0.15
    line, grown = REMARK_SIZE * 1.4, 0.0  # points
    every = [panel for row in rows for panel in row]
    look: dict[str, Any] = {"fontsize": REMARK_SIZE, "va": "bottom", "xycoords": "axes fraction"}
    for row, names in zip(rows, titles, strict=True):
        said = [
            [
                (part, color)
                for text, color in panel.remarks
                for part in style.wrap(figure, text.replace("~", "\u00a0"), width, REMARK_SIZE)
            ]
            for panel in row
        ]
        room = max(len(lines) for lines in said) * line
        grown += room / 72
        for panel, name, lines in zip(row, names, said, strict=True):
            panel.axes.set_title(name, pad=4 + room)
            if len(every) > 1:
                style.letter(panel.axes, every.index(panel), pad=4 + room)
            for number, (text, color) in enumerate(lines, 1):
                at = (0, 2 + (len(lines) - number) * line)
                panel.axes.annotate(
                    text, (0, 1), at, textcoords="offset points", color=color, **look
                )
    figure.set_size_inches(whole, height + grown)
