"""ngt bench: measure how many updates per second the learners make on one CPU thread."""

import argparse
from pathlib import Path

from ngt.bench.cpu import bench, bench_methods, together
from ngt.bench.sbx import sbx
from ngt.bench.text import methods_table, table
from ngt.errors import UserError
from ngt.experience.envs import get_task
from ngt.files import write_json
from ngt.settings.options import at_least, load_config
from ngt.settings.resolve import distinct_methods, find_method
from ngt.text import amount, announce, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt bench` to its parser."""
    parser.epilog = "example: ngt bench --methods all --scale paper --json bench.json"
    parser.add_argument(
        "--env",
        default="HalfCheetah-v4",
        help="env that sets the sizes of the nets (default: HalfCheetah-v4)",
    )
    for name, default, text in (
        ("pack", 12, "also measure a pack of this many runs"),
        ("processes", 1, "also measure this many processes at once, on one core each"),
        ("repeats", 7, "number of rounds; results are their medians"),
        ("updates", 60, "updates per round"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{text} (default: {default})"
        )
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help="measure an iteration of each of these methods of the scale (or `all`), as a single "
        "run; the settings below are read only with this option",
    )
    parser.add_argument(
        "--relative-to",
        metavar="NAME",
        help="with --methods: the method whose cost is 1 (default: the first method)",
    )
    parser.add_argument(
        "--peers-python",
        type=Path,
        metavar="PATH",
        help="also measure SBX with the Python at PATH, which needs ngt/bench/peers.txt installed",
    )
    parser.add_argument("--json", type=Path, help="also write the results to this file")


def run(args: argparse.Namespace) -> None:
    """Measure the learners or methods, print a table and, with --json, write a JSON file."""
    get_task(args.env)
    at_least(
        1, pack=args.pack, processes=args.processes, repeats=args.repeats, updates=args.updates
    )
    rounds = {"repeats": args.repeats, "updates": args.updates}
    size = f"{amount(args.repeats, 'round')} of {amount(args.updates, 'update')}"
    begun = f"bench: measures {size}; may take minutes"
    if args.methods and args.peers_python:
        raise UserError("--peers-python cannot be used with --methods; leave out one of them")
    if args.methods:
        config = load_config(args)
        names = distinct_methods(config) if args.methods == ["all"] else args.methods
        reference = args.relative_to or names[0]
        for option, name in [*(("--methods", n) for n in names), ("--relative-to", reference)]:
            find_method(config, name, option)
        announce(begun)
        result = bench_methods(config, args.env, names, reference, **rounds)
        say(methods_table(result))
    elif args.relative_to:
        raise UserError("--relative-to needs --methods; add `--methods all`")
    else:
        with sbx(args.env, args.peers_python) as theirs:
            announce(begun)
            result = bench(args.env, pack=args.pack, theirs=theirs, **rounds)
        if args.processes > 1:
            result["together"] = together(args.env, processes=args.processes, **rounds)
        say(table(result))
    if args.json:
        write_json(args.json, result)
