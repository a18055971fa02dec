"""Functions that escape text for LaTeX and format tables in LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ngt.text import SETTABLE
from paper.words import show

if TYPE_CHECKING:
    from paper.drawing.table import Column, Table

# The size of a page, less a caption and notes, in lines and characters of LaTeX's font size \small.
# Tables of up to SMALL_COLUMNS columns use this font size.
LINES_PER_PAGE, CHARACTERS_PER_LINE, SMALL_COLUMNS = 40, 110, 10
WIDE_COLUMNS = 8  # tables with more columns have less space between them

TEXT = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "[": "{[}",  # at the start of a row, LaTeX would read "[" as an optional argument of "\\"
    **{character: rf"\{character}" for character in "&%$#_{}"},
    **{"“": "``", "”": "''", "‘": "`", "’": "'", "–": "--", "—": "---", "…": r"\ldots{}"},
    **{power: rf"\textsuperscript{{{digit}}}" for power, digit in zip("²³⁷", "237", strict=True)},
    **{"\u00a0": "~", "\n": " "},
}
# Characters that need LaTeX's mathematics mode, and their commands in the same order.
MATHEMATICS = "<>−±×≤≥≈→∞√·∈∇∂≪ℓ†°÷αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ↓↑"
COMMANDS = re.findall(
    r"\S+",
    r"""
    < > - \pm \times \leq \geq \approx \to \infty \surd \cdot \in \nabla \partial \ll \ell \dagger
    ^\circ \div
    \alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi \pi
    \rho \sigma \tau \upsilon \varphi \chi \psi \omega
    \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega
    \downarrow \uparrow
    """,
)
SPELLING = TEXT | {
    character: rf"\ensuremath{{{command}}}"
    for character, command in zip(MATHEMATICS, COMMANDS, strict=True)
}


def escape(text: str, breakable: bool = False) -> str:
    """Return text that LaTeX shows literally.

    breakable: allow line breaks inside names with dots, underscores, colons or slashes.
    """
    parts = re.split(r"(?<=[a-z][._:/])(?=[A-Za-z])", text) if breakable else [text]
    return r"\allowbreak{}".join(
        re.sub(r"([-'`])(?=\1)|.", _spelling, part, flags=re.DOTALL) for part in parts
    )


def _spelling(match: re.Match[str]) -> str:
    """Return the LaTeX code of a character, or its code point if the fonts lack it."""
    character = match[0]
    if match[1]:  # the next character is the same, and LaTeX would join the two
        return character + "{}"
    unknown = f"U+{ord(character):04X}"
    return SPELLING.get(character, character if character in SETTABLE else unknown)


def format_table(table: Table) -> str:
    r"""Return a LaTeX table with caption and notes, for \input into a one-column document.

    The document needs the package booktabs. It also needs the package array if a column has a
    width, longtable if the rows fill more than a page, and amssymb for the marks of curves that
    leave the axes.
    """
    rows, below = _rows(table), [*table.notes, *table.marks]
    space = rf"\setlength{{\tabcolsep}}{{{3 if len(_listed(table)) > WIDE_COLUMNS else 4}pt}}"
    if _count_lines(table) > LINES_PER_PAGE:
        head = [r"\toprule", _headings(table), r"\midrule"]
        # Below the table, the notes would be on its last page. In the caption, they could not
        # break across pages.
        lines = [
            rf"\begingroup\footnotesize{space}",
            *([rf"\medskip\noindent {_sentences(below)}", ""] if below else []),
            rf"\begin{{longtable}}{_alignment(table)}",
            rf"{_caption(table.caption)} \\",
            *(*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"),
            *(*rows, r"\end{longtable}", r"\par\endgroup"),
        ]
    else:
        size = r"\footnotesize" if len(_listed(table)) > SMALL_COLUMNS else r"\small"
        box = rf"\noindent\parbox[t]{{\linewidth}}{{\footnotesize {_sentences(below)}}}"
        lines = [
            *(r"\begin{table}", rf"\centering{size}{space}"),
            *(_caption(table.caption), rf"\begin{{tabular}}{_alignment(table)}"),
            *(r"\toprule", _headings(table), r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"),
            *(["", r"\vspace{3pt}", box] if below else []),
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _alignment(table: Table) -> str:
    def side(key: str) -> str:
        if width := table.columns[key].width:
            return rf">{{\raggedright\arraybackslash}}p{{{width:g}\linewidth}}"
        return "r" if table.is_numeric(key) else "l"

    return f"{{@{{}}{''.join(map(side, _listed(table)))}@{{}}}}"


def _listed(table: Table) -> dict[str, Column]:
    """Return the columns whose values are not shown in headings above groups of rows."""
    return {key: column for key, column in table.columns.items() if not column.group}


def _headings(table: Table) -> str:
    """Return the row of headings.

    A heading of several lines is stacked, unless its column has a width and so wraps by itself.
    """
    cells = []
    for key, column in _listed(table).items():
        lines = [escape(line) for line in column.head.split("\n")]
        if column.width or len(lines) == 1:
            cells.append(" ".join(lines))
        else:
            side, stack = "r" if table.is_numeric(key) else "l", r"\\".join(lines)
            cells.append(rf"\shortstack[{side}]{{{stack}}}")
    return rf"{' & '.join(cells)} \\"


def _rows(table: Table) -> list[str]:
    """Return the rows, with a heading above each group of rows."""
    listed = _listed(table)
    lines: list[str] = []
    for shown, heading in _grouped(table):
        if heading:
            if lines:
                lines.append(r"\addlinespace")
            lines.append(rf"\multicolumn{{{len(listed)}}}{{@{{}}l@{{}}}}{{{heading}}} \\*")
        cells = (
            shown[key] if column.latex else escape(shown[key], breakable=column.width is not None)
            for key, column in listed.items()
        )
        lines.append(" & ".join(cells) + r" \\")
    return lines


def _grouped(table: Table) -> Iterator[tuple[dict[str, str], str]]:
    """Yield each row's cells, with the heading of its group if the row is the group's first."""
    before = ""
    for row in table.rows:
        shown = dict(zip(table.columns, table.shown(row), strict=True))
        heading = _group(table, shown)
        yield shown, heading if heading != before else ""
        before = heading


def _group(table: Table, shown: Mapping[str, str]) -> str:
    """Return the heading of the group to which a row belongs, empty if the table has no groups."""
    first, *rest = [key for key, column in table.columns.items() if column.group] or [""]
    known = (key for key in rest if shown[key] != show(None))
    more = (f"{table.columns[key].head} {shown[key]}" for key in known)
    words = escape(", ".join([shown.get(first, ""), *more]))
    return rf"\textbf{{{words}}}" if first else ""


def _count_lines(table: Table) -> int:
    """Return an estimate of the number of lines that the table's rows take."""
    columns = _listed(table).items()
    return sum(
        bool(heading)
        + max(
            math.ceil(len(shown[key]) / (column.width * CHARACTERS_PER_LINE)) if column.width else 1
            for key, column in columns
        )
        for shown, heading in _grouped(table)
    )


def _caption(caption: str) -> str:
    return rf"\caption{{{escape(caption)}}}"


def _sentences(notes: Sequence[str]) -> str:
    return " ".join(map(escape, notes))
