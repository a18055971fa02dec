"""Write files atomically, read and write JSON, and compute digests."""

import contextlib
import functools
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from ngt.errors import UserError

LARGEST = 4_000_000_000  # limit on an archive's unpacked size in bytes

PACKAGE = Path(__file__).resolve().parent
# An installed package contains copies of some folders of the repository: the baselines, the configs
# and the shipped experts.
INSTALLED = (PACKAGE / "checkout").is_dir()
CHECKOUT = PACKAGE / "checkout" if INSTALLED else PACKAGE.parent


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`. If the block succeeds, move the file to `path`.

    The file is flushed to disk before it is moved. If an OSError names no file or the temporary
    one, `path` becomes the error's file name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        # There is no name, for example, on a full disk. The name may be a Path.
        if error.filename is None or str(error.filename) == str(temporary):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # makes the rename durable
    finally:
        os.close(directory)


def json_text(data: Any) -> str:
    """Return data as indented JSON."""
    return json.dumps(data, indent=1) + "\n"


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically."""
    with atomic(path) as temporary:
        temporary.write_text(json_text(data), encoding="utf-8")


def read_json(path: Path) -> Any | None:
    """Return the data in a JSON file, or None if the file is missing or cannot be read as JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (
        FileNotFoundError,
        NotADirectoryError,
        IsADirectoryError,
        ValueError,  # not text, not JSON, or a number that is too long
        RecursionError,  # nested too deep
    ):
        return None


def sha256(content: bytes | Path) -> str:
    """Return the SHA-256 digest of bytes or a file. It identifies settings and shipped files."""
    return _digest(content, hashlib.sha256)


def checksum(content: bytes | Path) -> str:
    """Return the 128-bit BLAKE2b digest of bytes or a file.

    The digest is used to check runs and checkpoints.
    """
    return _digest(content, functools.partial(hashlib.blake2b, digest_size=16))


def check_unpacked(archive: ZipFile, where: str) -> None:
    """Check that an archive, however small its file is, unpacks to at most LARGEST bytes."""
    if (size := sum(info.file_size for info in archive.infolist())) > LARGEST:
        raise UserError(
            f"{where}: unpacks to {size:,} bytes, limit {LARGEST:,}; use a file with fewer episodes"
        )


def _digest(content: bytes | Path, algorithm: Callable[..., Any]) -> str:
    with io.BytesIO(content) if isinstance(content, bytes) else open(content, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
