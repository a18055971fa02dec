"""The table of environments, compared with the envs themselves."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngt.experience import envs, shipped
from ngt.experience.vector import VectorEnv
from ngt.settings.config import Config
from ngt.settings.load import load
from paper import command
from paper.tables import environments
from paper.tables.environments import bounds, kept, paper_id, row, table


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """Return the rows at scale `paper` by task id."""
    made = table(load({"scale": "paper"})).rows
    ids = [task.id for task in envs.TASKS.values()][: len(made)]
    return dict(zip(ids, map(dict, made), strict=True))


def test_the_nine_tasks_of_the_paper(rows: dict[str, dict[str, Any]]) -> None:
    assert [r["paper_id"] for r in rows.values()] == [
        "Ant-v4",
        "HalfCheetah-v4",
        "Hopper-v4",
        "Humanoid-v4",
        "Pusher-v4",
        "Walker2d-v4",
        "walker-walk",
        "cheetah-run",
        "finger-spin",
    ]


def test_what_is_said_is_what_the_envs_do(rows: dict[str, dict[str, Any]]) -> None:
    """Check the sizes of arrays, and the length of an episode that does not end early."""
    for name in ("Ant-v4", "Humanoid-v4", "Pusher-v5", "finger-spin"):
        shown, vec = rows[name], VectorEnv(name, 1, terminate_when_unhealthy=False)
        assert vec.reset([0]).shape == (1, shown["obs"])
        action, steps = np.zeros((1, shown["act"]), np.float32), 1
        while not (step := vec.step(action)).truncated[0]:
            assert not step.terminated[0]
            steps += 1
        vec.close()
        assert steps == shown["limit"]


def test_agreement_is_computed(
    rows: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = ["Ant-v4", "HalfCheetah-v4", "Humanoid-v4", "Pusher-v5", "Walker2d-v4"]
    assert [n for n, r in rows.items() if r["agrees"] == "agree"] == listed
    others = [r for n, r in rows.items() if n not in listed]
    assert {(r["printed"], r["agrees"]) for r in others} == {("silent", "silent")}
    assert rows["Ant-v4"]["code"] == "27 × 8" and rows["Hopper-v4"]["code"] == "11 × 3"
    monkeypatch.setitem(environments.PAPER_SIZES, "Pusher-v4", (24, 7))
    pusher = row(envs.TASKS["Pusher-v5"], Config(), environments.DATA)
    assert (pusher["agrees"], pusher["printed"], pusher["obs"]) == ("differs", "24 × 7", 23)


def test_bounds_and_ends(rows: dict[str, dict[str, Any]]) -> None:
    assert [rows[n]["bounds"] for n in ("Humanoid-v4", "Pusher-v5", "walker-walk")] == [
        "±0.4",
        "±2",
        "±1",
    ]
    assert bounds(-0.5, 2.0) == "[-0.5, 2]"
    assert [n for n, r in rows.items() if r["early"] == "yes"] == [
        "Ant-v4",
        "Hopper-v4",
        "Humanoid-v4",
        "Walker2d-v4",
    ]
    never = Config(terminate_when_unhealthy=False)
    assert row(envs.TASKS["Hopper-v4"], never, environments.DATA)["early"] == "no"
    assert rows["Ant-v4"]["made"] == "Ant-v4, use_contact_forces=True"


def test_a_task_is_read_from_its_env_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the table takes sizes from the env itself, never from the registry."""
    monkeypatch.setattr(envs, "_check_live", lambda *_: None)
    wrong = dataclasses.replace(envs.TASKS["Pendulum-v1"], obs=9, low=-7.0, high=7.0, time_limit=9)
    shown = row(wrong, Config(), environments.DATA)
    cells = (shown[k] for k in ("obs", "act", "bounds", "limit", "agrees", "printed", "code"))
    assert [*cells] == [3, 1, "±2", 200, "silent", "silent", None]


@pytest.mark.parametrize(("limit", "rate"), [(1000, 20), (100, 20), (50, 20), (7, 1), (3, 5)])
def test_kept_counts_every_offset(limit: int, rate: int) -> None:
    counts = {len(range(offset, limit, rate)) for offset in range(rate)}
    shown = str(kept(limit, rate)).split(" to ")
    assert {*map(int, shown)} == {min(counts), max(counts)}


def test_references(rows: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    cheetah = rows["HalfCheetah-v4"]
    assert (cheetah["published_random"], cheetah["published_expert"]) == (-282, 14200)
    ships = shipped.read("HalfCheetah-v4")
    assert cheetah["own_expert"] == pytest.approx(np.mean(ships["returns"]))
    assert cheetah["own_random"] == ships["random"]
    shown = row(envs.TASKS["HalfCheetah-v4"], Config(), tmp_path)
    assert shown["own_expert"] is None and shown["published_expert"] == 14200
    assert rows["walker-walk"]["published_expert"] is None


def test_other_ids() -> None:
    assert paper_id("Pusher-v5") == "Pusher-v4" and paper_id("Ant-v4") == "Ant-v4"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the scale's own tasks come last and that an id unlike the paper's is explained."""
    command.main(["environment_table", "--scale", "quick", "--out", str(tmp_path / "t.csv")])
    out = capsys.readouterr().out
    assert (
        "| Pendulum-v1 | Pendulum-v1 | silent | – | 3 | 1 | silent |" in out
        and "| finger-spin |" in out
    )
    assert "Pusher-v4: gymnasium refuses it" in out
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 11
    assert (tmp_path / "t.tex").read_text().isascii()


def test_an_expert_that_does_not_ship_has_the_published_return(tmp_path: Path) -> None:
    reference = {"random": -1200.0, "expert": -150.0}
    runs = {
        "Pendulum-v1/ngt/seed0": {"reference": reference},
        "Pendulum-v1/expert": {"reference": {}},
    }
    (tmp_path / "quick.json").write_text(json.dumps({"runs": runs}))
    others = environments.recorded(tmp_path / "quick.json")
    assert environments.recorded(tmp_path / "absent.json") == {}
    shown = row(envs.TASKS["Pendulum-v1"], Config(), tmp_path, others)
    assert (shown["own_random"], shown["own_expert"]) == (-1200.0, -150.0)
    assert row(envs.TASKS["Pendulum-v1"], Config(), tmp_path)["own_expert"] is None
