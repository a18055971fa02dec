"""A table in four forms: CSV for programs, LaTeX and Markdown for readers, JSON for the report."""

import csv
import dataclasses
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ngt.files import atomic
from paper.drawing import tex
from paper.words import show

MARK = "mark"  # the name of the CSV column with a table's marks

Several = list[float | None]  # the numbers in a cell of a column with several per cell
Cell = str | int | float | Several | None


@dataclass(frozen=True)
class Column:
    """A column: its heading and the format of its cells.

    head: the heading. Only LaTeX keeps the line breaks in a heading.
    number: the format of floats. The CSV ignores this format and has floats at full precision.
    several: True if each cell is a list of numbers, with None for a missing number. The CSV then
    has one column per number; the other forms have all numbers in one cell.
    width: the column's width in LaTeX as a share of the line, 0 to 1. Cells wrap to this width. If
    the width is None, the column is as wide as its longest cell.
    latex: True if the cells are LaTeX already. Such a table has no other form.
    group: True if LaTeX shows the values of the column as a heading above the rows that share them.
    """

    head: str
    number: str = "{:.2f}"
    width: float | None = None
    several: bool = False
    latex: bool = False
    group: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a caption, notes and marks.

    columns: each column, by its key.
    rows: the rows, each a dict from column key to cell.
    notes: sentences below the table, for example about the settings, seeds and intervals.
    marks: warnings about the rows (missing runs, other settings), shown in every form of the table.

    Raise ValueError if the keys of a row differ from those of `columns`.
    """

    caption: str
    columns: Mapping[str, Column]
    rows: Sequence[Mapping[str, Cell]]
    notes: Sequence[str] = ()
    marks: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check that every row has a cell for every column, and no other cells."""
        for i, row in enumerate(self.rows):
            if set(row) != set(self.columns):
                odd = sorted(set(row) ^ set(self.columns))
                raise ValueError(f"row {i} of {self.caption!r}: columns {odd} do not match")

    def shown(self, row: Mapping[str, Cell]) -> list[str]:
        """Return a row as text for readers, with an en dash for a missing value."""
        return [_text(row[key], column.number) for key, column in self.columns.items()]

    def is_numeric(self, key: str) -> bool:
        """Return True if no cell of a column is text or has several numbers."""
        return not any(isinstance(row[key], str | list) for row in self.rows)

    def csv(self) -> str:
        """Return the table as CSV, with the column keys as headings.

        Numbers have full precision, minus signs are ASCII hyphens, and missing values are empty
        cells. A column with several numbers per cell becomes <key>_1, <key>_2 and so on. A table
        with marks has a last column MARK that repeats the marks in every row.
        """
        wide = {key: self._most(key) for key, column in self.columns.items() if column.several}
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        marked = [" ".join(self.marks)] if self.marks else []
        heads = [
            f"{key}_{i + 1}" if key in wide else key
            for key in self.columns
            for i in range(wide.get(key, 1))
        ]
        writer.writerow([*heads, *([MARK] if marked else [])])
        for row in self.rows:
            values: list[Cell] = []
            for key in self.columns:
                parts = _parts(row[key]) if key in wide else [row[key]]
                values += [*parts, *[None] * (wide.get(key, 1) - len(parts))]
            writer.writerow([_plain(value) for value in (*values, *marked)])
        return out.getvalue()

    def _most(self, key: str) -> int:
        """Return the maximum number of values in any cell of a column (at least 1)."""
        return max([1, *(len(_parts(row[key])) for row in self.rows)])

    def markdown(self) -> str:
        """Return the table as Markdown, followed by its notes and marks."""
        heads = [column.head.replace("\n", " ") for column in self.columns.values()]
        rows = [heads, *map(self.shown, self.rows)]
        return markdown(rows) + "".join(f"\n{note}\n" for note in (*self.notes, *self.marks))

    def tex(self) -> str:
        """Return the table as LaTeX, formatted by `paper.drawing.tex`."""
        return tex.format_table(self)

    def json(self, scale: str = "", stamp: str = "") -> str:
        """Return the whole table as JSON, with null for numbers that are not finite.

        scale: the name of the scale, i.e. of the group of settings, of the table's runs.
        stamp: the text with the hash of the table's inputs, from `paper.drawing.stamps`.
        """
        columns = {key: dataclasses.asdict(column) for key, column in self.columns.items()}
        rows = [{key: _finite(value) for key, value in row.items()} for row in self.rows]
        data = {"caption": self.caption, "columns": columns, "rows": rows}
        data |= {"notes": [*self.notes], "marks": [*self.marks], "scale": scale, "stamp": stamp}
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _parts(value: Cell) -> Several:
    """Return the numbers in a cell of a column with several numbers per cell."""
    return value if isinstance(value, list) else []


def _text(value: Cell, number: str) -> str:
    """Return a cell as text for readers."""
    if isinstance(value, list):
        return ", ".join(show(x, number) for x in value)
    return show(value, number)


def _plain(value: Cell) -> Cell:
    """Return a cell for the CSV: a float at full precision, or a text with ASCII minus signs."""
    if isinstance(value, float):
        return None if math.isnan(value) else repr(float(value))
    return value.replace("−", "-") if isinstance(value, str) else value


def _finite(value: Cell) -> Cell:
    if parts := _parts(value):
        return [None if x is None or not math.isfinite(x) else x for x in parts]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def markdown(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a Markdown table. The first row is the heading."""
    head, *rest = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rest))


def from_json(text: str) -> Table:
    """Read a table from the JSON that `Table.json` returned."""
    data: dict[str, Any] = json.loads(text)
    columns = {key: Column(**column) for key, column in data["columns"].items()}
    marks = data.get("marks", ())  # files of earlier versions have no marks
    return Table(data["caption"], columns, data["rows"], tuple(data["notes"]), tuple(marks))


def save(table: Table, path: Path, scale: str = "", stamp: str = "") -> None:
    """Write a table to <stem>.csv, <stem>.tex and <stem>.json, each atomically.

    path: the path of one of these files, with any ending.
    scale, stamp: the arguments of `Table.json`.
    """
    forms = {".csv": table.csv(), ".tex": table.tex(), ".json": table.json(scale, stamp)}
    for ending, form in forms.items():
        with atomic(path.with_suffix(ending)) as temporary:
            temporary.write_text(form, encoding="utf-8")
