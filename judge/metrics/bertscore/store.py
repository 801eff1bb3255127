"""Embeddings kept on disk from run to run: one plain SQLite file of numbers as bytes. Nothing in it is ever unpickled.

It is a cache: what is damaged is computed again, and a disk that cannot be written costs time, not the run.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.metrics.bertscore.matching import Encoded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS texts
  (key BLOB PRIMARY KEY, ids BLOB, vectors BLOB, length INTEGER, windows INTEGER, ids_sum INTEGER, vectors_sum INTEGER);
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT);
"""
_AT_ONCE = 500  # SQLite takes no more than 999 parameters in its older versions


def key(scheme: str, text: str) -> bytes:
    """sha256 of a text and of all that its embedding depends on."""
    return hashlib.sha256(f"{_FORMAT}\0{scheme}\0{text}".encode()).digest()


class NoStore:
    """Keeps nothing."""

    trouble = ""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Encoded]:
        return {}

    def ids(self, keys: Sequence[bytes]) -> dict[bytes, npt.NDArray[np.int32]]:
        return {}

    def put(self, rows: Mapping[bytes, Encoded]) -> None:
        return

    def fact(self, name: str) -> dict[str, Any] | None:
        return None

    def keep_fact(self, name: str, value: Mapping[str, Any]) -> None:
        return

    def close(self) -> None:
        return


class Store(NoStore):
    """Embeddings by key, and facts about models by name, in `embeddings.sqlite` under the folder.

    Readable by its owner only; several processes may share it. `trouble` says what went wrong, if anything did.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "embeddings.sqlite"
        self.trouble = ""
        self._database: sqlite3.Connection | None = None
        with self._guarded():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
            self._open()

    def _open(self) -> None:
        database = sqlite3.connect(self.path, timeout=60)
        try:
            database.execute("PRAGMA page_size = 32768")
            database.execute("PRAGMA synchronous = NORMAL")
            database.executescript(_TABLES)
        except sqlite3.DatabaseError:
            database.close()
            raise
        self._database = database

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Encoded]:
        """What is stored under these keys, as far as it is whole."""
        found: dict[bytes, Encoded] = {}
        for name, *row in self._rows("key, ids, vectors, length, windows, ids_sum, vectors_sum", keys):
            with suppress(TypeError, ValueError):
                found[name] = _encoded(row)
        return found

    def ids(self, keys: Sequence[bytes]) -> dict[bytes, npt.NDArray[np.int32]]:
        """The token ids stored under these keys, without the vectors, which are long to read."""
        found: dict[bytes, npt.NDArray[np.int32]] = {}
        for name, ids, total in self._rows("key, ids, ids_sum", keys):
            with suppress(TypeError, ValueError):
                found[name] = _numbers(ids, total, "<i4")
        return found

    def _rows(self, columns: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            question = f"SELECT {columns} FROM texts WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608
            with self._guarded():
                if self._database is not None:
                    yield from self._database.execute(question, part)

    def put(self, rows: Mapping[bytes, Encoded]) -> None:
        """Keep these; they are on disk when this returns. A row already there is replaced, as it may be damaged."""
        with self._guarded():
            if self._database is not None:
                with self._database as transaction:
                    transaction.executemany("REPLACE INTO texts VALUES (?,?,?,?,?,?,?)", _written(rows))

    def fact(self, name: str) -> dict[str, Any] | None:
        """What was kept under this name, else None."""
        with self._guarded():
            if self._database is not None:
                row = self._database.execute("SELECT value FROM facts WHERE key = ?", [name]).fetchone()
                if row is not None:
                    return _object(row[0])
        return None

    def keep_fact(self, name: str, value: Mapping[str, Any]) -> None:
        """Keep what JSON can carry under a name."""
        with self._guarded():
            if self._database is not None:
                with self._database as transaction:
                    transaction.execute("REPLACE INTO facts VALUES (?,?)", [name, json.dumps(dict(value))])

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            self.close()
            if isinstance(error, sqlite3.OperationalError | OSError):
                self.trouble = f"embeddings are not kept in {self.path.parent}: {error}"
            else:
                self._start_again()

    def _start_again(self) -> None:
        """Put a damaged file away and begin a new one."""
        try:
            self.path.replace(self.path.with_suffix(".damaged"))
            self._open()
        except (sqlite3.DatabaseError, OSError) as error:
            self.trouble = f"embeddings are not kept in {self.path.parent}: {error}"


def _written(rows: Mapping[bytes, Encoded]) -> Iterable[tuple[Any, ...]]:
    for name, row in rows.items():
        ids, vectors = row.ids.astype("<i4").tobytes(), row.vectors.astype("<f4").tobytes()
        yield name, ids, vectors, row.length, row.windows, zlib.crc32(ids), zlib.crc32(vectors)


def _encoded(row: Sequence[Any]) -> Encoded:
    ids, vectors, length, windows, ids_sum, vectors_sum = row
    tokens = _numbers(ids, ids_sum, "<i4")
    return Encoded(tokens, _numbers(vectors, vectors_sum, "<f4").reshape(len(tokens), -1), int(length), int(windows))


def _numbers(data: Any, total: Any, kind: str) -> npt.NDArray[Any]:
    """The array in these bytes. Raises ValueError or TypeError where they are not what was written."""
    import numpy as np

    if zlib.crc32(data) != total:
        raise ValueError("damaged row")
    return np.frombuffer(data, dtype=kind)


def _object(text: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        return None
    return value if isinstance(value, dict) else None
