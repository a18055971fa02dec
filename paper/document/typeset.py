"""Make results/paper.pdf, a LaTeX report of a scale's results.

All numbers in the report are computed from the results. A scale is a config in workflow/config/.
Published records are results that ship with the suite.
"""

import shutil
import tempfile
from pathlib import Path

from ngt.errors import UserError
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import read_keys
from ngt.settings.config import Config
from paper import command
from paper.document import latex, report
from paper.document.extra_tables import SETTINGS, extra_tables, settings_tables
from paper.document.macros import macros
from paper.drawing import stamps
from paper.register import PAPER

NAME = PAPER.name
MAIN = Path(__file__).with_name("main.tex")
REFERENCES = Path(__file__).with_name("references.bib")


def gather(
    config: Config,
    layout: Layout,
    folder: Path,
    *,
    allow_partial: bool,
    other_settings: bool = False,
) -> None:
    """Put main.tex, references.bib, macros.tex and the scale's figures and tables into a folder.

    Raise UserError if a run or file is missing, or if published records were made with other
    settings.

    allow_partial: accept missing runs and files; the report then names them.
    other_settings: accept published records that were made with other settings.
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
    if SETTINGS in tables:
        tables |= settings_tables(tables[SETTINGS])
    for name, table in {**tables, **extra_tables(config, runs)}.items():
        (folder / f"{name}.tex").write_text(table.tex(), encoding="utf-8")
    for item in found:
        if item.table is None and not item.gap:
            shutil.copy(layout.home / f"{item.anchor}.pdf", folder)
    text = macros(config, runs, found, command.other_settings(PAPER, config, layout))
    (folder / "macros.tex").write_text(text, encoding="utf-8")
    for file in (MAIN, REFERENCES):
        shutil.copy(file, folder)


def make(config: Config, layout: Layout, options: command.Options) -> command.Made:
    """Make the PDF. Raise UserError if LaTeX is not installed."""
    if reason := latex.lacking():
        raise UserError(reason)
    stamp = stamps.stamp(config, layout, PAPER, "pdf")  # before the runs and figures are read
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
    # The hash of the report's inputs is a comment after the end of the PDF document.
    return command.Made(pdf + f"% {stamp}\n".encode())
