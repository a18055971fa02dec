"""A figure of the learned reward: diagnostics over training, and maps of a potential."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ngt.runs.folder import LOGGED
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.command import Made, Options, figure_of_runs
from paper.drawing import style
from paper.drawing.panels import EVEN
from paper.drawing.style import Look, Note
from paper.numbers import curves, potential
from paper.numbers.potential import Maps
from paper.numbers.statistics import Task, shared
from paper.register import POTENTIAL
from paper.words import ABSENT, listed

NAME = "main_figure"  # the entry of the config's `figures` whose runs are shown
# The label of each measure, its value without information, and its range.
MEASURES = dict(
    zip(
        LOGGED,
        (("AUC of the reward", 0.5, (0.0, 1.0)), ("rank correlation", 0.0, (-1.0, 1.0))),
        strict=True,
    )
)
TITLES = dict(zip(LOGGED, ("Expert against agent", "Learned against own reward"), strict=True))
ANGLE, VELOCITY = "angle (0: upright)", "velocity"
POTENTIAL_LABEL = "potential h at action 0"
EXPERT: dict[str, Any] = {"marker": "o", "color": "#FFFFFF", "markeredgecolor": "#000000"}
EXPERT |= {"linestyle": "none", "markersize": 2.8, "markeredgewidth": 0.6}
AGENT: dict[str, Any] = {"marker": ".", "color": "#D55E00", "linestyle": "none"}
AGENT |= {"markersize": 2.0, "markeredgewidth": 0.0}


@style.context()
def draw(
    runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = (), *, maps: Maps
) -> Figure:
    """Draw the diagnostics of each method on the left, and the maps on the right.

    runs: rows of `ngt.runs.table.read_runs`.
    absent: the keys of missing runs.
    """
    figure = style.new_figure(style.TEXT_WIDTH, 3.6)
    panels = figure.subplots(2, 3, width_ratios=(1.25, 1.0, 1.0))
    methods = list(config.figures[NAME].methods)
    logged = [
        m for m in methods if runs.loc[runs["method"] == m, list(LOGGED)].notna().to_numpy().any()
    ]
    looks = style.looks(logged)
    planned = run_table(config, [NAME])
    tasks = shared(planned, set(planned) - set(absent), logged)
    here = pd.MultiIndex.from_frame(runs[["env", "demos"]]).isin(tasks)
    scale, word = curves.unit(float(runs["step"].max()))
    for axes, (column, (label, none, ends)) in zip(panels[:, 0], MEASURES.items(), strict=True):
        _diagnostic(axes, runs[here], column, looks, ends)
        axes.axhline(none, **EVEN)
        axes.set(ylabel=label, title=TITLES[column])
        axes.set_xlim(0, float(runs["step"].max()))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x / scale:g}")
    panels[0, 0].tick_params(labelbottom=False)
    panels[1, 0].set_xlabel(f"env steps{word}")
    _maps(figure, panels[:, 1:], maps)
    style.letters(panels.flat)
    handles = [
        Line2D([], [], **look.line, label=method_label(config, method))
        for method, look in looks.items()
    ]
    handles += [
        Line2D([], [], **EVEN, label="no information"),
        Line2D([], [], **EXPERT, label="expert"),
        Line2D([], [], **AGENT | {"markersize": 5.0}, label="agent"),
    ]
    style.footer(figure, handles, _notes(config, runs, logged, absent, tasks, maps))
    return figure


def _diagnostic(
    axes: Axes,
    runs: pd.DataFrame,
    column: str,
    looks: dict[str, Look],
    ends: tuple[float, float],
) -> None:
    """Draw a line per method: the mean of a column over its runs."""
    for method, look in looks.items():
        means = runs[runs["method"] == method].groupby("step")[column].mean().dropna()
        axes.plot(means.index, means, **look.line, linewidth=1.1)
    if runs[column].isna().all():
        middle: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "va": "center"}
        text = "not logged" if len(runs) or not looks else "no task with all runs"
        axes.text(0.5, 0.7, text, **middle, color=style.ALERT, fontsize=6.5)
        axes.set_ylim(*ends)


def _maps(figure: Figure, panels: Any, maps: Maps) -> None:
    """Draw the potential at each moment with the expert's and the agent's transitions."""
    for number, axes in enumerate(panels.flat):
        image = panel(axes, maps, number)
        axes.tick_params(labelbottom=number > 1, labelleft=number % 2 == 0)
    for axes in panels[-1]:
        axes.set_xlabel(ANGLE)
    for axes in panels[:, 0]:
        axes.set_ylabel(VELOCITY)
    figure.colorbar(image, ax=panels, label=POTENTIAL_LABEL, shrink=0.8)


def panel(axes: Axes, maps: Maps, number: int) -> QuadMesh:
    """Draw the potential at one moment, with the expert's and the agent's points.

    All moments have the same colours. Return the coloured map.
    """
    image = axes.pcolormesh(
        potential.ANGLES, potential.VELOCITIES, maps.potential[number],
        vmin=0.0, vmax=float(maps.potential.max()),
        rasterized=True, cmap="viridis", shading="gouraud",
    )  # fmt: skip
    axes.plot(*maps.agent[number].T, **AGENT)
    axes.plot(*maps.expert.T, **EXPERT)
    axes.set_title(f"{maps.step[number]:,.0f} env steps")
    axes.set_xticks([-np.pi, 0.0, np.pi], ["−π", "0", "π"])
    axes.set(xlim=(-np.pi, np.pi), ylim=(-8.0, 8.0))
    axes.grid(visible=False)
    return image


def _notes(
    config: Config,
    runs: pd.DataFrame,
    logged: list[str],
    absent: Sequence[RunKey],
    tasks: Sequence[Task],
    maps: Maps,
) -> list[Note]:
    """Return notes that explain how to read the panels.

    tasks: the tasks over which the lines are means.
    """
    here, methods = set(runs["method"]), config.figures[NAME].methods
    without, gone = (
        ", ".join(
            method_label(config, m) for m in methods if m not in logged and (m in here) == ran
        )
        for ran in (True, False)
    )
    lack = f" No reward is learned by, or logged for: {without}." if without else ""
    episodes, rate = potential.EPISODES, potential.RATE
    notes = [
        Note(
            f"Left: scale {config.scale}, means over the runs of the main figure. AUC: how often "
            f"an expert's transition has a higher reward than one of the agent's. Rank "
            f"correlation: Spearman's, between the learned reward and the env's own, over a batch "
            f"of the agent's transitions.{lack}"
        ),
        Note(
            f"Right: one run of NGT on {potential.ENV} over {maps.step[-1]:,.0f} env steps, with "
            f"the MSE-softmax pairing and every {rate}th transition of {episodes} demonstrations. "
            f"Points: the demonstrations, and the agent's last {potential.RECENT} transitions. "
            f"The loss lowers the potential at the expert's points and raises it at the agent's."
        ),
    ]
    if absent:
        lack = ABSENT[config.records]
        text = f"PARTIAL: {len(absent)} runs are {lack}."
        text += f" Methods without any run: {gone}." if gone else ""
        if tasks:
            some = listed(f"{env} with {demos}" for env, demos in tasks)
            text += f" Left: only tasks (env, demonstrations) with all runs of these lines: {some}."
        notes.append(Note(text, alert=True))
    return notes


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the runs, train a potential or read the shipped maps, and draw both."""
    shipped = config.records == "published"
    maps = (
        potential.load(Path(POTENTIAL))
        if shipped
        else potential.train(min(potential.STEPS, config.train.steps))
    )

    def with_maps(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey]) -> Figure:
        return draw(runs, config, absent, maps=maps)

    return figure_of_runs(with_maps, config, layout, options)
