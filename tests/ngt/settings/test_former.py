"""Tests of settings that were added later: older records keep their meaning and hashes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ngt.experience import shipped
from ngt.files import read_json
from ngt.potential import PotentialConfig
from ngt.runs.keys import RunKey, resolve_key
from ngt.runs.published import difference, settings_hash
from ngt.settings.config import CellConfig, SacConfig
from ngt.settings.former import FORMER, former, with_former, without_former
from ngt.settings.load import load, read_yaml
from ngt.settings.resolve import (
    config_hash,
    demos_source,
    expert_ships,
    load_model,
    recorded,
    resolve,
    resolve_expert,
)

ROOT = Path(__file__).resolve().parents[3]
REMEDY = "a setting was added or changed; add its former value to ngt/settings/former.py"
EXPERTS = sorted(p.name for p in shipped.DATA.iterdir() if p.is_dir())
MANIFESTS = {
    name: read_json(ROOT / f"results/published/{name}.json") or {}
    for name in ("quick", "halfcheetah")
}
FORMERLY = {"lr_alpha": 3e-4, "alpha_loss": "log_alpha", "entropy_units": "tanh"}


@pytest.mark.parametrize("env", EXPERTS)
def test_hashes_of_experts_stay(env: str) -> None:
    """Check the hashes of the expert's record, of its settings and of its demonstrations."""
    expert, lite = shipped.read(env), load({"scale": "lite"})
    assert settings_hash(expert["config"]) == expert["config_hash"], REMEDY
    assert expert_ships(lite, env), REMEDY
    # The record of HalfCheetah-v4 is older than the table FORMER. Its hash covers fewer settings.
    known = {"HalfCheetah-v4": "655a7cf9641c2924"}.get(env, expert["config_hash"])
    assert config_hash(resolve_expert(lite, env)) == known, REMEDY
    shipping = load({"scale": "lite", "demos": "shipped"})
    assert demos_source(shipping, env) == expert["files"][shipped.DEMOS][:16]


@pytest.mark.parametrize("name", MANIFESTS)
def test_hashes_of_published_runs_stay(name: str) -> None:
    manifest = MANIFESTS[name]
    for run, own in manifest["runs"].items():
        settings = manifest["cells"][own["cell"]]
        assert settings_hash(settings) == own["config_hash"]
        if "alpha_form" in settings["sac"]:  # records without it are older than FORMER
            assert config_hash(recorded(settings, run)) == own["config_hash"], REMEDY


def test_the_halfcheetah_runs_have_the_settings_of_their_file() -> None:
    config = load(read_yaml(ROOT / "docs/halfcheetah.yaml"))
    for run, own in MANIFESTS["halfcheetah"]["runs"].items():
        if not run.endswith("/expert"):
            cell = resolve_key(config, RunKey.parse(run))
            assert config_hash(cell) == own["config_hash"], REMEDY


def test_a_record_without_a_setting_means_its_former_value() -> None:
    (cell,) = [c for c in MANIFESTS["halfcheetah"]["cells"] if c["method"] == "ngt"]
    sac, params = cell["sac"], cell["params"]
    assert not {"alpha_loss", "entropy_units"} & sac.keys() and "power_iterations" not in params
    made = recorded(cell, "cell")
    assert made.sac == SacConfig(**FORMERLY)  # type: ignore[arg-type]
    assert made.params["power_iterations"] == 1
    assert PotentialConfig().power_iterations == 3
    now = dataclasses.replace(made, sac=SacConfig(lr_alpha=3e-4))
    assert difference(made, now) == (
        'sac.alpha_loss is "log_alpha" in the records and "alpha" in the config'
    )


def test_a_record_of_a_softplus_temperature_means_its_loss_was_linear() -> None:
    assert with_former(SacConfig, {"alpha_form": "softplus"})["alpha_loss"] == "alpha"
    assert with_former(SacConfig, {"alpha_form": "exp"})["alpha_loss"] == "log_alpha"
    assert with_former(SacConfig, {"alpha_loss": "alpha"})["alpha_loss"] == "alpha"
    assert with_former(SacConfig, 3) == 3, "the error must be left to the parser"


@pytest.mark.parametrize("method", ["ngt", "red", "dac-r"])
def test_hashes_tell_former_and_new_values_apart(method: str) -> None:
    def hash_of(data: dict[str, Any]) -> str:
        config = load({"scale": "paper", "expert": {"sac": FORMERLY}, **data})
        return config_hash(resolve(config, "Hopper-v4", method, "state-action", 20))

    changes: list[dict[str, Any]] = [{}, *({"sac": {k: v}} for k, v in FORMERLY.items())]
    if method != "dac-r":
        changes.append({"methods": {"ngt": {"params": {"power_iterations": 1}}}})
    assert len({hash_of(c) for c in changes}) == len(changes)


def test_what_is_left_out_is_read_again() -> None:
    for cls in (SacConfig, PotentialConfig):
        for new in ({}, former(cls, {})):
            data = {**dataclasses.asdict(cls()), **new}
            kept = without_former(cls, data)
            assert with_former(cls, kept) == data
            left = {n for n, value in former(cls, data).items() if data[n] == value}
            assert data.keys() - kept.keys() == left and left >= new.keys()


def test_the_table_names_settings_that_exist() -> None:
    for path, values in FORMER.items():
        module, name = path.split(":")
        cls = getattr(__import__(module, fromlist=[name]), name)
        assert values.keys() <= {f.name for f in dataclasses.fields(cls)}
    assert issubclass(load_model("baselines.red:Red", "x").Config, PotentialConfig)
    assert former(CellConfig, {}) == {}
