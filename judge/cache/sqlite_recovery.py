"""Rows of an SQLite file that SQLite no longer reads: whatever its pages and those of its log still hold.

After "Database File Format" (sqlite.org/fileformat2.html): a leaf of a table is a page that starts with 13, and has a
list of cells; a cell that does not fit goes on in a chain of other pages. Nothing else of the file is needed for that,
so a file without its header or its inner pages gives back its rows too.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

Value = int | float | str | bytes | None
_LEAF = 13
_USUAL_PAGE = 4096
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its type."""
_FLOAT, _ZERO, _ONE, _FIRST_BLOB = 7, 8, 9, 12


def rows(path: Path) -> Iterator[tuple[Value, ...]]:
    """Every row of every table that can be read from the file and its log, in no order; some twice, or deleted since.

    Raises OSError for a file that cannot be opened.
    """
    with ExitStack() as opened:
        main = _mapped(path, opened)
        size = _page_size(main)
        log = _mapped(path.with_name(path.name + "-wal"), opened)
        frames = _frames(log, size)

        def page(number: int) -> bytes:
            if number in frames:
                return bytes(log[frames[number] : frames[number] + size])
            return bytes(main[(number - 1) * size : number * size])

        numbers = sorted({*range(1, len(main) // size + 1), *frames})
        chains = _Chains(page, size, len(numbers))
        for number in numbers:
            yield from _leaf(page(number), 100 if number == 1 else 0, chains, size)


class _Chains:
    """The pages on which cells go on: of a file with `count` pages, in which a damaged chain may lead anywhere.

    All chains together are followed over no more than four times as many pages as there are.
    """

    def __init__(self, get: Callable[[int], bytes], size: int, count: int) -> None:
        self._get, self.size, self.count = get, size, count
        self._left = 4 * count

    def follow(self, number: int, length: int) -> Iterator[bytes]:
        """The contents of a chain of pages that hold so many bytes. Raises ValueError where it is broken."""
        if length > self.count * self.size:
            raise ValueError("a cell that is longer than the file")
        seen: set[int] = set()
        while length > 0:
            page = self._get(number) if number and number not in seen and self._left else b""
            if len(page) < self.size:
                raise ValueError("a chain of pages that ends too soon, or never")
            seen.add(number)
            self._left -= 1
            yield page[4 : 4 + min(length, self.size - 4)]
            length -= self.size - 4
            (number,) = struct.unpack_from(">I", page)


def _mapped(path: Path, opened: ExitStack) -> mmap.mmap | bytes:
    if not path.exists() or not path.stat().st_size:
        return b""
    file = opened.enter_context(path.open("rb"))
    return opened.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _page_size(main: mmap.mmap | bytes) -> int:
    told: int = struct.unpack(">H", main[16:18])[0] if main[:6] == b"SQLite" else _USUAL_PAGE
    told = 65536 if told == 1 else told
    return told if told >= 512 and told & (told - 1) == 0 else _USUAL_PAGE


def _frames(log: mmap.mmap | bytes, size: int) -> dict[int, int]:
    """Where in the log the newest version of each page is."""
    found = {}
    for at in range(_WAL_HEADER, len(log) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        number, salt = struct.unpack(">I4x8s", log[at : at + 16])
        if salt == log[16:24]:  # of this round of the log, not of one before
            found[number] = at + _FRAME_HEADER
    return found


def _leaf(page: bytes, start: int, chains: _Chains, size: int) -> Iterator[tuple[Value, ...]]:
    if len(page) < size or page[start] != _LEAF:
        return
    (count,) = struct.unpack_from(">H", page, start + 3)
    for place in range(min(count, (size - start - 8) // 2)):
        (at,) = struct.unpack_from(">H", page, start + 8 + 2 * place)
        try:
            length, at = _varint(page, at)
            _rowid, at = _varint(page, at)
            yield _record(_payload(page, at, length, chains, size))
        except (IndexError, ValueError, struct.error):
            continue


def _payload(page: bytes, at: int, length: int, chains: _Chains, size: int) -> bytes:
    """The bytes of a cell, its chain of pages followed. Raises ValueError where that is broken."""
    most = size - 35
    if length <= most:
        return page[at : at + length]
    least = (size - 12) * 32 // 255 - 23
    kept = least + (length - least) % (size - 4)
    kept = kept if kept <= most else least
    (following,) = struct.unpack_from(">I", page, at + kept)
    return b"".join([page[at : at + kept], *chains.follow(following, length - kept)])


def _record(payload: bytes) -> tuple[Value, ...]:
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise ValueError("a record whose parts are not as long as it says")
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in _INTEGERS:
        end = at + _INTEGERS[kind]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind == _FLOAT:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if kind < _FIRST_BLOB:
        return {0: None, _ZERO: 0, _ONE: 1}[kind] if kind in (0, _ZERO, _ONE) else None, at
    end = at + (kind - _FIRST_BLOB) // 2
    if end > len(payload):
        raise ValueError("a value that goes on beyond its record")
    return (payload[at:end].decode() if kind % 2 else payload[at:end]), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for place in range(9):
        byte = data[at + place]
        if place == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("no number")
