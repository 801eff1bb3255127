"""Scores side by side, and their files.

A run folder holds `scores.parquet` (the long table, one row per score or failure) and `samples.parquet` (the texts;
its schema metadata has the columns). `core/stored_records.py` says how a field becomes a column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet
from pydantic import TypeAdapter

from judge.core.errors import StorageError
from judge.core.files import describe_error, store
from judge.core.format import plural, to_json
from judge.core.parquet import refuse_bomb, texts_of
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.stored_records import from_columns, json_cell, schema, to_row
from judge.data import ledger

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Floats = np.ndarray[tuple[int, int], np.dtype[np.float64]]

Row = Score | Failure
RUN = "run.json"
SCORES = "scores.parquet"
SAMPLES = "samples.parquet"


_SAMPLE_SCHEMA = schema(Sample)


def _score_schema() -> pa.Schema:
    """The columns of scores and failures together; the long JSON of `answers` comes last."""
    every = schema(Score, Failure, Provenance)
    last = every.field("answers")
    return every.remove(every.get_field_index("answers")).append(last)


_SCORE_SCHEMA = _score_schema()
_FRAME_TYPES = {pa.float64(): "float64", pa.int64(): "Int64"}
_ROW_GROUP = 20_000
"""Rows that are turned into a file's form at once, which takes several times the memory of their texts."""


def _score_row(row: Row) -> dict[str, Any]:
    """The cells of a score or a failure by column; a column that it has no field for is missing."""
    return to_row(row) if isinstance(row, Failure) else to_row(row, row.provenance)


def _about_samples(columns: Iterable[Column]) -> dict[str, Any]:
    return {"columns": [to_json(column) for column in columns], "info": {}}


def _parquet(
    schema: pa.Schema,
    to_row: Callable[[Any], dict[str, Any]],
    records: Sequence[Any],
    about: Mapping[str, Any],
) -> bytes:
    """The contents of a file of records, which says this about itself in its metadata."""
    sink = pa.BufferOutputStream()
    described = schema.with_metadata({"judge": json_cell(about)})
    with parquet.ParquetWriter(sink, described, compression="zstd") as writer:
        for first_row in range(0, max(1, len(records)), _ROW_GROUP):
            rows = [to_row(record) for record in records[first_row : first_row + _ROW_GROUP]]
            writer.write_table(pa.Table.from_pylist(rows, schema=described))
    return bytes(sink.getvalue())


def _read(path: Path, schema: pa.Schema) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the columns of a file and its metadata.

    Raises ValueError for a column of another type than the schema's. A thread of Arrow's may abort the interpreter's
    end. Arrow starts one for any file that is not in memory.
    """
    with pa.BufferReader(path.read_bytes()) as opened:
        with parquet.ParquetFile(opened) as file:
            refuse_bomb(file, path.stat().st_size)
            _check_types(file.schema_arrow, schema)
            about = json.loads((file.metadata.metadata or {})[b"judge"])
            stored_names = set(file.schema_arrow.names)
        # Read as a dictionary, a text that comes often takes little memory.
        texts = [field.name for field in schema if field.type == pa.string()]
        stored_texts = [column_name for column_name in texts if column_name in stored_names]
        opened.seek(0)
        with parquet.ParquetFile(opened, read_dictionary=stored_texts) as file:
            table = file.read(use_threads=False)
    # A newer judge may have added columns.
    known_names = [column_name for column_name in table.schema.names if column_name in schema.names]
    cells = {column_name: texts_of(table[column_name]) for column_name in known_names}
    return cells, about


def _check_types(stored: pa.Schema, schema: pa.Schema) -> None:
    """Raise ValueError, with the column, if one has another type than judge writes. An older file may lack columns."""
    if len(set(stored.names)) < len(stored.names):
        raise ValueError("two columns have the same name")
    for field in schema:
        if field.name not in stored.names:
            continue
        stored_type = stored.field(field.name).type
        if pa.types.is_dictionary(stored_type):
            stored_type = stored_type.value_type
        if stored_type != field.type:
            raise ValueError(f"column {field.name!r} holds {stored_type}, not {field.type}")


@contextmanager
def _translating_errors(path: Path) -> Iterator[Path]:
    """Turns all that a missing or damaged file makes of its reading into a StorageError."""
    try:
        yield path
    except (
        OSError,
        pa.ArrowException,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        raise StorageError(describe_error("read", path, error)) from error


def _read_samples(path: Path) -> tuple[tuple[Sample, ...], tuple[Column, ...]]:
    """Return the samples of a file and the columns of their scores. Raises StorageError."""
    with _translating_errors(path):
        cells, about = _read(path, _SAMPLE_SCHEMA)
        columns = TypeAdapter(tuple[Column, ...]).validate_python(about["columns"])
        return tuple(from_columns(Sample, cells)), columns


def stored_samples(folder: Path) -> tuple[Sample, ...]:
    """Return the samples of a stored run. Raises StorageError."""
    return _read_samples(folder / SAMPLES)[0]


class _RowOrder(NamedTuple):
    """The position of a row: of its text, then of its column, then of the other text of a pair."""

    text: int
    column: int
    opponent: int


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        # A run may have thousands of texts.
        size = f"{plural(len(self.samples), 'text')}, {plural(len(self.columns), 'column')}"
        return f"<Table: {size}, {len(self.scores)} scores, {len(self.failures)} failures>"

    @property
    def signatures(self) -> dict[str, str]:
        """The signature of each column: what is needed to get the same numbers again."""
        return {column.name: str(column.signature) for column in self.columns}

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Every system, in the order of first appearance."""
        return tuple(dict.fromkeys(sample.system for sample in self.samples))

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Every item of the data, in the order of first appearance; several generations are one item."""
        return tuple(dict.fromkeys(sample.source_item for sample in self.samples))

    @cached_property
    def _index_of_text(self) -> dict[tuple[str, str], int]:
        return {sample.key: index for index, sample in enumerate(self.samples)}

    @cached_property
    def _index_of_column(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.columns)}

    def _order(self, row: Score | Failure) -> _RowOrder:
        """Return the key that sorts rows by text, column and opponent; unknown ones are last."""
        index_of_text = self._index_of_text
        index_of_column = self._index_of_column
        return _RowOrder(
            text=index_of_text.get((row.item, row.system), len(index_of_text)),
            column=index_of_column.get(row.column, len(index_of_column)),
            opponent=index_of_text.get((row.item, row.opponent), len(index_of_text)),
        )

    def rows(self) -> Iterator[Score | Failure]:
        """Scores and failures together, in table order."""
        return merge(self.scores, self.failures, key=self._order)

    def matrix(self, column: str) -> Floats:
        """Values of one column, systems × items; NaN masks what has no score (failed, not asked, no such text).

        Several generations have their mean. Comparisons are left out: they are about two texts. Made once, and so not
        to be written to.
        """
        if column not in self._matrices:
            single = [score for score in self.column_scores(column) if not score.opponent]
            by_text = {score.key: score.value for score in single}
            values = matrix(self.samples, by_text).T.copy()
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
        rated = [sample for sample in self.samples if criterion in sample.human]
        return {sample.key: sample.human[criterion] for sample in rated}

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
        return any(row.opponent for row in self.rows())

    @cached_property
    def _by_column(self) -> dict[str, list[Score]]:
        scores: dict[str, list[Score]] = {}
        for score in self.scores:
            scores.setdefault(score.column, []).append(score)
        return scores

    def own_columns(self, taken: Iterable[str]) -> dict[str, str]:
        """The data's own columns, in the order of first appearance, and what each is called beside the `taken` names.

        A column whose name is taken is called `data.NAME`.
        """
        used = {*taken}
        heading_by_name: dict[str, str] = {}
        for column_name in dict.fromkeys(
            column_name for sample in self.samples for column_name in sample.extra
        ):
            heading = column_name
            while heading in used:
                heading = f"data.{heading}"
            used.add(heading)
            heading_by_name[column_name] = heading
        return heading_by_name

    def to_frame(self) -> pd.DataFrame:
        """The long table of `scores.parquet`: a row per score or failure.

        A failure's value is null; `error`, `stage` and `message` say what went wrong. The frame has a column `passed` if a
        criterion has `pass_at`.
        """
        import pandas as pd

        rows = list(self.rows())
        cells = [_score_row(row) for row in rows]
        series_by_name = {}
        for field in _SCORE_SCHEMA:
            values = [row.get(field.name) for row in cells]
            frame_type = _FRAME_TYPES.get(field.type, "object")
            series_by_name[field.name] = pd.Series(values, dtype=frame_type)
        frame = pd.DataFrame(series_by_name)
        with_mark = {column.name: column for column in self.columns if column.pass_at is not None}
        if with_mark:
            passed: list[bool | None] = []
            for row in rows:
                column = with_mark.get(row.column)
                # A failure neither passes nor fails.
                if column is not None and isinstance(row, Score):
                    passed.append(column.passes(row.value))
                else:
                    passed.append(None)
            frame["passed"] = pd.array(passed, dtype="boolean")
        return frame

    def save(self, folder: Path) -> None:
        """Write `scores.parquet` and `samples.parquet`, each whole or not at all. Raises StorageError."""
        store(folder, self.files())

    def files(self) -> dict[str, bytes]:
        """The contents of these two files by name."""
        return {
            SCORES: _parquet(_SCORE_SCHEMA, _score_row, [*self.rows()], {}),
            SAMPLES: _parquet(_SAMPLE_SCHEMA, to_row, self.samples, _about_samples(self.columns)),
        }

    @classmethod
    def load(cls, folder: Path) -> Table:
        """Return the table of a run folder. Raises StorageError."""
        folder = Path(folder)
        samples, columns = _read_samples(folder / SAMPLES)
        with _translating_errors(folder / SCORES) as path:
            cells, _ = _read(path, _SCORE_SCHEMA)
            failed = [error is not None for error in cells["error"]]
            scored = [not failure for failure in failed]
            of_scores = {
                column_name: list(compress(column, scored)) for column_name, column in cells.items()
            }
            of_failures = {
                column_name: list(compress(column, failed)) for column_name, column in cells.items()
            }
            provenances = from_columns(Provenance, of_scores)
            scores: Iterator[Row] = from_columns(Score, of_scores, provenance=provenances)
            failures: Iterator[Row] = from_columns(Failure, of_failures)
            # In the order of the file, which mixes scores and failures.
            rows = [next(failures if failure else scores) for failure in failed]
        return cls(samples, columns, *split_rows(rows))


def matrix(samples: Sequence[Sample], values: Mapping[tuple[str, str], float | None]) -> Floats:
    """Return the values of these samples, items × systems in order of appearance, NaN for missing values.

    Several generations have their mean.
    """
    import numpy as np

    items = dict.fromkeys(sample.source_item for sample in samples)
    systems = dict.fromkeys(sample.system for sample in samples)
    row_of_item = {item: index for index, item in enumerate(items)}
    column_of_system = {system: index for index, system in enumerate(systems)}
    cells = np.full((len(items), len(systems)), np.nan)
    generations: dict[tuple[int, int], list[float]] = {}
    for sample in samples:
        value = values.get(sample.key)
        if value is not None:
            cell = (row_of_item[sample.source_item], column_of_system[sample.system])
            generations.setdefault(cell, []).append(value)
    for cell, known_values in generations.items():
        cells[cell] = (
            known_values[0] if len(known_values) == 1 else sum(known_values) / len(known_values)
        )
    return cells


def split_rows(rows: Iterable[Score | Failure]) -> tuple[tuple[Score, ...], tuple[Failure, ...]]:
    """Scores and failures apart."""
    scores: list[Score] = []
    failures: list[Failure] = []
    for row in rows:
        if isinstance(row, Score):
            scores.append(row)
        else:
            failures.append(row)
    return tuple(scores), tuple(failures)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an OSError of this block into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        raise StorageError(describe_error("write", path, error)) from error
