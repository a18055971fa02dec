"""What was found, in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ngt.runs.keys import run_table
from ngt.runs.table import read_keys
from paper.document.findings import sentences
from paper.drawing.table import Cell

Make = Callable[..., Any]
NAN = float("nan")


def row(method: str, iqm: float, better: tuple[float | None, float, float]) -> dict[str, Cell]:
    ends = dict(zip(("better", "better_low", "better_high"), better, strict=True))
    value = {"iqm": iqm, "iqm_low": 0.1, "iqm_high": 0.9}
    return {"demos": "all", "method": method, "tasks": 1, **value, **ends}


ROWS = [
    row("NGT", 0.8, (None, NAN, NAN)),
    row("DAC (R)", 0.9, (0.4, 0.2, 0.6)),
    row("BC", 0.1, (0.9, 0.8, 1.0)),
    row("PWIL", 0.2, (0.1, 0.0, 0.3)),
    row("RED", 0.2, (0.9, NAN, NAN)),
    row("W-DAC", 0.05, (1.0, 1.0, 1.0)),
]
CLAIMS: list[dict[str, Cell]] = [
    {"verdict": "reproduced", "tendency": "agrees", "artefact": "main_figure"},
    {"verdict": "not published", "tendency": "contradicts", "artefact": "main_figure"},
    {"verdict": "not run at this scale", "tendency": "agrees", "artefact": "speed_table"},
]


@pytest.fixture
def said(make_study: Make, fill: Make) -> Callable[..., str]:
    def say(skip: int, *given: Any) -> str:
        study = make_study(methods=["ngt", "bc"], demos=[1, 4], seeds=[0, 1])
        fill(study, skip=study.table()[:skip])
        keys = run_table(study.config)
        runs = read_keys(study.layout, study.config, keys, "figures", allow_partial=True)
        return " ".join(sentences(study.config, runs, *given))

    return say


def test_sentences_name_ranks_pairs_claims_and_gaps(said: Callable[..., str]) -> None:
    text = said(5, ROWS, CLAIMS, 2)
    for part in (
        "3 of 8 runs of scale quick are drawn. The main figure has 8: 2 methods on Pendulum-v1 "
        "with 1 and 4 demonstrations and 2 seeds. 3 of them are drawn: 1 method on Pendulum-v1 "
        "with 1 and 4 demonstrations. A run takes",
        "This is not the paper's experiment. Of the paper's envs, Ant-v4, HalfCheetah-v4, ",
        "and Walker2d-v4 have no runs here. A run of the paper takes 10,000,000 env steps",
        "score over 1 of the 2 tasks of the main figure is 0.80",
        "number 2 of 6 methods. Higher: DAC (R) 0.90 [0.10, 0.90]. Lower: PWIL 0.20 [0.10, 0.90], "
        "RED 0.20 [0.10, 0.90], BC 0.10 [0.10, 0.90], W-DAC 0.05 [0.10, 0.90].",
        "is above 0.5 for BC (0.90 [0.80, 1.00]); below 0.5 for PWIL (0.10 [0.00, 0.30]); not told "
        "apart from 0.5 for DAC (R) (0.40 [0.20, 0.60]), RED (0.90). The interval has no "
        "width, and so does not show how certain the order is, for W-DAC (1.00 [1.00, 1.00]). This "
        "happens if, on each task, all runs of one method score higher than all runs of the other. "
        "With 2 seeds, a nominal 95% interval covers the true probability of improvement in about "
        "47% of cases (normal scores)",
        "Of the paper's 2 claims on imitation, 1 has a verdict, “reproduced” for 1.",
        "agree with 1 claim, contradict 1, and say nothing on 0.",
        "Runs missing: 5. Figures or tables missing: 2.",
    ):
        assert part in text
    assert "over 6 tasks" not in text, "the aggregates rest on one task"
    assert "Hopper-v4" not in text, "the paper does not list it"


def test_without_tables_only_the_runs_are_counted(said: Callable[..., str]) -> None:
    text = said(0, [], [], 0)
    assert "no aggregate over tasks of NGT" in text and "Every run, figure and table" in text
    assert "claims" not in text and "above 0.5" not in text
