"""A Markdown table of every setting in which two methods differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ngt.experience.envs import get_task
from ngt.settings.config import Config
from ngt.settings.load import load
from ngt.settings.options import Parser
from paper import command, pages
from paper.drawing.table import markdown
from paper.numbers.variants import differences

NAME = "variants"
MODULE = f"handbook.{NAME}"  # the name in the marker lines around the table
ENVS = ("HalfCheetah-v4", "Humanoid-v4")


def table(config: Config, a: str, b: str, envs: Sequence[str] = ENVS) -> str:
    """Return a Markdown table of the settings in which methods a and b differ on these envs.

    If the methods differ in a setting on only some of the envs, the row names these envs.
    """
    lines = [["setting", f"`{a}`", f"`{b}`", "meaning"]]
    for row in differences(config, a, b, envs):
        where = "" if len(row.envs) == len(envs) else f" ({', '.join(row.envs)})"
        lines.append([f"`{row.name}`{where}", *row.values, row.meaning])
    return markdown(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table or, with --into, write it into a page."""
    parser = Parser(
        prog=f"python -m paper.{MODULE}",
        description="Print the settings in which two methods differ, as a Markdown table.",
        epilog=f"example: python -m paper.{MODULE} ngt ngt-release --into docs/ngt-release.md",
    )
    parser.add_argument("a", metavar="METHOD", help="a method of the config")
    parser.add_argument("b", metavar="METHOD", help="another method")
    parser.add_argument(
        "--env", action="append", help=f"an env to compare on (repeatable; default: {ENVS})"
    )
    parser.add_argument("--scale", default="paper", help="default: paper")
    parser.add_argument("--into", type=Path, help="write the table between this page's markers")

    def run() -> None:
        args = parser.parse_args(argv)
        envs = [get_task(env).id for env in args.env or ENVS]
        text = table(load({"scale": args.scale}), args.a, args.b, envs)
        if args.into is None:
            print(text, end="")
        else:
            pages.write_into(args.into, text, MODULE)

    command.one_line_errors(NAME, run)


if __name__ == "__main__":
    main()
