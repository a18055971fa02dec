"""A table as CSV, JSON, Markdown and LaTeX."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import pandas as pd
import pytest

from paper.drawing import tex
from paper.drawing.table import Column, Table, from_json, markdown, save

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


def test_json_round_trip_but_for_what_is_not_finite() -> None:
    again = from_json(TABLE.json())
    assert again.csv().splitlines()[:3] == TABLE.csv().splitlines()[:3]
    assert again.rows[2]["score"] is None
    assert (again.caption, dict(again.columns), again.notes) == (
        TABLE.caption,
        dict(TABLE.columns),
        TABLE.notes,
    )


def test_every_form_carries_the_marks() -> None:
    """Check the marks in each format.

    The CSV has a column of marks. So it can be read without options, and each row keeps its marks.
    """
    assert next(csv.reader(io.StringIO(TABLE.csv()))) == [*TABLE.columns]
    marked = dataclasses.replace(TABLE, marks=["PARTIAL: 1 run.", "OTHER, too."])
    rows = list(csv.DictReader(io.StringIO(marked.csv())))
    assert [row["mark"] for row in rows] == ["PARTIAL: 1 run. OTHER, too."] * 3
    assert pd.read_csv(io.StringIO(marked.csv()))["runs"].tolist() == [4, 12, 0]
    for text in (marked.tex(), marked.markdown(), marked.json()):
        assert "PARTIAL: 1 run." in text and "OTHER, too." in text
    assert from_json(marked.json()).marks == tuple(marked.marks)
    rows_of_it = [dict(TABLE.rows[0])] * (tex.LINES_PER_PAGE + 1)
    assert "PARTIAL" in dataclasses.replace(marked, rows=rows_of_it).tex()


def test_a_csv_has_one_number_in_a_cell_and_ascii_minus_signs() -> None:
    columns = {"a": Column("a"), "each": Column("each", several=True)}
    made = Table("x", columns, [{"a": "−1", "each": [-0.125, None]}, {"a": -2.0, "each": None}])
    assert made.csv() == "a,each_1,each_2\n-1,-0.125,\n-2.0,,\n"
    assert made.markdown().splitlines()[2] == "| −1 | −0.12, – |"


def test_a_json_without_marks_is_read() -> None:
    """Read a table written by an earlier version, which had no marks."""
    data = json.loads(TABLE.json())
    del data["marks"]
    assert from_json(json.dumps(data)).marks == ()


def test_markdown_of_plain_rows() -> None:
    assert markdown([["a", "b"], ["x | y", "1"]]) == "| a | b |\n| --- | --- |\n| x \\| y | 1 |\n"


def test_a_row_of_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match=r"row 0 of 'x': columns \['b'\] do not match"):
        Table("x", {"a": Column("a")}, [{"a": 1, "b": 2}])


def test_save_writes_three_files(tmp_path: Path) -> None:
    save(TABLE, tmp_path / "t.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.json", "t.tex"]
    assert (tmp_path / "t.csv").read_text() == TABLE.csv()
