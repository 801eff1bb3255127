"""The default cache: one SQLite file that several processes share."""

from __future__ import annotations

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
from judge.core.records import Request, Response

_BATCH = 500
_TIMEOUT = 60.0
"""Seconds to wait for another process that writes."""
_ERRORS = (sqlite3.Error, diskcache.Timeout, OSError, ValueError)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
T = TypeVar("T")


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Text in, text out. A key or value of any other kind, above all a pickle, stays unread: it is empty text."""

    def get(self, key: Any, raw: bool) -> str:
        return key if raw and isinstance(key, str) else ""

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:
        if not isinstance(value, str):
            raise StorageError(f"the cache keeps text only, not {type(value).__name__}")
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str:
        return value if mode == diskcache.core.MODE_RAW and isinstance(value, str) else ""

    def remove(self, file_path: str) -> None:
        """Remove nothing: no row of ours has a file, and a false one may name any."""


class DiskCache(base.Cache):
    """The default cache: one SQLite file in `responses/` under the folder, readable by its owner only.

    If the file is damaged, it is set aside and a new one begun; a line on standard error says so, and is in `notes`.
    Not for several threads.
    """

    keeps: ClassVar[bool] = True

    def __init__(self, folder: Path, notes: list[str] | None = None) -> None:
        self.folder = folder / "responses"
        self.notes = [] if notes is None else notes
        self._file = self.folder / diskcache.core.DBNAME
        self._lock = self.folder / "lock"
        self._pending: dict[str, str] = {}
        self._store: Any = None
        self._identity: tuple[int, int] | None = None
        self._with_file(lambda: None)

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        return base.decode_replies(self.rows(keys))

    def rows(self, keys: Sequence[str]) -> dict[str, str]:
        """The rows with these keys, as they were written."""
        rows = {key: self._pending[key] for key in keys if key in self._pending}
        if missing := [key for key in keys if key not in rows]:
            rows |= self._with_file(
                lambda: {key: text for key in missing if (text := self._store.get(key))}
            )
        return rows

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        self.put_rows(base.encode(key, response, request))

    def put_rows(self, rows: Mapping[str, str]) -> None:
        """Keep rows by their keys; safe after the next `flush`."""
        self._pending.update(rows)
        if len(self._pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self._with_file(lambda: _write(self._store, self._pending.items()))
            self._pending.clear()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._close_store()

    def stats(self) -> dict[str, int]:
        """Number of `responses` and `bytes` that are stored."""
        return self._with_file(
            lambda: {"responses": _count(self._store), "bytes": int(self._store.volume())}
        )

    def clear(self) -> int:
        """Delete all replies and prompts. Return the number of replies."""
        count = self.stats()["responses"]

        def delete() -> None:
            with self._store.transact():
                self._store.clear()

        self._with_file(delete)
        return count

    def iter_all(self) -> Iterator[tuple[Response, Request | None]]:
        """Every stored response and its request, None if it is not known; some may come twice.

        Rows that cannot be read back are left out.
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
        store, keys = None, iter(())

        def block() -> list[str]:
            nonlocal store, keys
            if store is not self._store:  # another file, which is read from its start
                store, keys = self._store, iter(self._store)
            return list(islice(keys, _BATCH))

        while some := self._with_file(block):
            yield list(filter(_is_reply, some))

    # The file, and what becomes of it.

    def _with_file(self, work: Callable[[], T]) -> T:
        """Work with the file that is there now; if that is damaged, with the one that replaces it."""
        try:
            try:
                return self._try_with_file(work)
            except _ERRORS as error:
                self._close_store()  # whatever transaction the error has left open ends here
                damage = _cause(error)
                if getattr(damage, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                    raise
            self._set_aside(damage)
            return self._try_with_file(work)
        except _ERRORS as error:
            self._close_store()
            cause = _cause(error)
            raise StorageError(
                f"cache {self.folder}: {cause or type(cause).__name__}; {_advice(cause)}"
            ) from error

    def _try_with_file(self, work: Callable[[], T]) -> T:
        """Work with the file that is there: another process may have replaced the one that is open."""
        _make_own_folder(self.folder)
        with files.locked(self._lock, shared=True):
            if self._store is None or self._identity != _identity(self._file):
                self._close_store()
                self._identity = _identity(self._file)
                self._store = _open(self.folder)
                self._identity = _identity(self._file)
            return work()

    def _set_aside(self, reason: BaseException) -> None:
        """Give a damaged file another name, so that a new one begins in its place."""
        with files.locked(self._lock):
            if self._identity != _identity(self._file):
                return  # another process has done it
            aside = f"{self._file}.damaged-{datetime.now():%Y%m%d-%H%M%S-%f}"
            for end in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    Path(f"{self._file}{end}").rename(f"{aside}{end}")
        self.notes.append(
            f"The cache was damaged ({reason}). Its file is kept as {aside}, and a new one was begun."
        )
        sys.stderr.write(f"judge: {self.notes[-1]}\n")

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None


def _make_own_folder(folder: Path) -> None:
    """Make it where there is none, for its owner only. Raises StorageError where it is a link, or somebody else's.

    Who can write there decides on the scores. What a superuser may write to is often not his: a container's volume.
    """
    files.make_private_dir(folder)
    others = (
        sys.platform != "win32"
        and folder.stat().st_uid not in (os.geteuid(), 0)
        and os.geteuid() != 0
    )
    if others or folder.is_symlink():
        why = "it belongs to another user" if others else "it is a link"
        raise StorageError(
            f"cache {folder}: {why}; name a folder of yours with --cache DIR, or run with --no-cache"
        )


def _open(folder: Path) -> Any:
    folder.chmod(0o700)
    (folder / diskcache.core.DBNAME).touch(mode=0o600)
    return diskcache.Cache(
        str(folder),
        timeout=_TIMEOUT,
        disk=TextDisk,
        disk_min_file_size=2**40,
        eviction_policy="none",
        cull_limit=0,  # nothing is ever deleted to make room
        statistics=0,
        sqlite_synchronous=1,  # a commit survives the end of the process; the medium has it after the next checkpoint
        sqlite_mmap_size=0,  # a file cut short under a map ends the process
    )


def _write(store: Any, rows: Iterable[tuple[str, str]]) -> None:
    """Write rows, many in one transaction; each replaces the one with its key, but a prompt never changes."""
    remaining = iter(rows)
    while some := list(islice(remaining, _BATCH)):
        with store.transact():
            for key, text in some:
                (store.add if key.startswith(base.PROMPT) else store.set)(key, text)


def _identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from another that takes its place; None if there is none."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def _count(store: Any) -> int:
    """The number of replies."""
    return sum(map(_is_reply, store))


def _is_reply(key: str) -> bool:
    return not key.startswith(base.PROMPT)


def _cause(error: BaseException) -> BaseException:
    """What SQLite said first: diskcache hides it behind its own Timeout or the error of a rollback."""
    while isinstance(error.__context__, sqlite3.Error):
        error = error.__context__
    return error


def _advice(error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return "name a folder of yours with --cache DIR, or run with --no-cache"
    if "full" in str(error) or "space" in str(error) or "disk I/O" in str(error):
        return "make room on the disk (or name another with --cache DIR) and start the same command again"
    return "move the folder away if it is damaged, or name another with --cache DIR"
