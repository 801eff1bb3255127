"""Tables of scores in other forms than one row per text and one column per criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from judge.core.errors import DataError
from judge.core.format import text_name
from judge.core.messages import command
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample
from judge.data.rows import RawRow, is_missing, rows

CRITERION = "criterion"
"""The column with a score's criterion, in a table with one row per score."""
_RATINGS = ("human", "rating")
"""Columns with a person's rating, in a table with one row per score."""
_TEXT = ("item", "system", "generation")
"""The columns that tell one text from another."""


class ScoreTable(NamedTuple):
    """Rows with one column per criterion, and the criteria in the order of their first score."""

    rows: list[RawRow]
    criteria: list[str]


def merge_criteria(
    data: Any,
    score: str,
    *,
    mapping: Mapping[str, str | Sequence[str]],
) -> ScoreTable | None:
    """Return one row per text from a table with one row per text and criterion.

    `score` is the column of the scores. A column `human` or `rating` there is about the row's
    criterion, too. A column whose values differ between the criteria of a text, such as a reason,
    becomes `CRITERION.COLUMN`. None if the data has no column of criteria. Raises DataError for two
    scores of one text and criterion.
    """
    mapped = mapping.get(CRITERION, CRITERION)
    score_rows = _rows_with_criteria(data, mapped)
    if not score_rows:
        return None
    criterion_column = str(mapped)
    text_columns = [str(mapping.get(field, field)) for field in _TEXT]
    for row in score_rows:
        _check_item(row, text_columns[0])
    criteria: dict[str, None] = {}
    rows_by_text: dict[tuple[Any, ...], dict[str, RawRow]] = {}
    for row in score_rows:
        criterion = _criterion_of(row, criterion_column, score)
        criteria[criterion] = None
        key = tuple(row.cells.get(column) for column in text_columns)
        row_by_criterion = rows_by_text.setdefault(key, {})
        if criterion in row_by_criterion:
            item, system, *_ = key
            text = text_name(str(item), str(system))
            first_location = row_by_criterion[criterion].where
            raise DataError(
                f"{row.where}: {text} already has a score for {criterion}, at {first_location}"
            )
        row_by_criterion[criterion] = row
    merged = [
        _merged_row(row_by_criterion, criterion_column, score)
        for row_by_criterion in rows_by_text.values()
    ]
    return ScoreTable(merged, list(criteria))


def _rows_with_criteria(
    data: Any, criterion_column: str | Sequence[str]
) -> list[RawRow]:
    """Return the rows, none if the first one has no such column. Raises DataError for pairs."""
    score_rows: list[RawRow] = []
    for row in rows(data):
        # Nobody gives a Sample several criteria in rows.
        if isinstance(row, Sample):
            return []
        _refuse_pairs(row)
        if not score_rows:
            is_one_column = isinstance(criterion_column, str)
            if not is_one_column or criterion_column not in row.cells:
                return []
        score_rows.append(row)
    return score_rows


def _check_item(row: RawRow, item_column: str) -> None:
    """Raise DataError for a row without an item."""
    if is_missing(row.cells.get(item_column), row.flat):
        columns = ", ".join(row.cells)
        raise DataError(
            f"{row.where}: no item in the column {item_column}, which a table with a row per "
            f"score needs (columns: {columns})"
        )


def _refuse_pairs(row: RawRow) -> None:
    """Raise DataError for a row that compares two texts."""
    if "first" in row.cells and "second" in row.cells:
        rank = command("rank")
        raise DataError(
            f"{row.where}: the columns first and second compare two texts, which {rank} does"
        )


def _criterion_of(row: RawRow, column: str, score: str) -> str:
    if score not in row.cells:
        problem = unknown_name_message("column", score, list(row.cells))
        raise DataError(f"{row.where}: {problem}")
    criterion = row.cells.get(column)
    if is_missing(criterion, row.flat) or not str(criterion).strip():
        raise DataError(f"{row.where}: no criterion in the column {column}")
    return str(criterion).strip()


def _merged_row(
    row_by_criterion: Mapping[str, RawRow],
    criterion_column: str,
    score: str,
) -> RawRow:
    """Return the row of one text, with a column for each criterion."""
    rows_of_text = list(row_by_criterion.values())
    columns: dict[str, None] = {}
    for row in rows_of_text:
        columns |= dict.fromkeys(row.cells)
    cells: dict[str, Any] = {}
    for column in columns:
        if column in (criterion_column, score, *_RATINGS):
            continue
        values = [row.cells.get(column) for row in rows_of_text]
        if all(value == values[0] for value in values):
            cells[column] = values[0]
            continue
        for criterion, value in zip(row_by_criterion, values, strict=True):
            cells[f"{criterion}.{column}"] = value
    for criterion, row in row_by_criterion.items():
        cells[criterion] = row.cells.get(score)
        for rating_column in _RATINGS:
            rating = row.cells.get(rating_column)
            if not is_missing(rating, row.flat):
                cells[f"human.{criterion}"] = rating
    return rows_of_text[0]._replace(cells=cells)


def stack_systems(
    data: Any,
    systems: Sequence[str],
    score: str,
    *,
    mapping: Mapping[str, str | Sequence[str]],
) -> list[RawRow] | None:
    """Return one row per text from a table with a column of scores for each system.

    `score` is the name for the scores. None if the data has a column of this name, or a mapping
    names one, because the systems' columns then hold texts.
    """
    if score in mapping:
        return None
    stacked: list[RawRow] = []
    for row in rows(data):
        if isinstance(row, Sample) or score in row.cells:
            return None
        shared = {
            column: cell for column, cell in row.cells.items() if column not in systems
        }
        for system in systems:
            if system not in row.cells:
                problem = unknown_name_message("column", system, list(row.cells))
                raise DataError(f"{row.where}: {problem}")
            cells = {**shared, "system": system, score: row.cells[system]}
            stacked.append(row._replace(cells=cells))
    return stacked
