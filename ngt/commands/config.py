"""ngt config: print all settings of a scale, or the settings of one run."""

import argparse
import json
from dataclasses import asdict

from ngt.experience.envs import get_task
from ngt.runs.keys import RunKey, resolve_key
from ngt.settings.config import Config
from ngt.settings.options import RUN_HELP, load_config
from ngt.settings.schema import schema
from ngt.text import say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt config` to its parser."""
    parser.epilog = "example: ngt config Pendulum-v1/ngt/state-action-demos4-rate20/seed0"
    parser.add_argument("key", nargs="?", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON schema of config files"
    )


def run(args: argparse.Namespace) -> None:
    """Print the settings or, with --schema, the JSON schema of config files."""
    if args.schema:
        shown = schema(Config)
    elif args.key:
        config, key = load_config(args), RunKey.parse(args.key)
        get_task(key.env)
        shown = asdict(resolve_key(config, key))
    else:
        shown = asdict(load_config(args))
    say(json.dumps(shown, indent=1))
