"""P(A > B) for each pair of methods: numbers by hand, and agreement with the aggregates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.table import read_runs
from paper.numbers import coverage
from paper.tables import aggregate, pairs
from paper.tables.aggregate import collect

Make = Callable[..., Any]
SCORES = {"ngt": (0.8, 1.0), "dac-r": (0.7, 0.9), "bc": (0.1, 0.9)}


def test_each_pair_by_hand(make_study: Make) -> None:
    study = make_study(methods=list(SCORES), demos=[1], seeds=[0, 1])
    study.settings["statistics"]["reference"] = "dac-r"
    for method, values in SCORES.items():
        for seed, value in enumerate(values):
            study.write(study.key(method, 1, seed), [value])
    a = collect(*read_runs(study.layout, study.config, "main_figure")[:1], study.config, [])
    found = {(row["a"], row["b"]): row for row in pairs.table(a).rows}
    values = {pair: row["better"] for pair, row in found.items()}
    assert values == {
        ("NGT", "DAC (R)"): pytest.approx(3 / 4),
        ("NGT", "BC"): pytest.approx(3 / 4),
        ("DAC (R)", "BC"): pytest.approx(2.5 / 4),  # a tie counts half
    }
    assert all(row["low"] <= row["better"] <= row["high"] for row in found.values())
    ngt, _, bc = aggregate.table(a).rows
    same = found["DAC (R)", "BC"]
    assert [same[n] for n in ("better", "low", "high")] == [
        bc[n] for n in ("better", "better_low", "better_high")
    ]
    mirrored = found["NGT", "DAC (R)"]
    assert mirrored["low"] == 1 - ngt["better_high"], "both must use the same draws"


def test_tables_with_intervals_state_their_coverage(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1, 4], seeds=[0, 1, 2])
    fill(study)
    a = collect(*read_runs(study.layout, study.config, "main_figure")[:1], study.config, [])
    for table, kinds in ((aggregate.table(a), ("mean", "IQM", "P")), (pairs.table(a), ("P",))):
        assert coverage.caution([3], *kinds, tasks=2) in " ".join(table.notes)


def test_the_notes_explain_only_what_is_shown(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1, 4], seeds=[0, 1, 2])
    fill(study)
    a = collect(*read_runs(study.layout, study.config, "main_figure")[:1], study.config, [])
    text = " ".join(pairs.table(a).notes)
    assert "stratified bootstrap" in text and "A tie counts half." in text
    assert not [word for word in ("IQM", "gap", "t interval") if word in text]


def test_one_method_has_no_pair(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["bc"])
    fill(study)
    runs, absent = read_runs(study.layout, study.config, "main_figure")
    table = pairs.table(collect(runs, study.config, absent))
    assert list(table.rows) == [] and "P(A > B)" in table.markdown()


def test_without_scores_there_is_no_number(poor_study: Make) -> None:
    study = poor_study(envs=["Hopper-v4"], demos=[1, 4])
    runs, absent = read_runs(study.layout, study.config, "main_figure")
    (row,) = pairs.table(collect(runs, study.config, absent)).rows
    assert (row["a"], row["better"]) == ("NGT", None)
