"""Turn rows into `Sample`s, and keep those that a filter selects; errors name file and line.

Long form has one row per item and system, wide form one column per system. Files are read row by row, and shards one
after the other.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any

from judge.core.errors import DataError
from judge.core.format import UNNAMED_SYSTEM, text_name
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import ALIASES, Sample
from judge.data.cells import NoValue, packed_texts, packed_value
from judge.data.rows import (
    RawRow,
    content_hash,
    dataset_name,
    files,
    is_data,
    is_missing,
    parsed,
    rows,
    type_name,
)

if TYPE_CHECKING:
    import pandas as pd

Value = str | int | float | bool
Values = Mapping[str, Value | Sequence[Value]]
"""For each column the value that a row must have, or the values of which it must have one."""

Mapped = Mapping[str, str | Sequence[str]]
"""The data's column for each of ours; of people's ratings also several, one for each rater."""
_MOST_NAMED, _MOST_REMEMBERED = 10, 1_000  # values of a column: named, and remembered


class RowFilter:
    """A filter of samples, which remembers the columns and values that it sees.

    The columns of `conditions` have their names in the data or, if `mapping` renames them, ours.
    """

    def __init__(self, conditions: Values, mapping: Mapped) -> None:
        self._conditions, self._wanted = conditions, _values_by_column(conditions)
        self._renamed = {old: new for new, old in mapping.items() if isinstance(old, str)}
        self._columns: dict[str, None] = {}
        self._seen = {name: Counter[str]() for name in self._wanted}
        self._matched = False

    def __call__(self, sample: Sample) -> bool:
        """Return whether the sample meets all conditions."""
        own = {"item": sample.source_item, "system": sample.system}
        self._columns.update(dict.fromkeys((*own, *sample.extra)))
        fits = True
        for name, wanted in self._wanted.items():
            column = name if name in sample.extra else self._renamed.get(name, name)
            value, seen = _text(own.get(column, sample.extra.get(column))), self._seen[name]
            if value is not None and (value in seen or len(seen) < _MOST_REMEMBERED):
                seen[value] += 1
            fits &= value in wanted
        self._matched |= fits
        return fits

    def check(self) -> None:
        """Raise DataError for a column or a value that no row had, or if no row met all conditions."""
        for name, wanted in self._wanted.items() if self._columns else ():
            if not (seen := self._seen[name]):
                problem = unknown_name_message("column", name, list(self._columns))
                raise DataError(f"{option('where', {name: wanted[0]})}: {problem}")
            if absent := [value for value in wanted if value not in seen]:
                there = ", ".join(
                    f"{value!r} ({count:,})" for value, count in seen.most_common(_MOST_NAMED)
                )
                more = f" and {len(seen) - _MOST_NAMED:,} more" if len(seen) > _MOST_NAMED else ""
                raise DataError(
                    f"{option('where', {name: absent[0]})}: no row has it; {name} is {there}{more}"
                )
        if self._columns and not self._matched:
            raise DataError(
                f"{option('where')} {describe_filter(self._conditions)}: each is there, and no row has all of them"
            )


def filter_rows(samples: Iterable[Sample], conditions: Values, mapping: Mapped) -> list[Sample]:
    """Return the samples that meet the conditions. Raises DataError as `RowFilter.check` does."""
    where = RowFilter(conditions, mapping)
    matching = [sample for sample in samples if where(sample)]
    where.check()
    return matching


def describe_filter(conditions: Values) -> str:
    """Return the conditions in words: `lang=ja, channel=email or phone`."""
    return ", ".join(
        f"{name}={' or '.join(values)}" for name, values in _values_by_column(conditions).items()
    )


def _values_by_column(conditions: Values) -> dict[str, list[str]]:
    """Return the values as text, by column."""
    value_lists = {
        name: [value] if isinstance(value, Value) else list(value)
        for name, value in conditions.items()
    }
    return {
        name: [text for value in values if (text := _text(value)) is not None]
        for name, values in value_lists.items()
    }


def _text(value: Any) -> str | None:
    """Return a cell as text, or None if it is empty or not a single value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) else None


__all__ = [
    "FIELDS", "Mapped", "Values", "content_hash", "dataset_name", "describe_filter", "files", "filter_rows", "is_data",
    "load", "stream",
]  # fmt: skip

FIELDS = ("item", "system", "output", "source", "references", "human", "generation")
RATING = "rating"
"""What people's ratings are called in a mapping: `rating.coherence`, or `rating` for ratings without a criterion."""
_RATED_CELL = "human"
"""What a cell of people's ratings is called in a row: `human.coherence`, or `human` with one or more ratings in it."""
SYSTEM = "{system}"
"""Stands for the system's name in a mapped column of wide data."""
_GUESSES = {
    "output": (
        "summary",
        "prediction",
        "response",
        "answer",
        "generated",
        "hypothesis",
        "candidate",
        "text",
    ),
    "item": ("doc_id", "item_id", "document_id", "example_id"),
}


def load(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | RawRow | Sample],
    *,
    mapping: Mapping[str, str | Sequence[str]] = {},
    systems: Sequence[str] = (),
    where: Values | None = None,
) -> list[Sample]:
    """Return the samples of a file (.jsonl, .ndjson, .json, .csv, .tsv, .xlsx, .parquet), a DataFrame or an iterable.

    The arguments are those of `judge.load_samples`, where `mapping` is called `map`.

    Raises DataError, with file and line, for invalid data and for two rows of one item and system.
    """
    return list(stream(data, mapping=mapping, systems=systems, where=where))


def stream(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | RawRow | Sample],
    *,
    mapping: Mapping[str, str | Sequence[str]] = {},
    systems: Sequence[str] = (),
    where: Values | None = None,
    scores: Collection[str] = (),
) -> Iterator[Sample]:
    """`load` one sample after the other.

    `scores` are columns that belong to one text, as ratings do.
    """
    if systems and (clash := [field for field in ("output", "system") if field in mapping]):
        raise DataError(
            f"systems names one output column per system, so that {clash[0]!r} cannot be mapped as well"
        )
    mappings: list[Mapped] = [
        {
            new: old.replace(SYSTEM, system)
            if isinstance(old, str)
            else [each.replace(SYSTEM, system) for each in old]
            for new, old in mapping.items()
        }
        for system in systems
    ] or [mapping]
    first: dict[int, str] = {}
    columns: dict[str, None] = {}
    row_filter = RowFilter(where or {}, mapping)
    raters = {
        new.removeprefix(f"{RATING}."): names
        for new, old in mapping.items()
        if not isinstance(old, str) and (names := _rater_names(new.removeprefix(f"{RATING}."), old))
    }
    for number, row in enumerate(rows(data), 1):
        if isinstance(row, Sample):
            samples = [_with_plain_names(row)]
        else:
            columns.update(dict.fromkeys(row.cells))
            samples = _row_samples(row, number, mappings, systems, scores, raters=raters)
        for sample in filter(row_filter, samples):
            place = sample.where or f"row {number}"
            key = hash(sample.key)  # 64 bits in place of names: 10 million rows have no collision
            if key in first:
                other_columns = option("map", {"item": "COLUMN", "system": "COLUMN"})
                raise DataError(
                    f"{place}: {text_name(sample.item, sample.system)} is already at {first[key]}; "
                    f"each pair of item and system may come once ({other_columns} names other columns; a column "
                    "`generation` numbers several outputs)"
                )
            first[key] = place
            yield sample
    row_filter.check()
    name = str(data) if isinstance(data, str | PathLike) else "the data"
    if not first:
        raise DataError(f"{name}: no rows")
    for old in _mapped_columns(mappings):
        if columns and old not in columns:
            raise DataError(f"{name}: {unknown_name_message('column', old, list(columns))}")


# Rows to samples


def _cell_name(field: str) -> str:
    """Return what the cell of a mapping's field is called: `human.coherence` for `rating.coherence`."""
    return _RATED_CELL if field == RATING else _dotted_cell_name(field)


def _dotted_cell_name(column: str) -> str:
    """Return what a data column is called as a cell: only `rating.NAME` differs.

    A column that is just called `rating` may hold anything, such as the stars of a review, and keeps its name.
    """
    _, dot, criterion = column.partition(f"{RATING}.")
    return f"{_RATED_CELL}.{criterion}" if dot and column.startswith(f"{RATING}.") else column


def _with_plain_names(sample: Sample) -> Sample:
    """Return the sample with the names of item and system as every other reader has them: without blanks around."""
    item, system = sample.item.strip(), sample.system.strip()
    return sample if (item, system) == sample.key else replace(sample, item=item, system=system)


def _row_samples(
    row: RawRow,
    number: int,
    mappings: Sequence[Mapped],
    systems: Sequence[str],
    scores: Collection[str],
    *,
    raters: Mapping[str, tuple[str, ...]],
) -> list[Sample]:
    """Return one sample, or in wide form one per system."""
    # A renamed cell is dropped under its old name.
    consumed = {*systems, *mappings[0], *_mapped_columns(mappings)}
    unmapped = {
        _dotted_cell_name(name): value for name, value in row.cells.items() if name not in consumed
    }
    renamed = []
    for mapping in mappings:
        cells = unmapped.copy()
        for new, old in mapping.items():
            field = _cell_name(new)
            if isinstance(old, str):
                cells |= {field: row.cells[old]} if old in row.cells else {}
            elif any(column in row.cells for column in old):
                cells[field] = [row.cells.get(column) for column in old]
        for alias, name in ALIASES.items():
            if alias in cells and _is_meant(alias, name, cells, mapping):
                cells[name] = cells[alias]
        renamed.append(cells)
    _check_complete(row, renamed[0], mappings, systems)
    made = []
    for column, cells in zip(systems or ("output",), renamed, strict=True):
        present = {name: value for name, value in cells.items() if not is_missing(value, row.flat)}
        if len(mappings) > 1:
            _check_own(row, present, mappings, systems, scores)
        output, source = row.cells[column] if systems else cells["output"], present.get("source")
        if is_missing(output):
            raise DataError(
                f"{row.where}: {column} is null: write an empty string if the system wrote nothing"
            )
        for name, text in {column: output, "source": source}.items():
            if text is not None and not isinstance(text, str):
                raise DataError(f"{row.where}: {name} is {type_name(text)}, not text")
        item = _name(cells.get("item", number), "item", row.where)
        system = (
            column.strip()
            if systems
            else _name(cells.get("system", UNNAMED_SYSTEM), "system", row.where)
        )
        cluster = item if "generation" in present else ""
        item = (
            f"{item} ({_name(present['generation'], 'generation', row.where)})" if cluster else item
        )
        human, votes = _human(present, row.where)
        extra = {n: v for n, v in present.items() if n not in FIELDS and not n.startswith("human.")}
        if row.packed and isinstance(single := extra.get("reference"), str):
            extra["reference"] = packed_texts(single) or single
        made.append(
            Sample(
                item, system, output, source, _references(present, row), human, extra, row.where, votes,
                raters={name: names for name, names in raters.items() if name in votes}, cluster=cluster,
            )
        )  # fmt: skip
    return made


def _rater_names(criterion: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the raters whose columns these are, such as anna for `{system}_relevance_anna`.

    Systems and the criterion are left out if distinct names remain.
    """
    words = rf"(?<![^\W_])(?:human|{re.escape(SYSTEM)}|{re.escape(criterion)})(?![^\W_])"
    names = tuple(re.sub(words, "", column).strip("_.- ") for column in columns)
    return names if all(names) and len({*names}) == len(names) else tuple(columns)


def _is_meant(alias: str, name: str, cells: Mapping[str, Any], mapping: Mapped) -> bool:
    """Return whether a column fills a field of another name: if the mapping says so, or if nothing else does."""
    if alias in mapping:
        return name not in mapping
    return name not in cells and not (name == "references" and "reference" in cells)


def guessed_columns(sample: Sample, mapping: Mapped) -> dict[str, str]:
    """Return the fields of a sample that columns of other names filled without a mapping, by column."""
    guessed: dict[str, str] = {}
    for alias, name in ALIASES.items():
        if alias in sample.extra and alias not in mapping:
            cell = RawRow(sample.where, {name: sample.extra[alias]}, flat=True, packed=True)
            with suppress(DataError):
                value = _references(cell.cells, cell) if name == "references" else cell.cells[name]
                guessed |= {alias: name} if value == getattr(sample, name) else {}
    return guessed


def _check_own(
    row: RawRow,
    present: Mapping[str, Any],
    mappings: Sequence[Mapped],
    systems: Sequence[str],
    scores: Collection[str],
) -> None:
    """Raise DataError for a rating or a score that every system of a wide row would get."""
    for cell in present:
        rated = cell == _RATED_CELL or cell.startswith(f"{_RATED_CELL}.")
        new = RATING + cell.removeprefix(_RATED_CELL) if rated else cell
        old = mappings[0].get(new, cell)
        if not rated and cell not in scores:
            continue
        if any(mapping.get(new, cell) != old for mapping in mappings[1:]):
            continue
        column = old if isinstance(old, str) else old[0]
        name = f"{RATING}.overall" if new == RATING else new
        example = option("map", {name: f"{SYSTEM}_{name.removeprefix(f'{RATING}.')}"})
        other = "write one row per text, with its item, system and output"
        if new not in scores:
            other = f"put the ratings into a file of their own ({option('ratings', 'FILE')})"
        raise DataError(
            f"{row.where}: every system ({option('systems', systems)}) would get {column!r} as its {name}; name each "
            f"system's own column, such as {example}, or {other}"
        )


def _mapped_columns(mappings: Sequence[Mapped]) -> Iterator[str]:
    """Yield every column of the data that a mapping names."""
    for old in (old for mapping in mappings for old in mapping.values()):
        yield from (old,) if isinstance(old, str) else old


def _check_complete(
    row: RawRow, cells: Mapping[str, Any], mappings: Sequence[Mapped], systems: Sequence[str]
) -> None:
    """Raise DataError for a row that lacks a named column, or in long form `output`, or `item` beside a `system`.

    The message lists everything that is missing. In a text table every row must have every named column, elsewhere only
    those of item, system and output.
    """
    mapping = mappings[0]
    misspelt = {new: near for new in mapping if (near := _intended_field(new))}
    named = (
        _mapped_columns(mappings) if row.flat else map(mapping.get, ("item", "system", "output"))
    )
    lacking = []
    for name in dict.fromkeys((*named, *systems)):
        if name and name not in row.cells:
            similar = difflib.get_close_matches(name, list(row.cells), n=1)
            lacking.append(
                f"no column {name!r}" + (f", did you mean {similar[0]!r}?" if similar else "")
            )
    lacking += [
        f"{new!r} in the mapping: did you mean {meant!r}?" for new, meant in misspelt.items()
    ]
    fields = () if systems else ("item", "output") if "system" in cells else ("output",)
    missing = [
        name for name in fields if name not in cells and name not in {*mapping, *misspelt.values()}
    ]
    if missing:
        guesses = {
            name: next((guess for guess in _GUESSES[name] if guess in cells), "COLUMN")
            for name in missing
        }
        wide_form = (
            f", or {option('systems', ['A', 'B'])} where columns A and B hold systems' outputs"
        )
        wide_form = "" if "system" in cells else wide_form
        lacking.append(
            f"no column {' and none '.join(missing)}: add {option('map', guesses)}{wide_form}"
        )
    if lacking:
        raise DataError(f"{row.where}: {'; '.join(lacking)} (columns: {', '.join(row.cells)})")


@cache
def _intended_field(new: str) -> str:
    """Return the field that a misspelt key of a mapping was probably meant for, else the empty string."""
    field, dot, rest = new.partition(".")
    if field == _RATED_CELL:
        return RATING + dot + rest
    if new in FIELDS or new == "reference" or field == RATING or new.removesuffix("s") in FIELDS:
        return ""
    near = difflib.get_close_matches(
        field, (RATING,) if dot else FIELDS, n=1, cutoff=0.75 if dot else 0.85
    )
    return near[0] + dot + rest if near else ""


def _name(value: Any, field: str, where: str) -> str:
    """Return an item's or system's name as text: 7 and 7.0 (as pandas reads a column with gaps) are both 7."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise DataError(
            f"{where}: {field} is {type_name(value)}: give each {field} a name or a number"
        )
    return str(value).strip()


def _references(cells: Mapping[str, Any], row: RawRow) -> tuple[str, ...]:
    """Return `references`, or else `reference`: a text or a list of texts, in a text table also a list in its cell."""
    field = "references" if "references" in cells else "reference"
    value = cells.get(field, ())
    if row.packed and isinstance(value, str):
        texts_in_cell = packed_texts(value)
        if texts_in_cell is not None:
            value = texts_in_cell
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise DataError(
            f"{row.where}: {field} is {type_name(value)}, not a text or a list of texts"
        )
    texts = tuple(text for text in value if not is_missing(text))
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"{row.where}: one of {field} is {type_name(text)}, not text")
    return texts


def _human(
    cells: Mapping[str, Any], where: str
) -> tuple[dict[str, float], dict[str, tuple[float | None, ...]]]:
    """Return human ratings by name (the mean of several raters), and the single ratings of several raters."""
    cell = _unpack(cells.get("human", {}), f"{where}: human")
    ratings = dict(cell) if isinstance(cell, Mapping) else {"overall": cell}
    ratings |= {
        name.removeprefix("human."): value
        for name, value in cells.items()
        if name.startswith("human.")
    }
    human: dict[str, float] = {}
    votes: dict[str, tuple[float | None, ...]] = {}
    for name, value in ratings.items():
        label = f"{where}: human rating {str(name)!r}"
        value = _unpack(value, label)
        several = isinstance(value, list | tuple)
        numbers = (
            [_rating(vote, label, n) for n, vote in enumerate(value, 1)]
            if several
            else [_rating(value, label)]
        )
        if known_ratings := [vote for vote in numbers if vote is not None]:
            human[str(name).strip()] = fmean(known_ratings)
            votes |= {str(name).strip(): tuple(numbers)} if several else {}
    return human, votes


def _unpack(value: Any, label: str) -> Any:
    """Return a cell's object or list, of JSON or Python, an array as a list, and anything else unchanged."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[", "(")):
        try:
            return packed_value(value)
        except NoValue:
            return value if value.lstrip().startswith("(") else parsed(value, label)
    return value.tolist() if hasattr(value, "tolist") else value


_LARGEST_RATING = 1e12  # beyond it, charts and intervals lose their digits


def _rating(value: Any, label: str, rater: int = 0) -> float | None:
    """Return a rating as a number, or None if the cell is empty."""
    if is_missing(value, flat=True):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if abs(number) > _LARGEST_RATING:
        by = f" by rater {rater}" if rater else ""
        raise DataError(
            f"{label}{by} is {value!r}, not a number (of several raters, give a list of numbers)"
        )
    return None if math.isnan(number) else number
