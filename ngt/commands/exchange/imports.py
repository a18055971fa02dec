"""ngt import: make a demonstration file from another project's data."""

import argparse
from collections.abc import Callable
from pathlib import Path

from ngt.commands.shared import add_strict, check_new, one_thread, say_demos, warn_of_scale
from ngt.errors import UserError
from ngt.experience import demos
from ngt.experience.demos import record_random
from ngt.experience.envs import get_task
from ngt.experience.examine import tell
from ngt.experience.units import UNITS
from ngt.foreign import flat, imitation, minari
from ngt.foreign.fit import check_fit
from ngt.foreign.found import Found
from ngt.settings.options import at_least, load_config
from ngt.settings.resolve import expert_config, resolve_expert
from ngt.text import amount, announce, say

FORMATS: dict[str, Callable[[Path, str], Found]] = {
    "minari": minari.read,
    "d4rl": flat.read_hdf5,
    "imitation": imitation.read,
    "npz": flat.read_npz,
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt import` to its parser."""
    parser.epilog = (
        "example: ngt import minari mujoco/hopper/expert-v0 --env Hopper-v4 --actions env "
        "--out hopper.npz"
    )
    parser.add_argument("format", choices=list(FORMATS), help="format of SOURCE")
    parser.add_argument(
        "source",
        type=Path,
        metavar="SOURCE",
        help="file or folder to read; for minari also the id of a dataset",
    )
    parser.add_argument("--env", required=True, help="env id in ngt")
    parser.add_argument(
        "--actions",
        required=True,
        choices=UNITS,
        help="unit of SOURCE's actions: the env's units (env), or fractions of its bound (unit)",
    )
    parser.add_argument("--out", type=Path, required=True, help="demonstration file to write")
    parser.add_argument(
        "--episodes", type=int, help="number of episodes to import, from the first (default: all)"
    )
    add_strict(parser)


def run(args: argparse.Namespace) -> None:
    """Import demonstrations. Also run a random policy, whose returns the file must contain."""
    one_thread()
    at_least(1, episodes=args.episodes)
    config = load_config(args)
    get_task(args.env)
    check_new(args.out)
    expert, cell = expert_config(config, args.env), resolve_expert(config, args.env)
    announce(
        f"import: reads {args.format} {args.source}, then plays "
        f"{amount(expert.episodes, 'episode')} of a random policy on {args.env}; usually takes "
        f"less than a minute"
    )
    found = FORMATS[args.format](args.source, args.env)
    if not found.episodes:
        raise UserError(f"{args.format} {args.source}: found no whole episode")
    if (args.episodes or 0) > (count := len(found.episodes)):
        raise UserError(
            f"--episodes: found {args.episodes}, but {args.source} has {amount(count, 'episode')} "
            f"to import; pass at most {count}, or leave out --episodes to import all"
        )
    check_fit(found, args.env, f"{args.format} {args.source}")
    for note in found.notes:
        say(f"{args.source}: {note}")
    played = record_random(
        args.env,
        expert.episodes,
        expert.seed,
        terminate_when_unhealthy=cell.terminate_when_unhealthy,
    )
    data = demos.from_episodes(
        args.env,
        found.episodes[: args.episodes],
        played.returns,
        f"{args.format} {args.source.name}",
        actions=args.actions,
    )
    if args.strict:
        tell(data, f"demonstrations {args.out}", strict=True)
    demos.save(args.out, data)
    say_demos(args.out, data)
    warn_of_scale(data)
