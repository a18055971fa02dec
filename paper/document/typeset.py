"""The scale's results as a report in LaTeX, results/paper.pdf; no number in it is typed.

python -m paper.document.typeset --scale quick --out results/paper.pdf
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ngt.errors import UserError
from ngt.files import atomic
from ngt.runs.keys import Layout, run_table
from ngt.runs.table import read_keys
from ngt.settings.config import Config
from paper import command
from paper.document import latex, prose, report
from paper.document.asides import asides
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
    """Put main.tex, numbers.tex and the scale's figures and tables into a folder.

    Errors: a run or a file that is not there is a UserError, unless `allow_partial`; the text then
    says what is missing. Published records of other settings are one, unless `other_settings`.
    """
    out = layout.root / f"{NAME}.pdf"
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
    for name, table in {**tables, **asides(config, runs)}.items():
        (folder / f"{name}.tex").write_text(table.tex(), encoding="utf-8")
    for item in found:
        if item.table is None and not item.gap:
            shutil.copy(layout.root / f"{item.anchor}.pdf", folder)
    mark = command.other_settings(NAME, config, layout)
    numbers = prose.numbers(config, runs, found, mark)
    (folder / "numbers.tex").write_text(numbers, encoding="utf-8")
    shutil.copy(MAIN, folder)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = command.build_parser(NAME, (__doc__ or "").splitlines()[0])

    def run() -> None:
        args = parser.parse_args(argv)
        config, layout = command.settings(args)
        out = args.out or layout.root / f"{NAME}.pdf"
        if lack := latex.lacking():  # before anything is read
            raise UserError(lack)
        with tempfile.TemporaryDirectory() as temporary:
            gather(
                config,
                layout,
                Path(temporary),
                allow_partial=args.allow_partial,
                other_settings=args.other_settings,
            )
            log = layout.root / config.scale / "logs" / "latex.log"
            pdf = latex.build(Path(temporary), log).read_bytes()
        mark = stamps.stamp(config, layout, PAPER, "pdf")
        pdf += f"% {mark}\n".encode()  # a comment behind the document's end
        try:
            with atomic(out) as path:
                path.write_bytes(pdf)
        except OSError as error:
            raise UserError(f"{out}: can't be written: {error.strerror}") from None
        print(out)

    command.one_line_errors(NAME, run)


if __name__ == "__main__":
    main()
