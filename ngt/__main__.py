"""Entry point of `ngt` and `python -m ngt`. It sets signal handlers before the slow imports."""

import importlib
import os
import signal
import sys
from typing import Any

RESUMING = ("expert", "train")  # commands that resume from checkpoints
REPEATING = {"--fresh", "--restart"}  # with these, the same command may repeat finished training


def stop(number: int, frame: Any) -> None:
    """Report the signal and exit. No training is in progress, so there is nothing to save."""
    if number == signal.SIGINT:
        line, code = "interrupted", 130
    else:
        line, code = f"stopped by {signal.Signals(number).name}", os.EX_TEMPFAIL
        if sys.argv[1:2] and sys.argv[1] in RESUMING and REPEATING.isdisjoint(sys.argv):
            line += "; the same command resumes"
    print(f"ngt: {line}", file=sys.stderr, flush=True)
    sys.exit(code)


def main() -> None:
    """Set signal handlers, which are replaced when training begins, and run the `ngt` command."""
    # Find the modules in the working folder that a config's `imports` names. The folder is the last
    # place to look in, so that no file there hides a package of the suite.
    sys.path.append("")
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        signal.signal(number, stop)
    importlib.import_module("ngt.cli").main()  # slow, so imported after the handlers are set


if __name__ == "__main__":
    main()
