"""The result of reading a file in another project's format, and imports of optional libraries."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ngt.errors import UserError
from ngt.experience.demos import Episode


@dataclass
class Found:
    """The episodes in a file, with values as in the file, and notes on them for the user."""

    episodes: list[Episode]
    notes: list[str] = field(default_factory=list)


def library(name: str, where: str) -> Any:
    """Import a library that only other projects' formats need. Raise UserError if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            f"{where}: reading it needs the package {name.split('.')[0]} ({error}); "
            f"pip install h5py 'minari[hdf5]', which are the extra `formats`"
        ) from None


@contextlib.contextmanager
def reading(where: str, fault: str) -> Iterator[None]:
    """Turn any exception into a UserError, since libraries may raise anything on damaged files."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{where}: {fault} ({type(error).__name__}: {reason})") from None
