"""Forms of a table."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import pandas as pd
import pytest

from paper.drawing import table as tables
from paper.drawing.table import Column, Table

TABLE = Table(
    "A & B, 95%",
    {"method": Column("method"), "score": Column("score", "{:.1f}"), "runs": Column("runs")},
    [
        {"method": "DAC_R | x", "score": -0.123456789012345678, "runs": 4},
        {"method": "σ ≤ 1", "score": None, "runs": 12},
        {"method": "nan", "score": float("nan"), "runs": 0},
    ],
    notes=("Scale test.",),
)


def test_csv_keeps_numbers_whole() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert float(rows[0]["score"]) == -0.123456789012345678
    assert rows[0]["method"] == "DAC_R | x" and rows[1]["score"] == "" and rows[1]["runs"] == "12"


def test_markdown_shows_rounded_numbers_and_dashes() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "| method | score | runs |"
    assert lines[2] == r"| DAC_R \| x | −0.1 | 4 |"
    assert lines[3] == "| σ ≤ 1 | – | 12 |" and lines[4] == "| nan | – | 0 |"
    assert lines[-1] == "Scale test."


def test_tex_escapes_and_aligns() -> None:
    text = TABLE.tex()
    assert r"\caption{A \& B, 95\%}" in text
    assert r"\begin{tabular}{@{}lrr@{}}" in text
    assert r"DAC\_R \textbar{} x & \ensuremath{-}0.1 & 4 \\" in text
    assert r"\ensuremath{\sigma} \ensuremath{\leq} 1 & -- & 12 \\" in text
    assert text.isascii()
    greek = Table("αβγδε λμ ΓΔΩ", {"a": Column("a")}, [{"a": 1}]).tex()
    assert greek.isascii() and r"\ensuremath{\lambda}\ensuremath{\mu}" in greek


def test_tex_of_a_wide_or_long_table() -> None:
    columns = {"a": Column("one\ntwo"), "b": Column("b\nc", width=0.2), "n": Column("n\n(s)")}
    row = {"a": "[x]", "b": "sac.tau_b 0.5 a/b", "n": 1}
    short = Table("T", columns, [row] * tables.PAGE).tex()
    assert r"{@{}l>{\raggedright\arraybackslash}p{0.2\linewidth}r@{}}" in short
    assert r"\shortstack[l]{one\\two} & b c & \shortstack[r]{n\\(s)} \\" in short
    names = r"sac.\allowbreak{}tau\_\allowbreak{}b 0.5 a/\allowbreak{}b"
    assert rf"{{[}}x] & {names} & 1 \\" in short, "a bracket would be the row before's argument"
    long = Table("T", columns, [row] * (tables.PAGE + 1), notes=("N.",)).tex()
    for text, part in ((short, "table"), (long, "longtable")):
        assert text.count(rf"\begin{{{part}}}") == text.count(rf"\end{{{part}}}") == 1
        assert text.count(r"\begin{") == text.count(r"\end{")
    assert long.count(names) == tables.PAGE + 1 and long.count(r"\shortstack[l]") == 2
    assert r"\begin{tabular}" not in long and "N." in long
    assert Table("T", columns, [row]).markdown().startswith("| one two | b c | n (s) |")


def test_cells_that_wrap_fill_a_page_sooner() -> None:
    columns = {"a": Column("a", width=0.5), "b": Column("b")}
    rows = [{"a": "x" * tables.LINE, "b": "short"}] * (tables.PAGE // 2)  # two lines each
    assert r"\begin{table}" in Table("T", columns, rows).tex()
    assert r"\begin{longtable}" in Table("T", columns, [*rows, rows[0]]).tex()


def test_json_round_trip_but_for_what_is_not_finite() -> None:
    again = tables.from_json(TABLE.json())
    assert again.csv().splitlines()[:3] == TABLE.csv().splitlines()[:3]
    assert again.rows[2]["score"] is None
    assert (again.caption, dict(again.columns), again.notes) == (
        TABLE.caption, dict(TABLE.columns), TABLE.notes,
    )  # fmt: skip


def test_every_form_carries_the_marks() -> None:
    """The CSV in a column, so that readers of it need no option and a row alone keeps it."""
    assert next(csv.reader(io.StringIO(TABLE.csv()))) == [*TABLE.columns]
    marked = dataclasses.replace(TABLE, marks=["PARTIAL: 1 run.", "OTHER, too."])
    rows = list(csv.DictReader(io.StringIO(marked.csv())))
    assert [row["mark"] for row in rows] == ["PARTIAL: 1 run. OTHER, too."] * 3
    assert pd.read_csv(io.StringIO(marked.csv()))["runs"].tolist() == [4, 12, 0]
    for text in (marked.tex(), marked.markdown(), marked.json()):
        assert "PARTIAL: 1 run." in text and "OTHER, too." in text
    assert tables.from_json(marked.json()).marks == tuple(marked.marks)
    rows_of_it = [dict(TABLE.rows[0])] * (tables.PAGE + 1)
    assert "PARTIAL" in dataclasses.replace(marked, rows=rows_of_it).tex()


def test_a_json_without_marks_is_read() -> None:
    """Tables of earlier versions have none."""
    data = json.loads(TABLE.json())
    del data["marks"]
    assert tables.from_json(json.dumps(data)).marks == ()


def test_a_row_of_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match=r"row 0 of 'x': columns \['b'\] do not match"):
        Table("x", {"a": Column("a")}, [{"a": 1, "b": 2}])


def test_save_writes_three_files(tmp_path: Path) -> None:
    tables.save(TABLE, tmp_path / "t.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.json", "t.tex"]
    assert (tmp_path / "t.csv").read_text() == TABLE.csv()
