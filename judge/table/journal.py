"""Write a run's rows as they come: the journal that survives a kill, and Parquet files larger than memory."""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.core import files
from judge.core.errors import StorageError
from judge.core.records import Column, Failure, Sample, Score
from judge.table.scores import (
    RUN,
    SAMPLES,
    SCORE_COLUMNS,
    SCORES,
    STORED,
    Table,
    column_metadata,
    describe_os_error,
    read_samples,
    rows_of,
    samples_file,
    samples_table,
    score_cells,
    scores_table,
    split_rows,
    store,
    translating_errors,
)

JOURNAL = "scores.partial.jsonl"
START = "samples.partial.parquet"


class Journal:
    """Rows of a run under way, on disk within about a second, for the case that the run is killed.

    `start` (samples and columns, no scores yet) and `info` are stored at once, so that `recover` can show the rows
    with their texts. A journal left by an earlier run in the folder is replaced. Not for several threads.
    """

    def __init__(self, folder: Path, start: Table | None = None, info: Mapping[str, Any] | None = None) -> None:
        self._path = Path(folder) / JOURNAL
        self._rows: list[Score | Failure] = []
        self._written = time.monotonic()
        self._encode = json.JSONEncoder(separators=(",", ":")).encode
        delete_journal(folder)
        store(folder, {} if start is None else {START: samples_file(start.samples, start.columns, info or {})})
        try:
            self._file = self._path.open("w", encoding="ascii")
        except OSError as error:
            raise StorageError(describe_os_error("write", self._path, error)) from error

    def add(self, row: Score | Failure) -> None:
        """Take one row; write what has gathered every 200 rows or after a second. Raises StorageError."""
        self._rows.append(row)
        if len(self._rows) >= 200 or time.monotonic() - self._written > 1.0:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered. Raises StorageError."""
        rows, self._rows, self._written = self._rows, [], time.monotonic()
        columns = score_cells(rows)
        lines = [
            self._encode({name: cell for name, cell in zip(columns, cells, strict=True) if cell is not None}) + "\n"
            for cells in zip(*columns.values(), strict=True)
        ]
        try:
            self._file.write("".join(lines))
            self._file.flush()
        except OSError as error:
            raise StorageError(describe_os_error("write", self._path, error)) from error

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
    with translating_errors(Path(folder) / JOURNAL) as path:
        *lines, _cut = path.read_text(encoding="ascii").split("\n")
        rows = [json.loads(line) for line in lines]
        return rows_of({name: [row.get(name) for row in rows] for name in SCORE_COLUMNS})


def recover(folder: Path) -> tuple[Table, dict[str, Any]]:
    """The table of a run that was killed, as far as it came, and the `info` it started with.

    A journal without a start gives samples without texts and columns without signatures. Raises StorageError.
    """
    scores, failures = split_rows(read_journal(folder))
    if (Path(folder) / START).exists():
        samples, columns, info = read_samples(Path(folder) / START)
        return Table(samples, columns, scores, failures), info
    rows: list[Score | Failure] = [*scores, *failures]
    keys = dict.fromkeys((r.item, r.system) for r in rows)
    metrics = {s.column for s in scores if s.provenance.method == "metric"}
    names = dict.fromkeys(r.column for r in rows)
    columns = tuple(Column(name, "metric" if name in metrics else "criterion", "") for name in names)
    return Table(tuple(Sample(*key, output="") for key in keys), columns, scores, failures), {}


def delete_journal(folder: Path) -> None:
    """Remove a folder's journal, for instance because the run it belongs to is stored. Raises StorageError."""
    for name in (JOURNAL, START):
        try:
            (Path(folder) / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(describe_os_error("remove", Path(folder) / name, error)) from error


_GROUP = 20_000
"""Rows written at once: a Parquet row group."""


class StreamingWriter:
    """Writes `scores.parquet` and `samples.parquet` as rows come; readers find them when `close` has put them in place.

    Until then they stand beside their places, from which they are removed where the process ends. Raises StorageError.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._open: dict[str, Any] = {}
        self._scores: list[Score | Failure] = []
        self._samples: list[Sample] = []
        try:
            files.make_private_dir(self._folder)
        except OSError as error:
            raise StorageError(describe_os_error("write", self._folder, error)) from error
        atexit.register(self.discard)

    def add(self, samples: Iterable[Sample], rows: Iterable[Score | Failure]) -> None:
        """Take samples and their rows, in table order."""
        self._samples += samples
        self._scores += rows
        if len(self._scores) >= _GROUP:
            self._flush()

    def close(self, columns: Iterable[Column]) -> None:
        """Write what is left, with the columns, and put the files in place; another run's run.json goes first."""
        self._flush()
        metadata = {SCORES: {}, SAMPLES: {"columns": [asdict(c) for c in columns], "info": {}}}
        try:
            for name, file in self._open.items():
                file.add_key_value_metadata(column_metadata(metadata[name]))
                file.close()
            (self._folder / RUN).unlink(missing_ok=True)
            for name in self._open:
                self._temporary_path(name).replace(self._folder / name)
            atexit.unregister(self.discard)
        except OSError as error:
            raise StorageError(describe_os_error("write", self._folder, error)) from error

    def discard(self) -> None:
        """Remove what was written."""
        atexit.unregister(self.discard)
        for name, file in self._open.items():
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                self._temporary_path(name).unlink()

    def _flush(self) -> None:
        scores, self._scores, samples, self._samples = self._scores, [], self._samples, []
        self._write_table(SCORES, scores_table(scores))
        self._write_table(SAMPLES, samples_table(samples))

    def _write_table(self, name: str, table: Any) -> None:
        from pyarrow import parquet

        try:
            if name not in self._open:
                self._open[name] = parquet.ParquetWriter(self._temporary_path(name), table.schema, **STORED)
            self._open[name].write_table(table)
        except OSError as error:
            raise StorageError(describe_os_error("write", self._folder / name, error)) from error

    def _temporary_path(self, name: str) -> Path:
        return self._folder / f".{name}.{os.getpid()}.tmp"
