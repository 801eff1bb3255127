"""Parquet files that need more memory than they are worth: refused before they are read."""

from __future__ import annotations

from typing import Any

_ROWS_PER_BYTE = 10
"""The most rows that one byte of a file may stand for. Every row of real data has a name or a text of its own."""
_BYTES_PER_BYTE = 1_000
"""The most bytes that one byte of a file may be unpacked to."""
_ROWS_THAT_FIT = 10_000_000
_BYTES_THAT_FIT = 1_000_000_000
"""What is read however small its file is."""


def refuse_bomb(file: Any, size: int) -> None:
    """Raise ValueError for an open ParquetFile of so many bytes that stands for far too many rows or bytes."""
    metadata = file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    expanded = sum(group.total_byte_size for group in groups)
    if metadata.num_rows > max(_ROWS_THAT_FIT, size * _ROWS_PER_BYTE):
        raise ValueError(f"it claims {metadata.num_rows:,} rows in a file of {size:,} bytes")
    if expanded > max(_BYTES_THAT_FIT, size * _BYTES_PER_BYTE):
        raise ValueError(f"it claims {expanded:,} bytes in a file of {size:,} bytes")


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
