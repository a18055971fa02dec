"""The report's tables and facts about its runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.keys import run_table
from ngt.runs.provenance import source_hash
from ngt.runs.table import Runs, read_keys
from paper.document import runs as report_runs

Make = Callable[..., Any]


@pytest.fixture
def study(make_study: Make) -> Any:
    """Return a study of two figures with six runs.

    Two runs are finished. Of the others, one is diverged, one stale, one begun and one missing.
    """
    made = make_study(methods=["ngt", "dac-r"], demos=[1], seeds=[0, 1, 2])
    made.settings["figures"]["seeds_figure"] = {
        "methods": ["ngt"],
        "envs": ["Pendulum-v1"],
        "demos": [1],
        "seeds": [0, 1],
    }
    here = {
        "source_hash": source_hash("ngt.reward:Constant"),
        "pack": 2,
        "train_seconds": 7200.0,
        "device": "cpu",
        "machine": "Linux",
        "versions": {"torch": "2.13"},
        "commit": "c0ffee",
        "dirty": False,
    }
    made.write(made.key("ngt", seed=0), [0.1], **here)
    made.write(made.key("ngt", seed=1), [0.1], diverged=True, **here)
    changed = {"source_hash": "f" * 16, "dirty": True, "device": "cuda", "gpu": "RTX", "pack": 1}
    made.write(made.key("ngt", seed=2), [0.1], **{**here, **changed})
    made.write(made.key("dac-r", seed=0), [0.1], config_hash="of other settings")
    (made.write(made.key("dac-r", seed=1), [0.1]) / "run.json").unlink()
    return made


@pytest.fixture
def runs(study: Any) -> Runs:
    keys = run_table(study.config)
    return read_keys(study.layout, study.config, keys, "figures", allow_partial=True)


def test_counts_by_artefact_and_each_run_once_in_all(study: Any, runs: Runs) -> None:
    table = report_runs.counts(study.config, runs.statuses)
    numbers = {
        row["artefact"]: [row[name] for name in list(table.columns)[1:]] for row in table.rows
    }
    #                                        runs finished diverged stale part missing
    assert numbers == {
        "Every method, env and number of demonstrations": [6, 2, 1, 1, 0, 1, 1],
        "NGT over ten seeds": [2, 1, 1, 0, 0, 0, 0],
        "all, each once": [6, 2, 1, 1, 0, 1, 1],
    }


def test_what_is_not_finished_is_named(study: Any, runs: Runs) -> None:
    table = report_runs.incomplete(runs.statuses)
    assert {(row["run"], row["status"]) for row in table.rows} == {
        (str(study.key("ngt", seed=1)), "diverged"),
        (str(study.key("dac-r", seed=0)), "stale"),
        (str(study.key("dac-r", seed=1)), "part"),
        (str(study.key("dac-r", seed=2)), "missing"),
    }
    finished = {k: s for k, s in runs.statuses.items() if s.status == "finished"}
    assert report_runs.incomplete(finished).rows == []


def test_sources_and_machines_are_counted_apart(runs: Runs) -> None:
    rows = report_runs.sources(runs).rows
    ours = source_hash("ngt.reward:Constant")
    assert [(r["method"], r["source_hash"], r["here"], r["dirty"], r["runs"]) for r in rows] == [
        ("ngt", ours, "yes", "no", 2),
        ("ngt", "f" * 16, "no", "yes", 1),
    ]
    rows = report_runs.machines(runs.records).rows
    assert [(r["device"], r["gpu"], r["torch"], r["python"], r["runs"]) for r in rows] == [
        ("cpu", report_runs.UNKNOWN, "2.13", report_runs.UNKNOWN, 2),
        ("cuda", "RTX", "2.13", report_runs.UNKNOWN, 1),
    ]


def test_the_hours_of_a_pack_are_shared_out(study: Any, runs: Runs) -> None:
    (row,) = report_runs.times(study.config, runs.records).rows
    assert row == {
        "env": "Pendulum-v1",
        "method": "NGT",
        "key": "ngt",
        "runs": 3,
        "pack": "1 to 2",
        "rate": 100.0,
        "hours": 1.0 + 1.0 + 2.0,
    }


def test_facts_warn_of_what_is_wrong(study: Any, runs: Runs) -> None:
    known = {name: (text, warning) for name, text, warning in report_runs.facts(study.config, runs)}
    counted = "6: 2 finished, 1 diverged, 1 stale, 1 part, 1 missing"
    assert known["Runs"] == (counted, True)
    text, warning = known["Code"]
    assert warning and text.startswith("2 of 3 runs were made by the same code")
    assert "1 with uncommitted changes" in text
    assert known["Machine"] == ("Linux (cpu); Linux (RTX)", False)
    assert known["Training"] == ("4.0 hours of one process", False)


def test_facts_of_sound_runs_warn_of_nothing(study: Any, runs: Runs) -> None:
    key = study.key("ngt", seed=0)
    sound = Runs(None, {key: runs.statuses[key]}, {key: runs.records[key]})
    known = report_runs.facts(study.config, sound)
    assert not any(warning for _, _, warning in known)
    assert ("Code", "1 of 1 runs were made by the same code as this page's", False) in known


def test_runs_without_times_have_none(study: Any, runs: Runs) -> None:
    key = study.key("ngt", seed=0)
    bare = {k: v for k, v in runs.records[key].items() if k not in ("train_seconds", "pack")}
    (row,) = report_runs.times(study.config, {key: bare}).rows
    assert (row["hours"], row["pack"]) == (None, None)


def test_facts_name_the_envs_without_scores(poor_study: Callable[..., Any]) -> None:
    study = poor_study(demos=[1])
    runs = read_keys(study.layout, study.config, study.table(), "figures")
    known = {name: (text, warning) for name, text, warning in report_runs.facts(study.config, runs)}
    text, warning = known["Scores"]
    assert warning and text.startswith("none on Hopper-v4: the expert's mean return, 49,")
