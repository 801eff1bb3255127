"""The default cache: one SQLite file that several processes share."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import diskcache

from judge.cache import base
from judge.core import files
from judge.core.errors import StorageError
from judge.core.messages import option, start_again
from judge.core.records import Request, Response

# Rows of one transaction: each transaction costs a write to the disk.
_BATCH = 500
# Seconds to wait for another process that writes.
_TIMEOUT = 60.0
# ValueError: a path with a NUL.
_ERRORS = (sqlite3.Error, diskcache.Timeout, OSError, ValueError)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
T = TypeVar("T")


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Stores and reads text. Anything else, such as a pickle, is read as the empty text."""

    def get(self, key: Any, raw: bool) -> str:
        return key if raw and isinstance(key, str) else ""

    def store(
        self, value: Any, read: bool, key: Any = None
    ) -> tuple[int, int, None, str]:
        if not isinstance(value, str):
            raise StorageError(f"the cache keeps text only, not {type(value).__name__}")
        # The size of the row's file, the kind of value, the name of the file, and the value.
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str:
        is_text = mode == diskcache.core.MODE_RAW and isinstance(value, str)
        return value if is_text else ""

    def remove(self, file_path: str) -> None:
        """Do nothing: our rows never have a file, and a forged row could name any path."""


class DiskCache(base.Cache):
    """The default cache: one SQLite file in `responses/` under the folder, for its owner only.

    A damaged file is renamed and a new one is begun; a line on standard error says so, and is
    appended to `notes`. Not for several threads.
    """

    keeps: ClassVar[bool] = True

    def __init__(self, folder: Path, notes: list[str] | None = None) -> None:
        self.folder = folder / "responses"
        self.notes = [] if notes is None else notes
        self._file = self.folder / diskcache.core.DBNAME
        self._lock = self.folder / "lock"
        # Rows that are not written yet, by key.
        self._pending: dict[str, str] = {}
        # The open `diskcache.Cache`, and the identity of its file.
        self._store: Any = None
        self._identity: tuple[int, int] | None = None
        # Report an unusable folder at once.
        self._with_file(lambda: None)

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        return base.decode_replies(self.rows(keys))

    def rows(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the rows with these keys, as they were written."""
        # Rows that wait to be written are not in the file yet.
        pending_keys = [key for key in keys if key in self._pending]
        rows = {key: self._pending[key] for key in pending_keys}
        missing = [key for key in keys if key not in rows]
        if missing:
            rows |= self._with_file(lambda: self._stored_rows(missing))
        return rows

    def _stored_rows(self, keys: Sequence[str]) -> dict[str, str]:
        rows = {}
        for key in keys:
            text = self._store.get(key)
            if text:
                rows[key] = text
        return rows

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        self.put_rows(base.encode(key, response, request))

    def put_rows(self, rows: Mapping[str, str]) -> None:
        """Store rows by their keys; they are on the disk after the next `flush`."""
        self._pending.update(rows)
        if len(self._pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the waiting rows. They go on waiting if that fails. Raises StorageError."""
        if self._pending:
            self._with_file(lambda: _write(self._store, self._pending.items()))
            self._pending.clear()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._close_store()

    def stats(self) -> dict[str, int]:
        """Return the number of stored `responses`, and of `bytes`."""

        def count() -> dict[str, int]:
            size = int(self._store.volume())
            return {"responses": _count(self._store), "bytes": size}

        return self._with_file(count)

    def clear(self) -> int:
        """Delete all replies and prompts. Return the number of replies."""
        count = self.stats()["responses"]

        def delete() -> None:
            with self._store.transact():
                self._store.clear()

        self._with_file(delete)
        return count

    def iter_all(self) -> Iterator[tuple[Response, Request | None]]:
        """Yield every stored response and its request, None if that is unknown.

        Rows that cannot be read are left out. Some may be yielded twice.
        """
        for keys in self._key_blocks():
            rows = self.rows(keys)
            prompts = self.rows(base.prompt_keys(rows.values()))
            for text in rows.values():
                with suppress(ValueError):
                    yield base.decode_reply(text), base.decode_request(text, prompts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _key_blocks(self) -> Iterator[Sequence[str]]:
        """Yield the keys of all replies in blocks; one may come twice."""
        store: Any = None
        remaining: Iterator[str] = iter(())

        def next_keys() -> list[str]:
            nonlocal store, remaining
            if store is not self._store:
                # Another file replaced the one before: it is read from its start.
                store = self._store
                remaining = iter(store)
            return list(islice(remaining, _BATCH))

        while keys := self._with_file(next_keys):
            yield [key for key in keys if _is_reply(key)]

    def _with_file(self, work: Callable[[], T]) -> T:
        """Do some work with the file, and replace a damaged one. Raises StorageError."""
        try:
            return self._with_intact_file(work)
        except _ERRORS as error:
            self._close_store()
            cause = _cause(error)
            raise StorageError(
                f"cache {self.folder}: {_reason(cause)}; {_advice(cause)}"
            ) from error

    def _with_intact_file(self, work: Callable[[], T]) -> T:
        """Do some work with the file; if it is damaged, with a new one that replaces it."""
        try:
            return self._try_with_file(work)
        except _ERRORS as error:
            # This also ends a transaction that the error left open.
            self._close_store()
            cause = _cause(error)
            if not _is_damage(cause):
                raise
        self._set_aside(cause)
        return self._try_with_file(work)

    def _try_with_file(self, work: Callable[[], T]) -> T:
        """Do some work with the file; open it first if it is closed or was replaced."""
        _make_own_folder(self.folder)
        with files.locked(self._lock, shared=True):
            # Another process may have replaced the open file.
            if self._store is None or self._identity != _identity(self._file):
                self._close_store()
                # If opening fails, `_set_aside` has to know which file was damaged.
                self._identity = _identity(self._file)
                self._store = _open(self.folder)
                self._identity = _identity(self._file)
            return work()

    def _set_aside(self, reason: BaseException) -> None:
        """Rename a damaged file, so that a new one is begun, and note the reason."""
        with files.locked(self._lock):
            if self._identity != _identity(self._file):
                # Another process has renamed it meanwhile.
                return
            aside = f"{self._file}.damaged-{datetime.now():%Y%m%d-%H%M%S-%f}"
            # The database comes last: without it, the next run would not rename the others.
            for ending in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    Path(f"{self._file}{ending}").rename(f"{aside}{ending}")
        self.notes.append(
            f"The cache was damaged ({reason}). Its file is kept as {aside}, "
            "and a new one was begun."
        )
        sys.stderr.write(f"judge: {self.notes[-1]}\n")

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None


def _make_own_folder(folder: Path) -> None:
    """Create the folder with mode 0700.

    Raises StorageError if it is a symlink or belongs to another user, because everybody who can
    write to the cache decides the scores.
    """
    files.make_private_dir(folder)
    problem = ""
    if _is_foreign(folder):
        problem = "it belongs to another user"
    elif folder.is_symlink():
        problem = "it is a link"
    if problem:
        raise StorageError(f"cache {folder}: {problem}; {_other_folder()}")


def _is_foreign(folder: Path) -> bool:
    """Return whether a folder belongs to another user than this one or root."""
    if sys.platform == "win32":
        return False
    user = os.geteuid()
    # Root may write everywhere: a container's volume often has another owner.
    owner = folder.stat().st_uid
    return user != 0 and owner not in (user, 0)


def _open(folder: Path) -> Any:
    """Return the open `diskcache.Cache` in a folder, which only its owner may read."""
    folder.chmod(0o700)
    (folder / diskcache.core.DBNAME).touch(mode=0o600)
    return diskcache.Cache(
        str(folder),
        timeout=_TIMEOUT,
        disk=TextDisk,
        # All rows are in the database, none in a file of its own.
        disk_min_file_size=2**40,
        # Nothing is ever deleted to make room.
        eviction_policy="none",
        cull_limit=0,
        statistics=0,
        # A commit survives the end of the process; after the next checkpoint it survives a power
        # failure, too.
        sqlite_synchronous=1,
        # A file that another program shortens while it is mapped would end the process.
        sqlite_mmap_size=0,
    )


def _write(store: Any, rows: Iterable[tuple[str, str]]) -> None:
    """Write rows, many in one transaction. A row replaces the earlier one with its key."""
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        with store.transact():
            for key, text in batch:
                if key.startswith(base.PROMPT):
                    # Its key is its digest, so a row that exists is the same.
                    store.add(key, text)
                else:
                    store.set(key, text)


def _identity(file: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file, None if there is none."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _count(store: Any) -> int:
    """Return the number of replies."""
    return sum(map(_is_reply, store))


def _is_reply(key: str) -> bool:
    return not key.startswith(base.PROMPT)


def _cause(error: BaseException) -> BaseException:
    """Return SQLite's first error, which diskcache hides behind a Timeout or a rollback's error."""
    while isinstance(error.__context__, sqlite3.Error):
        error = error.__context__
    return error


def _is_damage(error: BaseException) -> bool:
    """Return whether SQLite found the file damaged."""
    # The lowest byte is the primary result code (sqlite.org/rescode.html).
    primary_code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return primary_code in _DAMAGED


def _reason(error: BaseException) -> str:
    """Return the error's message without a number and a path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


# A folder that these errors name is not damaged: it cannot be a cache.
_UNUSABLE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.ENOENT,
    errno.ENAMETOOLONG,
)


def _advice(error: BaseException) -> str:
    """Return what the user can do about an error of the file."""
    if isinstance(error, OSError) and error.errno in _UNUSABLE:
        return _other_folder()
    message = str(error)
    if "locked" in message:
        return (
            f"another program has been writing to it for {_TIMEOUT:g} s: wait until it ends, or "
            f"name another folder with {option('cache', 'DIR')}"
        )
    # "database or disk is full", "No space left on device", "disk I/O error"
    if "full" in message or "space" in message or "disk I/O" in message:
        return (
            f"make room on the disk (or name another with {option('cache', 'DIR')}) and "
            f"{start_again()}"
        )
    return f"move the folder away if it is damaged, or name another with {option('cache', 'DIR')}"


def _other_folder() -> str:
    another_folder = option("cache", "DIR")
    no_cache = option("cache", False)
    return f"name a folder of yours with {another_folder}, or run with {no_cache}"
