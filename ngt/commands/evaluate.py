"""ngt evaluate: run episodes of a policy without exploration noise and print their returns."""

import argparse
from pathlib import Path

import numpy as np

from ngt.agent import policy
from ngt.commands.shared import one_thread, policy_file, read_demos, terminates, warn_of_scale
from ngt.experience import shipped
from ngt.experience.reference import reference_of, unscored
from ngt.experience.rollout import Evaluator
from ngt.settings.options import at_least, load_config
from ngt.text import amount, announce, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt evaluate` to its parser."""
    parser.epilog = "example: ngt evaluate results/quick/experts/Pendulum-v1/policy.safetensors"
    parser.add_argument("policy", type=Path, help="policy file, or a run's folder")
    parser.add_argument("--episodes", type=int, default=16, help="number of episodes (default: 16)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the episodes (default: 0)")
    parser.add_argument(
        "--demos", type=Path, help="demonstration file; with it, also print the normalised return"
    )


def run(args: argparse.Namespace) -> None:
    """Print each episode's return, their mean and, with --demos, the normalised mean return."""
    one_thread()
    at_least(1, episodes=args.episodes)
    at_least(0, seed=args.seed)
    file = policy_file(args.policy)
    config = load_config(args)
    if file.resolve().parent.parent == shipped.DATA:
        shipped.read(file.resolve().parent.name)  # raises UserError if a shipped file is damaged
    actor, env = policy.load(file)
    data = read_demos(args.demos, env) if args.demos else None
    terminate = terminates(file, env, config, args)
    announce(
        f"evaluate: plays {amount(args.episodes, 'episode')} of {file} on {env}; usually takes "
        f"less than a minute"
    )
    evaluator = Evaluator(env, [(args.seed, 0)], args.episodes, terminate_when_unhealthy=terminate)
    result = evaluator.run(actor, 0)
    evaluator.close()
    episodes = zip(result.returns[0], result.lengths[0], strict=True)
    for episode, (value, length) in enumerate(episodes):
        say(f"episode {episode}: return {value:.2f}, length {length}")
    mean, std = np.mean(result.returns), np.std(result.returns)
    say(f"{env}: mean return {mean:.2f} (std {std:.2f}) over {amount(args.episodes, 'episode')}")
    if data is None:
        return
    if not unscored(reference_of(data)):
        score = (mean - data.random) / (data.expert - data.random)
        say(f"normalised return {score:.3f} (random {data.random:.2f}, expert {data.expert:.2f})")
    warn_of_scale(data)
