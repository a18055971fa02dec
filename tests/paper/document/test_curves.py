"""The data of the report's interactive chart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ngt.errors import UserError
from ngt.runs.keys import RunKey
from ngt.runs.table import read_keys
from paper.document import curves as report_curves
from paper.document.curves import POINTS, UNIT, payload, thin

Make = Callable[..., Any]


def data(study: Any) -> dict[str, Any]:
    keys = report_curves.keys(study.config)
    runs = read_keys(study.layout, study.config, keys, "figures", allow_partial=True)
    content = payload(runs.rows, study.config, runs.records)
    made: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return made


def test_curves_by_hand(make_study: Make) -> None:
    study = make_study(window=2, methods=["ngt", "bc"], demos=[1], seeds=[0, 1])
    study.write(study.key("ngt", seed=0), [0.0, 0.3, 0.6])
    study.write(study.key("ngt", seed=1), [0.2, 0.2, 0.8])
    study.write(study.key("bc", seed=0), [0.9, 0.4, 0.6])
    study.write(study.key("bc", seed=1), [0.9, 0.7, 0.9])
    made = data(study)
    ngt, bc = made["cells"]
    assert (ngt["method"], ngt["seeds"], ngt["rate"], ngt["demos"]) == ("ngt", 2, 20, 1)
    assert made["steps"][ngt["steps"]] == [10_000, 20_000, 30_000]
    assert ngt["mean"] == [1000, 1750, 4750]
    std = np.array([0.2, 0.05, 0.05]) / np.sqrt(2)
    assert ngt["std"] == [round(x * UNIT) for x in std]
    assert (bc["steps"], bc["mean"], bc["std"]) == (None, [6500], [round(3000 / np.sqrt(2))])
    assert made["envs"] == [
        {"name": "Pendulum-v1", "random": -200.0, "expert": 300.0, "unscored": ""}
    ]


def test_one_seed_has_no_spread_and_a_diverged_run_its_end(make_study: Make) -> None:
    study = make_study(window=1, methods=["ngt", "bc"], demos=[1], seeds=[0])
    study.write(study.key("ngt"), [0.5, 0.25], diverged=True)
    study.write(study.key("bc"), [0.75], diverged=True)
    ngt, bc = data(study)["cells"]
    assert ngt["std"] is None and ngt["diverged"] == [[20_000, 2500]]
    assert bc["std"] is None and bc["diverged"] == [[None, 7500]]


def test_a_run_that_diverged_before_an_evaluation_counts_as_a_random_policy(
    make_study: Make,
) -> None:
    study = make_study(window=1, methods=["ngt"], demos=[1], seeds=[0, 1])
    study.write(study.key("ngt"), [0.5, 0.25])
    study.write(study.key("ngt", seed=1), [], diverged=True)
    (ngt,) = data(study)["cells"]
    assert (ngt["seeds"], ngt["mean"], ngt["diverged"]) == (2, [2500, 1250], [[10_000, 0]])


def test_a_method_that_fixes_its_rate_has_none_to_choose(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "bc-full"])
    fill(study)
    rates = {cell["method"]: (cell["rate"], cell["kept"]) for cell in data(study)["cells"]}
    assert rates == {"ngt": (20, 20), "bc-full": (None, 1)}


def test_every_figure_of_curves_once_and_no_other(make_study: Make) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1], seeds=[0])
    plan = {
        "methods": ["dac-r"],
        "beside": ["ngt"],
        "envs": ["Pendulum-v1"],
        "demos": [1],
        "seeds": [0],
    }
    study.settings["figures"]["ablation_init"] = plan
    study.settings["figures"]["speed_table"] = {**plan, "methods": ["red"]}
    for method in ("ngt", "bc", "dac-r", "red"):
        study.write(study.key(method), [0.1])
    made = data(study)
    assert [cell["method"] for cell in made["cells"]] == ["ngt", "bc", "dac-r"]
    assert [m["name"] for m in made["methods"] if m["ours"]] == ["ngt"]
    assert {m["name"]: m["on"] for m in made["methods"]} == {
        "ngt": True,
        "bc": True,
        "dac-r": False,
    }


def test_each_mode_and_rate_is_its_own_cell(make_study: Make) -> None:
    study = make_study(methods=["ngt"], demos=[1], seeds=[0])
    study.settings["figures"]["grid_figure"] = {
        "methods": ["ngt"],
        "envs": ["Pendulum-v1"],
        "demos": [1],
        "seeds": [0],
        "modes": ["state-action", "state-state"],
        "rates": [10, 20],
    }
    for i, key in enumerate(report_curves.keys(study.config)):
        study.write(key, [i / 10])
    cells = {(c["mode"], c["rate"]): c["mean"] for c in data(study)["cells"]}
    assert cells == {
        ("state-action", 10): [0],
        ("state-action", 20): [1000],
        ("state-state", 10): [2000],
        ("state-state", 20): [3000],
    }


@pytest.mark.parametrize("length", [1, 2, POINTS, POINTS + 1, 1000])
def test_thinning_keeps_both_ends_and_spreads_evenly(length: int) -> None:
    kept = thin(length)
    assert len(kept) == min(length, POINTS)
    assert (kept[0], kept[-1]) == (0, length - 1)
    gaps = np.diff(kept)
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_a_long_curve_is_thinned_after_its_running_mean(make_study: Make) -> None:
    study = make_study(window=3, methods=["ngt"], demos=[1], seeds=[0])
    scores = np.random.default_rng(0).uniform(size=450)
    study.write(study.key("ngt"), scores.tolist())
    made = data(study)
    (cell,) = made["cells"]
    steps = np.array(made["steps"][cell["steps"]])
    assert len(steps) == len(cell["mean"]) == POINTS
    at = steps // study.config.train.eval_every - 1
    expected = [scores[max(0, i - 2) : i + 1].mean() for i in at]
    np.testing.assert_allclose(np.array(cell["mean"]) / UNIT, expected, atol=0.51 / UNIT)


def test_runs_of_two_references_are_refused(make_study: Make) -> None:
    study = make_study(methods=["ngt"], demos=[1], seeds=[0, 1])
    study.write(study.key("ngt", seed=0), [0.1])
    other = {"random": -100.0, "expert": 300.0, "demos": "0" * 64}
    study.write(study.key("ngt", seed=1), [0.1], reference=other)
    with pytest.raises(UserError, match=r"Pendulum-v1: their random and expert returns differ"):
        data(study)


def test_no_run_and_no_figure_of_curves(make_study: Make) -> None:
    study = make_study()
    assert data(study)["cells"] == []
    study.settings["figures"] = {}
    assert report_curves.keys(study.config) == list[RunKey]()
    assert payload(None, study.config, ())["methods"] == []


def test_an_env_without_scores_has_its_returns(poor_study: Make) -> None:
    made = data(poor_study(demos=[1]))
    pendulum, hopper = made["envs"]
    assert pendulum["unscored"] == "" and "is not above" in hopper["unscored"]
    means = {(cell["env"], cell["method"]): cell["mean"][-1] / UNIT for cell in made["cells"]}
    assert means["Hopper-v4", "ngt"] == pytest.approx(50.0)
    assert means["Hopper-v4", "bc"] == pytest.approx(49.6)
    assert means["Pendulum-v1", "ngt"] == pytest.approx(0.9)
