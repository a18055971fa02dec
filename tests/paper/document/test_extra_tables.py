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
from paper.document.extra_tables import extra_tables, methods_table


def test_methods_are_described_by_their_own_docstrings() -> None:
    config = loading.load({"scale": "paper"})
    rows = {row["method"]: row for row in methods_table(config).rows}
    plan = config.figures["main_figure"].methods
    assert list(rows) == [resolving.method_label(config, name) for name in plan]
    assert "frozen random prior" in str(rows["NGT"]["what"])
    assert str(rows["NGT"]["reward"]).startswith("exp(-h)")
    assert (rows["BC"]["learned"], rows["BC"]["formed"]) == ("the policy", "never")
    assert rows["PWIL"]["formed"] == "when the step is taken"


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
