"""ngt record: record whole episodes of an expert and of a random policy."""

import argparse
from pathlib import Path

from ngt.agent import policy
from ngt.agent.policy import Policy
from ngt.commands.shared import (
    add_outcome,
    add_strict,
    check_new,
    one_thread,
    policy_file,
    say_demos,
    warn_of_scale,
)
from ngt.errors import UserError
from ngt.experience import demos
from ngt.experience.envs import get_task
from ngt.experience.examine import tell
from ngt.runs.folder import Folders
from ngt.runs.keys import Layout
from ngt.runs.status import COMPLETE, drop_receipts
from ngt.settings.config import Config
from ngt.settings.options import at_least, load_config
from ngt.settings.recording import difference
from ngt.settings.resolve import config_hash, demos_file, expert_config, resolve_expert
from ngt.text import amount, announce, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt record` to its parser."""
    parser.epilog = "example: ngt record Pendulum-v1 --scale quick"
    parser.add_argument("env", help="env id")
    actor = parser.add_mutually_exclusive_group()
    actor.add_argument("--policy", type=Path, help="policy file (default: the env's expert)")
    actor.add_argument(
        "--random", action="store_true", help="record only the random policy; no expert is needed"
    )
    parser.add_argument(
        "--episodes", type=int, help="number of episodes of each policy (default: expert.episodes)"
    )
    parser.add_argument("--seed", type=int, help="seed of the episodes (default: the expert's)")
    parser.add_argument("--out", type=Path, help="new demonstration file (default: under results/)")
    add_strict(parser)
    add_outcome(parser)


def run(args: argparse.Namespace) -> None:
    """Record episodes, save them as a demonstration file, and print their returns."""
    one_thread()
    at_least(1, episodes=args.episodes)
    at_least(0, seed=args.seed)
    config = load_config(args)
    layout = Layout.of(config, args.results)
    get_task(args.env)
    if args.out:
        check_new(args.out)
    data = play(config, layout, args)
    usual = layout.demos(args.env)
    out = args.out or (usual.with_stem(f"{usual.stem}-random") if args.random else usual)
    if args.strict:
        tell(data, f"demonstrations {out}", strict=True)
    if out == usual:
        drop_receipts(out.with_suffix(".done"))
    demos.save(out, data)
    say_demos(out, data)
    if args.random:
        return
    warn_of_scale(data)
    if out != usual:
        return
    instead = f"or pass --demos {out} to `ngt train`"
    if named := demos_file(config, args.env):
        if Path(named).resolve() != out.resolve():
            say(
                f"warning: {out}: with these settings, `ngt train` reads {named} instead; set "
                f"envs.{args.env}.demos to this file, {instead}"
            )
    elif other := difference(config, args.env, data.source, data.seeds):
        say(f"warning: {out}: {other}, {instead}")


def play(config: Config, layout: Layout, args: argparse.Namespace) -> demos.Demos:
    """Record episodes of an expert, of the policy given by --policy, or of a random policy.

    With --random, only the random policy is recorded. Otherwise, the function also runs a random
    policy and stores its returns with the episodes.
    """
    expert, cell = expert_config(config, args.env), resolve_expert(config, args.env)
    episodes = args.episodes or expert.episodes
    seed = expert.seed if args.seed is None else args.seed
    terminate = cell.terminate_when_unhealthy
    actor = None if args.random else load_actor(config, layout, args)
    announce(
        f"record: plays {amount(episodes, 'episode')} "
        f"{'' if args.random else 'of the policy and as many '}of a random policy "
        f"on {args.env}; usually takes less than a minute"
    )
    if actor is None:
        return demos.record_random(args.env, episodes, seed, terminate_when_unhealthy=terminate)
    return demos.record(
        args.env,
        actor,
        episodes,
        seed,
        source=str(args.policy) if args.policy else config_hash(cell),
        terminate_when_unhealthy=terminate,
    )


def load_actor(config: Config, layout: Layout, args: argparse.Namespace) -> Policy:
    """Load the policy to record: the policy given by --policy or, without it, the env's expert.

    Raise UserError if the policy was trained on a different env. Without --policy, also raise
    UserError if the expert's training is not complete or used settings that differ from the current
    ones.
    """
    actor, env = policy.load(policy_file(args.policy or layout.expert(args.env)))
    if env != args.env:
        raise UserError(
            f"--policy: trained on {env}, not on {args.env}; give a policy trained on {args.env}"
        )
    expert = Folders(layout, config).expert_status(args.env)
    if not args.policy and expert.status not in COMPLETE:
        raise UserError(
            f"expert {args.env} in {layout.expert(args.env)}: {expert.note or expert.status}; run "
            f"`ngt expert {args.env}` with these settings, or name a policy with --policy"
        )
    return actor
