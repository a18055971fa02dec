"""Tests of `ngt config`: the settings that it prints, and which option wins."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import yaml

from ngt.settings.load import load, load_file, to_file
from ngt.settings.resolve import config_hash, resolve, to_json

ROOT = Path(__file__).resolve().parents[3]
KEY = "Pendulum-v1/ngt/state-action-demos{}-rate20/seed{}"


def test_config_prints_what_is_loaded(ngt: Any) -> None:
    said = json.loads("\n".join(ngt("config", "--scale", "lite")))
    config = load({"scale": "lite"})
    assert said == json.loads(to_json(config))
    said = json.loads("\n".join(ngt("config", KEY.format(4, 0), "--scale", "lite")))
    cell = resolve(config, "Pendulum-v1", "ngt", "state-action", 20)
    assert said == json.loads(json.dumps(dataclasses.asdict(cell))), (
        "settings that hashes omit must be printed too"
    )
    assert json.loads("\n".join(ngt("config")))["scale"] == "quick", (
        "quick must be the default scale"
    )


def test_a_set_wins_over_a_file_and_a_scale_over_both(ngt: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("scale: lite\nsac: {gamma: 0.5, tau: 0.5}\ntrain: {batch: 5}\n")
    common = ["config", "--config", str(file)]

    def told(*more: str) -> dict[str, Any]:
        return json.loads("\n".join(ngt(*common, *more)))

    base = told()
    assert (base["scale"], base["sac"]["gamma"], base["train"]["batch"]) == ("lite", 0.5, 5)
    assert base["train"]["steps"] == 400_000, "the steps must come from the scale"
    sets = ["--set", "sac.gamma=0.25", "--set", "sac.hidden=[8, 8]", "--set", "scale=test"]
    changed = told(*sets, "--set", "sac.gamma=0.125")
    assert changed["sac"]["gamma"] == 0.125, "the last --set must win"
    assert (changed["sac"]["tau"], changed["sac"]["hidden"]) == (0.5, [8, 8])
    assert changed["scale"] == "test"
    assert told(*sets, "--scale", "paper")["scale"] == "paper"
    config = told("--set", "envs.Ant-v4.terminate_when_unhealthy=false")
    assert config["envs"]["Ant-v4"]["terminate_when_unhealthy"] is False


def test_the_shipped_settings_are_found_from_any_folder(ngt: Any, tmp_path: Path) -> None:
    shipped = yaml.safe_load((ROOT / "workflow/config/quick.yaml").read_text())
    said = json.loads("\n".join(ngt("config")))
    assert Path.cwd() == tmp_path
    assert said["train"]["steps"] == shipped["train"]["steps"]


def test_settings_in_a_file_named_by_their_hash(ngt: Any, tmp_path: Path, refused: Any) -> None:
    config = load({"scale": "test", "figures": {"main_figure": None}, "window": 3})
    file = tmp_path / f"{config_hash(config)}.json"
    file.write_text(to_file(config))
    assert load_file(file) == config, "no other settings must be merged in"
    assert json.loads("\n".join(ngt("config", "--planned", str(file))))["window"] == 3
    assert "--planned" in refused("config", "--planned", str(file), "--scale", "test")
    file.write_text(file.read_text().replace('"window": 3', '"window": 4'))
    assert f"settings {file}: the content has hash" in refused("config", "--planned", str(file))
    file.write_text(file.read_text()[:500])
    assert "not valid JSON" in refused("config", "--planned", str(file))
