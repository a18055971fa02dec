"""ngt expert: train an env's SAC expert on the env's own reward."""

import argparse

from ngt.commands.shared import add_training, needs_training, one_thread, report, train_members
from ngt.experience.envs import get_task
from ngt.runs.folder import expert_key
from ngt.runs.keys import Layout
from ngt.settings.options import at_least, load_config
from ngt.settings.resolve import expert_config, resolve_expert
from ngt.training.learner import Member


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt expert` to its parser."""
    parser.epilog = "example: ngt expert Pendulum-v1 --scale quick"
    parser.add_argument("env", help="env id, e.g. HalfCheetah-v4")
    add_training(parser)


def run(args: argparse.Namespace) -> None:
    """Train the expert, unless it is already finished."""
    one_thread(args.device)
    at_least(0, env_workers=args.env_workers)
    config = load_config(args)
    get_task(args.env)
    name, folder = f"expert {args.env}", Layout.of(config, args.results).expert(args.env)
    seed = expert_config(config, args.env).seed
    cell = resolve_expert(config, args.env)
    member = Member(folder, expert_key(args.env, seed), seed, demos=0)
    if needs_training(cell, member, name, args):
        train_members(cell, [member], name, config, args)
        report(folder, name)
