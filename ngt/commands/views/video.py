"""ngt video: film a policy beside its env's expert."""

import argparse
import math
from pathlib import Path

from ngt.agent import policy
from ngt.commands.shared import one_thread, policy_file, terminates
from ngt.errors import UserError
from ngt.experience import shipped
from ngt.experience.envs import get_task
from ngt.files import atomic
from ngt.runs.keys import Layout, RunKey
from ngt.settings.config import Config
from ngt.settings.options import RUN_HELP, at_least, load_config, repeated
from ngt.text import announce, say
from ngt.views.clip import FORMATS, beside, check_name
from ngt.views.film import film, need_no_display


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt video` to its parser."""
    parser.epilog = "example: ngt video Hopper-v4 --out hopper.gif --out hopper.mp4"
    parser.add_argument(
        "source",
        metavar="RUN|POLICY|ENV",
        help=f"{RUN_HELP}, or its folder; a policy file; or an env, to film its expert",
    )
    parser.add_argument(
        "--out",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="file to write, .gif (small) or .mp4 (full size); repeat it for both",
    )
    parser.add_argument(
        "--alone", action="store_true", help="leave out the expert beside the policy"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="maximum length (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the episode (default: 0)")


def run(args: argparse.Namespace) -> None:
    """Film the policy and write the files."""
    need_no_display()
    one_thread()
    at_least(0, seed=args.seed)
    if not 0 < args.seconds < math.inf:
        raise UserError(f"--seconds: must be above 0 and finite, found {args.seconds}")
    for file in args.out:
        check_name(file)
    config = load_config(args)
    layout = Layout.of(config, args.results)
    file, name = find(config, layout, args)
    env = policy.load(file)[1]
    shown = {name: file}
    expert = expert_file(env, config, layout)
    if expert is None and not args.alone:
        again = repeated(f"ngt expert {env}", args)
        say(f"{env}: no expert to show beside the policy; `{again}` trains one")
    elif expert and not args.alone and not expert.samefile(file):
        shown["expert"] = expert
    announce(f"video: films {' and '.join(shown)} on {env}; usually takes less than a minute")
    rules = {"terminate_when_unhealthy": terminates(file, env, config, args)}  # for both policies
    clips = {
        label: film(env, policy.load(path)[0], args.seed, args.seconds, **rules)
        for label, path in shown.items()
    }
    clip = beside(clips) if len(clips) > 1 else clips[name]
    comment = comment_of(*shown.values())
    for out in args.out:
        content = FORMATS[out.suffix.lower()](clip, comment)
        with atomic(out) as temporary:
            temporary.write_bytes(content)
        # The number of frames is not given, since a small GIF may hold only some of them.
        say(f"{out}: {len(clip.frames) * clip.seconds:.1f} s, {len(content) / 1000:.0f} kB")
    for label, path in shown.items():
        say(f"  {label}: {path}")


def find(config: Config, layout: Layout, args: argparse.Namespace) -> tuple[Path, str]:
    """Return the policy file that the source in `args` names, and a label for the policy.

    The source is a path, a run's key, or an env id, which stands for the env's expert.
    """
    source = args.source
    path = Path(source)
    if path.exists() or path.suffix == ".safetensors":
        return policy_file(path), "policy"
    if "/" in source:
        key = RunKey.parse(source)
        return layout.run(key) / "policy.safetensors", key.method
    get_task(source)
    if (file := expert_file(source, config, layout)) is None:
        raise UserError(
            f"env {source}: has no expert in {layout.expert(source)} or in data/; train one with "
            f"`{repeated(f'ngt expert {source}', args)}`, or give a policy file"
        )
    return file, "expert"


def expert_file(env: str, config: Config, layout: Layout) -> Path | None:
    """Return the policy file of an env's expert, or None if there is no expert.

    The expert in the results folder comes first, then the expert in data/. With `demos: shipped`,
    only the expert in data/ is considered.
    """
    own = layout.expert(env) / "policy.safetensors"
    if config.demos != "shipped" and own.exists():
        return own
    if shipped.ships(env):
        shipped.read(env)  # raises UserError if a shipped file is damaged
        return shipped.DATA / env / shipped.POLICY
    return None


def comment_of(*files: Path) -> str:
    """Return the video's comment, which identifies the policies shown from left to right."""
    return "policy sha256 " + ", ".join(map(shipped.sha256, files))
