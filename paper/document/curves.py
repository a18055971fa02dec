"""The data of the report's interactive learning curves, in a compact form."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ngt.runs.keys import RunKey, run_table
from ngt.runs.table import unscored_envs
from ngt.settings.config import Config
from ngt.settings.resolve import method_label, method_rate
from paper.drawing import style
from paper.drawing.panels import BANDS
from paper.numbers import curves
from paper.numbers.statistics import reference
from paper.register import CURVES

POINTS = 200  # maximum number of points per curve, about four CSS pixels from each to the next
UNIT = 10_000  # scores are rounded to multiples of 1 / UNIT, which is finer than a screen shows


def keys(config: Config) -> list[RunKey]:
    """Return the keys of all runs that some figure of learning curves shows."""
    return run_table(config, [name for name in CURVES if name in config.figures], beside=True)


def payload(runs: pd.DataFrame | None, config: Config, present: Iterable[RunKey]) -> dict[str, Any]:
    """Return the data for the chart's script.

    Each entry of `cells` is the learning curve of the runs that differ only in the seed:

    - `mean` and `std` are from `curves.curve`; if the method steps no env, each is a single number
    - `steps` is an index into the payload's list `steps`, whose items are lists of env steps
    - `rate` is null if the method has a fixed subsampling rate; its curve is drawn at every rate

    Returns are left out, because a run's return is random + score * (expert - random). If an env
    has no scores, its curves show returns instead, and the env's `unscored` gives the reason.

    In `methods`, `on` marks the methods of the first figure, which are drawn when the page opens,
    and `ours` marks the reference. With more than `bands` curves, only the reference has a band.

    runs: the rows of `ngt.runs.table.read_keys`.
    present: the keys of the complete runs, including runs without an evaluation.
    """
    # Methods are in the order of the figures. Methods drawn for comparison (`beside`) come last.
    methods = list(dict.fromkeys([*_values(config, "methods"), *_values(config, "beside")]))
    steps: list[list[int]] = []
    shown = set(keys(config))
    if runs is not None:
        runs = curves.usable(runs)
        runs = curves.counted(
            runs, curves.unevaluated(runs, sorted(shown.intersection(present)), ())
        )
    cells = [_cell(rows, config, cell, steps) for cell, rows in _cells(runs, shown)]
    cells.sort(key=lambda cell: methods.index(cell["method"]))
    drawn = {cell["env"] for cell in cells}
    unscored = unscored_envs(runs)
    return {
        "unit": UNIT,
        "bands": BANDS,
        "envs": [
            {"name": env, "random": pair[0], "expert": pair[1], "unscored": unscored.get(env, "")}
            for env in _values(config, "envs")
            if env in drawn and (pair := curves.reference(runs, env)) is not None
        ],
        "modes": _values(config, "modes"),
        "methods": _methods(config, methods),
        "steps": steps,
        "cells": cells,
    }


def _methods(config: Config, names: Sequence[str]) -> list[dict[str, Any]]:
    looks, first = style.looks(names), next(_axes(config, "methods"), ())
    return [
        {
            "name": name,
            "label": method_label(config, name),
            "light": looks[name].color,
            "dark": style.on_dark(looks[name].color),
            "dashes": looks[name].dashes,
            "on": name in first,
            "ours": name == reference(config),
        }
        for name in names
    ]


def _axes(config: Config, name: str) -> Iterator[tuple[Any, ...]]:
    """Return the values of a field, such as `envs`, in each figure of learning curves.

    The figures are in the order of CURVES.
    """
    return (getattr(config.figures[f], name) for f in CURVES if f in config.figures)


def _values(config: Config, name: str) -> list[Any]:
    return list(dict.fromkeys(value for axis in _axes(config, name) for value in axis))


def _cells(
    runs: pd.DataFrame | None, shown: set[RunKey]
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    if runs is None:
        return
    cells = {(k.env, k.method, k.mode, k.rate, k.demos) for k in shown}
    for cell, rows in runs.assign(score=curves.shown(runs)).groupby(curves.CELL, sort=False):
        if cell in cells:
            yield cell, rows


def _cell(
    rows: pd.DataFrame, config: Config, cell: tuple[Any, ...], steps: list[list[int]]
) -> dict[str, Any]:
    """Return the learning curve of runs that differ only in the seed.

    Append the curve's list of env steps to `steps` unless `steps` has this list already.
    """
    env, method, mode, rate, demos = cell
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
        "env": env,
        "method": method,
        "mode": mode,
        "demos": int(demos),
        "rate": int(rate) if method_rate(config, method) is None else None,
        "kept": int(rate),
        "seeds": seeds,
        "steps": where,
        "mean": [_whole(x) for x in mean],
        "std": [_whole(x) for x in std] if seeds > 1 else None,
        "diverged": ends,
    }


def _whole(score: float) -> int:
    return round(float(score) * UNIT)


def thin(length: int) -> NDArray[np.intp]:
    """Return the indices of at most POINTS points of a curve of this length.

    The indices are evenly spread and include both ends.
    """
    return np.unique(np.linspace(0, length - 1, min(POINTS, length)).round().astype(np.intp))
