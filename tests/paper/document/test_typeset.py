"""The LaTeX report: its text, missing figures and tables, and its PDF if LaTeX is installed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ngt.errors import UserError
from paper import command
from paper.document import latex, macros
from paper.document import typeset as paper
from paper.drawing import style
from paper.drawing.table import Column, Table, save
from paper.register import FIGURES, TABLES

needs_latex = pytest.mark.skipif(bool(latex.lacking()), reason="LaTeX is not installed")
BODY = paper.MAIN.read_text().partition(r"\begin{document}")[2]


@pytest.fixture
def study(
    make_study: Callable[..., Any], fill: Callable[..., None], make_artefacts: Callable[..., None]
) -> Any:
    """Return a small study with all runs, and a file for each figure and each table."""
    made = make_study(methods=["ngt", "dac-r"], demos=[1])
    fill(made)
    make_artefacts(made)
    for name, keys in macros.COLUMNS.items():
        row = {key: "reproduced" if key == "verdict" else None for key in keys}
        made_table = Table(f"Caption of {name}, 5 %", {k: Column(k) for k in keys}, [row])
        save(made_table, made.layout.root / f"{name}.csv", made.config.scale)
    for i, figure in enumerate(a for a in FIGURES.values() if a.at(made.config)):
        out = made.layout.root / f"{figure.name}.pdf"
        style.save(style.new_figure(2 + 2 * i, 2), out, scale=made.config.scale)
    return made


def test_no_number_is_typed_in_the_text() -> None:
    math = r"\$[^$]*\$|\\begin{(equation|align)}.*?\\end{\1}"
    lengths = r"\[[^\]]*\]"
    text = re.sub(f"{math}|{lengths}", "", BODY, flags=re.DOTALL)
    assert len(text) > 5_000
    assert re.findall(r".{0,20}\d.{0,20}", text) == []
    in_math = "".join(m[0] for m in re.finditer(math, BODY, flags=re.DOTALL))
    numbers = re.sub(r"\\t?frac\{1\}\{[2m]\}|\^2|k\+1", "", in_math)
    assert re.findall(r"\d", numbers) == [], "only one half, 1/m, squares and indices are allowed"


def test_the_text_knows_every_artefact_and_every_macro(study: Any, tmp_path: Path) -> None:
    shown = re.findall(r"\\artefact(?:figure|table){(\w+)}", BODY)
    assert sorted(shown) == sorted([*FIGURES, *TABLES])
    paper.gather(study.config, study.layout, tmp_path, allow_partial=False)
    numbers = (tmp_path / "macros.tex").read_text()
    defined = set(re.findall(r"\\newcommand\*{\\(\w+)}", numbers))
    used = set(re.findall(r"\\([A-Z][A-Za-z]+)\b", BODY)) - {"Bigl", "Bigr", "Phi"}
    assert used == defined, "the text must use exactly the macros that exist"
    said = set(re.findall(r"\\of{says}{(\w+)}", BODY))
    assert said <= set(re.findall(r"says@(\w+)", numbers))
    extra = set(re.findall(r"\\extratable{(\w+)}", BODY))
    assert extra == {path.stem for path in tmp_path.glob("*.tex")} - {"main", "macros", *TABLES}


def test_what_is_missing_is_named(study: Any, tmp_path: Path) -> None:
    (study.layout.root / "main_figure.pdf").unlink()
    with pytest.raises(UserError, match=r"main_figure\.pdf is missing; make it with `snakemake"):
        paper.gather(study.config, study.layout, tmp_path, allow_partial=False)
    (study.layout.root / "grid_figure.pdf").touch()
    paper.gather(study.config, study.layout, tmp_path, allow_partial=True)
    assert not (tmp_path / "main_figure.pdf").exists()
    assert not (tmp_path / "grid_figure.pdf").exists(), (
        "the scale lacks this figure, although a file exists"
    )
    numbers = (tmp_path / "macros.tex").read_text().replace(r"\allowbreak{}", "")
    assert r"main\_figure.pdf is missing" in numbers


def test_without_latex_the_command_is_one_line(
    study: Any,
    as_scale: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    as_scale(study)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as caught:
        command.main(["paper"])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("paper: error: pdflatex is not installed; on Debian: apt-get")


@needs_latex
@pytest.mark.slow
def test_the_file_is_made_and_the_same_each_time(
    study: Any, as_scale: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    as_scale(study)
    made = []
    for name in ("a.pdf", "b.pdf"):
        command.main(["paper", "--results", str(study.layout.root), "--out", str(tmp_path / name)])
        assert capsys.readouterr().out == f"{tmp_path / name}\n"
        made.append((tmp_path / name).read_bytes())
    assert made[0][:5] == b"%PDF-" and made[0] == made[1]


@needs_latex
@pytest.mark.slow
def test_nothing_sticks_out_and_no_reference_is_lost(study: Any, tmp_path: Path) -> None:
    (study.layout.root / "method_diagram.pdf").unlink()
    (study.layout.root / "claims_table.json").unlink()
    paper.gather(study.config, study.layout, tmp_path, allow_partial=True)
    latex.build(tmp_path, tmp_path / "kept.log")
    log = (tmp_path / "main.log").read_text(errors="replace")
    assert re.findall(r"Overfull.*|.*undefined.*|Missing character.*", log) == []
