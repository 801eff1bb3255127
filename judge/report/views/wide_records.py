"""A row for each text with all its scores, for `--wide` and the page."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from judge.core.records import Score
from judge.core.stored_records import json_cell
from judge.results.result import Result

_WORDS = ("reason", "quote")
"""The texts of a score that a wide row has."""


def wide_records(result: Result) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the keys, and a row per item and system with all scores, their reasons and failures.

    A row ends with the data's own columns; a value that is no text or number is JSON.
    """
    stored = result.table
    word_keys = _word_keys(result)
    # Every row has every key, in this order.
    names_of_columns = [column.name for column in stored.columns]
    empty: dict[str, Any] = dict.fromkeys(names_of_columns)
    empty |= dict.fromkeys(word_keys)
    empty["failures"] = ""
    sample_fields = ["item", "system", "output"]
    if any(sample.source for sample in stored.samples):
        sample_fields.insert(2, "source")
    row_of_text: dict[tuple[str, str], dict[str, Any]] = {}
    for sample in stored.samples:
        fields = {field_name: getattr(sample, field_name) for field_name in sample_fields}
        row_of_text[sample.key] = fields | empty
    for score in stored.scores:
        row = row_of_text.get(score.key)
        # A value of all texts together has no row, and neither has a comparison of two texts.
        if row is not None and not score.opponent:
            _add_score(row, score, word_keys)
    for failure in stored.failures:
        row = row_of_text.get(failure.key)
        # None for a failure of all texts of a system together.
        if row is not None:
            separator = "; " if row["failures"] else ""
            row["failures"] += f"{separator}{failure.column}: {failure.error}"
    keys = (*sample_fields, *empty)
    # A column of the data that has the name of another key gets a new heading.
    own_columns = stored.own_columns(keys)
    for sample in stored.samples:
        row = row_of_text[sample.key]
        for column_name, heading in own_columns.items():
            cell = sample.extra.get(column_name)
            is_nested = isinstance(cell, list | tuple | Mapping)
            row[heading] = json_cell(cell) if is_nested else cell
    all_keys = (*keys, *own_columns.values())
    return all_keys, list(row_of_text.values())


def _add_score(row: dict[str, Any], score: Score, word_keys: Collection[str]) -> None:
    """Write a score and its reason and quotation into the row of its text."""
    row[score.column] = score.value
    for word in _WORDS:
        score_key = f"{score.column}_{word}"
        if score_key in word_keys:
            row[score_key] = getattr(score.provenance, word)


def _word_keys(result: Result) -> dict[str, None]:
    """Return the keys of reasons and quotations, of the criteria that have some."""
    keys: dict[str, None] = {}
    for column in result.table.columns:
        if column.kind != "criterion":
            continue
        scores = result.table.column_scores(column.name)
        for word in _WORDS:
            if any(getattr(score.provenance, word) for score in scores):
                keys[f"{column.name}_{word}"] = None
    return keys
