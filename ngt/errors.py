"""Errors that a user can cause."""

import difflib
from collections.abc import Sequence


class UserError(Exception):
    """A user's mistake. One line reports the field, its value and the fix; the exit code is 2."""


class Interrupted(Exception):
    """A signal stopped training. The argument is the step at which every run has a checkpoint."""


def lacks_memory(error: BaseException) -> bool:
    """Return True if an error is a failed allocation of memory.

    The messages of NumPy and torch about such a failure contain "allocate".
    """
    return isinstance(error, MemoryError) or "allocate" in str(error)


def suggest(name: str, known: Sequence[str]) -> str:
    """Return text that suggests a fix for an unknown name: similar known names, or all names."""
    if near := difflib.get_close_matches(name, known, n=3, cutoff=0.5):
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(sorted(known)) or 'none'}"
