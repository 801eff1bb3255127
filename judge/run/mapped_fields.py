"""Refuse fields of `map` that a run does not have, so that a typo is not paid for."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from judge.core.errors import ConfigError
from judge.core.format import first_names
from judge.core.messages import option
from judge.core.records import Criterion
from judge.data import samples
from judge.data.column_names import PASSAGE_COLUMNS, REQUEST_COLUMNS
from judge.data.conversations import MESSAGES
from judge.data.ratings import base_name

# What a message lists: `human` has the name `rating.NAME` in `map`.
_NAMED_FIELDS = (
    *(field_name for field_name in samples.FIELDS if field_name != "human"),
    f"{samples.RATING}.NAME",
)


def require_known_fields(
    mapping: Mapping[str, Any],
    criteria: Sequence[Criterion],
    own_columns: Iterable[str] = (),
) -> None:
    """Raise ConfigError for unknown fields of `map`.

    Such a field is none of judge's own and read by no criterion, or it has ratings by a criterion
    that the run lacks. `own_columns` are names of columns of the data with scores. A run without
    criteria may have ratings of any name. A run of some criteria may have the ratings of others,
    too: they are no typo if other ratings are the run's, and none of its criteria is like them.
    """
    own_columns = list(own_columns)
    rating_names = {}
    for field_name, column in mapping.items():
        kind, _, rating_name = field_name.partition(".")
        renaming = option("map", {field_name: column})
        if kind != samples.RATING:
            _require_known_field(field_name, renaming, criteria, own_columns)
        elif rating_name:
            rating_names[rating_name] = renaming
    if criteria:
        criterion_names = [criterion.name for criterion in criteria]
        base_names = map(base_name, criterion_names)
        rated_names = list(dict.fromkeys([*criterion_names, *base_names, *own_columns]))
        _require_rated_criteria(rating_names, rated_names)


def _require_known_field(
    field_name: str,
    renaming: str,
    criteria: Sequence[Criterion],
    own_columns: Collection[str],
) -> None:
    read = {
        variable_name for criterion in criteria for variable_name in criterion.needs
    }
    read.update(own_columns)
    # Names of columns that the data may have anyway.
    quiet_names = {MESSAGES, "reference", *REQUEST_COLUMNS, *PASSAGE_COLUMNS}
    if field_name in samples.FIELDS or field_name in read or field_name in quiet_names:
        return
    fields = [*_NAMED_FIELDS, *sorted(read - {*_NAMED_FIELDS})]
    suggestion = _suggestion(field_name, fields)
    all_fields = first_names(fields, len(fields))
    raise ConfigError(
        f"{renaming}: judge has no field {field_name}, and no criterion reads it{suggestion} "
        f"(fields: {all_fields})"
    )


def _require_rated_criteria(
    rating_names: Mapping[str, str], rated_names: Sequence[str]
) -> None:
    """Raise ConfigError if ratings name no criterion of the run, and are not of another run's.

    `rating_names` has what a message calls each of them.
    """
    unrated_names = [name for name in rated_names if name not in rating_names]
    some_are_known = not rating_names.keys().isdisjoint(rated_names)
    for rating_name, renaming in rating_names.items():
        is_typo = _suggestion(rating_name, unrated_names) != ""
        if rating_name in rated_names or (some_are_known and not is_typo):
            continue
        suggestion = _suggestion(rating_name, rated_names)
        criteria = first_names(rated_names)
        raise ConfigError(
            f"{renaming}: the run has no criterion {rating_name}{suggestion} (criteria: "
            f"{criteria}); name one of them, or leave this out"
        )


def _suggestion(name: str, known_names: Collection[str]) -> str:
    similar = difflib.get_close_matches(name, known_names, n=1, cutoff=0.6)
    return f"; did you mean {similar[0]}?" if similar else ""
