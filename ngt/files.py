"""Files that are whole or absent."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]  # the folder that holds the package


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; flushed and renamed to it when the block succeeds.

    An OSError of the block that names no file names `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.filename is None:  # a full disk: writing does not say where
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the rename itself
    finally:
        os.close(directory)


def json_text(data: Any) -> str:
    """JSON, readable by people."""
    return json.dumps(data, indent=1) + "\n"


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically."""
    with atomic(path) as temporary:
        temporary.write_text(json_text(data), encoding="utf-8")


def read_json(path: Path) -> Any | None:
    """The JSON in a file; None where there is no such file or it is not JSON that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (ValueError, RecursionError):  # not JSON or text, a number too long, too deep
        return None
