"""A figure of the main figure's scores, aggregated over tasks (not in the paper)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from ngt.runs.keys import Layout, RunKey
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.command import Made, Options, figure_of_runs
from paper.drawing import marks, style
from paper.drawing.panels import BANDS, EXPERT, LIMIT, SHOWN
from paper.drawing.style import Look, Note
from paper.numbers import bootstrap
from paper.numbers.statistics import Array, Estimate
from paper.tables.aggregate import Aggregates, collect, notes
from paper.words import ABSENT, show

ROW = 0.17  # height of a method's row, in inches


@style.context()
def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """Draw IQM, optimality gap and P(reference > method) of each method, and profiles below them.

    runs: rows of `ngt.runs.table.read_runs`.
    absent: the keys of missing runs.
    """
    a = collect(runs, config, absent)
    looks = style.looks(a.methods)
    top = max(ROW * len(a.methods), 0.6) + 0.5
    figure = style.new_figure(style.TEXT_WIDTH, top + 2.1)
    grid = figure.add_gridspec(2, 3, height_ratios=(top, 2.1))
    first = figure.add_subplot(grid[0, 0])
    gap, better = (figure.add_subplot(grid[0, i], sharey=first) for i in (1, 2))
    both = {m: a.both(m, a.scores) for m in a.methods}
    cut = _rows(first, a, looks, lambda m: both[m][0])
    cut += _rows(gap, a, looks, lambda m: both[m][1])
    _rows(better, a, looks, lambda m: a.better(m, a.scores))
    first.axvline(1, **EXPERT)
    better.axvline(0.5, **EXPERT)
    tasks = len(a.scores.tasks)
    whole = tasks + len(a.scores.left_out)
    first.set_title(f"Score over {f'{tasks} of {whole}' if tasks < whole else 'all'} tasks")
    better.set(xlim=(0, 1), xlabel=f"P({a.label} > method)", title=f"{a.label} against each method")
    gap.set(
        xlim=(0, None), xlabel="optimality gap (lower is better)", title="Shortfall from the expert"
    )
    first.set_yticks(range(len(a.methods)), [method_label(config, m) for m in a.methods])
    first.set(xlabel="interquartile mean (higher is better)", ylim=(len(a.methods) - 0.5, -0.5))
    for axes in (first, gap, better):
        axes.tick_params(axis="y", length=0, labelleft=axes is first)
        axes.grid(visible=False, axis="y")
    below = figure.add_subplot(grid[1, :])
    _profiles(below, a, looks)
    style.letters((first, gap, better, below))
    for axes in () if a.scores.tasks else (first, gap, better, below):
        _say(axes, ABSENT[config.records] if absent else "no scores")
    if a.scores.tasks and a.reference not in a.methods:
        _say(better, f"{a.label}: {ABSENT[config.records]}")
    handles = [
        Line2D([], [], **looks[m].line, marker=looks[m].marker, label=method_label(config, m))
        for m in a.methods
    ]
    style.footer(figure, handles, [reading(a), *notes(a), *_reach(cut)])
    return figure


def _say(axes: Axes, text: str) -> None:
    """Write a warning in the middle of empty axes."""
    look: dict[str, Any] = {"color": style.ALERT, "backgroundcolor": "white", "zorder": 900}
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", **look)


def _rows(
    axes: Axes, a: Aggregates, looks: dict[str, Look], value: Callable[[str], Estimate | None]
) -> list[float]:
    """Draw each method's estimate as a marker on a bar for its interval, in order from the top.

    The x axis stays within LIMIT. A marker beyond it is drawn at the edge, and an arrow shows that
    a marker or a bar is cut. Return the values that are cut.
    """
    found = {y: e for y, m in enumerate(a.methods) if (e := value(m)) is not None}
    for y, e in found.items():
        color = looks[a.methods[y]].color
        bar: dict[str, Any] = {"linewidth": 4, "alpha": 0.35, "solid_capstyle": "butt"}
        axes.plot([e.low, e.high], [y, y], color=color, **bar)
        at = np.clip([e.value], *LIMIT)
        marks.draw(axes, at, np.array([y]), looks[a.methods[y]], 3)
    low, high = np.clip(axes.get_xlim(), *LIMIT)
    axes.set_xlim(low, high)
    cut = []
    for y, e in found.items():
        for edge, end, above in ((low, np.nanmin(e), False), (high, np.nanmax(e), True)):
            if end > edge if above else end < edge:
                marks.arrow(axes, edge, y, looks[a.methods[y]], above=above, sideways=True)
                cut.append(float(end))
    return cut


def _reach(cut: Sequence[float]) -> list[Note]:
    """Return a note about values that are cut, or no note if there are none."""
    if not cut:
        return []
    ends = " and ".join(show(x, "{:.2g}") for x in sorted({min(cut), max(cut)}))
    low, high = (show(x, "{:g}") for x in LIMIT)
    return [
        Note(f"← →: cut. The axes of the top row end at {low} and {high}; values reach {ends}.")
    ]


def _profiles(axes: Axes, a: Aggregates, looks: dict[str, Look]) -> None:
    """Draw each method's share of runs above each score. `BANDS` limits which ones have a band."""
    axes.set(
        title="Share of runs that score more than τ",
        ylim=(-0.02, 1.02),
        xlabel="normalised return τ",
        ylabel="share of runs above τ",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(0.25))
    axes.axvline(1, **EXPERT, zorder=300)
    if not a.scores.tasks:
        axes.set_xlim(*SHOWN)
        return
    scores = np.concatenate([m.ravel() for m in a.scores.of.values()])
    low = max(min(SHOWN[0], float(scores.min())), LIMIT[0])
    high = min(max(SHOWN[1], float(scores.max())), LIMIT[1])
    inside = scores[(scores > low) & (scores < high)]
    taus: Array = np.unique([low, *inside, high])  # a profile changes only at a score
    for place, method in enumerate(a.methods):
        look, front = looks[method], len(a.methods) - place
        value, lower, upper = np.array(
            bootstrap.profile(a.scores.of[method], taus, a.config.statistics, method)
        ).T
        if method == a.reference or len(a.methods) <= BANDS:
            axes.fill_between(
                taus,
                lower,
                upper,
                step="post",
                color=look.color,
                alpha=0.13,
                linewidth=0,
                zorder=front,
            )
        axes.plot(
            taus,
            value,
            **look.line,
            linewidth=1.5 if method == a.reference else 1.1,
            zorder=400 + front,
            drawstyle="steps-post",
        )
        at = marks.spots(place, len(a.methods), low, high)
        reached = value[np.searchsorted(taus, at, side="right") - 1]
        marks.draw(axes, at, reached, look, 600 + front)
    axes.set_xlim(low, high)


def reading(a: Aggregates) -> Note:
    """Return a note that explains how to read the figure."""
    bands = " and bands"
    if len(a.methods) > BANDS:
        bands = f" and {a.label}'s band" if a.reference in a.methods else ""
    ends = (
        f"Bars{bands}: intervals. The coverage stated below is that of the bars. Where a "
        "point has no bar, the interval is narrower than the point, or has no width (P of 0 or 1). "
    )
    return Note(
        "Top: one value per method over tasks. Bottom: performance profiles. "
        f"{ends * (a.seeds > 1)}Dashed: the expert's return, and an even chance."
    )


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the runs and draw them."""
    return figure_of_runs(draw, config, layout, options)
