"""The `python -m paper NAME` command, which makes an artefact and writes its files.

An artefact is a figure, a table or a document. It is drawn from the runs of a scale, i.e. of a
config in workflow/config/. The results of these runs are either the user's own or published
records, such as those that ship with the suite.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, cast

import pandas as pd
from matplotlib.figure import Figure

from ngt.bench.text import aligned
from ngt.cli import leave
from ngt.errors import UserError, fault, suggest
from ngt.files import atomic
from ngt.runs.keys import Layout, RunKey
from ngt.runs.published import Published
from ngt.runs.table import read_runs
from ngt.settings.config import Config
from ngt.settings.options import Parser, add_settings, given, load_config, user_settings
from ngt.text import show_any_text
from paper.drawing import caption, labels, style
from paper.drawing import table as tables
from paper.drawing.stamps import stamp
from paper.drawing.table import Table
from paper.numbers.statistics import reference
from paper.register import ARTEFACTS, Artefact
from paper.source import cite
from paper.words import ABSENT

NAME = "paper"  # prefix of error messages if the user names no artefact


@dataclass(frozen=True)
class Options:
    """The user's choices for an artefact, besides the config.

    allow_partial: draw the runs that exist, even if some runs are missing.
    other_settings: draw published records whose settings differ from the config's.
    notes: keep the notes below the panels in a figure's PDF.
    selected: the command-line options that select the config, for messages.
    """

    artefact: Artefact
    out: Path
    allow_partial: bool = False
    other_settings: bool = False
    notes: bool = True
    selected: str = ""


class Made(NamedTuple):
    """An artefact, and a note that the command prints after the name of the artefact's file."""

    content: Figure | Table | bytes
    note: str = ""


Maker = Callable[[Config, Layout, Options], Made]
# (rows of read_runs, config, keys of missing runs) -> figure
Draw = Callable[[pd.DataFrame, Config, Sequence[RunKey]], Figure]


def main(argv: Sequence[str] | None = None) -> None:
    """Make an artefact or, if no argument is given, list all artefacts."""
    words = [*(sys.argv[1:] if argv is None else argv)]
    name = words[0] if words and words[0] in ARTEFACTS else NAME
    one_line_errors(name, lambda: run(words) if words else print(listing()))


def run(argv: Sequence[str]) -> None:
    """Parse the arguments, make the artefact and write its files."""
    args = build_parser().parse_args(argv)
    artefact = find(args.artefact)
    if args.png and artefact.kind != "figure":
        raise UserError(f"--png: {artefact.name} is not a figure; leave the option out")
    config, layout = settings(args, artefact)
    artefact.check(config)
    out = args.out or layout.home / artefact.file
    for option, file, ending in (
        ("--out", out, Path(artefact.file).suffix),
        ("--png", args.png, ".png"),
    ):
        if file and file.suffix != ending:
            raise UserError(f"{option}: found {file}; the file name must end in {ending}")
    options = Options(
        artefact,
        out,
        allow_partial=args.allow_partial,
        other_settings=args.other_settings,
        notes=not args.no_note,
        selected=given(args),
    )
    # Before the runs are read: a run that is replaced in the meantime must make the file outdated.
    drawn_from = stamp(config, layout, artefact) if artefact.kind in ("figure", "table") else ""
    made = maker(artefact)(config, layout, options)
    if not isinstance(made, Made):
        raise UserError(
            f"{artefact.name}: {artefact.make} returned {type(made).__name__}, not a "
            f"paper.command.Made; return one"
        )
    mark = other_settings(artefact, config, layout)
    try:
        print(save(made, mark, drawn_from, config, options, args.png))
    except OSError as error:
        raise UserError(f"{out}: can't be written: {error.strerror}") from None


def listing() -> str:
    """Return one line per artefact, with its name, its label in the paper and its title."""
    rows = [(a.name, cite(a.source) or "-", a.title) for a in ARTEFACTS.values()]
    return "\n".join(aligned(rows, left=3))


def find(name: str) -> Artefact:
    """Return the artefact with this name. Raise UserError if no artefact has this name."""
    if name not in ARTEFACTS:
        near = suggest(name, list(ARTEFACTS))
        raise UserError(f"{name!r} is not an artefact; {near}; `python -m paper` lists them all")
    return ARTEFACTS[name]


def maker(artefact: Artefact) -> Maker:
    """Return the function that makes an artefact."""
    module, _, name = artefact.make.partition(":")
    try:
        return cast(Maker, getattr(import_module(module), name))
    except Exception as error:  # the module's code may raise anything
        raise UserError(
            f"{artefact.name}: {artefact.make!r} can't be loaded ({fault(error)}); correct its "
            f"entry in paper/register.py, or the module"
        ) from None


def build_parser() -> argparse.ArgumentParser:
    """Return a parser for the options that all artefacts share."""
    parser = Parser(
        prog="python -m paper",
        description="Make a figure, a table or a document from a scale's runs. "
        "Without any argument, list all of them.",
        epilog="example: python -m paper main_figure --scale quick --out main_figure.pdf",
    )
    parser.add_argument("artefact", metavar="NAME", help="what to make; see `python -m paper`")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="output: PDF for a figure, CSV for a table (with .tex and .json next to it), HTML for "
        "the report (default: the workflow's path under the root folder)",
    )
    parser.add_argument(
        "--png", type=Path, metavar="FILE", help="also write the figure to this PNG file"
    )
    parser.add_argument(
        "--no-note",
        action="store_true",
        help="leave the notes below the panels out of the PDF, for a paper whose caption has them "
        "(NAME.caption.tex); the PNG keeps them",
    )
    parser.add_argument(
        "--allow-partial",
        action="store_true",
        help="draw the runs that exist, and name the missing ones",
    )
    parser.add_argument(
        "--other-settings",
        action="store_true",
        help="draw published records whose settings differ from the config's, and say so",
    )
    add_settings(parser)
    parser.add_argument(
        "--records",
        type=Path,
        metavar="FILE",
        help="draw from this file of published records (.parquet, with its .json next to it)",
    )
    return parser


def settings(args: argparse.Namespace, artefact: Artefact) -> tuple[Config, Layout]:
    """Return the config, and the layout, which says where the config's files are."""
    if artefact.scale and not args.planned and "scale" not in user_settings(args):
        args.scale = artefact.scale
    config = load_config(args)
    layout = Layout.of(config, args.results)
    labels.check(config)
    reference(config)  # raises UserError if the main figure lacks the reference method
    if args.records is None:
        return config, layout
    return replace(config, records="published"), replace(layout, records=args.records)


def read(config: Config, layout: Layout, options: Options) -> tuple[pd.DataFrame, list[RunKey]]:
    """Return the rows of an artefact's runs, and the keys of the missing runs.

    The artefact must show exactly one entry of `figures` in the config.
    """
    (figure,) = options.artefact.runs
    return read_runs(
        layout,
        config,
        figure,
        allow_partial=options.allow_partial,
        other_settings=options.other_settings,
        selected=options.selected,
    )


def figure_of_runs(draw: Draw, config: Config, layout: Layout, options: Options) -> Made:
    """Read an artefact's runs and draw them."""
    runs, absent = read(config, layout, options)
    note = f": partial, runs {ABSENT[config.records]}: {len(absent)}" if absent else ""
    return Made(draw(runs, config, absent), note)


def other_settings(artefact: Artefact, config: Config, layout: Layout) -> str:
    """Return a warning if published records have different settings from the config, or else ""."""
    keys, envs = artefact.keys(config), artefact.experts_of(config)
    if config.records != "published" or not (keys or envs):
        return ""
    found = Published(layout.published, config, other_settings=True).differences(keys, envs)
    if not found:
        return ""
    what = "experts" if envs else "runs"
    first = ": ".join(next(iter(found.items())))
    return (
        f"OTHER SETTINGS: {len(found)} of {len(keys) + len(envs)} published {what} do not have the "
        f"config's settings. The first is {first}."
    )


def save(
    made: Made, mark: str, drawn_from: str, config: Config, options: Options, png: Path | None
) -> str:
    """Write the files of an artefact and return the text to print.

    mark, drawn_from: a warning and a stamp for a figure or table; documents add these themselves.
    """
    content, out = made.content, options.out
    if isinstance(content, bytes):
        with atomic(out) as temporary:
            temporary.write_bytes(content)
        return f"{out}{made.note}"
    if isinstance(content, Table):
        table = replace(content, marks=[*content.marks, mark]) if mark else content
        tables.save(table, out, config.scale, drawn_from)
        return f"{table.markdown()}\n{out}{made.note}"
    if mark:
        style.head(content, mark)
    words = caption.text(content, options.artefact.title)
    caption.save(f"{words} {mark}".strip(), out, drawn_from)
    style.save(content, out, png, config.scale, drawn_from, notes=options.notes)
    return f"{out}{made.note}{f': {mark}' if mark else ''}"


def one_line_errors(name: str, function: Callable[[], None]) -> None:
    """Call a command's function. Report a user's mistake in one line, and exit with code 2."""
    show_any_text()
    try:
        function()
    except UserError as error:
        leave(f"{name}: error: {error}", 2)
    except OSError as error:  # for example a full disk, or a folder where a file should be
        leave(f"{name}: error: {error.filename or 'output'}: {error.strerror}", 2)
    except KeyboardInterrupt:
        leave(f"{name}: interrupted", 130)
