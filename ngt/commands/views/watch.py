"""ngt watch: show the learning curves of runs in training, in the terminal or in TensorBoard."""

import argparse
import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from ngt.commands.runs import add_figure, chosen_keys, counted, untrained
from ngt.errors import UserError
from ngt.runs.keys import Layout
from ngt.settings.options import at_least, load_config
from ngt.text import amount, say
from ngt.views.events import Events
from ngt.views.progress import Progress
from ngt.views.sketch import draw

WIDTH = 120  # number of columns to draw if the output is not a terminal
# Terminal codes: go to the top, clear the rest of the line, and clear the rest of the screen.
HOME, REST_OF_LINE, REST = "\x1b[H", "\x1b[K", "\x1b[J"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ngt watch` to its parser."""
    parser.epilog = "example: ngt watch --scale quick --tensorboard results/tensorboard"
    add_figure(parser, "watch")
    parser.add_argument(
        "--every",
        type=int,
        default=10,
        metavar="SECONDS",
        help="time between two looks (default: 10)",
    )
    parser.add_argument(
        "--tensorboard",
        type=Path,
        metavar="DIR",
        help="instead of drawing, write all rows of eval.csv and train.csv to event files in DIR, "
        "until all runs are complete",
    )


def run(args: argparse.Namespace) -> None:
    """Show the runs until all are complete. If there is no terminal, draw the curves only once."""
    at_least(1, every=args.every)
    config = load_config(args)
    layout = Layout.of(config, args.results)
    keys = chosen_keys(config, args.figure)
    progress = Progress(layout, config, keys)
    events = events_in(args.tensorboard, layout)
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    said = ""
    if events:
        say(f"to see the curves, use another terminal: tensorboard --logdir {args.tensorboard}")
    while True:
        begun = progress.look()
        head = counted(Counter(progress.statuses.values()), config)
        none = not begun and set(progress.statuses.values()) <= {"missing"}
        hint = [untrained(keys, args)] if none else []
        if events is not None:
            rows = sum(events.write(run, progress) for run in begun)
            if rows or head != said:  # otherwise there is nothing to say
                added = amount(rows, "row") if rows else "no row"
                line = f"{time.strftime('%H:%M:%S')}  {head}; {added} added to {args.tensorboard}"
                say("\n".join([line, *hint]))
            said = head
        elif terminal:
            size = shutil.get_terminal_size()
            lines = [*draw(progress, begun, head, size.columns, size.lines - 1), *hint]
            say(HOME + "".join(f"{line}{REST_OF_LINE}\n" for line in lines) + REST)
        else:
            say("\n".join([*draw(progress, begun, head, WIDTH, None), *hint]))
        if progress.over or not (terminal or events):
            return
        time.sleep(args.every)


def events_in(folder: Path | None, layout: Layout) -> Events | None:
    """Return the event files in a TensorBoard folder, or None if no folder is given.

    The folder must be outside the scale's results.
    """
    if folder is None:
        return None
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--tensorboard: {folder} is not a folder; give another name")
    if folder.resolve().is_relative_to(layout.work.resolve()):
        raise UserError(
            f"--tensorboard: {folder} is among the results of the scale, in {layout.work}; "
            f"choose another folder, such as {layout.root / 'tensorboard'}"
        )
    return Events(folder)
