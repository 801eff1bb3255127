"""Read the body of a reply, with limits for one body and for all that are being read.

A compressed body of a few kilobytes may unpack to gigabytes, so bytes are counted as they arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from judge.core.errors import Refused

MAX_REPLY_BYTES = 64_000_000
"""Bytes of one reply, unpacked. 20 probabilities for each of 4,096 tokens take some 7 million."""
# Bytes of all replies that are being read: many large ones at once may be zip bombs.
_MAX_TOTAL_BYTES = 4 * MAX_REPLY_BYTES
# A reply up to this many bytes is read even if the others together exceed their limit.
_SMALL_REPLY_BYTES = 1_000_000
# The bytes read so far of each reply that is being read, by the reply's id().
_bytes_in_flight: dict[int, int] = {}


async def read_body(
    reply: Any,
    url: str,
    max_bytes: int,
    take: Callable[[bytes], object],
) -> None:
    """Pass the parts of a body, decompressed, to `take`.

    Raises Refused for a body of more than `max_bytes`, and for a large one if all that are being
    read take more than `_MAX_TOTAL_BYTES`.
    """
    try:
        await _read_parts(reply, url, max_bytes, take)
    finally:
        _bytes_in_flight.pop(id(reply), None)


async def read_whole_body(
    reply: Any, url: str, max_bytes: int = MAX_REPLY_BYTES
) -> bytes:
    """Return a body, decompressed. Raises Refused like `read_body`."""
    parts: list[bytes] = []
    await read_body(reply, url, max_bytes, parts.append)
    return b"".join(parts)


async def _read_parts(
    reply: Any,
    url: str,
    max_bytes: int,
    take: Callable[[bytes], object],
) -> None:
    size = 0
    # A file of batch answers alone may be larger than the usual limit of all replies.
    max_total_bytes = max(_MAX_TOTAL_BYTES, max_bytes)
    async with aclosing(reply.aiter_bytes()) as parts:
        async for part in parts:
            size += len(part)
            _bytes_in_flight[id(reply)] = size
            is_large = size > _SMALL_REPLY_BYTES
            if is_large and sum(_bytes_in_flight.values()) > max_total_bytes:
                limit = _megabytes(max_total_bytes)
                together = f"more than {limit} together"
                problem = f"answered several requests at once with {together}"
                raise _too_large(reply, url, problem)
            if size > max_bytes:
                limit = _megabytes(max_bytes)
                problem = f"answered with more than {limit}, which no judge's reply has"
                raise _too_large(reply, url, problem)
            take(part)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _too_large(reply: Any, url: str, problem: str) -> Refused:
    return Refused(
        f"{url} {problem}; is the address right?",
        status=reply.status_code,
        billed=True,
        stops="if_first",
    )
