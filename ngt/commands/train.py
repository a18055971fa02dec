"""ngt train: train runs that imitate demonstrations.

Runs that differ only in seed and number of demonstrations are trained together, as a pack, in this
process.
"""

import argparse
import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ngt.commands.shared import (
    add_strict,
    add_training,
    needs_training,
    one_thread,
    read_demos,
    report,
    train_members,
    warn_of_scale,
)
from ngt.errors import Interrupted, UserError
from ngt.experience import demos
from ngt.experience.demos import Demos
from ngt.experience.envs import get_task
from ngt.experience.reference import reference_of
from ngt.files import read_json
from ngt.runs.keys import Layout, RunKey, packs, resolve_key
from ngt.settings.config import CellConfig, Config
from ngt.settings.options import RUN_HELP, at_least, load_config
from ngt.settings.recording import difference
from ngt.settings.resolve import demos_file, file_hash
from ngt.training.learner import Member


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt train` to its parser."""
    parser.epilog = (
        "example: ngt train Pendulum-v1/ngt/state-action-demos4-rate20/seed0 --scale quick"
    )
    parser.add_argument("keys", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--demos", type=Path, help="demonstration file (default: under results/)")
    add_strict(parser)
    add_training(parser)


def run(args: argparse.Namespace) -> None:
    """Train the named runs, except finished runs. The runs of a pack are trained together.

    If a signal stops training after some runs were trained again because of --fresh, raise
    Interrupted with the runs that are left.
    """
    one_thread(args.device)
    at_least(0, env_workers=args.env_workers)
    keys = [RunKey.parse(text) for text in args.keys]
    config = load_config(args)
    layout = Layout.of(config, args.results)
    for key in keys:
        get_task(key.env)
    records = {key: layout.run(key) / "run.json" for key in keys}
    before = {key: read_json(file) for key, file in records.items() if args.fresh}
    try:
        train_packs(keys, config, layout, args)
    except Interrupted as stop:
        left = [str(key) for key, record in before.items() if read_json(records[key]) == record]
        if len(left) == len(before):  # always so without --fresh
            raise
        raise Interrupted(stop.args[0], left) from None


def train_packs(
    keys: Sequence[RunKey], config: Config, layout: Layout, args: argparse.Namespace
) -> None:
    """Train runs, one pack after the other, after reading the demonstrations of all packs."""
    cells = [(resolve_key(config, pack[0]), pack) for pack in packs(keys, config.pack)]
    read = functools.cache(read_demos)  # so that warnings about a file are printed only once
    jobs = []
    for cell, pack in cells:
        source = args.demos or Path(demos_file(config, cell.env) or layout.demos(cell.env))
        data = read(
            source,
            cell.env,
            strict=args.strict,
            terminate_when_unhealthy=cell.terminate_when_unhealthy,
        )
        cell = with_demos(config, cell, data, source, args)
        jobs.append((cell, [member_of(key, data, source, layout) for key in pack], data))
    for i, (cell, members, data) in enumerate(jobs, 1):
        left = [m for m in members if needs_training(cell, m, run_name(m), args)]
        if not left:
            continue
        warn_of_scale(data)  # not an error, because training does not use normalised returns
        name = f"{cell.method} {cell.env}" + (f" x{len(left)}" if len(left) > 1 else "")
        stopped = train_members(cell, left, name, config, args)
        for member in left:
            report(member.folder, run_name(member))
        if stopped and i < len(jobs):
            raise Interrupted(cell.train.steps)


def with_demos(
    config: Config, cell: CellConfig, data: Demos, source: Path, args: argparse.Namespace
) -> CellConfig:
    """Return a pack's settings `cell`, with these demonstrations as the `demos_source`.

    Without --demos, raise UserError if the settings name no file and the demonstrations are not
    those that `ngt record` would record with these settings.
    """
    if args.demos:
        given = file_hash(source, "--demos")
        known = cell.demos_source in (data.source, given)
        return cell if known else replace(cell, demos_source=given)
    named = demos_file(config, cell.env)
    if not named and (other := difference(config, cell.env, data.source, data.seeds)):
        raise UserError(
            f"demonstrations {source}: {other}, or pass --demos {source} to use this file anyway"
        )
    return cell


def member_of(key: RunKey, data: Demos, source: Path, layout: Layout) -> Member:
    """Return a run as a member of its pack, including the demonstrations that it imitates."""
    return Member(
        layout.run(key),
        key.record,
        key.seed,
        key.demos,
        demos.subsample(data, key.demos, key.rate, key.seed, f"demonstrations {source}"),
        reference_of(data),
    )


def run_name(member: Member) -> str:
    """Return the name by which messages refer to a run."""
    return f"run {member.key['run']}"
