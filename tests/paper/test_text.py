"""The characters that labels may contain, in figures, LaTeX, tables and pages."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from ngt.errors import UserError
from ngt.settings import load as loading
from ngt.text import SETTABLE
from paper.document import latex
from paper.drawing import labels, style
from paper.drawing.table import Column, Table
from paper.drawing.tex import escape


@style.context()
def test_the_figures_font_has_each_character_of_labels() -> None:
    figure = style.new_figure(6, 3)
    for character in sorted(SETTABLE - {"$"}):
        figure.text(0.5, 0.5, f"x{character}x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a missing glyph is a warning
        figure.canvas.draw()


@pytest.mark.skipif(bool(latex.lacking()), reason="LaTeX is not installed")
def test_latex_sets_each_character_of_labels(tmp_path: Path) -> None:
    text = " ".join([*sorted(SETTABLE), "--set", "''", "日"])
    head = [
        r"\documentclass{article}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage{mathptmx}",
        r"\usepackage{amsmath,amssymb}",
        r"\begin{document}",
    ]
    lines = [*head, escape(text), r"\end{document}"]
    (tmp_path / "main.tex").write_text("\n".join(lines), encoding="utf-8")
    assert latex.build(tmp_path, tmp_path / "log.txt").exists()


def test_latex_gets_no_character_that_it_lacks() -> None:
    assert escape("日") == "U+65E5"
    assert escape("a--b ''") == "a-{}-b '{}'"
    plain = "".join(SETTABLE) + "日Ж\u200b"
    assert set(escape(plain)) <= SETTABLE | {"~"}


@pytest.mark.parametrize("label", [r"$\foo$", "$x_{1$", r"NGT, $\frac{1}$"])
def test_mathematics_that_figures_cannot_set_is_one_line(label: str) -> None:
    config = loading.load({"scale": "test", "methods": {"ngt": {"label": label}}})
    with pytest.raises(UserError, match=r"methods\.ngt\.label: .* the mathematics in") as raised:
        labels.check(config)
    assert "\n" not in str(raised.value)


@style.context()
def test_mathematics_stays_whole_where_notes_wrap() -> None:
    figure = style.new_figure(3, 1)
    text = r"All lines are $\sigma _ { e }\ =\ 2$; the legend says which"
    lines = style.wrap(figure, text, 0.6, 7)
    assert len(lines) > 3 and all(line.count("$") % 2 == 0 for line in lines)
    assert " ".join(lines) == text


@style.context()
def test_labels_in_a_figures_legend_and_notes() -> None:
    from matplotlib.lines import Line2D

    figure = style.new_figure(3, 1)
    texts = [r"$\sigma_{e}$", "NGT {ours}", "5 % <b>", "_x"]
    names = "; ".join(text.replace(" ", "\u00a0") for text in texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        style.footer(figure, [Line2D([], [], label=text) for text in texts], [style.Note(names)])
        figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == texts


def test_a_table_has_a_label_in_every_form() -> None:
    label = r"NGT {ours}, $\sigma_{e}$ & 5 % of <b>"
    table = Table("T", {"a": Column("a")}, [{"a": label}])
    assert label in table.csv().replace('"', "") and label in table.markdown()
    assert r"NGT \{ours\}, \$" in table.tex() and r"\& 5 \% of \ensuremath{<}b" in table.tex()
