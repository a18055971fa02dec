"""What the figures' command lines share: settings, errors, reading, drawing, saving."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ngt.errors import UserError
from ngt.runs.keys import Layout, RunKey
from ngt.runs.published import Published
from ngt.runs.table import read_runs
from ngt.settings.config import Config
from ngt.settings.options import Parser, add_planned, load_config, user_settings
from ngt.text import show_any_text
from paper.drawing import labels, style
from paper.drawing import table as tables
from paper.drawing.stamps import stamp
from paper.register import FIGURES, REPORT, TABLES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# (rows of read_runs, config, keys that are not there) -> figure
Draw = Callable[["pd.DataFrame", Config, Sequence[RunKey]], "Figure"]
# -> the figure, and what to say after its file's name
Make = Callable[[Config, Layout, argparse.Namespace], tuple["Figure", str]]
MakeTable = Callable[[Config, Layout, argparse.Namespace], tables.Table]


def build_parser(
    name: str, about: str, ending: str = "pdf", scale: str | None = None
) -> argparse.ArgumentParser:
    """The options of an artefact: a figure (pdf), a table (csv) or a page (html).

    scale: the one that it is made of where the user names none; the config's where None.
    """
    example = f"--scale {scale or Config.scale} --out results/{name}.{ending}"
    parser = Parser(
        prog=f"python -m paper.{name}",
        description=about,
        epilog=f"example: python -m paper.{name} {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    beside = "; .tex and .json beside it" if ending == "csv" else ""
    parser.add_argument(
        "--out",
        type=Path,
        help=f"{ending.upper()} file (default: <results>/{name}.{ending}){beside}",
    )
    if name in FIGURES:
        parser.add_argument("--png", type=Path, help="a PNG file too")
    parser.add_argument(
        "--allow-partial", action="store_true", help="draw what there is, and say what is missing"
    )
    parser.add_argument(
        "--other-settings", action="store_true",
        help="draw published records whose settings are not the config's, and say so",
    )  # fmt: skip
    add_settings(parser, scale)
    return parser


def add_settings(parser: argparse.ArgumentParser, scale: str | None = None) -> None:
    """The options that `settings` reads."""
    parser.set_defaults(default_scale=scale)
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--scale", help=f"which workflow/config/<scale>.yaml (default: {scale or Config.scale})"
    )
    group.add_argument("--config", type=Path, help="a YAML file of further differences")
    group.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="one setting, e.g. --set window=10 (repeatable)",
    )  # fmt: skip
    group.add_argument(
        "--results", type=Path, default=Path("results"), help="root folder (default: results)"
    )
    group.add_argument(
        "--records", type=Path, metavar="FILE",
        help="draw from this file of published records (.parquet, its .json beside it)",
    )  # fmt: skip
    add_planned(group)


def settings(args: argparse.Namespace) -> tuple[Config, Layout]:
    """The config and the places it reads from."""
    if args.default_scale and not args.planned and "scale" not in user_settings(args):
        args.scale = args.default_scale
    config = load_config(args)
    layout = Layout(config.scale, args.results)
    labels.check(config)
    if args.records is None:
        return config, layout
    return replace(config, records="published"), replace(layout, records=args.records)


def main(name: str, about: str, draw: Draw, argv: Sequence[str] | None = None) -> None:
    """Entry point of a figure of runs."""
    main_of(name, about, name, draw, argv)


def main_of(
    name: str, about: str, figure: str, draw: Draw, argv: Sequence[str] | None = None
) -> None:
    """Entry point of a figure that shows the runs of another entry of the config's `figures`."""

    def make(config: Config, layout: Layout, args: argparse.Namespace) -> tuple[Figure, str]:
        runs, absent = read(config, layout, figure, args)
        note = f": partial, runs missing: {len(absent)}" if absent else ""
        return draw(runs, config, absent), note

    entry(name, build_parser(name, about), make, argv)


def read(
    config: Config, layout: Layout, figure: str, args: argparse.Namespace
) -> tuple[pd.DataFrame, list[RunKey]]:
    """The rows of an entry of `figures` and its absent keys; UserError where the scale has none."""
    if figure not in config.figures:
        raise UserError(
            f"figures.{figure}: not drawn at scale {config.scale}; choose another scale, or add "
            f"it to the config"
        )
    return read_runs(
        layout, config, figure,
        allow_partial=args.allow_partial, other_settings=args.other_settings,
    )  # fmt: skip


def other_settings(name: str, config: Config, layout: Layout) -> str:
    """What stands on an artefact if published records have other settings, else nothing."""
    artefact = {**FIGURES, **TABLES}.get(name, REPORT)
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
        f"config's. The first is {first}."
    )


def entry(
    name: str, parser: argparse.ArgumentParser, make: Make, argv: Sequence[str] | None = None
) -> None:
    """Parse, make the figure and write it."""

    def run() -> None:
        args = parser.parse_args(argv)
        config, layout = settings(args)
        figure, note = make(config, layout, args)
        if mark := other_settings(name, config, layout):
            style.head(figure, mark)
            note += f": {mark}"
        out = args.out or layout.root / f"{name}.pdf"
        try:
            style.save(figure, out, args.png, config.scale, stamp(config, layout, FIGURES[name]))
        except OSError as error:
            raise UserError(f"{out}: can't be written: {error.strerror}") from None
        print(f"{out}{note}")

    one_line_errors(name, run)


def entry_table(
    name: str, parser: argparse.ArgumentParser, make: MakeTable, argv: Sequence[str] | None = None
) -> None:
    """Parse, make the table, print it as Markdown and write its files."""

    def run() -> None:
        args = parser.parse_args(argv)
        config, layout = settings(args)
        out = args.out or layout.root / f"{name}.csv"
        if out.suffix != ".csv":
            raise UserError(f"--out: found {out}, a table's name ends in .csv")
        table = make(config, layout, args)
        if mark := other_settings(name, config, layout):
            table = replace(table, marks=[*table.marks, mark])
        try:
            tables.save(table, out, config.scale, stamp(config, layout, TABLES[name]))
        except OSError as error:
            raise UserError(f"{out}: can't be written: {error.strerror}") from None
        print(f"{table.markdown()}\n{out}")

    one_line_errors(name, run)


def one_line_errors(name: str, run: Callable[[], None]) -> None:
    """Run it; a user's mistake is one line and exit code 2."""
    show_any_text()
    try:
        run()
    except UserError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a folder where a file should be, a full disk
        print(f"{name}: error: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
