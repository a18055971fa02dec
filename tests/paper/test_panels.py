"""Figures of learning curves: what each shows where; partial tables; the other measures."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ngt.errors import UserError
from ngt.results import read_runs
from ngt.runs import RunKey, run_table
from paper import curves, panels, style
from paper.artefacts import CURVES

VARIANTS = {
    "ngt": {"label": "NGT", "model": "ngt.potential:Potential"},
    "a": {"label": "NGT (m = 8)", "like": "ngt", "params": {"m": 8}},
    "b": {"label": "NGT (m = 64)", "like": "ngt", "params": {"m": 64}},
}
Draw = Callable[..., Figure]


@pytest.fixture
def draw(make_study: Callable[..., Any]) -> Draw:
    """draw(name, skip=..., **axes): a figure of runs whose score is a tenth of their seed + 1."""

    def make(name: str, skip: Sequence[int] = (), **axes: Any) -> Figure:
        study = make_study(window=2)
        plan = {"methods": ["a", "b"], "beside": ["ngt"], "envs": ["Pendulum-v1"], "demos": [1, 4],
                "seeds": [0, 1], **axes}  # fmt: skip
        study.settings["methods"] |= VARIANTS
        study.settings["figures"] = {name: plan}
        for i, key in enumerate(run_table(study.config, [name], beside=True)):
            if i not in skip:
                study.write(key, [0.1 * (key.seed + 1)] * 4)
        runs, absent = read_runs(study.layout, study.config, name, allow_partial=bool(skip))
        module = importlib.import_module(f"paper.{name}")
        return module.draw(runs.assign(auc=0.4), study.config, absent)

    return make


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def words(figure: Figure) -> str:
    return " ".join(t.get_text() for t in figure.texts).replace("\n", " ").replace("\u00a0", " ")


def strong(axes: Any) -> list[Line2D]:
    return [x for x in axes.lines if 400 < x.get_zorder() < 700 and len(x.get_xdata()) > 2]


def test_every_curve_artefact_has_its_module() -> None:
    for name in CURVES:
        module = importlib.import_module(f"paper.{name}")
        assert name == module.NAME and module.__doc__


def test_a_variant_stands_beside_what_it_differs_from(draw: Draw) -> None:
    figure = draw("ablation_init", methods=["a"])
    assert legend(figure) == ["NGT (m = 32)", "NGT (m = 8)", "expert", "random"]
    assert [axes.get_title() for axes in figure.axes] == ["1 demonstration", "4 demonstrations"]
    for axes in figure.axes:
        first, second = strong(axes)
        assert first.get_color() == style.LOOKS["ngt"].color != second.get_color()
        np.testing.assert_allclose(first.get_ydata(), 0.15)


def test_sizes_are_in_order_from_light_to_dark(draw: Draw) -> None:
    figure = draw("ablation_embedding")
    assert legend(figure)[:3] == ["NGT (m = 8)", "NGT (m = 32)", "NGT (m = 64)"]
    colors = [line.get_color() for line in strong(figure.axes[0])]
    assert colors == [style.RAMP[0], *colors[1:2], style.RAMP[-1]] and len(set(colors)) == 3


def test_many_envs_of_one_number_of_demonstrations_stand_side_by_side(draw: Draw) -> None:
    envs = ["Ant-v4", "Hopper-v4", "Pendulum-v1", "Walker2d-v4"]
    figure = draw("ablation_hlg_elsewhere", envs=envs, demos=[4], methods=["a"])
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in shown] == [f"{e}, 4 demonstrations" for e in envs]
    assert len(figure.axes) == 6
    assert [axes.get_xlabel() != "" for axes in shown] == [False, True, True, True], "lowest ones"


def test_a_reward_upside_down_is_marked(draw: Draw) -> None:
    figure = draw("ablation_sigma", methods=["a"])
    returns, auc = figure.axes[:2], figure.axes[2:]
    assert [axes.get_ylabel() for axes in (returns[0], auc[0])] == [
        "Pendulum-v1\nnormalised return", "Pendulum-v1\nreward's AUC",
    ]  # fmt: skip
    for axes in auc:
        assert all(np.allclose(line.get_ydata(), 0.4) for line in strong(axes))
        assert [p.get_bbox().y1 for p in axes.patches] == [0.5]
        assert axes.get_ylim()[0] < 0.4
    assert all(not axes.patches for axes in returns)
    assert "below it (shaded) the reward is upside down" in words(figure)


def test_the_grid_shows_returns_by_mode_and_rate(draw: Draw) -> None:
    figure = draw(
        "grid_figure", methods=["ngt"], beside=[], rates=[50, 10], demos=[1, 4, 11],
        modes=["state-action", "state-state"],
    )  # fmt: skip
    grid = np.array(figure.axes).reshape(2, 3)
    assert [axes.get_ylabel() for axes in grid[:, 0]] == [
        "Pendulum-v1\nstate-action\nreturn", "Pendulum-v1\nstate-state\nreturn",
    ]  # fmt: skip
    assert legend(figure)[:2] == ["every 10th transition", "every 50th transition"]
    for axes in grid.ravel():
        assert len(strong(axes)) == 2
        for line in strong(axes):  # random -200, expert 300
            np.testing.assert_allclose(line.get_ydata(), -200 + 0.15 * 500)
        references = {
            float(x.get_ydata()[0]) for x in axes.lines if x.get_color() == style.GREY
        }  # fmt: skip
        assert references == {-200.0, 300.0}
        assert axes.get_ylim() == (-250.0, 350.0)
    assert "0 is the return of a random policy" not in words(figure)


def test_every_seed_has_its_line_and_the_spread_is_said(draw: Draw) -> None:
    figure = draw("seeds_figure", methods=["ngt"], beside=[], seeds=list(range(10)), demos=[1])
    (axes,) = figure.axes
    own = sorted(x.get_ydata()[-1] for x in axes.lines if x.get_zorder() == 250)
    np.testing.assert_allclose(own, np.arange(1, 11) / 10)
    text = words(figure)
    assert "n = 10 seeds a curve" in text
    assert "final scores of 10 seeds from 0.10 to 1.00, mean 0.55, standard deviation 0.30" in text


def test_extra_tasks_are_drawn_as_the_main_ones(draw: Draw) -> None:
    figure = draw("dmc_figure", methods=["ngt", "dac-r"], beside=[], envs=["cheetah-run"])
    assert legend(figure) == ["NGT", "DAC (R)", "expert", "random"]
    assert figure.axes[0].get_ylabel() == "cheetah-run\nnormalised return"


@pytest.mark.parametrize("name", CURVES)
def test_a_partial_figure_says_what_it_lacks(draw: Draw, name: str) -> None:
    axes = {"methods": ["ngt"], "beside": []} if "ablation" not in name else {"methods": ["a"]}
    figure = draw(name, skip=[0], **axes)
    assert "PARTIAL: 1 of" in words(figure)
    said = " ".join(t.get_text() for a in figure.axes for t in a.texts).replace("\u00a0", " ")
    assert "missing: " in said and "seed 0" in said


def test_one_value_only_where_one_is_shown(draw: Draw) -> None:
    with pytest.raises(UserError, match=r"figures\.ablation_init\.rates: found \[10, 20\]"):
        draw("ablation_init", rates=[10, 20])


def test_axes_of_returns_reach_as_far_as_normalised_ones() -> None:
    measure = curves.unnormalised(random=-200.0, expert=300.0)
    assert measure.shown == (-250.0, 350.0) and measure.limit == (-450.0, 550.0)
    upside_down = curves.unnormalised(random=300.0, expert=-200.0)
    assert upside_down.shown == (-250.0, 350.0)


def test_keys_of_a_cell_have_the_methods_own_rate(make_study: Callable[..., Any]) -> None:
    config = make_study(methods=["bc", "bc-full"]).config
    plan = config.figures["main_figure"]
    keys = panels.keys_of(config, plan, "bc-full", "Pendulum-v1", 4)
    assert keys[0] == RunKey("Pendulum-v1", "bc-full", "state-action", 1, 4, 0)
    assert len(keys) == len(plan.seeds)
