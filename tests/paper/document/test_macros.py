"""The LaTeX report's numbers and outcomes, which come from tables and runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.runs.keys import run_table
from ngt.runs.table import Runs, read_keys
from paper.document.macros import (
    MACHINE,
    claims_by_artefact,
    macros,
    of_aggregates,
    of_scale,
    rows_of,
)
from paper.document.report import Item
from paper.drawing.table import Column, Table
from paper.register import FIGURES, TABLES
from paper.tables import aggregate as aggregate_table


def claim(text: str, verdict: str, artefact: str | None = "main_figure") -> dict[str, Any]:
    return {"claim": text, "ours": "0.9 [0.8, 1.0]", "verdict": verdict, "artefact": artefact}


CLAIMS = [
    claim("a & b", "reproduced"),
    claim("c", "not reproduced"),
    claim("d", "reproduced"),
    claim("e", "partly"),
    claim("f", "not run at this scale", "seeds_figure") | {"ours": None},
    claim("g", "reproduced", None),
]


def aggregate(demos: str, method: str, iqm: float, better: float | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"demos": demos, "method": method, "tasks": 1}
    for key, value in (("iqm", iqm), ("better", better)):
        low, high = (None, None) if value is None else (value - 0.1, value + 0.1)
        row |= {key: value, f"{key}_low": low, f"{key}_high": high}
    return row


AGGREGATES = [
    aggregate("all", "DAC (R)", 0.95, 0.45),
    aggregate("all", "NGT", 0.93),
    aggregate("all", "BC", 0.2, 0.85),
    aggregate("all", "PWIL", 1.04, 0.1),
    aggregate("1", "BC", 0.1, 1.0),
    aggregate("1", "NGT", 0.5),
    aggregate("4", "NGT", 0.97),
]


def macro(text: str, name: str) -> str:
    found = re.search(rf"\\newcommand\*{{\\{name}}}{{(.*)}}\n", text)
    assert found is not None, name
    return found[1]


def named(text: str, kind: str, name: str) -> str:
    found = re.search(rf"\\csname {kind}@{name}\\endcsname{{(.*)}}\n", text)
    assert found is not None, (kind, name)
    return found[1]


@pytest.fixture
def made(make_study: Callable[..., Any], fill: Callable[..., None]) -> tuple[Any, Runs]:
    """Return a study with one missing and one diverged run, and the study's runs."""
    study = make_study(methods=["ngt", "dac-r"], demos=[1, 4], seeds=[0, 1])
    fill(study, skip=[study.key("ngt", seed=1)])
    study.write(study.key("dac-r", demos=4), [0.1], diverged=True)
    keys = run_table(study.config)
    return study, read_keys(study.layout, study.config, keys, "figures", allow_partial=True)


def items(**rows: list[dict[str, Any]]) -> list[Item]:
    return [
        Item(TABLES[name], (), table=Table(name, {k: Column(k) for k in found[0]}, found))
        for name, found in rows.items()
    ]


def test_numbers_are_those_of_runs_and_tables(made: tuple[Any, Runs]) -> None:
    study, runs = made
    found = items(
        claims_table=CLAIMS,
        aggregate_table=AGGREGATES,
        theory_table=[{"verdict": v} for v in ("false", "holds", "false")],
    )
    text = macros(study.config, runs, found)
    counts = ("Claims", "ClaimsReproduced", "ClaimsPartly", "ClaimsNot", "ClaimsNotRun")
    assert [macro(text, name) for name in counts] == ["6", "3", "1", "1", "1"]
    theory = ("Statements", "StatementsHold", "StatementsLoose", "StatementsFalse")
    assert [macro(text, name) for name in theory] == ["3", "1", "0", "2"]
    of_runs = ("Runs", "RunsFinished", "RunsDiverged")
    assert [macro(text, name) for name in of_runs] == ["8", "6", "1"]
    assert macro(text, "RunsMissing") == "1"
    assert macro(text, "ReferenceIqm") == "0.93 {[}0.83, 1.03]"
    assert macro(text, "Demos") == "1 and 4" and macro(text, "Steps") == "60,000"
    assert macro(text, "Window") == "3" and macro(text, "Seeds") == "2"
    assert macro(text, "ExpertPolicy") == "Its last policy"
    study.settings["expert"] = {"train": {"keep": "best"}}
    assert of_scale(study.config, [])["ExpertPolicy"] == "The policy of its best evaluation"
    stated = macro(text, "Coverage")
    assert r"90\% (skewed scores)" in stated and "probability of improvement" in stated
    assert macro(text, "OtherSettings") == ""
    marked = macros(study.config, runs, [], "OTHER SETTINGS.")
    assert macro(marked, "OtherSettings") == "OTHER SETTINGS."
    assert named(text, "says", "references") == r"Pendulum-v1 \ensuremath{-}200 and 300"
    assert named(text, "says", "main_figure").startswith("Of the 4 claims")
    assert named(text, "says", "grid_figure") == ""


def test_what_is_not_known_is_not_made_up(made: tuple[Any, Runs]) -> None:
    study, _ = made
    nothing = macros(study.config, Runs(None, {}, {}), [])
    unknown = (
        "ReferenceIqm",
        "ReferenceIqmByDemos",
        "BestMethod",
        "ReferenceBetter",
        "NoScores",
        "RunsMissing",
    )
    assert {macro(nothing, name) for name in unknown} == {""} and macro(nothing, "Claims") == "0"
    assert {named(nothing, "says", n) for n in (*FIGURES, "references")} == {""}


def test_a_gap_says_why(made: tuple[Any, Runs]) -> None:
    study, runs = made
    lost = Item(FIGURES["main_figure"], (), gap="x/main_figure.pdf is missing", command="make it")
    text = macros(study.config, runs, [lost])
    gap = named(text, "gap", "main_figure").replace(r"\allowbreak{}", "")
    assert gap == r"x/main\_figure.pdf is missing"
    assert named(text, "gap", "grid_figure") == "scale quick has no runs for it"
    assert named(text, "title", "grid_figure") == FIGURES["grid_figure"].title
    assert named(text, "caption", "main_figure").endswith(": 8 runs of scale quick.")


def test_outcomes_are_the_verdicts() -> None:
    says = claims_by_artefact(CLAIMS)
    assert says["main_figure"] == (
        "Of the 4 claims that these runs decide, 2 are reproduced, 1 is not reproduced "
        "and 1 is reproduced in part."
    )
    assert says["seeds_figure"] == "Claimed: f – not run at this scale."
    other = claims_by_artefact([{**CLAIMS[0], "verdict": "not published", "ours": "0.7"}])
    (text,) = other.values()
    assert text.count(" – not published.") == 1 and text.endswith("without a verdict: a & b: 0.7.")
    assert says[MACHINE].endswith("g – reproduced (0.9 [0.8, 1.0]).")


def test_ngt_is_placed_among_the_methods(made: tuple[Any, Runs]) -> None:
    config = made[0].config
    values = of_aggregates(AGGREGATES, config)
    assert str(values["ReferenceIqm"]) == "0.93 [0.83, 1.03]"
    assert values["ReferenceIqmByDemos"] == "0.50 [0.40, 0.60] with 1 and 0.97 [0.87, 1.07] with 4"
    assert values["ReferenceTasks"] == "1 of the 2 tasks of the main figure"
    assert (values["OtherMethods"], values["HigherMethods"]) == ("3 other methods", "2 have")
    assert (values["BestMethod"], str(values["BestIqm"])) == ("PWIL", "1.04 [0.94, 1.14]")
    assert (values["ReferenceBetter"], values["ReferenceWorse"]) == (1, 1), (
        "DAC's interval contains one half"
    )
    assert values["ReferenceNoWidth"] == ""
    ends = {"better": 1.0, "better_low": 1.0, "better_high": 1.0}
    apart = of_aggregates([AGGREGATES[1], AGGREGATES[3], AGGREGATES[2] | ends], config)
    assert (apart["ReferenceBetter"], apart["ReferenceNoWidth"]) == (0, 1)
    one_seed = [row | dict.fromkeys(("better_low", "better_high")) for row in AGGREGATES]
    values = of_aggregates(one_seed, config)
    assert (values["ReferenceBetter"], values["ReferenceWorse"]) == ("", "") and values[
        "BestMethod"
    ] == "PWIL"
    alone = of_aggregates([AGGREGATES[1]], config)
    assert str(alone["ReferenceIqm"]) == "0.93 [0.83, 1.03]"
    assert (alone["ReferenceIqmByDemos"], alone["BestMethod"], alone["ReferenceBetter"]) == (
        "",
        "",
        "",
    )


def test_a_table_of_another_form_is_one_line() -> None:
    tables = {"claims_table": Table("Claims", {"claim": Column("claim")}, [{"claim": "a"}])}
    with pytest.raises(UserError, match=r"claims_table\.json: lacks column artefact; make the tab"):
        rows_of(tables, "claims_table")


def test_what_has_no_scores_is_said(poor_study: Callable[..., Any]) -> None:
    study = poor_study(envs=["Hopper-v4"], demos=[1])
    runs = read_keys(study.layout, study.config, study.table(), "figures")
    a = aggregate_table.collect(runs.rows, study.config, [])
    made = Item(TABLES["aggregate_table"], (), table=aggregate_table.table(a))
    text = macros(study.config, runs, [made])
    assert macro(text, "ReferenceIqm") == ""
    assert macro(text, "NoScores") == "no task of the main figure has scores"
    assert "(no scores there: the expert's mean return" in named(text, "says", "references")
