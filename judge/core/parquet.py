"""Refuse Parquet files that would need far too much memory before they are read."""

from __future__ import annotations

from typing import Any

# The most rows per byte of a file. Every row of real data has a name or a text of its own.
_ROWS_PER_BYTE = 10
# The most unpacked bytes per byte of a file.
_BYTES_PER_BYTE = 1_000
# Up to these sizes, a file is read however small it is.
_ROWS_THAT_FIT = 10_000_000
_BYTES_THAT_FIT = 1_000_000_000


def refuse_bomb(file: Any, size: int) -> None:
    """Raise ValueError for an open ParquetFile of `size` bytes with far too many rows or bytes."""
    metadata = file.metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    expanded = sum(group.total_byte_size for group in groups)
    if metadata.num_rows > max(_ROWS_THAT_FIT, size * _ROWS_PER_BYTE):
        raise ValueError(
            f"it claims {metadata.num_rows:,} rows in a file of {size:,} bytes"
        )
    if expanded > max(_BYTES_THAT_FIT, size * _BYTES_PER_BYTE):
        raise ValueError(f"it claims {expanded:,} bytes in a file of {size:,} bytes")


def texts_of(column: Any) -> list[Any]:
    """Return the cells of an Arrow column. Equal cells of a dictionary are a single object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    cells: list[Any] = []
    for chunk in column.chunks:
        values = chunk.dictionary.to_pylist()
        indices = chunk.indices.to_pylist()
        cells += [None if index is None else values[index] for index in indices]
    return cells
