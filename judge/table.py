"""Scores side by side, and their files.

A run folder holds `scores.parquet` (the long table, one row per score or failure) and `samples.parquet` (the texts;
its schema metadata has the columns). Text is stored as UTF-8, so a lone surrogate becomes U+FFFD; what JSON has no
type for in `Sample.extra` (dates, tuples) is stored as text or list. All else comes back equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, asdict, dataclass, fields
from functools import cache, cached_property
from heapq import merge
from itertools import compress, repeat
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter

from judge.core.errors import StorageError
from judge.core.files import describe_error, store
from judge.core.parquet import refuse_bomb, texts_of
from judge.core.records import Column, Failure, Provenance, Sample, Score, whole
from judge.data import ledger

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    Floats = np.ndarray[tuple[int, int], np.dtype[np.float64]]

Row = Score | Failure
RUN = "run.json"
SCORES = "scores.parquet"
SAMPLES = "samples.parquet"


def _column_types(*records: type) -> dict[str, str]:
    """The fields of records, each name once, with their types: `float | None` is "float", `Mapping[...]` "Mapping".

    Tuples of records are stored as JSON, as mappings are.
    """
    every = [field for record in records for field in fields(record)]
    return {field.name: str(field.type).partition(" |")[0].partition("[")[0] for field in every} | {
        field.name: "records" for field in every if str(field.type).startswith("tuple[Checklist")
    }


_SCORE_COLUMNS = _column_types(Score, Failure, Provenance)
del _SCORE_COLUMNS["provenance"]
_SCORE_COLUMNS["answers"] = _SCORE_COLUMNS.pop("answers")  # the last one in the frame
_SAMPLE_COLUMNS = _column_types(Sample)
_PROVENANCE = frozenset(_column_types(Provenance))
_FRAME_TYPES = {"float": "float64", "int": "Int64"}
_STORED: dict[str, Any] = {"compression": "zstd"}
_ROW_GROUP = 20_000
"""Rows that are turned into a file's form at once, which takes several times the memory of their texts."""


def _score_cells(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The cells of rows by column; None where a row has no such field."""
    provenances = [getattr(row, "provenance", row) for row in rows]
    return {
        name: _column(kind, provenances if name in _PROVENANCE else rows, name)
        for name, kind in _SCORE_COLUMNS.items()
    }


def _column(kind: str, records: Sequence[Any], name: str) -> list[Any]:
    """A field of records as it is stored: a mapping as JSON."""
    cells = [getattr(record, name, None) for record in records]
    if kind == "records":
        return [_json([asdict(record) for record in cell]) if cell else None for cell in cells]
    return [cell if cell is None else _json(cell) for cell in cells] if kind == "Mapping" else cells


def _records(record: Callable[..., Any], columns: Mapping[str, Iterable[Any]]) -> Iterator[Any]:
    """Records made of their fields' cells. A column that an older file lacks has its field's default."""
    arguments: list[Iterable[Any]] = []
    for field in fields(record):  # type: ignore[arg-type]
        if field.name not in columns and (field.default is not MISSING or field.name == "raters"):
            arguments.append(repeat({} if field.default is MISSING else field.default))
            continue
        cells = columns[field.name]
        kind = _SCORE_COLUMNS.get(field.name) or _SAMPLE_COLUMNS.get(field.name, "")
        if kind in ("Mapping", "records"):
            cells = [*cells]
            if kind == "Mapping" and not _is_optional(field) and None in cells:
                raise ValueError(f"{field.name} lacks a value")
            parse, empty = _parser(record, field.name), () if kind == "records" else None
            cells = [empty if cell is None else parse(cell) for cell in cells]
        elif not _is_optional(field) and kind != "tuple":
            cells = [*cells]
            if None in cells or (field.type == "float" and not all(map(isfinite, cells))):
                raise ValueError(f"{field.name} lacks a value, or has one that no run writes")
        elif kind == "tuple":
            cells = [*cells]
            if any(cell is None or None in cell for cell in cells):
                raise ValueError(f"{field.name} lacks a value, or has one that no run writes")
        arguments.append(map(tuple, cells) if kind == "tuple" else cells)
    return map(record, *arguments)


def _is_optional(field: Field[Any]) -> bool:
    """Whether None is a value of the field itself, not only of something in it."""
    return str(field.type).endswith("| None")


@cache
def _parser(record: Callable[..., Any], name: str) -> Callable[[str], Any]:
    """What makes the value of a field from its JSON."""
    return TypeAdapter(get_type_hints(record)[name]).validate_json


def _sample_cells(samples: Sequence[Sample]) -> dict[str, list[Any]]:
    """The cells of samples by column."""
    return {name: _column(kind, samples, name) for name, kind in _SAMPLE_COLUMNS.items()}


def _schema(types: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    arrow = {"float": pa.float64(), "int": pa.int64(), "tuple": pa.list_(pa.string())}
    return pa.schema([(name, arrow.get(kind, pa.string())) for name, kind in types.items()])


def _table(types: Mapping[str, str], columns: Mapping[str, list[Any]]) -> pa.Table:
    """A table by way of JSON: `pa.array` imports pandas, which takes a quarter of the time of a small run."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    schema = _schema(types)
    records = (
        {name: cell for name, cell in zip(columns, cells, strict=True) if cell is not None}
        for cells in zip(*columns.values(), strict=True)
    )
    text = whole("\n".join(map(_encode, records))).encode()
    if not text:
        return schema.empty_table()
    read = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    return arrow_json.read_json(
        pa.BufferReader(text), read, arrow_json.ParseOptions(explicit_schema=schema)
    )


def _about_samples(columns: Iterable[Column]) -> dict[str, Any]:
    return {"columns": [asdict(c) for c in columns], "info": {}}


def _parquet(
    types: Mapping[str, str],
    cells: Callable[[Sequence[Any]], dict[str, list[Any]]],
    records: Sequence[Any],
    about: Mapping[str, Any],
) -> bytes:
    """The contents of a file of records, which says this about itself in its metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    schema = _schema(types).with_metadata({"judge": _json(about)})
    with parquet.ParquetWriter(sink, schema, **_STORED) as writer:
        for first in range(0, max(1, len(records)), _ROW_GROUP):
            writer.write_table(_table(types, cells(records[first : first + _ROW_GROUP])))
    return bytes(sink.getvalue())


def _plain(value: Any) -> Any:
    return (
        value.item()
        if hasattr(value, "item")
        else dict(value)
        if isinstance(value, Mapping)
        else str(value)
    )


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode


def _json(value: Any) -> str:
    return whole(json.dumps(value, ensure_ascii=False, default=_plain))


def _read(path: Path, types: Mapping[str, str]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the columns of a file and its metadata.

    Raises ValueError for a column of another type than `_schema(types)`. A thread of Arrow's may abort the
    interpreter's end. Arrow starts one for any file that is not in memory.
    """
    import pyarrow as pa
    from pyarrow import parquet

    with pa.BufferReader(path.read_bytes()) as opened:
        with parquet.ParquetFile(opened) as file:
            refuse_bomb(file, path.stat().st_size)
            _check_types(file.schema_arrow, types)
            about = json.loads((file.metadata.metadata or {})[b"judge"])
            texts = [name for name in _text_columns(types) if name in file.schema_arrow.names]
        opened.seek(0)
        with parquet.ParquetFile(opened, read_dictionary=texts) as file:
            table = file.read(use_threads=False)
    return {name: texts_of(table[name]) for name in table.schema.names if name in types}, about


def _text_columns(types: Mapping[str, str]) -> list[str]:
    """Return the columns that hold texts: read as dictionaries, a text that comes often takes little memory."""
    return [name for name, kind in types.items() if kind not in ("float", "int", "tuple")]


def _check_types(found: pa.Schema, types: Mapping[str, str]) -> None:
    """Raise ValueError, with the column, if one has another type than judge writes. An older file may lack columns."""
    import pyarrow as pa

    if len(set(found.names)) < len(found.names):
        raise ValueError("two columns have the same name")
    for field in _schema(types):
        if field.name not in found.names:
            continue
        other = found.field(field.name).type
        if pa.types.is_dictionary(other):
            other = other.value_type
        if other != field.type:
            raise ValueError(f"column {field.name!r} holds {other}, not {field.type}")


@contextmanager
def _translating_errors(path: Path) -> Iterator[Path]:
    """Turns all that a missing or damaged file makes of its reading into a StorageError."""
    import pyarrow as pa

    try:
        yield path
    except (
        OSError, pa.ArrowException, KeyError, TypeError, ValueError, AttributeError, ArithmeticError,
        RecursionError, MemoryError,
    ) as error:  # fmt: skip
        raise StorageError(describe_error("read", path, error)) from error


def _read_samples(path: Path) -> tuple[tuple[Sample, ...], tuple[Column, ...]]:
    """Return the samples of a file and the columns of their scores. Raises StorageError."""
    with _translating_errors(path):
        cells, about = _read(path, _SAMPLE_COLUMNS)
        columns = TypeAdapter(tuple[Column, ...]).validate_python(about["columns"])
        return tuple(_records(Sample, cells)), columns


def stored_samples(folder: Path) -> tuple[Sample, ...]:
    """Return the samples of a stored run. Raises StorageError."""
    return _read_samples(folder / SAMPLES)[0]


@dataclass(frozen=True)
class Table:
    """The samples of a run and their results in every column.

    `scores` and `failures` are sorted by sample, then by column, so that equal runs make equal tables. Raises DataError
    for a rating of a text that a column has `seen`: no estimate may use it.
    """

    samples: tuple[Sample, ...]
    columns: tuple[Column, ...]
    scores: tuple[Score, ...]
    failures: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        ledger.check(self.samples, ledger.seen_by(self.columns))
        object.__setattr__(self, "scores", tuple(sorted(self.scores, key=self._order)))
        object.__setattr__(self, "failures", tuple(sorted(self.failures, key=self._order)))

    @property
    def signatures(self) -> dict[str, str]:
        """The signature of each column: what is needed to get the same numbers again."""
        return {column.name: column.signature for column in self.columns}

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Every system, in the order of first appearance."""
        return tuple(dict.fromkeys(s.system for s in self.samples))

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Every item of the data, in the order of first appearance; several generations are one item."""
        return tuple(dict.fromkeys(s.source_item for s in self.samples))

    @cached_property
    def _orders(self) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
        samples = {s.key: place for place, s in enumerate(self.samples)}
        return samples, {c.name: place for place, c in enumerate(self.columns)}

    def _order(self, row: Score | Failure) -> tuple[int, int, int]:
        samples, columns = self._orders
        place, rival = (
            samples.get((row.item, name), len(samples)) for name in (row.system, row.rival)
        )
        return place, columns.get(row.column, len(columns)), rival

    def rows(self) -> Iterator[Score | Failure]:
        """Scores and failures together, in table order."""
        return merge(self.scores, self.failures, key=self._order)

    def matrix(self, column: str) -> Floats:
        """Values of one column, systems × items; NaN masks what has no score (failed, not asked, no such text).

        Several generations have their mean. Comparisons are left out: they are about two texts. Made once, and so not
        to be written to.
        """
        if column not in self._matrices:
            values = matrix(
                self.samples, {s.key: s.value for s in self.column_scores(column) if not s.rival}
            ).T.copy()
            values.flags.writeable = False
            self._matrices[column] = values
        return self._matrices[column]

    @cached_property
    def _matrices(self) -> dict[str, Floats]:
        return {}

    def column_scores(self, column: str) -> tuple[Score, ...]:
        """The scores of one column, in the order of the samples."""
        return tuple(self._by_column.get(column, ()))

    @cached_property
    def corpus_columns(self) -> frozenset[str]:
        """The columns whose values are of all a system's texts together (`Score.item` is then empty)."""
        return frozenset(
            row.column for rows in (self.scores, self.failures) for row in rows if not row.item
        )

    def ratings(self, criterion: str) -> dict[tuple[str, str], float]:
        """People's ratings of a criterion, by item and system."""
        return {s.key: s.human[criterion] for s in self.samples if criterion in s.human}

    @cached_property
    def ranked_columns(self) -> tuple[Column, ...]:
        """The columns with values of single texts and a better end."""
        return tuple(
            column
            for column in self.columns
            if column.better and column.name not in self.corpus_columns
        )

    @cached_property
    def has_pairs(self) -> bool:
        """Whether a row compares two texts."""
        return any(row.rival for row in self.rows())

    @cached_property
    def _by_column(self) -> dict[str, list[Score]]:
        scores: dict[str, list[Score]] = {}
        for score in self.scores:
            scores.setdefault(score.column, []).append(score)
        return scores

    def to_frame(self, wide: bool = False) -> pd.DataFrame:
        """The long table of `scores.parquet`, or, `wide`, one row per item and system with one column per score column.

        Wide comparisons have a row per item, system shown first and rival shown second.
        A failure's value is null; the long table says in `error`, `stage` and `message` what went wrong. It has
        a column `passed` if a criterion has `pass_at`.
        """
        import pandas as pd

        if wide:
            values: dict[tuple[str, ...], float] = {}
            keys: list[tuple[str, ...]] = [s.key for s in self.samples]
            names = ["item", "system"]
            if self.has_pairs:
                keys = list(dict.fromkeys((row.item, row.system, row.rival) for row in self.rows()))
                names = ["item", "system", "rival"]
            for s in self.scores:
                values[(*(s.item, s.system, s.rival)[: len(names)], s.column)] = s.value
            frame = pd.DataFrame(keys, columns=names)
            for column in self.columns:
                frame[column.name] = pd.Series(
                    [values.get((*key, column.name)) for key in keys], dtype="float64"
                )
            return frame
        rows = [*self.rows()]
        cells = _score_cells(rows)
        frame = pd.DataFrame(
            {
                name: pd.Series(cells[name], dtype=_FRAME_TYPES.get(kind, "object"))
                for name, kind in _SCORE_COLUMNS.items()
            }
        )
        passing = {column.name: column for column in self.columns if column.pass_at is not None}
        if passing:
            passed = [passing[r.column].passes(r.value) if isinstance(r, Score) and r.column in passing else None
                      for r in rows]  # fmt: skip
            frame["passed"] = pd.array(passed, dtype="boolean")
        return frame

    def save(self, folder: Path) -> None:
        """Write `scores.parquet` and `samples.parquet`, each whole or not at all. Raises StorageError."""
        store(folder, self.files())

    def files(self) -> dict[str, bytes]:
        """The contents of these two files by name."""
        return {
            SCORES: _parquet(_SCORE_COLUMNS, _score_cells, [*self.rows()], {}),
            SAMPLES: _parquet(
                _SAMPLE_COLUMNS, _sample_cells, self.samples, _about_samples(self.columns)
            ),
        }

    @classmethod
    def load(cls, folder: Path) -> Table:
        """Return the table of a run folder. Raises StorageError."""
        folder = Path(folder)
        samples, columns = _read_samples(folder / SAMPLES)
        with _translating_errors(folder / SCORES) as path:
            cells = _read(path, _SCORE_COLUMNS)[0]
            failed = [error is not None for error in cells["error"]]
            of_scores = {
                name: compress(column, (not failure for failure in failed))
                for name, column in cells.items()
            }
            of_failures = {name: compress(column, failed) for name, column in cells.items()}
            scores: Iterator[Row] = _records(
                Score, of_scores | {"provenance": _records(Provenance, of_scores)}
            )
            failures: Iterator[Row] = _records(Failure, of_failures)
            rows = [next(failures if failure else scores) for failure in failed]
        return cls(samples, columns, *split_rows(rows))


def matrix(samples: Sequence[Sample], values: Mapping[tuple[str, str], float | None]) -> Floats:
    """Return the values of these samples, items × systems in order of appearance, NaN for missing values.

    Several generations have their mean.
    """
    import numpy as np

    down = {item: place for place, item in enumerate(dict.fromkeys(s.source_item for s in samples))}
    across = {
        system: place for place, system in enumerate(dict.fromkeys(s.system for s in samples))
    }
    cells = np.full((len(down), len(across)), np.nan)
    generations: dict[tuple[int, int], list[float]] = {}
    for sample in samples:
        if (value := values.get(sample.key)) is not None:
            generations.setdefault((down[sample.source_item], across[sample.system]), []).append(
                value
            )
    for cell, known in generations.items():
        cells[cell] = known[0] if len(known) == 1 else sum(known) / len(known)
    return cells


def split_rows(rows: Iterable[Score | Failure]) -> tuple[tuple[Score, ...], tuple[Failure, ...]]:
    """Scores and failures apart."""
    rows = list(rows)
    return tuple(r for r in rows if isinstance(r, Score)), tuple(
        r for r in rows if isinstance(r, Failure)
    )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an OSError of this block into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        raise StorageError(describe_error("write", path, error)) from error
