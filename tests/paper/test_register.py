"""The register of figures and tables, compared with docs/artefacts.md and the config."""

from __future__ import annotations

import re
from pathlib import Path

from ngt.settings.load import load
from paper.figures.curves import CURVE_FIGURES
from paper.register import ARTEFACTS, CURVES, FIGURES, PAPER, REPORT, TABLES
from paper.source import cite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "artefacts.md"
SCALES = ("test", "quick", "lite", "paper")


def rows() -> dict[str, str]:
    """Return the source of each artefact, as docs/artefacts.md lists it."""
    lines = (re.split(r"\s*\|\s*", line) for line in PAGE.read_text().splitlines())
    found = {}
    for _, names, source, *_ in (line for line in lines if len(line) == 6 and "`" in line[1]):
        each = re.findall(r"`(\w+)", names)
        sources = source.split(", ") if ", " in source else [source] * len(each)
        found |= dict(zip(each, sources, strict=True))
    return found


def test_the_page_has_every_artefact_with_its_source() -> None:
    assert rows() == {name: cite(a.source) or "–" for name, a in ARTEFACTS.items()}


def test_every_figure_of_curves_is_described_once() -> None:
    assert set(CURVES) == set(CURVE_FIGURES)
    assert all(name == figure.name for name, figure in CURVE_FIGURES.items())


def test_every_entry_of_the_config_is_shown() -> None:
    shown = {run for a in ARTEFACTS.values() if not a.everything for run in a.runs}
    entries = {scale: set(load({"scale": scale}).figures) for scale in SCALES}
    assert shown == set().union(*entries.values())
    assert shown - entries["paper"] == {"humanoid_figure"}, "lite alone has it"


def test_files_are_named_after_their_artefacts() -> None:
    assert (REPORT.file, PAPER.file) == ("report.html", "paper.pdf")
    files = [artefact.file for artefact in (*FIGURES.values(), *TABLES.values())]
    assert files == [f"{n}.pdf" for n in FIGURES] + [f"{n}.csv" for n in TABLES]
