"""The generated part of docs/theory.md, which must match the command's output."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from paper import pages
from paper.handbook import theory
from paper.theory.study import Study, study

PAGE = Path(__file__).resolve().parents[3] / "docs" / "theory.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def test_counter_examples_by_hand(theory_numbers: Study) -> None:
    text = " ".join(theory.by_hand(theory_numbers).split())
    for part in (
        "P(|L_n − L| ≥ 1) = 0.5, more than exp(−1) = 0.368",
        "2 exp(−1) = 0.736",
        "√2 · 0.9546 = 1.350",
        "= 1.279",
        "distance (EMD) is 100",
        "−L ≤ 9.5",
        "2/√m = 0.35",
    ):
        assert part in text


def test_command(
    theory_numbers: Study,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(theory, "study", lambda: theory_numbers)
    part = theory.page(theory_numbers)
    theory.main([])
    assert capsys.readouterr().out == part
    page = tmp_path / "page.md"
    begin, end = pages.markers(theory.NAME)
    page.write_text(f"head\n{begin}{end}tail\n")
    theory.main(["--into", str(page)])
    assert page.read_text() == f"head\n{begin}{part}{end}tail\n"
    with pytest.raises(SystemExit) as stop:
        theory.main(["--into", str(tmp_path / "none.md")])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("handbook.theory: error: --into: ") and err.count("\n") == 1


@pytest.mark.long
def test_the_page_shows_what_is_computed() -> None:
    """Compare words exactly and numbers to 5 %.

    On another machine, rounding may change the numbers after training by that much.
    """
    numbers = study()
    _, part, _ = pages.between(PAGE.read_text(), str(PAGE), theory.NAME)
    new = theory.page(numbers)
    remedy = "run: python -m paper.handbook.theory --into docs/theory.md"
    assert NUMBER.sub("#", part) == NUMBER.sub("#", new), remedy
    shown, found = (np.array(NUMBER.findall(text), float) for text in (part, new))
    np.testing.assert_allclose(shown, found, rtol=0.05, atol=0.011, err_msg=remedy)
    last = {pairing: t.gradient[-1] for pairing, t in numbers.trainings.items()}
    assert max(last.values()) < 1.0, "the page's last paragraph claims this"
