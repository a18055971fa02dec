"""The table of final scores: hand-computed numbers, and notes on incomplete runs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ngt.runs.keys import RunKey, run_table
from ngt.runs.table import read_runs
from ngt.settings.load import load
from paper import command
from paper.drawing.table import from_json
from paper.tables.scores import table

Make = Callable[..., Any]

CONFIG = load(
    {
        "scale": "quick",
        "window": 2,
        "statistics": {"reps": 50},
        "figures": {"main_figure": {"methods": ["ngt", "bc"], "demos": [1, 4], "seeds": [0, 1]}},
    }
)


def runs() -> pd.DataFrame:
    """Return runs whose scores start from seed / 2 and rise by 0.1 with each evaluation.

    There are no runs of bc with four demonstrations.
    """
    rows = [
        {
            "env": "Pendulum-v1",
            "method": method,
            "mode": "state-action",
            "rate": 20,
            "demos": demos,
            "seed": seed,
            "step": step,
            "score": seed / 2 + 0.1 * step,
            "return": 100.0 * seed + step,
            "random": -7.0,
            "status": "diverged" if (method, seed) == ("bc", 1) else "finished",
        }
        for method, demos in (("ngt", 1), ("ngt", 4), ("bc", 1))
        for seed in (0, 1)
        for step in (1, 2, 3)
    ]
    return pd.DataFrame(rows)


ABSENT = [RunKey("Pendulum-v1", "bc", "state-action", 20, demos=4, seed=seed) for seed in (0, 1)]


def test_cells_are_means_of_the_window_by_hand() -> None:
    text = table(runs(), CONFIG, ABSENT).markdown()
    assert text.splitlines()[2:6] == [
        "| Pendulum-v1 | 1 | NGT | 52.5 | 0.50 | −2.68 | 3.68 | 2 | 0.25, 0.75 | 0 |",
        "| Pendulum-v1 | 1 | BC | 52.5 | 0.50 | −2.68 | 3.68 | 2 | 0.25, 0.75 | 1 |",
        "| Pendulum-v1 | 4 | NGT | 52.5 | 0.50 | −2.68 | 3.68 | 2 | 0.25, 0.75 | 0 |",
        "| Pendulum-v1 | 4 | BC | – | – | – | – | 0 | – | 0 |",
    ]
    assert "last 2 evaluations" in text and "PARTIAL: runs missing: 2." in text
    assert "With 2 seeds" in text and "90% (skewed scores)" in text, (
        "the table must state the coverage of intervals from two seeds"
    )
    rows = list(csv.DictReader(io.StringIO(table(runs(), CONFIG, ABSENT).csv())))
    assert {row["mark"] for row in rows} == {"PARTIAL: runs missing: 2."}
    assert "1 run diverged and counts with the evaluations until then." in text


def test_one_seed_has_no_interval() -> None:
    alone = runs().query("seed == 0 and demos == 1")
    keys = run_table(CONFIG, ["main_figure"])
    absent = [key for key in keys if key.seed == 1 or key.demos == 4]
    row = table(alone, CONFIG, absent).rows[0]
    assert row["mean"] == pytest.approx(0.25) and math.isnan(row["low"])
    assert row["scores"] == [pytest.approx(0.25), None] and row["runs"] == 1


def test_a_score_stays_in_its_seeds_column_at_full_precision() -> None:
    """Check a table whose first seed is missing: the score of the second stays in its column."""
    some = runs().query("not (method == 'ngt' and demos == 1 and seed == 0)")
    gone = RunKey("Pendulum-v1", "ngt", "state-action", 20, demos=1, seed=0)
    made = table(some.assign(score=some["score"] / 3), CONFIG, [*ABSENT, gone])
    row = next(csv.DictReader(io.StringIO(made.csv())))
    assert (row["scores_1"], row["runs"]) == ("", "1")
    assert float(row["scores_2"]) == pytest.approx(0.25, abs=1e-15)
    assert "| 1 | –, 0.25 | 0 |" in made.markdown()
    again = from_json(made.json())
    assert again.csv() == made.csv() and again.markdown() == made.markdown()


def test_a_run_without_an_evaluation_counts_as_random() -> None:
    some = runs().query("not (method == 'bc' and seed == 1)")
    row = table(some, CONFIG, ABSENT).rows[1]
    assert (row["scores"], row["diverged"]) == ([pytest.approx(0.25), 0.0], 1)
    assert row["return"] == pytest.approx((2.5 - 7.0) / 2)


def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["main_table", "--results", str(tmp_path)])
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("main_table: error: run Pendulum-v1/") and len(err.splitlines()) == 1


def test_scores_that_cannot_be_normalised_are_missing_and_returns_stay(poor_study: Make) -> None:
    for envs, scores in ((["Pendulum-v1", "Hopper-v4"], [0.9, 0.5]), (["Hopper-v4"], [])):
        study = poor_study(envs=envs, demos=[1])
        runs, _ = read_runs(study.layout, study.config, "main_figure")
        made = table(runs, study.config)
        whole, poor = made.rows[:-2], made.rows[-2:]
        assert [row["mean"] for row in whole] == pytest.approx(scores)
        assert [row["return"] for row in poor] == pytest.approx([50.0, 49.6])
        assert {row[name] for row in poor for name in ("mean", "low", "high", "scores")} == {None}
        assert any(note.startswith("No scores on Hopper-v4: the expert's") for note in made.notes)
