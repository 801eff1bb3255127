"""Files and frames to `Sample`s; what is wrong with them is said with file and line.

Long form has one row per item and system, wide form one column per system. A file is read row by row.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.errors import DataError
from judge.records import Sample
from judge.registry import unknown

if TYPE_CHECKING:
    import pandas as pd

FIELDS = ("item", "system", "output", "source", "references", "human")
_GUESSES = {
    "output": ("summary", "prediction", "response", "answer", "generated", "hypothesis", "candidate", "text"),
    "item": ("doc_id", "item_id", "document_id", "example_id"),
}


class _Row(NamedTuple):
    """One row as it was found. `flat`: from a text table, which has neither lists nor nulls."""

    where: str
    cells: Mapping[str, Any]
    flat: bool = False


def load(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | Sample],
    *,
    mapping: Mapping[str, str] = {},
    systems: Sequence[str] = (),
) -> list[Sample]:
    """The samples of a file (.jsonl, .ndjson, .json, .csv, .tsv, .parquet), a pandas DataFrame or an iterable.

    `mapping` names the data's columns for ours: {"output": "summary", "item": "doc_id"}; any other name on its
    left renames a further column. `systems` are the columns of wide form: each row gives one sample for each.
    Without an `item` column each row is its own item, where there is no `system` column either; without a
    `system` column the system is called `system`. Without `references` a column `reference` stands in. `human`
    is a mapping of ratings, a single number (then called `overall`), or columns such as `human.coherence`.
    Every other column goes to `extra`. Samples in an iterable pass through as they are.

    Raises DataError, with file and line, for whatever cannot be read so, and for two rows of one item and system.
    """
    if systems and (clash := [field for field in ("output", "system") if field in mapping]):
        raise DataError(f"systems names one output column per system, so that {clash[0]!r} cannot be mapped as well")
    samples: list[Sample] = []
    first: dict[tuple[str, str], str] = {}
    columns: dict[str, None] = {}
    for number, row in enumerate(_rows(data), 1):
        if isinstance(row, Sample):
            made = [row]
        else:
            columns.update(dict.fromkeys(row.cells))
            made = _samples(row, number, mapping, systems)
        for sample in made:
            _refuse_second(sample, sample.where or f"row {number}", first)
        samples += made
    _check_found(samples, columns, mapping, str(data) if isinstance(data, str | PathLike) else "the data")
    return samples


def digest(path: str | PathLike[str]) -> str:
    """sha256 of a file's bytes, in hex. Raises DataError where it cannot be read."""
    try:
        with _existing(Path(path), str(path)).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


# Rows to samples


def _samples(row: _Row, number: int, mapping: Mapping[str, str], systems: Sequence[str]) -> list[Sample]:
    """One sample, or in wide form one per system."""
    cells = _renamed(row.cells, mapping, row.where)
    _check_complete(cells, row.where, bool(systems))
    item = _name(cells.get("item", number), "item", row.where)
    shared = {name: value for name, value in cells.items() if name not in systems and not _absent(value, row.flat)}
    source = shared.get("source")
    if source is not None and not isinstance(source, str):
        raise DataError(f"{row.where}: source is {_kind(source)}, not text")
    references = _references(shared, row)
    human = _human(shared, row.where)
    extra = {n: v for n, v in shared.items() if n not in FIELDS and not n.startswith("human.")}
    if systems:
        named = [(system, _output(cells, system, row.where)) for system in systems]
    else:
        named = [(_name(cells.get("system", "system"), "system", row.where), _output(cells, "output", row.where))]
    return [Sample(item, system, output, source, references, human, extra, where=row.where) for system, output in named]


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
        raise DataError(f"{where}: {field} is {_kind(value)}: give each {field} a name or a number")
    return str(value)


def _output(cells: Mapping[str, Any], column: str, where: str) -> str:
    if column not in cells:
        raise DataError(f"{where}: {unknown('column', column, list(cells))}")
    value = cells[column]
    if _absent(value):
        raise DataError(f"{where}: {column} is null: write an empty string if the system wrote nothing")
    if not isinstance(value, str):
        raise DataError(f"{where}: {column} is {_kind(value)}, not text")
    return value


def _references(cells: Mapping[str, Any], row: _Row) -> tuple[str, ...]:
    """`references`, or else `reference`: a text or a list of texts, in a text table also a JSON list."""
    field = "references" if "references" in cells else "reference"
    value = cells.get(field, ())
    if row.flat and isinstance(value, str) and value.lstrip().startswith("["):
        value = _listed(value)
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise DataError(f"{row.where}: {field} is {_kind(value)}, not a text or a list of texts")
    texts = tuple(text for text in value if not _absent(text))
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"{row.where}: one of {field} is {_kind(text)}, not text")
    return texts


def _listed(cell: str) -> Any:
    """The JSON list of texts that a cell holds; the cell itself where it only starts with a bracket."""
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    return found if all(isinstance(text, str) for text in found) else cell


def _human(cells: Mapping[str, Any], where: str) -> dict[str, float]:
    given = cells.get("human", {})
    if isinstance(given, str) and given.lstrip().startswith("{"):
        given = _parsed(given, f"{where}: human")
    ratings = dict(given) if isinstance(given, Mapping) else {"overall": given}
    ratings |= {name.removeprefix("human."): value for name, value in cells.items() if name.startswith("human.")}
    numbers = {str(name): _rating(value, f"{where}: human rating {name!r}") for name, value in ratings.items()}
    return {name: number for name, number in numbers.items() if not math.isnan(number)}


def _rating(value: Any, what: str) -> float:
    """A rating as a number; NaN where there is none."""
    if _absent(value, flat=True):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if math.isinf(number):
        raise DataError(f"{what} is {value!r}, not a number (of several raters, give the mean)")
    return number


def _absent(value: Any, flat: bool = False) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or (flat and value == "")


def _kind(value: Any) -> str:
    """A value as messages name it."""
    if _absent(value):
        return "null"
    if isinstance(value, str):
        return "an empty string" if not value.strip() else f"the text {value[:40]!r}"
    return f"of type {type(value).__name__} ({str(value)[:40]})"


def _refuse_second(sample: Sample, where: str, first: dict[tuple[str, str], str]) -> None:
    key = sample.item, sample.system
    if key in first:
        raise DataError(
            f"{where}: item {sample.item!r} of system {sample.system!r} is already at {first[key]}; "
            "each pair of item and system may come once (--map item=COLUMN,system=COLUMN names other columns)"
        )
    first[key] = where


def _check_found(samples: Sequence[Sample], columns: Mapping[str, None], mapping: Mapping[str, str], name: str) -> None:
    """Refuses data without rows, and a mapping from a column that no row has."""
    if not samples:
        raise DataError(f"{name}: no rows")
    for old in mapping.values():
        if columns and old not in columns:
            raise DataError(f"{name}: {unknown('column', old, list(columns))}")


# Data to rows


def _rows(data: Any) -> Iterator[_Row | Sample]:
    if isinstance(data, str | PathLike):
        yield from _file_rows(Path(data), str(data))
    elif _is_frame(data):
        yield from _frame_rows(data)
    elif isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise DataError(f"data is {_kind(data)}, not a path, a DataFrame or an iterable of mappings")
    else:
        for number, row in enumerate(data, 1):
            if isinstance(row, Mapping):
                yield _Row(f"row {number}", {str(name): _plain(value) for name, value in row.items()})
            elif isinstance(row, Sample):
                yield row
            else:
                raise DataError(f"row {number} is {_kind(row)}, not a mapping or a Sample")


def _is_frame(data: Any) -> bool:
    """Whether this is a pandas DataFrame, found out without importing pandas."""
    kinds = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(data).__mro__)
    return ("pandas", "DataFrame") in kinds


def _plain(value: Any) -> Any:
    """numpy's arrays and numbers as Python's own."""
    return value.tolist() if hasattr(value, "tolist") else value


def _frame_rows(frame: pd.DataFrame) -> Iterator[_Row]:
    import pandas as pd

    names = [str(name) for name in frame.columns]
    _refuse_twins(names, "the data")
    for number, values in enumerate(frame.itertuples(index=False, name=None), 1):
        cells = {
            name: None if pd.api.types.is_scalar(value) and pd.isna(value) else _plain(value)
            for name, value in zip(names, values, strict=True)
        }
        yield _Row(f"row {number}", cells)


def _file_rows(path: Path, name: str) -> Iterator[_Row]:
    try:
        reader = _READERS.get(_existing(path, name).suffix.lower())
        if reader is None:
            raise DataError(f"{name}: {unknown('suffix', path.suffix, list(_READERS))}")
        yield from reader(path, name)
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror or error}") from error


def _existing(path: Path, name: str) -> Path:
    if path.is_dir():
        raise DataError(f"{name}: is a folder, not a file")
    if not path.exists():
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=3)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise DataError(f"{name}: no such file{hint}")
    return path


def _lines(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """Each line with where it is, as UTF-8 with or without a byte order mark."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{name}:{number}"
            try:
                yield where, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(f"{where}: not UTF-8 at byte {error.start + 1}: save the file as UTF-8") from error


def _parsed(text: str, where: str) -> Any:
    """The value of one line of JSON."""
    try:
        return json.loads(text.rstrip())
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a list 5,000 deep
        raise DataError(f"{where}: not JSON: {error}") from error


def _object(value: Any, where: str) -> _Row:
    if not isinstance(value, dict):
        raise DataError(f"{where}: is {_kind(value)}, not a JSON object with one row's columns")
    return _Row(where, value)


def _jsonl(path: Path, name: str) -> Iterator[_Row]:
    for where, line in _lines(path, name):
        if not line.isspace():
            yield _object(_parsed(line, where), where)


def _json(path: Path, name: str) -> Iterator[_Row]:
    text = "".join(line for _, line in _lines(path, name))
    try:
        rows = json.loads(text) if text.strip() else []
    except json.JSONDecodeError as error:
        hint = " (one object per line is called .jsonl)" if error.msg == "Extra data" else ""
        raise DataError(f"{name}:{error.lineno}: not JSON: {error.msg}{hint}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: not JSON: {error}") from error
    if not isinstance(rows, list):
        raise DataError(f"{name}: is {_kind(rows)}, not a list of objects, one per row")
    for number, row in enumerate(rows, 1):
        yield _object(row, f"{name} row {number}")


def _csv(path: Path, name: str) -> Iterator[_Row]:
    """Rows of a .csv or .tsv, each called by the line it starts on. Columns without a name are left out."""
    csv.field_size_limit(2**31 - 1)  # the default, 131,072 characters, is short of a long source
    dialect = "excel-tab" if path.suffix.lower() == ".tsv" else "excel"
    table = csv.reader((line for _, line in _lines(path, name)), dialect, strict=True)
    start = 1
    try:
        header = [column.strip() for column in next(table, [])]
        _refuse_twins(header, f"{name}:1")
        start = table.line_num + 1
        for cells in table:
            if cells and len(cells) != len(header):
                raise DataError(f"{name}:{start}: {len(cells)} cells under {len(header)} columns")
            if cells:
                row = {column: cell for column, cell in zip(header, cells, strict=True) if column}
                yield _Row(f"{name}:{start}", row, flat=True)
            start = table.line_num + 1
    except csv.Error as error:
        hint = "a cell with quotes, separators or line breaks in it must be quoted, and its own quotes doubled"
        raise DataError(f"{name}:{start}: {error}: {hint}") from error


def _refuse_twins(names: Sequence[str], where: str) -> None:
    if twins := [name for name in dict.fromkeys(names) if name and names.count(name) > 1]:
        raise DataError(f"{where}: two columns are called {twins[0]!r}")


def _parquet(path: Path, name: str) -> Iterator[_Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _refuse_twins(file.schema_arrow.names, name)
            batches = (batch.to_pylist(maps_as_pydicts="strict") for batch in file.iter_batches(1024))
            for number, cells in enumerate((row for rows in batches for row in rows), 1):
                yield _Row(f"{name} row {number}", cells)
    except (pa.ArrowException, KeyError) as error:  # KeyError: a map with one key twice
        raise DataError(f"{name}: not a readable Parquet file: {error}") from error


_READERS: dict[str, Callable[[Path, str], Iterator[_Row]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
}
