"""The table of aggregates: hand-computed numbers, and notes on incomplete runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.runs.shipping.gather import publish
from ngt.runs.table import read_runs
from paper import command
from paper.figures import aggregate
from paper.tables import pairs
from paper.tables.aggregate import Aggregates, collect, notes, table

Make = Callable[..., Any]


def aggregates(study: Any, *, allow_partial: bool = False) -> Aggregates:
    runs, absent = read_runs(study.layout, study.config, "main_figure", allow_partial=allow_partial)
    return collect(runs, study.config, absent)


def words(a: Aggregates) -> str:
    return " ".join(note.text for note in notes(a))


def write(study: Any, scores: dict[tuple[str, int], tuple[float, ...]]) -> None:
    """Write a run with one evaluation for each seed's score."""
    for (method, demos), values in scores.items():
        for seed, value in enumerate(values):
            study.write(study.key(method, demos, seed), [value])


def test_numbers_by_hand(make_study: Make) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1, 4], seeds=[0, 1])
    write(
        study,
        {
            ("ngt", 1): (0.8, 1.0),
            ("ngt", 4): (0.9, 1.4),
            ("bc", 1): (0.1, 0.9),
            ("bc", 4): (0.9, 0.2),
        },
    )
    rows = {(row["demos"], row["method"]): row for row in table(aggregates(study)).rows}
    assert list(rows) == [(g, m) for g in ("all", "1", "4") for m in ("NGT", "BC")]
    ngt, bc = rows["all", "NGT"], rows["all", "BC"]
    assert ngt["iqm"] == pytest.approx(0.95), "the IQM of 0.8, 0.9, 1.0 and 1.4"
    assert bc["iqm"] == pytest.approx(0.55), "the IQM of 0.1, 0.2, 0.9 and 0.9"
    assert ngt["gap"] == pytest.approx(0.3 / 4), "1.4 must count as 1"
    assert ngt["better"] is None and ngt["better_low"] is None
    assert bc["better"] == pytest.approx((3 / 4 + 3.5 / 4) / 2)
    assert rows["4", "BC"]["better"] == pytest.approx(3.5 / 4)
    assert rows["1", "BC"]["iqm"] == pytest.approx(0.5)
    assert [row["tasks"] for row in rows.values()] == [2, 2, 1, 1, 1, 1]
    assert (bc["runs"], bc["diverged"], rows["1", "BC"]["runs"]) == (4, 0, 2)
    for row in rows.values():
        assert row["iqm_low"] <= row["iqm"] <= row["iqm_high"]
        assert row["gap_low"] <= row["gap"] <= row["gap_high"]
    assert bc["better_low"] <= bc["better"] <= bc["better_high"]
    assert bc["iqm_low"] < bc["iqm_high"]


def test_one_number_of_demonstrations_is_not_said_twice(make_study: Make, fill: Make) -> None:
    study = make_study(demos=[4])
    fill(study)
    assert {row["demos"] for row in table(aggregates(study)).rows} == {"all"}


def test_what_it_says(make_study: Make, fill: Make) -> None:
    study = make_study()
    fill(study)
    text = words(aggregates(study))
    for part in (
        "Scale quick: 2 tasks",
        "n = 3 seeds per task",
        "mean of its last 3 evaluations",
        "stratified bootstrap over seeds within each task (20 repetitions)",
        "about 95% of cases (normal scores), 84% (skewed",
        "over 6 tasks in 96%",
    ):
        assert part in text
    assert "diverged" not in text and "PARTIAL" not in text


def test_one_seed_has_no_interval(make_study: Make, fill: Make) -> None:
    study = make_study(seeds=[3])
    fill(study)
    a = aggregates(study)
    assert "no intervals" in words(a) and "bootstrap" not in words(a)
    assert "| all | NGT | 2 | 0.36 | – | – |" in table(a).markdown()
    assert json.loads(table(a).json())["rows"][0]["iqm_low"] is None


def test_diverged_runs_are_counted_and_said(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "bc"])
    fill(study)
    study.write(study.key("bc", 1, 0), [0.4], diverged=True)
    study.write(study.key("bc", 4, 1), [], diverged=True)
    a = aggregates(study)
    assert a.scores.of["bc"][0, 0] == pytest.approx(0.4) and a.scores.of["bc"][1, 1] == 0.0
    rows = {(r["demos"], r["method"]): r["diverged"] for r in table(a).rows}
    assert rows == {
        ("all", "NGT"): 0,
        ("all", "BC"): 2,
        ("1", "NGT"): 0,
        ("1", "BC"): 1,
        ("4", "NGT"): 0,
        ("4", "BC"): 1,
    }
    assert "2 runs diverged and count with the evaluations until then (1 of them" in words(a)


def test_a_partial_table_says_what_is_left_out(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "dac-r", "bc"])
    gone = [key for key in study.table() if key.method == "bc"] + [study.key("dac-r", 4, 1)]
    fill(study, skip=gone)
    with pytest.raises(UserError, match=r"--allow-partial"):
        aggregates(study)
    a = aggregates(study, allow_partial=True)
    assert (
        "PARTIAL: 7 runs are missing. Methods without any run: BC. Tasks left out for all methods, "
        "since some method lacks a run there: Pendulum-v1 with 4." in words(a)
    )
    assert [(r["method"], r["runs"]) for r in table(a).rows] == [("NGT", 3), ("DAC (R)", 3)]


def test_a_task_that_only_some_methods_have_is_left_out(make_study: Make, fill: Make) -> None:
    envs = ["Pendulum-v1", "Hopper-v4"]
    study = make_study(
        methods=["ngt", "bc"], envs=envs, demos=[1], only={"bc": ["Hopper-v4"]}, seeds=[0, 1]
    )
    fill(study)
    a = aggregates(study)
    assert a.scores.tasks == (("Hopper-v4", 1),)
    assert "lacks a run there: Pendulum-v1 with 1." in words(a) and "PARTIAL" not in words(a)
    study = make_study(
        methods=["ngt", "bc"],
        envs=envs,
        demos=[1],
        only={"bc": ["Hopper-v4"], "ngt": ["Pendulum-v1"]},
    )
    fill(study)
    with pytest.raises(UserError, match="no env has all methods; list more envs in `only`"):
        aggregates(study)


@pytest.mark.parametrize("method", ["ngt", "bc"])
def test_published_records_without_a_whole_task_have_no_aggregates(
    make_study: Make, fill: Make, method: str
) -> None:
    study = make_study(methods=["ngt", "bc"], demos=[1])
    fill(study, skip=[key for key in study.table() if key.method == method and key.seed])
    publish(study.layout, study.config, allow_partial=True)
    study.settings["records"] = "published"
    a = aggregates(study)
    assert "PARTIAL: 2 runs are not published. No aggregates: they need" in words(a)
    assert {row["iqm"] for row in table(a).rows} == {None}


def test_published_records_without_the_reference_have_all_aggregates_but_p(
    make_study: Make, fill: Make
) -> None:
    study = make_study(methods=["ngt", "dac-r", "bc"], demos=[1], seeds=[0, 1])
    fill(study, skip=[key for key in study.table() if key.method == "ngt"])
    publish(study.layout, study.config, allow_partial=True)
    study.settings["records"] = "published"
    a = aggregates(study)
    rows = table(a).rows
    assert [row["method"] for row in rows] == ["DAC (R)", "BC"]
    assert all(row["iqm"] is not None and row["gap"] is not None for row in rows)
    assert {row["better"] for row in rows} == {None}
    assert "Methods without any run: NGT." in words(a) and "No P, since NGT has no run." in words(a)
    assert [row["better"] for row in pairs.table(a).rows] == [0.75]
    runs, absent = read_runs(study.layout, study.config, "main_figure")
    figure = aggregate.draw(runs, study.config, absent)
    said = [[t.get_text() for t in axes.texts] for axes in figure.axes]
    assert said == [[], [], ["NGT: not published"], []]


def test_any_method_may_be_the_reference(make_study: Make) -> None:
    """Use another reference than NGT: by default the first method, then a chosen one."""
    study = make_study(methods=["dac-r", "bc"], demos=[1], seeds=[0, 1])
    write(study, {("dac-r", 1): (0.8, 1.0), ("bc", 1): (0.1, 0.9)})
    dac, bc = table(aggregates(study)).rows
    assert (dac["better"], bc["better"]) == (None, pytest.approx(3 / 4))
    assert "P(DAC (R) > method): probability that a run of DAC (R)" in words(aggregates(study))
    study.settings["statistics"]["reference"] = "bc"
    dac, bc = table(aggregates(study)).rows
    assert (dac["better"], bc["better"]) == (pytest.approx(1 / 4), None)
    study.settings["statistics"]["reference"] = "red"
    with pytest.raises(UserError, match=r"statistics.reference: red is not among"):
        aggregates(study)


def test_a_reference_without_runs_is_an_error(make_study: Make, fill: Make) -> None:
    study = make_study(methods=["ngt", "dac-r", "bc"])
    fill(study, skip=[key for key in study.table() if key.method == "ngt"])
    with pytest.raises(UserError, match=r"figures.main_figure.methods: ngt, with which all others"):
        aggregates(study, allow_partial=True)


def test_command(
    make_study: Make, fill: Make, as_scale: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(demos=[1])
    fill(study, skip=[study.key("bc", 1, 0)])
    as_scale(study)
    with pytest.raises(SystemExit) as stop:
        command.main(["aggregate_table"])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("aggregate_table: error: run Pendulum-v1/bc/") and err.count("\n") == 1
    fill(study)
    command.main(["aggregate_table"])
    expected = table(aggregates(study))
    assert capsys.readouterr().out == f"{expected.markdown()}\nresults/aggregate_table.csv\n"
    with open("results/aggregate_table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == ["NGT", "DAC (R)", "BC"]
    assert float(rows[0]["iqm"]) == expected.rows[0]["iqm"], "the CSV must not round"


def test_an_env_without_scores_is_not_averaged_over(poor_study: Make) -> None:
    """Check that only envs with scores count.

    On the other env, scores of -1 and -0.2 would give the better method the worse IQM.
    """
    a = aggregates(poor_study(demos=[1]))
    assert a.scores.tasks == (("Pendulum-v1", 1),) and not a.scores.left_out
    ngt, bc = table(a).rows
    assert (ngt["iqm"], bc["iqm"]) == (pytest.approx(0.9), pytest.approx(0.5))
    assert bc["better"] == 1.0
    assert "No scores on Hopper-v4: the expert's mean return, 49, is not above" in words(a)
    assert "1 task " in words(a) and "PARTIAL" not in words(a)


def test_a_table_without_any_score_is_made_too(poor_study: Make) -> None:
    a = aggregates(poor_study(envs=["Hopper-v4"], demos=[1, 4]))
    ngt, bc = table(a).rows
    assert {ngt[k] for k in ("iqm", "gap", "better")} == {bc[k] for k in ("iqm", "gap")} == {None}
    assert (ngt["runs"], bc["better"]) == (0, None)
    assert "No scores on Hopper-v4" in words(a)
