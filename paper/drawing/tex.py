"""Functions that escape text for LaTeX and format tables in LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ngt.text import SETTABLE

if TYPE_CHECKING:
    from paper.drawing.table import Table

# The size of a page in lines and characters of LaTeX's font size \small. Tables of up to
# SMALL_COLUMNS columns use this font size.
LINES_PER_PAGE, CHARACTERS_PER_LINE, SMALL_COLUMNS = 50, 110, 10

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
MATHEMATICS = "<>−±×≤≥≈→∞√·∈∇∂≪ℓ†°÷αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
COMMANDS = re.findall(
    r"\S+",
    r"""
    < > - \pm \times \leq \geq \approx \to \infty \surd \cdot \in \nabla \partial \ll \ell \dagger
    ^\circ \div
    \alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi \pi
    \rho \sigma \tau \upsilon \varphi \chi \psi \omega
    \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega
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
    """Return how to write a character in LaTeX, or its code point if the fonts lack it."""
    character = match[0]
    if match[1]:  # the next character is the same, and LaTeX would join the two
        return character + "{}"
    unknown = f"U+{ord(character):04X}"
    return SPELLING.get(character, character if character in SETTABLE else unknown)


def format_table(table: Table) -> str:
    r"""Return a LaTeX table with caption and notes, for \input into a one-column document.

    The document needs the package booktabs. If a column has a width, it also needs array; if the
    rows fill more than a page, it also needs longtable.
    """
    rows, below = _rows(table), [*table.notes, *table.marks]
    if _count_lines(table) > LINES_PER_PAGE:
        head = [r"\toprule", _headings(table), r"\midrule"]
        # Put the notes after the caption; below the table, they would be on its last page.
        lines = [
            r"\begingroup\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{longtable}}{_alignment(table)}",
            rf"{_caption(table.caption, below)} \\",
            *(*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"),
            *(*rows, r"\end{longtable}", r"\par\endgroup"),
        ]
    else:
        size = r"\footnotesize" if len(table.columns) > SMALL_COLUMNS else r"\small"
        box = rf"\noindent\parbox[t]{{\linewidth}}{{\footnotesize {_sentences(below)}}}"
        lines = [
            *(r"\begin{table}[p]", rf"\centering{size}\setlength{{\tabcolsep}}{{3pt}}"),
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

    return f"{{@{{}}{''.join(map(side, table.columns))}@{{}}}}"


def _headings(table: Table) -> str:
    """Return the row of headings.

    A heading of several lines is stacked, unless its column has a width and so wraps by itself.
    """
    cells = []
    for key, column in table.columns.items():
        lines = [escape(line) for line in column.head.split("\n")]
        if column.width or len(lines) == 1:
            cells.append(" ".join(lines))
        else:
            side, stack = "r" if table.is_numeric(key) else "l", r"\\".join(lines)
            cells.append(rf"\shortstack[{side}]{{{stack}}}")
    return rf"{' & '.join(cells)} \\"


def _rows(table: Table) -> list[str]:
    widths = [column.width for column in table.columns.values()]
    return [
        " & ".join(
            escape(cell, breakable=width is not None)
            for cell, width in zip(table.shown(row), widths, strict=True)
        )
        + r" \\"
        for row in table.rows
    ]


def _count_lines(table: Table) -> int:
    """Return an estimate of the number of lines that the table's rows take."""
    widths = [column.width for column in table.columns.values()]
    return sum(
        max(
            math.ceil(len(cell) / (width * CHARACTERS_PER_LINE)) if width else 1
            for cell, width in zip(table.shown(row), widths, strict=True)
        )
        for row in table.rows
    )


def _caption(caption: str, notes: Sequence[str] = ()) -> str:
    words = rf". \footnotesize {_sentences(notes)}" if notes else ""
    return rf"\caption{{{escape(caption.rstrip('.') if words else caption)}{words}}}"


def _sentences(notes: Sequence[str]) -> str:
    return " ".join(map(escape, notes))
