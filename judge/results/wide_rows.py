"""A row for each text with all its scores, for `--wide`, the page and `to_frame(wide=True)`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge.core.records import Failure, Score
from judge.stats.derived_columns import OVERALL, overall
from judge.table import Table

if TYPE_CHECKING:
    import pandas as pd

_FIELDS = ("item", "system", "opponent", "source", "output")
_WORDS = ("reason", "quote")
"""The texts of a score that a wide row has."""


def wide_rows(table: Table) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the keys, and a row per item and system.

    A row has the texts, the overall score, all scores with their reasons, the means of people's
    ratings, what failed, and the data's own columns.
    """
    word_keys = _word_keys(table)
    rating_keys = _rating_keys(table)
    sample_fields = ["item", "system", "output"]
    if any(sample.source for sample in table.samples):
        sample_fields.insert(2, "source")
    score_keys = _score_keys(table)
    weighted = overall(table)
    overall_scores = weighted.table.scores if weighted else ()
    overall_keys = [OVERALL] if weighted else []
    empty_cells = dict.fromkeys(
        [*overall_keys, *score_keys.values(), *word_keys, *rating_keys.values(), "failures"]
    )
    keys = (*sample_fields, *empty_cells)
    # A column of the data that has the name of another key gets a new heading.
    own_columns = table.own_columns(keys)
    row_of_text: dict[tuple[str, str], dict[str, Any]] = {}
    for sample in table.samples:
        # Every row has every key, in this order.
        row: dict[str, Any] = {name: getattr(sample, name) for name in sample_fields}
        row |= empty_cells
        row["failures"] = ""
        for criterion, key in rating_keys.items():
            row[key] = sample.human.get(criterion)
        for column_name, heading in own_columns.items():
            row[heading] = sample.extra.get(column_name)
        row_of_text[sample.key] = row
    for score in table.scores:
        # A value of all texts together and a comparison of two texts have no row.
        if score.key in row_of_text and score.column in score_keys and not score.opponent:
            row = row_of_text[score.key]
            row[score_keys[score.column]] = score.value
            _add_words(row, score, word_keys)
    for score in overall_scores:
        row_of_text[score.key][OVERALL] = score.value
    for failure in table.failures:
        # A failure of all texts of a system together has no row.
        if failure.key in row_of_text:
            _add_failure(row_of_text[failure.key], failure)
    return (*keys, *own_columns.values()), list(row_of_text.values())


def wide_frame(table: Table) -> pd.DataFrame:
    """Return the wide rows as a DataFrame; scores and ratings are floats, NaN if they are missing.

    Comparisons have a row per item, system shown first and opponent shown second, with the values
    of the data's own columns that both texts have.
    """
    import pandas as pd

    if table.has_pairs:
        return _frame_of_pairs(table)
    keys, rows = wide_rows(table)
    numbers = {*_score_keys(table).values(), *_rating_keys(table).values()}
    if overall(table):  # otherwise, a column `overall` is one of the data's own
        numbers.add(OVERALL)
    columns = {}
    for key in keys:
        cells = [row[key] for row in rows]
        columns[key] = pd.Series(cells, dtype="float64") if key in numbers else _series(cells)
    return pd.DataFrame(columns)


def _frame_of_pairs(table: Table) -> pd.DataFrame:
    import pandas as pd

    pairs = list(dict.fromkeys((row.item, row.system, row.opponent) for row in table.rows()))
    value_by_cell: dict[tuple[tuple[str, str, str], str], float] = {}
    for score in table.scores:
        value_by_cell[(score.item, score.system, score.opponent), score.column] = score.value
    frame = pd.DataFrame(pairs, columns=["item", "system", "opponent"])
    for column_name, key in _score_keys(table).items():
        cells = [value_by_cell.get((pair, column_name)) for pair in pairs]
        frame[key] = pd.Series(cells, dtype="float64")
    extras = {sample.key: sample.extra for sample in table.samples}
    own_cells: dict[str, list[Any]] = {}
    for column_name, heading in table.own_columns(frame.columns).items():
        own_cells[heading] = []
        for item, *systems in pairs:
            # The opponent of a row that compares nothing is "".
            texts = [extras.get((item, system), {}) for system in systems if system]
            values = [text.get(column_name) for text in texts]
            own_cells[heading].append(_common_value(values))
    return with_own_columns(frame, own_cells)


def with_own_columns(frame: pd.DataFrame, own_cells: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return the frame with columns of the data."""
    import pandas as pd

    columns = {column_name: _series(cells) for column_name, cells in own_cells.items()}
    return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1)


def _series(cells: Sequence[Any]) -> pd.Series[Any]:
    """Return a column of the data: whole numbers stay whole numbers, also beside missing ones."""
    import pandas as pd

    column = pd.Series(cells, dtype="object")
    is_whole = pd.api.types.infer_dtype(column, skipna=True) == "integer"
    if is_whole and column.hasnans:
        # pandas would make them floats.
        return column
    return column.infer_objects()


def _common_value(values: Sequence[Any]) -> Any:
    """Return the value that all have, None if they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def _score_keys(table: Table) -> dict[str, str]:
    """Return the key of each column's scores: its name, or `score.NAME` if that is another key.

    Without the values of all texts of a system together, which belong to no text.
    """
    taken = {*_FIELDS, *_word_keys(table), *_rating_keys(table).values(), "failures"}
    names = [column.name for column in table.columns if column.name not in table.corpus_columns]
    return {name: f"score.{name}" if name in taken else name for name in names}


def _add_words(row: dict[str, Any], score: Score, word_keys: Collection[str]) -> None:
    """Write the reason and the quotation of a score into the row of its text."""
    for word in _WORDS:
        score_key = f"{score.column}_{word}"
        if score_key in word_keys:
            row[score_key] = getattr(score.provenance, word)


def _add_failure(row: dict[str, Any], failure: Failure) -> None:
    """Write the column and the kind of a failure after the others of its text."""
    separator = "; " if row["failures"] else ""
    row["failures"] += f"{separator}{failure.column}: {failure.error}"


def _rating_keys(table: Table) -> dict[str, str]:
    """Return the key of people's ratings, by criterion."""
    rated = dict.fromkeys(criterion for sample in table.samples for criterion in sample.human)
    return {criterion: f"{criterion}_rating" for criterion in rated}


def _word_keys(table: Table) -> dict[str, None]:
    """Return the keys of reasons and quotations, of the criteria that have some."""
    keys: dict[str, None] = {}
    for column in table.columns:
        if column.kind != "criterion":
            continue
        scores = table.column_scores(column.name)
        for word in _WORDS:
            if any(getattr(score.provenance, word) for score in scores):
                keys[f"{column.name}_{word}"] = None
    return keys
