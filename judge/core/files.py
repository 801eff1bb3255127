"""Private files, written whole or not at all, and locks between processes that share a file.

Files and folders are readable by their owner only, because they hold texts, replies and templates.
The system releases a lock when its holder dies.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from itertools import chain, count
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from typing import IO

from pydantic import ValidationError

from judge.core.errors import StorageError
from judge.core.format import one_line
from judge.core.invalid_values import first_invalid_value
from judge.core.messages import option


def make_private_dir(path: Path) -> None:
    """Create a folder, and its parents, that only its owner can read. Raises OSError.

    An existing folder keeps its permissions, and so do its parents.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def try_writing(folder: Path) -> None:
    """Write a byte into a new file of a folder, and remove it. Raises OSError if that fails.

    Permissions are not enough: `/proc`, some network shares and a full disk look writable.
    """
    with TemporaryFile(dir=folder) as file:
        file.write(b"0")
        file.flush()


def claim_folder(folder: Path) -> None:
    """Make a folder and write to it, before anything is paid whose results belong there.

    Raises StorageError.
    """
    try:
        make_private_dir(folder)
        try_writing(folder)
    except OSError as error:
        raise StorageError(describe_error("write", folder, error)) from error


def unused_path(path: Path) -> Path:
    """Return the path if nothing is there, else the first of `NAME.2`, `NAME.3`, … that is free."""
    numbered = (path.with_name(f"{path.name}.{number}") for number in count(2))
    candidates = chain([path], numbered)
    return next(candidate for candidate in candidates if not candidate.exists())


def private_opener(path: str, flags: int) -> int:
    """Open a file so that, if it is new, only its owner can read it: an opener for `open`."""
    return os.open(path, flags, 0o600)


# Not portalocker: on Windows it locks the first bytes of the file, which then no other process can
# read, and it has shared locks only with pywin32.
if sys.platform == "win32":
    import msvcrt

    def _lock(file: FileIO, *, shared: bool, wait: bool) -> None:
        """Lock one byte far behind the end, because no other process can read a locked byte.

        Windows has no shared locks here, so they exclude each other, too.
        """
        while True:
            file.seek(1 << 60)
            try:
                return msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except PermissionError:
                if not wait:
                    raise BlockingIOError from None
                # msvcrt's own waiting lock, LK_LOCK, tries once a second and gives up after ten.
                time.sleep(0.05)
            finally:
                file.seek(0, os.SEEK_END)

else:
    import fcntl

    def _lock(file: FileIO, *, shared: bool, wait: bool) -> None:
        operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        if not wait:
            operation |= fcntl.LOCK_NB
        fcntl.flock(file, operation)


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[FileIO]:
    """Open a file to append, create it (for its owner) if it is missing, and wait for its lock.

    The locked file is the one at the path at that time, even if another process replaced it during
    the wait. Holders of `shared` locks do not wait for each other. Raises OSError.
    """
    while True:
        with FileIO(path, "a", opener=private_opener) as file:
            _lock(file, shared=shared, wait=True)
            if is_same_file(file, path):
                yield file
                return


def try_lock(file: FileIO) -> bool:
    """Lock an open file until it is closed; return False if somebody else holds the lock.

    Raises OSError.
    """
    try:
        _lock(file, shared=False, wait=False)
    except BlockingIOError:
        return False
    return True


def is_same_file(file: FileIO, path: Path) -> bool:
    """Return whether an open file is (still) the one at this path."""
    try:
        opened = os.fstat(file.fileno())
        return os.path.samestat(opened, path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def replacing(path: Path, *, private: bool = True) -> Iterator[IO[bytes]]:
    """Open a new file that replaces this one, with its permissions, when it is complete.

    If there is none yet, only its owner can read it, unless it is not `private`. If the block
    raises, the old file stays. Of two processes that replace one file at the same time, the later
    one wins. A killed process leaves its new file. Raises OSError.
    """
    # A random name, so that nobody else writes to it, whatever the length of the old name.
    new_path = path.with_name(f".judge-{token_hex(8)}.new")
    try:
        opener = private_opener if private else None
        with open(new_path, "xb", opener=opener) as file:
            if path.exists():
                new_path.chmod(path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        new_path.replace(path)
    except BaseException:
        new_path.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a report or another file that is not private: a full disk leaves the old one or none.

    Raises OSError.
    """
    # Nothing can replace a pipe, a device such as /dev/stdout, or a file in a folder that takes no
    # new files.
    is_replaceable = path.is_file() and os.access(path.resolve().parent, os.W_OK)
    if path.exists() and not is_replaceable:
        path.write_bytes(content)
        return
    # A link stays a link: the file behind it is replaced.
    with replacing(path.resolve(), private=False) as file:
        file.write(content)


def append_whole(path: Path, content: bytes) -> None:
    """Add to the end of a file, all or nothing. Raises OSError.

    If no other process adds to it meanwhile: what was added is cut off after an error.
    """
    old_size = path.stat().st_size if path.is_file() else 0
    try:
        with path.open("ab") as file:
            file.write(content)
    except OSError:
        if path.is_file():
            os.truncate(path, old_size)
        raise


# `store` writes new files into a folder of this name. Readers ignore it until it is renamed.
_ASIDE = ".judge-new"
# Its name when all its files are complete. From then on they replace the old ones, even if the
# process is killed: the next one that calls `store` or `recover` finishes that.
_READY = ".judge-ready"
# The process that holds the lock of this file is the only one that may touch these folders.
_STORE_LOCK = ".judge-lock"


def store(
    folder: Path, contents: Mapping[str, bytes], *, drop: Iterable[str] = ()
) -> None:
    """Write these files so that nobody finds old and new ones together.

    All are written into a separate folder first. When they are complete, the files to `drop` and
    the old files are removed, and then the new ones are moved to their places. A reader that comes
    in between finds none, or fewer. If an earlier process was killed meanwhile, its files are
    finished or removed first. Raises StorageError.
    """
    folder = Path(folder)
    aside = folder / _ASIDE
    try:
        make_private_dir(folder)
        with _one_writer(folder):
            _finish_store(folder)
            try:
                aside.mkdir(mode=0o700)
                for file_name, content in contents.items():
                    target = folder / file_name
                    if target.is_dir():
                        # Moving the file there would fail after the old files were removed.
                        reason = os.strerror(errno.EISDIR)
                        raise IsADirectoryError(errno.EISDIR, reason, str(target))
                    (aside / file_name).write_bytes(content)
                for file_name in drop:
                    (folder / file_name).unlink(missing_ok=True)
                aside.rename(folder / _READY)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            _finish_store(folder)
    except OSError as error:
        raise StorageError(describe_error("write", folder, error)) from error


def refuse_other_content(folder: Path, files: Mapping[str, bytes], noun: str) -> None:
    """Raise StorageError if one of these files is in the folder, with other content.

    It then belongs to another `noun`, such as a run.
    """
    for file_name, content in files.items():
        path = folder / file_name
        if path.exists() and path.read_bytes() != content:
            raise StorageError(
                f"{folder} holds another {noun}: name another folder, or save(..., overwrite=True)"
            )


def recover(folder: Path, *, leftovers: bool = False) -> None:
    """Finish the moves of a process that was killed in `store`, so that its files are together.

    With `leftovers`, as before a new run, also remove what it had not finished writing. Without
    them, a folder that needs no moves is not written to: a reader may not be allowed to. Raises
    StorageError.
    """
    names = (_READY, _ASIDE, _STORE_LOCK) if leftovers else (_READY,)
    try:
        if any((folder / file_name).exists() for file_name in names):
            with _one_writer(folder):
                _finish_store(folder)
    except OSError as error:
        raise StorageError(
            describe_error("finish the files of a stopped run in", folder, error),
        ) from error


def _finish_store(folder: Path) -> None:
    """Remove unfinished files, and put complete ones in their places. Raises OSError."""
    aside = folder / _ASIDE
    if aside.exists():
        shutil.rmtree(aside)
    ready = folder / _READY
    if not ready.exists():
        return
    file_names = sorted(path.name for path in ready.iterdir())
    # One file can replace another in one step. Several cannot: without the first loop, a process
    # that is killed in the second one would leave new files beside old ones.
    if len(file_names) > 1:
        for file_name in file_names:
            (folder / file_name).unlink(missing_ok=True)
    for file_name in file_names:
        (ready / file_name).replace(folder / file_name)
    ready.rmdir()


@contextmanager
def _one_writer(folder: Path) -> Iterator[None]:
    """Wait until nobody else stores files in this folder. Raises OSError."""
    path = folder / _STORE_LOCK
    with locked(path):
        try:
            yield
        finally:
            # Windows does not remove an open file: the next writer uses it again.
            with suppress(OSError):
                path.unlink()


# A run holds the lock of this file from its start to its end.
_RUN_LOCK = ".judge-run"


def is_unfinished(folder: Path) -> bool:
    """Return whether a run is writing to a folder, or was killed while it did."""
    return (folder / _RUN_LOCK).exists()


@contextmanager
def run_folder(folder: Path) -> Iterator[None]:
    """Claim a folder for one run, so that no other run writes to it meanwhile.

    Raises StorageError.
    """
    claim_folder(folder)
    path = folder / _RUN_LOCK
    with ExitStack() as stack:
        try:
            stack.enter_context(_only_holder(path))
        except BlockingIOError:
            raise StorageError(
                f"{folder}: another run is writing to it; wait until that has ended, or name "
                f"another folder with {option('out')}"
            ) from None
        except OSError as error:
            raise StorageError(describe_error("lock", path, error)) from error
        yield


@contextmanager
def _only_holder(path: Path) -> Iterator[None]:
    """Create a file, hold its lock, and remove it at the end.

    Raises BlockingIOError if another process has the lock.
    """
    while True:
        with FileIO(path, "a", opener=private_opener) as file:
            if not try_lock(file):
                raise BlockingIOError
            # Another run may have ended, and removed the file, since it was opened.
            if is_same_file(file, path):
                try:
                    yield
                finally:
                    # Windows does not remove an open file: the next run uses it again.
                    with suppress(OSError):
                        path.unlink()
                return


_NO_WRITING = "choose a folder on a disk that can be written"
_NO_PERMISSION = "choose a folder you may use, or change its permissions"
_FILE_IN_THE_WAY = "there is a file where judge needs a folder; choose another folder"
_ADVICE = {
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "free some of your quota and run again",
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.EROFS: _NO_WRITING,
    errno.ENOENT: "check the path; a finished run has scores.parquet and samples.parquet",
    errno.ENOTDIR: _FILE_IN_THE_WAY,
    errno.EEXIST: _FILE_IN_THE_WAY,
}


def describe_error(action: str, path: Path, error: Exception) -> str:
    """Return what happened to which path, and what to do about it."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        advice = "the file is damaged or not from judge; run again to replace it"
    elif number == errno.ENOENT and action == "write":
        # The parent folders were made before: the disk itself does not allow it, as /proc.
        advice = _NO_WRITING
    else:
        advice = _ADVICE.get(number, "check the disk and the path")
    return f"cannot {action} {path}: {_reason(error)}; {advice}"


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return str(first_invalid_value(error))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # Arrow writes sentences in several lines.
    return one_line(str(error)).rstrip(".") or type(error).__name__
