"""ngt export: write demonstrations in another project's format."""

import argparse
from pathlib import Path

from ngt.experience import demos
from ngt.foreign import minari
from ngt.foreign.recognise import refuse_foreign
from ngt.settings.options import load_config
from ngt.text import amount, announce, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt export` to its parser."""
    parser.epilog = "example: ngt export minari data/Hopper-v4/demos.npz --id ngt/hopper-v0"
    parser.add_argument("format", choices=["minari"], help="the format to write")
    parser.add_argument("demos", type=Path, metavar="DEMOS", help="demonstration file")
    parser.add_argument(
        "--id", required=True, help="id of the new dataset in Minari's own folder of datasets"
    )


def run(args: argparse.Namespace) -> None:
    """Write the dataset. Its actions are in the env's units, as is usual for Minari datasets."""
    load_config(args)  # the config's `imports` may register the demonstrations' env
    announce(f"export: reads {args.demos} and writes dataset {args.id}; usually takes seconds")
    refuse_foreign(args.demos, "ENV")
    data = demos.load(args.demos)
    folder = minari.write(data, args.id, f"demonstrations {args.demos}")
    count = amount(len(data.length), "episode")
    say(f"{folder}: {count} of {data.env}, actions in the env's units")
