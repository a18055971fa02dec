"""ngt runs: print the key (name) and status of every run at a scale, i.e. in a preset config."""

import argparse
from collections import Counter
from collections.abc import Sequence

from ngt.errors import UserError, suggest
from ngt.runs import former
from ngt.runs.folder import Folders
from ngt.runs.keys import Layout, RunKey, run_table
from ngt.runs.published import expert_name
from ngt.runs.status import STATUSES, other_settings
from ngt.runs.table import source
from ngt.settings.config import Config
from ngt.settings.options import load_config, repeated
from ngt.settings.resolve import resolve_expert
from ngt.text import amount, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt runs` to its parser."""
    parser.epilog = "example: ngt runs --scale paper --figure main_figure --status missing"
    add_figure(parser, "list")
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


def add_figure(parser: argparse.ArgumentParser, verb: str) -> None:
    """Add the --figure option.

    verb: what the command does with the runs, for the help text.
    """
    parser.add_argument(
        "--figure",
        action="append",
        help=f"{verb} only the runs of this entry of the config's `figures` (repeatable)",
    )


def run(args: argparse.Namespace) -> None:
    """Print the table of runs or, with --former, the results that newer results have replaced."""
    config = load_config(args)
    layout = Layout.of(config, args.results)
    keys = chosen_keys(config, args.figure)
    if args.status:
        check_known("--status", args.status, STATUSES)
    if args.former:
        if args.figure or args.keys or args.other_source:
            raise UserError("--former: takes only --status and --remove; leave out other options")
        list_former(layout, config, args.status, remove=args.remove)
        return
    if args.remove:
        raise UserError("--remove: deletes former results; add --former")
    counts: Counter[str] = Counter()
    records = source(layout, config)
    statuses = {key: records.status(key) for key in keys}
    for key, status in statuses.items():
        wanted = not args.status or status.status == args.status
        if wanted and (status.other_source or not args.other_source):
            counts[status.status] += 1
            say(str(key) if args.keys else f"{status.status:<9} {key!s:<70} {status.note}".rstrip())
    if not args.keys:
        say(counted(counts, config))
        if config.records != "published" and all(s.status == "missing" for s in statuses.values()):
            say(untrained(keys, args))


def chosen_keys(config: Config, figures: Sequence[str] | None) -> list[RunKey]:
    """Return the keys of the runs that the named figures request, or of all runs.

    figures: names of entries in the config's `figures`, or None for all runs.
    """
    for name in figures or []:
        check_known("--figure", name, list(config.figures))
    return run_table(config, figures)


def list_former(layout: Layout, config: Config, status: str | None, *, remove: bool) -> None:
    """Print the former results, i.e. the earlier results of runs that were trained again.

    Each line ends with the first setting that differs from the config's, if any.

    status: list only results with this status, or None to list all former results.
    remove: True to delete the listed results.
    """
    keys, folders = run_table(config), Folders(layout, config)
    cells = {str(key): folders.cell(key) for key in keys}
    cells |= {expert_name(env): resolve_expert(config, env) for env in {key.env for key in keys}}
    count = size = 0
    for result in list(former.listed(layout.work)):
        if status in (None, result.status.status):
            count += 1
            size += sum(file.stat().st_size for file in result.folder.iterdir())
            line = f"{result.status.status:<9} {result.name:<70} {result.folder.name}"
            cell = cells.get(result.name)
            differs = other_settings(result.folder, cell) if cell else ""
            say(f"{line}  {result.status.note}{f'; {differs}' * bool(differs)}".rstrip())
            if remove:
                former.remove(result)
    what = (
        f"{amount(count, 'former result')}, {size / 1e6:.1f} MB, in {layout.work / former.FORMER}"
    )
    say(f"{what}: deleted" if remove else what)


def check_known(option: str, name: str, known: Sequence[str]) -> None:
    """Raise UserError unless an option's value is one of the known names."""
    if name not in known:
        raise UserError(f"{option}: {name!r} is not known; {suggest(name, known)}")


def counted(counts: Counter[str], config: Config) -> str:
    """Return a line that states the total number of runs and how many have each status."""
    parts = ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s])
    of = f" of study {config.study}" if config.study else ""
    total = amount(counts.total(), "run")
    return f"{total} at scale {config.scale}{of}" + (f": {parts}" if parts else "")


def untrained(keys: Sequence[RunKey], args: argparse.Namespace) -> str:
    """Return a message that no run exists yet, with the command that trains the first run.

    args: the command line, whose settings the command repeats.
    """
    which = "none of these runs has been trained yet"
    if not keys:
        return which
    return f"{which}; to train one: `{repeated(f'ngt train {keys[0]}', args)}`"
