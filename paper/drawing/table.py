"""A table and its forms: CSV for machines, LaTeX and Markdown for readers, JSON for the report."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ngt.files import atomic
from ngt.text import SETTABLE
from paper.words import show

PAGE = 50  # lines of rows that fit one
LINE = 110  # characters of a line of the text, in LaTeX's small
WIDE = 10  # columns that fit the text in LaTeX's small; more are set smaller

MARK = "mark"  # the CSV's column for a table's marks

Cell = str | int | float | None

# What LaTeX reads otherwise, or has no glyph for.
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "[": "{[}",  # after a row it would be an argument
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}", ">": r"\ensuremath{>}", "|": r"\textbar{}",
    "−": r"\ensuremath{-}", "±": r"\ensuremath{\pm}", "×": r"\ensuremath{\times}",
    "≤": r"\ensuremath{\leq}", "≥": r"\ensuremath{\geq}", "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\to}", "∞": r"\ensuremath{\infty}", "√": r"\ensuremath{\surd}",
    "·": r"\ensuremath{\cdot}", "∈": r"\ensuremath{\in}", "ε": r"\ensuremath{\varepsilon}",
    "ℓ": r"\ensuremath{\ell}", "∇": r"\ensuremath{\nabla}", "∂": r"\ensuremath{\partial}",
    "≪": r"\ensuremath{\ll}",
    "“": "``", "”": "''", "‘": "`", "’": "'", "†": r"\ensuremath{\dagger}",
    "–": "--", "—": "---", "…": r"\ldots{}", "°": r"\ensuremath{^\circ}",
    "÷": r"\ensuremath{\div}",
    "²": r"\textsuperscript{2}", "³": r"\textsuperscript{3}", "⁷": r"\textsuperscript{7}",
    "\u00a0": "~", "\n": " ",
}  # fmt: skip
_GREEK = (
    "alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
    "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "varphi", "chi", "psi", "omega",
    "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega",
)  # fmt: skip
_TEX |= {
    letter: rf"\ensuremath{{\{name}}}"
    for letter, name in zip("αβγδζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", _GREEK, strict=True)
}


@dataclass(frozen=True)
class Column:
    """A column: its heading, how its numbers are shown, its width in LaTeX where text wraps."""

    head: str  # may have line breaks, which LaTeX alone keeps
    number: str = "{:.2f}"  # of floats, for readers; the CSV has them whole
    width: float | None = None  # of the line, 0 to 1; None: as wide as its longest cell


@dataclass(frozen=True)
class Table:
    """Rows of cells by column key.

    notes: sentences below the table: scale, seeds, what an interval is. marks: sentences that warn
    of the rows themselves (runs are missing, settings differ); every form of the table carries
    them. Errors: a row with other keys than `columns` is a ValueError.
    """

    caption: str
    columns: Mapping[str, Column]
    rows: Sequence[Mapping[str, Cell]]
    notes: Sequence[str] = ()
    marks: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Every row has every column and no other."""
        for i, row in enumerate(self.rows):
            if set(row) != set(self.columns):
                odd = sorted(set(row) ^ set(self.columns))
                raise ValueError(f"row {i} of {self.caption!r}: columns {odd} do not match")

    def shown(self, row: Mapping[str, Cell]) -> list[str]:
        """A row as readers see it; an en dash where there is no value."""
        return [show(row[key], column.number) for key, column in self.columns.items()]

    @property
    def below(self) -> list[str]:
        """The sentences below the table."""
        return [*self.notes, *self.marks]

    def csv(self) -> str:
        """Keys as head, numbers whole, an empty cell for none.

        Where the table has marks, a last column MARK has them in every row.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        marked = [" ".join(self.marks)] if self.marks else []
        writer.writerow([*self.columns, *([MARK] if marked else [])])
        for row in self.rows:
            values = [*(row[key] for key in self.columns), *marked]
            writer.writerow([repr(float(v)) if isinstance(v, float) else v for v in values])
        return out.getvalue()

    def markdown(self) -> str:
        """For a terminal or a page."""
        heads = [c.head.replace("\n", " ") for c in self.columns.values()]
        lines = [heads, ["---"] * len(heads)]
        lines += [self.shown(row) for row in self.rows]
        escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
        text = [f"| {' | '.join(line)} |" for line in escaped]
        return "\n".join([*text, *(f"\n{note}" for note in self.below)]) + "\n"

    def tex(self) -> str:
        r"""A booktabs table with caption and notes, to be \input in a single column.

        Needs booktabs; array where a column has a width; longtable where rows fill over a PAGE.
        """
        size = r"\footnotesize" if len(self.columns) > WIDE else r"\small"
        if self._tex_lines() > PAGE:
            head = [r"\toprule", self._tex_head(), r"\midrule"]
            lines = [
                r"\begingroup\footnotesize\setlength{\tabcolsep}{3pt}",
                rf"\begin{{longtable}}{self._tex_columns()}",
                rf"{self._tex_caption(self.below)} \\",  # below the last page they'd be read last
                *head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot",
                *self._tex_rows(), r"\end{longtable}", r"\par\endgroup",
            ]  # fmt: skip
        else:
            lines = [
                r"\begin{table}[p]", rf"\centering{size}\setlength{{\tabcolsep}}{{3pt}}",
                self._tex_caption(), rf"\begin{{tabular}}{self._tex_columns()}", r"\toprule",
                self._tex_head(), r"\midrule", *self._tex_rows(), r"\bottomrule",
                r"\end{tabular}", *self._tex_notes(), r"\end{table}",
            ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def _tex_columns(self) -> str:
        sides = (
            rf">{{\raggedright\arraybackslash}}p{{{c.width:g}\linewidth}}" if c.width
            else "r" if self._numeric(key) else "l"
            for key, c in self.columns.items()
        )  # fmt: skip
        return f"{{@{{}}{''.join(sides)}@{{}}}}"

    def _tex_head(self) -> str:
        """Headings, their lines stacked where they have more than one and no width."""
        cells = []
        for key, column in self.columns.items():
            lines = [tex(line) for line in column.head.split("\n")]
            if column.width or len(lines) == 1:
                cells.append(" ".join(lines))
            else:
                side, stack = "r" if self._numeric(key) else "l", r"\\".join(lines)
                cells.append(rf"\shortstack[{side}]{{{stack}}}")
        return rf"{' & '.join(cells)} \\"

    def _tex_rows(self) -> list[str]:
        widths = [c.width for c in self.columns.values()]
        rows = (zip(self.shown(row), widths, strict=True) for row in self.rows)
        return [rf"{' & '.join(tex(c, wraps=w is not None) for c, w in row)} \\" for row in rows]

    def _tex_lines(self) -> int:
        """About how many lines the rows take."""
        widths = [c.width for c in self.columns.values()]
        lines = 0
        for row in self.rows:
            cells = zip(self.shown(row), widths, strict=True)
            lines += max(math.ceil(len(cell) / (w * LINE)) if w else 1 for cell, w in cells)
        return lines

    def _tex_caption(self, notes: Sequence[str] = ()) -> str:
        words = rf". \footnotesize {' '.join(tex(note) for note in notes)}" if notes else ""
        return rf"\caption{{{tex(self.caption.rstrip('.') if words else self.caption)}{words}}}"

    def _tex_notes(self) -> list[str]:
        words = " ".join(tex(note) for note in self.below)
        box = rf"\noindent\parbox[t]{{\linewidth}}{{\footnotesize {words}}}"
        return ["", r"\vspace{3pt}", box] if words else []

    def _numeric(self, key: str) -> bool:
        return all(not isinstance(row[key], str) for row in self.rows)

    def json(self, scale: str = "", stamp: str = "") -> str:
        """Everything, for other programs; what is not finite is null. scale: of its runs."""
        rows = [{k: None if _blank(v) else v for k, v in row.items()} for row in self.rows]
        columns = {key: dataclasses.asdict(column) for key, column in self.columns.items()}
        data = {"caption": self.caption, "columns": columns, "rows": rows}
        data |= {"notes": [*self.notes], "marks": [*self.marks], "scale": scale, "stamp": stamp}
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Table:
    """The table that `Table.json` wrote."""
    data: dict[str, Any] = json.loads(text)
    columns = {key: Column(**column) for key, column in data["columns"].items()}
    marks = data.get("marks", ())  # which tables of earlier versions have not
    return Table(data["caption"], columns, data["rows"], tuple(data["notes"]), tuple(marks))


def _blank(value: Cell) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def tex(text: str, wraps: bool = False) -> str:
    """Text as LaTeX shows it literally; wraps: dotted and joined names may be broken."""
    parts = re.split(r"(?<=[a-z][._:/])(?=[A-Za-z])", text) if wraps else [text]
    return r"\allowbreak{}".join(
        "".join(_tex_of(c, after) for c, after in itertools.pairwise([*part, ""])) for part in parts
    )


def _tex_of(character: str, after: str) -> str:
    """A character as LaTeX sets it; its code point if the paper's fonts lack it."""
    if character in "-'`" and character == after:  # LaTeX would join the two
        return character + "{}"
    known = character in SETTABLE
    return _TEX.get(character, character if known else f"U+{ord(character):04X}")


def save(table: Table, path: Path, scale: str = "", stamp: str = "") -> None:
    """Write <stem>.csv, .tex and .json beside each other, each atomically.

    JSON names the scale and carries the stamp that `paper.drawing.stamps` makes.
    """
    forms: dict[str, Callable[[], str]] = {
        ".csv": table.csv, ".tex": table.tex, ".json": partial(table.json, scale, stamp),
    }  # fmt: skip
    for ending, form in forms.items():
        with atomic(path.with_suffix(ending)) as temporary:
            temporary.write_text(form(), encoding="utf-8")
