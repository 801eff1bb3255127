"""The journal of a run under way, for the case that it is killed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from judge.core.errors import StorageError
from judge.core.records import Column, Failure, Sample, Score
from judge.table.core import Table, sort_out
from judge.table.files import FIELDS, flat, read_samples, reading, record, samples_file, store, trouble

JOURNAL = "scores.partial.jsonl"
START = "samples.partial.parquet"


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
        store(folder, {} if start is None else {START: samples_file(start.samples, start.columns, info or {})})
        try:
            self._file = self._path.open("w", encoding="ascii")
        except OSError as error:
            raise StorageError(trouble("write", self._path, error)) from error

    def add(self, row: Score | Failure) -> None:
        """Take one row; write what has gathered every 200 rows or after a second. Raises StorageError."""
        fields = {name: cell for name, cell in zip(FIELDS, flat(row), strict=True) if cell is not None}
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
            raise StorageError(trouble("write", self._path, error)) from error

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
    with reading(Path(folder) / JOURNAL) as path:
        *lines, _cut = path.read_text(encoding="ascii").split("\n")
        found = (json.loads(line) for line in lines)
        return [record([fields.get(name) for name in FIELDS]) for fields in found]


def recover(folder: Path) -> tuple[Table, dict[str, Any]]:
    """The table of a run that was killed, as far as it came, and the `info` it started with.

    A journal without a start gives samples without texts and columns without signatures. Raises StorageError.
    """
    scores, failures = sort_out(read_journal(folder))
    if (Path(folder) / START).exists():
        samples, columns, info = read_samples(Path(folder) / START)
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
            raise StorageError(trouble("remove", Path(folder) / name, error)) from error
