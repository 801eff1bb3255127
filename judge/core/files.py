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
    """Make a folder, and those above it, where there is none; then it is its owner's alone. Raises OSError.

    One that is there stays as it is, and so do those above it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """For `open`: a file that this makes is its owner's alone."""
    return os.open(path, flags, 0o600)


if sys.platform != "win32":
    import fcntl


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[FileIO]:
    """The file, opened to append (and made where there is none, for its owner), and locked: waits for its holders.

    What is locked is what stands there then, though somebody put another file in its place meanwhile. Holders of
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
    """Whether nobody holds a lock on this file. Raises OSError."""
    with FileIO(path, "a", opener=private_opener) as file:
        return try_lock(file)


def try_lock(file: FileIO) -> bool:
    """Lock an open file until it is closed; False where somebody else holds it. Raises OSError."""
    try:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_same_file(file: FileIO, path: Path) -> bool:
    """Whether an open file is (still) the one at this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
