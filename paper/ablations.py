"""What the ablations share: variants of NGT beside the main figure's own runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ngt.config import Config, resolve
from ngt.runs import RunKey
from paper import curves, panels, style
from paper.panels import Spec
from paper.style import Note

if TYPE_CHECKING:
    import pandas as pd

# What a variant is compared with, then the variants.
LOOKS = [style.LOOKS[name] for name in ("ngt", "dac-rplus", "wdac", "pwil", "bc-full")]

INVERTED = Note(
    "AUC: the probability that the reward ranks a transition of the expert above one of the agent, "
    "at the evaluation's step. Dashed 1: always, dotted 0.5: a coin; below it (shaded) the reward "
    "is upside down."
)


def draw(
    name: str, runs: pd.DataFrame, config: Config, absent: Sequence[RunKey], *,
    ordered_by: str = "", auc: bool = False,
) -> Figure:  # fmt: skip
    """A row an env, a column a number of demonstrations, or side by side where there is one.

    ordered_by: a parameter whose order the lines and their looks take. auc: rows of AUC as well.
    """
    plan = panels.plan_of(config, name)
    methods = [*plan.beside, *plan.methods]
    looks = dict(zip(methods, itertools.cycle(LOOKS), strict=False))
    if ordered_by:
        first = (plan.envs[0], plan.modes[0], plan.rates[0])
        methods.sort(key=lambda m: resolve(config, first[0], m, *first[1:]).params[ordered_by])
        looks = dict(zip(methods, panels.ramp(len(methods)), strict=True))
    rows = panels.by_method(config, name, panels.differing(config, name), looks)
    if ordered_by:
        rows = [[_ordered(spec, methods) for spec in row] for row in rows]
    if len(plan.demos) == 1 and len(plan.envs) > 1:
        rows = panels.compact(rows)
    notes = []
    if auc:
        rows = [
            part
            for row in rows
            for part in (row, [replace(s, measure=curves.AUC, row="", title="") for s in row])
        ]
        notes.append(INVERTED)
    figure = panels.draw(runs, config, absent, rows, notes, plan.rates)
    for axes in figure.axes:
        if auc and axes.get_ylabel().endswith(curves.AUC.label):
            _shade(figure, axes)
    return figure


def _ordered(spec: Spec, methods: Sequence[str]) -> Spec:
    lines = sorted(spec.lines, key=lambda line: methods.index(line.method))
    return replace(spec, lines=tuple(lines))


def _shade(figure: Figure, first: object) -> None:
    """Mark what is below a coin in the row of panels that begins with `first`."""
    at = figure.axes.index(first)  # type: ignore[arg-type]
    shared = figure.axes[at].get_shared_y_axes()
    for axes in figure.axes:
        if shared.joined(figure.axes[at], axes):
            axes.axhspan(0.0, 0.5, color=style.ALERT, alpha=0.07, linewidth=0, zorder=0)
