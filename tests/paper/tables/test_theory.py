"""The table of the theorems, whose verdicts follow only from numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paper import command
from paper.tables import theory
from paper.tables.theory import Statement, statements, table
from paper.theory.bounds import judge
from paper.theory.study import PAIRINGS, Study


def verdicts(s: Study) -> dict[str, str]:
    return {statement.key: statement.verdict for statement in statements(s)}


def test_verdicts(theory_numbers: Study) -> None:
    assert verdicts(theory_numbers) == {
        "duality": "false",
        "reached": "loose",
        "hlip": "false",
        "hlip_huber": "loose",
        "hlip_mse_softmax": "loose",
        "hlip_hl_gauss": "loose",
        "near_one": "loose",
        "spectral": "false",
        "orthogonal": "holds",
        "preserving": "false",
        "prior": "loose",
        "huber": "loose",
        "pair": "false",
        "pmax": "loose",
        "lemma": "false",
        "sigma": "false",
        "narrow": "false",
        "wide": "holds",
        "two_sided": "false",
        "corrected": "loose",
        "learned": "false",
    }


def test_other_numbers_give_other_verdicts(theory_numbers: Study) -> None:
    """Check that each verdict based on measured numbers changes with these numbers."""
    huber = theory_numbers.trainings["huber"]

    def changed(**changes: np.ndarray) -> dict[str, str]:
        t = replace(huber, **changes)
        return verdicts(replace(theory_numbers, trainings=dict.fromkeys(PAIRINGS, t)))

    assert changed(gradient=huber.product / 1.5)["hlip_huber"] == "holds"
    assert changed(gradient=huber.product * 1.1)["hlip_huber"] == "false"
    assert changed(gradient=np.full_like(huber.gradient, 0.7))["near_one"] == "holds"
    assert changed(gradient=np.full_like(huber.gradient, 1.2))["near_one"] == "false"
    assert changed(layer=np.ones_like(huber.layer))["spectral"] == "holds"
    emd = np.full_like(huber.dual, theory_numbers.emd)
    assert changed(dual=emd / 1.5)["reached"] == "holds"
    assert changed(dual=emd * 1.01)["reached"] == "false"
    peak = np.where(np.arange(len(emd)) < len(emd) - 1, emd / 1.5, emd / 3.0)
    assert changed(dual=peak)["reached"] == "loose", (
        "the value at the end of training must decide, not the best one"
    )
    layers = theory_numbers.layers
    for key, other in {
        "prior": replace(theory_numbers, layers=replace(layers, local=0.9)),
        "preserving": replace(theory_numbers, layers=replace(layers, least_gain=np.ones(3))),
        "hlip": replace(theory_numbers, twin=(1.5, 1.5)),
        "learned": replace(theory_numbers, one_law=0.0 * theory_numbers.one_law),
        "duality": replace(theory_numbers, far=(9.5, 9.5)),
        "pair": replace(theory_numbers, target_agent=3.0),
    }.items():
        assert verdicts(other)[key] == "holds", key
    moved = replace(layers, change=np.array([0.0, 0.1, 0.0]))
    assert verdicts(replace(theory_numbers, layers=moved))["orthogonal"] == "false"


def test_the_pair_shown_is_among_what_was_tried(theory_numbers: Study) -> None:
    for s in statements(theory_numbers):
        claimed, found = np.broadcast_arrays(s.claimed, s.found)
        assert ((claimed == s.pair[0]) & (found == s.pair[1])).any(), s.key
        if s.key != "near_one":  # the row shows the largest slope, but another makes it loose
            assert judge(s.pair[0], s.pair[1], s.relation, s.tolerance) == s.verdict, s.key


def test_a_statement_follows_the_rule() -> None:
    s = Statement("k", "t", "<=", [2.0, 1.0], [1.0, 1.0], "w", shown=(2.0, 1.0))
    assert s.verdict == "holds" and replace(s, found=[1.0, 1.1]).verdict == "false"
    assert s.row() == {
        "statement": "t",
        "source": 2.0,
        "ours": 1.0,
        "verdict": "holds",
        "why": "w",
    }


def test_forms(theory_numbers: Study) -> None:
    made = table(theory_numbers)
    assert len(made.rows) == 21
    assert made.tex().isascii()
    assert (
        "| Th. F.2 (rewloss): P(\\|L_n − L\\| ≥ ε) ≤ exp(−ε²n / (Λ diam)²) | 0.368 | 0.5 | false |"
        in (made.markdown())
    )
    (row,) = (r for r in made.rows if str(r["statement"]).startswith("Th. 4.2 (sigma): "))
    assert str(row["why"]).startswith("N = 2, σ = 0.5, t = −1, q on the other bin.")
    assert "11 % of the grid" in str(row["why"]) and "0.7 % (σ = 0.75)" in str(row["why"])


def test_command(
    theory_numbers: Study,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(theory, "study", lambda: theory_numbers)
    out = tmp_path / "t.csv"
    command.main(["theory_table", "--out", str(out)])
    assert capsys.readouterr().out == f"{table(theory_numbers).markdown()}\n{out}\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.json", "t.tex"]
