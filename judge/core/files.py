"""Private files, and locks between processes that share a file.

Files and folders are readable by their owner only, because they hold texts, replies and templates. The system
releases a lock when its holder dies. Windows has no such lock: there, two runs must not write the same recording, or
wait for the same batches, at the same time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path


def make_private_dir(path: Path) -> None:
    """Create a folder, and its parents, that only its owner can read. Raises OSError.

    An existing folder keeps its permissions, and so do its parents.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """An opener for `open`: a new file can be read by its owner only."""
    return os.open(path, flags, 0o600)


if sys.platform != "win32":
    import fcntl


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[FileIO]:
    """Open a file to append, create it (for its owner) if it is missing, and wait for its lock.

    The locked file is the one at the path then, even if another replaced it during the wait. Holders of
    `shared` locks do not wait for each other. Raises OSError.
    """
    while True:
        with FileIO(path, "a", opener=private_opener) as file:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            if is_same_file(file, path):
                yield file
                return


def is_unlocked(path: Path) -> bool:
    """Return whether nobody holds a lock on this file. Raises OSError."""
    with FileIO(path, "a", opener=private_opener) as file:
        return try_lock(file)


def try_lock(file: FileIO) -> bool:
    """Lock an open file until it is closed; return False if somebody else holds the lock. Raises OSError."""
    try:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_same_file(file: FileIO, path: Path) -> bool:
    """Return whether an open file is (still) the one at this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
