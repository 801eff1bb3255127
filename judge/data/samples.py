"""Turn rows into `Sample`s, and keep those that a filter selects; errors name file and line.

Long form has one row per item and system, wide form one column per system. Files are read row by
row, and shards one after the other.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cache
from numbers import Real
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any
from uuid import UUID

from judge.core.errors import DataError
from judge.core.format import UNNAMED_SYSTEM
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import ALIASES, Sample
from judge.core.verdicts import verdict
from judge.data.cells import NoValue, packed_texts, packed_value
from judge.data.column_names import COLUMN_GUESSES, USUAL_NAMES
from judge.data.conversations import MESSAGES, read_conversation
from judge.data.row_filters import (
    Mapped,
    RowFilter,
    Values,
    describe_filter,
    filter_rows,
)
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
    unread_sheets,
    with_whole_number,
)
from judge.data.text_locations import TextLocations

if TYPE_CHECKING:
    import pandas as pd

    DataRow = Mapping[str, Any] | RawRow | Sample
    DataSource = str | PathLike[str] | pd.DataFrame | Iterable[DataRow]

__all__ = [
    "FIELDS",
    "Mapped",
    "Values",
    "content_hash",
    "dataset_name",
    "describe_filter",
    "files",
    "filter_rows",
    "is_data",
    "load",
    "stream",
    "unread_sheets",
]

UNNAMED_RATING = "overall"
"""The criterion of people's ratings that name none."""
FIELDS = ("item", "system", "output", "source", "references", "human", "generation")
RATING = "rating"
"""The name of people's ratings in a mapping.

It is `rating.coherence`, or `rating` for ratings without a criterion.
"""
_RATED_CELL = "human"
"""The name of a cell of people's ratings in a row.

It is `human.coherence`, or `human` with one or more ratings in it.
"""
SYSTEM = "{system}"
"""Stands for the system's name in a mapped column of wide data."""


def load(
    data: DataSource,
    *,
    mapping: Mapping[str, str | Sequence[str]] = {},
    systems: Sequence[str] = (),
    where: Values | None = None,
) -> list[Sample]:
    """Return the samples of a file, a DataFrame or an iterable.

    A file is a .jsonl, .ndjson, .json, .csv, .tsv, .xlsx or .parquet. The arguments are documented
    at `judge.load_samples`, which calls `mapping` `map`.

    Raises DataError, with file and line, for invalid data and for two rows of one item and system.
    """
    return list(stream(data, mapping=mapping, systems=systems, where=where))


def stream(
    data: DataSource,
    *,
    mapping: Mapping[str, str | Sequence[str]] = {},
    systems: Sequence[str] = (),
    where: Values | None = None,
    scores: Collection[str] = (),
    texts_optional: bool = False,
) -> Iterator[Sample]:
    """`load` one sample after the other.

    `scores` are columns that belong to one text, as ratings do. With `texts_optional`, the data may
    have scores without the texts: these are empty then.
    """
    mappings = _mappings_of_systems(mapping, systems)
    raters = _raters_of_mapping(mapping)
    output_optional = texts_optional and not systems and "output" not in mapping
    columns: dict[str, None] = {}
    row_filter = RowFilter(where or {}, mapping)
    locations = TextLocations()
    for number, row in enumerate(rows(data), 1):
        if isinstance(row, Sample):
            _check_sample(row)
            samples = [_with_plain_names(row)]
        else:
            columns |= dict.fromkeys(row.cells)
            if output_optional:
                row = _with_empty_output(row)
            samples = _row_samples(
                row, number, mappings, systems, scores, raters=raters
            )
        for sample in filter(row_filter, samples):
            locations.add(sample, sample.where or f"row {number}")
            yield sample
    row_filter.check()
    data_name = str(data) if isinstance(data, str | PathLike) else "the data"
    if locations.is_empty:
        raise DataError(f"{data_name}: no rows")
    # Samples from Python have no columns to compare with.
    if columns:
        _refuse_unknown_columns(data_name, mappings, columns)


def _refuse_unknown_columns(
    data_name: str,
    mappings: Sequence[Mapped],
    columns: Collection[str],
) -> None:
    """Raise DataError if a mapping names a column that the data do not have."""
    for column in _mapped_columns(mappings):
        if column not in columns:
            problem = unknown_name_message("column", column, list(columns))
            raise DataError(f"{data_name}: {problem}")


def _mappings_of_systems(mapping: Mapped, systems: Sequence[str]) -> list[Mapped]:
    """Return the mapping, or one for each system of wide data. Raises DataError for a clash."""
    if not systems:
        return [mapping]
    clash = [field for field in ("output", "system") if field in mapping]
    if clash:
        raise DataError(
            f"systems names one output column per system, so that {clash[0]!r} cannot be mapped as "
            "well"
        )
    return [_mapping_of_system(mapping, system) for system in systems]


def _mapping_of_system(mapping: Mapped, system: str) -> Mapped:
    """Return the mapping with the system's name for `{system}`."""
    renamed: dict[str, str | Sequence[str]] = {}
    for field, columns in mapping.items():
        if isinstance(columns, str):
            renamed[field] = columns.replace(SYSTEM, system)
        else:
            renamed[field] = [column.replace(SYSTEM, system) for column in columns]
    return renamed


def _raters_of_mapping(mapping: Mapped) -> dict[str, tuple[str, ...]]:
    """Return the raters of each criterion that is mapped to a column for each rater."""
    raters: dict[str, tuple[str, ...]] = {}
    for field, columns in mapping.items():
        criterion = field.removeprefix(f"{RATING}.")
        names = () if isinstance(columns, str) else _rater_names(criterion, columns)
        if names:
            raters[criterion] = names
    return raters


# Rows to samples


def _cell_name(field: str) -> str:
    """Return the name of the cell of a mapping's field.

    It is `human.coherence` for `rating.coherence`.
    """
    return _RATED_CELL if field == RATING else _dotted_cell_name(field)


def _dotted_cell_name(column: str) -> str:
    """Return what a data column is called as a cell: only `rating.NAME` differs.

    A column that is just called `rating` may hold anything, such as the stars of a review, and
    keeps its name.
    """
    prefix = f"{RATING}."
    if not column.startswith(prefix):
        return column
    criterion = column.removeprefix(prefix)
    return f"{_RATED_CELL}.{criterion}"


def _check_sample(sample: Sample) -> None:
    """Raise DataError for a Sample from Python with a field of another type."""
    texts = {"item": sample.item, "system": sample.system, "output": sample.output}
    if sample.source is not None:
        texts["source"] = sample.source
    for field, text in texts.items():
        if not isinstance(text, str):
            raise DataError(
                f"Sample {sample.item!r}: {field} is {type_name(text)}, not text"
            )
    for field, mapping in (("human", sample.human), ("extra", sample.extra)):
        if not isinstance(mapping, Mapping):
            raise DataError(
                f"Sample {sample.item!r}: {field} is {type_name(mapping)}, not a mapping"
            )
    for criterion, rating in sample.human.items():
        if not isinstance(rating, Real):
            raise DataError(
                f"Sample {sample.item!r}: human: the rating of {criterion} is "
                f"{type_name(rating)}, not a number"
            )
    if not isinstance(sample.references, tuple | list):
        raise DataError(
            f"Sample {sample.item!r}: references is {type_name(sample.references)}, not a tuple of "
            "texts"
        )


def _with_plain_names(sample: Sample) -> Sample:
    """Return the sample without blanks around the names of its item and system, as in files."""
    item = sample.item.strip()
    system = sample.system.strip()
    if (item, system) == sample.key:
        return sample
    return replace(sample, item=item, system=system)


def _with_empty_output(row: RawRow) -> RawRow:
    """Return the row with an empty output if it has none, under no name."""
    aliases = [alias for alias, field in ALIASES.items() if field == "output"]
    output_columns = ("output", *aliases, *USUAL_NAMES["output"])
    if any(column in row.cells for column in output_columns):
        return row
    return row._replace(cells={**row.cells, "output": ""})


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
    cells_by_system = _cells_by_system(row, mappings, systems)
    _check_complete(row, cells_by_system[0], mappings, systems)
    output_columns = systems or ("output",)
    samples: list[Sample] = []
    for output_column, cells in zip(output_columns, cells_by_system, strict=True):
        present = {
            cell: value
            for cell, value in cells.items()
            if not is_missing(value, row.flat)
        }
        if len(mappings) > 1:
            _refuse_shared_scores(row, present, mappings, systems, scores)
        output = cells["output"]
        _check_texts(row, output_column, output, present.get("source"))
        item = _name(cells.get("item", number), "item", row.where)
        system = output_column.strip() if systems else _system_of(cells, row.where)
        samples.append(_sample(row, output, present, item, system, raters=raters))
    return samples


def _cells_by_system(
    row: RawRow,
    mappings: Sequence[Mapped],
    systems: Sequence[str],
) -> list[dict[str, Any]]:
    """Return a row's cells by our fields, of each mapping; a conversation gives the output."""
    # A renamed cell is dropped under its old name.
    consumed = {*systems, *mappings[0], *_mapped_columns(mappings)}
    unmapped: dict[str, Any] = {}
    for column, value in row.cells.items():
        if column not in consumed:
            unmapped[_dotted_cell_name(column)] = value
    cells_by_system: list[dict[str, Any]] = []
    for index, mapping in enumerate(mappings):
        cells = _renamed_cells(row, unmapped, mapping)
        output_column = systems[index] if systems else "output"
        if systems and output_column in row.cells:
            cells["output"] = row.cells[output_column]
        with_output = read_conversation(
            cells,
            row.where,
            packed=row.flat or row.packed,
            required=MESSAGES in mapping,
            answer_column=output_column,
        )
        cells_by_system.append(with_output)
    return cells_by_system


def _sample(
    row: RawRow,
    output: str,
    present: Mapping[str, Any],
    item: str,
    system: str,
    *,
    raters: Mapping[str, tuple[str, ...]],
) -> Sample:
    """Return the sample of an output, given the row's cells without the empty ones."""
    cluster = ""
    if "generation" in present:
        cluster = item
        generation = _name(present["generation"], "generation", row.where)
        item = f"{item} ({generation})"
    human, votes = _human(present, row.where)
    raters_of_votes = {
        criterion: names for criterion, names in raters.items() if criterion in votes
    }
    return Sample(
        item,
        system,
        output,
        present.get("source"),
        references=_references(present, row),
        human=human,
        extra=_own_columns(present, row),
        where=row.where,
        ratings=votes,
        raters=raters_of_votes,
        cluster=cluster,
    )


def _system_of(cells: Mapping[str, Any], location: str) -> str:
    """Return the system of a row in long form."""
    return _name(cells.get("system", UNNAMED_SYSTEM), "system", location)


def _renamed_cells(
    row: RawRow, unmapped: Mapping[str, Any], mapping: Mapped
) -> dict[str, Any]:
    """Return a row's cells by our fields; `unmapped` are those that the mapping does not name."""
    cells = dict(unmapped)
    for field, columns in mapping.items():
        cell_name = _cell_name(field)
        if isinstance(columns, str):
            if columns in row.cells:
                cells[cell_name] = row.cells[columns]
        elif any(column in row.cells for column in columns):
            cells[cell_name] = [row.cells.get(column) for column in columns]
    for alias, field_name in ALIASES.items():
        if alias in cells and _is_meant(alias, field_name, cells, mapping):
            cells[field_name] = cells[alias]
    for field_name, usual_names in USUAL_NAMES.items():
        if field_name in mapping:
            continue
        usual_name = _only_text(cells, usual_names)
        if usual_name and _is_meant(usual_name, field_name, cells, mapping):
            cells[field_name] = cells[usual_name]
    return cells


def _only_text(cells: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Return the only one of these columns that holds a text, "" if none does or several do.

    Return "" beside messages, too, which give the output.
    """
    present = [column for column in columns if isinstance(cells.get(column), str)]
    if len(present) != 1 or MESSAGES in cells:
        return ""
    return present[0]


def _check_texts(row: RawRow, column: str, output: Any, source: Any) -> None:
    """Raise DataError unless the output is a text, and the source one if there is any."""
    if is_missing(output):
        raise DataError(
            f"{row.where}: {column} is null: write an empty string if the system wrote nothing"
        )
    if not isinstance(output, str):
        raise DataError(f"{row.where}: {column} is {type_name(output)}, not text")
    if source is not None and not isinstance(source, str):
        raise DataError(f"{row.where}: source is {type_name(source)}, not text")


def _own_columns(present: Mapping[str, Any], row: RawRow) -> dict[str, Any]:
    """Return the data's own columns, for which judge has no use."""
    columns: dict[str, Any] = {}
    for column, value in present.items():
        is_rating = column.startswith(f"{_RATED_CELL}.")
        if column not in FIELDS and not is_rating:
            columns[column] = value
    # A list in a text table's cell is one for templates, too.
    reference = columns.get("reference")
    if row.packed and isinstance(reference, str):
        columns["reference"] = packed_texts(reference) or reference
    return columns


def _rater_names(criterion: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the raters whose columns these are, such as anna for `{system}_relevance_anna`.

    Systems and the criterion are left out if distinct names remain.
    """
    # `relevance` in `{system}_relevance_anna`, but not in `irrelevance`: an underscore ends a word.
    words_to_leave_out = (
        rf"(?<![^\W_])(?:human|{re.escape(SYSTEM)}|{re.escape(criterion)})(?![^\W_])"
    )
    remainders = [re.sub(words_to_leave_out, "", column) for column in columns]
    rater_names = tuple(remainder.strip("_.- ") for remainder in remainders)
    are_distinct = len(set(rater_names)) == len(rater_names)
    return rater_names if all(rater_names) and are_distinct else tuple(columns)


def _is_meant(
    alias: str, field: str, cells: Mapping[str, Any], mapping: Mapped
) -> bool:
    """Return whether a column fills a field of another name.

    It does if the mapping says so, or if nothing else fills the field.
    """
    if alias in mapping:
        return field not in mapping
    if field == "references" and "reference" in cells:
        return False
    return field not in cells


def guessed_columns(sample: Sample, mapping: Mapped) -> dict[str, str]:
    """Return the fields that columns of other names filled without a mapping, by column."""
    field_by_name = dict(ALIASES)
    for field, usual_names in USUAL_NAMES.items():
        field_by_name |= dict.fromkeys(usual_names, field)
    guessed: dict[str, str] = {}
    for name, field in field_by_name.items():
        if name not in sample.extra or name in mapping:
            continue
        value = sample.extra[name]
        with suppress(DataError):
            if field == "references":
                row = RawRow(sample.where, {field: value}, flat=True, packed=True)
                value = _references(row.cells, row)
            # The column filled the field if both have the same value.
            if value == getattr(sample, field):
                guessed[name] = field
    return guessed


def _refuse_shared_scores(
    row: RawRow,
    present: Mapping[str, Any],
    mappings: Sequence[Mapped],
    systems: Sequence[str],
    scores: Collection[str],
) -> None:
    """Raise DataError for a rating or a score that every system of a wide row would get."""
    for cell in present:
        is_rating = cell == _RATED_CELL or cell.startswith(f"{_RATED_CELL}.")
        if not is_rating and cell not in scores:
            continue
        field = RATING + cell.removeprefix(_RATED_CELL) if is_rating else cell
        columns = mappings[0].get(field, cell)
        # Each system has a column of its own.
        if any(mapping.get(field, cell) != columns for mapping in mappings[1:]):
            continue
        is_score = field in scores
        problem = _problem_of_shared_scores(field, columns, systems, is_score=is_score)
        raise DataError(f"{row.where}: {problem}")


def _problem_of_shared_scores(
    field: str,
    columns: str | Sequence[str],
    systems: Sequence[str],
    *,
    is_score: bool,
) -> str:
    """Say that every system would get the ratings or scores of a column, and what to do."""
    column = columns if isinstance(columns, str) else columns[0]
    rating_name = f"{RATING}.{UNNAMED_RATING}" if field == RATING else field
    criterion = rating_name.removeprefix(f"{RATING}.")
    example = option("map", {rating_name: f"{SYSTEM}_{criterion}"})
    if is_score:
        remedy = "write one row per text, with its item, system and output"
    else:
        ratings_file = option("ratings", "FILE")
        remedy = f"put the ratings into a file of their own ({ratings_file})"
    named_systems = option("systems", systems)
    return (
        f"every system ({named_systems}) would get {column!r} as its "
        f"{rating_name}; name each system's own column, such as {example}, or {remedy}"
    )


def _mapped_columns(mappings: Sequence[Mapped]) -> Iterator[str]:
    """Yield every column of the data that a mapping names."""
    for mapping in mappings:
        for columns in mapping.values():
            if isinstance(columns, str):
                yield columns
            else:
                yield from columns


def _check_complete(
    row: RawRow,
    cells: Mapping[str, Any],
    mappings: Sequence[Mapped],
    systems: Sequence[str],
) -> None:
    """Raise DataError for a row that lacks a named column or a necessary field.

    A row needs `output` in long form, and `item` beside a `system`. The message lists everything
    that is missing. In a text table every row must have every named column. In other data a row
    must only have the columns of item, system and output.
    """
    mapping = mappings[0]
    required = _required_columns(row, mappings, systems)
    absent = [column for column in required if column not in row.cells]
    problems = [_problem_of_absent(column, row.cells) for column in absent]
    intended_fields: list[str] = []
    for field in mapping:
        intended = _intended_field(field)
        if intended:
            intended_fields.append(intended)
            problems.append(f"{field!r} in the mapping: did you mean {intended!r}?")
    # A field under a misspelt name is not missing as well.
    mentioned = {*cells, *mapping, *intended_fields}
    necessary = _necessary_fields(cells, systems)
    missing = [field for field in necessary if field not in mentioned]
    if missing:
        problems.append(_problem_of_missing(missing, cells))
    if problems:
        location = _location_of_columns(row)
        listed_problems = "; ".join(problems)
        columns = ", ".join(row.cells)
        raise DataError(f"{location}: {listed_problems} (columns: {columns})")


def _problem_of_absent(column: str, cells: Mapping[str, Any]) -> str:
    """Say that a row has no such column, and suggest a similar one."""
    problem = f"no column {column!r}"
    # Exports of annotation tools have objects in objects: `fields.response`.
    outer, dot, _ = column.partition(".")
    if dot and isinstance(cells.get(outer), Mapping):
        return f"{problem}: {outer} is an object; write its parts into columns of their own"
    similar = difflib.get_close_matches(column, list(cells), n=1)
    return f"{problem}, did you mean {similar[0]!r}?" if similar else problem


def _location_of_columns(row: RawRow) -> str:
    """Return the file of a table, whose header names the columns of all rows, or else the row."""
    file, colon, line = row.where.rpartition(":")
    return file if row.flat and colon and line.isdigit() else row.where


def _required_columns(
    row: RawRow,
    mappings: Sequence[Mapped],
    systems: Sequence[str],
) -> Iterator[str]:
    """Yield the columns that a row must have, each once."""
    columns: list[Any] = []
    if row.flat:
        columns += _mapped_columns(mappings)
    else:
        columns += [mappings[0].get(field) for field in ("item", "system", "output")]
    for column in dict.fromkeys((*columns, *systems)):
        if column:
            yield column


def _necessary_fields(
    cells: Mapping[str, Any], systems: Sequence[str]
) -> tuple[str, ...]:
    # In wide form the outputs are the systems' columns, and rows are numbered.
    if systems:
        return ()
    return ("item", "output") if "system" in cells else ("output",)


def _problem_of_missing(missing: Sequence[str], cells: Mapping[str, Any]) -> str:
    """Say which fields are missing, and which options name their columns."""
    column_by_field: dict[str, str] = {}
    for field in missing:
        guesses = [guess for guess in COLUMN_GUESSES[field] if guess in cells]
        column_by_field[field] = guesses[0] if guesses else "COLUMN"
    fields = " and none ".join(missing)
    advice = option("map", column_by_field)
    problem = f"no column {fields}: add {advice}"
    if "system" in cells:
        return problem
    wide_form = option("systems", ["A", "B"])
    return f"{problem}, or {wide_form} where columns A and B hold systems' outputs"


@cache
def _intended_field(key: str) -> str:
    """Return the field that a misspelt key of a mapping was probably meant for.

    Return the empty string if there is none.
    """
    word, dot, criterion = key.partition(".")
    if word == _RATED_CELL:
        return RATING + dot + criterion
    is_known = key in FIELDS or key == "reference" or word == RATING
    # A plural such as `sources` names a column of the data's own.
    if is_known or key.removesuffix("s") in FIELDS:
        return ""
    fields = (RATING,) if dot else FIELDS
    # With a dot after it, a word is hardly anything else.
    cutoff = 0.75 if dot else 0.85
    near = difflib.get_close_matches(word, fields, n=1, cutoff=cutoff)
    return near[0] + dot + criterion if near else ""


def _name(value: Any, field: str, location: str) -> str:
    """Return an item's or system's name as text.

    7 and 7.0 (as pandas reads a column with gaps) are both 7.
    """
    value = with_whole_number(value)
    # A bool is an int to Python, and no name.
    is_name = isinstance(value, str | int | date | UUID) and not isinstance(value, bool)
    if not is_name or not str(value).strip():
        raise DataError(
            f"{location}: {field} is {type_name(value)}: give each {field} a name or a number"
        )
    return str(value).strip()


def _references(cells: Mapping[str, Any], row: RawRow) -> tuple[str, ...]:
    """Return `references`, or else `reference`.

    It is a text or a list of texts, in a text table also a list in its cell.
    """
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
    reference_texts = tuple(text for text in value if not is_missing(text))
    for text in reference_texts:
        if not isinstance(text, str):
            raise DataError(
                f"{row.where}: one of {field} is {type_name(text)}, not text"
            )
    return reference_texts


def _human(
    cells: Mapping[str, Any], location: str
) -> tuple[dict[str, float], dict[str, tuple[float | None, ...]]]:
    """Return human ratings by name, and the single ratings of several raters.

    With several raters, the human rating is their mean.
    """
    human: dict[str, float] = {}
    votes: dict[str, tuple[float | None, ...]] = {}
    for rating_name, packed in _rating_cells(cells, location).items():
        label = f"{location}: human rating {str(rating_name)!r}"
        value = _unpack(packed, label)
        criterion = str(rating_name).strip()
        has_several_raters = isinstance(value, list | tuple)
        if has_several_raters:
            ratings = [
                _rating(vote, label, rater) for rater, vote in enumerate(value, 1)
            ]
        else:
            ratings = [_rating(value, label)]
        known_ratings = [rating for rating in ratings if rating is not None]
        if known_ratings:
            human[criterion] = fmean(known_ratings)
            if has_several_raters:
                votes[criterion] = tuple(ratings)
    return human, votes


def _rating_cells(cells: Mapping[str, Any], location: str) -> dict[Any, Any]:
    """Return the cells of human ratings by criterion: of `human`, and then of `human.NAME`."""
    cell = _unpack(cells.get(_RATED_CELL, {}), f"{location}: {_RATED_CELL}")
    rating_cells = dict(cell) if isinstance(cell, Mapping) else {UNNAMED_RATING: cell}
    prefix = f"{_RATED_CELL}."
    for column, value in cells.items():
        if column.startswith(prefix):
            rating_cells[column.removeprefix(prefix)] = value
    return rating_cells


def _unpack(value: Any, label: str) -> Any:
    """Return a cell's object or list, of JSON or Python; anything else unchanged.

    An array becomes a list. Raises DataError for damaged JSON.
    """
    if not isinstance(value, str):
        return value.tolist() if hasattr(value, "tolist") else value
    beginning = value.lstrip()[:1]
    if beginning not in ("{", "[", "("):
        return value
    try:
        return packed_value(value)
    except NoValue:
        if beginning == "(":  # no JSON begins so: it is a text in brackets
            return value
        return parsed(value, label)


_LARGEST_RATING = 1e12  # beyond it, charts and intervals lose their digits


def _rating(value: Any, label: str, rater: int = 0) -> float | None:
    """Return a rating as a number, or None if the cell is empty."""
    if is_missing(value, flat=True):
        return None
    try:
        rating = float(value)
    except (TypeError, ValueError, OverflowError):
        # Beyond the largest rating, so that it is refused below.
        rating = math.inf
    if abs(rating) > _LARGEST_RATING:
        by_rater = f" by rater {rater}" if rater else ""
        advice = (
            "leave it empty if there is none; of several raters, give a list of numbers"
        )
        if verdict(value) is not None:
            # A file of ratings may hold words, because it is read together with the scale.
            ratings_file = option("ratings", "FILE")
            advice = f"write 1 for pass and 0 for fail, or keep the ratings apart: {ratings_file}"
        raise DataError(f"{label}{by_rater} is {value!r}, not a number ({advice})")
    return None if math.isnan(rating) else rating
