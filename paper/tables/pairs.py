"""A table of P(A > B) for each pair of the main figure's methods (not in the paper)."""

import itertools
from collections.abc import Iterator

from ngt.runs.keys import Layout
from ngt.settings.config import Config
from ngt.settings.resolve import method_label
from paper.command import Made, Options, read
from paper.drawing.table import Cell, Column, Table
from paper.tables.aggregate import Aggregates, collect, notes

COLUMNS = {
    "a": Column("A"),
    "b": Column("B"),
    "better": Column("P(A > B)"),
    "low": Column("low"),
    "high": Column("high"),
}


def rows(a: Aggregates) -> Iterator[dict[str, Cell]]:
    """Yield one row for each pair of methods, in the config's order."""
    for pair in itertools.combinations(a.methods, 2):
        labels = (method_label(a.config, method) for method in pair)
        found = a.beats(*pair, a.scores) or [None] * 3
        yield dict(zip(COLUMNS, (*labels, *found), strict=True))


def table(a: Aggregates) -> Table:
    """Return the table of all pairs."""
    caption = (
        "The probability that a run of method A scores higher than one of method B on the same "
        "task, over all tasks, with its 95% interval (low, high)."
    )
    said, marks = (
        [n.text for n in notes(a, pairs=True) if n.alert == alert] for alert in (False, True)
    )
    said.append("P(B > A) is 1 − P(A > B), and its interval ends at 1 − high and 1 − low.")
    return Table(caption, COLUMNS, list(rows(a)), said, marks)


def make(config: Config, layout: Layout, options: Options) -> Made:
    """Read the runs of the main figure and make the table from them."""
    runs, absent = read(config, layout, options)
    return Made(table(collect(runs, config, absent)))
