"""Our own figures (pairings, penalties, controls, readings, other methods): lines and cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

Make = Callable[..., Any]
NAMES = ["pairing_figure", "penalty_figure", "controls_figure", "readings_figure", "beyond_figure"]


@pytest.mark.parametrize("name", NAMES)
def test_all_of_it_fits(name: str, paper_study: Make, fill: Make, drawn: Make, tidy: Make) -> None:
    study = paper_study(name)
    fill(study)
    seen = drawn(study, name)
    tidy(seen.figure)
    plan = study.config.figures[name]
    assert len(seen.figure.axes) == len(plan.envs)
    assert {*seen.legend} > {study.config.methods[m].label for m in (*plan.methods, *plan.beside)}


def test_a_panel_shows_the_methods_that_run_there(
    paper_study: Make, fill: Make, drawn: Make
) -> None:
    study = paper_study("controls_figure")
    fill(study)
    seen = drawn(study, "controls_figure")
    counts = dict(zip(study.config.figures["controls_figure"].envs, map(len, (
        [line for line in axes.lines if line.get_marker() not in ("None", "", "x")]
        for axes in seen.figure.axes
    )), strict=True))  # fmt: skip
    assert counts["HalfCheetah-v4"] == 8  # four methods, each with and without normalisation
    assert counts["Walker2d-v4"] == 5  # constant reward; two methods with and without termination
    assert counts["Hopper-v4"] == 11


def test_a_method_without_a_run_in_some_panel_is_named_with_its_envs(
    paper_study: Make, fill: Make, drawn: Make
) -> None:
    study = paper_study("controls_figure", seeds=[0], envs=["HalfCheetah-v4", "Hopper-v4"])
    fill(study)
    said = drawn(study, "controls_figure").notes
    assert "Only on Hopper-v4: constant reward; NGT (no termination);" in said
    assert said.count("Only on") == 1, "all other methods run on both envs"


def test_a_panel_without_any_run_says_so_whatever_runs_elsewhere(
    paper_study: Make, fill: Make, drawn: Make
) -> None:
    study = paper_study("controls_figure", seeds=[0], envs=["HalfCheetah-v4", "Hopper-v4"])
    fill(study, skip=[key for key in study.table() if key.env == "HalfCheetah-v4"])
    seen = drawn(study, "controls_figure", allow_partial=True)
    assert seen.above(0) == "missing: all runs"


@pytest.mark.parametrize("name", ["beyond_figure", "main_figure"])
def test_the_reference_is_first_and_has_the_band(
    name: str, paper_study: Make, fill: Make, drawn: Make
) -> None:
    study = paper_study(name, envs=["HalfCheetah-v4"], demos=[4], seeds=[0, 1])
    study.settings["statistics"] = {"reference": "dac-r"}
    fill(study)
    seen = drawn(study, name)
    assert seen.legend[0] == "DAC, R"
    assert "Band (DAC, R only)" in seen.notes
    first, *others = seen.strong(0)
    (band,) = seen.figure.axes[0].collections
    assert np.allclose(band.get_facecolor()[0][:3], to_rgb(first.get_color()))
    assert all(line.get_linewidth() < first.get_linewidth() for line in others)


def test_the_milliseconds_of_an_update_are_said(paper_study: Make, drawn: Make) -> None:
    """Check that 60 000 env steps in 30 s, four per update, are shown as updates of 2 ms."""
    study = paper_study("penalty_figure", envs=["Hopper-v4"], seeds=[0])
    for key in study.table():
        seconds = 30.0 if key.method == "ngt" else 60.0
        study.write(key, [0.5] * 6, timing=[[i * 10_000, i * seconds / 6] for i in range(1, 7)])
    (axes,) = drawn(study, "penalty_figure").figure.axes
    said = " ".join(text.get_text() for text in axes.texts).replace("\u00a0", " ")
    assert "ms per update" in said and "NGT 2.0" in said and "W-DAC (spectral norm) 4.0" in said
