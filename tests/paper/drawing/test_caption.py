"""Captions next to pictures, and pictures without the notes that captions repeat."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from paper.document import pictures
from paper.drawing import caption, style

NOTES = [style.Note("Bands: ± 1 standard deviation. " * 8), style.Note("PARTIAL: 1_2.", alert=True)]


@style.context()
def figure() -> Figure:
    made = style.new_figure(3.0, 1.5)
    made.subplots().plot([0, 1], [0, 1])
    style.footer(made, [Line2D([], [], label="a")], NOTES)
    return made


def height(pdf: Path) -> float:
    """Return a PDF's height in points."""
    found = re.search(rb"/MediaBox \[ *\S+ \S+ \S+ (\S+) *\]", pdf.read_bytes())
    assert found is not None
    return float(found[1])


def test_a_caption_has_title_warnings_and_notes(tmp_path: Path) -> None:
    words = caption.text(figure(), "A title.")
    assert words.startswith("A title. PARTIAL: 1_2. Bands: ± 1 standard")
    caption.save(words, tmp_path / "a.pdf", "drawn from 1")
    assert caption.read(tmp_path / "a.png") == words
    assert (tmp_path / "a.caption.md").read_text().endswith("<!-- drawn from 1 -->\n")
    latex = (tmp_path / "a.caption.tex").read_text()
    assert r"PARTIAL: 1\_2. Bands: \ensuremath{\pm}" in latex and "% drawn from 1" in latex
    assert caption.read(tmp_path / "b.png") == ""


def test_a_paper_s_pdf_has_no_notes_and_the_png_keeps_them(tmp_path: Path) -> None:
    whole, bare = tmp_path / "whole.pdf", tmp_path / "bare.pdf"
    style.save(figure(), whole, whole.with_suffix(".png"))
    style.save(figure(), bare, bare.with_suffix(".png"), notes=False)
    with Image.open(whole.with_suffix(".png")) as image:
        notes = int(image.info[style.HEIGHT_OF_NOTES])
    assert notes > 40
    assert abs(height(whole) - height(bare) - notes * 72 / 200) < 1
    assert bare.with_suffix(".png").read_bytes() == whole.with_suffix(".png").read_bytes()
    with Image.open(whole.with_suffix(".png")) as image:
        assert pictures._open(whole.with_suffix(".png")).height == image.height - notes
