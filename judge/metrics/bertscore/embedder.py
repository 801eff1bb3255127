"""Embed texts: each distinct text once, from the store if it is there, else by the model.

The store keeps embeddings between runs in one SQLite file of numbers as bytes; nothing in it is unpickled. It is a
cache: a damaged row is computed again, and a failed write costs time, not the run. Texts longer than the model's window
are read in overlapping windows; each token comes from the window in which it has most context.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.core import records
from judge.core.huggingface import batches, version
from judge.core.huggingface import runtime as huggingface_runtime
from judge.metrics.bertscore.models import PACKAGE, Model, Options, TokenizerInfo, TorchEncoder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded text: token ids, shape (n,), and unit vectors, shape (n, dimensions), including special tokens.

    `length` counts its tokens before any cut, `windows` the pieces that the model read.
    """

    ids: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.float32]
    length: int
    windows: int = 1


_FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS texts
  (key BLOB PRIMARY KEY, ids BLOB, vectors BLOB, length INTEGER, windows INTEGER, ids_sum INTEGER, vectors_sum INTEGER);
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT);
"""
_MOST_PARAMETERS = 500  # older versions of SQLite take at most 999 parameters


def key(scheme: str, text: str) -> bytes:
    """Return the sha256 of a text and of everything that its embedding depends on."""
    return hashlib.sha256(f"{_FORMAT}\0{scheme}\0{text}".encode()).digest()


class Store:
    """Embeddings by key, and facts about models by name, in `embeddings.sqlite` under the folder; None stores nothing.

    Readable by its owner only; several processes may share it. `trouble` is the last error.
    """

    def __init__(self, folder: Path | None) -> None:
        self.trouble = ""
        self._database: sqlite3.Connection | None = None
        if folder is not None:
            self.path = folder / "embeddings.sqlite"
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
        """Return the undamaged values under these keys."""
        rows: dict[bytes, Encoded] = {}
        for name, *row in self._rows("key, ids, vectors, length, windows, ids_sum, vectors_sum", keys):
            with suppress(TypeError, ValueError):
                ids, vectors, length, windows, ids_sum, vectors_sum = row
                tokens = _array(ids, ids_sum, "<i4")
                rows[name] = Encoded(
                    tokens, _array(vectors, vectors_sum, "<f4").reshape(len(tokens), -1), int(length), int(windows)
                )
        return rows

    def ids(self, keys: Sequence[bytes]) -> dict[bytes, npt.NDArray[np.int32]]:
        """Return the token ids under these keys, without the vectors, which take long to read."""
        ids_by_key: dict[bytes, npt.NDArray[np.int32]] = {}
        for name, ids, total in self._rows("key, ids, ids_sum", keys):
            with suppress(TypeError, ValueError):
                ids_by_key[name] = _array(ids, total, "<i4")
        return ids_by_key

    def _rows(self, columns: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(keys), _MOST_PARAMETERS):
            part = keys[start : start + _MOST_PARAMETERS]
            yield from self._fetch(f"SELECT {columns} FROM texts WHERE key IN ({','.join('?' * len(part))})", part)  # noqa: S608

    def put(self, rows: Mapping[bytes, Encoded]) -> None:
        """Store these; they are on disk when this returns. An existing row is replaced, because it may be damaged."""

        def table_rows() -> Iterator[tuple[Any, ...]]:
            for name, row in rows.items():
                ids, vectors = row.ids.astype("<i4").tobytes(), row.vectors.astype("<f4").tobytes()
                yield name, ids, vectors, row.length, row.windows, zlib.crc32(ids), zlib.crc32(vectors)

        self._write("REPLACE INTO texts VALUES (?,?,?,?,?,?,?)", table_rows())

    def fact(self, name: str) -> str:
        """Return what was stored under this name, or an empty text."""
        return next((str(value) for (value,) in self._fetch("SELECT value FROM facts WHERE key = ?", [name])), "")

    def save_fact(self, name: str, value: str) -> None:
        """Store a text under a name."""
        self._write("REPLACE INTO facts VALUES (?,?)", [(name, value)])

    def _fetch(self, question: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._guarded():
            return self._database.execute(question, parameters).fetchall() if self._database else []
        return []

    def _write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._guarded():
            if self._database is not None:
                with self._database as transaction:
                    transaction.executemany(statement, rows)

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
                try:  # again, after setting the damaged file aside
                    self.path.replace(self.path.with_suffix(".damaged"))
                    self._open()
                except (sqlite3.DatabaseError, OSError) as new_error:
                    self.trouble = f"embeddings are not kept in {self.path.parent}: {new_error}"


def _array(data: Any, total: Any, kind: str) -> npt.NDArray[Any]:
    """Return the array in these bytes. Raises ValueError or TypeError if they are damaged."""
    import numpy as np

    if zlib.crc32(data) != total:
        raise ValueError("damaged row")
    return np.frombuffer(data, dtype=kind)


class Window(NamedTuple):
    """The tokens `start` to `stop` of a text are read together; the vectors `first` to `last` are used.

    `first` and `last` also count the special tokens around the text.
    """

    start: int
    stop: int
    first: int
    last: int


def windows(count: int, facts: TokenizerInfo) -> list[Window]:
    """Return windows over `count` tokens, overlapping by half; the last one ends with the text.

    Each token belongs to the window with the nearest middle, the earlier of two equally near ones. The special tokens
    belong to the first and the last window.
    """
    size, head, tail = facts.room, len(facts.prefix), len(facts.suffix)
    starts = [*range(0, count - size, max(size // 2, 1)), max(count - size, 0)]
    # The middle of token t is t + 1/2, so the earlier window has the tokens below this mark.
    marks = [head + (a + b + size + 1) // 2 for a, b in pairwise(starts)]
    edges = pairwise([0, *marks, head + count + tail])
    return [Window(at, min(at + size, count), *edge) for at, edge in zip(starts, edges, strict=True)]


_MOST_BYTES = 2**28  # bytes of one text's vectors; SQLite's rows are limited to 1 GB
Progress = Callable[[int, int], None]


def runtime(options: Options) -> str:
    """The package that computes and its version, for signatures; other versions may give other last digits."""
    package = f"implementation={PACKAGE} {version(PACKAGE, 'bertscore')}|" if options.package else ""
    return package + huggingface_runtime("bertscore")


def clean(text: str) -> str:
    """Return a text as the model receives it: without white space at its ends, and encodable as UTF-8."""
    return records.whole(text).strip()


class Embedder:
    """Encodes texts for one run."""

    def __init__(self, options: Options, model: Model, store: Store) -> None:
        self._options, self._model, self._store = options, model, store
        parts = [model.digest, model.layer, options.precision, options.long, runtime(options)]
        parts += [options.device or "auto", version("tokenizers", "bertscore")]
        self._scheme = json.dumps(parts)
        self._made: TorchEncoder | None = None
        self._facts: TokenizerInfo | None = None
        self.progress: Progress | None = None
        self.total = 0
        self._counted: set[str] = set()

    @property
    def facts(self) -> TokenizerInfo:
        if self._facts is None:
            name = f"facts|{self._scheme}"
            self._facts = TokenizerInfo.from_json(self._store.fact(name))
            if self._facts is None:
                self._facts = self._encoder.facts
                self._store.save_fact(name, json.dumps(asdict(self._facts)))
        return self._facts

    @property
    def _encoder(self) -> TorchEncoder:
        if self._made is None:
            self._made = TorchEncoder(self._model, self._options.precision, self._options.device)
        return self._made

    def ids(self, texts: Iterable[str]) -> dict[str, npt.NDArray[np.int32]]:
        """Return the token ids of texts, including special tokens."""
        keys = {text: key(self._scheme, text) for text in texts}
        stored = self._store.ids(list(keys.values()))
        return {text: stored[name] if name in stored else self._tokens(text)[0] for text, name in keys.items()}

    def _tokens(self, text: str) -> tuple[npt.NDArray[np.int32], int]:
        """Return a text's ids, cut if the options say so, and their number before the cut."""
        import numpy as np

        content = self._encoder.tokens(text)
        content_kept = content[: self.facts.room] if self._options.long == "cut" else content
        ids = np.array([*self.facts.prefix, *content_kept, *self.facts.suffix], dtype=np.int32)
        return ids, len(ids) + len(content) - len(content_kept)

    def encode(self, texts: Sequence[str]) -> dict[str, Encoded]:
        """Return the texts' embeddings, all in memory. The texts are distinct and `clean`."""
        keys = {text: key(self._scheme, text) for text in texts}
        stored = self._store.get(list(keys.values()))
        cached = {text: stored[name] for text, name in keys.items() if name in stored}
        self._count(cached)
        computed = self._compute([text for text in texts if text not in cached])
        storable = {keys[text]: row for text, row in computed.items() if row.vectors.nbytes <= _MOST_BYTES}
        if storable:
            self._store.put(storable)
        return cached | computed

    def _compute(self, texts: Sequence[str]) -> dict[str, Encoded]:
        if not texts:
            return {}
        import numpy as np

        known = self.facts
        head, special = len(known.prefix), len(known.prefix) + len(known.suffix)
        read = {text: self._tokens(text) for text in texts}
        parts = {text: windows(len(ids) - special, known) for text, (ids, _) in read.items()}
        pieces = [(text, window) for text in texts for window in parts[text]]
        vectors: dict[str, npt.NDArray[np.float32]] = {}
        left = {text: len(each) for text, each in parts.items()}

        def ids_of(text: str, window: Window) -> list[int]:
            return [*known.prefix, *read[text][0][head + window.start : head + window.stop].tolist(), *known.suffix]

        lengths = [window.stop - window.start + special for _, window in pieces]
        for batch in batches(lengths, self._options.batch_tokens or self._encoder.batch_tokens):
            hidden = self._encoder.hidden([ids_of(*pieces[n]) for n in batch])
            for (text, window), rows in zip((pieces[n] for n in batch), hidden, strict=True):
                if text not in vectors:
                    vectors[text] = np.empty((len(read[text][0]), rows.shape[1]), dtype=np.float32)
                part = rows[window.first - window.start : window.last - window.start]
                vectors[text][window.first : window.last] = part / np.linalg.norm(part, axis=1, keepdims=True)
                left[text] -= 1
            self._count(text for text, _ in (pieces[n] for n in batch) if not left[text])
        return {text: Encoded(ids, vectors[text], length, len(parts[text])) for text, (ids, length) in read.items()}

    def _count(self, texts: Iterable[str]) -> None:
        before = len(self._counted)
        self._counted.update(texts)
        if self.progress and len(self._counted) > before:
            self.progress(len(self._counted), self.total)
