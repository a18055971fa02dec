"""ngt publish: gather the results of a scale's complete runs in one file for publication."""

import argparse
from pathlib import Path

from ngt.errors import UserError
from ngt.runs.keys import Layout
from ngt.runs.shipping.gather import publish, summary
from ngt.settings.options import load_config
from ngt.text import say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt publish` to its parser."""
    parser.epilog = "example: ngt publish --scale quick"
    parser.add_argument(
        "--allow-partial", action="store_true", help="publish even if some runs are missing"
    )
    parser.add_argument(
        "--from",
        action="append",
        type=Path,
        default=[],
        metavar="RESULTS",
        dest="sources",
        help="root folder of runs, such as another cluster's (repeatable; default: --results)",
    )


def run(args: argparse.Namespace) -> None:
    """Write the file of published records, and a manifest that lists the runs' settings."""
    config = load_config(args)
    if lost := [folder for folder in args.sources if not folder.is_dir()]:
        raise UserError(f"--from: {lost[0]}: no such folder; name a root folder of results")
    layout = Layout.of(config, args.results)
    sources = [Layout.of(config, folder) for folder in args.sources]
    for source in sources:
        if not any(map(Path.is_dir, (source.runs, source.experts))):
            raise UserError(
                f"--from: {source.root} has no results of scale {config.scale}; name a root "
                f"folder, which contains {source.runs.relative_to(source.root)}"
            )
    manifest = publish(layout, config, sources=sources, allow_partial=args.allow_partial)
    say(f"{layout.published}: {summary(manifest)}")
