"""A figure of env steps per second over training, with a line per run, as in the paper."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ngt.errors import UserError
from ngt.runs.keys import Layout, RunKey
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.command import Made, Options, figure_of_runs
from paper.drawing import marks, style
from paper.drawing.style import Look, Note
from paper.numbers import curves, speed
from paper.register import one_task
from paper.words import ABSENT


@style.context()
def draw(runs: pd.DataFrame, config: Config, absent: Sequence[RunKey] = ()) -> Figure:
    """Draw one panel of env steps per second for each env.

    runs: rows of `ngt.runs.table.read_runs`.
    absent: the keys of missing runs.
    """
    if runs["step"].isna().all():
        raise UserError(
            f"figures.{speed.NAME}: no run has an evaluation, so there is no speed to draw"
        )
    plan = one_task(config, speed.NAME)
    bases = {method: speed.base(config, method) for method in plan.methods}
    looks = style.looks(bases.values())
    look_of = {method: looks[base] for method, base in bases.items()}
    figure = style.new_figure(style.TEXT_WIDTH * (1 if len(plan.envs) > 1 else 0.62), 2.3)
    panels = figure.subplots(1, len(plan.envs), squeeze=False)[0]
    for axes, env in zip(panels, plan.envs, strict=True):
        _panel(axes, env, runs, look_of)
    figure.axes[0].set_ylabel("env steps per second")
    if len(panels) > 1:
        style.letters(panels)
    handles = [
        Line2D([], [], **look.line, marker=look.marker, label=method_label(config, method))
        for method, look in look_of.items()
    ]
    notes = [
        Note(
            f"Scale {config.scale}, a line for each run, in its own process. The rate at a point "
            f"covers the {speed.STRETCH:.0%} of the run before it; evaluations are left out."
        )
    ]
    if absent:
        gone = ", ".join(f"{key.env} {method_label(config, key.method)}" for key in absent)
        notes.append(Note(f"PARTIAL: {ABSENT[config.records]}: {gone}.", alert=True))
    style.footer(figure, handles, notes)
    return figure


def _panel(axes: Axes, env: str, runs: pd.DataFrame, look_of: Mapping[str, Look]) -> None:
    """Draw a line for each run on an env. The methods' markers are staggered."""
    longest = float(runs["step"].max())
    scale, word = curves.unit(longest)
    for place, (method, look) in enumerate(look_of.items()):
        repeats = runs[(runs["env"] == env) & (runs["method"] == method)].groupby("seed")
        for _, run in repeats:
            steps, rate = speed.rates(*speed.clock(run, f"{env}/{method}"))
            x = steps / scale
            axes.plot(x, rate, **look.line, linewidth=1.1, zorder=400 - place)
            at = marks.spots(place, len(look_of), x[0], x[-1])
            marks.draw(axes, at, np.interp(at, x, rate), look, 600 - place)
    axes.set(title=env, xlabel=f"env steps{word}", xlim=(0, longest / scale), ylim=(0, None))


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the runs and draw them."""
    return figure_of_runs(draw, config, layout, options)
