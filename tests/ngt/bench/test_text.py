"""Tests of the benchmarks' results as text."""

from __future__ import annotations

from ngt.bench import text


def test_columns_are_aligned() -> None:
    rows = [("", "rate", "(range)"), ("SAC", 1.5, ""), ("NGT, pack", 100.25, "(1-2)")]
    assert text.aligned(rows) == [
        "             rate  (range)",
        "SAC           1.5",
        "NGT, pack  100.25    (1-2)",
    ]


def test_a_row_on_one_line() -> None:
    row = {"model": "NGT", "pack": 12, "graph_ms": 1.67451}
    assert text.fields(row) == "model=NGT pack=12 graph_ms=1.67"


def test_what_was_not_measured_is_said_or_left_out() -> None:
    row = {"what": "SAC", "updates_per_second": 2.0, "slowest": 1.0, "fastest": 3.0}
    result = {
        "env": "Pendulum-v1",
        "threads": 1,
        "batch": 256,
        "repeats": 1,
        "rows": [row],
        "envs_alone_steps_per_second": 10.0,
        "profile": [{"kind": "other", "ms": 1.0, "share": 1.0}],
        "agreement": [{"updates": 1, "pack_alone": 0.0}],
    }
    told = text.table(result)
    assert "no peer" in told and "processes at once" not in told
    several = {"processes": 2, "one": 1.0, "all": 1.9, "gain": 1.9}
    told = text.table({**result, "rows": [{**row, "over_peer": 1.2}], "together": several})
    assert "no peer" not in told and "2 processes at once" in told and "1.20" in told
