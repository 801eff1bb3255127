"""Store and record replies as they arrive, and answer with stored replies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain

from judge.cache import Cache
from judge.core.errors import StorageError
from judge.core.records import Request, Response
from judge.execution.layers import Layer, RunStopped
from judge.execution.layers.draws import draws_of, replies_of
from judge.execution.per_turn import PerTurn
from judge.providers.recording import Recorder

# Seconds in which replies are gathered for one transaction. A transaction takes longer than writing
# a reply (docs/decisions/0021-a-reply-counts-once-it-is-on-disk.md).
_PAUSE = 0.005
# Seconds that a run which an error ends waits for replies in flight, as after Ctrl-C.
_PATIENCE = 10.0


class ReplyStore:
    """The cache of a run, and its recording if there is one, for many requests at once.

    A request without an endpoint is never stored, because another model may answer it next time. If
    a reply cannot be stored, it is used nevertheless, and the next request raises the StorageError
    before it is sent. Replies from the cache are recorded, too.
    """

    def __init__(self, cache: Cache, recorder: Recorder | None = None) -> None:
        self._cache = cache
        self._recorder = recorder
        self._new: set[str] = set()
        self._failed: StorageError | None = None
        self._unstored: list[tuple[Request, Response]] = []
        self._in_flight = 0
        self._none_in_flight = asyncio.Event()
        self._none_in_flight.set()
        self._draining = False
        self._read = PerTurn(self._read_all)
        self._write = PerTurn(self._write_all, _PAUSE)

    async def get_all(
        self,
        requests: Sequence[Request],
        *,
        only_new: bool = False,
    ) -> list[Response | None]:
        """Return the stored reply to each request; with `only_new`, only this run's replies."""
        request_keys = [request.key() for request in requests if request.endpoint]
        if only_new:
            request_keys = [key for key in request_keys if key in self._new]
        stored: Mapping[str, Response] = {}
        if request_keys:
            stored = await self._read(tuple(request_keys))
        return [stored.get(request.key()) for request in requests]

    def record(self, request: Request, response: Response) -> None:
        """Record a reply that is used."""
        if self._recorder is not None:
            self._recorder.add(request, response)

    async def put(self, message: Request, response: Response) -> None:
        """Store the reply to each draw of a message. After that they survive this process."""
        draws = draws_of(message)
        reply_of_each_draw = replies_of(message, response)
        # A server may return fewer replies than the message has draws.
        replies = list(zip(draws, reply_of_each_draw, strict=False))
        self._record_all(replies)
        if not message.endpoint or not self._cache.keeps:
            return
        self._new.update(draw.key() for draw in draws)
        # Also if it was not recorded: the recording may be on another disk.
        try:
            await self._write(replies)
        except StorageError as error:
            self._failed = error

    def _record_all(self, replies: Sequence[tuple[Request, Response]]) -> None:
        if self._recorder is None:
            return
        for draw, reply in replies:
            self.record(draw, reply)
        try:
            self._recorder.flush()
        except StorageError as error:
            self._failed = error
            if self._cache.keeps:
                return
            for draw, reply in replies:
                if draw.endpoint:
                    self._unstored.append((draw, reply))

    def has_new(self, request: Request) -> bool:
        """Return whether this run has stored the reply to an equal request."""
        return request.key() in self._new

    @property
    def unstored(self) -> Sequence[tuple[Request, Response]]:
        """The replies that a new run would pay for again, because they could not be stored."""
        return self._unstored

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count a request as in flight until its reply is stored.

        Raises the StorageError of an earlier reply, and RunStopped after `drain`.
        """
        if self._failed is not None:
            raise self._failed
        if self._draining:
            raise RunStopped
        self._in_flight += 1
        self._none_in_flight.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._none_in_flight.set()

    async def drain(self) -> None:
        """Let nothing more be sent, and wait some seconds for the replies in flight.

        They are paid for, and the error that ends a run would cancel them.
        """
        self._draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._none_in_flight.wait()

    def flush(self) -> None:
        """Write what has not been written. Raises StorageError."""
        self._write.work_off()
        self._cache.flush()
        # Without a cache, only the recording has the replies.
        if self._recorder is not None and not self._cache.keeps:
            self._recorder.flush()
        self._unstored.clear()
        self._failed = None

    def _read_all(
        self, keys_of_each: Sequence[tuple[str, ...]]
    ) -> list[dict[str, Response]]:
        unique_keys = dict.fromkeys(chain.from_iterable(keys_of_each))
        stored = self._cache.get_many(list(unique_keys))
        return [stored] * len(keys_of_each)

    def _write_all(
        self, replies: Sequence[list[tuple[Request, Response]]]
    ) -> list[None]:
        new = list(chain.from_iterable(replies))
        self._unstored += new
        for request, response in new:
            self._cache.put(request.key(), response, request)
        # It also writes earlier replies that it could not write before.
        self._cache.flush()
        self._unstored.clear()
        return [None] * len(replies)


class Cached:
    """Answers with stored replies.

    With `only_new`, a reply counts only if this run has stored it: older ones are replaced.
    """

    def __init__(
        self,
        following: Layer,
        store: ReplyStore,
        *,
        only_new: bool = False,
    ) -> None:
        self._following = following
        self._store = store
        self._only_new = only_new

    async def ask(self, request: Request) -> Response:
        (stored,) = await self.stored([request])
        if stored is not None:
            self._store.record(request, stored)
            return stored
        return await self._following.ask(request)

    async def stored(self, requests: Sequence[Request]) -> list[Response | None]:
        """Return the stored reply to each request, if there is one that counts."""
        return await self._store.get_all(requests, only_new=self._only_new)


class Stored:
    """Stores and records each reply before it is returned.

    So no more replies can be lost than there are requests in flight
    (docs/decisions/0021-a-reply-counts-once-it-is-on-disk.md).
    """

    def __init__(self, following: Layer, store: ReplyStore) -> None:
        self._following = following
        self._store = store

    async def ask(self, request: Request) -> Response:
        with self._store.sending():
            response = await self._following.ask(request)
            await self._store.put(request, response)
        return response
