"""Aggregates of the main figure's runs over tasks (not in the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from ngt.runs.keys import Layout, RunKey
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.command import Made, Options, figure_of_runs
from paper.drawing import style
from paper.drawing.panels import EXPERT, LIMIT, SHOWN
from paper.drawing.style import Look, Note
from paper.numbers import statistics
from paper.numbers.statistics import Array, Estimate
from paper.tables.aggregate import Aggregates, collect, notes

if TYPE_CHECKING:
    import pandas as pd

ROW = 0.17  # inches a method
TAUS = 101  # scores at which a profile is evaluated


@style.context()
def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """IQM, optimality gap and P(NGT > method), a row a method; performance profiles below.

    runs: rows of `ngt.runs.table.read_runs`. absent: the keys that are not there.
    """
    a = collect(runs, config, absent)
    looks = style.looks(a.methods)
    top = max(ROW * len(a.methods), 0.6) + 0.5
    figure = style.new_figure(style.TEXT_WIDTH, top + 2.1)
    grid = figure.add_gridspec(2, 3, height_ratios=(top, 2.1))
    first = figure.add_subplot(grid[0, 0])
    gap = figure.add_subplot(grid[0, 1], sharey=first)
    better = figure.add_subplot(grid[0, 2], sharey=first)
    both = {m: a.both(m, a.scores) for m in a.methods}
    _rows(first, a, looks, lambda m: both[m][0])
    _rows(gap, a, looks, lambda m: both[m][1])
    _rows(better, a, looks, lambda m: a.better(m, a.scores))
    first.axvline(1, **EXPERT)
    better.axvline(0.5, **EXPERT)
    better.set_xlim(0, 1)
    gap.set_xlim(left=0)
    first.set_xlabel("interquartile mean (higher is better)")
    gap.set_xlabel("optimality gap (lower is better)")
    better.set_xlabel("P(NGT > method)")
    first.set_yticks(range(len(a.methods)), [method_label(config, m) for m in a.methods])
    first.set_ylim(len(a.methods) - 0.5, -0.5)
    for axes in (first, gap, better):
        axes.tick_params(axis="y", length=0, labelleft=axes is first)
        axes.grid(visible=False, axis="y")
    below = figure.add_subplot(grid[1, :])
    _profiles(below, a, looks)
    if not a.scores.tasks:
        for axes in (first, gap, better, below):
            axes.text(
                0.5,
                0.5,
                "no scores",
                transform=axes.transAxes,
                ha="center",
                va="center",
                color=style.ALERT,
                backgroundcolor="white",
                zorder=900,
            )
    handles = [
        Line2D([], [], **looks[m].line, marker=looks[m].marker, label=method_label(config, m))
        for m in a.methods
    ]
    style.footer(figure, handles, [reading(a), *notes(a)])
    return figure


def _rows(
    axes: Axes, a: Aggregates, looks: dict[str, Look], value: Callable[[str], Estimate | None]
) -> None:
    """An estimate a method, the first on top: a marker on a bar as long as its interval."""
    for y, method in enumerate(a.methods):
        e, look = value(method), looks[method]
        if e is None:
            continue
        axes.plot(
            [e.low, e.high],
            [y, y],
            color=look.color,
            linewidth=4,
            alpha=0.35,
            solid_capstyle="butt",
        )
        axes.plot(
            e.value,
            y,
            color=look.color,
            marker=look.marker,
            markersize=4.2,
            markeredgecolor="white",
            markeredgewidth=0.3,
            zorder=3,
            clip_on=False,
        )


def _profiles(axes: Axes, a: Aggregates, looks: dict[str, Look]) -> None:
    """Share of runs above each score, the band its interval at that score."""
    axes.set(ylim=(-0.02, 1.02), xlabel="normalised return τ", ylabel="share of runs above τ")
    axes.xaxis.set_major_locator(MultipleLocator(0.25))
    axes.yaxis.set_major_locator(MultipleLocator(0.25))
    axes.axvline(1, **EXPERT, zorder=300)
    if not a.scores.tasks:
        axes.set_xlim(*SHOWN)
        return
    scores = np.concatenate([m.ravel() for m in a.scores.of.values()])
    low = max(min(SHOWN[0], float(scores.min())), LIMIT[0])
    high = min(max(SHOWN[1], float(scores.max())), LIMIT[1])
    taus: Array = np.linspace(low, high, TAUS)
    for place, method in enumerate(a.methods):
        look, front = looks[method], len(a.methods) - place
        profile = statistics.profile(a.scores.of[method], taus, a.config.statistics, method)
        value, lower, upper = np.array(profile).T
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
        every = TAUS // 6
        axes.plot(
            taus,
            value,
            **look.line,
            linewidth=1.5 if place == 0 else 1.1,
            zorder=400 + front,
            drawstyle="steps-post",
            marker=look.marker,
            markeredgecolor="white",
            markeredgewidth=0.3,
            markevery=(place * every // len(a.methods), every),
        )
    axes.set_xlim(low, high)


def reading(a: Aggregates) -> Note:
    """What is drawn."""
    ends = "Bars and bands: intervals. " if a.seeds > 1 else ""
    return Note(
        f"Top: one value a method over all tasks. Bottom: performance profiles. {ends}Dashed: the "
        f"expert's return, and an even chance."
    )


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the runs and draw them."""
    return figure_of_runs(draw, config, layout, options)
