"""Paid-for replies, kept: `Request.key()` → `Response`. Only usable replies are put in; nothing is ever evicted.

Stored with diskcache, whose defaults would lose replies (1 GiB, then silent eviction) and run code from the
file (values may be pickles, CVE-2025-69872; its JSONDisk still unpickles). Here values are JSON text, a pickle
is refused unread, nothing is culled, and writes are synchronous and grouped into transactions.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import diskcache
from diskcache.core import MODE_RAW

from judge.errors import StorageError
from judge.records import Response

_BATCH = 500
_BROKEN = (sqlite3.DatabaseError, diskcache.Timeout, OSError)


class Cache(Protocol):
    """What a run needs of a cache."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The stored responses among these keys."""
        ...

    def put(self, key: str, response: Response) -> None:
        """Keep a response; it is safe on disk after the next `flush`."""
        ...

    def flush(self) -> None:
        """Write what was put. Raises StorageError, keeping everything unwritten for the next try."""
        ...

    def close(self) -> None:
        """Flush and let go of the files."""
        ...


class NoCache:
    """Remembers nothing (`--no-cache`)."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        return {}

    def put(self, key: str, response: Response) -> None:
        return

    def flush(self) -> None:
        return

    def close(self) -> None:
        return


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Text in, text out. Any other kind of row is refused, above all a pickle."""

    def put(self, key: Any) -> tuple[str, bool]:
        return _text(key), True

    def get(self, key: Any, raw: bool) -> str:
        if not raw:
            raise StorageError("the cache holds a pickled key, which this judge never wrote and will not read")
        return _text(key)

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:
        return 0, MODE_RAW, None, _text(value)

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str:
        if mode != MODE_RAW or filename is not None:
            raise StorageError("the cache holds a row that is not text, which this judge never wrote and will not read")
        return _text(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise StorageError(f"the cache keeps text only, not {type(value).__name__}")
    return value


class DiskCache:
    """The default cache: one SQLite file in `responses/` under the folder, readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "responses"
        self._pending: dict[str, str] = {}
        with self._guarded():
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            self._store = diskcache.Cache(
                str(self.folder),
                timeout=60,
                disk=TextDisk,
                disk_min_file_size=2**40,
                eviction_policy="none",
                cull_limit=0,
                size_limit=2**62,
                statistics=0,
                tag_index=0,
                sqlite_synchronous=2,
            )

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The stored responses among these keys; one that cannot be read back counts as absent."""
        found: dict[str, Response] = {}
        with self._guarded():
            for key in keys:
                text = self._pending.get(key) or self._store.get(key)
                if text is not None:
                    try:
                        found[key] = Response.from_json(text)
                    except ValueError:
                        continue
        return found

    def put(self, key: str, response: Response) -> None:
        self._pending[key] = response.to_json()
        if len(self._pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        with self._guarded(), self._store.transact(retry=True):
            for key, text in self._pending.items():
                self._store.set(key, text)
        self._pending.clear()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._store.close()

    def stats(self) -> dict[str, int]:
        """Number of `responses` and `bytes` on disk."""
        with self._guarded():
            return {"responses": len(self._store), "bytes": int(self._store.volume())}

    def clear(self) -> int:
        """Forget every response; returns how many there were."""
        with self._guarded():
            return int(self._store.clear())

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise StorageError(f"cache {self.folder}: {error or type(error).__name__}; {_advice(error)}") from error


def _advice(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "name a folder of yours with --cache DIR, or run with --no-cache"
    if "full" in str(error) or "space" in str(error) or "disk I/O" in str(error):
        return "make room on the disk (or name another with --cache DIR) and start the same command again"
    return "move the folder away if it is damaged, or name another with --cache DIR"


def default_folder() -> Path:
    """$JUDGE_CACHE, else judge/ under $XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get("JUDGE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "judge"


def metrics_folder(folder: Path) -> Path:
    """Where metrics keep what took them time, such as embeddings, under a cache folder."""
    return folder / "metrics"


def metrics_size(folder: Path) -> int:
    """Bytes that metrics keep under a cache folder."""
    return sum(path.stat().st_size for path in metrics_folder(folder).rglob("*") if path.is_file())


def clear_metrics(folder: Path) -> int:
    """Forget what metrics keep; returns how many bytes that was. Raises StorageError."""
    size = metrics_size(folder)
    try:
        if size:
            shutil.rmtree(metrics_folder(folder))
    except OSError as error:
        raise StorageError(f"{metrics_folder(folder)}: {error.strerror or error}") from error
    return size
