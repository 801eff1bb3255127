"""The files of a run folder, written row by row, for data larger than memory."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.core import files
from judge.core.errors import StorageError
from judge.core.records import Column, Failure, Sample, Score
from judge.table.files import RUN, SAMPLES, SCORES, STORED, described, samples_table, scores_table, trouble

_GROUP = 20_000
"""Rows written at once: a Parquet row group."""


class Writer:
    """Writes `scores.parquet` and `samples.parquet` as rows come; readers find them when `close` has put them in place.

    Until then they stand beside their places, from which they are removed where the process ends. Raises StorageError.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._open: dict[str, Any] = {}
        self._scores: list[Score | Failure] = []
        self._samples: list[Sample] = []
        try:
            files.folder(self._folder)
        except OSError as error:
            raise StorageError(trouble("write", self._folder, error)) from error
        atexit.register(self.abandon)

    def add(self, samples: Iterable[Sample], rows: Iterable[Score | Failure]) -> None:
        """Take samples and their rows, in table order."""
        self._samples += samples
        self._scores += rows
        if len(self._scores) >= _GROUP:
            self._flush()

    def close(self, columns: Iterable[Column]) -> None:
        """Write what is left, with the columns, and put the files in place; another run's run.json goes first."""
        self._flush()
        said = {SCORES: {}, SAMPLES: {"columns": [asdict(c) for c in columns], "info": {}}}
        try:
            for name, file in self._open.items():
                file.add_key_value_metadata(described(said[name]))
                file.close()
            (self._folder / RUN).unlink(missing_ok=True)
            for name in self._open:
                self._beside(name).replace(self._folder / name)
            atexit.unregister(self.abandon)
        except OSError as error:
            raise StorageError(trouble("write", self._folder, error)) from error

    def abandon(self) -> None:
        """Remove what was written."""
        atexit.unregister(self.abandon)
        for name, file in self._open.items():
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                self._beside(name).unlink()

    def _flush(self) -> None:
        scores, self._scores, samples, self._samples = self._scores, [], self._samples, []
        self._put(SCORES, scores_table(scores))
        self._put(SAMPLES, samples_table(samples))

    def _put(self, name: str, table: Any) -> None:
        from pyarrow import parquet

        try:
            if name not in self._open:
                self._open[name] = parquet.ParquetWriter(self._beside(name), table.schema, **STORED)
            self._open[name].write_table(table)
        except OSError as error:
            raise StorageError(trouble("write", self._folder / name, error)) from error

    def _beside(self, name: str) -> Path:
        return self._folder / f".{name}.{os.getpid()}.tmp"
