"""Figures of learning curves: each run in one panel, partial figures, the layout of panels."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.runs.keys import run_table
from ngt.settings.config import Config, FigureConfig
from ngt.settings.load import load
from paper.drawing import notes
from paper.drawing.panels import AUC, RETURN, SCORE, Place
from paper.figures.curves import CURVE_FIGURES, grid
from paper.numbers import curves
from paper.register import CURVES

Make = Callable[..., Any]
SCALES = ("test", "quick", "lite", "paper")

configs: Callable[[str], Config] = functools.cache(lambda scale: load({"scale": scale}))


@pytest.mark.parametrize("name", CURVES)
def test_every_run_has_one_line_in_one_panel(name: str) -> None:
    figure = CURVE_FIGURES[name]
    for scale in SCALES:
        config = configs(scale)
        if name not in config.figures:
            continue
        laid, series = grid(config.figures[name], figure.measures), figure.series(config, name)
        for measure in figure.measures:
            places = [p for row in laid.rows for p in row if p.measure == measure]
            drawn = [place.cell(one) for place in places for one in series]
            keys = run_table(config, [name], beside=True)
            wanted = {tuple(getattr(key, axis) for axis in curves.CELL) for key in keys}
            assert len(drawn) == len(set(drawn)) and wanted <= set(drawn), scale
            left_out = [(env, method) for env, method, *_ in set(drawn) - wanted]  # by `only`
            assert not any(env in config.figures[name].envs_of(method) for env, method in left_out)
            assert all(sum(place.holds(key) for place in places) == 1 for key in keys)
        assert len({one.label for one in series}) == len(series)
        assert len({one.look for one in series}) == len(series)


@pytest.mark.parametrize("name", [name for name in CURVES if name != "main_figure"])
def test_a_partial_figure_says_what_it_lacks_and_is_tidy(
    paper_study: Make, fill: Make, drawn: Make, tidy: Make, name: str
) -> None:
    few = {"envs": ["finger-spin"]} if name == "dmc_figure" else {}
    study = paper_study(name, seeds=[0, 1], **few)
    gone, *_, silent = study.table()
    fill(study, skip=[gone])
    study.write(silent, [], diverged=True)
    seen = drawn(study, name, allow_partial=True)
    above = " ".join(seen.above(panel) for panel in range(len(seen.figure.axes)))
    assert above.count("missing: ") == above.count("diverged, no evaluation: ") == 1
    assert f"PARTIAL: 1 of {len(study.table())} runs" in seen.notes
    assert f"×: 1 of {len(study.table())} runs diverged" in seen.notes
    tidy(seen.figure)


def test_what_has_no_run_has_no_panel_and_no_entry_in_the_legend(
    make_study: Make, fill: Make, drawn: Make, tidy: Make
) -> None:
    study = make_study(envs=["HalfCheetah-v4", "Hopper-v4"], demos=[1, 4], seeds=[0, 1])
    first = [key for key in study.table() if (key.env, key.demos) == ("Hopper-v4", 4)]
    some = [key for key in first if key.method != "bc"]
    fill(study, skip=set(study.table()) - set(some))
    seen = drawn(study, "main_figure", allow_partial=True)
    (panel,) = seen.figure.axes
    assert panel.get_ylabel().startswith("Hopper-v4") and panel.get_title() == "4 demonstrations"
    assert seen.above(0) == "missing: BC"
    assert "NGT" in seen.legend and "BC" not in seen.legend
    assert "without panels: HalfCheetah-v4, 1 demonstration." in seen.notes
    tidy(seen.figure)


def plan(**axes: Any) -> FigureConfig:
    return replace(FigureConfig(methods=("ngt",), envs=("Ant-v4",)), **axes)


def test_rows_are_envs_and_modes_and_columns_demonstrations() -> None:
    laid = grid(plan(modes=("state-action", "state-state"), demos=(1, 11)), [RETURN])
    assert laid.rows == [
        [Place("Ant-v4", mode, k, RETURN) for k in (1, 11)]
        for mode in ("state-action", "state-state")
    ]
    assert laid.titles == [["1 demonstration", "11 demonstrations"], ["", ""]]
    assert laid.labels[1] == ["Ant-v4, state-state\nreturn", ""]
    assert laid.shared == []


@pytest.mark.parametrize(
    ("envs", "lengths"), [(2, [2]), (3, [3]), (4, [2, 2]), (5, [3, 2]), (6, [3, 3]), (7, [3, 3, 1])]
)
def test_envs_of_one_number_of_demonstrations_stand_side_by_side(
    envs: int, lengths: list[int]
) -> None:
    names = tuple(f"env{i}" for i in range(envs))
    laid = grid(plan(envs=names, demos=(4,)), [SCORE])
    assert [len(row) for row in laid.rows] == lengths
    assert list(itertools.chain(*laid.titles)) == list(names)
    assert {row[0] for row in laid.labels} == {"normalised return"}
    assert laid.shared == ["4 demonstrations"]


def test_returns_of_other_envs_do_not_share_an_axis() -> None:
    laid = grid(plan(envs=("Ant-v4", "Hopper-v4"), demos=(4,)), [RETURN])
    assert [[place.env for place in row] for row in laid.rows] == [["Ant-v4"], ["Hopper-v4"]]


def test_measures_stand_below_each_other_or_beside_in_one_column() -> None:
    below = grid(plan(envs=("Ant-v4", "Hopper-v4"), demos=(1, 4)), [SCORE, AUC])
    assert [(row[0].env, row[0].measure) for row in below.rows] == [
        (env, measure) for env in ("Ant-v4", "Hopper-v4") for measure in (SCORE, AUC)
    ]
    assert [any(row) for row in below.titles] == [True, False, False, False]
    beside = grid(plan(demos=(4,)), [SCORE, AUC])
    assert [[place.measure for place in row] for row in beside.rows] == [[SCORE, AUC]]
    assert beside.labels == [["Ant-v4\nnormalised return", "Ant-v4\nAUC of the reward"]]
    assert beside.titles == [["4 demonstrations"] * 2]


def test_a_panel_below_the_last_has_the_steps(paper_study: Make, fill: Make, drawn: Make) -> None:
    study = paper_study("ablation_hlg_elsewhere", seeds=[0])
    fill(study)
    figure = drawn(study, "ablation_hlg_elsewhere").figure
    assert [axes.get_xlabel() != "" for axes in figure.axes] == [False, False, True, True, True]
    assert [axes.get_title() for axes in figure.axes] == [
        "Ant-v4",
        "HalfCheetah-v4",
        "Hopper-v4",
        "Pusher-v5",
        "Walker2d-v4",
    ]
    figure.draw_without_rendering()
    shown = [any(label.get_text() for label in a.get_yticklabels()) for a in figure.axes]
    assert shown == [True, False, False, True, False]


def test_a_variant_stands_behind_what_it_is_compared_with(
    paper_study: Make, fill: Make, drawn: Make
) -> None:
    study = paper_study("ablation_init", seeds=[0, 1], demos=[1, 4])
    fill(study)
    for seed in (0, 1):
        study.write(study.key("ngt", 4, seed, env="HalfCheetah-v4"), [0.6] * 6)
        study.write(study.key("ngt-kaiming", 4, seed, env="HalfCheetah-v4"), [0.3] * 6)
    seen = drawn(study, "ablation_init")
    assert seen.legend == ["NGT (orthogonal head)", "NGT (Kaiming head)", "expert", "random"]
    reference, variant = seen.strong(3)
    np.testing.assert_allclose(reference.get_ydata(), 0.6)
    np.testing.assert_allclose(variant.get_ydata(), 0.3)
    assert reference.get_linewidth() > variant.get_linewidth()


def test_a_rate_is_one_where_lines_are_methods(paper_study: Make) -> None:
    study = paper_study("ablation_init", rates=[10, 20])
    figure = CURVE_FIGURES["ablation_init"]
    with pytest.raises(UserError, match=r"figures\.ablation_init\.rates: found \[10, 20\]"):
        figure.series(study.config, "ablation_init")


def test_a_panel_without_scores_shows_returns(poor_study: Make, drawn: Make, tidy: Make) -> None:
    seen = drawn(poor_study(demos=[1, 4]), "main_figure")
    assert [axes.get_ylabel() for axes in seen.figure.axes] == [
        "Pendulum-v1\nnormalised return",
        "",
        "Hopper-v4\nreturn",
        "",
    ]
    np.testing.assert_allclose(seen.strong(0)[0].get_ydata(), 0.9)
    np.testing.assert_allclose(seen.strong(2)[0].get_ydata(), 50.0)
    low, high = seen.figure.axes[2].get_ylim()
    assert low < 49.0 and high > 50.0, "both references and all curves must be inside"
    assert seen.above(0) == "" and seen.above(2) == "no scores: see below"
    assert "No scores on Hopper-v4: the expert's mean return, 49, is not above" in seen.notes
    tidy(seen.figure)


@pytest.mark.parametrize(
    "name", ["main_figure", "grid_figure", "seeds_figure", "ablation_sigma", "dmc_figure"]
)
@pytest.mark.parametrize("envs", [["Hopper-v4"], ["Pendulum-v1", "Hopper-v4"]])
def test_every_figure_is_drawn_without_scores(
    poor_study: Make, drawn: Make, tidy: Make, name: str, envs: list[str]
) -> None:
    study = poor_study(envs=envs, name=name, demos=[4])
    if name == "grid_figure":
        study.settings["figures"][name]["methods"] = ["ngt"]
    seen = drawn(study, name)
    assert "No scores on Hopper-v4: the expert's" in seen.notes
    labels = [axes.get_ylabel().split("\n")[-1] for axes in seen.figure.axes]
    assert labels.count("return") == (len(envs) if name == "grid_figure" else 1)
    tidy(seen.figure)


@pytest.mark.parametrize(
    ("scale", "name", "repeats"),
    [("quick", "ablation_mse_softmax", 1), ("paper", "ablation_mse_softmax", 0)],
)
def test_a_variant_with_the_settings_of_its_base_method_is_named(
    scale: str, name: str, repeats: int
) -> None:
    config = configs(scale)
    series = CURVE_FIGURES[name].series(config, name)
    said = notes.reading(
        config, series, config.figures[name].envs[0], [3], [SCORE], plan=config.figures[name]
    )
    text = "NGT (MSE-softmax) repeats NGT with other random numbers; their settings are the same"
    assert said.text.count(text) == repeats
