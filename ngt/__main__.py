"""The command, as `python -m ngt` too. It heeds signals before the imports, which take seconds."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def stop(number: int, frame: Any) -> None:
    """Say that the process was told to stop, and end it: there is nothing to save."""
    interrupted = number == signal.SIGINT
    same = "" if interrupted else f" by {signal.Signals(number).name}; the same command resumes"
    print(f"ngt: {'interrupted' if interrupted else 'stopped'}{same}", file=sys.stderr, flush=True)
    sys.exit(130 if interrupted else os.EX_TEMPFAIL)


def main() -> None:
    """Run the command; a trainer takes the signals over when it has something to save."""
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        signal.signal(number, stop)
    from ngt import cli

    cli.main()


if __name__ == "__main__":
    main()
