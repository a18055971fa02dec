"""ngt runs: print the run table, which lists the key and status of every run of a scale."""

import argparse
import time
from collections import Counter
from collections.abc import Sequence

from ngt.errors import UserError, suggest
from ngt.runs import former
from ngt.runs.folder import Folders, how_far
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.status import COMPLETE, STATUSES
from ngt.runs.table import source
from ngt.settings.config import Config
from ngt.settings.options import at_least, load_config
from ngt.text import say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt runs` to its parser."""
    parser.epilog = "example: ngt runs --scale paper --figure main_figure --status missing"
    parser.add_argument(
        "--figure",
        action="append",
        help="list only the runs of this entry of the config's `figures` (repeatable)",
    )
    parser.add_argument(
        "--status",
        help="list only runs with this status: finished, diverged (a tensor is not finite), stale "
        "(complete, but settings or demonstrations differ), damaged (a file was changed after "
        "training), part (started but not complete), missing",
    )
    parser.add_argument(
        "--former",
        action="store_true",
        help="list the former results instead: runs that were replaced, and come back if their "
        "settings do",
    )
    parser.add_argument(
        "--remove", action="store_true", help="with --former: delete the listed results"
    )
    parser.add_argument(
        "--other-source", action="store_true", help="list only runs made by other code"
    )
    parser.add_argument("--keys", action="store_true", help="print only the keys, one per line")
    parser.add_argument(
        "--watch",
        type=int,
        nargs="?",
        const=60,
        metavar="SECONDS",
        help="print the number of runs with each status and the progress of unfinished runs, every "
        "SECONDS (default: 60), until all are complete",
    )


def run(args: argparse.Namespace) -> None:
    """Print the run table once, or with --watch repeatedly; with --former, print former results."""
    config = load_config(args)
    layout = Layout.of(config, args.results)
    for name in args.figure or []:
        check_known("--figure", name, list(config.figures))
    if args.status:
        check_known("--status", args.status, STATUSES)
    if args.former:
        if args.figure or args.keys or args.other_source or args.watch is not None:
            raise UserError("--former: takes only --status and --remove; leave out other options")
        list_former(layout, args.status, remove=args.remove)
        return
    if args.remove:
        raise UserError("--remove: deletes former results; add --former")
    keys = run_table(config, args.figure)
    if args.watch is not None:
        at_least(1, watch=args.watch)
        if args.keys or args.status or args.other_source:
            raise UserError(
                "--watch counts every status; leave out --keys, --status and --other-source"
            )
        watch(layout, config, keys, args.watch)
        return
    counts: Counter[str] = Counter()
    records = source(layout, config)
    for key in keys:
        status = records.status(key)
        chosen = not args.status or status.status == args.status
        if chosen and (status.other_source or not args.other_source):
            counts[status.status] += 1
            say(str(key) if args.keys else f"{status.status:<9} {key!s:<70} {status.note}".rstrip())
    if not args.keys:
        say(counted(counts, config))


def list_former(layout: Layout, status: str | None, *, remove: bool) -> None:
    """Print the former results, i.e. those of runs that were trained again.

    status: if given, list only results with this status.
    remove: delete the listed results.
    """
    count = size = 0
    for result in list(former.listed(layout.work)):
        if status in (None, result.status.status):
            count += 1
            size += sum(file.stat().st_size for file in result.folder.iterdir())
            line = f"{result.status.status:<9} {result.name:<70} {result.folder.name}"
            say(f"{line}  {result.status.note}".rstrip())
            if remove:
                former.remove(result)
    what = f"{count} former results, {size / 1e6:.1f} MB, in {layout.work / former.FORMER}"
    say(f"{what}: deleted" if remove else what)


def check_known(option: str, name: str, known: Sequence[str]) -> None:
    """Raise UserError unless an option's value is one of the known names."""
    if name not in known:
        raise UserError(f"{option}: {name!r} is not known; {suggest(name, known)}")


def counted(counts: Counter[str], config: Config) -> str:
    """Return a line with the number of runs in total and with each status."""
    parts = ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s])
    of = f" of study {config.study}" if config.study else ""
    return f"{counts.total()} runs at scale {config.scale}{of}" + (f": {parts}" if parts else "")


def watch(layout: Layout, config: Config, keys: Sequence[RunKey], seconds: float) -> None:
    """Print the progress of the runs every `seconds` seconds until all runs are complete."""
    while True:
        folders = Folders(layout, config)
        statuses = {key: folders.status(key).status for key in keys}
        say(f"{time.strftime('%H:%M:%S')}  {counted(Counter(statuses.values()), config)}")
        for line in how_far(layout, config, keys):
            say(f"  {line}")
        if set(statuses.values()) <= set(COMPLETE):
            return
        time.sleep(seconds)
