"""Read the preferences that a judge has already given, from a table of pairs.

`judge rank` takes them as its comparisons. A row has the columns item, first and second (the
systems) and one column per criterion with what the judge preferred.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.config import RankConfig
from judge.core.errors import DataError
from judge.core.messages import option
from judge.core.option_values import finite_number
from judge.core.plugins import unknown_name_message
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.data.rows import RawRow, is_missing, rows
from judge.run.given_scores import GivenScores

FIRST = "first"
SECOND = "second"
_RESULTS = {"first": 1.0, "second": 0.0, "tie": 0.5, "draw": 0.5, "equal": 0.5}
"""The result for the first text, by what a table says."""
_NOT_A_RESULT = (
    "write first, second or tie, the name of a system, or a number from 0 to 1"
)


@dataclass(slots=True)
class Preferences:
    """The texts of a table of pairs, and the judge's results.

    `orders` is 2 if the table has pairs in both orders, else 1.
    """

    samples: list[Sample] = field(default_factory=list)
    given_scores: GivenScores = field(default_factory=GivenScores)
    orders: int = 1


def read_preferences(config: RankConfig, data: Any) -> Preferences:
    """Read a table of pairs.

    Raises DataError for a row that does not compare two systems, and for a duplicate pair.
    """
    table = _PairTable(config)
    for row in rows(data):
        if isinstance(row, Sample):
            raise DataError(
                f"{option('judge_columns')}: give rows with item, first and second"
            )
        table.add(row)
    if not table.scores:
        raise DataError("the data has no rows")
    columns = [_column(criterion_name) for criterion_name in config.judge_columns]
    scores_in_data = GivenScores(tuple(columns), tuple(table.scores))
    texts = list(table.samples.values())
    orders = 2 if table.has_both_orders() else 1
    return Preferences(samples=texts, given_scores=scores_in_data, orders=orders)


def _column(criterion: str) -> Column:
    signature = Signature.external(criterion, lower_is_better=False)
    return Column(
        criterion,
        "criterion",
        signature,
        low=0.0,
        high=1.0,
        labels=("first", "second", "tie"),
        values=(1.0, 0.0, 0.5),
        criterion=criterion,
    )


class _PairTable:
    """The rows of a table of pairs that were read so far."""

    def __init__(self, config: RankConfig) -> None:
        self.samples: dict[tuple[str, str], Sample] = {}
        self.scores: list[Score | Failure] = []
        self._criteria = tuple(config.judge_columns)
        self._mapping = config.map
        self._where_by_pair: dict[tuple[str, str, str], str] = {}

    def add(self, row: RawRow) -> None:
        """Read a row."""
        item = self._name("item", row)
        first_system = self._name(FIRST, row)
        second_system = self._name(SECOND, row)
        if first_system == second_system:
            raise DataError(f"{row.where}: first and second are both {first_system}")
        pair = (item, first_system, second_system)
        if pair in self._where_by_pair:
            raise DataError(
                f"{row.where}: {first_system} and {second_system} were already compared on "
                f"item {item} in this order, at {self._where_by_pair[pair]}"
            )
        self._where_by_pair[pair] = row.where
        own_columns = dict(self._own_columns(row.cells))
        for system in (first_system, second_system):
            # The table has no texts, only the names of those that were compared.
            sample = Sample(item, system, "", extra=own_columns, where=row.where)
            self.samples.setdefault(sample.key, sample)
        for criterion in self._criteria:
            self.scores.append(self._score(row, criterion, pair))

    def has_both_orders(self) -> bool:
        """Return whether every pair was compared in both orders."""
        where_by_pair = self._where_by_pair
        return all(
            (item, second_system, first_system) in where_by_pair
            for item, first_system, second_system in where_by_pair
        )

    def _score(
        self,
        row: RawRow,
        criterion: str,
        pair: tuple[str, str, str],
    ) -> Score | Failure:
        if criterion not in row.cells:
            problem = unknown_name_message("column", criterion, list(row.cells))
            columns_option = option("judge_columns")
            raise DataError(f"{row.where}: {columns_option} {criterion}: {problem}")
        item, first_system, second_system = pair
        cell = row.cells[criterion]
        if is_missing(cell, row.flat):
            message = f"{row.where} has no value in the column {criterion}"
            return Failure(
                item=item,
                system=first_system,
                column=criterion,
                stage="metric",
                error="NoScore",
                message=message,
                opponent=second_system,
            )
        value = _result(cell, first_system, second_system)
        if value is None:
            problem = f"{criterion} is {cell!r:.40}"
            raise DataError(f"{row.where}: {problem}; {_NOT_A_RESULT}")
        return Score(
            item=item,
            system=first_system,
            column=criterion,
            value=value,
            provenance=Provenance("metric", note="from the data"),
            opponent=second_system,
        )

    def _name(self, field_name: str, row: RawRow) -> str:
        column = self._column_of(field_name)
        cell = row.cells.get(column)
        # pandas makes whole numbers of a column with a gap floats: 7.0 is the item 7.
        if isinstance(cell, float) and cell.is_integer():
            cell = int(cell)
        if is_missing(cell, row.flat) or not str(cell).strip():
            known_columns = ", ".join(row.cells)
            raise DataError(
                f"{row.where}: no {field_name} in the column {column}; each row needs an item and "
                f"its two systems, first and second (columns: {known_columns})"
            )
        return str(cell).strip()

    def _column_of(self, field_name: str) -> str:
        column = self._mapping.get(field_name, field_name)
        return column if isinstance(column, str) else field_name

    def _own_columns(self, cells: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the columns about the item, which both texts have."""
        used = {self._column_of(field_name) for field_name in ("item", FIRST, SECOND)}
        for column_name, value in cells.items():
            if column_name not in used and column_name not in self._criteria:
                yield column_name, value


def _result(cell: Any, first_system: str, second_system: str) -> float | None:
    """Return the result for the first text, None if the cell says none."""
    text = str(cell).strip()
    # Names before words: a system may be called `second`.
    if text == first_system:
        return 1.0
    if text == second_system:
        return 0.0
    if text.lower() in _RESULTS:
        return _RESULTS[text.lower()]
    value = finite_number(cell)
    return value if value is not None and 0 <= value <= 1 else None
