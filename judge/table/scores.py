"""The table of a run's scores, and its Parquet files in the run folder."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache, cached_property
from heapq import merge
from itertools import compress, repeat
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from judge.core import files as files_module
from judge.core.errors import StorageError
from judge.core.records import Column, Failure, Provenance, Sample, Score, whole

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

Row = Score | Failure
RUN = "run.json"
SCORES = "scores.parquet"
SAMPLES = "samples.parquet"


def _column_types(*records: type) -> dict[str, str]:
    """The fields of records, each name once, with their types: `float | None` is "float", `Mapping[...]` "Mapping"."""
    every = [field for record in records for field in fields(record)]
    return {field.name: str(field.type).partition(" |")[0].partition("[")[0] for field in every}


SCORE_COLUMNS = _column_types(Score, Failure, Provenance)
del SCORE_COLUMNS["provenance"]
_SAMPLE_COLUMNS = _column_types(Sample)
_PROVENANCE = frozenset(_column_types(Provenance))
_ARROW_TYPES = {"float": "float64", "int": "int64"}
_FRAME_TYPES = {"float": "float64", "int": "Int64"}
_UNIQUE = ("output", "where", "distribution", "reason")
STORED: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": [
        name
        for name, kind in (SCORE_COLUMNS | _SAMPLE_COLUMNS).items()
        if kind in ("str", "Mapping") and name not in _UNIQUE
    ],
}
"""How Parquet stores them: a text is stored once in a column, unless few texts there are equal."""


def score_cells(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The cells of rows by column; None where a row has no such field."""
    provenances = [getattr(row, "provenance", row) for row in rows]
    return {
        name: _column(kind, provenances if name in _PROVENANCE else rows, name) for name, kind in SCORE_COLUMNS.items()
    }


def _column(kind: str, records: Sequence[Any], name: str) -> list[Any]:
    """A field of records as it is stored: a mapping as JSON."""
    cells = [getattr(record, name, None) for record in records]
    return [cell if cell is None else _json(cell) for cell in cells] if kind == "Mapping" else cells


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """The rows whose cells these are."""
    failed = [error is not None for error in columns["error"]]
    scored = [not failure for failure in failed]
    of_scores = {name: compress(cells, scored) for name, cells in columns.items()}
    of_failures = {name: compress(cells, failed) for name, cells in columns.items()}
    scores: Iterator[Row] = _records(Score, of_scores | {"provenance": _records(Provenance, of_scores)})
    failures: Iterator[Row] = _records(Failure, of_failures)
    return [next(failures if failure else scores) for failure in failed]


def _records(record: Callable[..., Any], columns: Mapping[str, Iterable[Any]]) -> Iterator[Any]:
    """Records made of their fields' cells. A column that an older file lacks has its field's default."""
    arguments: list[Iterable[Any]] = []
    for field in fields(record):  # type: ignore[arg-type]
        if field.name not in columns and field.default is not MISSING:
            arguments.append(repeat(field.default))
            continue
        cells = columns[field.name]
        if str(field.type).startswith("Mapping"):
            parse = _parser(record, field.name)
            cells = [cell if cell is None else parse(cell) for cell in cells]
        arguments.append(map(tuple, cells) if str(field.type).startswith("tuple") else cells)
    return map(record, *arguments)


@cache
def _parser(record: Callable[..., Any], name: str) -> Callable[[str], Any]:
    """What makes the value of a field from its JSON."""
    return TypeAdapter(get_type_hints(record)[name]).validate_json


def store(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write these files so that a reader finds each of them whole, old or new, never half.

    All are written beside their places first and renamed when every one is complete. Raises StorageError.
    """
    folder = Path(folder)
    ready: list[Path] = []
    try:
        files_module.make_private_dir(folder)
        for name, content in files.items():
            ready.append(folder / f".{name}.{os.getpid()}.{get_ident()}.tmp")
            ready[-1].write_bytes(content)
        for name, path in zip(files, ready, strict=True):
            path.replace(folder / name)
    except OSError as error:
        for path in ready:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise StorageError(describe_os_error("write", folder, error)) from error


def describe_os_error(action: str, path: Path, error: Exception) -> str:
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
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")
    return f"cannot {action} {path}: {reason}; {advice.get(number, 'check the disk and the path')}"


def scores_file(rows: Iterable[Row]) -> bytes:
    """The contents of the long table's file."""
    return _parquet(scores_table([*rows]), column_metadata({}))


def samples_file(samples: Iterable[Sample], columns: Iterable[Column], info: Mapping[str, Any]) -> bytes:
    """The contents of the samples' file; the columns and `info` are in its metadata."""
    about = column_metadata({"columns": [asdict(c) for c in columns], "info": info})
    return _parquet(samples_table([*samples]), about)


def scores_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as Arrow has them."""
    return _table(SCORE_COLUMNS, score_cells(rows))


def samples_table(samples: Sequence[Sample]) -> pa.Table:
    """Samples as Arrow has them."""
    return _table(_SAMPLE_COLUMNS, {name: _column(kind, samples, name) for name, kind in _SAMPLE_COLUMNS.items()})


def column_metadata(about: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a file that says this about itself."""
    return {"judge": _json(about)}


def read_scores(path: Path, most: int | None = None) -> list[Row]:
    """The rows of a scores' file, or the first `most` of them. Raises StorageError."""
    with translating_errors(path):
        return rows_of(_read(path, most)[0])


def _table(types: Mapping[str, str], columns: Mapping[str, list[Any]]) -> pa.Table:
    import pyarrow as pa

    arrays = []
    for name, kind in types.items():
        arrow = pa.list_(pa.string()) if kind == "tuple" else pa.type_for_alias(_ARROW_TYPES.get(kind, "string"))
        try:
            arrays.append(pa.array(columns[name], arrow))
        except UnicodeEncodeError:
            arrays.append(pa.array([_utf8_safe(cell) for cell in columns[name]], arrow))
    return pa.table(arrays, names=list(types))


def _parquet(table: pa.Table, about: Mapping[str, str]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata(about), sink, **STORED)
    return bytes(sink.getvalue())


def _utf8_safe(cell: Any) -> Any:
    """A text, or several, as Parquet can hold them."""
    if isinstance(cell, tuple):
        return [_utf8_safe(part) for part in cell]
    return cell if cell is None else whole(cell)


def _json(value: Mapping[str, Any]) -> str:
    def plain(item: Any) -> Any:
        if isinstance(item, Mapping):
            return dict(item)
        return item.item() if hasattr(item, "item") else str(item)

    return whole(json.dumps(dict(value), ensure_ascii=False, default=plain))


def _read(path: Path, most: int | None = None) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The columns of a file of ours, or their first `most` cells, and what it says about them.

    Read by this thread alone: a thread of Arrow's that still holds the Python file when the interpreter ends aborts it.
    """
    from pyarrow import parquet

    with path.open("rb") as opened, parquet.ParquetFile(opened) as file:
        about = json.loads((file.metadata.metadata or {})[b"judge"])
        if most is None:
            table = file.read(use_threads=False)
        else:
            batches = file.iter_batches(max(1, most), use_threads=False)
            table = next(batches, file.schema_arrow.empty_table())
    return {name: table[name].to_pylist() for name in table.schema.names}, about


@contextmanager
def translating_errors(path: Path) -> Iterator[Path]:
    """Turns all that a missing or damaged file makes of its reading into a StorageError."""
    import pyarrow as pa

    try:
        yield path
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(describe_os_error("read", path, error)) from error


def read_samples(path: Path, most: int | None = None) -> tuple[tuple[Sample, ...], tuple[Column, ...], dict[str, Any]]:
    """What `samples_file` was given, or the first `most` samples of it. Raises StorageError."""
    with translating_errors(path):
        cells, about = _read(path, most)
        columns = TypeAdapter(tuple[Column, ...]).validate_python(about["columns"])
        return tuple(_records(Sample, cells)), columns, about["info"]


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
        object.__setattr__(self, "scores", tuple(sorted(self.scores, key=self._order)))
        object.__setattr__(self, "failures", tuple(sorted(self.failures, key=self._order)))

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Every system, in the order of first appearance."""
        return tuple(dict.fromkeys(s.system for s in self.samples))

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Every item, in the order of first appearance."""
        return tuple(dict.fromkeys(s.item for s in self.samples))

    @cached_property
    def _orders(self) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
        samples = {(s.item, s.system): place for place, s in enumerate(self.samples)}
        return samples, {c.name: place for place, c in enumerate(self.columns)}

    def _order(self, row: Score | Failure) -> tuple[int, int, int]:
        samples, columns = self._orders
        place, rival = (samples.get((row.item, name), len(samples)) for name in (row.system, row.rival))
        return place, columns.get(row.column, len(columns)), rival

    def rows(self) -> Iterator[Score | Failure]:
        """Scores and failures together, in table order."""
        return merge(self.scores, self.failures, key=self._order)

    def matrix(self, column: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Values of one column, systems × items; NaN masks what has no score (failed, not asked, no such text).

        Comparisons are left out: they are about two texts. Made once, and so not to be written to.
        """
        if column not in self._matrices:
            self._matrices[column] = self._make_matrix(column)
        return self._matrices[column]

    @cached_property
    def _matrices(self) -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
        return {}

    def _make_matrix(self, column: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        import numpy as np

        down = {name: place for place, name in enumerate(self.systems)}
        across = {name: place for place, name in enumerate(self.items)}
        values = np.full((len(down), len(across)), np.nan)
        for score in self.column_scores(column):
            if score.system in down and score.item in across and not score.rival:
                values[down[score.system], across[score.item]] = score.value
        values.flags.writeable = False
        return values

    def column_scores(self, column: str) -> tuple[Score, ...]:
        """The scores of one column, in the order of the samples."""
        return tuple(self._by_column.get(column, ()))

    @cached_property
    def corpus_columns(self) -> frozenset[str]:
        """The columns whose values are of all a system's texts together (`Score.item` is then empty)."""
        return frozenset(row.column for rows in (self.scores, self.failures) for row in rows if not row.item)

    @cached_property
    def _by_column(self) -> dict[str, list[Score]]:
        scores: dict[str, list[Score]] = {}
        for score in self.scores:
            scores.setdefault(score.column, []).append(score)
        return scores

    def to_frame(self, wide: bool = False) -> pd.DataFrame:
        """The long table of `scores.parquet`, or, `wide`, one row per item and system with one column per score column.

        Wide comparisons have a row per item, system shown first and rival shown second.
        A failure's value is null; the long table says in `error`, `stage` and `message` what went wrong.
        """
        import pandas as pd

        if wide:
            values_by_key: dict[tuple[str, ...], float] = {}
            keys: list[tuple[str, ...]] = [(s.item, s.system) for s in self.samples]
            names = ["item", "system"]
            if any(row.rival for row in self.rows()):
                keys = list(dict.fromkeys((row.item, row.system, row.rival) for row in self.rows()))
                names = ["item", "system", "rival"]
            for s in self.scores:
                values_by_key[(*(s.item, s.system, s.rival)[: len(names)], s.column)] = s.value
            frame = pd.DataFrame(keys, columns=names)
            for column in self.columns:
                frame[column.name] = pd.Series(
                    [values_by_key.get((*key, column.name)) for key in keys], dtype="float64"
                )
            return frame
        cells = score_cells([*self.rows()])
        return pd.DataFrame(
            {
                name: pd.Series(cells[name], dtype=_FRAME_TYPES.get(kind, "object"))
                for name, kind in SCORE_COLUMNS.items()
            }
        )

    def save(self, folder: Path) -> None:
        """Write `scores.parquet` and `samples.parquet`, each whole or not at all.

        Raises StorageError where the folder cannot be written; nothing half-written is left.
        """
        store(folder, self.files())

    def files(self) -> dict[str, bytes]:
        """The contents of these two files by name."""
        return {SCORES: scores_file(self.rows()), SAMPLES: samples_file(self.samples, self.columns, {})}

    @classmethod
    def load(cls, folder: Path, most: int | None = None) -> Table:
        """The table of a run folder, or that of its first `most` samples, each of which has all its rows.

        Raises StorageError for a folder or file that cannot be read.
        """
        folder = Path(folder)
        samples, columns, _ = read_samples(folder / SAMPLES, most)
        rows = read_scores(folder / SCORES, None if most is None else most * len(columns))
        return cls(samples, columns, *split_rows(rows))


def split_rows(rows: Iterable[Score | Failure]) -> tuple[tuple[Score, ...], tuple[Failure, ...]]:
    """Scores and failures apart."""
    rows = list(rows)
    return tuple(r for r in rows if isinstance(r, Score)), tuple(r for r in rows if isinstance(r, Failure))
