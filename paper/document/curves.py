"""The learning curves that the report's chart shows, as few numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ngt.runs.keys import RunKey, run_table
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label, method_rate
from paper.drawing import style
from paper.numbers import curves
from paper.register import CURVES

if TYPE_CHECKING:
    import pandas as pd

POINTS = 200  # most points of a curve: some four CSS pixels apart
UNIT = 10_000  # scores are whole numbers of 1 / UNIT: short, and finer than any screen shows


def keys(config: Config) -> list[RunKey]:
    """Every run of a figure of learning curves."""
    names = [name for name in CURVES if name in config.figures]
    return run_table(config, names, beside=True) if names else []


def payload(runs: pd.DataFrame | None, config: Config) -> dict[str, Any]:
    """What the chart's script reads.

    runs: rows of `ngt.runs.table.read_keys`. A cell's `mean` and `std` are those of `curves.curve`,
    or one number each where the method steps no env; `steps` is a place in the list of that name.
    A run's return is random + score * (expert - random), so scores are all that is sent; of an env
    whose scores are missing it is returns, and `unscored` says why. The rate
    is null where the method fixes it: such a method is drawn beside those of every rate. Methods
    that are `on` are drawn at first: those of the first figure.
    """
    shown = set(keys(config))
    # as the figures list them, `beside` ones after all figures' own
    methods = list(dict.fromkeys([*_values(config, "methods"), *_values(config, "beside")]))
    envs = _values(config, "envs")
    cells: list[dict[str, Any]] = []
    steps: list[list[int]] = []
    for cell, rows in _cells(runs, shown):
        env, method, mode, rate, demos = cell
        fixed = method_rate(config, method)
        cells.append(
            {
                "env": env,
                "method": method,
                "mode": mode,
                "demos": int(demos),
                "rate": int(rate) if fixed is None else None,
                "kept": int(rate),
                **_numbers(rows, config, method, env, steps),
            }
        )
    order = {name: place for place, name in enumerate(methods)}
    cells.sort(key=lambda cell: order[cell["method"]])
    drawn = {cell["env"] for cell in cells}
    references = [(env, curves.reference(runs, env)) for env in envs if env in drawn]
    lack = unscored_envs(runs)
    looks, first = style.looks(methods), next(_axes(config, "methods"), ())
    return {
        "unit": UNIT,
        "envs": [
            {"name": env, "random": pair[0], "expert": pair[1], "unscored": lack.get(env, "")}
            for env, pair in references
            if pair is not None
        ],
        "modes": _values(config, "modes"),
        "methods": [
            {
                "name": name,
                "label": method_label(config, name),
                "light": looks[name].color,
                "dark": style.on_dark(looks[name].color),
                "dashes": looks[name].dashes,
                "on": name in first,
            }
            for name in methods
        ],
        "steps": steps,
        "cells": cells,
    }


def _axes(config: Config, name: str) -> Iterator[tuple[Any, ...]]:
    """An axis of each figure of learning curves, in the order of CURVES."""
    return (getattr(config.figures[f], name) for f in CURVES if f in config.figures)


def _values(config: Config, name: str) -> list[Any]:
    return list(dict.fromkeys(value for axis in _axes(config, name) for value in axis))


def _cells(
    runs: pd.DataFrame | None, shown: set[RunKey]
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    if runs is None:
        return
    cells = {(k.env, k.method, k.mode, k.rate, k.demos) for k in shown}
    runs = curves.usable(runs)
    for cell, rows in runs.assign(score=curves.shown(runs)).groupby(curves.CELL, sort=False):
        if cell in cells:
            yield cell, rows


def _numbers(
    rows: pd.DataFrame, config: Config, method: str, env: str, steps: list[list[int]]
) -> dict[str, Any]:
    if curves.offline(config, method, env):
        at = curves.level(rows, config.window)
        ends: Sequence[Any] = [[None, _whole(end)] for end in at.ends]
        mean, std, where = np.array([at.mean]), np.array([at.std]), None
        seeds = at.seeds
    else:
        curve = curves.curve(rows, config.window)
        kept = thin(len(curve.step))
        mean, std, seeds = curve.mean[kept], curve.std[kept], curve.seeds
        ends = [[int(step), _whole(score)] for step, score in curve.ends]
        axis = [int(step) for step in curve.step[kept]]
        if axis not in steps:
            steps.append(axis)
        where = steps.index(axis)
    return {
        "seeds": seeds,
        "steps": where,
        "mean": [_whole(x) for x in mean],
        "std": [_whole(x) for x in std] if seeds > 1 else None,
        "diverged": ends,
    }


def _whole(score: float) -> int:
    return round(float(score) * UNIT)


def thin(length: int) -> NDArray[np.intp]:
    """At most POINTS places in a curve of this length, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, length - 1, min(POINTS, length)).round().astype(np.intp))
