"""A row for each text with all its scores, for `--wide` and the page."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from judge.core.records import Failure, Score
from judge.table import Table

_WORDS = ("reason", "quote")
"""The texts of a score that a wide row has."""


def wide_rows(table: Table) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the keys, and a row per item and system with all scores, their reasons and failures.

    A row ends with the data's own columns.
    """
    word_keys = _word_keys(table)
    sample_fields = ["item", "system", "output"]
    if any(sample.source for sample in table.samples):
        sample_fields.insert(2, "source")
    column_names = [column.name for column in table.columns]
    # A column may have the name of another key, which is then listed once.
    score_keys = dict.fromkeys([*column_names, *word_keys, "failures"])
    keys = (*sample_fields, *score_keys)
    # A column of the data that has the name of another key gets a new heading.
    own_columns = table.own_columns(keys)
    row_of_text: dict[tuple[str, str], dict[str, Any]] = {}
    for sample in table.samples:
        # Every row has every key, in this order.
        row: dict[str, Any] = {name: getattr(sample, name) for name in sample_fields}
        row |= score_keys
        row["failures"] = ""
        for column_name, heading in own_columns.items():
            row[heading] = sample.extra.get(column_name)
        row_of_text[sample.key] = row
    for score in table.scores:
        # A value of all texts together has no row, and neither has a comparison of two texts.
        if score.key in row_of_text and not score.opponent:
            _add_score(row_of_text[score.key], score, word_keys)
    for failure in table.failures:
        # A failure of all texts of a system together has no row.
        if failure.key in row_of_text:
            _add_failure(row_of_text[failure.key], failure)
    return (*keys, *own_columns.values()), list(row_of_text.values())


def _add_score(row: dict[str, Any], score: Score, word_keys: Collection[str]) -> None:
    """Write a score and its reason and quotation into the row of its text."""
    row[score.column] = score.value
    for word in _WORDS:
        score_key = f"{score.column}_{word}"
        if score_key in word_keys:
            row[score_key] = getattr(score.provenance, word)


def _add_failure(row: dict[str, Any], failure: Failure) -> None:
    """Write the column and the kind of a failure after the others of its text."""
    separator = "; " if row["failures"] else ""
    row["failures"] += f"{separator}{failure.column}: {failure.error}"


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
