"""The result of reading a file in another project's format, and a guard against damaged files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ngt.errors import UserError
from ngt.experience.demos import Episode


@dataclass
class Found:
    """The episodes in a file, with their values unchanged, and notes for the user about them.

    gym_id: gymnasium's id of the env on which they were recorded, or None if the file lacks it.
    """

    episodes: list[Episode]
    notes: list[str] = field(default_factory=list)
    gym_id: str | None = None


@contextlib.contextmanager
def reading(where: str, fault: str, source: Path | None = None) -> Iterator[None]:
    """Turn any exception into a UserError.

    On damaged files, libraries may raise any type of exception.

    source: the file or folder to read. If it is missing, the error says so.
    """
    try:
        if source is not None and not source.exists():
            raise UserError(f"{where}: no such file or folder")
        yield
    except UserError:
        raise
    except IsADirectoryError:
        raise UserError(f"{where}: it is a folder; name the file in it") from None
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{where}: {fault} ({type(error).__name__}: {reason})") from None
