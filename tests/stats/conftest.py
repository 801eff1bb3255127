"""Tables of scores for the tests of statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.table import Table


@pytest.fixture(scope="session")
def metric_table() -> Callable[..., Table]:
    """Return a function that builds a table of values by column and system. None is a text without a score."""

    def make(values: dict[str, dict[str, list[float | None]]], **fields: Any) -> Table:
        columns = tuple(Column(name, "metric", Signature(name), **fields) for name in values)
        systems = {system: len(row) for column in values.values() for system, row in column.items()}
        samples = tuple(
            Sample(f"i{k}", system, "text") for system, n in systems.items() for k in range(n)
        )
        scores = tuple(
            Score(f"i{k}", system, column, value, Provenance("metric"))
            for column, rows in values.items()
            for system, row in rows.items()
            for k, value in enumerate(row)
            if value is not None
        )
        return Table(samples, columns, scores)

    return make
