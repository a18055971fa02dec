"""Tests of checks before any job: a variant must differ on its envs, and rates must be possible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.runs.keys import run_table
from ngt.settings.check import idle
from ngt.settings.load import load


def with_variant(env: str, like: str = "ngt", **variant: Any) -> dict[str, Any]:
    """Return settings whose figure `ablation_init` has one variant on one env."""
    figure = {"methods": ["v"], "envs": [env], "demos": [1], "seeds": [0]}
    methods = {"v": {"like": like, **variant}}
    return {"scale": "test", "methods": methods, "figures": {"ablation_init": figure}}


@pytest.mark.parametrize(
    ("env", "variant", "reason"),
    [
        ("Pendulum-v1", {"params": {"sigma_agent": 0.1}}, "params.pairing is huber"),
        ("Pendulum-v1", {"params": {"bins": 5}}, "params.pairing is huber"),
        ("Pendulum-v1", {"like": "ngt-hlg", "params": {"delta": 2.0}}, "pairing is hl_gauss"),
        (
            "Pendulum-v1",
            {"like": "ngt-equal-sigma", "params": {"reward_sigma": "agent"}},
            "the two widths are equal",
        ),
        ("HalfCheetah-v4", {"terminate_when_unhealthy": False}, "nothing terminates there"),
        ("HalfCheetah-v4", {"sac": {"entropy_units": "tanh"}}, "the action bounds are 1"),
        ("walker-walk", {"like": "dac-r", "terminate_when_unhealthy": False}, "nothing terminates"),
    ],
)
def test_a_switch_that_cannot_act_in_a_cell_is_refused(
    env: str, variant: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        load(with_variant(env, **variant))


@pytest.mark.parametrize(
    ("env", "variant"),
    [
        ("Hopper-v4", {"terminate_when_unhealthy": False}),
        ("Pusher-v5", {"sac": {"entropy_units": "tanh"}}),
        ("Pendulum-v1", {"like": "ngt-hlg", "params": {"sigma_agent": 0.1}}),
        ("Pendulum-v1", {"params": {"sigma_agent": 0.1, "leak": 0.2}}),
        ("Pendulum-v1", {"params": {"pairing": "hl_gauss", "bins": 5}}),
        ("Pendulum-v1", {}),
    ],
    ids=str,
)
def test_a_switch_that_acts_is_taken(env: str, variant: dict[str, Any]) -> None:
    assert "v" in load(with_variant(env, **variant)).methods


@pytest.mark.parametrize(
    ("name", "low", "reason"),
    [("sac.entropy_units", -1.0, "bounds are 1"), ("sac.entropy_units", -0.4, "")],
)
def test_entropy_units_act_where_the_bounds_are_not_1(name: str, low: float, reason: str) -> None:
    task = replace(get_task("Pendulum-v1"), low=low, high=-low)
    assert reason in idle(name, {}, task) and bool(reason) == bool(idle(name, {}, task))


@pytest.mark.parametrize(("env", "reason"), [("HalfCheetah-v4", "terminates"), ("Hopper-v4", "")])
def test_absorbing_states_act_where_something_terminates(env: str, reason: str) -> None:
    found = idle("params.absorbing", {}, get_task(env))
    assert reason in found and bool(reason) == bool(found)


def test_a_method_runs_on_its_own_envs_alone() -> None:
    config = load({"scale": "paper"})
    plan = config.figures["controls_figure"]
    cells = {(key.method, key.env) for key in run_table(config, ["controls_figure"])}
    assert ("constant", "Humanoid-v4") in cells and ("constant", "HalfCheetah-v4") not in cells
    assert plan.envs_of("ngt") == list(plan.envs)
    small = load({"scale": "lite"}).figures["controls_figure"]
    assert small.envs_of("constant") == ["Hopper-v4", "Walker2d-v4"]
    test = load({"scale": "test"}).figures["readings_figure"]
    assert test.only == config.figures["readings_figure"].only, (
        "`only` must be the same at all scales"
    )
    assert test.envs_of("ngt-log-alpha") == test.envs_of("ngt-tanh-entropy") == ["Pendulum-v1"]


def test_a_method_without_any_env_is_named() -> None:
    figure = {"envs": ["Pendulum-v1"], "only": {"ngt-kaiming": ["Hopper-v4"]}}
    with pytest.raises(UserError, match=r"figures.ablation_init.only.ngt-kaiming: none of"):
        load({"scale": "test", "figures": {"ablation_init": figure}})


@pytest.mark.parametrize(
    ("differences", "field"),
    [
        ({"figures": {"main_figure": {"rates": [20, 201]}}}, "figures.main_figure.rates: rate 201"),
        ({"methods": {"ngt": {"rate": 201}}}, "methods.ngt.rate: rate 201"),
        (
            {
                "methods": {"child": {"like": "pwil", "rate": 201}, "v": {"like": "child"}},
                "figures": {"main_figure": {"beside": ["v"]}},
            },
            "methods.v.rate: rate 201",
        ),
    ],
)
def test_a_rate_above_the_time_limit_is_refused(differences: dict[str, Any], field: str) -> None:
    with pytest.raises(UserError) as caught:
        load({"scale": "test", **differences})
    assert str(caught.value) == (
        f"{field}, but an episode of Pendulum-v1 has at most 200 steps; lower the rate"
    )


def test_a_rate_up_to_the_time_limit_is_taken() -> None:
    figure = {"rates": [200], "envs": ["Pendulum-v1"]}
    assert load({"scale": "test", "figures": {"main_figure": figure}})
    only = {"methods": ["ngt"], "rates": [500], "envs": ["Pendulum-v1", "Hopper-v4"]}
    only |= {"only": {"ngt": ["Hopper-v4"]}}
    assert load({"scale": "test", "figures": {"seeds_figure": {**only, "demos": [1]}}})


@pytest.mark.parametrize(
    "figure", [{"methods": ["ngt", "v"]}, {"methods": ["ngt"], "beside": ["v"]}], ids=str
)
@pytest.mark.parametrize("labels", [("NGT", "NGT"), ("v", "")], ids=str)
def test_two_methods_of_a_figure_with_one_label_are_refused(
    figure: dict[str, Any], labels: tuple[str, str]
) -> None:
    """Check also a method without a label, which is shown by its name."""
    label, own = labels
    methods = {"ngt": {"label": label}, "v": {"like": "bc", "label": own}}
    with pytest.raises(UserError) as caught:
        load({"scale": "test", "methods": methods, "figures": {"main_figure": figure}})
    assert str(caught.value) == (
        f"figures.main_figure: ngt and v have the same label {label!r}; write another "
        f"methods.v.label"
    )
    apart = {"main_figure": {"methods": ["ngt"]}, "seeds_figure": {"methods": ["v"]}}
    assert load({"scale": "test", "methods": methods, "figures": apart})
