"""Errors that a user can cause."""

import difflib
from collections.abc import Sequence


class UserError(Exception):
    """A mistake of the user's: one line naming the field, the value and the fix; exit code 2."""


class Interrupted(Exception):
    """Training was told to stop and left a checkpoint of this step in every run's folder."""


def lacks_memory(error: BaseException) -> bool:
    """Whether an allocation failed: NumPy and torch say so in words, on a CPU and on CUDA."""
    return isinstance(error, MemoryError) or "allocate" in str(error)


def suggest(name: str, known: Sequence[str]) -> str:
    """The fix for a name that is not known: the nearest one, or all of them."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(sorted(known)) or 'none'}"
