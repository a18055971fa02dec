"""A scale's results as a LaTeX report, results/paper.pdf. All its numbers are computed."""

import shutil
import tempfile
from pathlib import Path

from ngt.errors import UserError
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import read_keys
from ngt.settings.config import Config
from paper import command
from paper.document import latex, report
from paper.document.extra_tables import extra_tables
from paper.document.macros import macros
from paper.drawing import stamps
from paper.register import PAPER

NAME = PAPER.name
MAIN = Path(__file__).with_name("main.tex")


def gather(
    config: Config,
    layout: Layout,
    folder: Path,
    *,
    allow_partial: bool,
    other_settings: bool = False,
) -> None:
    """Put main.tex, macros.tex and the scale's figures and tables into a folder.

    Raise UserError if a run or file is missing; with `allow_partial`, the text names the gaps
    instead. Raise UserError if published records have other settings, unless `other_settings`.
    """
    out = layout.home / f"{NAME}.pdf"
    found = report.items(config, layout, out, picture="pdf", allow_partial=allow_partial)
    runs = read_keys(
        layout,
        config,
        run_table(config),
        "figures",
        allow_partial=allow_partial,
        other_settings=other_settings,
    )
    tables = {item.anchor: item.table for item in found if item.table is not None}
    for name, table in {**tables, **extra_tables(config, runs)}.items():
        (folder / f"{name}.tex").write_text(table.tex(), encoding="utf-8")
    for item in found:
        if item.table is None and not item.gap:
            shutil.copy(layout.home / f"{item.anchor}.pdf", folder)
    text = macros(config, runs, found, command.other_settings(PAPER, config, layout))
    (folder / "macros.tex").write_text(text, encoding="utf-8")
    shutil.copy(MAIN, folder)


def make(config: Config, layout: Layout, options: command.Options) -> command.Made:
    """Make the PDF. Check first that LaTeX is installed."""
    if reason := latex.lacking():
        raise UserError(reason)
    with tempfile.TemporaryDirectory() as temporary:
        gather(
            config,
            layout,
            Path(temporary),
            allow_partial=options.allow_partial,
            other_settings=options.other_settings,
        )
        log = layout.work / "logs" / "latex.log"
        pdf = latex.build(Path(temporary), log).read_bytes()
    stamp = stamps.stamp(config, layout, PAPER, "pdf")
    return command.Made(pdf + f"% {stamp}\n".encode())  # as a comment after the document's end
