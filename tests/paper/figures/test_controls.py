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
    envs = ["HalfCheetah-v4", "Hopper-v4"]
    study = paper_study("controls_figure", seeds=[0], envs=envs, demos=[1, 4])
    gone = [key for key in study.table() if (key.env, key.demos) == (envs[0], 1)]
    fill(study, skip=gone)
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


@pytest.mark.parametrize("other", [2, 12])
def test_times_are_compared_within_packs_of_one_size(
    other: int, paper_study: Make, drawn: Make
) -> None:
    """Check that 60 000 env steps in 30 s, four per update, take 2 ms, or 1 ms for one of two runs.

    The time of NGT, whose packs may have another size, is then left out.
    """
    study = paper_study("penalty_figure", envs=["Hopper-v4"], seeds=[0])
    for key in study.table():
        pack, seconds = (other, 90.0) if key.method == "ngt" else (2, 30.0)
        timing = [[i * 10_000, i * seconds / 6] for i in range(1, 7)]
        study.write(key, [0.5] * 6, timing=timing, pack=pack)
    seen = drawn(study, "penalty_figure")
    above, same = seen.above(0), other == 2
    assert ("NGT 3.0;" if same else "NGT –;") in above
    assert above.startswith("ms per run and update") and "W-DAC (spectral norm) 1.0" in above
    assert ("In packs of 12: NGT. In packs of 2: DAC, R; W-DAC;" in seen.notes) != same
    assert ("Dash:" in seen.notes) != same


@pytest.mark.parametrize("other", [{}, {"machine": "b"}, {"device": "cuda", "gpu": "RTX"}])
def test_times_are_compared_on_one_machine_and_device(
    other: dict[str, str], paper_study: Make, drawn: Make
) -> None:
    study = paper_study("penalty_figure", envs=["Hopper-v4"], seeds=[0, 1])
    timing = [[i * 10_000, i * 5.0] for i in range(1, 7)]
    for key in study.table():
        here = {"machine": "a", "device": "cpu"}
        if (key.method, key.seed) == ("ngt", 1):
            here |= other
        study.write(key, [0.5] * 6, timing=timing, pack=1, **here)
    seen = drawn(study, "penalty_figure")
    assert ("NGT –;" if other else "NGT 2.0;") in seen.above(0)
    assert "W-DAC (spectral norm) 2.0" in seen.above(0)
    assert "Times include the effect of other work on the machine." in seen.notes
    assert ("In packs of 1 on a (cpu): DAC, R;" in seen.notes) == bool(other)
    assert ("Dash:" in seen.notes) == bool(other)


def test_times_of_methods_with_their_own_updates(paper_study: Make, drawn: Make) -> None:
    """Check that a method with its own schedule has the time of its own updates.

    NGT makes two updates per env step after 10 000 env steps, so 100 000 in 60 000 env steps.
    """
    study = paper_study("penalty_figure", envs=["Hopper-v4"], seeds=[0])
    own = {"num_envs": 1, "updates_per_step": 2, "learning_starts": 10_000}
    methods = study.settings["methods"]
    study.settings["methods"] = {**methods, "ngt": {**methods["ngt"], "train": own}}
    for key in study.table():
        study.write(key, [0.5] * 6, timing=[[i * 10_000, i * 20.0] for i in range(1, 7)], pack=1)
    above = drawn(study, "penalty_figure").above(0)
    assert "NGT 1.2;" in above and "DAC, R 8.0;" in above


def test_times_of_unknown_packs_are_left_out(paper_study: Make, drawn: Make) -> None:
    study = paper_study("penalty_figure", envs=["Hopper-v4"], seeds=[0])
    for key in study.table():
        study.write(key, [0.5] * 6, timing=[[60_000, 30.0]])
    seen = drawn(study, "penalty_figure")
    assert seen.above(0) == "" and "pack" not in seen.notes.lower()
