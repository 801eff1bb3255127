"""Scores side by side: the table that statistics and reports read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING

from judge.core.records import Column, Failure, Sample, Score
from judge.table.files import (
    FIELDS,
    FRAME_TYPES,
    SAMPLES,
    SCORES,
    read_samples,
    read_scores,
    row_to_cells,
    samples_file,
    scores_file,
    store,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


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

    def _place(self, row: Score | Failure) -> tuple[int, int, int]:
        samples, columns = self._places
        place, rival = (samples.get((row.item, name), len(samples)) for name in (row.system, row.rival))
        return place, columns.get(row.column, len(columns)), rival

    def rows(self) -> Iterator[Score | Failure]:
        """Scores and failures together, in table order."""
        return merge(self.scores, self.failures, key=self._place)

    def matrix(self, column: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Values of one column, systems × items; NaN masks what has no score (failed, not asked, no such text).

        Comparisons are left out: they are about two texts.
        """
        import numpy as np

        down = {name: place for place, name in enumerate(self.systems)}
        across = {name: place for place, name in enumerate(self.items)}
        values = np.full((len(down), len(across)), np.nan)
        for score in self.column_scores(column):
            if score.system in down and score.item in across and not score.rival:
                values[down[score.system], across[score.item]] = score.value
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
        found: dict[str, list[Score]] = {}
        for score in self.scores:
            found.setdefault(score.column, []).append(score)
        return found

    def to_frame(self, wide: bool = False) -> pd.DataFrame:
        """The long table of `scores.parquet`, or, `wide`, one row per item and system with one column per score column.

        Wide comparisons have a row per item, system shown first and rival shown second.
        A failure's value is null; the long table says in `error`, `stage` and `message` what went wrong.
        """
        import pandas as pd

        if wide:
            found: dict[tuple[str, ...], float] = {}
            keys: list[tuple[str, ...]] = [(s.item, s.system) for s in self.samples]
            names = ["item", "system"]
            if any(row.rival for row in self.rows()):
                keys = list(dict.fromkeys((row.item, row.system, row.rival) for row in self.rows()))
                names = ["item", "system", "rival"]
            for s in self.scores:
                found[(*(s.item, s.system, s.rival)[: len(names)], s.column)] = s.value
            frame = pd.DataFrame(keys, columns=names)
            for column in self.columns:
                frame[column.name] = pd.Series([found.get((*key, column.name)) for key in keys], dtype="float64")
            return frame
        values = (
            zip(*[row_to_cells(row) for row in self.rows()], strict=True)
            if self.scores or self.failures
            else [()] * len(FIELDS)
        )
        return pd.DataFrame(
            {
                name: pd.Series(list(cells), dtype=FRAME_TYPES[kind])
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
