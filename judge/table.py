"""Scores side by side, and their files.

A run folder holds `scores.parquet` (the long table, one row per score or failure) and
`samples.parquet` (the texts; its schema metadata has the columns). `core/stored_records.py` says
how a field becomes a column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import chain, compress
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
Text = tuple[str, str]
"""A text of the data: its item and its system."""
RUN = "run.json"
SCORES = "scores.parquet"
SAMPLES = "samples.parquet"

_SAMPLE_SCHEMA = schema(Sample)


def _score_schema() -> pa.Schema:
    """Return the columns of scores and failures; the long JSON of `answers` comes last."""
    fields = schema(Score, Failure, Provenance)
    answers = fields.field("answers")
    without_answers = fields.remove(fields.get_field_index("answers"))
    return without_answers.append(answers)


_SCORE_SCHEMA = _score_schema()
_FRAME_TYPES = {pa.float64(): "float64", pa.int64(): "Int64"}
_ROW_GROUP = 20_000
"""Rows that are converted at once: a converted row takes several times the memory of its texts."""


def _score_row(row: Row) -> dict[str, Any]:
    """Return the cells of a score or a failure by column, without columns that it lacks."""
    if isinstance(row, Failure):
        return to_row(row)
    return to_row(row, row.provenance)


def _metadata_of_samples(columns: Iterable[Column]) -> dict[str, Any]:
    return {"columns": [to_json(column) for column in columns], "info": {}}


def _parquet(
    file_schema: pa.Schema,
    cells_of: Callable[[Any], dict[str, Any]],
    records: Sequence[Any],
    metadata: Mapping[str, Any],
) -> bytes:
    """Return the contents of a Parquet file of records with this metadata.

    `cells_of` returns the cells of a record by column.
    """
    sink = pa.BufferOutputStream()
    full_schema = file_schema.with_metadata({"judge": json_cell(metadata)})
    with parquet.ParquetWriter(sink, full_schema, compression="zstd") as writer:
        # A file without records gets one empty row group.
        for first_row in range(0, max(1, len(records)), _ROW_GROUP):
            group = records[first_row : first_row + _ROW_GROUP]
            rows = [cells_of(record) for record in group]
            writer.write_table(pa.Table.from_pylist(rows, schema=full_schema))
    return bytes(sink.getvalue())


class _StoredFile(NamedTuple):
    """The cells of a file by column, and its metadata."""

    cells: dict[str, list[Any]]
    metadata: dict[str, Any]


def _read(path: Path, expected: pa.Schema) -> _StoredFile:
    """Read a file. Raises ValueError for a column of another type than in the `expected` schema."""
    # Arrow starts a thread for any file that is not in memory, which may abort the interpreter's
    # exit.
    with pa.BufferReader(path.read_bytes()) as buffer:
        with parquet.ParquetFile(buffer) as file:
            refuse_bomb(file, path.stat().st_size)
            _check_types(file.schema_arrow, expected)
            metadata = json.loads((file.metadata.metadata or {})[b"judge"])
            stored_names = set(file.schema_arrow.names)
        # Read as a dictionary, a text that comes often takes little memory.
        text_columns = [field.name for field in expected if field.type == pa.string()]
        stored_texts = [
            column_name for column_name in text_columns if column_name in stored_names
        ]
        buffer.seek(0)
        with parquet.ParquetFile(buffer, read_dictionary=stored_texts) as file:
            table = file.read(use_threads=False)
    cells: dict[str, list[Any]] = {}
    for column_name in table.schema.names:
        # A newer judge may have added columns.
        if column_name in expected.names:
            cells[column_name] = texts_of(table[column_name])
    return _StoredFile(cells, metadata)


def _check_types(stored: pa.Schema, expected: pa.Schema) -> None:
    """Raise ValueError, with the column, if one has another type than judge writes.

    An older file may lack columns.
    """
    if len(set(stored.names)) < len(stored.names):
        raise ValueError("two columns have the same name")
    for field in expected:
        if field.name not in stored.names:
            continue
        stored_type = stored.field(field.name).type
        if pa.types.is_dictionary(stored_type):
            stored_type = stored_type.value_type
        if stored_type != field.type:
            raise ValueError(
                f"column {field.name!r} holds {stored_type}, not {field.type}"
            )


@contextmanager
def _translating_errors(path: Path) -> Iterator[Path]:
    """Turn every error from reading a missing or damaged file into a StorageError."""
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
        file = _read(path, _SAMPLE_SCHEMA)
        adapter = TypeAdapter(tuple[Column, ...])
        columns = adapter.validate_python(file.metadata["columns"])
        samples = tuple(from_columns(Sample, file.cells))
        return samples, columns


def stored_samples(folder: Path) -> tuple[Sample, ...]:
    """Return the samples of a stored run. Raises StorageError."""
    samples, _ = _read_samples(folder / SAMPLES)
    return samples


class _RowOrder(NamedTuple):
    """The position of a row: of its text, then of its column, then of the other text of a pair."""

    text: int
    column: int
    opponent: int


@dataclass(frozen=True, repr=False)
class Table:
    """The samples of a run and their results in every column.

    `scores` and `failures` are sorted by sample, then by column, so that equal runs make equal
    tables. Raises DataError for a rating of a text that a column has `seen`: no estimate may use
    it.
    """

    samples: tuple[Sample, ...]
    columns: tuple[Column, ...]
    scores: tuple[Score, ...]
    failures: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        ledger.check(self.samples, ledger.seen_by(self.columns))
        scores = sorted(self.scores, key=self._order)
        failures = sorted(self.failures, key=self._order)
        # A frozen dataclass has no other way to set its own fields.
        object.__setattr__(self, "scores", tuple(scores))
        object.__setattr__(self, "failures", tuple(failures))

    def __repr__(self) -> str:
        # A run may have thousands of texts.
        parts = [
            plural(len(self.samples), "text"),
            plural(len(self.columns), "column"),
            f"{len(self.scores)} scores",
            f"{len(self.failures)} failures",
        ]
        return f"<Table: {', '.join(parts)}>"

    @property
    def signatures(self) -> dict[str, str]:
        """The signature of each column: equal signatures and data give equal numbers."""
        return {column.name: str(column.signature) for column in self.columns}

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """Every system, in the order of first appearance."""
        return tuple(dict.fromkeys(sample.system for sample in self.samples))

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Every item of the data, in the order of first appearance.

        Several generations are one item.
        """
        return tuple(dict.fromkeys(sample.source_item for sample in self.samples))

    @cached_property
    def _index_of_text(self) -> dict[Text, int]:
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
        """Return scores and failures together, in table order."""
        return merge(self.scores, self.failures, key=self._order)

    def matrix(self, column: str) -> Floats:
        """Return the values of one column, systems × items; NaN for a text without a score.

        Its judgment failed or was not asked for, or the system has no text for the item. Several
        generations have their mean. Comparisons are left out, because they are about two texts.
        The array is cached and read-only.
        """
        if column not in self._matrices:
            value_by_text: dict[Text, float] = {}
            for score in self.column_scores(column):
                if not score.opponent:
                    value_by_text[score.key] = score.value
            values = matrix(self.samples, value_by_text).T.copy()
            values.flags.writeable = False
            self._matrices[column] = values
        return self._matrices[column]

    @cached_property
    def _matrices(self) -> dict[str, Floats]:
        return {}

    def column_scores(self, column: str) -> tuple[Score, ...]:
        """Return the scores of one column, in the order of the samples."""
        return tuple(self._by_column.get(column, ()))

    @cached_property
    def corpus_columns(self) -> frozenset[str]:
        """The columns with one value for all of a system's texts (`Score.item` is then empty)."""
        rows: Iterable[Row] = chain(self.scores, self.failures)
        return frozenset(row.column for row in rows if not row.item)

    def ratings(self, criterion: str) -> dict[tuple[str, str], float]:
        """Return people's ratings of a criterion, by item and system."""
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
        """Return the headings of the data's own columns by name, in the order of first appearance.

        A column is called `data.NAME` if its name is one of the `taken` ones.
        """
        used = {*taken}
        own_names = dict.fromkeys(
            name for sample in self.samples for name in sample.extra
        )
        heading_by_name: dict[str, str] = {}
        for column_name in own_names:
            heading = column_name
            while heading in used:
                heading = f"data.{heading}"
            used.add(heading)
            heading_by_name[column_name] = heading
        return heading_by_name

    def to_frame(self) -> pd.DataFrame:
        """Return the long table of `scores.parquet`: a row per score or failure.

        A failure's value is null; `error`, `stage` and `message` say what went wrong. The frame has
        a column `passed` if a criterion has `pass_at`.
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
        with_mark = {
            column.name: column for column in self.columns if column.pass_at is not None
        }
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
        """Write `scores.parquet` and `samples.parquet`, each atomically. Raises StorageError."""
        store(folder, self.files())

    def files(self) -> dict[str, bytes]:
        """Return the contents of `scores.parquet` and `samples.parquet` by file name."""
        rows = list(self.rows())
        scores = _parquet(_SCORE_SCHEMA, _score_row, rows, {})
        metadata = _metadata_of_samples(self.columns)
        samples = _parquet(_SAMPLE_SCHEMA, to_row, self.samples, metadata)
        return {SCORES: scores, SAMPLES: samples}

    @classmethod
    def load(cls, folder: Path) -> Table:
        """Return the table of a run folder. Raises StorageError."""
        folder = Path(folder)
        samples, columns = _read_samples(folder / SAMPLES)
        with _translating_errors(folder / SCORES) as path:
            cells = _read(path, _SCORE_SCHEMA).cells
            failed = [error is not None for error in cells["error"]]
            scored = [not is_failure for is_failure in failed]
            score_cells: dict[str, list[Any]] = {}
            failure_cells: dict[str, list[Any]] = {}
            for column_name, column in cells.items():
                score_cells[column_name] = list(compress(column, scored))
                failure_cells[column_name] = list(compress(column, failed))
            provenances = from_columns(Provenance, score_cells)
            scores: Iterator[Row] = from_columns(
                Score, score_cells, provenance=provenances
            )
            failures: Iterator[Row] = from_columns(Failure, failure_cells)
            # In the order of the file, which mixes scores and failures.
            rows = [next(failures if is_failure else scores) for is_failure in failed]
        return cls(samples, columns, *split_rows(rows))


def matrix(samples: Sequence[Sample], values: Mapping[Text, float | None]) -> Floats:
    """Return the values of these samples, items × systems in the order of first appearance.

    NaN stands for a missing value. Several generations have their mean.
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
        cells[cell] = sum(known_values) / len(known_values)
    return cells


def split_rows(
    rows: Iterable[Score | Failure],
) -> tuple[tuple[Score, ...], tuple[Failure, ...]]:
    """Return the scores and the failures, each in the order of the rows."""
    scores: list[Score] = []
    failures: list[Failure] = []
    for row in rows:
        if isinstance(row, Score):
            scores.append(row)
        else:
            failures.append(row)
    return tuple(scores), tuple(failures)
