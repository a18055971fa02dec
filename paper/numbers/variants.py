"""What a variant changes: every setting in which two methods differ, as a Markdown table."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ngt.experience.envs import get_task
from ngt.settings import load as loading
from ngt.settings import resolve as resolving
from ngt.settings.config import CellConfig, Config, SacConfig, TrainConfig
from ngt.settings.options import Parser
from paper import command, pages

NAME = "variants"
ENVS = ("HalfCheetah-v4", "Humanoid-v4")
KEY = ("env", "method", "demos_source")  # what a cell is of, not how it is set


Settings = dict[str, tuple[str, str]]  # by name: value and meaning


class Difference(NamedTuple):
    """A setting with its value in either method, `-` where a method's model knows no such one."""

    name: str
    envs: tuple[str, ...]  # where it has these values
    values: tuple[str, str]
    meaning: str


def settings(cell: CellConfig) -> Settings:
    """Value and meaning of every setting of a cell, by its name in a method's entry."""
    model = resolving.load_model(cell.model, f"methods.{cell.method}.model")
    sections: list[tuple[str, type, dict[str, Any]]] = [
        ("", CellConfig, vars(cell)),
        ("sac.", SacConfig, vars(cell.sac)),
        ("train.", TrainConfig, vars(cell.train)),
        ("params.", model.Config, cell.params),
    ]
    return {
        prefix + f.name: (as_text(values[f.name]), f.metadata["doc"])
        for prefix, cls, values in sections
        for f in dataclasses.fields(cls)
        if "doc" in f.metadata and f.name not in KEY
    }


def as_text(value: Any) -> str:
    """A value as a config file has it."""
    return value if isinstance(value, str) else json.dumps(value)


def cell(config: Config, env: str, method: str) -> CellConfig:
    """A method's settings on an env, at its own rate or the default one."""
    rate = resolving.method_rate(config, method) or CellConfig.rate
    return resolving.resolve(config, env, method, CellConfig.mode, rate)


def differences(config: Config, a: str, b: str, envs: Sequence[str] = ENVS) -> list[Difference]:
    """Every setting in which two methods differ on one of the envs, in the config's order."""
    return compare(
        {env: (settings(cell(config, env, a)), settings(cell(config, env, b))) for env in envs}
    )


def compare(sides: Mapping[str, tuple[Settings, Settings]]) -> list[Difference]:
    """Every setting in which the two sides of an env differ, in the settings' order."""
    meanings = {n: doc for pair in sides.values() for side in pair for n, (_, doc) in side.items()}
    rows = []
    for name, meaning in meanings.items():
        found: dict[tuple[str, str], list[str]] = {}
        for env, pair in sides.items():
            left, right = (side.get(name, ("-", ""))[0] for side in pair)
            if left != right:
                found.setdefault((left, right), []).append(env)
        rows += [Difference(name, tuple(on), values, meaning) for values, on in found.items()]
    return rows


def table(config: Config, a: str, b: str, envs: Sequence[str] = ENVS) -> str:
    """The differences as Markdown; a row names its envs where it does not hold on all of them."""
    lines = [["setting", f"`{a}`", f"`{b}`", "meaning"], ["---"] * 4]
    for row in differences(config, a, b, envs):
        where = "" if len(row.envs) == len(envs) else f" ({', '.join(row.envs)})"
        lines.append([f"`{row.name}`{where}", *row.values, row.meaning])
    escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = Parser(
        prog=f"python -m paper.{NAME}",
        description="Print the settings in which two methods differ, as a Markdown table.",
        epilog=f"example: python -m paper.{NAME} ngt ngt-release --into docs/ngt-release.md",
    )
    parser.add_argument("a", metavar="METHOD", help="a method of the config")
    parser.add_argument("b", metavar="METHOD", help="another one")
    parser.add_argument(
        "--env", action="append", help=f"an env to compare on (repeatable; default: {ENVS})"
    )
    parser.add_argument("--scale", default="paper", help="default: paper")
    parser.add_argument("--into", type=Path, help="write it between the markers of this page")

    def run() -> None:
        args = parser.parse_args(argv)
        envs = [get_task(env).id for env in args.env or ENVS]
        text = table(loading.load({"scale": args.scale}), args.a, args.b, envs)
        if args.into is None:
            print(text, end="")
        else:
            pages.write_into(args.into, text, NAME)

    command.one_line_errors(NAME, run)


if __name__ == "__main__":
    main()
