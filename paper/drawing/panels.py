"""Learning curves in panels: what every figure of runs against env steps draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from ngt.errors import UserError
from ngt.settings.config import Config, FigureConfig, Mode
from paper.drawing import style
from paper.drawing.style import Look
from paper.numbers import curves
from paper.numbers.curves import Array, Curve, Level

if TYPE_CHECKING:
    import pandas as pd

    from ngt.runs.keys import RunKey

EXPERT: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (4, 3))}
RANDOM: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (1, 2))}
EVEN: dict[str, Any] = {"color": style.ALERT, "linewidth": 0.9, "linestyle": (0, (6, 2, 1, 2))}
INVERTED: dict[str, Any] = {"color": style.ALERT, "alpha": 0.09, "linewidth": 0}
DIVERGED: dict[str, Any] = {"color": style.ALERT, "marker": "x", "linestyle": "none"}
CROSS: dict[str, Any] = {"markersize": 4.5, "markeredgewidth": 1.2}

WORDS = 5.5  # points, of what is said above a panel
THIN = 0.45  # points, of a line that stands behind another

SHOWN = (-0.1, 1.1)  # normalised returns that every panel shows
LIMIT = (-0.5, 1.5)  # and past these none does


def plan_of(config: Config, name: str, *, one: Iterable[str] = ("modes", "rates")) -> FigureConfig:
    """An artefact's entry; UserError where an axis has more than the one value that is shown."""
    plan = config.figures[name]
    for axis in one:
        values = getattr(plan, axis)
        if len(values) != 1:
            shown = ", ".join(map(str, values))
            raise UserError(f"figures.{name}.{axis}: found [{shown}], this figure shows one")
    return plan


def demonstrations(count: int) -> str:
    """A number of demonstrations in words."""
    return f"{count} demonstration{'s' * (count != 1)}"


class Measure(NamedTuple):
    """What is drawn upwards: a column of `ngt.runs.table.read_runs`."""

    column: str
    label: str  # of the axis
    tick: float | None = None  # None: where they fall well


SCORE = Measure("score", "normalised return", 0.5)
RETURN = Measure("return", "return")
AUC = Measure("auc", "AUC of the reward", 0.25)


class Series(NamedTuple):
    """A line in every panel: a method at a rate."""

    method: str
    rate: int
    label: str
    look: Look
    width: float = 1.1  # points


class Place(NamedTuple):
    """What a panel is of."""

    env: str
    mode: Mode
    demos: int
    measure: Measure = SCORE

    def cell(self, series: Series) -> tuple[str, str, Mode, int, int]:
        """The values of `curves.CELL` that a series has here."""
        return (self.env, series.method, self.mode, series.rate, self.demos)

    def holds(self, key: RunKey) -> bool:
        """Whether a run is drawn here, by some series."""
        return (key.env, key.mode, key.demos) == (self.env, self.mode, self.demos)


class Panel:
    """The axes of a place, and what the notes must tell of them.

    ends: the values of a random policy and of the expert, where these are lines. scored: whether
    returns can be normalised by these.
    """

    def __init__(
        self, axes: Axes, config: Config, place: Place, ends: tuple[float, float] | None,
        *, scored: bool = True,
    ) -> None:  # fmt: skip
        self.scored = scored
        self.axes, self.config, self.place, self.ends = axes, config, place, ends
        self.last = 0.0  # the largest env step
        self.seeds: list[int] = []  # runs of each cell
        self.lines: list[tuple[Look, Array, Array]] = []  # (look, x, y) of all that is drawn,
        self.levels: list[tuple[Look, Array]] = []  # (look, y) where there is no x
        self.crosses: list[tuple[float | None, float]] = []  # no x: at the right edge
        self.remarks: list[tuple[str, str]] = []  # (text, colour), said above

    def add(
        self, runs: pd.DataFrame, series: Series, place: int, of: int, *, each: bool = False
    ) -> None:
        """Draw a series; the first of `of` lies on top, and markers are staggered.

        runs: the cell's rows with the measure as `score`. each: the seeds are the thin lines,
        instead of what the strong one smooths.
        """
        if runs.empty:
            return
        if curves.offline(self.config, series.method, self.place.env):
            self._add_level(curves.level(runs, self.config.window), series, of - place)
        else:
            self._add_curve(curves.curve(runs, self.config.window), series, place, of, each)

    def _add_curve(self, c: Curve, series: Series, place: int, of: int, each: bool) -> None:
        look, front = series.look, of - place
        every = max(1, round(len(c.step) / 6))
        self.axes.plot(
            c.step, c.mean, **look.line, linewidth=series.width, zorder=400 + front,
            marker=look.marker, markevery=(place * every // of, every), markeredgecolor="white",
            markeredgewidth=0.3,
        )  # fmt: skip
        self.lines.append((look, c.step, c.mean))
        behind = [*c.each] if each else [c.raw] if self.config.window > 1 else []
        for y in behind:
            self.axes.plot(
                c.step, y, color=look.color, linewidth=THIN, alpha=0.6 if each else 0.35,
                zorder=200 + front,
            )  # fmt: skip
            self.lines.append((look, c.step, y))
        if c.seeds > 1:
            low, high = c.mean - c.std, c.mean + c.std
            self.axes.fill_between(
                c.step, low, high, color=look.color, alpha=0.13, linewidth=0, zorder=front
            )
            self.lines += [(look, c.step, low), (look, c.step, high)]
        self.crosses += c.ends
        self.seeds.append(c.seeds)
        self.last = max(self.last, float(c.step[-1]))

    def _add_level(self, at: Level, series: Series, front: int) -> None:
        look = series.look
        self.axes.axhline(at.mean, **look.line, linewidth=series.width, zorder=400 + front)
        band = at.mean + np.array([-1.0, 1.0]) * (at.std if at.seeds > 1 else 0.0)
        if at.seeds > 1:
            self.axes.axhspan(*band, color=look.color, alpha=0.13, linewidth=0, zorder=front)
        self.levels.append((look, band))
        self.crosses += [(None, end) for end in at.ends]
        self.seeds.append(at.seeds)

    @property
    def unit(self) -> tuple[Measure, str]:
        """What panels have in common whose values compare: returns do on the same env alone."""
        measure = self.place.measure
        return measure, self.place.env if measure == RETURN else ""

    def values(self) -> Array:
        """Every y that is drawn."""
        own = [0.42, 1.0] if self.place.measure == AUC else list(self.ends or ())
        ys = [y for _, _, y in self.lines] + [y for _, y in self.levels]
        every = np.concatenate([own, *ys])
        return every[np.isfinite(every)]

    def limits(self) -> tuple[float, float]:
        """The least and the largest y that it needs: all values, but for those past LIMIT."""
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

    def finish(self, steps: float, low: float, high: float) -> list[float]:
        """Limits, references, crosses, and an arrow where a series is cut.

        The worst values cut, as normalised returns.
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
        for step, score in self.crosses:
            self.axes.plot(
                steps if step is None else step, np.clip(score, low, high), **DIVERGED, **CROSS,
                zorder=800, clip_on=False,
            )  # fmt: skip
        worst: dict[tuple[Look, bool], tuple[float, float]] = {}
        beside = [
            (look, np.full(2, steps * (0.95 - 0.05 * i)), y)
            for i, (look, y) in enumerate(self.levels)
        ]
        for look, x, y in [*self.lines, *beside]:
            for above, at in ((False, int(np.nanargmin(y))), (True, int(np.nanargmax(y)))):
                past = y[at] > high if above else y[at] < low
                if past and abs(y[at]) > abs(worst.get((look, above), (0.0, 0.0))[1]):
                    worst[look, above] = (float(x[at]), float(y[at]))
        for (look, above), (x_at, _) in worst.items():
            self.axes.plot(
                x_at, high if above else low, color=look.color, marker="^" if above else "v",
                markersize=4.5, linestyle="none", zorder=700, clip_on=False,
            )  # fmt: skip
        random, expert = self.ends or (0.0, 1.0)
        if not worst:  # as on a panel without scores, whose axes hold all
            return []
        return [(y - random) / (expert - random) for _, y in worst.values()]


Rows = Sequence[Sequence[Panel]]


def finish(rows: Rows) -> list[float]:
    """Limits and ticks, those of a measure the same along a row; the worst values cut."""
    cut: list[float] = []
    lasts = [max(panel.last for panel in row) for row in rows]
    longest = max(lasts) or 1.0
    scale, word = curves.unit(longest)
    same = len(set(lasts) - {0.0}) <= 1
    for place, (row, last) in enumerate(zip(rows, lasts, strict=True)):
        below = rows[place + 1] if place + 1 < len(rows) else ()
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
    """Titles and, below them, the panels' remarks; the figure grows by the lines of these."""
    whole, height = figure.get_size_inches()
    width = (whole - 0.6) / len(rows[0]) - 0.15
    line, grown = WORDS * 1.4, 0.0  # points
    for row, names in zip(rows, titles, strict=True):
        said = [
            [
                (part, color)
                for text, color in panel.remarks
                for part in style.wrap(figure, text.replace("~", "\u00a0"), width, WORDS)
            ]
            for panel in row
        ]
        room = max(len(lines) for lines in said) * line
        grown += room / 72
        for panel, name, lines in zip(row, names, said, strict=True):
            if name:
                panel.axes.set_title(name, pad=4 + room)
            for place, (text, color) in enumerate(lines, 1):
                up = 2 + (len(lines) - place) * line
                panel.axes.annotate(
                    text, (0, 1), (0, up), xycoords="axes fraction", va="bottom",
                    textcoords="offset points", fontsize=WORDS, color=color,
                )  # fmt: skip
    figure.set_size_inches(whole, height + grown)
