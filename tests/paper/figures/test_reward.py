"""The figure of the learned reward: a line for each method that logs one, and four maps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ngt.runs.table import read_runs
from paper.figures import reward
from paper.numbers import potential
from paper.register import POTENTIAL

Make = Callable[..., Any]
MAPS = potential.load(Path(POTENTIAL))


def test_lines_are_means_over_runs_and_methods_without_a_reward_are_named(
    make_study: Make, tidy: Make
) -> None:
    study = make_study(seeds=[0, 1])
    for key in study.table():
        value = {"ngt": 0.6 + 0.2 * key.seed, "dac-r": 0.9}.get(key.method)
        study.write(key, [0.5] * 6, auc=[] if value is None else [value] * 6)
    runs, absent = read_runs(study.layout, study.config, "main_figure")
    runs["rank_correlation"] = runs["auc"] - 1.0
    figure = reward.draw(runs, study.config, absent, maps=MAPS)
    tidy(figure)
    auc, correlation = figure.axes[0], figure.axes[3]
    for axes, shift in ((auc, 0.0), (correlation, -1.0)):
        first, second, none = (np.unique(line.get_ydata()) for line in axes.lines)
        np.testing.assert_allclose([*first, *second], [0.7 + shift, 0.9 + shift])
        assert none == (0.5 if axes is auc else 0.0)
    notes = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert "No reward is learned by, or logged for: BC." in notes


def test_records_of_before_the_correlation_say_so(make_study: Make, tidy: Make) -> None:
    study = make_study(seeds=[0])
    for key in study.table():
        study.write(key, [0.5] * 6, auc=[0.7] * 6)
    runs, absent = read_runs(study.layout, study.config, "main_figure")
    figure = reward.draw(runs, study.config, absent, maps=MAPS)
    tidy(figure)
    assert [text.get_text() for text in figure.axes[3].texts] == ["not logged"]


def test_missing_runs_are_not_taken_for_methods_without_a_reward(
    make_study: Make, tidy: Make
) -> None:
    study = make_study(methods=["ngt", "dac-r", "bc"], seeds=[0])
    for key in study.table():
        if key.method == "bc":
            study.write(key, [0.5] * 6)
    runs, absent = read_runs(study.layout, study.config, "main_figure", allow_partial=True)
    figure = reward.draw(runs, study.config, absent, maps=MAPS)
    tidy(figure)
    notes = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert "No reward is learned by, or logged for: BC." in notes
    assert "PARTIAL: 4 runs are missing. Methods without any run: NGT, DAC (R)." in notes
    for axes, ends in ((figure.axes[0], (0.0, 1.0)), (figure.axes[3], (-1.0, 1.0))):
        assert axes.get_ylim() == ends
        assert [text.get_text() for text in axes.texts] == ["not logged"]


def test_a_partial_figure_compares_methods_on_the_same_tasks(make_study: Make, tidy: Make) -> None:
    """Check that a task which one method lacks does not move the other's line."""
    study = make_study(methods=["ngt", "dac-r"], demos=[1, 4], seeds=[0, 1])
    for key in study.table():
        if (key.method, key.demos) != ("dac-r", 1):
            study.write(key, [0.5] * 6, auc=[0.9 if key.demos == 4 else 0.3] * 6)
    runs, absent = read_runs(study.layout, study.config, "main_figure", allow_partial=True)
    figure = reward.draw(runs, study.config, absent, maps=MAPS)
    tidy(figure)
    for line in figure.axes[0].lines[:2]:
        np.testing.assert_allclose(line.get_ydata(), 0.9)
    notes = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert (
        "Left: only tasks (env, demonstrations) with all runs of these lines: Pendulum-v1 with 4"
        in (notes)
    )
