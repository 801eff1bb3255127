"""Group commit: a reply keeps its request's place until it is on disk, and many replies share one write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

_REST = 9
"""Times a write's own length that the loop gets before the next one."""
_MOST_REST = 0.5
"""Seconds of that at most: whoever waits for the next one keeps its place."""


class GroupCommit:
    """Calls `write` once for all that gathers in a turn of the event loop, and no more than a tenth of the time
    as long as writes take less than a twentieth of a second.

    A write blocks the loop, for about a quarter of a millisecond on an ordinary disk; so the slower the disk, the more
    replies share a write. For one event loop at a time.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._next: asyncio.Future[None] | None = None
        self._not_before = 0.0
        self._failed: Exception | None = None

    def schedule(self) -> asyncio.Future[None]:
        """Have what there is now written; the future of that. Raises what an earlier write raised."""
        if self._failed is not None:
            raise self._failed
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            if self._not_before > loop.time():
                loop.call_at(self._not_before, self._turn, self._next)
            else:
                loop.call_soon(self._turn, self._next)
        return self._next

    def committed(self) -> asyncio.Future[None]:
        """Done once what there is now is written; it raises what that raises. Who stops waiting stops nobody else."""
        waiter = asyncio.shield(self.schedule())
        waiter.add_done_callback(_seen)
        return waiter

    def flush(self) -> None:
        """Write at once. Raises what `write` raises."""
        written, self._next = self._next, None
        try:
            self._write()
        except Exception as error:
            if written is not None:
                written.set_exception(error)
                _seen(written)
            raise
        self._failed = None
        if written is not None:
            written.set_result(None)

    def _turn(self, written: asyncio.Future[None]) -> None:
        if written is not self._next:  # `now` came first
            return
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            self.flush()
        except Exception as error:  # noqa: BLE001  (raised where it is waited for, and to whoever comes next)
            self._failed = error
        end = loop.time()
        self._not_before = end + min(_MOST_REST, _REST * (end - start))


def _seen(future: asyncio.Future[None]) -> None:
    """What nobody has to wait for need not be complained about."""
    with suppress(asyncio.CancelledError):
        future.exception()
