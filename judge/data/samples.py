"""Which rows are wanted: those whose columns have these values.

Files and frames to `Sample`s; what is wrong with them is said with file and line.

Long form has one row per item and system, wide form one column per system. A file is read row by row,
and many shards one after the other.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any

from judge.core.errors import DataError
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample
from judge.data.rows import RawRow, content_hash, dataset_name, files, is_data, is_missing, parsed, rows, type_name

if TYPE_CHECKING:
    import pandas as pd

Value = str | int | float | bool
Values = Mapping[str, Value | Sequence[Value]]
"""By column the value that a row has to have, or the values of which it has to have one."""

_OURS = ("item", "system")
_SHOWN, _KEPT = 10, 1_000  # values of a column: named, and remembered


@dataclass(slots=True)
class RowFilter:
    """A filter of samples, which remembers what it saw.

    `columns` are called as in the data or, where `mapping` names those, as here.
    """

    wanted: Values
    mapping: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    kept: int = 0
    seen: int = 0
    _asked: dict[str, list[str]] = field(default_factory=dict)
    _ours: dict[str, str] = field(default_factory=dict)
    _there: dict[str, None] = field(default_factory=dict)
    _values: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._asked = _by_column(self.wanted)
        self._ours = {old: new for new, old in self.mapping.items() if isinstance(old, str)}

    def __call__(self, sample: Sample) -> bool:
        """Whether this one is wanted."""
        if not self.wanted:
            return True
        self.seen += 1
        self._there.update(dict.fromkeys((*_OURS, *sample.extra)))
        fits = True
        for name, values in self._asked.items():
            value = _cell(sample, name if name in sample.extra else self._ours.get(name, name))
            if value is not None:
                known = self._values.setdefault(name, {})
                if value in known or len(known) < _KEPT:
                    known[value] = known.get(value, 0) + 1
            fits &= value in values
        self.kept += fits
        return fits

    def check(self) -> None:
        """Raises DataError for a column or a value that no row had, and where no row had all that is wanted."""
        for name, values in self._asked.items() if self.seen else ():
            if (known := self._values.get(name)) is None:
                raise DataError(
                    f"{option('where', {name: values[0]})}: {unknown_name_message('column', name, list(self._there))}"
                )
            for value in values:
                if value not in known:
                    raise DataError(f"{option('where', {name: value})}: no row has it; {name} is {_listed(known)}")
        if self.seen and not self.kept:
            raise DataError(
                f"{option('where')} {describe_filter(self.wanted)}: each is there, and no row has all of them"
            )


def filter_rows(
    samples: Iterable[Sample], wanted: Values, mapping: Mapping[str, str | Sequence[str]] = {}
) -> list[Sample]:
    """The samples that are wanted. Raises DataError as `Where.check` does."""
    where = RowFilter(wanted, mapping)
    found = [sample for sample in samples if where(sample)]
    where.check()
    return found


def describe_filter(wanted: Values) -> str:
    """The conditions in words: `lang=ja, channel=email or phone`."""
    return ", ".join(f"{name}={' or '.join(values)}" for name, values in _by_column(wanted).items())


def _by_column(wanted: Values) -> dict[str, list[str]]:
    """The values as text, by column."""
    listed = {name: [one] if isinstance(one, Value) else list(one) for name, one in wanted.items()}
    return {name: [text for one in values if (text := _text(one)) is not None] for name, values in listed.items()}


def _cell(sample: Sample, name: str) -> str | None:
    return getattr(sample, name) if name in _OURS else _text(sample.extra.get(name))


def _text(value: Any) -> str | None:
    """A cell as text; None where it is empty or no one value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) else None


def _listed(known: Mapping[str, int]) -> str:
    most = sorted(known, key=lambda value: -known[value])[:_SHOWN]
    more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
    return ", ".join(f"{value!r} ({known[value]:,})" for value in most) + more


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
]  # fmt: skip

Mapped = Mapping[str, str | Sequence[str]]
"""The data's column for each of ours; of people's ratings also several, one for each annotator."""

FIELDS = ("item", "system", "output", "source", "references", "human")
_GUESSES = {
    "output": ("summary", "prediction", "response", "answer", "generated", "hypothesis", "candidate", "text"),
    "item": ("doc_id", "item_id", "document_id", "example_id"),
}


def load(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | Sample],
    *,
    mapping: Mapping[str, str | Sequence[str]] = {},
    systems: Sequence[str] = (),
    where: Values | None = None,
) -> list[Sample]:
    """The samples of a file (.jsonl, .ndjson, .json, .csv, .tsv, .parquet), a pandas DataFrame or an iterable.

    Many files, also of several kinds, are a folder or a pattern: "shards", "shards/*.parquet" (`shards.files`).
    `mapping` names the data's columns for ours: {"output": "summary", "item": "doc_id"}; any other name on its
    left renames a further column, and {"human.relevance": ["rater_a", "rater_b"]} makes a list of annotators. `systems`
    are the columns of wide form: each row gives one sample for each. `where` keeps the rows whose columns have one of
    these values each, compared as text: {"lang": ["ja"]}.
    Without an `item` column each row is its own item, where there is no `system` column either; without a
    `system` column the system is called `system`. Without `references` a column `reference` stands in. `human`
    is a mapping of ratings, a single rating (then called `overall`), or columns such as `human.coherence`; a rating is
    a number or a list, one for each annotator, with null where one did not rate.
    Every other column goes to `extra`. Samples in an iterable pass through as they are.

    Raises DataError, with file and line, for whatever cannot be read so, and for two rows of one item and system.
    """
    return list(stream(data, mapping=mapping, systems=systems, where=where))


def stream(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | Sample],
    *,
    mapping: Mapping[str, str | Sequence[str]] = {},
    systems: Sequence[str] = (),
    where: Values | None = None,
) -> Iterator[Sample]:
    """`load` one sample after the other, for data larger than memory: about 200 bytes are kept for each."""
    if systems and (clash := [field for field in ("output", "system") if field in mapping]):
        raise DataError(f"systems names one output column per system, so that {clash[0]!r} cannot be mapped as well")
    first: dict[int, str] = {}
    columns: dict[str, None] = {}
    wanted = RowFilter(where or {}, mapping)
    for number, row in enumerate(rows(data), 1):
        if isinstance(row, Sample):
            made = [row]
        else:
            columns.update(dict.fromkeys(row.cells))
            made = _samples(row, number, mapping, systems)
        for sample in filter(wanted, made):
            _refuse_second(sample, sample.where or f"row {number}", first)
            yield sample
    wanted.check()
    _check_found(bool(first), columns, mapping, str(data) if isinstance(data, str | PathLike) else "the data")


# Rows to samples


def _samples(row: RawRow, number: int, mapping: Mapped, systems: Sequence[str]) -> list[Sample]:
    """One sample, or in wide form one per system."""
    cells = _renamed(row.cells, mapping)
    _check_complete(row, cells, mapping, systems)
    item = _name(cells.get("item", number), "item", row.where)
    shared = {name: value for name, value in cells.items() if name not in systems and not is_missing(value, row.flat)}
    source = shared.get("source")
    if source is not None and not isinstance(source, str):
        raise DataError(f"{row.where}: source is {type_name(source)}, not text")
    references = _references(shared, row)
    human, votes = _human(shared, row.where)
    extra = {n: v for n, v in shared.items() if n not in FIELDS and not n.startswith("human.")}
    if systems:
        named = [(system, _output(cells, system, row.where)) for system in systems]
    else:
        named = [(_name(cells.get("system", "system"), "system", row.where), _output(cells, "output", row.where))]
    return [
        Sample(item, system, output, source, references, human, extra, row.where, votes) for system, output in named
    ]


def _renamed(cells: Mapping[str, Any], mapping: Mapped) -> dict[str, Any]:
    """The cells under our names; what was renamed does not come back under its old name."""
    gone = {*mapping, *_olds(mapping)}
    kept = {name: value for name, value in cells.items() if name not in gone}
    for new, old in mapping.items():
        if isinstance(old, str):
            kept |= {new: cells[old]} if old in cells else {}
        elif any(one in cells for one in old):
            kept[new] = [cells.get(one) for one in old]
    return kept


def _olds(mapping: Mapped) -> Iterator[str]:
    """Every column of the data that a mapping names."""
    for old in mapping.values():
        yield from (old,) if isinstance(old, str) else old


def _check_complete(row: RawRow, cells: Mapping[str, Any], mapping: Mapped, systems: Sequence[str]) -> None:
    """Refuses a row without a column that is named, or in long form without `output`, or `system` and no `item`.

    Says all that it lacks at once. In a text table every row has every column, elsewhere only what a text is made of.
    """
    misspelt = {new: near for new in mapping if (near := _misspelt(new))}
    needed = [name for name in (*_olds(mapping), *systems) if name not in row.cells and _is_needed(name, row, mapping)]
    lacking = [_lacking(name, row) for name in dict.fromkeys(needed)]
    lacking += [f"{new!r} in the mapping: did you mean {near!r}?" for new, near in misspelt.items()]
    fields = () if systems else ("item", "output") if "system" in cells else ("output",)
    named = {*mapping, *misspelt.values()}
    missing = [one for one in fields if one not in cells and one not in named]
    if missing:
        guesses = (next((name for name in _GUESSES[one] if name in cells), "COLUMN") for one in missing)
        mapped = option("map", dict(zip(missing, guesses, strict=True)))
        wide_form = f", or {option('systems', ['A', 'B'])} where columns A and B hold systems' outputs"
        lacking.append(f"no column {' and none '.join(missing)}: add {mapped}{'' if 'system' in cells else wide_form}")
    if lacking:
        raise DataError(f"{row.where}: {'; '.join(lacking)} (columns: {', '.join(row.cells)})")


def _is_needed(name: str, row: RawRow, mapping: Mapped) -> bool:
    """Whether a row has to have this column of the data."""
    return row.flat or name in [mapping.get(one) for one in ("item", "system", "output")] or name not in _olds(mapping)


def _lacking(name: str, row: RawRow) -> str:
    near = difflib.get_close_matches(name, list(row.cells), n=1)
    return f"no column {name!r}" + (f", did you mean {near[0]!r}?" if near else "")


@cache
def _misspelt(new: str) -> str:
    """The field that a mapping's key was probably meant for; nothing where it is one, or another word."""
    field, dot, rest = new.partition(".")
    if new in FIELDS or new == "reference" or (field == "human" and dot) or new.removesuffix("s") in FIELDS:
        return ""
    near = difflib.get_close_matches(field, ("human",) if dot else FIELDS, n=1, cutoff=0.75 if dot else 0.85)
    return near[0] + dot + rest if near else ""


def _name(value: Any, field: str, where: str) -> str:
    """An item's or a system's name as text: 7 and 7.0 (as pandas reads a column with gaps) are both 7."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise DataError(f"{where}: {field} is {type_name(value)}: give each {field} a name or a number")
    return str(value)


def _output(cells: Mapping[str, Any], column: str, where: str) -> str:
    value = cells[column]
    if is_missing(value):
        raise DataError(f"{where}: {column} is null: write an empty string if the system wrote nothing")
    if not isinstance(value, str):
        raise DataError(f"{where}: {column} is {type_name(value)}, not text")
    return value


def _references(cells: Mapping[str, Any], row: RawRow) -> tuple[str, ...]:
    """`references`, or else `reference`: a text or a list of texts, in a text table also a JSON list."""
    field = "references" if "references" in cells else "reference"
    value = cells.get(field, ())
    if row.flat and isinstance(value, str) and value.lstrip().startswith("["):
        value = _listed_of_samples(value)
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise DataError(f"{row.where}: {field} is {type_name(value)}, not a text or a list of texts")
    texts = tuple(text for text in value if not is_missing(text))
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"{row.where}: one of {field} is {type_name(text)}, not text")
    return texts


def _listed_of_samples(cell: str) -> Any:
    """The JSON list of texts that a cell holds; the cell itself where it only starts with a bracket."""
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    return found if all(isinstance(text, str) for text in found) else cell


def _human(cells: Mapping[str, Any], where: str) -> tuple[dict[str, float], dict[str, tuple[float | None, ...]]]:
    """People's ratings by name, of several annotators the mean; and what each of several gave."""
    given = _unpacked(cells.get("human", {}), f"{where}: human")
    ratings = dict(given) if isinstance(given, Mapping) else {"overall": given}
    ratings |= {name.removeprefix("human."): value for name, value in cells.items() if name.startswith("human.")}
    human: dict[str, float] = {}
    votes: dict[str, tuple[float | None, ...]] = {}
    for name, value in ratings.items():
        what = f"{where}: human rating {str(name)!r}"
        value = _unpacked(value, what)
        several = isinstance(value, list | tuple)
        each = [_rating(vote, what, n) for n, vote in enumerate(value, 1)] if several else [_rating(value, what)]
        if known := [vote for vote in each if vote is not None]:
            human[str(name)] = fmean(known)
            votes |= {str(name): tuple(each)} if several else {}
    return human, votes


def _unpacked(value: Any, what: str) -> Any:
    """A cell's JSON object or list, numpy's array as a list, all else as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        return parsed(value, what)
    return value.tolist() if hasattr(value, "tolist") else value


def _rating(value: Any, what: str, annotator: int = 0) -> float | None:
    """A rating as a number; None where there is none."""
    if is_missing(value, flat=True):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if math.isinf(number):
        by = f" by annotator {annotator}" if annotator else ""
        raise DataError(f"{what}{by} is {value!r}, not a number (of several annotators, give a list of numbers)")
    return None if math.isnan(number) else number


def _refuse_second(sample: Sample, where: str, first: dict[int, str]) -> None:
    key = hash((sample.item, sample.system))  # 64 bits in place of the names: of 10 million rows no two share them
    if key in first:
        other = option("map", {"item": "COLUMN", "system": "COLUMN"})
        raise DataError(
            f"{where}: item {sample.item!r} of system {sample.system!r} is already at {first[key]}; "
            f"each pair of item and system may come once ({other} names other columns)"
        )
    first[key] = where


def _check_found(found: bool, columns: Mapping[str, None], mapping: Mapped, name: str) -> None:
    """Refuses data without rows, and a mapping from a column that no row has."""
    if not found:
        raise DataError(f"{name}: no rows")
    for old in _olds(mapping):
        if columns and old not in columns:
            raise DataError(f"{name}: {unknown_name_message('column', old, list(columns))}")
