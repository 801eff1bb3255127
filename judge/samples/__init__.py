"""Files and frames to `Sample`s; what is wrong with them is said with file and line.

Long form has one row per item and system, wide form one column per system. A file is read row by row,
and many shards one after the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from statistics import fmean
from typing import TYPE_CHECKING, Any

from judge.errors import DataError
from judge.records import Sample
from judge.registry import unknown
from judge.samples.rows import Row, absent, kind, parsed, rows
from judge.samples.shards import digest, files, is_data, title

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIELDS", "digest", "files", "is_data", "load", "stream", "title"]

FIELDS = ("item", "system", "output", "source", "references", "human")
_GUESSES = {
    "output": ("summary", "prediction", "response", "answer", "generated", "hypothesis", "candidate", "text"),
    "item": ("doc_id", "item_id", "document_id", "example_id"),
}


def load(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | Sample],
    *,
    mapping: Mapping[str, str] = {},
    systems: Sequence[str] = (),
) -> list[Sample]:
    """The samples of a file (.jsonl, .ndjson, .json, .csv, .tsv, .parquet), a pandas DataFrame or an iterable.

    Many files, also of several kinds, are a folder or a pattern: "shards", "shards/*.parquet" (`shards.files`).
    `mapping` names the data's columns for ours: {"output": "summary", "item": "doc_id"}; any other name on its
    left renames a further column. `systems` are the columns of wide form: each row gives one sample for each.
    Without an `item` column each row is its own item, where there is no `system` column either; without a
    `system` column the system is called `system`. Without `references` a column `reference` stands in. `human`
    is a mapping of ratings, a single rating (then called `overall`), or columns such as `human.coherence`; a rating is
    a number or a list, one for each annotator, with null where one did not rate.
    Every other column goes to `extra`. Samples in an iterable pass through as they are.

    Raises DataError, with file and line, for whatever cannot be read so, and for two rows of one item and system.
    """
    return list(stream(data, mapping=mapping, systems=systems))


def stream(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | Sample],
    *,
    mapping: Mapping[str, str] = {},
    systems: Sequence[str] = (),
) -> Iterator[Sample]:
    """`load` one sample after the other, for data larger than memory: about 200 bytes are kept for each."""
    if systems and (clash := [field for field in ("output", "system") if field in mapping]):
        raise DataError(f"systems names one output column per system, so that {clash[0]!r} cannot be mapped as well")
    first: dict[int, str] = {}
    columns: dict[str, None] = {}
    for number, row in enumerate(rows(data), 1):
        if isinstance(row, Sample):
            made = [row]
        else:
            columns.update(dict.fromkeys(row.cells))
            made = _samples(row, number, mapping, systems)
        for sample in made:
            _refuse_second(sample, sample.where or f"row {number}", first)
        yield from made
    _check_found(bool(first), columns, mapping, str(data) if isinstance(data, str | PathLike) else "the data")


# Rows to samples


def _samples(row: Row, number: int, mapping: Mapping[str, str], systems: Sequence[str]) -> list[Sample]:
    """One sample, or in wide form one per system."""
    cells = _renamed(row.cells, mapping, row.where)
    _check_complete(cells, row.where, bool(systems))
    item = _name(cells.get("item", number), "item", row.where)
    shared = {name: value for name, value in cells.items() if name not in systems and not absent(value, row.flat)}
    source = shared.get("source")
    if source is not None and not isinstance(source, str):
        raise DataError(f"{row.where}: source is {kind(source)}, not text")
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


def _renamed(cells: Mapping[str, Any], mapping: Mapping[str, str], where: str) -> dict[str, Any]:
    """The cells under our names; what was renamed does not come back under its old name."""
    for new in ("item", "system", "output"):
        if new in mapping and mapping[new] not in cells:
            raise DataError(f"{where}: {unknown('column', mapping[new], list(cells))}")
    gone = {*mapping, *mapping.values()}
    kept = {name: value for name, value in cells.items() if name not in gone}
    return kept | {new: cells[old] for new, old in mapping.items() if old in cells}


def _check_complete(cells: Mapping[str, Any], where: str, wide: bool) -> None:
    """Refuses a row in long form without `output`, or with `system` but no `item`."""
    needed = () if wide else ("item", "output") if "system" in cells else ("output",)
    if missing := [field for field in needed if field not in cells]:
        guesses = (next((name for name in _GUESSES[field] if name in cells), "COLUMN") for field in missing)
        line = ",".join(f"{field}={guess}" for field, guess in zip(missing, guesses, strict=True))
        wide_form = "" if "system" in cells else ", or --systems A,B where columns A and B hold systems' outputs"
        known = ", ".join(cells)
        raise DataError(
            f"{where}: no column {' and none '.join(missing)}: add --map {line}{wide_form} (columns: {known})"
        )


def _name(value: Any, field: str, where: str) -> str:
    """An item's or a system's name as text: 7 and 7.0 (as pandas reads a column with gaps) are both 7."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise DataError(f"{where}: {field} is {kind(value)}: give each {field} a name or a number")
    return str(value)


def _output(cells: Mapping[str, Any], column: str, where: str) -> str:
    if column not in cells:
        raise DataError(f"{where}: {unknown('column', column, list(cells))}")
    value = cells[column]
    if absent(value):
        raise DataError(f"{where}: {column} is null: write an empty string if the system wrote nothing")
    if not isinstance(value, str):
        raise DataError(f"{where}: {column} is {kind(value)}, not text")
    return value


def _references(cells: Mapping[str, Any], row: Row) -> tuple[str, ...]:
    """`references`, or else `reference`: a text or a list of texts, in a text table also a JSON list."""
    field = "references" if "references" in cells else "reference"
    value = cells.get(field, ())
    if row.flat and isinstance(value, str) and value.lstrip().startswith("["):
        value = _listed(value)
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise DataError(f"{row.where}: {field} is {kind(value)}, not a text or a list of texts")
    texts = tuple(text for text in value if not absent(text))
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"{row.where}: one of {field} is {kind(text)}, not text")
    return texts


def _listed(cell: str) -> Any:
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
    if absent(value, flat=True):
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
        raise DataError(
            f"{where}: item {sample.item!r} of system {sample.system!r} is already at {first[key]}; "
            "each pair of item and system may come once (--map item=COLUMN,system=COLUMN names other columns)"
        )
    first[key] = where


def _check_found(found: bool, columns: Mapping[str, None], mapping: Mapping[str, str], name: str) -> None:
    """Refuses data without rows, and a mapping from a column that no row has."""
    if not found:
        raise DataError(f"{name}: no rows")
    for old in mapping.values():
        if columns and old not in columns:
            raise DataError(f"{name}: {unknown('column', old, list(columns))}")
