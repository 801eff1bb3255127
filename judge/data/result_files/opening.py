"""The beginning of a data file, by which a tool's result file is recognised."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.data.rows import RawRow, rows

_START = 1 << 20
"""Bytes of a file that are read first: enough for the first object of a list or the first line."""
_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known of a file before its rows are read.

    `document` is the object that a .json file consists of, `first` the first object of a list or of
    lines, `header` the columns of a text table, `members` the names in a zip archive.
    """

    path: Path
    name: str
    document: Mapping[str, Any] = field(default_factory=dict)
    first: Mapping[str, Any] = field(default_factory=dict)
    header: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    def rows(self) -> Iterator[RawRow]:
        """Yield the rows of a list, of lines or of a table. Raises DataError."""
        for row in rows(self.path):
            if isinstance(row, RawRow):
                yield row


def read_opening(path: Path, file_name: str) -> Opening | None:
    """Return the beginning of a file, None if it is of no kind that a tool writes.

    A damaged file is None, too: the reader of the rows says what is wrong.
    """
    try:
        return _read_opening(path, file_name)
    except (OSError, ValueError, RecursionError, csv.Error, zipfile.BadZipFile):
        return None


def _read_opening(path: Path, file_name: str) -> Opening | None:
    """Return the beginning of a file; a damaged file raises errors of several classes."""
    suffix = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(4)
        # Every zip archive begins so, and an Excel file is one.
        if start == b"PK\x03\x04" and suffix != ".xlsx":
            return Opening(path, file_name, members=_members(path))
        if suffix not in (".json", *_LINES, *_TABLES):
            return None
        start += file.readline() if suffix in _LINES else file.read(_START)
    # A character may be cut off at the end of what was read, and is ignored.
    text = start.decode("utf-8-sig", "ignore")
    if suffix in _TABLES:
        separator = "\t" if suffix == ".tsv" else ","
        return Opening(path, file_name, header=_header(text, separator))
    if suffix in _LINES:
        return Opening(path, file_name, first=_object(text))
    if text.lstrip().startswith("["):
        return Opening(path, file_name, first=_first_of_list(text))
    # Data are lists, so that nothing is read twice here.
    whole_text = path.read_text("utf-8-sig")
    return Opening(path, file_name, document=_object(whole_text))


def _members(path: Path) -> tuple[str, ...]:
    with zipfile.ZipFile(path) as archive:
        return tuple(archive.namelist())


def _header(text: str, separator: str) -> tuple[str, ...]:
    lines = text.splitlines(keepends=True)
    columns = next(csv.reader(lines, delimiter=separator), [])
    return tuple(column.strip() for column in columns)


def _object(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    return value if isinstance(value, dict) else {}


def _first_of_list(text: str) -> Mapping[str, Any]:
    """Return the first object of a list, which may be cut off after it."""
    inside = text.lstrip()[1:].lstrip()
    if not inside.startswith("{"):
        return {}
    value, _ = json.JSONDecoder().raw_decode(inside)
    return value if isinstance(value, dict) else {}
