"""ngt publish: gather the results of a scale's complete runs in one file of records to ship."""

import argparse

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


def run(args: argparse.Namespace) -> None:
    """Write the file of records, and the manifest that lists the settings of the runs."""
    config = load_config(args)
    layout = Layout.of(config, args.results)
    say(f"{layout.published}: {summary(publish(layout, config, allow_partial=args.allow_partial))}")
