"""The default cache: one SQLite file that several processes share.

If the file is damaged, it is set aside, and a new one is built from every row that `recover_rows` can still read. The
format is described in "Database File Format" (sqlite.org/fileformat2.html). A table leaf is a page that starts with 13
and has a list of cells; a cell that does not fit continues in a chain of overflow pages. Recovery needs nothing else,
so it also works without the file header and the inner pages.
"""

from __future__ import annotations

import mmap
import os
import re
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from itertools import islice
from os import stat_result
from os.path import samestat
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Self, TypeVar

import diskcache
from diskcache.core import DBNAME, MODE_RAW

from judge.cache import base
from judge.core import files
from judge.core.errors import StorageError
from judge.core.files import locked
from judge.core.records import Request, Response

Value = int | float | str | bytes | None
_LEAF = 13
_USUAL_PAGE = 4096
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its type."""
_FLOAT, _ZERO, _ONE, _FIRST_BLOB = 7, 8, 9, 12


def recover_rows(path: Path) -> Iterator[tuple[Value, ...]]:
    """Every row of every table that can be read from the file and its log, in no order; some twice, or deleted since.

    Raises OSError for a file that cannot be opened.
    """
    with ExitStack() as opened:
        main = _map_file(path, opened)
        size: int = struct.unpack(">H", main[16:18])[0] if main[:6] == b"SQLite" else _USUAL_PAGE
        size = 65536 if size == 1 else size
        size = size if size >= 512 and size & (size - 1) == 0 else _USUAL_PAGE
        log = _map_file(path.with_name(path.name + "-wal"), opened)
        frames = {}  # where in the log the newest version of each page is
        for at in range(_WAL_HEADER, len(log) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
            page_number, salt = struct.unpack(">I4x8s", log[at : at + 16])
            if salt == log[16:24]:  # of this round of the log, not of one before
                frames[page_number] = at + _FRAME_HEADER

        def page(number: int) -> bytes:
            if number in frames:
                return bytes(log[frames[number] : frames[number] + size])
            return bytes(main[(number - 1) * size : number * size])

        numbers = sorted({*range(1, len(main) // size + 1), *frames})
        chains = _OverflowPages(page, size, len(numbers))
        for number in numbers:
            yield from _leaf_rows(page(number), 100 if number == 1 else 0, chains, size)


class _OverflowPages:
    """The pages on which cells go on: of a file with `count` pages, in which a damaged chain may lead anywhere.

    All chains together are followed over no more than four times as many pages as there are.
    """

    def __init__(self, get: Callable[[int], bytes], size: int, count: int) -> None:
        self._get, self.size, self.count = get, size, count
        self._pages_left = 4 * count

    def follow(self, number: int, length: int) -> Iterator[bytes]:
        """The contents of a chain of pages that hold so many bytes. Raises ValueError where it is broken."""
        if length > self.count * self.size:
            raise ValueError("a cell that is longer than the file")
        seen: set[int] = set()
        while length > 0:
            page = self._get(number) if number and number not in seen and self._pages_left else b""
            if len(page) < self.size:
                raise ValueError("a chain of pages that ends too soon, or never")
            seen.add(number)
            self._pages_left -= 1
            yield page[4 : 4 + min(length, self.size - 4)]
            length -= self.size - 4
            (number,) = struct.unpack_from(">I", page)


def _map_file(path: Path, opened: ExitStack) -> mmap.mmap | bytes:
    if not path.exists() or not path.stat().st_size:
        return b""
    file = opened.enter_context(path.open("rb"))
    return opened.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _leaf_rows(page: bytes, start: int, chains: _OverflowPages, size: int) -> Iterator[tuple[Value, ...]]:
    if len(page) < size or page[start] != _LEAF:
        return
    (count,) = struct.unpack_from(">H", page, start + 3)
    for place in range(min(count, (size - start - 8) // 2)):
        (at,) = struct.unpack_from(">H", page, start + 8 + 2 * place)
        try:
            length, at = _varint(page, at)
            _rowid, at = _varint(page, at)
            yield _record(_payload(page, at, length, chains, size))
        except (IndexError, ValueError, struct.error):
            continue


def _payload(page: bytes, at: int, length: int, chains: _OverflowPages, size: int) -> bytes:
    """The bytes of a cell, its chain of pages followed. Raises ValueError where that is broken."""
    most = size - 35
    if length <= most:
        return page[at : at + length]
    least = (size - 12) * 32 // 255 - 23
    local_size = least + (length - least) % (size - 4)
    local_size = local_size if local_size <= most else least
    (following,) = struct.unpack_from(">I", page, at + local_size)
    return b"".join([page[at : at + local_size], *chains.follow(following, length - local_size)])


def _record(payload: bytes) -> tuple[Value, ...]:
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise ValueError("a record whose parts are not as long as it says")
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in _INTEGERS:
        end = at + _INTEGERS[kind]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind == _FLOAT:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if kind < _FIRST_BLOB:
        return {0: None, _ZERO: 0, _ONE: 1}[kind] if kind in (0, _ZERO, _ONE) else None, at
    end = at + (kind - _FIRST_BLOB) // 2
    if end > len(payload):
        raise ValueError("a value that goes on beyond its record")
    return (payload[at:end].decode() if kind % 2 else payload[at:end]), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("no number")


_BATCH = 500
_ERRORS = (sqlite3.DatabaseError, diskcache.Timeout, OSError)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_KEY = re.compile(r"[0-9a-f]{64}")
_CELLS, _KEY_CELL, _TEXT_CELL = 12, 1, 11
"""Of a row of the table of replies: how many cells it has, and which of them are the key and the text."""
_REBUILT = "rebuilt-"
_PROMPTS = "CREATE TABLE IF NOT EXISTS Prompts (digest TEXT PRIMARY KEY, messages TEXT)"
_PUT = (
    "INSERT INTO Cache (key, raw, store_time, access_time, size, mode, filename, value) VALUES (?, 1, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time, size = excluded.size,"
    " mode = excluded.mode, filename = excluded.filename, value = excluded.value"
)
_ROWS = "SELECT key, mode, filename, value FROM Cache WHERE raw = 1 AND key IN ({})"
_KEYS = "SELECT key, 1, NULL, '' FROM Cache WHERE raw = 1 AND key IN ({})"
_MESSAGES = "SELECT digest, 1, NULL, messages FROM Prompts WHERE digest IN ({})"
_DIGESTS = "SELECT digest, 1, NULL, '' FROM Prompts WHERE digest IN ({})"
"""What finds rows and prompts, with the mode of a text (1) where the table has none."""
_PUT_PROMPT = "INSERT OR IGNORE INTO Prompts (digest, messages) VALUES (?, ?)"
T = TypeVar("T")


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


def _is_text_row(mode: Any, filename: Any, value: Any) -> bool:
    """Whether a row is text, as this judge writes it. Any other, such as a pickle, is absent and stays unread."""
    return mode == MODE_RAW and filename is None and isinstance(value, str)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise StorageError(f"the cache keeps text only, not {type(value).__name__}")
    return value


class DiskCache:
    """The default cache: one SQLite file in `responses/` under the folder, readable by its owner only.

    Where the file is damaged, it is set aside, and what can still be read of it is carried over into a new one; a line
    on standard error says so, and is in `notes`. Not for several threads.
    """

    claims = False

    def __init__(self, folder: Path, notes: list[str] | None = None) -> None:
        self.folder = folder / "responses"
        self.notes = [] if notes is None else notes
        self._file = self.folder / DBNAME
        self._lock = self.folder / "lock"
        self._pending: dict[str, str] = {}
        self._prompts: dict[str, str] = {}
        self._store: Any = None
        self._opened_stat: stat_result | None = None
        self._with_file(lambda: None)

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The stored responses among these keys; one that cannot be read back counts as absent."""
        responses: dict[str, Response] = {}
        for key, text in self.texts(keys).items():
            with suppress(ValueError):
                responses[key] = base.decode_reply(text)
        return responses

    def texts(self, keys: Sequence[str]) -> dict[str, str]:
        """The rows of these keys that there are, as they were written."""
        return self._look_up(_ROWS, keys, self._pending)

    def messages(self, digests: Sequence[str]) -> dict[str, str]:
        """The messages of these digests that there are, as they were written."""
        return self._look_up(_MESSAGES, digests, self._prompts)

    def missing_keys(self, keys: Iterable[str], *, prompts: bool = False) -> list[str]:
        """Those of these keys that have no row; with `prompts`, of these digests that have no messages."""
        keys_to_find = list(keys)
        there = self._look_up(_DIGESTS if prompts else _KEYS, keys_to_find, self._prompts if prompts else self._pending)
        return [key for key in keys_to_find if key not in there]

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        text, prompt = base.encode(response, request)
        self.put_rows({key: text}, {} if prompt is None else dict([prompt]))

    def put_rows(self, texts: Mapping[str, str], prompts: Mapping[str, str]) -> None:
        """Keep rows by their keys and messages by their digests; safe after the next `flush`."""
        self._pending.update(texts)
        self._prompts.update(prompts)
        if len(self._pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self._with_file(lambda: _insert(self._store, self._pending.items(), self._prompts.items()))
            self._pending.clear()
            self._prompts.clear()

    def claim(self, keys: Sequence[str]) -> set[str]:
        return set()

    def release(self, keys: Sequence[str]) -> None:
        return

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._close_store()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stats(self) -> dict[str, int]:
        """Number of `responses` and `bytes` on disk."""
        return self._with_file(lambda: {"responses": len(self._store), "bytes": int(self._store.volume())})

    def clear(self) -> int:
        """Forget every response; returns how many there were."""

        def forget() -> int:
            self._store._sql("DELETE FROM Prompts")
            return int(self._store.clear())

        return self._with_file(forget)

    def iter_all(self) -> Iterator[tuple[Response, Request | None]]:
        """Every stored response and what was asked for it, as far as it is known (rows of older versions do not say).

        What cannot be read back is left out; where the file turns out to be damaged, some come twice.
        """
        query = "SELECT rowid, mode, filename, value FROM Cache WHERE rowid > ? ORDER BY rowid LIMIT ?"
        last, file = 0, self._opened_stat
        while some := self._with_file(lambda: self._store._sql(query, (last, _BATCH)).fetchall()):  # noqa: B023
            last, file = (
                (some[-1][0] if file is self._opened_stat else 0),
                self._opened_stat,
            )  # another file counts anew
            for text in [value for _, mode, name, value in some if _is_text_row(mode, name, value)]:
                try:
                    digest = base.digest_of(text)
                    yield base.decode_reply(text), base.decode_request(text, self.messages([digest]).get(digest))
                except ValueError:
                    continue

    def _look_up(self, query: str, keys: Sequence[str], pending: Mapping[str, str]) -> dict[str, str]:
        """What a query finds for these keys, of what is not written yet the text itself."""
        texts = {key: pending[key] for key in keys if key in pending}
        remaining = iter([key for key in keys if key not in texts])
        while block := list(islice(remaining, _BATCH)):
            sql = query.format(",".join("?" * len(block)))
            rows = self._with_file(lambda sql=sql, block=block: self._store._sql(sql, block).fetchall())  # type: ignore[misc]
            texts |= {key: text for key, mode, name, text in rows if _is_text_row(mode, name, text)}
        return texts

    # The file, and what becomes of it.

    def _with_file(self, work: Callable[[], T]) -> T:
        """Work with the file that stands there now; where that is damaged, with the one that takes its place."""
        try:
            for attempt in range(2):
                try:
                    _make_own_folder(self.folder)
                    with locked(self._lock, shared=True):
                        self._reopen_if_replaced()
                        return work()
                except sqlite3.DatabaseError as error:
                    if attempt or getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                        raise
                    reason = str(error)
                self._set_aside(reason)
        except _ERRORS as error:
            raise StorageError(f"cache {self.folder}: {error or type(error).__name__}; {_advice(error)}") from error
        raise AssertionError("either returned or raised")

    def _reopen_if_replaced(self) -> None:
        """Open the file that stands there, if it is not the one that is open: another process may have replaced it."""
        there = _stat(self._file)
        if (
            self._store is not None
            and there is not None
            and self._opened_stat is not None
            and samestat(there, self._opened_stat)
        ):
            return
        self._close_store()
        self._opened_stat = there
        self._store = _open(self.folder)
        self._opened_stat = _stat(self._file)

    def _set_aside(self, reason: str) -> None:
        """Have a new file with all that can be read stand in the place of the damaged one, which is kept beside it."""
        with locked(self._lock):
            there = _stat(self._file)
            if there is None or self._opened_stat is None or not samestat(there, self._opened_stat):
                return  # somebody else has done it
            self._close_store()
            sys.stderr.write(f"judge: the cache {self._file} is damaged ({reason}); rebuilding it\n")
            name = f"{self._file.name}.damaged-{datetime.now():%Y%m%d-%H%M%S}"
            aside, suffix = self._file.with_name(name), 1
            while aside.exists():
                suffix += 1
                aside = self._file.with_name(f"{name}-{suffix}")
            count = _rebuild(self._file, aside)
        self.notes.append(
            f"The cache was damaged ({reason}) and built anew: {count:,} replies were carried over, "
            f"and the damaged file is kept as {aside}."
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
    others = sys.platform != "win32" and folder.stat().st_uid not in (os.geteuid(), 0) and os.geteuid() != 0
    if others or folder.is_symlink():
        why = "it belongs to another user" if others else "it is a link"
        raise StorageError(f"cache {folder}: {why}; name a folder of yours with --cache DIR, or run with --no-cache")


def _open(folder: Path) -> Any:
    folder.chmod(0o700)
    if not (folder / DBNAME).exists():
        (folder / DBNAME).touch(mode=0o600)
    store = diskcache.Cache(
        str(folder),
        timeout=60,
        disk=TextDisk,
        disk_min_file_size=2**40,
        eviction_policy="none",
        cull_limit=0,
        size_limit=2**62,
        statistics=0,
        tag_index=0,
        sqlite_synchronous=2,
        sqlite_mmap_size=0,  # a file cut short under a map ends the process
    )
    store._sql_retry(_PROMPTS)
    return store


def _insert(store: Any, texts: Iterable[tuple[str, str]], prompts: Iterable[tuple[str, str]]) -> None:
    """Write rows in one transaction, each in the place of another with its key."""
    now, run = time.time(), store._con
    cells = ((store.disk.put(key)[0], now, now, *store.disk.store(text, read=False)) for key, text in texts)
    run.execute("BEGIN IMMEDIATE")
    try:
        run.executemany(_PUT, cells)
        run.executemany(_PUT_PROMPT, prompts)
        run.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            run.execute("ROLLBACK")
        raise


def _rebuild(file: Path, aside: Path) -> int:
    """Put a new file in the place of a damaged one, which gets another name; how many replies were carried over."""
    for leftover in file.parent.glob(f"{_REBUILT}*"):  # by one who was killed
        rmtree(leftover, ignore_errors=True)
    folder = Path(mkdtemp(prefix=_REBUILT, dir=file.parent))
    try:
        count = _carry_over(file, folder)
        for end in ("", "-wal", "-shm"):
            damaged, second_name = Path(f"{file}{end}"), Path(f"{aside}{end}")
            with suppress(FileNotFoundError):
                try:
                    second_name.hardlink_to(damaged)
                except FileNotFoundError:
                    raise
                except OSError:  # the file system has no second names
                    damaged.rename(second_name)
        for end in ("-wal", "-shm"):
            Path(f"{file}{end}").unlink(missing_ok=True)
        (folder / DBNAME).replace(file)
    finally:
        rmtree(folder, ignore_errors=True)
    return count


def _carry_over(file: Path, folder: Path) -> int:
    """Fill a new cache with what can be read of a damaged file; how many replies that are."""
    with _open(folder) as store:
        texts: dict[str, str] = {}
        prompts: dict[str, str] = {}
        for row in recover_rows(file):
            # Add what was salvaged to the replies or prompts if it is one of them.
            if len(row) == _CELLS:
                key, text = row[_KEY_CELL], row[_TEXT_CELL]
                if isinstance(key, str) and isinstance(text, str) and _KEY.fullmatch(key):
                    with suppress(ValueError):
                        base.decode_reply(text)
                        texts[key] = text
            elif (
                len(row) == 2
                and isinstance(row[0], str)
                and isinstance(row[1], str)
                and base.digest_matches(row[0], row[1])
            ):
                prompts[row[0]] = row[1]
            if len(texts) + len(prompts) >= _BATCH:
                _insert(store, texts.items(), prompts.items())
                texts, prompts = {}, {}
        _insert(store, texts.items(), prompts.items())
        return len(store)


def _stat(path: Path) -> stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _advice(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "name a folder of yours with --cache DIR, or run with --no-cache"
    if "full" in str(error) or "space" in str(error) or "disk I/O" in str(error):
        return "make room on the disk (or name another with --cache DIR) and start the same command again"
    return "move the folder away if it is damaged, or name another with --cache DIR"
