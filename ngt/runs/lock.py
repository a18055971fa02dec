"""The lock of a run's folder. Only the process that holds the lock may change the folder."""

import contextlib
import errno
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ngt.errors import UserError

UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
PATIENCE = 1.0  # seconds to wait for a lock, since another process may be about to release it


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock on a run's folder until the context ends.

    If another process holds the lock, raise a UserError that names this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, holder = folder / ".lock", "another process"
    try:
        lock = FileLock(path, timeout=PATIENCE, fallback_to_soft=False).acquire()
    except Timeout:
        with contextlib.suppress(FileNotFoundError):
            holder = path.read_text(encoding="utf-8").strip() or holder
        raise UserError(f"{folder}: being trained by {holder}; wait for it, or stop it") from None
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno not in UNSUPPORTED:
            raise
        raise UserError(
            f"{folder}: this file system can't lock files; choose another --results folder, or "
            f"mount the file system with locks (flock)"
        ) from None
    with lock:
        try:
            path.write_text(f"process {os.getpid()} on {platform.node()}\n", encoding="utf-8")
            yield
        finally:
            path.unlink(missing_ok=True)  # a process that waits for this lock creates a new file
