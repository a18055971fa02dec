"""LaTeX: repeated runs, and messages if LaTeX is missing or a document has an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ngt.errors import UserError
from paper.document import latex

needs_latex = pytest.mark.skipif(bool(latex.lacking()), reason="LaTeX is not installed")


def test_without_latex_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^pdflatex is not installed; on Debian: apt-get install "):
        latex.build(tmp_path, tmp_path / "log")


def fake(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a shell script as pdflatex."""
    (folder / "pdflatex").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "pdflatex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_it_runs_until_nothing_moves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Check that LaTeX runs again if a file changes, even if it keeps its size."""
    fake(tmp_path, "echo x >> runs; head -n 3 runs | wc -l > main.aux", monkeypatch)
    assert latex.build(tmp_path, tmp_path / "log") == tmp_path / "main.pdf"
    assert (tmp_path / "runs").read_text().count("x") == 4, (
        "three runs must differ, the fourth must equal the third"
    )
    fake(tmp_path, "echo x >> runs; wc -l < runs > main.aux", monkeypatch)
    with pytest.raises(UserError, match=r"^LaTeX: Page numbers still move after 6 runs; its log:"):
        latex.build(tmp_path, tmp_path / "log")


def test_a_bibliography_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = r"echo x >> runs; if [ -e main.bbl ]; then echo done > main.aux; else"
    fake(tmp_path, script + r" printf %s '\bibdata{references}' > main.aux; fi", monkeypatch)
    (tmp_path / "bibtex").write_text("#!/bin/sh\necho $1 >> main.bbl\n")
    (tmp_path / "bibtex").chmod(0o755)
    latex.build(tmp_path, tmp_path / "log")
    assert (tmp_path / "main.bbl").read_text() == "main\n"
    assert (tmp_path / "runs").read_text().count("x") == 3


def test_the_first_complaint_of_a_log() -> None:
    log = "(./main.tex\n! Undefined control sequence.\nl.7 \\nosuch\n\n! Emergency stop.\nl.9 x\n"
    assert latex.complaint(log) == "Undefined control sequence (l.7)"
    assert latex.complaint("! Emergency stop.\n") == "Emergency stop"
    absent = latex.complaint("! LaTeX Error: File `booktabs.sty' not found.\n\nl.4 \\usepackage\n")
    assert absent.startswith("LaTeX Error: File `booktabs.sty' not found (l.4); on Debian: apt-get")
    assert latex.complaint("killed") == "it failed, but its log has no error"


@needs_latex
def test_a_mistake_is_one_line_and_the_log_is_kept(tmp_path: Path) -> None:
    (tmp_path / "main.tex").write_text("\\documentclass{article}\n\\begin{document}\n\\nosuch\n")
    log = tmp_path / "results" / "logs" / "latex.log"
    with pytest.raises(UserError) as caught:
        latex.build(tmp_path, log)
    assert str(caught.value) == f"LaTeX: Undefined control sequence (l.3); its log: {log}"
    assert "This is pdfTeX" in log.read_text()
