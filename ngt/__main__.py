"""The entry point of `ngt` and `python -m ngt`; sets signal handlers before the slow imports."""

import importlib
import os
import signal
import sys
from typing import Any


def stop(number: int, frame: Any) -> None:
    """Report the signal and exit. Training has not begun, so there is nothing to save."""
    interrupted = number == signal.SIGINT
    same = "" if interrupted else f" by {signal.Signals(number).name}; the same command resumes"
    print(f"ngt: {'interrupted' if interrupted else 'stopped'}{same}", file=sys.stderr, flush=True)
    sys.exit(130 if interrupted else os.EX_TEMPFAIL)


def main() -> None:
    """Set the signal handlers, which a trainer replaces later, and run the `ngt` command."""
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        signal.signal(number, stop)
    importlib.import_module("ngt.cli").main()  # slow, so imported after the handlers are set


if __name__ == "__main__":
    main()
