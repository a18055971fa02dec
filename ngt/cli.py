"""The `ngt` command: every stage of the suite, usable without Snakemake.

Each command is a module of `ngt.commands`. Only the requested command's module is imported.
"""

import argparse
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import ngt
from ngt.errors import Interrupted, UserError, lacks_memory
from ngt.settings.options import Parser, add_settings
from ngt.text import show_any_text

COMMANDS = {
    "expert": "Train an env's SAC expert on the env's own reward.",
    "record": "Record whole episodes of an expert, and of a random policy.",
    "import": "Make a demonstration file from a Minari, D4RL, imitation or NumPy file.",
    "export": "Write a demonstration file as a Minari dataset.",
    "ship": "Add an env's recorded expert to the shipped experts in data/.",
    "train": "Train imitation runs. Runs that share a cell are trained in packs.",
    "evaluate": "Run a policy's deterministic episodes and print the returns.",
    "runs": "Print the run table: every key with its status.",
    "watch": "Draw the learning curves of runs in training, or write them for TensorBoard.",
    "video": "Film a policy beside its env's expert, as GIF or mp4.",
    "publish": "Gather a scale's complete runs into one file of records and a manifest, which "
    "can ship.",
    "bench": "Measure updates per second on one thread; compare with peers or between methods.",
    "config": "Print the resolved settings of a scale, or of one run.",
}

# Commands whose module in ngt.commands has a different name, each with the name of its module.
MODULES = {
    "import": "exchange.imports",
    "export": "exchange.exports",
    "watch": "views.watch",
    "video": "views.video",
}


def build_parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of `ngt`, with the names of all commands and the options of `command`."""
    parser = Parser(
        prog="ngt",
        description="Low-data imitation learning, reproduced.",
        epilog="Figures, tables and the workflow need a checkout, where make, snakemake and "
        "`python -m paper` work.",
    )
    parser.add_argument("--version", action="version", version=f"ngt {ngt.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, text in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=text,
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == command:
            module = load_command(name)
            module.add(sub)
            add_settings(sub)
            sub.set_defaults(run=module.run)
    return parser


def load_command(name: str) -> ModuleType:
    """Import the module of a command.

    Raise UserError if the import fails in torch, for example because TORCH_LOGS is invalid.
    """
    try:
        return importlib.import_module(f"ngt.commands.{MODULES.get(name, name)}")
    except Exception as error:
        frames = [
            frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)
        ]
        if "torch" not in (*frames, getattr(error, "name", None)):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"torch can't be imported: {reason:.200}") from None


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command. Report a user's mistake in one line on stderr and exit with code 2."""
    show_any_text()
    warnings.formatwarning = one_line
    words = list(sys.argv[1:] if argv is None else argv)
    args = argparse.Namespace(outcome=None)
    try:
        args = build_parser(words[0] if words else "").parse_args(words, args)
        args.run(args)
        write_outcome(args, "")
    except UserError as error:
        refuse(args, f"ngt: error: {error}")
    except Interrupted as stop:
        leave(resuming(stop, args.restart), os.EX_TEMPFAIL)
    except KeyboardInterrupt:
        leave("ngt: interrupted", 130)
    except BrokenPipeError:  # as in `ngt runs | head`, which closes the pipe early
        sys.stderr.close()
        sys.exit(141)
    except (FileExistsError, NotADirectoryError) as error:
        place = Path(error.filename)
        file = next((p for p in (*reversed(place.parents), place) if p.is_file()), place)
        leave(f"ngt: error: {file}: a folder is needed here; move this file away", 2)
    except OSError as error:  # such as a full disk or a folder without write permission
        leave(f"ngt: error: {error.filename or 'output'}: {error.strerror}", 2)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        refuse(
            args,
            f"ngt: error: not enough memory ({reason}); lower train.buffer, train.batch, "
            f"train.num_envs, train.eval_episodes, sac.hidden or pack",
        )


def resuming(stop: Interrupted, restart: bool) -> str:
    """Return a message that training was stopped, with the command that resumes it."""
    step, *left = stop.args
    changes = ["without --restart"] * restart + ["with only these runs"] * len(left)
    same = f"the same command, {' and '.join(changes)}," if changes else "the same command"
    runs = f": {' '.join(left[0])}" if left else ""
    return f"ngt: stopped at step {step}; {same} resumes from there{runs}"


def leave(line: str, code: int) -> NoReturn:
    """Print a line on stderr and exit."""
    print(line, file=sys.stderr)
    sys.exit(code)


def refuse(args: argparse.Namespace, line: str) -> NoReturn:
    """Print an error that a retry would not fix, and exit with code 2.

    If the `--outcome FILE` option is given, as it is in the workflow's jobs, also write the error
    to FILE and exit with code 0 instead.
    """
    print(line, file=sys.stderr)
    sys.exit(0 if write_outcome(args, f"{line}\n") else 2)


def write_outcome(args: argparse.Namespace, reason: str) -> bool:
    """Write the reason to the file given by `--outcome`. Return False if no file is given."""
    if args.outcome is None:
        return False
    args.outcome.parent.mkdir(parents=True, exist_ok=True)
    args.outcome.write_text(reason, encoding="utf-8")
    return True


def one_line(message: Warning | str, *_: object, **__: object) -> str:
    """Format a warning without the line of code that issued it."""
    return f"ngt: warning: {message}\n"


if __name__ == "__main__":
    main()
