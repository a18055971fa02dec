"""Tables in LaTeX."""

from __future__ import annotations

from paper.drawing import tex
from paper.drawing.table import Column, Table

TABLE = Table(
    "A & B, 95%",
    {"method": Column("method"), "score": Column("score", "{:.1f}"), "runs": Column("runs")},
    [
        {"method": "DAC_R | x", "score": -0.123456789012345678, "runs": 4},
        {"method": "σ ≤ 1", "score": None, "runs": 12},
    ],
)


def test_tex_escapes_and_aligns() -> None:
    text = TABLE.tex()
    assert r"\caption{A \& B, 95\%}" in text
    assert r"\begin{tabular}{@{}lrr@{}}" in text
    assert r"DAC\_R \textbar{} x & \ensuremath{-}0.1 & 4 \\" in text
    assert r"\ensuremath{\sigma} \ensuremath{\leq} 1 & -- & 12 \\" in text
    assert text.isascii()
    greek = Table("αβγδε λμ ΓΔΩ", {"a": Column("a")}, [{"a": 1}]).tex()
    assert r"\ensuremath{\downarrow} 1 cut" in Table("↓ 1 cut", {"a": Column("a")}, []).tex()
    assert greek.isascii() and r"\ensuremath{\lambda}\ensuremath{\mu}" in greek


def test_tex_of_a_wide_or_long_table() -> None:
    columns = {"a": Column("one\ntwo"), "b": Column("b\nc", width=0.2), "n": Column("n\n(s)")}
    row = {"a": "[x]", "b": "sac.tau_b 0.5 a/b", "n": 1}
    short = Table("T", columns, [row] * tex.LINES_PER_PAGE).tex()
    assert r"{@{}l>{\raggedright\arraybackslash}p{0.2\linewidth}r@{}}" in short
    assert r"\shortstack[l]{one\\two} & b c & \shortstack[r]{n\\(s)} \\" in short
    names = r"sac.\allowbreak{}tau\_\allowbreak{}b 0.5 a/\allowbreak{}b"
    assert rf"{{[}}x] & {names} & 1 \\" in short, (
        "without braces, LaTeX reads the bracket as an argument of the previous row"
    )
    long = Table("T", columns, [row] * (tex.LINES_PER_PAGE + 1), notes=("N.",)).tex()
    for text, part in ((short, "table"), (long, "longtable")):
        assert text.count(rf"\begin{{{part}}}") == text.count(rf"\end{{{part}}}") == 1
        assert text.count(r"\begin{") == text.count(r"\end{")
    assert long.count(names) == tex.LINES_PER_PAGE + 1 and long.count(r"\shortstack[l]") == 2
    assert r"\begin{tabular}" not in long
    assert long.index("N.") < long.index(r"\begin{longtable}"), "notes must break across pages"
    assert Table("T", columns, [row]).markdown().startswith("| one two | b c | n (s) |")


def test_cells_that_wrap_fill_a_page_sooner() -> None:
    columns = {"a": Column("a", width=0.5), "b": Column("b")}
    row = {"a": "x" * tex.CHARACTERS_PER_LINE, "b": "short"}  # column a wraps to two lines
    rows = [row] * (tex.LINES_PER_PAGE // 2)
    assert r"\begin{table}" in Table("T", columns, rows).tex()
    assert r"\begin{longtable}" in Table("T", columns, [*rows, rows[0]]).tex()


def test_a_group_of_rows_has_a_heading_instead_of_a_column() -> None:
    columns = {
        "method": Column("method", group=True),
        "like": Column("like", group=True),
        "n": Column("n"),
        "sum": Column("sum", latex=True),
    }
    rows = [{"method": m, "like": "b_c", "n": n, "sum": "$n^2$"} for n, m in enumerate("xxy")]
    text = Table("T", columns, rows).tex()
    assert r"\begin{tabular}{@{}rl@{}}" in text and "n & sum" in text
    first, second = (
        rf"\multicolumn{{2}}{{@{{}}l@{{}}}}{{\textbf{{{m}, like b\_c}}}}" for m in "xy"
    )
    assert text.count(first) == text.count(second) == 1
    assert text.index("1 & $n^2$") < text.index(r"\addlinespace") < text.index(second)
