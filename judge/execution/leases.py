"""Request leases between processes that share a cache, and group commit of replies.

If several processes need the same reply, one of them sends the request and the others wait for it. A reply keeps its
request's place until it is on disk; many replies share one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

from judge.cache import Cache
from judge.core.errors import DeadlineReached
from judge.core.records import Request, Response
from judge.execution.progress import JudgeProgress

_POLL_SECONDS = 0.2
Part = tuple[str, Request]
"""The key of one reply, and the request for it alone."""


@dataclass(eq=False)
class RequestLeases:
    """The requests of one run that this process sends, and those that another process sends.

    A lease is acquired before the request and lasts until its reply is stored or abandoned. Requests leased elsewhere
    are looked up every 0.2 s: a reply goes to `on_found`, which returns whether it is of use; if the lease has ended,
    it is acquired here. To avoid deadlocks, a run sends all its own requests before it waits for others.

    `counts.batch_status` shows how many are awaited, until `deadline` (a time of the event loop's clock). If `on` is
    False, everything is sent here. `here` is a set of leased keys that several runs in this process share.
    """

    cache: Cache
    on_found: Callable[[str, Request, Response], bool]
    counts: JudgeProgress
    _: KW_ONLY
    deadline: float | None
    on: bool
    here: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._held: set[str] = set()
        self._completed: set[str] = set()
        self._awaited: dict[str, Request] = {}
        self._status = ""
        self._next = 0.0

    @property
    def waiting(self) -> bool:
        """Whether another process sends a request that is needed here."""
        return bool(self._awaited)

    def acquire(self, parts: Iterable[Part]) -> list[Part]:
        """Lease these, and return those to send here. `on_found` gets replies that have been stored meanwhile."""
        requests = dict(parts)
        if not self.on or not requests:
            return list(requests.items())
        elsewhere = self.here.intersection(requests) - self._held
        elsewhere |= self.cache.claim([key for key in requests if key not in elsewhere])
        mine = requests.keys() - elsewhere
        self._held |= mine
        self.here |= mine
        self._completed.difference_update(requests)
        cached = self.cache.get_many(list(requests))  # who held a lease until just now has stored the reply
        free, answered = [], []
        for key, request in requests.items():
            self._awaited.pop(key, None)
            if key in cached and self.on_found(key, request, cached[key]):
                answered.append(key)
            elif key in elsewhere:
                self._awaited[key] = request
            else:
                free.append((key, request))
        self.abandon(answered)
        self._update_status()
        return free

    def should_poll(self) -> bool:
        """Return whether it is time to `poll`."""
        return bool(self._awaited) and asyncio.get_running_loop().time() >= self._next

    def poll(self) -> list[Part]:
        """Look up what others send, and return what is now to be sent here."""
        try:
            return self.acquire(self._awaited.items())
        finally:
            self._next = asyncio.get_running_loop().time() + _POLL_SECONDS

    async def wait(self, news: asyncio.Event) -> None:
        """Wait for news, or at most 0.2 s if other processes are awaited too. Raises DeadlineReached."""
        if not self._awaited:
            await news.wait()
            return
        if self.deadline is not None and asyncio.get_running_loop().time() >= self.deadline:
            raise DeadlineReached("the time for judging (--deadline) is up")
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await news.wait()

    def complete(self, keys: Iterable[str]) -> None:
        """Mark these as stored or abandoned; the next `release` ends their leases."""
        if self._held:
            self._completed.update(keys)

    def release(self) -> None:
        """End the leases of completed requests. Call it after the cache's flush."""
        over, self._completed = self._completed, set()
        self.abandon(over)

    def abandon(self, keys: Iterable[str]) -> None:
        """End the leases of these at once."""
        if mine := self._held.intersection(keys):
            self._held -= mine
            self.here -= mine
            self.cache.release(list(mine))

    def close(self) -> None:
        """End all leases, and wait for nothing any more."""
        self._awaited.clear()
        self._update_status()
        self.abandon(list(self._held))

    def _update_status(self) -> None:
        count = len(self._awaited.keys() - self.here)
        status = f"{count:,} {'reply' if count == 1 else 'replies'} asked for by another run" if count else ""
        if status != self._status:
            self._status = self.counts.batch_status = status


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
