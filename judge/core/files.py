"""Private files, written whole or not at all, and locks between processes that share a file.

Files and folders are readable by their owner only, because they hold texts, replies and templates. The system
releases a lock when its holder dies.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from pydantic import ValidationError

from judge.core.errors import StorageError
from judge.core.invalid_values import first_invalid_value


def make_private_dir(path: Path) -> None:
    """Create a folder, and its parents, that only its owner can read. Raises OSError.

    An existing folder keeps its permissions, and so do its parents.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def try_writing(folder: Path) -> None:
    """Write a byte into a folder, and into none of its files. Raises OSError if that is not possible.

    Permissions alone do not tell: `/proc`, some network shares and a full disk look writable.
    """
    with TemporaryFile(dir=folder) as file:
        file.write(b"0")
        file.flush()


def claim_folder(folder: Path) -> None:
    """Make a folder and write to it, before anything is paid that is to be kept there. Raises StorageError."""
    try:
        make_private_dir(folder)
        try_writing(folder)
    except OSError as error:
        raise StorageError(describe_error("write", folder, error)) from error


def private_opener(path: str, flags: int) -> int:
    """An opener for `open`: a new file can be read by its owner only."""
    return os.open(path, flags, 0o600)


# Not portalocker: on Windows it locks the first bytes of the file, which then no other process can read, and it has
# shared locks only with pywin32.
if sys.platform == "win32":
    import msvcrt

    def _lock(file: FileIO, *, shared: bool, wait: bool) -> None:
        """Lock one byte far behind the end, because no other process can read or write a byte that is locked.

        There are no shared locks, so they exclude each other, too.
        """
        while True:
            file.seek(1 << 60)
            try:
                return msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except PermissionError:
                if not wait:
                    raise BlockingIOError from None
                time.sleep(0.05)
            finally:
                file.seek(0, os.SEEK_END)

else:
    import fcntl

    def _lock(file: FileIO, *, shared: bool, wait: bool) -> None:
        fcntl.flock(
            file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
        )


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[FileIO]:
    """Open a file to append, create it (for its owner) if it is missing, and wait for its lock.

    The locked file is the one at the path then, even if another replaced it during the wait. Holders of
    `shared` locks do not wait for each other. Raises OSError.
    """
    while True:
        with FileIO(path, "a", opener=private_opener) as file:
            _lock(file, shared=shared, wait=True)
            if is_same_file(file, path):
                yield file
                return


def try_lock(file: FileIO) -> bool:
    """Lock an open file until it is closed; return False if somebody else holds the lock. Raises OSError."""
    try:
        _lock(file, shared=False, wait=False)
    except BlockingIOError:
        return False
    return True


def is_same_file(file: FileIO, path: Path) -> bool:
    """Return whether an open file is (still) the one at this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write that takes this one's place, with its permissions, once it is whole and safe.

    Raises OSError.
    """
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)  # left by a process that was killed; a link is not followed
    try:
        with open(new, "xb", opener=private_opener) as file:
            if path.exists():
                new.chmod(path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


_ASIDE = ".judge-new"
"""The folder in which new files are written. They are of no use before it gets its second name."""
_READY = ".judge-ready"
"""The same folder once all its files are complete: from then on they replace the old ones, whatever happens."""
_STORE_LOCK = ".judge-lock"


def store(folder: Path, contents: Mapping[str, bytes], *, drop: Iterable[str] = ()) -> None:
    """Write these files so that nobody finds old and new ones side by side, even if the process is killed.

    All are written into a folder of their own first. When every one is complete, the old files go, also those
    to `drop`, and then the new ones take their places. What a killed process left is finished or removed first.
    Raises StorageError.
    """
    folder = Path(folder)
    aside = folder / _ASIDE
    try:
        make_private_dir(folder)
        with _one_writer(folder):
            _finish_store(folder)
            try:
                aside.mkdir(mode=0o700)
                for name, content in contents.items():
                    if (folder / name).is_dir():
                        raise IsADirectoryError(
                            errno.EISDIR, os.strerror(errno.EISDIR), str(folder / name)
                        )
                    (aside / name).write_bytes(content)
                for name in drop:
                    (folder / name).unlink(missing_ok=True)
                aside.rename(folder / _READY)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            _finish_store(folder)
    except OSError as error:
        raise StorageError(describe_error("write", folder, error)) from error


def recover(folder: Path, *, leftovers: bool = False) -> None:
    """Finish what a killed process began to put in place, so that its files are found together.

    With `leftovers`, as before a new run, also remove what it had not finished writing. Raises StorageError.
    """
    names = (_READY, _ASIDE, _STORE_LOCK) if leftovers else (_READY,)
    try:
        if any((folder / name).exists() for name in names):
            with _one_writer(folder):
                _finish_store(folder)
    except OSError as error:
        raise StorageError(
            describe_error("finish the files of a stopped run in", folder, error)
        ) from error


def _finish_store(folder: Path) -> None:
    """Remove unfinished files, and put complete ones in their places. Raises OSError."""
    aside = folder / _ASIDE
    if aside.exists():
        shutil.rmtree(aside)
    ready = folder / _READY
    if not ready.exists():
        return
    names = sorted(path.name for path in ready.iterdir())
    # One file can replace another in one step. Several cannot: without the first loop, a process that is killed
    # in the second one would leave new files beside old ones.
    if len(names) > 1:
        for name in names:
            (folder / name).unlink(missing_ok=True)
    for name in names:
        (ready / name).replace(folder / name)
    ready.rmdir()


@contextmanager
def _one_writer(folder: Path) -> Iterator[None]:
    """Wait until nobody else stores files in this folder. Raises OSError."""
    path = folder / _STORE_LOCK
    with locked(path):
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file: the next writer uses it again
                path.unlink()


def describe_error(action: str, path: Path, error: Exception) -> str:
    """What happened to which path, and what to do about it."""
    number = error.errno if isinstance(error, OSError) else None
    advice = {
        errno.ENOSPC: "free some space and run again",
        errno.EDQUOT: "free some of your quota and run again",
        errno.EACCES: "choose a folder you may use, or change its permissions",
        errno.EPERM: "choose a folder you may use, or change its permissions",
        errno.EROFS: "choose a folder on a disk that can be written",
        errno.ENOENT: (
            "choose a folder on a disk that can be written"
            if action == "write"
            else "check the path; a finished run has scores.parquet and samples.parquet"
        ),
        errno.ENOTDIR: "a file stands where a folder is needed; choose another folder",
        errno.EEXIST: "a file stands where a folder is needed; choose another folder",
        None: "the file is damaged or not from judge; run again to replace it",
    }
    reason = (
        error.strerror
        if isinstance(error, OSError) and error.strerror
        else str(error) or type(error).__name__
    )
    if isinstance(error, ValidationError):
        reason = str(first_invalid_value(error))
    return f"cannot {action} {path}: {reason}; {advice.get(number, 'check the disk and the path')}"
