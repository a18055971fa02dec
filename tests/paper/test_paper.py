"""The report in LaTeX: its numbers, what a scale lacks, and the file where there is LaTeX."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from ngt.results import read_keys
from ngt.runs import run_table
from paper import paper, style, tables
from paper.artefacts import FIGURES, TABLES
from paper.tables import Column, Table

CLAIMS = Table(
    "Claims", {"claim": Column("claim"), "verdict": Column("verdict")},
    [{"claim": "a & b", "verdict": v} for v in
     ("reproduced", "not reproduced", "reproduced", "not run at this scale", "partly")],
)  # fmt: skip
AGGREGATES = Table(
    "Aggregates",
    {name: Column(name) for name in ("demos", "method", "iqm", "iqm_low", "iqm_high")},
    [
        {"demos": "all", "method": "DAC (R)", "iqm": 0.1, "iqm_low": 0.0, "iqm_high": 0.2},
        {"demos": "all", "method": "NGT", "iqm": 0.931, "iqm_low": 0.87, "iqm_high": 0.98},
        {"demos": "1", "method": "NGT", "iqm": 0.5, "iqm_low": 0.4, "iqm_high": 0.6},
    ],
)

THEORY = Table("Theory", {"verdict": Column("verdict")}, [{"verdict": "false"}])
GIVEN = {"claims_table": CLAIMS, "aggregate_table": AGGREGATES, "theory_table": THEORY}


def macro(text: str, name: str) -> str:
    found = re.search(rf"\\newcommand{{\\{name}}}{{(.*)}}\n", text)
    assert found is not None, name
    return found[1]


@pytest.fixture
def study(make_study: Callable[..., Any], fill: Callable[..., None]) -> Any:
    """A study with all runs, a picture for each figure, a table for each table."""
    made = make_study(methods=["ngt", "dac-r"], demos=[1])
    fill(made)
    root = made.layout.root
    for name in FIGURES:
        style.save(style.new_figure(3, 2), root / f"{name}.pdf")
    for name in TABLES:
        table = GIVEN.get(name)
        tables.save(
            table or Table(f"Caption of {name}", {"x": Column("x")}, [{"x": 1}], ("A note, 5%.",)),
            root / f"{name}.csv",
        )
    return made


def test_numbers_are_the_tables(study: Any) -> None:
    runs = read_keys(study.layout, study.config, run_table(study.config), "figures")
    found = {"claims_table": CLAIMS, "aggregate_table": AGGREGATES}
    text = paper.numbers(study.config, runs, found)
    assert macro(text, "Runs") == macro(text, "RunsFinished") == "6"
    assert macro(text, "RunsMissing") == "" and macro(text, "Window") == "3"
    assert macro(text, "NgtIqm") == "0.93 {[}0.87, 0.98]"
    counts = ("Claims", "ClaimsReproduced", "ClaimsNot", "ClaimsNotRun", "ClaimsOther")
    assert [macro(text, name) for name in counts] == ["5", "2", "1", "1", " (1 in part)"]
    assert r"\csname title@main_figure\endcsname" in text
    assert macro(paper.numbers(study.config, runs, {}), "NgtIqm") == "not known"


def test_the_text_has_no_number_of_its_own_and_knows_every_artefact() -> None:
    text = paper.MAIN.read_text()
    body = text.partition(r"\begin{document}")[2]
    assert re.findall(r"\d+\.\d+|\d{2,}|\d ?\\%", body) == []
    shown = re.findall(r"\\artefact(?:figure|table){(\w+)}", body)
    assert sorted(shown) == sorted([*FIGURES, *TABLES])
    used = set(re.findall(r"\\([A-Z][A-Za-z]+)", body))
    assert used <= {*re.findall(r'"([A-Z][A-Za-z]+)":', Path(paper.__file__).read_text())}


def test_what_is_not_there_is_named(study: Any, tmp_path: Path) -> None:
    (study.layout.root / "main_figure.pdf").unlink()
    folder = tmp_path / "build"
    folder.mkdir()
    with pytest.raises(UserError, match=r"main_figure\.pdf is not there; make it with `snakemake"):
        paper.gather(study.config, study.layout, folder, allow_partial=False)
    paper.gather(study.config, study.layout, folder, allow_partial=True)
    assert not (folder / "main_figure.pdf").exists() and (folder / "numbers.tex").exists()
    assert not (folder / "grid_figure.pdf").exists(), "the scale has none, whatever lies there"


def test_without_latex_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"latexmk is not installed, .*; on Debian"):
        paper.build(tmp_path)


latex = pytest.mark.skipif(shutil.which("latexmk") is None, reason="there is no LaTeX here")


@latex
@pytest.mark.slow
def test_the_file_is_made_and_the_same_each_time(study: Any, tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        paper.gather(study.config, study.layout, folder, allow_partial=False)
        made.append(paper.build(folder).read_bytes())
        log = (folder / "main.log").read_text(errors="replace")
        wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
        assert max(wide, default=0) < 20, "points that stick out"
        assert "undefined" not in log
    assert made[0][:5] == b"%PDF-" and made[0] == made[1]


@latex
def test_a_mistake_in_latex_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "main.tex").write_text(r"\documentclass{article}\begin{document}\nosuch\end")
    with pytest.raises(UserError, match="LaTeX: ! Undefined control sequence"):
        paper.build(tmp_path)
