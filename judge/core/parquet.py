"""Parquet files that need more memory than they are worth: refused before they are read."""

from __future__ import annotations

from typing import Any

_MOST_EXPANDED = 1_000
"""Rows, and bytes, that one byte of a file may stand for. Real data have some ten bytes for a row."""
_ALWAYS_FITS = 100_000_000
"""Rows or bytes that are read whatever the size of their file."""


def refuse_bomb(file: Any, size: int) -> None:
    """Raise ValueError for an open ParquetFile of so many bytes that stands for far too many rows or bytes."""
    metadata = file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    expanded = sum(group.total_byte_size for group in groups)
    for number, unit in ((metadata.num_rows, "rows"), (expanded, "bytes")):
        if number > max(_ALWAYS_FITS, size * _MOST_EXPANDED) or number < 0:
            raise ValueError(f"it claims {number:,} {unit} in a file of {size:,} bytes")


def texts_of(column: Any) -> list[Any]:
    """Return the cells of an Arrow column. Equal cells of a dictionary are one object, however many they are."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    cells: list[Any] = []
    for chunk in column.chunks:
        values = chunk.dictionary.to_pylist()
        cells += [None if place is None else values[place] for place in chunk.indices.to_pylist()]
    return cells
