"""Tests of runs read from their folders."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.files import checksum, read_json, write_json
from ngt.runs import folder
from ngt.runs.folder import VALUES, Folders
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.status import STATUSES, Status
from ngt.settings.config import Config
from ngt.settings.load import load


def keys(config: Config) -> list[RunKey]:
    return run_table(config, ["f"])


# ---------------------------------------------------------------- statuses


def run_status(layout: Layout, config: Config, key: RunKey) -> Status:
    return Folders(layout, config).status(key)


def test_statuses(
    layout: Layout,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    begin: Any,
    train: Any,
) -> None:
    key = keys(config)[0]
    assert run_status(layout, config, key) == ("missing", "", False)
    writer = begin(config, key)
    assert run_status(layout, config, key)[:2] == ("part", "last evaluation at step 0")
    writer.evaluation(200, [1.0], [200])
    assert run_status(layout, config, key)[:2] == ("part", "last evaluation at step 200")
    train(config, key, {200: [1.0]})
    assert run_status(layout, config, key) == ("finished", "step 400, 50.0 steps/s", False)
    begin(config, key)
    assert run_status(layout, config, key).status == "finished", (
        "the finished record must stay until the new run is complete"
    )
    train(config, key, {200: [1.0]}, diverged=True)
    assert run_status(layout, config, key) == ("diverged", "step 200: obs is not finite", False)
    changed = load({**settings, "sac": {"gamma": 0.5}})
    assert run_status(layout, changed, key)[:2] == (
        "stale",
        "trained with other settings: sac.gamma is 0.99 in the result and 0.5 in the config",
    )
    unrelated = load({**settings, "pack": 3, "methods": {"bc": {"label": "x"}}})
    assert run_status(layout, unrelated, key).status == "diverged"
    monkeypatch.setattr(folder, "source_hash", lambda *_: "another")
    assert run_status(layout, config, key) == (
        "diverged",
        "step 200: obs is not finite, other source",
        True,
    )
    assert STATUSES == ("finished", "diverged", "stale", "damaged", "part", "missing")


def test_a_damaged_run_json_counts_for_nothing(
    layout: Layout, config: Config, begin: Any, train: Any
) -> None:
    key = keys(config)[0]
    train(config, key, {200: [1.0]})
    (layout.run(key) / "run.json").write_text('{"status": "fin')
    damaged = "run.json can't be read, last evaluation at step"
    assert run_status(layout, config, key)[:2] == ("damaged", f"{damaged} 200")
    begin(config, key).evaluation(400, [1.0], [200])
    assert run_status(layout, config, key)[:2] == ("damaged", f"{damaged} 400")
    for text in ("step,epis", ""):
        (layout.run(key) / "eval.csv.part").write_text(text)
        assert run_status(layout, config, key)[:2] == ("damaged", f"{damaged} 0")
    for name in ("eval.csv.part", "eval.csv"):
        (layout.run(key) / name).unlink()
    assert run_status(layout, config, key)[:2] == ("damaged", f"{damaged} 0")


# ---------------------------------------------------------------- records


def test_a_record_by_hand(layout: Layout, config: Config, train: Any) -> None:
    key = keys(config)[0]
    returns = {200: [0.1 + 0.2], 400: [-1.0, 2.0, 5.0]}
    train(config, key, returns, timing=[[200, 1.5], [300, 2.0]])
    log = layout.run(key) / "train.csv"
    log.write_text("step,auc,rank_correlation\n400,0.25,-0.5\n")
    with pytest.raises(UserError, match=r"train\.csv was changed or damaged"):
        Folders(layout, config).read(key)
    run = read_json(layout.run(key) / "run.json")
    run["files"]["train.csv"] = checksum(log)
    write_json(layout.run(key) / "run.json", run)
    record = Folders(layout, config).read(key)
    assert record.run["status"] == "finished"
    rows = record.evaluations
    assert list(rows.columns) == ["step", *VALUES]
    assert rows["step"].tolist() == [200, 400]
    assert rows["return"].tolist() == [0.1 + 0.2, 2.0], (
        "returns must be read exactly, then averaged"
    )
    assert rows["low"].tolist() == [0.1 + 0.2, -1.0] and rows["high"].tolist() == [0.1 + 0.2, 5.0]
    assert rows["std"].isna().tolist() == [True, False] and rows["std"].iloc[1] == 3.0
    assert rows["episodes"].tolist() == [1, 3]
    assert rows["auc"].isna().tolist() == [True, False] and rows["auc"].iloc[1] == 0.25
    assert rows["rank_correlation"].isna().tolist() == [True, False]
    assert rows["rank_correlation"].iloc[1] == -0.5
    assert rows["seconds"].isna().tolist() == [False, True] and rows["seconds"].iloc[0] == 1.5


def test_a_changed_digit_is_noticed(layout: Layout, config: Config, train: Any) -> None:
    key = keys(config)[0]
    train(config, key, {200: [-800.0]})
    file = layout.run(key) / "eval.csv"
    file.write_text(file.read_text().replace("-800", "-900"))
    with pytest.raises(UserError, match=r"eval\.csv was changed or damaged"):
        Folders(layout, config).read(key)


@pytest.mark.parametrize("value", ["", "nan", "inf"])
def test_a_return_that_is_no_number_is_not_left_out(
    layout: Layout, config: Config, value: str, train: Any
) -> None:
    key = keys(config)[0]
    train(config, key, {200: [-800.0, -700.0]})
    file, record = layout.run(key) / "eval.csv", layout.run(key) / "run.json"
    file.write_text(file.read_text().replace("-700.0", value))
    write_json(record, {**(read_json(record) or {}), "files": {}})  # remove the checksums
    mean = Folders(layout, config).read(key).evaluations["return"]
    assert mean.isna().tolist() == [True], "a mean of finite returns alone must not be reported"


def test_a_shipped_expert_is_read_as_one_of_here(config: Config, layout: Layout) -> None:
    ours = Folders(layout, dataclasses.replace(config, demos="shipped"))
    assert ours.has_expert("HalfCheetah-v4") and not ours.has_expert("Pendulum-v1")
    assert not Folders(layout, config).has_expert("HalfCheetah-v4")
    run, rows = ours.read_expert("HalfCheetah-v4")
    assert list(rows.columns) == ["step", *VALUES] and run["status"] == "finished"
    best = rows.loc[rows["return"].idxmax()]
    assert (best["step"], best["return"]) == tuple(pytest.approx(x) for x in run["kept"].values())
    assert rows["episodes"].unique().tolist() == [10] and rows["auc"].isna().all()
    assert rows["seconds"].iloc[-1] == pytest.approx(run["train_seconds"], abs=1)
    with pytest.raises(UserError, match="no expert of Pendulum-v1 ships"):
        ours.read_expert("Pendulum-v1")


def test_a_run_json_of_no_run(layout: Layout, config: Config, train: Any) -> None:
    key = keys(config)[0]
    train(config, key, {200: [-800.0]})
    record = read_json(layout.run(key) / "run.json")
    del record["key"]
    write_json(layout.run(key) / "run.json", record)
    with pytest.raises(UserError, match=r"belongs to another run, None; train it again"):
        Folders(layout, config).read(key)
