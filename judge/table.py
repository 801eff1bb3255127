"""Scores side by side: the table that statistics and reports read, its files, and the journal of a run under way.

A run folder holds `scores.parquet` (the long table, one row per score or failure) and `samples.parquet` (the texts;
its schema metadata has the columns). Text is stored as UTF-8, so a lone surrogate becomes U+FFFD; what JSON has no
type for in `Sample.extra` (dates, tuples) is stored as text or list. All else comes back equal.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from heapq import merge
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

from judge.errors import StorageError
from judge.records import Column, Failure, Provenance, Sample, Score, whole

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

SCORES = "scores.parquet"
SAMPLES = "samples.parquet"
JOURNAL = "scores.partial.jsonl"
START = "samples.partial.parquet"

# The long table. Strings that repeat are stored as dictionaries.
_TEXT, _REPEATED, _FLOAT, _INT = "text", "repeated", "float", "int"
FIELDS = {
    "item": _REPEATED, "system": _REPEATED, "column": _REPEATED, "value": _FLOAT,
    "error": _REPEATED, "message": _REPEATED, "stage": _REPEATED,
    "method": _REPEATED, "mass": _FLOAT, "entropy": _FLOAT, "argmax": _REPEATED, "low": _FLOAT, "high": _FLOAT,
    "n": _INT, "distribution": _TEXT, "reason": _TEXT, "raw": _REPEATED, "note": _REPEATED,
}  # fmt: skip
_SAMPLE_FIELDS = {
    "item": _REPEATED, "system": _REPEATED, "output": _TEXT, "source": _REPEATED, "references": "list",
    "human": _REPEATED, "extra": _REPEATED, "where": _TEXT,
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """The samples of a run and what was found for each of them in every column.

    `scores` and `failures` are put in the order of the samples, then of the columns, whatever order they arrived
    in, so that equal runs make equal tables.
    """

    samples: tuple[Sample, ...]
    columns: tuple[Column, ...]
    scores: tuple[Score, ...]
    failures: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", tuple(sorted(self.scores, key=self._place)))
        object.__setattr__(self, "failures", tuple(sorted(self.failures, key=self._place)))

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Every system, in the order of first appearance."""
        return tuple(dict.fromkeys(s.system for s in self.samples))

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Every item, in the order of first appearance."""
        return tuple(dict.fromkeys(s.item for s in self.samples))

    @cached_property
    def _places(self) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
        samples = {(s.item, s.system): place for place, s in enumerate(self.samples)}
        return samples, {c.name: place for place, c in enumerate(self.columns)}

    def _place(self, row: Score | Failure) -> tuple[int, int]:
        samples, columns = self._places
        return samples.get((row.item, row.system), len(samples)), columns.get(row.column, len(columns))

    def rows(self) -> Iterator[Score | Failure]:
        """Scores and failures together, in table order."""
        return merge(self.scores, self.failures, key=self._place)

    def matrix(self, column: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Values of one column, systems × items; NaN masks what has no score (failed, not asked, no such text)."""
        import numpy as np

        down = {name: place for place, name in enumerate(self.systems)}
        across = {name: place for place, name in enumerate(self.items)}
        values = np.full((len(down), len(across)), np.nan)
        for score in self.of(column):
            if score.system in down and score.item in across:
                values[down[score.system], across[score.item]] = score.value
        return values

    def of(self, column: str) -> tuple[Score, ...]:
        """The scores of one column, in the order of the samples."""
        return tuple(self._by_column.get(column, ()))

    @cached_property
    def _by_column(self) -> dict[str, list[Score]]:
        found: dict[str, list[Score]] = {}
        for score in self.scores:
            found.setdefault(score.column, []).append(score)
        return found

    def to_frame(self, wide: bool = False) -> pd.DataFrame:
        """The long table of `scores.parquet`, or, `wide`, one row per item and system with one column per score column.

        A failure's value is null; the long table says in `error`, `stage` and `message` what went wrong.
        """
        import pandas as pd

        if wide:
            found = {(s.item, s.system, s.column): s.value for s in self.scores}
            keys = [(s.item, s.system) for s in self.samples]
            frame = pd.DataFrame(keys, columns=["item", "system"])
            for column in self.columns:
                frame[column.name] = pd.Series([found.get((*key, column.name)) for key in keys], dtype="float64")
            return frame
        types = {_FLOAT: "float64", _INT: "Int64", _TEXT: "object", _REPEATED: "object"}
        values = (
            zip(*[_flat(row) for row in self.rows()], strict=True)
            if self.scores or self.failures
            else [()] * len(FIELDS)
        )
        return pd.DataFrame(
            {
                name: pd.Series(list(cells), dtype=types[kind])
                for (name, kind), cells in zip(FIELDS.items(), values, strict=True)
            }
        )

    def save(self, folder: Path) -> None:
        """Write `scores.parquet` and `samples.parquet`, each whole or not at all.

        Raises StorageError where the folder cannot be written; nothing half-written is left.
        """
        store(folder, self.files())

    def files(self) -> dict[str, bytes]:
        """The contents of these two files by name."""
        return {SCORES: _scores_file(self), SAMPLES: _samples_file(self, {})}

    @classmethod
    def load(cls, folder: Path) -> Table:
        """The table that `save` wrote. Raises StorageError for a folder or file that cannot be read."""
        folder = Path(folder)
        samples, columns, _ = _read_samples(folder / SAMPLES)
        with _reading(folder / SCORES) as path:
            rows = [_record(cells) for cells in _read(path, list(FIELDS))[0]]
        return cls(samples, columns, *_sort_out(rows))


def _sort_out(rows: Iterable[Score | Failure]) -> tuple[tuple[Score, ...], tuple[Failure, ...]]:
    rows = list(rows)
    return tuple(r for r in rows if isinstance(r, Score)), tuple(r for r in rows if isinstance(r, Failure))


def _flat(row: Score | Failure) -> tuple[Any, ...]:
    """The cells of one row, in the order of FIELDS."""
    if isinstance(row, Failure):
        missing = [None] * 9
        return (row.item, row.system, row.column, None, row.error, row.message, row.stage, *missing, row.raw, None)
    p = row.provenance
    distribution = None if p.distribution is None else json.dumps(dict(p.distribution), ensure_ascii=False)
    return (
        row.item, row.system, row.column, row.value, None, None, None,
        p.method, p.mass, p.entropy, p.argmax, p.low, p.high, p.n, distribution, p.reason, p.raw, p.note,
    )  # fmt: skip


def _record(cells: Sequence[Any]) -> Score | Failure:
    """The row whose cells these are."""
    item, system, column, value, error, message, stage, method, mass, entropy, argmax, low, high, n, text, *words = (
        cells
    )
    reason, raw, note = words
    if error is not None:
        return Failure(item, system, column, stage, error, message, raw)
    distribution = None if text is None else json.loads(text)
    provenance = Provenance(method, mass, distribution, entropy, argmax, low, high, n, reason, raw, note)
    return Score(item, system, column, value, provenance)


# --- files


def store(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write these files so that a reader finds each of them whole, old or new, never half.

    All are written beside their places first and renamed when every one is complete. Raises StorageError.
    """
    folder = Path(folder)
    ready: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            ready.append(folder / f".{name}.{os.getpid()}.{get_ident()}.tmp")
            ready[-1].write_bytes(content)
        for name, path in zip(files, ready, strict=True):
            path.replace(folder / name)
    except OSError as error:
        for path in ready:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise StorageError(_trouble("write", folder, error)) from error


def _trouble(what: str, path: Path, error: Exception) -> str:
    """What happened to which path, and what to do about it."""
    number = error.errno if isinstance(error, OSError) else None
    advice = {
        errno.ENOSPC: "free some space and run again",
        errno.EDQUOT: "free some of your quota and run again",
        errno.EACCES: "choose a folder you may use, or change its permissions",
        errno.EPERM: "choose a folder you may use, or change its permissions",
        errno.EROFS: "choose a folder on a disk that can be written",
        errno.ENOENT: "check the path; a finished run has scores.parquet and samples.parquet",
        errno.ENOTDIR: "a file stands where a folder is needed; choose another folder",
        errno.EEXIST: "a file stands where a folder is needed; choose another folder",
        None: "the file is damaged or not from judge; run again to make it anew",
    }
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return f"cannot {what} {path}: {reason}; {advice.get(number, 'check the disk and the path')}"


def _scores_file(table: Table) -> bytes:
    return _parquet(FIELDS, [_flat(row) for row in table.rows()], {})


def _samples_file(table: Table, info: Mapping[str, Any]) -> bytes:
    rows = [
        (s.item, s.system, s.output, s.source, list(s.references), _json(s.human), _json(s.extra), s.where)
        for s in table.samples
    ]
    return _parquet(_SAMPLE_FIELDS, rows, {"columns": [asdict(c) for c in table.columns], "info": info})


def _parquet(fields: Mapping[str, str], rows: list[tuple[Any, ...]], about: Mapping[str, Any]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {_FLOAT: pa.float64(), _INT: pa.int64(), "list": pa.list_(pa.string())}
    cells: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(fields)
    arrays = [_array(column, kinds.get(kind, pa.string())) for kind, column in zip(fields.values(), cells, strict=True)]
    schema = pa.schema(
        list(zip(fields, [a.type for a in arrays], strict=True)), metadata={"judge": _json(about).encode()}
    )
    sink = pa.BufferOutputStream()
    repeated = [name for name, kind in fields.items() if kind == _REPEATED]
    parquet.write_table(pa.table(arrays, schema=schema), sink, compression="zstd", use_dictionary=repeated)
    return bytes(sink.getvalue())


def _array(cells: Sequence[Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(cells, kind)
    except UnicodeEncodeError:
        return pa.array([_whole(cell) for cell in cells], kind)


def _whole(cell: Any) -> Any:
    """A cell of `text` or `list` as Parquet can hold it."""
    if isinstance(cell, list):
        return [_whole(part) for part in cell]
    return cell if cell is None else whole(cell)


def _json(value: Mapping[str, Any]) -> str:
    def plain(other: Any) -> Any:
        if isinstance(other, Mapping):
            return dict(other)
        return other.item() if hasattr(other, "item") else str(other)

    return whole(json.dumps(dict(value), ensure_ascii=False, default=plain))


def _read(path: Path, fields: Sequence[str]) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """The rows of a file that `_parquet` wrote, and what it says about them."""
    import pyarrow as pa
    from pyarrow import parquet

    found = parquet.read_table(pa.BufferReader(path.read_bytes()))
    cells = [found[name].to_pylist() for name in fields]
    return list(zip(*cells, strict=True)), json.loads((found.schema.metadata or {})[b"judge"])


@contextmanager
def _reading(path: Path) -> Iterator[Path]:
    """Turns all that a missing or damaged file makes of its reading into a StorageError."""
    import pyarrow as pa

    try:
        yield path
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise StorageError(_trouble("read", path, error)) from error


def _read_samples(path: Path) -> tuple[tuple[Sample, ...], tuple[Column, ...], dict[str, Any]]:
    with _reading(path):
        rows, about = _read(path, list(_SAMPLE_FIELDS))
        samples = tuple(
            Sample(item, system, output, source, tuple(references), json.loads(human), json.loads(extra), where)
            for item, system, output, source, references, human, extra, where in rows
        )
        columns = tuple(Column(**{**c, "labels": tuple(c["labels"])}) for c in about["columns"])
        return samples, columns, about["info"]


# --- a run under way


class Journal:
    """Rows of a run under way, on disk within about a second, for the case that the run is killed.

    `start` (samples and columns, no scores yet) and `info` are stored at once, so that `recover` can show the rows
    with their texts. A journal left by an earlier run in the folder is replaced. Not for several threads.
    """

    def __init__(self, folder: Path, start: Table | None = None, info: Mapping[str, Any] | None = None) -> None:
        self._path = Path(folder) / JOURNAL
        self._lines: list[str] = []
        self._written = time.monotonic()
        self._encode = json.JSONEncoder(separators=(",", ":")).encode
        forget(folder)
        store(folder, {} if start is None else {START: _samples_file(start, info or {})})
        try:
            self._file = self._path.open("w", encoding="ascii")
        except OSError as error:
            raise StorageError(_trouble("write", self._path, error)) from error

    def add(self, row: Score | Failure) -> None:
        """Take one row; write what has gathered every 200 rows or after a second. Raises StorageError."""
        fields = {name: cell for name, cell in zip(FIELDS, _flat(row), strict=True) if cell is not None}
        self._lines.append(self._encode(fields))
        if len(self._lines) >= 200 or time.monotonic() - self._written > 1.0:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered. Raises StorageError."""
        lines, self._lines, self._written = self._lines, [], time.monotonic()
        try:
            self._file.write("".join(line + "\n" for line in lines))
            self._file.flush()
        except OSError as error:
            raise StorageError(_trouble("write", self._path, error)) from error

    def close(self) -> None:
        """Write what has gathered and close the file; once closed, does nothing. Raises StorageError."""
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            with suppress(OSError):
                self._file.close()


def read_journal(folder: Path) -> list[Score | Failure]:
    """The rows of a folder's journal; a last line cut short by the kill is left out. Raises StorageError."""
    with _reading(Path(folder) / JOURNAL) as path:
        *lines, _cut = path.read_text(encoding="ascii").split("\n")
        found = (json.loads(line) for line in lines)
        return [_record([fields.get(name) for name in FIELDS]) for fields in found]


def recover(folder: Path) -> tuple[Table, dict[str, Any]]:
    """The table of a run that was killed, as far as it came, and the `info` it started with.

    A journal without a start gives samples without texts and columns without signatures. Raises StorageError.
    """
    scores, failures = _sort_out(read_journal(folder))
    if (Path(folder) / START).exists():
        samples, columns, info = _read_samples(Path(folder) / START)
        return Table(samples, columns, scores, failures), info
    rows: list[Score | Failure] = [*scores, *failures]
    keys = dict.fromkeys((r.item, r.system) for r in rows)
    metrics = {s.column for s in scores if s.provenance.method == "metric"}
    names = dict.fromkeys(r.column for r in rows)
    columns = tuple(Column(name, "metric" if name in metrics else "criterion", "") for name in names)
    return Table(tuple(Sample(*key, output="") for key in keys), columns, scores, failures), {}


def forget(folder: Path) -> None:
    """Remove a folder's journal, for instance because the run it belongs to is stored. Raises StorageError."""
    for name in (JOURNAL, START):
        try:
            (Path(folder) / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(_trouble("remove", Path(folder) / name, error)) from error
