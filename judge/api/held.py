"""A column that is held against people's ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge.records import Column, Failure, Sample, Score
from judge.stats.resample import Floats
from judge.table import Table

Values = Mapping[tuple[str, str], float]
"""By item and system."""


@dataclass(frozen=True, slots=True)
class Held:
    """A judge's column or a floor: of one criterion, or, where that is empty, of any. A judge's has its `scale`."""

    name: str
    signature: str
    values: Values
    criterion: str = ""
    scale: Column | None = None


def taken(column: Column, table: Table, name: str) -> Held:
    """A column of a run, under a name."""
    return measured(column, table.of(column.name), name)


def measured(column: Column, rows: Iterable[Score | Failure], name: str) -> Held:
    """A column from its rows among others."""
    values = {(r.item, r.system): r.value for r in rows if isinstance(r, Score) and r.column == column.name}
    scale = column if column.kind == "criterion" else None
    return Held(name, column.signature, values, column.criterion, scale)


def matrix(samples: Sequence[Sample], values: Mapping[tuple[str, str], float | None]) -> Floats:
    """The values of these samples, items × systems in the order of appearance, NaN for what there is not."""
    down = {item: place for place, item in enumerate(dict.fromkeys(s.item for s in samples))}
    across = {system: place for place, system in enumerate(dict.fromkeys(s.system for s in samples))}
    found = np.full((len(down), len(across)), np.nan)
    for sample in samples:
        value = values.get((sample.item, sample.system))
        found[down[sample.item], across[sample.system]] = np.nan if value is None else value
    return found
