"""Tests of the table that is read from runs: its rows, its scores and errors."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.experience.reference import unscored
from ngt.files import read_json, write_json
from ngt.runs.folder import VALUES
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.table import read_keys, read_runs, unscored_envs
from ngt.settings.config import Config
from ngt.settings.load import load
from paper.numbers.scores import final_scores

COLUMNS = [
    "step",
    *VALUES,
    "env",
    "method",
    "mode",
    "rate",
    "demos",
    "seed",
    "score",
    "random",
    "expert",
    "status",
    "pack",
    "machine",
]


def keys(config: Config) -> list[RunKey]:
    return run_table(config, ["f"])


# ---------------------------------------------------------------- reading


def test_the_table_by_hand(layout: Layout, config: Config, train: Any) -> None:
    one, four = keys(config)
    assert (one.demos, four.demos) == (1, 4)
    train(config, one, {200: [-1000.0, -600.0], 400: [-200.0, -100.0]})
    train(config, four, {200: [-1400.0, -1000.0]}, diverged=True)
    table, absent = read_runs(layout, config, "f")
    assert absent == []
    assert list(table.columns) == COLUMNS
    assert table["step"].tolist() == [200, 400, 200]
    assert table["return"].tolist() == [-800.0, -150.0, -1200.0], (
        "returns must be means over episodes"
    )
    assert table["score"].tolist() == [0.25, 1.0625, -0.25], (
        "a random return must score 0, an expert's 1"
    )
    assert table["demos"].tolist() == [1, 1, 4]
    assert table["status"].tolist() == ["finished", "finished", "diverged"]
    same = {
        "env": "Pendulum-v1",
        "method": "ngt",
        "mode": "state-action",
        "rate": 20,
        "seed": 0,
        "random": -1000.0,
        "expert": -200.0,
    }
    assert {name: set(table[name]) for name in same} == {n: {v} for n, v in same.items()}


@pytest.mark.parametrize("state", ["missing", "part", "stale"])
def test_an_absent_run_is_an_error_that_names_it(
    layout: Layout, config: Config, state: str, settings: dict[str, Any], begin: Any, train: Any
) -> None:
    present, absent = keys(config)
    train(config, present, {200: [-800.0]})
    if state == "part":
        begin(config, absent)
    if state == "stale":
        train(load({**settings, "sac": {"gamma": 0.5}}), absent, {200: [-800.0]})
    with pytest.raises(UserError) as caught:
        read_runs(layout, config, "f")
    command = f"ngt train {absent} --scale test"
    assert str(caught.value) == (
        f"run {absent}: {state}; train it with `{command}`, or omit missing runs with "
        "--allow-partial"
    )
    with pytest.raises(UserError, match=f"`ngt train {absent} --config mine.yaml`"):
        read_runs(layout, config, "f", selected="--config mine.yaml")
    table, left_out = read_runs(layout, config, "f", allow_partial=True)
    assert left_out == [absent]
    assert table["demos"].tolist() == [present.demos]


@pytest.mark.parametrize("partial", [False, True])
def test_a_damaged_run_is_always_an_error(
    layout: Layout, config: Config, partial: bool, train: Any
) -> None:
    one, four = keys(config)
    for key in (one, four):
        train(config, key, {200: [-800.0]})
    file = layout.run(four) / "eval.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("-800", "-900"), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_runs(layout, config, "f", allow_partial=partial)
    assert str(caught.value) == (
        f"run {four}: damaged ({file} was changed or damaged (checksum)); train it again with `ngt "
        f"train {four} --scale test`"
    )


def test_runs_come_with_their_status_and_record(layout: Layout, config: Config, train: Any) -> None:
    first, second = keys(config)
    runs = read_keys(layout, config, [first, second], "figures.f", allow_partial=True)
    assert runs.rows is None and runs.absent == [first, second]
    train(config, first, {200: [1.0]}, diverged=True)
    runs = read_keys(layout, config, [first, second], "figures.f", allow_partial=True)
    assert [s.status for s in runs.statuses.values()] == ["diverged", "missing"]
    assert runs.absent == [second] and list(runs.records) == [first]
    assert runs.records[first]["tensor"] == "obs"
    assert runs.rows is not None and len(runs.rows) == 1


def test_nothing_at_all_is_an_error_even_when_partial(layout: Layout, config: Config) -> None:
    with pytest.raises(UserError) as caught:
        read_runs(layout, config, "f", allow_partial=True)
    assert (
        str(caught.value)
        == f"f: none of its runs is finished under {layout.runs}; train them first"
    )


@pytest.mark.parametrize("partial", [False, True])
def test_a_foreign_run_is_an_error_that_names_it(
    layout: Layout, config: Config, partial: bool, train: Any
) -> None:
    one, four = keys(config)
    train(config, one, {200: [-800.0]})
    shutil.copytree(layout.run(one), layout.run(four))
    with pytest.raises(UserError) as caught:
        read_runs(layout, config, "f", allow_partial=partial)
    assert str(caught.value) == (
        f"run {four}: {layout.run(four)}/run.json belongs to another run, {one}; train it again"
    )


def test_a_run_that_diverged_before_its_first_evaluation(
    layout: Layout, config: Config, train: Any
) -> None:
    one, four = keys(config)
    train(config, one, {200: [-800.0]})
    train(config, four, {}, diverged=True)
    table, absent = read_runs(layout, config, "f")
    assert absent == [], "the run exists, even without rows"
    assert table["demos"].tolist() == [1]
    assert table["step"].dtype.kind == "i" and table["score"].dtype.kind == "f"


def test_a_run_of_its_cells_that_no_artefact_names_is_an_error(
    layout: Layout, config: Config, train: Any
) -> None:
    one, four = keys(config)
    stray = dataclasses.replace(one, seed=9)
    elsewhere = dataclasses.replace(one, method="bc", seed=9)
    for key in (one, four, elsewhere):
        train(config, key, {200: [-800.0]})
    assert len(read_runs(layout, config, "f")[0]) == 2, "the table must omit runs of other methods"
    train(config, stray, {200: [-800.0]})
    for partial in (False, True):
        with pytest.raises(UserError) as caught:
            read_runs(layout, config, "f", allow_partial=partial)
        assert str(caught.value) == (
            f"run {stray}: it is in no artefact at scale test; move it elsewhere, or add it to "
            "figures.f"
        )


def test_a_copy_of_a_run_anywhere_in_the_env_is_an_error(
    layout: Layout, config: Config, train: Any
) -> None:
    one, four = keys(config)
    for key in (one, four):
        train(config, key, {200: [-800.0]})
    alien = dataclasses.replace(one, method="alien")
    shutil.copytree(layout.run(one), layout.run(alien))
    with pytest.raises(UserError) as caught:
        read_runs(layout, config, "f")
    file = layout.run(alien) / "run.json"
    assert str(caught.value) == f"run {alien}: {file} belongs to another run, {one}; move it away"


def test_what_is_drawn_beside_is_read_too(
    layout: Layout, settings: dict[str, Any], train: Any
) -> None:
    beside = {
        "methods": ["ngt-hlg"],
        "beside": ["ngt"],
        "envs": ["Pendulum-v1"],
        "demos": [1],
        "seeds": [0],
    }
    config = load({**settings, "figures": {"f": beside}})
    for key in run_table(config, ["f"], beside=True):
        train(config, key, {200: [-800.0]})
    assert run_table(config, ["f"]) == [k for k in run_table(config, ["f"]) if k.method != "ngt"]
    assert set(read_runs(layout, config, "f")[0]["method"]) == {"ngt-hlg", "ngt"}


# ---------------------------------------------------------------- missing scores


POOR = {"random": 49.5, "expert": 49.0, "demos": "a"}
NEAR = {"random": 0.0, "expert": 9.0, "random_error": 3.0, "expert_error": 4.0, "demos": "a"}


@pytest.mark.parametrize("reference", [POOR, POOR | {"expert": 49.5}, NEAR])
def test_a_score_that_cannot_be_normalised_is_missing(
    layout: Layout, config: Config, reference: dict[str, Any], train: Any
) -> None:
    for key in keys(config):
        train(config, key, {200: [50.0], 400: [51.0]}, reference=reference)
    table, absent = read_runs(layout, config, "f")
    assert absent == [] and table["score"].isna().all()
    assert table["return"].tolist() == [50.0, 51.0] * 2, "the returns must remain"
    assert unscored_envs(table) == {"Pendulum-v1": unscored(reference)}


def test_one_reason_holds_for_all_runs_of_an_env(
    layout: Layout, config: Config, train: Any
) -> None:
    """Check for a single reason per env, even if only some records have standard errors."""
    former = {name: value for name, value in NEAR.items() if not name.endswith("error")}
    for key, reference in zip(keys(config), (former, NEAR), strict=True):
        train(config, key, {200: [5.0]}, reference=reference)
    table, _ = read_runs(layout, config, "f")
    assert table["score"].isna().all() and list(unscored_envs(table)) == ["Pendulum-v1"]


def test_a_standard_error_that_is_no_number_is_refused(
    layout: Layout, config: Config, train: Any
) -> None:
    for key in keys(config):
        train(config, key, {200: [5.0]}, reference=NEAR | {"random_error": "x"})
    with pytest.raises(UserError, match=r"reference.random_error .* is 'x', not a finite number"):
        read_runs(layout, config, "f")


# ---------------------------------------------------------------- final scores


def test_the_window_is_the_configs(
    layout: Layout, config: Config, settings: dict[str, Any], train: Any
) -> None:
    key = keys(config)[0]
    returns = {step: [-1000.0 + step] for step in range(10, 310, 10)}
    train(config, key, returns)
    one = load({**settings, "figures": {"f": {**settings["figures"]["f"], "demos": [1]}}})
    final = final_scores(read_runs(layout, one, "f")[0], config.window)
    last = [s / 800.0 for s in range(110, 310, 10)]
    assert len(last) == config.window == 20
    assert final["score"].tolist() == pytest.approx([sum(last) / 20])


def test_other_demonstrations_are_named(layout: Layout, config: Config, train: Any) -> None:
    for key in keys(config):
        train(config, key, {200: [1.0]})
    second = keys(config)[1]
    record = read_json(layout.run(second) / "run.json")
    record["reference"]["demos"] = "f" * 64
    write_json(layout.run(second) / "run.json", record)
    with pytest.raises(UserError, match=rf"run {second}: made from other demonstrations \(f"):
        read_runs(layout, config, "f")
