"""Read the first sheet of an Excel file as a table of text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from judge.core.errors import DataError, MissingExtra

MOST_BYTES = 2**30
"""Of a file when it is unpacked: a small file can unpack to any size."""


def read_sheet(path: Path, file_name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of the first sheet that are not empty, each with its number.

    Cells are texts, as in a CSV file that Excel writes. Raises DataError and MissingExtra.
    """
    with _opened(path, file_name) as book:
        yield from _rows(book.worksheets[0])


def sheets_with_cells(path: Path, file_name: str) -> tuple[str, list[str]]:
    """Return the name of the first sheet, and the names of the others that have cells.

    Raises DataError and MissingExtra.
    """
    with _opened(path, file_name) as book:
        first, *others = book.worksheets
        return first.title, [sheet.title for sheet in others if any(_rows(sheet))]


@contextmanager
def _opened(path: Path, file_name: str) -> Iterator[Any]:
    """Open an Excel file; errors while it is open name the file."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtra(
            f"{file_name}: an Excel file needs the package openpyxl: pip install "
            "'textjudge[excel]', or save it as CSV UTF-8"
        ) from error
    try:
        with zipfile.ZipFile(path) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
        if n_bytes > MOST_BYTES:
            raise DataError(
                f"{file_name}: unpacks to {n_bytes:,} bytes, more than {MOST_BYTES:,}: save it as "
                "CSV"
            )
        # `data_only`: the values that Excel computed last, not the formulas.
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (zipfile.BadZipFile, KeyError, ValueError, SyntaxError) as error:
        raise DataError(f"{file_name}: not a readable .xlsx file: {error}") from error
    try:
        if not book.worksheets:
            raise DataError(f"{file_name}: has no sheet with cells")
        yield book
    except (KeyError, ValueError, SyntaxError, zipfile.BadZipFile) as error:
        raise DataError(f"{file_name}: not a readable .xlsx file: {error}") from error
    finally:
        book.close()


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a sheet that are not empty, each with its number."""
    sheet.reset_dimensions()  # some programs write wrong ones
    for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
        texts = [_text(cell) for cell in cells]
        # An empty row is no row, as in a CSV file.
        if any(texts):
            yield number, texts


def _text(cell: Any) -> str:
    """Return a cell as Excel writes it to CSV: 7 and not 7.0, TRUE and not True."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell)
