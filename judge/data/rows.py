"""Read rows from files, data frames and iterables, one at a time; errors name file and line.

The data may be one file or many shards, in a folder or matching a pattern, read in the order of
their names.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.core import merge_conflicts
from judge.core.errors import DataError
from judge.core.format import first_names, listed, plural
from judge.core.merge_conflicts import conflict_line
from judge.core.normalization import whole_value
from judge.core.parquet import refuse_bomb
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample
from judge.data.excel import read_sheet, sheets_with_cells
from judge.data.separators import SEPARATORS, find_separator, stated_separator

if TYPE_CHECKING:
    import pandas as pd

_GAPS_OF_PANDAS = ("NAType", "NaTType")
_TRIED_LINES = 200
"""Lines of a table by which its separator is found."""


class RawRow(NamedTuple):
    """One row as it was read.

    `flat` rows come from a text table, which has neither lists nor nulls.

    A cell of a `packed` row may hold a list as text: of a text table, or of a data frame that was
    read from one.
    """

    where: str
    cells: Mapping[str, Any]
    flat: bool = False
    packed: bool = False


def rows(data: Any) -> Iterator[RawRow | Sample]:
    """Yield the rows of a path, a pandas DataFrame or an iterable of mappings and Samples.

    Raises DataError.

    Lone surrogates, which JSON and Python allow and no file can hold, are U+FFFD from here on.
    """
    for number, row in enumerate(_rows(data), 1):
        try:
            if isinstance(row, RawRow):
                yield row._replace(cells=whole_value(row.cells))
            else:
                yield _whole(row)
        except RecursionError:
            raise _too_deep(row.where or f"row {number}") from None


def _whole(sample: Sample) -> Sample:
    """Return the sample without lone surrogates; itself if it has none."""
    changed: dict[str, Any] = {}
    for sample_field in fields(sample):
        value = getattr(sample, sample_field.name)
        clean_value = whole_value(value)
        if clean_value != value:
            changed[sample_field.name] = clean_value
    return replace(sample, **changed) if changed else sample


def _rows(data: Any) -> Iterator[RawRow | Sample]:
    """Yield the rows as they are written."""
    pandas: Any = sys.modules.get("pandas")  # who has a DataFrame has imported pandas
    if isinstance(data, str | PathLike):
        yield from _rows_of_files(data)
    elif pandas and isinstance(data, pandas.DataFrame):
        yield from _rows_of_frame(data)
    elif isinstance(data, Mapping):
        raise DataError(
            f"data is {type_name(data)}, not a list of rows: write [data] for a single row, or "
            "pandas.DataFrame(data) for columns"
        )
    elif not isinstance(data, Iterable):
        raise DataError(
            f"data is {type_name(data)}, not a path, a DataFrame or an iterable of mappings"
        )
    else:
        yield from _rows_of_iterable(data)


def _rows_of_files(data: str | PathLike[str]) -> Iterator[RawRow]:
    paths = files(data)
    for path, file_name in paths:  # before any is read
        if path.suffix.lower() not in SUFFIXES:
            problem = unknown_name_message("suffix", path.suffix, list(SUFFIXES))
            raise DataError(f"{file_name}: {problem}")
    for path, file_name in paths:
        read = _READERS[path.suffix.lower()]
        try:
            yield from read(path, file_name)
        except OSError as error:
            raise _unreadable(file_name, error) from error


def _unreadable(path_name: str, error: OSError) -> DataError:
    reason = error.strerror or error
    return DataError(f"{path_name}: cannot be read: {reason}")


def _rows_of_frame(frame: pd.DataFrame) -> Iterator[RawRow]:
    import pandas

    frame = _with_named_index(frame)
    columns = [str(column) for column in frame.columns]
    _refuse_duplicate_columns(columns, "the data")
    for number, row_values in enumerate(frame.itertuples(index=False, name=None), 1):
        location = f"row {number}"
        cells: dict[str, Any] = {}
        for column, value in zip(columns, row_values, strict=True):
            is_gap = pandas.api.types.is_scalar(value) and pandas.isna(value)
            cells[column] = None if is_gap else value
        yield RawRow(location, _plain_cells(cells, location), packed=True)


def _with_named_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with each named level of its index as a column.

    `set_index("item")` and `groupby` leave the items' names there.
    """
    names = enumerate(frame.index.names)
    levels = [
        level for level, name in names if name is not None and name not in frame.columns
    ]
    # Of two columns of one name, the error is ours.
    return frame.reset_index(level=levels, allow_duplicates=True) if levels else frame


def _rows_of_iterable(data: Iterable[Any]) -> Iterator[RawRow | Sample]:
    for number, row in enumerate(data, 1):
        location = f"row {number}"
        if isinstance(row, Mapping):
            cells = {str(column): value for column, value in row.items()}
            yield RawRow(location, _plain_cells(cells, location))
        elif isinstance(row, Sample | RawRow):
            yield row
        else:
            advice = ""
            if isinstance(row, str):
                advice = ': write {"output": TEXT} for each text'
            raise DataError(
                f"{location} is {type_name(row)}, not a mapping or a Sample{advice}"
            )


def _plain_cells(cells: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Return the cells with Python's own values. Raises DataError for one nested too deeply."""
    try:
        return {column: _plain_value(value) for column, value in cells.items()}
    except RecursionError:
        raise _too_deep(location) from None


def _too_deep(location: str) -> DataError:
    return DataError(f"{location}: a list or an object is nested too deeply")


def _plain_value(value: Any) -> Any:
    """Convert numpy's arrays and numbers to Python's own, at any depth.

    `pandas.read_parquet` gives a list of lists as an array of arrays. A gap of pandas is None.
    """
    if type(value).__name__ in _GAPS_OF_PANDAS:
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain_value(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain_value, value))
    return value


def _lines(path: Path, file_name: str) -> Iterator[tuple[str, str]]:
    """Yield each line with its location; the file is UTF-8 with or without a byte order mark."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            location = f"{file_name}:{number}"
            # Excel saves "CSV UTF-8" with a byte order mark.
            encoding = "utf-8-sig" if number == 1 else "utf-8"
            try:
                yield location, line.decode(encoding)
            except UnicodeDecodeError as error:
                in_excel = ""
                # Excel's plain "CSV" is in the system's encoding, such as Shift_JIS.
                if path.suffix.lower() == ".csv":
                    in_excel = " (in Excel: CSV UTF-8)"
                raise DataError(
                    f"{location}: not UTF-8 at byte {error.start + 1}: save the file as UTF-8"
                    f"{in_excel}"
                ) from error


def parsed(text: str | bytes, location: str) -> Any:
    """Parse one line of JSON. Raises DataError, also for an object with one key twice."""
    try:
        return json.loads(text.rstrip(), object_pairs_hook=_object_with_unique_keys)
    except _RepeatedKey as error:
        raise DataError(f"{location}: {error}") from error
    except json.JSONDecodeError as error:
        if conflict_line(text) is not None:
            raise DataError(f"{location}: {merge_conflicts.ADVICE}") from error
        raise DataError(
            f"{location}: not JSON: {_problem(error)} at column {error.colno}"
        ) from error
    # A number of 5,000 digits, a list 5,000 deep.
    except (ValueError, RecursionError) as error:
        raise DataError(f"{location}: not JSON: {error}") from error


class _RepeatedKey(ValueError):
    """An object of JSON has one key twice."""


def _object_with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises _RepeatedKey.

    Python's parser would take the last of two equal keys, and so lose a text or a rating.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key, count in counts.items() if count > 1)
        raise _RepeatedKey(
            f"the key {repeated!r} occurs twice in an object: remove one of them"
        )
    return content


def _problem(error: json.JSONDecodeError) -> str:
    """Return what is wrong, without the "at" before the position.

    JSON's own message is `Unterminated string starting at`.
    """
    return error.msg.removesuffix(" at").removesuffix(" starting")


def _row_of_object(value: Any, location: str) -> RawRow:
    if not isinstance(value, dict):
        raise DataError(
            f"{location}: is {type_name(value)}, not a JSON object with one row's columns"
        )
    return RawRow(location, value)


def _jsonl(path: Path, file_name: str) -> Iterator[RawRow]:
    for location, line in _lines(path, file_name):
        if line.isspace():
            continue
        # The first line of a list, or of an object over several lines.
        if line.strip() in ("[", "{"):
            raise _not_one_object(location)
        value = parsed(line, location)
        if isinstance(value, list):
            raise _not_one_object(location)
        yield _row_of_object(value, location)


def _not_one_object(location: str) -> DataError:
    advice = "save a list of objects as .json"
    return DataError(f"{location}: a line must hold one whole object; {advice}")


def _json(path: Path, file_name: str) -> Iterator[RawRow]:
    text = "".join(line for _, line in _lines(path, file_name))
    try:
        objects = []
        if text.strip():
            objects = json.loads(text, object_pairs_hook=_object_with_unique_keys)
    except _RepeatedKey as error:
        raise DataError(f"{file_name}: {error}") from error
    except json.JSONDecodeError as error:
        problem = _problem(error)
        if error.msg == "Extra data":
            problem += " (a file with one object per line must end in .jsonl)"
        raise DataError(f"{file_name}:{error.lineno}: not JSON: {problem}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file_name}: not JSON: {error}") from error
    if not isinstance(objects, list):
        content = type_name(objects)
        if isinstance(objects, dict):
            keys = first_names(objects)
            content = f"one object (keys: {keys})"
        raise DataError(
            f"{file_name}: is {content}, not a list of objects, one per row"
        )
    for number, row_object in enumerate(objects, 1):
        yield _row_of_object(row_object, f"{file_name} row {number}")


def _csv(path: Path, file_name: str) -> Iterator[RawRow]:
    """Yield the rows of a .csv or .tsv, located by their first line.

    Columns without a name are left out.
    """
    # The default, 131,072 characters, is short of a long source.
    former_limit = csv.field_size_limit(2**31 - 1)
    lines = (line for _, line in _lines(path, file_name))
    start = 1  # the first line of the row that is read
    try:
        first_lines = list(islice(lines, _TRIED_LINES))
        separator = stated_separator(first_lines[0]) if first_lines else None
        # The line that states a separator is no part of the table.
        n_skipped = 0 if separator is None else 1
        del first_lines[:n_skipped]
        if separator is None:
            usual = "\t" if path.suffix.lower() == ".tsv" else ","
            separator = find_separator(first_lines, usual)
        table = csv.reader(chain(first_lines, lines), delimiter=separator, strict=True)
        start = 1 + n_skipped
        header = [column.strip() for column in next(table, [])]
        _refuse_duplicate_columns(header, f"{file_name}:{start}")
        start = table.line_num + n_skipped + 1
        for cells in table:
            if cells:
                location = f"{file_name}:{start}"
                _refuse_other_length(cells, header, location, separator)
                row = _named_cells(header, cells)
                yield RawRow(location, row, flat=True, packed=True)
            # A cell may have line breaks, so that a row does not take one line.
            start = table.line_num + n_skipped + 1
    except csv.Error as error:
        problem = _problem_of_table(error)
        raise DataError(f"{file_name}:{start}: {problem}") from error
    finally:
        csv.field_size_limit(former_limit)


def _problem_of_table(error: csv.Error) -> str:
    """Say what is wrong with a table of text, and what to do."""
    problem = str(error)
    if "new-line character" in problem:
        # Python's advice is for programmers.
        return (
            "a line break is a carriage return (CR) alone: save the file with the line breaks of "
            "Unix or Windows, or put the cell in quotes"
        )
    return (
        f"{problem}: a cell with quotes, separators or line breaks in it must be quoted, and its "
        "own quotes doubled"
    )


def _named_cells(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    """Return the cells by column, without columns that have no name."""
    named = zip(header, cells, strict=True)
    return {column: cell for column, cell in named if column}


def _refuse_other_length(
    cells: Sequence[str],
    header: Sequence[str],
    location: str,
    separator: str,
) -> None:
    """Raise DataError unless a row has as many cells as the header."""
    if len(cells) != len(header):
        separator_name = SEPARATORS.get(separator, separator)
        problem = _problem_of_length(cells, header)
        raise DataError(f"{location}: {problem}; the separator is a {separator_name}")


def _problem_of_length(cells: Sequence[str], header: Sequence[str]) -> str:
    n_cells = plural(len(cells), "cell")
    n_columns = plural(len(header), "column")
    return f"{n_cells} under {n_columns}"


def _excel(path: Path, file_name: str) -> Iterator[RawRow]:
    """Yield the rows of the first sheet of an .xlsx. Columns without a name are left out."""
    header: list[str] | None = None
    for number, cells in read_sheet(path, file_name):
        if header is None:
            header = [column.strip() for column in cells]
            _refuse_duplicate_columns(header, f"{file_name} row {number}")
            continue
        if any(cells[len(header) :]):
            problem = _problem_of_length(cells, header)
            raise DataError(
                f"{file_name} row {number}: {problem}: the first row must name every column, "
                "without merged cells and without a title above it"
            )
        # Empty cells at the end of a row are missing, or more than there are columns.
        n_missing = max(0, len(header) - len(cells))
        padded = [*cells[: len(header)], *[""] * n_missing]
        row = _named_cells(header, padded)
        yield RawRow(f"{file_name} row {number}", row, flat=True, packed=True)
    if header is None:
        first_sheet, others = sheets_with_cells(path, file_name)
        if others:
            raise DataError(
                f"{file_name}: its first sheet, {first_sheet}, is empty, and only the first "
                f"is read: move {others[0]} to the front"
            )


def unread_sheets(data: object) -> Iterator[str]:
    """Yield a note on each Excel file of a path that has cells beyond its first sheet.

    There is none on a path without such a file, and on anything that is no path.
    """
    if not isinstance(data, str | PathLike) or not Path(data).exists():
        return
    for path, file_name in files(data):
        if path.suffix.lower() != ".xlsx":
            continue
        first_sheet, others = sheets_with_cells(path, file_name)
        if others:
            unread = listed(others)
            yield (
                f"Only the first sheet of {file_name}, {first_sheet}, is read, not "
                f"{unread}: to read another sheet, save it as a CSV file."
            )


def _refuse_duplicate_columns(columns: Sequence[str], location: str) -> None:
    """Raise DataError if two columns have one name; several may have none."""
    for column, count in Counter(columns).items():
        if column and count > 1:
            raise DataError(f"{location}: two columns are called {column!r}")


def _parquet(path: Path, file_name: str) -> Iterator[RawRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            refuse_bomb(file, path.stat().st_size)
            _refuse_duplicate_columns(file.schema_arrow.names, file_name)
            number = 0
            # In small batches, because a file may be larger than the memory.
            for batch in file.iter_batches(1024):
                for cells in batch.to_pylist(maps_as_pydicts="strict"):
                    number += 1
                    yield RawRow(f"{file_name} row {number}", cells)
    except MemoryError as error:
        raise DataError(
            f"{file_name}: needs more memory to read than is available"
        ) from error
    # A map with one key twice, a text that is not UTF-8, a date or duration beyond Python's.
    except (pa.ArrowException, KeyError, ValueError, OverflowError) as error:
        raise DataError(f"{file_name}: not a readable Parquet file: {error}") from error


_READERS: dict[str, Callable[[Path, str], Iterator[RawRow]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".tsv": _csv,
    ".xlsx": _excel,
    ".parquet": _parquet,
}


def is_missing(value: Any, flat: bool = False) -> bool:
    """Return whether a cell is empty: null, NaN or, in a text table, the empty string."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return bool(flat and value == "")


def is_empty(value: Any) -> bool:
    """Return whether a value says nothing.

    These are no value, a blank text, or a list or mapping without a member.
    """
    if isinstance(value, str):
        return not value or value.isspace()
    return is_missing(value) or (isinstance(value, list | tuple | dict) and not value)


def with_whole_number(value: Any) -> Any:
    """Return a whole number as an int, and any other value as it is.

    pandas reads 7 as 7.0 if other cells of the column are empty, and databases write Decimal("7").
    """
    is_number = isinstance(value, float | Decimal) and math.isfinite(value)
    return int(value) if is_number and value == int(value) else value


def type_name(value: Any) -> str:
    """Describe a value for messages."""
    if is_missing(value):
        return "null"
    if isinstance(value, str):
        return "an empty string" if not value.strip() else f"the text {value[:40]!r}"
    return f"of type {type(value).__name__} ({str(value)[:40]})"


SUFFIXES = tuple(_READERS)
"""Of the files that are data."""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
# "s3://bucket", and "s3:/bucket", as a `Path` writes it; but not "C:/data", which is a drive
_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/{1,2}(?=[^/])")
_RUN_FILES = ("run.json", "scores.parquet")
"""What makes a folder that of a run."""


def files(data: str | PathLike[str]) -> list[tuple[Path, str]]:
    """Return the files of a path, each with its name in messages.

    A path is one file, a folder or a pattern; the files of the last two are sorted. A folder gives
    its files of the kinds that can be read, except hidden ones; its subfolders are not read. A
    pattern (`*`, `?`, `[...]`, `**` for any folders) gives every file that matches, except hidden
    ones; an existing file with exactly this name gives itself. Raises DataError if there is no
    file, for a pipe, for the folder of a run, for a folder with compressed data, and for an address.
    """
    if is_address(data):
        # The whole address is not repeated: it may have a password or a signature.
        scheme = str(data).partition(":")[0]
        raise DataError(
            f"{scheme}://…: only local files are read: download it, or load it with "
            "pandas.read_parquet(url) or pandas.read_csv(url) and give judge.evaluate the "
            "data frame"
        )
    path = Path(data)
    path_name = str(data)
    try:
        if path.is_dir():
            return _files_of_folder(path, path_name)
        if path.is_file():
            return [(path, path_name)]
        if path.exists():
            # A pipe can be read once, and blocks until somebody writes to it.
            raise DataError(
                f"{path_name}: not a regular file, and judge reads data more than once: write the "
                "rows to a file first"
            )
        if _is_pattern(path):
            return _files_of_pattern(path, path_name)
        raise DataError(f"{path_name}: no such file{nearby(path)}")
    except OSError as error:
        raise _unreadable(path_name, error) from error


def _files_of_folder(folder: Path, folder_name: str) -> list[tuple[Path, str]]:
    """Return the data files of a folder. Raises DataError."""
    if _is_run(folder):
        raise DataError(
            f"{folder_name}: this is the folder of a run, not data; name the data that the run "
            "judged"
        )
    for file in sorted(folder.iterdir()):
        # Without this, a folder of part-1.csv and part-2.csv.gz would give half of its data.
        if file.name[0] != "." and _is_compressed_data(file):
            raise DataError(
                f"{folder_name}: {file.name} is compressed: unpack it, or name the files to read "
                "by a pattern"
            )
    shards = sorted(_shards(folder))
    if not shards:
        hint_on_subfolders = f"its subfolders are read as '{folder}/**/*.csv'"
        known_suffixes = ", ".join(SUFFIXES)
        raise DataError(
            f"{folder_name}: no data in this folder (known: {known_suffixes}); {hint_on_subfolders}"
        )
    return [(file, str(file)) for file in shards]


def _is_compressed_data(file: Path) -> bool:
    """Return whether a file's name is that of compressed data, such as part-2.csv.gz."""
    inner_suffix = Path(file.stem).suffix.lower()
    return file.suffix.lower() in _COMPRESSED and inner_suffix in SUFFIXES


def _files_of_pattern(path: Path, pattern: str) -> list[tuple[Path, str]]:
    """Return the files that match a pattern, without hidden ones. Raises DataError."""
    root = _existing_part(path)
    pattern_in_root = str(path.relative_to(root))
    try:
        matching = {file for file in root.glob(pattern_in_root) if file.is_file()}
    except ValueError as error:
        raise DataError(f"{pattern}: {error}") from error
    visible = sorted(
        file for file in matching if not _is_hidden(file.relative_to(root))
    )
    if not visible:
        folder = root.resolve() if root == Path() else root
        raise DataError(f"{pattern}: no file in {folder} matches this pattern")
    return [(file, str(file)) for file in visible]


def _is_hidden(file: Path) -> bool:
    """Return whether a file or one of its folders is hidden."""
    return any(part[0] == "." for part in file.parts)


def is_address(data: object) -> bool:
    """Return whether this is an address and no path of this machine: `s3://bucket/data.csv`."""
    return _ADDRESS.match(str(data)) is not None


def nearby(path: Path) -> str:
    """Return why a path has no file: it is a broken link, or has another name in its folder."""
    folder = path.parent
    if not folder.is_dir():
        return ""
    if path.is_symlink():
        return f"; it is a link to {path.readlink()}, which is missing"
    names_in_folder = [neighbour.name for neighbour in folder.iterdir()]
    similar_names = difflib.get_close_matches(path.name, names_in_folder, n=1)
    return f"; did you mean {similar_names[0]!r}?" if similar_names else ""


def is_data(path: Path) -> bool:
    """Return whether this is a file, or a folder that holds shards and is no run."""
    if not path.is_dir():
        return True
    if _is_run(path):
        return False
    return next(_shards(path), None) is not None


def content_hash(data: str | PathLike[str]) -> str:
    """Return the sha256 of a file, in hex.

    For several files it is that of the lines of their digests, by name. Raises DataError if a file
    cannot be read.
    """
    digests: list[str] = []
    for path, file_name in files(data):
        try:
            with path.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError as error:
            raise _unreadable(file_name, error) from error
    if len(digests) == 1:
        # This is what sha256sum prints.
        return digests[0]
    lines = "".join(f"{digest}\n" for digest in digests)
    return hashlib.sha256(lines.encode()).hexdigest()


def dataset_name(data: str | PathLike[str]) -> str:
    """Return the name for results.

    It is a file's name without its suffix, or the name of the shards' folder.
    """
    path = Path(data)
    if path.is_dir() or (_is_pattern(path) and not path.exists()):
        return _existing_part(path).resolve().name or "data"
    return path.stem


def _is_pattern(path: Path) -> bool:
    return any(sign in str(path) for sign in "*?[")


def _shards(folder: Path) -> Iterator[Path]:
    visible = (file for file in folder.iterdir() if not file.name.startswith("."))
    return (
        file for file in visible if file.suffix.lower() in SUFFIXES and file.is_file()
    )


def _is_run(folder: Path) -> bool:
    return any((folder / file_name).exists() for file_name in _RUN_FILES)


def _existing_part(path: Path) -> Path:
    """Return the longest part of a path that exists.

    A name with brackets is not always a pattern.
    """
    return next(parent for parent in (path, *path.parents) if parent.exists())
