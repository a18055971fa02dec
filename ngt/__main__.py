"""The entry point of `ngt` and `python -m ngt`. It handles signals before the slow imports."""

import importlib
import os
import signal
import sys
from typing import Any


def stop(number: int, frame: Any) -> None:
    """Report the signal and exit; there is nothing to save yet."""
    interrupted = number == signal.SIGINT
    same = "" if interrupted else f" by {signal.Signals(number).name}; the same command resumes"
    print(f"ngt: {'interrupted' if interrupted else 'stopped'}{same}", file=sys.stderr, flush=True)
    sys.exit(130 if interrupted else os.EX_TEMPFAIL)


def main() -> None:
    """Run the command; a trainer replaces the handlers once it has something to save."""
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        signal.signal(number, stop)
    importlib.import_module("ngt.cli").main()  # imported here, since it takes seconds


if __name__ == "__main__":
    main()
