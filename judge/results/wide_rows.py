"""A row for each text with all its scores, for `--wide`, the page and `to_frame(wide=True)`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from judge.core.records import Failure, Sample, Score
from judge.stats.derived_columns import OVERALL, overall
from judge.table import Table, Text

if TYPE_CHECKING:
    import pandas as pd

_FIELDS = ("item", "system", "opponent", "source", "output")


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of wide rows: a text's fields, scores by column, reasons and quotations, ratings by
    criterion, and the data's own columns by name.

    The overall score, if there is one, is the first of the scores. `in_order` has all keys in the
    order of a row.
    """

    fields: Sequence[str]
    scores: Mapping[str, str]
    words: Collection[str]
    ratings: Mapping[str, str]
    own_columns: Mapping[str, str]
    in_order: tuple[str, ...]

    @classmethod
    def of(cls, table: Table) -> _Keys:
        """Return the keys of a table's rows."""
        fields = ["item", "system", "output"]
        if any(sample.source for sample in table.samples):
            fields.insert(2, "source")
        scores = _score_keys(table)
        if overall(table) is not None:
            scores = {OVERALL: OVERALL, **scores}
        words = _word_keys(table)
        ratings = _rating_keys(table)
        keys = [*fields, *scores.values(), *words, *ratings.values(), "failures"]
        # A column of the data that has the name of another key gets a new heading.
        own_columns = table.own_columns(keys)
        keys += own_columns.values()
        return cls(
            fields,
            scores,
            words=frozenset(words),
            ratings=ratings,
            own_columns=own_columns,
            # Columns called `item` and `score.item` share a key.
            in_order=tuple(dict.fromkeys(keys)),
        )

    def row_without_scores(self, sample: Sample) -> dict[str, Any]:
        """Return the row of a text, which has every key."""
        row: dict[str, Any] = dict.fromkeys(self.in_order)
        row["failures"] = ""
        for field_name in self.fields:
            row[field_name] = getattr(sample, field_name)
        for criterion, key in self.ratings.items():
            row[key] = sample.human.get(criterion)
        for column_name, heading in self.own_columns.items():
            row[heading] = sample.extra.get(column_name)
        return row


def wide_rows(table: Table) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the keys, and a row per item and system.

    A row has the texts, the overall score, all scores with their reasons, the means of people's
    ratings, what failed, and the data's own columns.
    """
    keys = _Keys.of(table)
    return keys.in_order, _rows(table, keys)


def _rows(table: Table, keys: _Keys) -> list[dict[str, Any]]:
    """Return a row per item and system, in the order of the data."""
    row_of_text: dict[Text, dict[str, Any]] = {}
    for sample in table.samples:
        row_of_text[sample.key] = keys.row_without_scores(sample)
    weighted = overall(table)
    overall_scores = weighted.table.scores if weighted is not None else ()
    for score in chain(table.scores, overall_scores):
        # A value of all texts together and a comparison of two texts have no row.
        has_row = score.key in row_of_text and not score.opponent
        if has_row and score.column in keys.scores:
            _add_score(row_of_text[score.key], score, keys)
    for failure in table.failures:
        # A failure of all texts of a system together has no row.
        if failure.key in row_of_text:
            _add_failure(row_of_text[failure.key], failure)
    return list(row_of_text.values())


def wide_frame(table: Table) -> pd.DataFrame:
    """Return the wide rows as a DataFrame; scores and ratings are floats, NaN if they are missing.

    Comparisons have a row per item, system shown first and opponent shown second, with the values
    of the data's own columns that both texts have.
    """
    import pandas as pd

    if table.has_pairs:
        return _frame_of_pairs(table)
    keys = _Keys.of(table)
    rows = _rows(table, keys)
    number_keys = {*keys.scores.values(), *keys.ratings.values()}
    columns: dict[str, pd.Series[Any]] = {}
    for key in keys.in_order:
        cells = [row[key] for row in rows]
        if key in number_keys:
            columns[key] = pd.Series(cells, dtype="float64")
        else:
            columns[key] = _series(cells)
    return pd.DataFrame(columns)


_Pair = tuple[str, str, str]
"""Item, system shown first and opponent shown second; "" if a row compares nothing."""


def _frame_of_pairs(table: Table) -> pd.DataFrame:
    """Return the frame of a table of comparisons, see `wide_frame`."""
    import pandas as pd

    all_pairs = ((row.item, row.system, row.opponent) for row in table.rows())
    pairs: list[_Pair] = list(dict.fromkeys(all_pairs))
    values_by_column: dict[str, dict[_Pair, float]] = {}
    for score in table.scores:
        value_by_pair = values_by_column.setdefault(score.column, {})
        value_by_pair[score.item, score.system, score.opponent] = score.value
    frame = pd.DataFrame(pairs, columns=["item", "system", "opponent"])
    for column_name, key in _score_keys(table).items():
        value_by_pair = values_by_column.get(column_name, {})
        cells = [value_by_pair.get(pair) for pair in pairs]
        frame[key] = pd.Series(cells, dtype="float64")
    extras = {sample.key: sample.extra for sample in table.samples}
    own_cells: dict[str, list[Any]] = {}
    for column_name, heading in table.own_columns(frame.columns).items():
        cells_of_column: list[Any] = []
        for item, system, opponent in pairs:
            systems = [system, opponent] if opponent else [system]
            extras_of_pair = [extras.get((item, name), {}) for name in systems]
            values = [extra.get(column_name) for extra in extras_of_pair]
            cells_of_column.append(_common_value(values))
        own_cells[heading] = cells_of_column
    return with_own_columns(frame, own_cells)


def with_own_columns(
    frame: pd.DataFrame, own_cells: Mapping[str, Sequence[Any]]
) -> pd.DataFrame:
    """Return the frame with columns of the data."""
    import pandas as pd

    columns = {column_name: _series(cells) for column_name, cells in own_cells.items()}
    own_columns = pd.DataFrame(columns, index=frame.index)
    return pd.concat([frame, own_columns], axis=1)


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
    first_value = values[0]
    if any(value != first_value for value in values):
        return None
    return first_value


def _score_keys(table: Table) -> dict[str, str]:
    """Return the key of each column's scores: its name, or `score.NAME` if that is another key.

    Without the values of all texts of a system together, which belong to no text.
    """
    taken = {*_FIELDS, "failures"}
    taken.update(_word_keys(table))
    taken.update(_rating_keys(table).values())
    names = [
        column.name
        for column in table.columns
        if column.name not in table.corpus_columns
    ]
    return {name: f"score.{name}" if name in taken else name for name in names}


def _add_score(row: dict[str, Any], score: Score, keys: _Keys) -> None:
    """Write a score, its reason and its quotation into the row of its text."""
    row[keys.scores[score.column]] = score.value
    reason_key = f"{score.column}_reason"
    quote_key = f"{score.column}_quote"
    if reason_key in keys.words:
        row[reason_key] = score.provenance.reason
    if quote_key in keys.words:
        row[quote_key] = score.provenance.quote


def _add_failure(row: dict[str, Any], failure: Failure) -> None:
    """Write the column and the kind of a failure after the others of its text."""
    separator = "; " if row["failures"] else ""
    row["failures"] += f"{separator}{failure.column}: {failure.error}"


def _rating_keys(table: Table) -> dict[str, str]:
    """Return the key of people's ratings, by criterion."""
    rated = dict.fromkeys(
        criterion for sample in table.samples for criterion in sample.human
    )
    return {criterion: f"{criterion}_rating" for criterion in rated}


def _word_keys(table: Table) -> list[str]:
    """Return the keys of reasons and quotations, of the criteria that have some."""
    keys: list[str] = []
    for column in table.columns:
        if column.kind != "criterion":
            continue
        provenances = [score.provenance for score in table.column_scores(column.name)]
        if any(provenance.reason for provenance in provenances):
            keys.append(f"{column.name}_reason")
        if any(provenance.quote for provenance in provenances):
            keys.append(f"{column.name}_quote")
    return keys
