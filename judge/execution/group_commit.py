"""Group commit of replies: many share one write, and a reply keeps its request's place until it is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

_COMMIT_PAUSE = 0.005
"""Seconds between two writes: the longest time that a reply waits to be written."""


class GroupCommit:
    """Calls `write` once for all replies that arrive in one turn of the event loop, or in the 5 ms after a write.

    A write blocks the loop for about a quarter of a millisecond. For one event loop at a time.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._next: asyncio.Future[None] | None = None
        self._not_before = 0.0
        self._failed: Exception | None = None

    def schedule(self) -> asyncio.Future[None]:
        """Schedule a write, and return its future. Raises the error of an earlier write."""
        if self._failed is not None:
            raise self._failed
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            if self._not_before > loop.time():
                loop.call_at(self._not_before, self._flush_unless_done, self._next)
            else:
                loop.call_soon(self._flush_unless_done, self._next)
        return self._next

    def committed(self) -> asyncio.Future[None]:
        """Return a future that is done, or failed, with the next write. It may be cancelled alone."""
        waiter = asyncio.shield(self.schedule())
        waiter.add_done_callback(_mark_retrieved)
        return waiter

    def flush(self) -> None:
        """Write at once. Raises what `write` raises."""
        written, self._next = self._next, None
        try:
            self._write()
        except Exception as error:
            if written is not None:
                written.set_exception(error)
                _mark_retrieved(written)
            raise
        self._failed = None
        if written is not None:
            written.set_result(None)

    def _flush_unless_done(self, written: asyncio.Future[None]) -> None:
        if written is not self._next:  # `flush` came first
            return
        try:
            self.flush()
        except Exception as error:  # noqa: BLE001  (raised where it is waited for, and to whoever comes next)
            self._failed = error
        self._not_before = asyncio.get_running_loop().time() + _COMMIT_PAUSE


def _mark_retrieved(future: asyncio.Future[None]) -> None:
    """Read a future's error, so that asyncio does not report it as never retrieved."""
    with suppress(asyncio.CancelledError):
        future.exception()
