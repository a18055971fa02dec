"""Tests of settings: defaults, strict parsing, merging, layers, hashes and schema."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ngt.cli import main
from ngt.errors import UserError
from ngt.experience import demos, shipped
from ngt.experience.envs import TASKS
from ngt.potential import PotentialConfig
from ngt.reward import RewardModel
from ngt.settings.config import (
    CellConfig,
    Config,
    FigureConfig,
    MethodConfig,
    Override,
    SacConfig,
    TrainConfig,
)
from ngt.settings.load import CONFIG_DIR, load, read_yaml
from ngt.settings.resolve import (
    config_hash,
    demos_file,
    demos_source,
    expert_config,
    expert_ships,
    file_hash,
    method_label,
    method_rate,
    own_file,
    resolve,
    resolve_expert,
    to_json,
)
from ngt.settings.schema import merge, parse, schema

SCALES = ("test", "quick", "lite", "paper")
SHIPPED = sorted(CONFIG_DIR.glob("*.yaml"))
SCHEMA = CONFIG_DIR / "schema.json"
PAPER_ENVS = ("Ant-v4", "HalfCheetah-v4", "Hopper-v4", "Humanoid-v4", "Pusher-v5", "Walker2d-v4")

# Defaults of SAC, the training loop and NGT: the paper's, or this suite's if the paper gives none.
DEFAULTS: dict[type, dict[str, Any]] = {
    SacConfig: {
        "hidden": (256, 256), "activation": "relu", "layer_norm": False, "head_gain": 1.0,
        "critics": 2, "gamma": 0.99, "tau": 0.005,
        "lr_actor": 3e-4, "lr_critic": 1e-3, "lr_alpha": 1e-3,
        "alpha": 0.2, "alpha_form": "exp", "alpha_loss": "alpha",
        "learn_alpha": True, "target_entropy_scale": 1.0, "entropy_units": "env",
        "actor_grad_clip": 20.0, "critic_grad_clip": None,
        "log_std_min": -5.0, "log_std_max": 2.0,
    },
    TrainConfig: {
        "steps": 10_000_000, "num_envs": 4, "updates_per_step": 1, "learning_starts": 0,
        "batch": 256, "buffer": 4_000_000, "eval_every": 10_000, "eval_episodes": 10,
        "log_every": 10_000, "keep": "last",
    },
    PotentialConfig: {
        "pairing": "huber", "hidden": (256, 256), "leak": 0.05, "m": 32, "lr": 1e-3,
        "spectral_norm": True, "power_iterations": 3, "penalty": 0.0,
        "init": "orthogonal", "head_init": "orthogonal",
        "squash": True, "rescale": 5.0, "hlg_target": "tanh", "delta": 1.0, "bins": 21,
        "support": 1.0,
        "sigma_expert": 0.25, "sigma_agent": 0.05, "reward_sigma": "expert",
        "scaling": "percentile", "gap_floor": 1e-8, "ema_rate": 1e-3, "reward_clip": 5.0,
    },
}  # fmt: skip


def error(call: Any, *args: Any) -> str:
    """Return the one-line message of the UserError that a call raises."""
    with pytest.raises(UserError) as caught:
        call(*args)
    message = str(caught.value)
    assert "\n" not in message
    return message


# ---------------------------------------------------------------- defaults


@pytest.mark.parametrize("cls", DEFAULTS, ids=lambda c: c.__name__)
def test_defaults_are_the_papers(cls: type) -> None:
    assert dataclasses.asdict(cls()) == DEFAULTS[cls]


def test_workflow_defaults_are_the_papers() -> None:
    config = Config()
    assert (config.sac, config.train) == (SacConfig(), TrainConfig())
    assert config.window == 20
    assert config.terminate_when_unhealthy and not config.normalise_obs
    assert config.expert.episodes == 16
    assert CellConfig("e", "m").rate == 20
    assert CellConfig("e", "m").mode == "state-action"
    figure = FigureConfig()
    assert (figure.demos, figure.seeds, figure.rates) == ((1, 4, 11), (0, 1, 2, 3), (20,))


def test_paper_scale_trains_with_the_defaults() -> None:
    config = load({"scale": "paper"})
    for env in PAPER_ENVS:
        cell = resolve(config, env, "ngt", "state-action", 20)
        assert (cell.sac, cell.train) == (SacConfig(), TrainConfig())
        expected = {**DEFAULTS[PotentialConfig], "hidden": (256, 256)}
        if env == "Humanoid-v4":
            expected["pairing"] = "hl_gauss"
        assert cell.params == expected
        assert resolve(config, env, "bc", "state-action", 20).params == {}


# Settings of the authors' later public code that differ from the paper's table. That code clips the
# critic's gradient at 20. The limit is 10 here, because our critic loss has a factor 1/2.
RELEASED: dict[str, dict[str, Any]] = {
    "sac": {
        "activation": "silu", "layer_norm": True, "head_gain": 1e-3, "lr_actor": 1e-4,
        "lr_critic": 2e-4, "lr_alpha": 3e-4, "alpha_form": "softplus", "critic_grad_clip": 10.0,
    },
    "train": {"steps": 1_000_000, "num_envs": 1, "learning_starts": 2500, "buffer": 500_000},
    "params": {
        "hidden": (128, 128, 128), "leak": 0.2, "m": 64, "lr": 5e-5, "init": "uniform",
        "head_init": "uniform", "squash": False, "scaling": "ema_signed", "gap_floor": 1e-10,
    },
}  # fmt: skip


def test_the_released_variant_differs_in_what_it_should_and_in_nothing_else() -> None:
    config = load({"scale": "paper"})
    for env in PAPER_ENVS:
        cell = resolve(config, env, "ngt-release", "state-action", 20)
        assert (cell.terminate_when_unhealthy, cell.normalise_obs) == (False, True)
        assert cell.sac == SacConfig(**RELEASED["sac"])
        assert cell.train == TrainConfig(**RELEASED["train"])
        assert cell.params == {**DEFAULTS[PotentialConfig], **RELEASED["params"]}


@pytest.mark.parametrize("scale", SCALES)
def test_the_released_variant_learns_at_every_scale(scale: str) -> None:
    config = load({"scale": scale})
    train = resolve(config, "Pendulum-v1", "ngt-release", "state-action", 20).train
    assert train.learning_starts < train.steps / 3 and train.buffer >= train.steps / 2


def test_a_config_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().sac.gamma = 0.5  # type: ignore[misc]


# ---------------------------------------------------------------- strict parsing

AXES = {
    "methods": "ngt",
    "envs": "Ant-v4",
    "demos": 4,
    "seeds": 0,
    "modes": "state-only",
    "rates": 20,
}


def figure(**changes: list[Any]) -> dict[str, Any]:
    """Return settings with a figure of one run; `changes` replaces axes of the figure."""
    return {"figures": {"f": {**{axis: [value] for axis, value in AXES.items()}, **changes}}}


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"gama": 0.9}, ["gama: unknown key", "did you mean gamma"]),
        ({"zzz": 1}, ["zzz: unknown key", "known: activation, actor_grad_clip"]),
        ({7: 1}, ["7: unknown key"]),
        ({"gamma": 1.5}, ["gamma: must be in [0, 1], found 1.5"]),
        ({"gamma": -0.1}, ["gamma: must be in [0, 1], found -0.1"]),
        ({"lr_actor": -1e-3}, ["lr_actor: must be at least 0, found -0.001"]),
        ({"gamma": math.nan}, ["gamma: must be finite, found nan"]),
        ({"target_entropy_scale": math.nan}, ["target_entropy_scale: must be finite, found nan"]),
        ({"lr_actor": math.inf}, ["lr_actor: must be finite, found inf"]),
        ({"gamma": "high"}, ["gamma: expected a number, found text 'high'"]),
        ({"gamma": True}, ["gamma: expected a number, found a truth value True"]),
        ({"gamma": None}, ["gamma: expected a number, found nothing"]),
        ({"gamma": [0.9]}, ["gamma: expected a number, found a list [0.9]"]),
        (
            {"lr_actor": "3e-4"},
            ["lr_actor: expected a number", "'3e-4'; remove the quotes, and write 3.0e-4 for 3e-4"],
        ),
        ({"learn_alpha": 1}, ["learn_alpha: expected true or false, found an integer 1"]),
        ({"learn_alpha": "yes"}, ["learn_alpha: expected true or false, found text 'yes'"]),
        ({"hidden": 256}, ["hidden: expected a list, found an integer 256; write [256]"]),
        ({"hidden": [256, 2.5]}, ["hidden[1]: expected an integer, found a number 2.5"]),
        ({"hidden": [256, True]}, ["hidden[1]: expected an integer, found a truth value"]),
        ({"hidden": [256, 0]}, ["hidden: must be at least 1, found 0"]),
        ([1], ["config: expected a mapping, found a list [1]"]),
        (None, ["config: expected a mapping, found nothing"]),
    ],
)
def test_a_wrong_value_names_key_value_and_fix(data: Any, parts: list[str]) -> None:
    message = error(parse, SacConfig, data)
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"steps": 1e6}, ["steps: expected an integer, found a number 1000000.0; write 1000000"]),
        ({"steps": "1e3"}, ["found text '1e3'; remove the quotes, and write 1000: YAML reads"]),
        ({"steps": False}, ["steps: expected an integer, found a truth value False"]),
        ({"steps": 0}, ["steps: must be at least 1, found 0"]),
        ({"keep": "first"}, ["keep: expected one of last, best, found text 'first'"]),
    ],
)
def test_integers_and_choices(data: Any, parts: list[str]) -> None:
    message = error(parse, TrainConfig, data)
    assert [part for part in parts if part not in message] == []


def test_what_is_right_is_taken_as_it_is() -> None:
    sac = parse(SacConfig, {"gamma": 1, "hidden": [8, 4], "learn_alpha": False})
    assert sac == SacConfig(gamma=1.0, hidden=(8, 4), learn_alpha=False)
    assert isinstance(sac.gamma, float)
    assert parse(Override, {"normalise_obs": None}).normalise_obs is None
    assert parse(MethodConfig, {"rate": 3}).rate == 3


def test_a_missing_key_is_named() -> None:
    assert error(parse, CellConfig, {"env": "e"}) == "CellConfig: key 'method' is missing; add it"


def test_paths_name_the_whole_way_to_a_key() -> None:
    assert error(load, {"train": {"stps": 1}}) == "train.stps: unknown key; did you mean steps?"
    entry = {"methods": {"ngt": {"envs": {"Ant-v4": {"sac": {"gama": 1}}}}}}
    assert error(load, entry).startswith("methods.ngt.envs.Ant-v4.sac.gama: unknown key")
    entry = {"envs": {"Ant-v4": {"expert": {"train": {"steps": "many"}}}}}
    assert error(load, entry).startswith("envs.Ant-v4.expert.train.steps: expected an integer")


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"methods": {"ngt": {"params": {"lr": "3e-4"}}}}, ["methods.ngt.params.lr", "3.0e-4"]),
        ({"methods": {"ngt": {"params": {"sigma": 1}}}}, ["params.sigma", "did you mean sigma"]),
        ({"methods": {"ngt": {"params": {"pairing": "hubr"}}}}, ["pairing", "huber, mse_softmax"]),
        ({"methods": {"ngt": {"params": {"m": 0}}}}, ["params.m: must be at least 1, found 0"]),
        ({"methods": {"ngt": {"envs": {"Humanod-v4": {}}}}}, ["methods.ngt.envs", "Humanoid-v4"]),
        ({"methods": {"x": {}}}, ["methods.x.model: missing", "`like`"]),
        ({"methods": {"x": {"like": "ngtt"}}}, ["methods.x.like", "'ngtt'", "did you mean ngt"]),
        ({"methods": {"x": {"model": "no.such:X"}}}, ["methods.x", "package.module:Class"]),
        ({"methods": {"x": {"model": "json"}}}, ["methods.x: 'json'", "package.module:Class"]),
        ({"methods": {"x": {"model": ".a:B"}}}, ["methods.x: '.a:B'", "package.module:Class"]),
        (
            {"methods": {"x": {"model": "json:JSONDecoder"}}},
            ["is not a subclass of ngt.reward.RewardModel"],
        ),
        ({"envs": {"Foo": {}}}, ["envs: env 'Foo' is unknown"]),
        (figure(envs=["Pusher-v4"]), ["figures.f.envs", "use Pusher-v5"]),
        (figure(methods=["nbt"]), ["f.methods: 'nbt'", "did you mean ngt"]),
        (
            {"figures": {"main_figur": {"demos": [1]}}},
            ["main_figur: no scale has it, so it must name `methods` and `envs`; did you mean"],
        ),
        ({"figures": {"main_figure": {"methods": []}}}, ["main_figure.methods: empty; name at"]),
        *((figure(**{axis: []}), [f"figures.f.{axis}: empty; name at least one"]) for axis in AXES),
        *(
            (figure(**{axis: [value, value]}), [f"figures.f.{axis}: {value} is listed twice"])
            for axis, value in AXES.items()
        ),
        (
            figure(demos=[1, 17]),
            ["figures.f.demos: 17 requested", "Ant-v4 is recorded for 16", "raise expert.episodes"],
        ),
        (
            {**figure(), "envs": {"Ant-v4": {"expert": {"episodes": 3}}}},
            ["figures.f.demos: 4 requested", "Ant-v4 is recorded for 3", "raise expert.episodes"],
        ),
        *(
            (
                {"methods": {name: {"like": "ngt"}}},
                [f"methods.{name}: {name!r} cannot name a folder"],
            )
            for name in ("", "a/b", "..", ".a", "-a", "_a", "a b", "é", "a{b}", "a" * 101)
        ),
        (figure(modes=["state"]), ["figures.f.modes[0]", "state-only"]),
        ({"scale": "papr"}, ["scale: 'papr' is not known; did you mean paper?"]),
        ({"scale": "base"}, ["scale: 'base' is not known"]),
        ({"scale": 3}, ["scale: 3 is not known; known: lite"]),
        ({"sac": 5}, ["sac: expected a mapping, found an integer 5"]),
        ({"expert": {"sac": {"gama": 1}}}, ["expert.sac.gama: unknown key"]),
    ],
)
def test_a_whole_config_is_checked(data: dict[str, Any], parts: list[str]) -> None:
    message = error(load, data)
    assert [part for part in parts if part not in message] == []


def test_a_setting_of_a_model_must_have_a_type_of_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("odd_models")
    config = dataclasses.make_dataclass("OddConfig", [("odd", set[int], frozenset())])
    module.Odd = type("Odd", (RewardModel,), {"Config": config})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "odd_models", module)
    assert error(load, {"methods": {"x": {"model": "odd_models:Odd"}}}).startswith(
        "methods.x: 'odd_models:Odd': Config.odd: a setting can't have the type set[int]; use bool"
    )


def test_what_the_checks_let_through(tmp_path: Path) -> None:
    mine = tmp_path / "my.npz"
    mine.write_bytes(b"1")
    names = ["0a", "A.b_c+d-e"]
    data = {
        **figure(demos=[4, 17], methods=["ngt", *names]),
        "envs": {"Ant-v4": {"demos": str(mine), "expert": {"episodes": 1}}},
        "methods": {name: {"like": "ngt"} for name in names},
    }
    assert load(data).figures["f"].methods == ("ngt", *names)
    load({**figure(demos=[17]), "expert": {"episodes": 17}})


@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_a_cycle_of_variants_is_an_error(names: list[str]) -> None:
    ring = dict(zip(names, [*names[1:], names[0]], strict=True))
    message = error(load, {"methods": {name: {"like": other} for name, other in ring.items()}})
    assert "like: a cycle, " in message
    assert " like ".join([*names, names[0]]) in message


# ---------------------------------------------------------------- merging and files


def test_merge() -> None:
    first = {"a": 1, "b": {"x": 1, "y": {"p": 1}}, "c": [1, 2], "d": {"k": 1}}
    second = {"b": {"y": {"q": 2}}, "c": [3], "d": 5}
    third = {"d": {"m": 1}, "a": None}
    kept = json.dumps([first, second, third])
    assert merge(first, second) == {"a": 1, "b": {"x": 1, "y": {"p": 1, "q": 2}}, "c": [3], "d": 5}
    assert merge(first, second, third)["d"] == {"m": 1}
    assert merge(first, second, third)["a"] is None
    assert merge() == {}
    assert json.dumps([first, second, third]) == kept, "merging must not change the layers"


def test_read_yaml(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"

    def said(text: str | bytes) -> str:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return error(read_yaml, file)

    assert said("a: [1").startswith(f"config file {file}: not valid YAML: ")
    assert said("a: 1\na: {b: c: d}").startswith(f"config file {file}: not valid YAML: ")
    assert said(b"\xff\xfe\x00").startswith(f"config file {file}: not valid YAML: ")
    assert said("") == f"config file {file}: expected a mapping, found nothing"
    assert said("- 1") == f"config file {file}: expected a mapping, found a list [1]"
    assert error(read_yaml, tmp_path) == f"config file {tmp_path}: can't be read: Is a directory"
    twice = (
        f"config file {file}: not valid YAML: key {{}} appears twice in the mapping at line {{}}"
    )
    assert said("# x\nb: 1\nmethods: 2\nmethods: 3\n") == twice.format("'methods'", 2)
    assert said("a: 1\nb:\n  c: 1\n  c: 1\n") == twice.format("'c'", 3)
    assert said("a: [{1: 2, 1: 2}]") == twice.format("1", 1)
    missing = tmp_path / "none.yaml"
    assert error(read_yaml, missing).startswith(f"config file {missing}: can't be read: No such")
    file.write_text("a: {b: 3.0e-4}\n")
    assert read_yaml(file) == {"a": {"b": 3e-4}}
    broken = tmp_path / "c.json"
    broken.write_text("{")
    assert error(read_yaml, broken).startswith(f"config file {broken}: not valid JSON: ")


@pytest.mark.parametrize("scale", SCALES)
def test_shipped_scales_load_and_survive_their_own_json(scale: str, tmp_path: Path) -> None:
    config = load({"scale": scale})
    assert config.scale == scale
    for env in config.figures["main_figure"].envs:
        for method in config.methods:
            cell = resolve(config, env, method, "state-action", 20)
            assert cell.env == env and cell.method == method and cell.model
            assert len(cell.demos_source) == 16
        assert resolve_expert(config, env).model == "ngt.reward:EnvReward"
    file = tmp_path / "config.json"  # the format that the workflow's jobs read
    file.write_text(to_json(config))
    assert load(read_yaml(file)) == config


def test_small_numbers_survive_the_workflows_json(tmp_path: Path) -> None:
    """Check numbers that JSON writes as 1e-05, which YAML does not read as a number."""
    config = load({"sac": {"lr_alpha": 1.0e-5}, "methods": {"ngt": {"params": {"lr": 1e-7}}}})
    file = tmp_path / "config.json"
    file.write_text(to_json(config))
    again = load(read_yaml(file))
    assert again == config
    assert again.sac.lr_alpha == 1e-5
    assert again.methods["ngt"].params["lr"] == 1e-7


def test_settings_are_found_from_any_folder(tmp_path: Path, monkeypatch: Any) -> None:
    here = load({"scale": "lite"})
    monkeypatch.chdir(tmp_path)
    assert load({"scale": "lite"}) == here


# ---------------------------------------------------------------- layers


def layered() -> Config:
    """Return a config whose layers set some of the same keys, to show which layer wins."""
    return load(
        {
            "scale": "test",
            "sac": {"gamma": 0.1, "tau": 0.1, "alpha": 0.1, "lr_actor": 0.1, "lr_critic": 0.1,
                    "lr_alpha": 0.1},
            "envs": {"Pendulum-v1": {
                "sac": {"tau": 0.2, "alpha": 0.2, "lr_actor": 0.2, "lr_critic": 0.2,
                        "lr_alpha": 0.2},
                "terminate_when_unhealthy": False, "normalise_obs": True,
            }},
            "methods": {
                "ngt": {
                    "sac": {"alpha": 0.3, "lr_actor": 0.3, "lr_critic": 0.3, "lr_alpha": 0.3},
                    "train": {"batch": 3},
                    "normalise_obs": False,
                    "params": {"m": 3, "bins": 3, "lr": 0.3, "delta": 0.3},
                    "envs": {"Pendulum-v1": {
                        "sac": {"lr_actor": 0.4, "lr_critic": 0.4, "lr_alpha": 0.4},
                        "params": {"bins": 4, "lr": 0.4, "delta": 0.4},
                    }},
                },
                "child": {
                    "like": "ngt",
                    "sac": {"lr_critic": 0.5, "lr_alpha": 0.5},
                    "params": {"lr": 0.5, "delta": 0.5},
                    "envs": {"Pendulum-v1": {
                        "sac": {"lr_alpha": 0.6}, "params": {"delta": 0.6},
                    }},
                },
                "grandchild": {"like": "child", "rate": 7, "normalise_obs": True},
            },
        }
    )  # fmt: skip


def test_later_layers_win() -> None:
    """Check that later layers win over earlier ones.

    The order is: shared, env, method, (method, env), variant, (variant, env).
    """
    config = layered()
    cell = resolve(config, "Pendulum-v1", "child", "state-action", 20)
    sac = cell.sac
    assert (sac.gamma, sac.tau, sac.alpha) == (0.1, 0.2, 0.3)
    assert (sac.lr_actor, sac.lr_critic, sac.lr_alpha) == (0.4, 0.5, 0.6)
    assert [cell.params[k] for k in ("m", "bins", "lr", "delta")] == [3, 4, 0.5, 0.6]
    assert cell.train.batch == 3
    assert (cell.terminate_when_unhealthy, cell.normalise_obs) == (False, False)
    assert sac.hidden == (16, 16), "`hidden` must come from the scale's file"
    assert cell.model == "ngt.potential:Potential"


def test_layers_of_another_env_do_not_count() -> None:
    cell = resolve(layered(), "Reacher-v5", "child", "state-action", 20)
    sac = cell.sac
    assert (sac.gamma, sac.tau, sac.alpha) == (0.1, 0.1, 0.3)
    assert (sac.lr_actor, sac.lr_critic, sac.lr_alpha) == (0.3, 0.5, 0.5)
    assert [cell.params[k] for k in ("m", "bins", "lr", "delta")] == [3, 3, 0.5, 0.5]
    assert (cell.terminate_when_unhealthy, cell.normalise_obs) == (True, False)


def test_a_variant_of_a_variant_inherits_all() -> None:
    config = layered()
    child = resolve(config, "Pendulum-v1", "child", "state-action", 20)
    grandchild = resolve(config, "Pendulum-v1", "grandchild", "state-action", 20)
    assert grandchild == dataclasses.replace(child, method="grandchild", normalise_obs=True)
    assert method_rate(config, "grandchild") == 7
    assert method_rate(config, "child") is None
    assert method_rate(config, "bc-full") == 1
    own = load({"methods": {"x": {"like": "bc-full", "rate": 5}, "y": {"like": "x"}}})
    assert [method_rate(own, name) for name in ("x", "y")] == [5, 5]
    assert [method_label(config, m) for m in ("ngt", "child", "bc-full")] == [
        "NGT",
        "child",
        "BC(1)",
    ]


def test_a_variant_may_name_another_model() -> None:
    data = {"methods": {"x": {"like": "bc-full", "model": "ngt.reward:Constant"}}}
    cell = resolve(load(data), "Pendulum-v1", "x", "state-action", 20)
    assert (cell.model, cell.params) == ("ngt.reward:Constant", {})
    data = {"methods": {"x": {"like": "ngt", "model": "ngt.reward:Constant"}}}
    message = error(load, data)
    assert message == "methods.x.params.hidden: unknown key; known: none", (
        "the other model's params must be inherited"
    )


@pytest.mark.parametrize("scale", ["paper", "lite"])
def test_hl_gauss_on_humanoid_and_huber_elsewhere(scale: str) -> None:
    config = load({"scale": scale})
    pairing = {
        env: resolve(config, env, "ngt", "state-action", 20).params["pairing"] for env in PAPER_ENVS
    }
    assert pairing == {env: "hl_gauss" if env == "Humanoid-v4" else "huber" for env in PAPER_ENVS}


def test_the_expert_has_the_agents_settings_but_for_its_differences() -> None:
    config = layered()
    env = resolve_expert(config, "Pendulum-v1")
    assert (env.sac.gamma, env.sac.tau, env.sac.alpha) == (0.1, 0.2, 0.2), (
        "no setting must come from a method"
    )
    assert (env.method, env.params, env.normalise_obs) == ("expert", {}, True)
    data = {
        "scale": "test",
        "expert": {"sac": {"gamma": 0.5}, "train": {"steps": 8, "keep": "best"}, "seed": 7},
        "envs": {"Pendulum-v1": {"expert": {"train": {"steps": 12}, "episodes": 2}}},
    }
    config = load(data)
    agent = resolve(config, "Pendulum-v1", "ngt", "state-action", 20)
    expert = resolve_expert(config, "Pendulum-v1")
    assert expert.sac == dataclasses.replace(agent.sac, gamma=0.5)
    assert expert.train == dataclasses.replace(agent.train, steps=12, keep="best")
    own = expert_config(config, "Pendulum-v1")
    assert (own.seed, own.episodes) == (7, 2)
    assert expert_config(config, "Reacher-v5").episodes == 3, "episodes must come from the scale"
    assert resolve_expert(config, "Reacher-v5").train.steps == 8


# ---------------------------------------------------------------- hashes


def other(value: Any) -> Any:
    """Return a different valid value of the same type."""
    if value is None:
        return 1.0
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.5 if value else 1.0
    if isinstance(value, tuple):
        return (*value, 8)
    return {
        "last": "best",
        "huber": "hl_gauss",
        "orthogonal": "kaiming",
        "tanh": "rescaled",
        "expert": "agent",
        "percentile": "none",
        "relu": "silu",
        "exp": "softplus",
        "alpha": "log_alpha",
        "env": "tanh",
    }[value]


def hash_of(data: dict[str, Any], folder: Path = CONFIG_DIR, **cell: Any) -> str:
    asked = {"env": "Ant-v4", "method": "ngt", "mode": "state-action", "rate": 20, **cell}
    return config_hash(resolve(load(merge({"scale": "paper"}, data), folder), **asked))


def test_hash_changes_with_everything_that_matters(tmp_path: Path) -> None:
    mine = tmp_path / "my.npz"
    mine.write_bytes(b"1")
    changes: list[dict[str, Any]] = []
    for section, cls in (("sac", SacConfig), ("train", TrainConfig)):
        values = dataclasses.asdict(cls())
        changes += [{section: {k: 1 if k == "critics" else other(v)}} for k, v in values.items()]
    changes += [
        {"methods": {"ngt": {"params": {k: other(v)}}}}
        for k, v in dataclasses.asdict(PotentialConfig()).items()
    ]
    changes += [
        {"terminate_when_unhealthy": False},
        {"normalise_obs": True},
        {"expert": {"sac": {"gamma": 0.5}}},  # this changes the demonstrations
        {"envs": {"Ant-v4": {"demos": str(mine)}}},
    ]
    # Two small files, since loading those of the scale takes longer than all the rest.
    ngt = read_yaml(CONFIG_DIR / "base.yaml")["methods"]["ngt"]
    (tmp_path / "base.yaml").write_text(yaml.safe_dump({"methods": {"ngt": ngt}}))
    (tmp_path / "paper.yaml").write_text("scale: paper\n")
    other_cells = ({"rate": 5}, {"mode": "state-only"}, {"env": "Hopper-v4"})
    hashes = [hash_of(change, tmp_path) for change in ({}, *changes)]
    hashes += [hash_of({}, tmp_path, **cell) for cell in other_cells]
    assert len(set(hashes)) == len(hashes) == 20 + 10 + 23 + 4 + 4


def test_ones_own_demonstrations_are_hashed_by_content(tmp_path: Path) -> None:
    def source(name: str) -> str:
        config = load({"envs": {"Ant-v4": {"demos": str(tmp_path / name)}}})
        return resolve(config, "Ant-v4", "ngt", "state-action", 20).demos_source

    for name, content in {"a": b"1", "b": b"1", "c": b"2"}.items():
        (tmp_path / name).write_bytes(content)
    assert source("a") == source("b") != source("c")
    assert source("a") == file_hash(tmp_path / "a", "x") and len(source("a")) == 16
    (tmp_path / "a").write_bytes(b"3")
    assert source("a") != source("b")
    missing = f"envs.Ant-v4.demos: {tmp_path / 'none'} can't be read: No such file or directory"
    assert error(source, "none") == missing


def clone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the shipped experts, use the copy in place of data/, and return its folder."""
    shutil.copytree(shipped.DATA, folder / "data")
    monkeypatch.setattr(shipped, "DATA", folder / "data")
    return folder / "data"


def test_shipped_demonstrations_are_named_alike_in_every_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(**more: Any) -> str:
        return hash_of({"demos": "shipped", **more}, env="HalfCheetah-v4")

    here, file = named(), shipped.DATA / "HalfCheetah-v4" / shipped.DEMOS
    assert here != hash_of({}, env="HalfCheetah-v4"), (
        "the hash must differ from that of `demos: trained`"
    )
    assert here == named(expert={"sac": {"gamma": 0.5}}), "the expert's settings must not matter"
    own = {"envs": {"HalfCheetah-v4": {"demos": str(file)}}}
    assert hash_of(own, env="HalfCheetah-v4") == here == named(**own), (
        "both settings must name the same file"
    )
    config = load({"scale": "paper", "demos": "shipped"})
    assert demos_source(config, "HalfCheetah-v4") == file_hash(file, "x")
    assert demos_file(config, "HalfCheetah-v4") == str(file)
    assert demos_file(load({"scale": "paper"}), "HalfCheetah-v4") == ""
    there = clone(tmp_path, monkeypatch)
    assert named() == here
    expert = there / "HalfCheetah-v4" / shipped.EXPERT
    changed = json.loads(expert.read_text())
    changed["files"][shipped.DEMOS] = "0" * 64
    expert.write_text(json.dumps(changed))
    assert f"{there / 'HalfCheetah-v4' / shipped.DEMOS}: checksum" in error(named)


def test_an_env_that_does_not_ship_is_an_error_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load({"scale": "paper", "demos": "shipped"})
    monkeypatch.setattr(shipped, "DATA", tmp_path)
    said = error(resolve, config, "Ant-v4", "ngt", "state-action", 20)
    assert "no expert of Ant-v4 ships" in said and "`demos: trained`" in said
    assert "envs.Ant-v4.demos" in said
    (tmp_path / "mine.npz").write_bytes(b"1")
    own = {"envs": {"Ant-v4": {"demos": str(tmp_path / "mine.npz")}}}
    assert hash_of({"demos": "shipped", **own}) == hash_of(own)
    mine = load({"scale": "paper", "demos": "shipped", **own})
    assert demos_file(mine, "Ant-v4") == str(tmp_path / "mine.npz")


def test_more_demonstrations_than_ship_matter_only_to_their_runs() -> None:
    """Check that the four shipped episodes of one env do not stop the runs of other envs."""
    config = load({"scale": "paper", "demos": "shipped"})
    assert max(config.figures["main_figure"].demos) == 11
    for env, most in (("HalfCheetah-v4", 16), ("Humanoid-v4", 4)):
        data = demos.load(Path(demos_file(config, env)), env)
        demos.subsample(data, min(most, 11), 20, 0, "it")
        with pytest.raises(UserError, match=f"requested {most + 1}, found {most} episodes"):
            demos.subsample(data, most + 1, 20, 0, "it")


def test_an_expert_ships_if_its_settings_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an expert still ships after settings were added, if these have their defaults.

    The expert's hash covers only the settings that existed when it was trained.
    """
    lite, data = load({"scale": "lite"}), clone(tmp_path, monkeypatch)
    expert = json.loads((data / "HalfCheetah-v4" / shipped.EXPERT).read_text())
    assert "layer_norm" not in expert["config"]["sac"], "the expert must be older than this setting"
    assert expert_ships(lite, "HalfCheetah-v4")
    assert not expert_ships(load({"scale": "paper"}), "HalfCheetah-v4")
    assert not expert_ships(lite, "Reacher-v5"), "no expert of this env ships"
    other = {"scale": "lite", "expert": {"sac": {"layer_norm": True}}}
    assert not expert_ships(load(other), "HalfCheetah-v4")


def test_budgets_of_the_experts() -> None:
    lite = load({"scale": "lite"})
    steps = {
        env: resolve_expert(lite, env).train.steps
        for env in ("HalfCheetah-v4", "Hopper-v4", "Walker2d-v4", "Pusher-v5", "finger-spin")
    }
    assert list(steps.values()) == [700_000, 1_400_000, 2_000_000, 500_000, 500_000]


@pytest.mark.parametrize("scale", SCALES)
def test_the_best_evaluation_is_what_an_expert_is(scale: str) -> None:
    config = load({"scale": scale})
    assert {resolve_expert(config, env).train.keep for env in TASKS} == {"best"}


@pytest.mark.parametrize(
    "change",
    [
        {"methods": {"bc": {"label": "other"}, "new": {"like": "ngt"}}},
        {"methods": {"ngt": {"label": "Ours", "envs": {"Hopper-v4": {"params": {"m": 8}}}}}},
        {"envs": {"Hopper-v4": {"sac": {"gamma": 0.5}}}},
        {"pack": 3},
        {"window": 3},
        {"expert": {"seed": 3, "episodes": 20}},
        {"figures": {"main_figure": {"seeds": [0]}}},
    ],
)
def test_hash_stays_with_what_does_not_matter(change: dict[str, Any]) -> None:
    assert hash_of(change) == hash_of({})


def test_hash_is_of_the_content() -> None:
    cell = resolve(load({"scale": "test"}), "Pendulum-v1", "ngt", "state-action", 20)
    again = parse(CellConfig, json.loads(to_json(cell)))
    assert again != cell, "params must be lists in JSON and tuples in a CellConfig"
    assert config_hash(again) == config_hash(cell)
    assert len(config_hash(cell)) == 16 and int(config_hash(cell), 16) >= 0


# ---------------------------------------------------------------- schema


def test_a_model_whose_file_has_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "model_of_a_test.py").write_text("class Mine(\n")
    message = error(load, {"methods": {"x": {"model": "model_of_a_test:Mine"}}})
    assert "'(' was never closed" in message and message.endswith("; fix it")
    assert "\n" not in message


def test_schema_file_is_what_the_command_prints(capsys: Any) -> None:
    main(["config", "--schema"])
    assert SCHEMA.read_text() == capsys.readouterr().out, (
        "to update it: python -m ngt config --schema > workflow/config/schema.json"
    )


@pytest.fixture(scope="module")
def validator() -> Any:
    data = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(data)
    return jsonschema.Draft202012Validator(data)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda f: f.stem)
def test_shipped_files_fit_the_schema(file: Path, validator: Any) -> None:
    text = file.read_text()
    validator.validate(yaml.safe_load(text))
    named = re.match(r"# yaml-language-server: \$schema=(.+)\n", text)
    assert named and file.parent / named[1] == SCHEMA, "editors need this line to find the schema"


def test_a_whole_config_fits_the_schema(validator: Any) -> None:
    validator.validate(json.loads(to_json(layered())))


@pytest.mark.parametrize(
    "data",
    [
        {"sac": {"gama": 0.9}},
        {"trian": {}},
        {"methods": {"ngt": {"modl": "x"}}},
        {"methods": {"ngt": {"envs": {"Ant-v4": {"label": "x"}}}}},
        {"envs": {"Ant-v4": {"demo": "x"}}},
        {"figures": {"f": {"seed": [1]}}},
        {"sac": {"gamma": 1.5}},
        {"sac": {"gamma": "0.9"}},
        {"sac": {"hidden": [0]}},
        {"train": {"steps": True}},
        {"train": {"steps": 0}},
        {"train": {"keep": "first"}},
        {"figures": {"f": {"modes": ["state"]}}},
        {"methods": {"ngt": {"rate": 0}}},
    ],
)
def test_schema_refuses_what_the_parser_refuses(data: dict[str, Any], validator: Any) -> None:
    assert not validator.is_valid(data)
    error(parse, Config, data)


def test_schema_states_defaults_and_meanings() -> None:
    sac = schema(Config)["properties"]["sac"]["properties"]
    assert sac["gamma"] == {
        "type": "number",
        "description": "discount factor",
        "default": 0.99,
        "minimum": 0,
        "maximum": 1,
    }
    assert sac["hidden"]["default"] == [256, 256]
    assert sac["hidden"]["items"] == {"type": "integer", "minimum": 1}


def test_a_config_file_nested_too_deep_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text("a: " + "[" * 3000)
    with pytest.raises(UserError, match=r"deep\.yaml: not valid YAML"):
        read_yaml(file)


def test_a_file_of_the_checkout_is_found_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a relative path is sought in the working folder first, then in the checkout."""
    config, name = load({"scale": "test"}), "tests/data/Pendulum-v1.npz"
    monkeypatch.chdir(tmp_path)
    assert own_file(config, "Pendulum-v1") == str(CONFIG_DIR.parents[1] / name)
    mine = tmp_path / name
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    assert own_file(config, "Pendulum-v1") == name
    monkeypatch.setenv("HOME", str(tmp_path / "tests"))
    home = load({"scale": "test", "envs": {"Pendulum-v1": {"demos": "~/data/Pendulum-v1.npz"}}})
    assert own_file(home, "Pendulum-v1") == str(mine)
    assert load({"scale": "test", "envs": {"Pendulum-v1": {"demos": ""}}}), (
        "the expert's file must be used instead"
    )


def test_null_for_a_figure_that_no_scale_has_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"figures.main_figur: no scale has it; did you mean main_f"
    ):
        load({"figures": {"main_figur": None}})
    assert "humanoid_figure" not in load({"figures": {"humanoid_figure": None}}).figures
