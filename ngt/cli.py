"""The `ngt` command: every stage of the suite, usable without Snakemake."""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ngt.errors import Interrupted, UserError, lacks_memory, suggest
from ngt.experience.envs import get_task
from ngt.files import read_json
from ngt.runs.keys import Layout, RunKey, packs, resolve_key, run_table
from ngt.settings import load as loading
from ngt.settings import resolve as resolving
from ngt.settings.config import CellConfig, Config
from ngt.settings.schema import merge, schema
from ngt.text import show_any_text

if TYPE_CHECKING:
    from ngt.experience.demos import Demos
    from ngt.training.learner import Member

RUN_HELP = "run key: env/method/mode-demosK-rateN/seedS"


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see `{self.prog} --help`")


def build_parser() -> argparse.ArgumentParser:
    """All subcommands with their help."""
    parser = Parser(prog="ngt", description="Low-data imitation learning, reproduced.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)

    def add(name: str, run: Any, text: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=text, description=text, epilog=f"example: {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        sub.set_defaults(run=run)
        group = sub.add_argument_group("settings")
        group.add_argument("--scale", help="which workflow/config/<scale>.yaml (default: quick)")
        group.add_argument("--config", type=Path, help="a YAML file of further differences")
        group.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
            help="one setting, e.g. --set train.steps=20000 (repeatable)",
        )  # fmt: skip
        group.add_argument(
            "--results", type=Path, default=Path("results"), help="root folder (default: results)"
        )
        add_planned(group)
        return sub

    def add_strict(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--strict", action="store_true",
            help="refuse demonstrations that the env can't have given, rather than warn",
        )  # fmt: skip

    def add_device(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--device", default="cpu", help="cpu (default) or cuda")
        sub.add_argument(
            "--env-workers", type=int, default=0,
            help="processes that step the envs; 0 (default) steps them in this one",
        )  # fmt: skip
        sub.add_argument("--fresh", action="store_true", help="train again what is finished")
        sub.add_argument(
            "--replace", action="store_true", help="replace what is finished with other settings"
        )
        sub.add_argument(
            "--restart", action="store_true", help="start over where a checkpoint is found"
        )
        add_outcome(sub)

    def add_outcome(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--outcome", type=Path, metavar="FILE",
            help="for the workflow: write the reason of a refusal to this file, which is empty "
            "otherwise, and exit with 0",
        )  # fmt: skip

    sub = add(
        "expert", run_expert, "Train an env's SAC expert on the env's own reward.",
        "ngt expert Pendulum-v1 --scale quick",
    )  # fmt: skip
    sub.add_argument("env", help="env id, e.g. HalfCheetah-v4")
    add_device(sub)

    sub = add(
        "record", run_record, "Record whole episodes of an expert, and of a random policy.",
        "ngt record Pendulum-v1 --scale quick",
    )  # fmt: skip
    sub.add_argument("env", help="env id")
    sub.add_argument("--policy", type=Path, help="policy file (default: the env's expert)")
    sub.add_argument("--episodes", type=int, help="episodes of each (default: expert.episodes)")
    sub.add_argument("--seed", type=int, help="of the episodes (default: the expert's)")
    sub.add_argument("--out", type=Path, help="demonstration file (default: under results/)")
    add_strict(sub)
    add_outcome(sub)

    sub = add(
        "ship", run_ship, "Put an env's recorded expert among those that ship, in data/.",
        "ngt ship HalfCheetah-v4 --scale lite",
    )  # fmt: skip
    sub.add_argument("env", help="env id")
    sub.add_argument("--replace", action="store_true", help="even one of a higher return")

    sub = add(
        "train", run_train, "Imitate: train runs, in packs where they share a cell.",
        "ngt train Pendulum-v1/ngt/state-action-demos4-rate20/seed0 --scale quick",
    )  # fmt: skip
    sub.add_argument("keys", nargs="+", metavar="RUN", help=RUN_HELP)
    sub.add_argument("--demos", type=Path, help="demonstration file (default: under results/)")
    add_strict(sub)
    add_device(sub)

    sub = add(
        "evaluate", run_evaluate, "Run a policy's deterministic episodes and print the returns.",
        "ngt evaluate results/quick/experts/Pendulum-v1/policy.safetensors",
    )  # fmt: skip
    sub.add_argument("policy", type=Path, help="policy file, or a run's folder")
    sub.add_argument("--episodes", type=int, default=16, help="default: 16")
    sub.add_argument("--seed", type=int, default=0, help="default: 0")
    sub.add_argument("--demos", type=Path, help="demonstration file, for the normalised return")

    sub = add(
        "runs", run_runs, "Print the run table: every key with its status.",
        "ngt runs --scale paper --figure main_figure --status missing",
    )  # fmt: skip
    sub.add_argument(
        "--figure", action="append",
        help="runs of this entry of the config's `figures` only (repeatable)",
    )  # fmt: skip
    sub.add_argument(
        "--status",
        help="only this status: finished, diverged (a tensor not finite), stale (complete, with "
        "other settings or demonstrations), damaged (complete once, a file was changed since), "
        "part (begun, not ended), missing",
    )
    sub.add_argument("--other-source", action="store_true", help="only runs made by other code")
    sub.add_argument("--keys", action="store_true", help="print keys alone, one a line")
    sub.add_argument(
        "--watch", type=int, nargs="?", const=60, metavar="SECONDS",
        help="print how many are done and how far the others are, again and again (60 s), until "
        "all are complete",
    )  # fmt: skip

    sub = add(
        "publish", run_publish,
        "Gather a scale's complete runs into one file of records that ships, with a manifest.",
        "ngt publish --scale quick",
    )  # fmt: skip
    sub.add_argument("--allow-partial", action="store_true", help="the runs that there are")

    sub = add(
        "bench", run_bench,
        "Measure updates per second on one thread, beside a peer, or methods beside each other.",
        "ngt bench --methods all --scale paper --json bench.json",
    )  # fmt: skip
    sub.add_argument(
        "--env", default="HalfCheetah-v4",
        help="sizes of the nets' inputs (default: HalfCheetah-v4)",
    )  # fmt: skip
    sub.add_argument("--pack", type=int, default=12, help="also a pack of this many (default: 12)")
    sub.add_argument(
        "--processes", type=int, default=1, help="also so many at once, a core each (default: 1)"
    )
    sub.add_argument(
        "--repeats", type=int, default=7, help="rounds; the median counts (default: 7)"
    )
    sub.add_argument("--updates", type=int, default=60, help="updates per round (default: 60)")
    sub.add_argument(
        "--methods", nargs="+", metavar="NAME",
        help="an iteration of these methods of the scale, or of `all`, one run each; the settings "
        "below are read with this option alone",
    )  # fmt: skip
    sub.add_argument(
        "--relative-to", metavar="NAME",
        help="with --methods: whose cost is 1 (default: the first of them)",
    )  # fmt: skip
    sub.add_argument("--json", type=Path, help="write the figures here too")

    sub = add(
        "config", run_config, "Print the resolved settings of a scale, or of one run.",
        "ngt config Pendulum-v1/ngt/state-action-demos4-rate20/seed0",
    )  # fmt: skip
    sub.add_argument("key", nargs="?", metavar="RUN", help=RUN_HELP)
    sub.add_argument("--schema", action="store_true", help="print the JSON schema of config files")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: a user's mistake is one line on stderr and exit code 2."""
    show_any_text()
    warnings.formatwarning = one_line
    args = argparse.Namespace(outcome=None)
    try:
        args = build_parser().parse_args(argv, args)
        args.run(args)
        refused(args, "")
    except UserError as error:
        print(f"ngt: error: {error}", file=sys.stderr)
        sys.exit(0 if refused(args, f"ngt: error: {error}\n") else 2)
    except Interrupted as stop:
        same = "the same command, without --restart," if args.restart else "the same command"
        print(f"ngt: stopped at step {stop}; {same} goes on from there", file=sys.stderr)
        sys.exit(os.EX_TEMPFAIL)
    except KeyboardInterrupt:
        print("ngt: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # `ngt runs | head`
        sys.stderr.close()
        sys.exit(141)
    except (FileExistsError, NotADirectoryError) as error:
        print(
            f"ngt: error: {error.filename}: a file, where a folder must be; move it away",
            file=sys.stderr,
        )
        sys.exit(2)
    except OSError as error:  # a full disk, a folder that may not be written
        print(f"ngt: error: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        line = (
            f"ngt: error: not enough memory ({reason}); lower train.buffer, train.batch, "
            f"train.num_envs, train.eval_episodes, sac.hidden or pack"
        )
        print(line, file=sys.stderr)
        sys.exit(0 if refused(args, f"{line}\n") else 2)


def refused(args: argparse.Namespace, reason: str) -> bool:
    """Leave the reason of a refusal for the workflow; whether it asked for one.

    The job has then done its part: trying it again would end in the same way.
    """
    if args.outcome is None:
        return False
    args.outcome.parent.mkdir(parents=True, exist_ok=True)
    args.outcome.write_text(reason, encoding="utf-8")
    return True


def one_line(message: Warning | str, *_: object, **__: object) -> str:
    """Return a warning as it is printed: without the line of code that gave it."""
    return f"ngt: warning: {message}\n"


# ---------------------------------------------------------------- settings


def add_planned(group: Any) -> None:
    """The option that jobs of the workflow get their settings by."""
    group.add_argument(
        "--planned", type=Path, metavar="FILE",
        help="complete settings in a file that the workflow named by their hash; it stands for "
        "--scale, --config and --set",
    )  # fmt: skip


def user_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The user's differences: file, then --set, then --scale."""
    import yaml

    data = loading.read_yaml(args.config) if args.config else {}
    for text in args.settings:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"--set: expected KEY=VALUE, found {text!r}; e.g. train.steps=20000")
        try:
            parsed: Any = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UserError(f"--set {name}: {value!r} is not a YAML value") from None
        for part in reversed(name.split(".")):
            parsed = {part: parsed}
        data = merge(data, parsed)
    return merge(data, {"scale": args.scale} if args.scale else {})


def load_config(args: argparse.Namespace) -> tuple[Config, Layout]:
    """The config and the places it writes to."""
    if args.planned and (args.scale or args.config or args.settings):
        raise UserError("--planned: it is complete; leave out --scale, --config and --set")
    config = loading.load_file(args.planned) if args.planned else loading.load(user_settings(args))
    return config, Layout(config.scale, args.results)


def one_thread(device: str) -> None:
    """A training process computes on one thread: jobs fill the cores."""
    try:
        import torch
    except Exception as error:  # a wrong TORCH_... variable, say: whatever its import raises
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"torch can't be imported: {reason:.200}") from None

    torch.set_num_threads(1)
    try:
        torch.device(device)
    except RuntimeError:
        raise UserError(f"--device: {device!r} is not a device; use cpu or cuda") from None
    if device != "cpu" and not torch.cuda.is_available():
        raise UserError(f"--device: {device!r} asked for, but torch sees no CUDA device; use cpu")


def at_least(low: int, **options: int | None) -> None:
    """Check the range of whole-number options."""
    for name, value in options.items():
        if value is not None and value < low:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option}: must be at least {low}, found {value}")


# ---------------------------------------------------------------- commands


def run_expert(args: argparse.Namespace) -> None:
    """Train an expert."""
    one_thread(args.device)

    from ngt.runs.folder import expert_key
    from ngt.training.learner import Member

    at_least(0, env_workers=args.env_workers)
    config, layout = load_config(args)
    get_task(args.env)
    cell = resolving.resolve_expert(config, args.env)
    seed = resolving.expert_config(config, args.env).seed
    folder = layout.expert(args.env)
    member = Member(folder, expert_key(args.env, seed), seed, demos=0)
    if not to_train(cell, member, f"expert {args.env}", args):
        return
    train(cell, [member], f"expert {args.env}", config, args)
    report(folder, f"expert {args.env}")


def run_record(args: argparse.Namespace) -> None:
    """Record demonstrations."""
    one_thread("cpu")

    from ngt.agent import policy
    from ngt.experience import demos
    from ngt.experience.examine import tell
    from ngt.runs.folder import Folders
    from ngt.runs.receipt import drop_receipts
    from ngt.runs.status import COMPLETE

    at_least(1, episodes=args.episodes)
    config, layout = load_config(args)
    get_task(args.env)
    expert = resolving.expert_config(config, args.env)
    actor, env = policy.load(policy_file(args.policy or layout.expert(args.env)))
    if env != args.env:
        raise UserError(
            f"--policy: it was trained on {env}, not on {args.env}; give a policy of {args.env}"
        )
    cell = resolving.resolve_expert(config, args.env)
    made = Folders(layout, config).expert_status(args.env)
    if not args.policy and made.status not in COMPLETE:
        raise UserError(
            f"expert {args.env}: {made.note or made.status} in {layout.expert(args.env)}; "
            f"`ngt expert {args.env} --replace` trains it again, --policy names another"
        )
    data = demos.record(
        args.env, actor, args.episodes or expert.episodes,
        expert.seed if args.seed is None else args.seed,
        source=str(args.policy) if args.policy else resolving.config_hash(cell),
        terminate_when_unhealthy=cell.terminate_when_unhealthy,
    )  # fmt: skip
    out = args.out or layout.demos(args.env)
    if args.strict:
        tell(data, f"demonstrations {out}", strict=True)
    drop_receipts(out.with_suffix(".done"))
    demos.save(out, data)
    say(
        f"{out}: {len(data.length)} episodes, return {data.expert:.1f} "
        f"(from {data.returns.min():.1f} to {data.returns.max():.1f}), random {data.random:.1f}"
    )
    warn_of_scale(data)


def run_ship(args: argparse.Namespace) -> None:
    """Ship an expert."""
    one_thread("cpu")

    from ngt.runs.ship import ship

    config, layout = load_config(args)
    get_task(args.env)
    say(ship(layout, config, args.env, replace_better=args.replace))


def run_train(args: argparse.Namespace) -> None:
    """Train runs."""
    from ngt.experience import demos

    one_thread(args.device)
    at_least(0, env_workers=args.env_workers)
    keys = [RunKey.parse(text) for text in args.keys]
    config, layout = load_config(args)
    for key in keys:
        get_task(key.env)
    jobs = [(resolve_key(config, pack[0]), pack) for pack in packs(keys, config.pack)]
    read = functools.cache(demos.load)  # so that what is odd about a file is said once
    for i, (cell, pack) in enumerate(jobs, 1):
        file = resolving.demos_file(config, cell.env)
        source = args.demos or (Path(file) if file else layout.demos(cell.env))
        data = read(
            source, cell.env, strict=args.strict,
            terminate_when_unhealthy=cell.terminate_when_unhealthy,
        )  # fmt: skip
        if train_pack(cell, pack, data, source, config, layout, args) and i < len(jobs):
            raise Interrupted(cell.train.steps)


def train_pack(
    cell: CellConfig, keys: Sequence[RunKey], data: Demos, source: Path, config: Config,
    layout: Layout, args: argparse.Namespace,
) -> bool:  # fmt: skip
    """Train the members of a pack that are not finished; whether it was told to stop meanwhile."""
    from ngt.experience import demos
    from ngt.experience.reference import reference_of
    from ngt.training.learner import Member

    if cell.demos_source not in (data.source, resolving.file_hash(source, "demos")):
        if not args.demos:
            raise UserError(
                f"demonstrations {source}: field 'source': found {data.source}, expected "
                f"{cell.demos_source}: these settings have another expert; `ngt expert` and "
                f"`ngt record` make it, --demos {source} takes these all the same"
            )
        cell = replace(cell, demos_source=resolving.file_hash(source, "--demos"))
    members, reference = [], reference_of(data)
    for key in keys:
        subset = demos.subsample(data, key.demos, key.rate, key.seed, f"demonstrations {source}")
        member = Member(layout.run(key), key.record, key.seed, key.demos, subset, reference)
        if to_train(cell, member, f"run {key}", args):
            members.append(member)
    if not members:
        return False
    warn_of_scale(data)  # not refused: what is learned does not depend on it
    name = f"{cell.method} {cell.env}" + (f" x{len(members)}" if len(members) > 1 else "")
    stopped = train(cell, members, name, config, args)
    for member in members:
        report(member.folder, f"run {member.key['run']}")
    return stopped


def warn_of_scale(data: Demos) -> None:
    """Print a line if no return can be normalised by these demonstrations."""
    from ngt.experience.reference import reference_of, unscored

    if reason := unscored(reference_of(data)):
        say(f"warning: {data.env}: no return can be normalised: {reason}")


def train(
    cell: CellConfig, members: Sequence[Member], name: str, config: Config,
    args: argparse.Namespace,
) -> bool:  # fmt: skip
    """Train runs that are not finished, from their checkpoints where they have any.

    Whether it was told to stop when nothing was left to do.
    """
    from ngt.training import job

    return job.train(
        cell, members, name, say, device=args.device, env_workers=args.env_workers,
        checkpoint_every=config.checkpoint_every, fresh=args.fresh, restart=args.restart,
    )  # fmt: skip


def to_train(cell: CellConfig, member: Member, name: str, args: argparse.Namespace) -> bool:
    """Whether a member is to be trained; a line if it is not, or is damaged.

    Errors: a complete run that is another one is replaced only if asked for.
    """
    from ngt.runs.status import COMPLETE
    from ngt.training.job import member_state

    if args.fresh:
        return True
    status, note, _ = member_state(cell, member)
    if status in COMPLETE:
        say(f"{name}: finished already in {member.folder}; --fresh trains it again")
        return False
    if status == "stale" and not args.replace:
        raise UserError(
            f"{name}: {note} in {member.folder}; --replace trains over it, --results DIR keeps both"
        )
    if status == "damaged":
        say(f"{name}: damaged, so it is trained again: {note}")
    return True


def report(folder: Path, name: str) -> None:
    """How a run ended, in one line."""
    record = read_json(folder / "run.json") or {}
    if record.get("status") == "diverged":
        say(f"{name}: diverged at step {record['step']}: {record['tensor']} is not finite")
    else:
        say(f"{name}: finished in {record['wall_seconds']:.0f} s -> {folder}")


def say(text: str) -> None:
    """A line for the user."""
    print(text, flush=True)


def run_evaluate(args: argparse.Namespace) -> None:
    """Evaluate a policy."""
    one_thread("cpu")

    import numpy as np

    from ngt.agent import policy
    from ngt.experience import demos, shipped
    from ngt.experience.reference import reference_of, unscored
    from ngt.experience.rollout import Evaluator

    at_least(1, episodes=args.episodes)
    config, _ = load_config(args)
    file = policy_file(args.policy)
    if file.resolve().parent.parent == shipped.DATA:
        shipped.read(file.resolve().parent.name)  # one that ships is whole, or it is said
    actor, env = policy.load(file)
    data = demos.load(args.demos, env) if args.demos else None
    own = read_json(file.parent / "config.json")  # of the run that made it
    terminate = resolving.resolve_expert(config, env).terminate_when_unhealthy
    if "terminate_when_unhealthy" not in user_settings(args) and isinstance(own, dict):
        terminate = bool(own.get("terminate_when_unhealthy", terminate))
    evaluator = Evaluator(env, [(args.seed, 0)], args.episodes, terminate_when_unhealthy=terminate)
    result = evaluator.run(actor, 0)
    evaluator.close()
    for episode, (value, length) in enumerate(
        zip(result.returns[0], result.lengths[0], strict=True)
    ):
        say(f"episode {episode}: return {value:.2f}, length {length}")
    mean, std = np.mean(result.returns), np.std(result.returns)
    say(f"{env}: mean return {mean:.2f} (std {std:.2f}) over {args.episodes} episodes")
    if data is None:
        return
    if not unscored(reference_of(data)):
        score = (mean - data.random) / (data.expert - data.random)
        say(f"normalised return {score:.3f} (random {data.random:.2f}, expert {data.expert:.2f})")
    warn_of_scale(data)


def policy_file(path: Path) -> Path:
    """A policy file, given itself or the folder of its run."""
    return path if path.suffix == ".safetensors" or path.is_file() else path / "policy.safetensors"


def run_runs(args: argparse.Namespace) -> None:
    """Print the run table."""
    from ngt.runs.status import STATUSES
    from ngt.runs.table import source

    config, layout = load_config(args)
    for name in args.figure or []:
        if name not in config.figures:
            near = suggest(name, list(config.figures))
            raise UserError(f"--figure: {name!r} is not known; {near}")
    if args.status and args.status not in STATUSES:
        near = suggest(args.status, list(STATUSES))
        raise UserError(f"--status: {args.status!r} is not known; {near}")
    keys = run_table(config, args.figure)
    if args.watch is not None:
        at_least(1, watch=args.watch)
        if args.keys or args.status or args.other_source:
            raise UserError("--watch: it counts every status; leave out what chooses among them")
        watch(layout, config, keys, args.watch)
        return
    counts: Counter[str] = Counter()
    records = source(layout, config)
    for key in keys:
        status = records.status(key)
        if args.status and status.status != args.status:
            continue
        if args.other_source and not status.other_source:
            continue
        counts[status.status] += 1
        say(str(key) if args.keys else f"{status.status:<9} {key!s:<70} {status.note}".rstrip())
    if not args.keys:
        say(counted(counts, config))


def counted(counts: Counter[str], config: Config) -> str:
    """How many runs there are of each status."""
    from ngt.runs.status import STATUSES

    parts = ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s])
    return f"{counts.total()} runs at scale {config.scale}" + (f": {parts}" if parts else "")


def watch(layout: Layout, config: Config, keys: Sequence[RunKey], seconds: float) -> None:
    """Say how far the runs are, again and again, until all are complete."""
    from ngt.runs.folder import Folders, how_far
    from ngt.runs.status import COMPLETE

    while True:
        folders = Folders(layout, config)
        statuses = {key: folders.status(key).status for key in keys}
        say(f"{time.strftime('%H:%M:%S')}  {counted(Counter(statuses.values()), config)}")
        for line in how_far(layout, config, keys):
            say(f"  {line}")
        if set(statuses.values()) <= set(COMPLETE):
            return
        time.sleep(seconds)


def run_publish(args: argparse.Namespace) -> None:
    """Gather records."""
    from ngt.runs.gather import publish, summary

    config, layout = load_config(args)
    manifest = publish(layout, config, allow_partial=args.allow_partial)
    say(f"{layout.published}: {summary(manifest)}")


def run_bench(args: argparse.Namespace) -> None:
    """Measure speed."""
    from ngt.bench.cpu import bench, bench_methods, together
    from ngt.bench.text import methods_table, table
    from ngt.files import write_json

    get_task(args.env)
    at_least(
        1, pack=args.pack, processes=args.processes, repeats=args.repeats, updates=args.updates
    )
    rounds = {"repeats": args.repeats, "updates": args.updates}
    if args.methods:
        config, _ = load_config(args)
        names = resolving.distinct_methods(config) if args.methods == ["all"] else args.methods
        reference = args.relative_to or names[0]
        for option, name in [*(("--methods", n) for n in names), ("--relative-to", reference)]:
            resolving.find_method(config, name, option)
        result = bench_methods(config, args.env, names, reference, **rounds)
        say(methods_table(result))
    elif args.relative_to:
        raise UserError("--relative-to: it goes with --methods; add `--methods all`")
    else:
        result = bench(args.env, pack=args.pack, **rounds)
        if args.processes > 1:
            result["together"] = together(args.env, processes=args.processes, **rounds)
        say(table(result))
    if args.json:
        write_json(args.json, result)


def run_config(args: argparse.Namespace) -> None:
    """Print settings."""
    if args.schema:
        say(json.dumps(schema(Config), indent=1))
        return
    config, _ = load_config(args)
    chosen: Config | CellConfig = config
    if args.key:
        key = RunKey.parse(args.key)
        get_task(key.env)
        chosen = resolve_key(config, key)
    say(json.dumps(asdict(chosen), indent=1))


if __name__ == "__main__":
    main()
