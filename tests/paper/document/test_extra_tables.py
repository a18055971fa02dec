"""Additional tables of the LaTeX report: the methods, from their docstrings, and the runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ngt.reward import Constant
from ngt.runs.keys import run_table
from ngt.runs.table import Runs, read_keys
from ngt.settings import load as loading
from ngt.settings import resolve as resolving
from paper.document import rewards
from paper.document.extra_tables import GAP, SETTINGS, extra_tables, methods_table, settings_tables
from paper.tables import settings


def test_methods_are_described_by_their_own_docstrings() -> None:
    config = loading.load({"scale": "paper"})
    rows = {row["method"]: row for row in methods_table(config).rows}
    plan = config.figures["main_figure"].methods
    assert list(rows) == [resolving.method_label(config, name) for name in plan]
    assert "frozen random prior" in str(rows["NGT"]["what"])
    assert "frozen random prior" not in str(rows["RED*"]["what"])
    assert (rows["BC"]["learned"], rows["BC"]["formed"]) == ("the policy", "never")
    assert rows["PWIL"]["formed"] == "when the step is taken"


def test_variants_say_how_they_differ_and_rewards_are_formulas() -> None:
    config = loading.load({"scale": "paper"})
    rows = {str(row["method"]): row for row in methods_table(config).rows}
    assert rows["BC(1)"]["what"] == "as BC, but with rate 1 instead of 20"
    forms = {
        str(rows[name]["what"]).partition(" but with ")[2] for name in rows if "DAC, R" in name
    }
    assert forms - {""} in ({"form logit instead of softplus"}, {"form softplus instead of logit"})
    formulas = [rows[name]["reward"] for name in ("DAC, R", "DAC, R+")]
    assert len(set(formulas)) == 2 and all(str(formula).startswith("$") for formula in formulas)
    assert rows["NGT"]["reward"] == rewards.formula("ngt.potential:Potential", {})


def test_each_method_of_the_suite_has_a_formula() -> None:
    config = loading.load({"scale": "paper"})
    for name in config.methods:
        path, params = resolving.model_params(config, name, "")
        assert rewards.formula(path, params), name
    assert rewards.formula("mine:Mine", {}) == ""


@pytest.mark.parametrize("scale", ["quick", "lite", "paper"])
def test_both_parts_of_the_settings_have_every_row_and_no_empty_column(scale: str) -> None:
    whole = settings.table(loading.load({"scale": scale}))
    parts = settings_tables(whole)
    first, second = parts.values()
    assert list(parts) == [SETTINGS, "variant_settings"]
    assert len(first.rows) + len(second.rows) == len(whole.rows)
    assert {"backbone", "expert", "ngt", "bc-full"} <= {row["method"] for row in first.rows}
    assert "printed" in first.columns and "printed" not in second.columns
    assert ("envs" in first.columns) is (scale != "quick"), "quick has one env"
    for part in parts.values():
        shown = [column for column in part.columns.values() if not column.group]
        width = sum(column.width or 0.0 for column in shown) + GAP * (len(shown) - 1)
        assert width == pytest.approx(1.0, abs=1e-3)
        for key in part.columns:
            assert {row[key] for row in part.rows} - {None, "all"}, key
    named = [str(row["method"]) for row in second.rows if row["method"]]
    assert len(named) == len(set(named)), "a method is named once, beside its first setting"
    assert {row["method"] for row in whole.rows} == {row["method"] for row in first.rows} | {*named}
    assert r"\textbf{backbone}" in first.tex() and r"\textbf{bc-full, like bc}" in first.tex()


def test_a_method_may_say_less(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(Constant):
        """A flat reward.

        More.
        """

    config = loading.load({"scale": "quick"})
    monkeypatch.setattr(resolving, "load_model", lambda path, where: Plain)
    monkeypatch.setattr(resolving, "model_params", lambda *args: ("plain:Plain", {}))
    plan = replace(config.figures["main_figure"], methods=("ngt",))
    (row,) = methods_table(replace(config, figures={"main_figure": plan})).rows
    assert row["what"] == "A flat reward" and row["reward"] is None


def test_tables_of_runs_appear_only_with_runs(
    make_study: Callable[..., Any], fill: Callable[..., None]
) -> None:
    study = make_study(methods=["ngt"], demos=[1])
    keys = run_table(study.config)
    statuses = read_keys(study.layout, study.config, keys, "", allow_partial=True).statuses
    assert set(extra_tables(study.config, Runs(None, statuses, {}))) == {
        "methods",
        "counts",
        "glance",
    }
    fill(study)
    found = extra_tables(study.config, read_keys(study.layout, study.config, keys, ""))
    assert set(found) == {"methods", "glance", "counts", "sources", "machines", "times"}
    known = {row["what"]: row["known"] for row in found["glance"].rows}
    assert known["Runs"] == "3: 3 finished" and known["Scale"] == "quick"
