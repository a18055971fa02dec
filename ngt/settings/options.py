"""Command-line options for settings, and functions that load the selected config."""

import argparse
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from ngt.errors import UserError
from ngt.settings.config import Config
from ngt.settings.load import load, load_file, read_yaml
from ngt.settings.schema import merge

RUN_HELP = "run key: env/method/mode-demosK-rateN/seedS"

_SEVERAL = r"\s*[-+]?[\d.][^,]*(,\s*[-+]?[\d.][^,]*)+"  # numbers with commas between them


class Parser(argparse.ArgumentParser):
    """An argument parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see `{self.prog} --help`")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options that `load_config` reads, and the `--results` option."""
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--scale", help=f"name of a workflow/config/<scale>.yaml (default: {Config.scale})"
    )
    add_config(group)
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="a single setting, e.g. --set train.steps=20000 (repeatable)",
    )
    group.add_argument(
        "--results", type=_folder, default=Path("results"), help="root folder (default: results)"
    )
    group.add_argument(
        "--planned",
        type=Path,
        metavar="FILE",
        help="file of complete settings, which the workflow names by their hash; replaces --scale, "
        "--config and --set",
    )


def add_config(parser: argparse._ActionsContainer) -> None:
    """Add the `--config` option, which `read_configs` reads."""
    parser.add_argument(
        "--config",
        type=Path,
        action="append",
        default=[],
        help="YAML file with your own settings (repeatable; later files override earlier ones)",
    )


def read_configs(files: Iterable[Path]) -> dict[str, Any]:
    """Merge the settings in the user's files. Later files override earlier ones."""
    return merge(*map(read_yaml, files))


def _folder(text: str) -> Path:
    """Return the path of a folder, which need not exist yet."""
    path = Path(text)
    nearest = next((p for p in (path, *path.parents) if p.exists()), path)
    if nearest.exists() and not nearest.is_dir():
        raise argparse.ArgumentTypeError(f"{nearest} is a file; name a folder")
    return path


def user_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Merge the settings from --config, --set and --scale. Later options override earlier ones."""
    import yaml

    data = read_configs(args.config)
    for text in args.settings:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"--set: expected KEY=VALUE, found {text!r}; e.g. train.steps=20000")
        try:
            parsed: Any = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UserError(
                f"--set {name}: {value!r} is not a YAML value; check brackets and quotes"
            ) from None
        if isinstance(parsed, str) and re.fullmatch(_SEVERAL, value):
            raise UserError(
                f"--set {name}: takes one value, found {value}; to compare several, make each a "
                f"variant of the method (docs/tuning.md)"
            )
        for part in reversed(name.split(".")):
            parsed = {part: parsed}
        data = merge(data, parsed)
    return merge(data, {"scale": args.scale} if args.scale else {})


def load_config(args: argparse.Namespace) -> Config:
    """Load the config that the options from `add_settings` select."""
    if not args.planned:
        return load(user_settings(args))
    if args.scale or args.config or args.settings:
        raise UserError("--planned: has complete settings; omit --scale, --config and --set")
    return load_file(args.planned)


def chosen(config: Config) -> str:
    """Return, as text, the command-line options that select a config's scale and study."""
    return f"--scale {config.scale}" + f" --set study={config.study}" * bool(config.study)


def given(args: argparse.Namespace) -> str:
    """Return the options of `add_settings` that the user gave, as text for another command."""
    words = [] if args.scale is None else ["--scale", args.scale]
    words += [word for file in args.config for word in ("--config", str(file))]
    words += [word for setting in args.settings for word in ("--set", setting)]
    words += ["--results", str(args.results)] if args.results != Path("results") else []
    words += ["--planned", str(args.planned)] if args.planned else []
    return shlex.join(words)


def repeated(command: str, args: argparse.Namespace) -> str:
    """Return a command with the options of `add_settings` that the user gave, for a message."""
    return f"{command} {given(args)}".strip()


def at_least(low: int, **options: int | None) -> None:
    """Raise UserError if one of these integer options is below `low`. Options may be None."""
    for name, value in options.items():
        if value is not None and value < low:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option}: must be at least {low}, found {value}")
