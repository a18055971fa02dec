"""Errors that a user can cause."""

import difflib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path


class UserError(Exception):
    """A user's mistake.

    The message is one line with the field, its value and the fix. The exit code is 2.
    """


class Interrupted(Exception):
    """Training was stopped by a signal. The first argument is the step of every run's checkpoint.

    If the same command would train finished runs again, the second argument lists the keys of the
    other runs.
    """


def lacks_memory(error: BaseException) -> bool:
    """Return True if an error is a failed memory allocation.

    NumPy's and torch's messages about failed allocations contain the word "allocate".
    """
    return isinstance(error, MemoryError) or "allocate" in str(error)


def fault(error: BaseException) -> str:
    """Describe an exception from a user's code in one line, with its last place in this code."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    others = (sys.prefix, sys.base_prefix, str(Path(__file__).parent), "<")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(others)]
    return f"{text}; {own[-1].filename}, line {own[-1].lineno}" if own else text


def suggest(name: str, known: Sequence[str]) -> str:
    """Suggest known names that are similar to an unknown name, or list all known names."""
    if near := difflib.get_close_matches(name, known, n=3, cutoff=0.5):
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(sorted(known)) or 'none'}"
