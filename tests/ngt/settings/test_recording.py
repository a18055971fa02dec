"""Tests of whether a recording is the one that the settings name."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ngt.experience import demos, shipped
from ngt.runs.folder import Folders
from ngt.runs.keys import Layout
from ngt.settings.load import load
from ngt.settings.recording import difference, other_episodes, seeds_in
from ngt.settings.resolve import config_hash, resolve_expert

ENV = "finger-spin"
FILE = shipped.DATA / ENV / shipped.DEMOS  # recorded with the default seed


def settings(**more: Any) -> dict[str, Any]:
    episodes = len(demos.load(FILE).length)
    return {"scale": "lite", "demos": "trained", "expert": {"episodes": episodes, **more}}


@pytest.mark.parametrize("env", shipped.envs())
def test_the_seeds_of_recordings_that_exist_are_those_of_today(env: str) -> None:
    found = seeds_in(shipped.DATA / env / shipped.DEMOS)
    config = load({**settings(), "expert": {"episodes": len(found)}})
    assert found and other_episodes(config, env, found) == ""


def test_source_seed_and_number_of_episodes_identify_a_recording() -> None:
    config, seeds = load(settings()), seeds_in(FILE)
    source = config_hash(resolve_expert(config, ENV))
    assert difference(config, ENV, source, seeds) == ""
    assert difference(config, ENV, "toy", seeds).startswith(
        f"field 'source': found toy, expected {source}: these settings need another expert; run "
        f"`ngt expert {ENV}` and `ngt record {ENV}`"
    )
    n = len(seeds)
    for change, found in (
        ({"seed": 5}, f"found {seeds[0]}, but expert.seed 5 gives "),
        ({"seed": 5, "episodes": n + 1}, f"found {seeds[0]}, but expert.seed 5 gives "),
        ({"episodes": n + 1}, f"found {n} episodes, but expert.episodes is {n + 1}; run `ngt rec"),
        ({"episodes": n - 1}, f"found {n} episodes, but expert.episodes is {n - 1}; run `ngt rec"),
    ):
        said = difference(load(settings(**change)), ENV, source, seeds)
        assert said.startswith(f"field 'seeds': {found}") and "\n" not in said
        own = {**settings(), "envs": {ENV: {"expert": change}}}
        assert difference(load(own), ENV, source, seeds) == said, "the env's own expert"


def test_an_unreadable_file_has_no_seeds(tmp_path: Path) -> None:
    (tmp_path / "cut.npz").write_bytes(FILE.read_bytes()[:1000])
    assert seeds_in(tmp_path / "cut.npz") == seeds_in(tmp_path / "missing.npz") == []


def test_no_run_has_the_reference_of_a_recording_to_be_replaced(tmp_path: Path) -> None:
    layout, config = Layout("lite", tmp_path), load(settings())
    file = layout.demos(ENV)

    def reference(config: dict[str, Any]) -> dict[str, Any]:
        return Folders(layout, load(config)).reference(ENV)

    own = {**settings(seed=5), "envs": {ENV: {"demos": str(file)}}}
    assert reference(settings()) == {}, "there is no recording"
    source = config_hash(resolve_expert(config, ENV))
    demos.save(file, dataclasses.replace(demos.load(FILE), source=source))
    known = {"demos": demos.load(FILE).checksum}
    assert reference(settings()) == known
    assert reference(settings(seed=5)) == reference(settings(episodes=4)) == {"demos": ""}
    assert reference(own) == known, "one's own file needs no seeds"
    assert reference({**settings(seed=5), "demos": "shipped"}) == known
    changed = {**settings(seed=5), "sac": {"gamma": 0.5}}
    assert reference(changed) == {}, "the hash of a run's settings shows another expert"
