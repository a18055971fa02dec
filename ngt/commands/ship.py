"""ngt ship: copy an expert and its demonstrations to data/, which is part of the repository."""

import argparse

from ngt.commands.shared import one_thread
from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.files import INSTALLED
from ngt.runs.keys import Layout
from ngt.runs.shipping.ship import ship
from ngt.settings.options import load_config
from ngt.text import say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt ship` to its parser."""
    parser.epilog = "example: ngt ship HalfCheetah-v4 --scale lite"
    parser.add_argument("env", help="env id")
    parser.add_argument(
        "--replace", action="store_true", help="replace a shipped expert even if it is better"
    )


def run(args: argparse.Namespace) -> None:
    """Copy the expert to data/ and print what was done."""
    one_thread()
    if INSTALLED:
        raise UserError("ship: experts ship with a checkout; run this command in one")
    config = load_config(args)
    get_task(args.env)
    say(ship(Layout.of(config, args.results), config, args.env, replace_better=args.replace))
