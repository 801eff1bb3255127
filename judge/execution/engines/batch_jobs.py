"""Requests on their way into batches: packed, uploaded and created, each step on disk before the next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from tempfile import TemporaryFile
from typing import IO, TypeVar

from judge.core.errors import StorageError, Transient
from judge.core.records import Request, Usage
from judge.execution import token_estimate
from judge.execution.budget import Purse
from judge.execution.engines.batch_state import Part, Parts, plain_key
from judge.execution.progress import Counts
from judge.providers.batch_api import MOST_BYTES, MOST_REQUESTS, Batch, Batches, line
from judge.providers.pricing import BATCH

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
SOONEST, LATEST = 1.0, 60.0
"""Seconds between two tries, or two looks: the first ones, and the most."""
_TRIES = 8


class Outbox:
    """What one judge has at its Batch API: `parts` by their names, `states` as they were last seen.

    `held` are parts that are uploaded and wait for room in the provider's queue, of which one batch may take
    `most_tokens`, where that is known. Until `led` nothing is packed: nobody knows yet what the server accepts.
    """

    def __init__(
        self, api: Batches, folder: Parts, counts: Counts, purse: Purse | None, *,
        sleep: Sleep = asyncio.sleep, most_requests: int = MOST_REQUESTS, most_bytes: int = MOST_BYTES,
    ) -> None:  # fmt: skip
        self.api, self.folder, self.counts, self.sleep = api, folder, counts, sleep
        self.parts: dict[str, Part] = {}
        self.states: dict[str, Batch] = {}
        self.held: list[Part] = []
        self.most_tokens: int | None = None
        self.led = False
        self._most_requests, self._most_bytes = most_requests, most_bytes
        self._purse = purse
        self._kept: dict[str, float] = {}

    @property
    def open(self) -> list[Part]:
        """The parts that something is wanted of."""
        return [part for part in self.parts.values() if part.wanted]

    def take_in(self) -> None:
        """Know the parts that other processes have left, or are just waiting for."""
        self.parts |= {part.name: part for part in self.folder.load(self.parts)}

    def claimed(self, request: Request) -> bool:
        """Whether a request is in one of the parts, of which it is wanted from now on."""
        plain = plain_key(request)
        return any(part.claim(plain, request) for part in self.parts.values())

    async def submit(self, fresh: list[Request]) -> list[Request]:
        """Send what is not on its way yet; what cannot go, before the first one or beyond the budget, comes back.

        No other process does so meanwhile: no request is put in by two.
        """
        async with self.folder.locked(self.sleep):
            self.take_in()
            rest = deque(request for request in fresh if not self.claimed(request))
            for part in [part for part in self.open if not part.batch and part not in self.held]:
                rest.extend(await self._recovered(part))
            while rest and self.led:
                with TemporaryFile() as file:
                    part = self._packed(rest, file)
                    if not part.asked:
                        break
                    self.parts[part.name] = part
                    self.folder.save(part)
                    await self._upload(part, file)
                if self.most_tokens is None:
                    await self._create(part)
                else:
                    self.held.append(part)
        return list(rest)

    async def again(self, part: Part) -> None:
        """Have the file of a held part worked off, unless another process has seen to that."""
        async with self.folder.locked(self.sleep):
            found = await self.patiently(lambda: self.api.find(part.name))
            if found is None:
                await self._create(part)
            else:
                self._under_way(part, found)

    def drop(self, part: Part) -> list[Request]:
        """Forget a part; what was wanted of it has to be had another way."""
        self.folder.forget(part)
        del self.parts[part.name]
        self.states.pop(part.name, None)
        return list(part.wanted.values())

    def settle(self, part: Part) -> None:
        """Forget what has been answered of a part, and with the last of it the part."""
        if part.asked:
            self.folder.save(part)
        else:
            self.drop(part)

    def paid(self, request: Request, used: Usage) -> None:
        """A batch has answered a request."""
        self.counts.batched += used
        if self._purse and (kept := self._kept.pop(request.key(), None)) is not None:
            self._purse.settle(kept, request, used, BATCH)

    def unpaid(self, request: Request) -> None:
        """A batch has not answered a request, and is not paid for it."""
        if self._purse and (kept := self._kept.pop(request.key(), None)) is not None:
            self._purse.give_back(kept)

    async def patiently(
        self, call: Callable[[], Awaitable[T]], find: Callable[[], Awaitable[T | None]] | None = None
    ) -> T:
        """What the call returns, tried again after a Transient; `find` looks whether it had not worked after all."""
        wait, failed = SOONEST, 0
        while True:
            try:
                if failed and find is not None and (found := await find()) is not None:
                    return found
                return await call()
            except Transient as error:
                failed += 1
                if failed >= _TRIES:
                    error.stops = "always"
                    raise
                await self.sleep(min(max(error.retry_after or 0.0, wait), LATEST))
                wait *= 2

    def _packed(self, rest: deque[Request], file: IO[bytes]) -> Part:
        """A part with as many of these as one file may hold and the budget pays for, which are taken off `rest`."""
        part, size, read = self.folder.new(), 0, 0
        try:
            while rest and len(part.asked) < self._most_requests:
                body, read = self.api.body(rest[0]), read + token_estimate.of(rest[0])
                written = line(rest[0], body)
                if size and (size + len(written) > self._most_bytes or read > (self.most_tokens or read)):
                    break
                if not self._paid_for(rest[0]):
                    break
                size += file.write(written)
                part.add(rest.popleft(), body)
        except OSError as error:
            raise StorageError(f"a file of requests cannot be written: {error.strerror or error}") from error
        return part

    def _paid_for(self, request: Request) -> bool:
        key = request.key()
        if self._purse is not None and key not in self._kept:
            kept = self._purse.keep(request, BATCH)
            if kept is None:
                return False
            self._kept[key] = kept
        return True

    async def _upload(self, part: Part, file: IO[bytes]) -> None:
        part.file = await self.patiently(lambda: self.api.upload(part.name, file), lambda: self.api.uploaded(part.name))
        self.folder.save(part)

    async def _create(self, part: Part) -> None:
        batch = await self.patiently(lambda: self.api.create(part.name, part.file), lambda: self.api.find(part.name))
        self.counts.sent += len(part.wanted)
        self._under_way(part, batch)

    def _under_way(self, part: Part, batch: Batch) -> None:
        part.batch, self.states[part.name] = batch.id, batch
        self.folder.save(part)

    async def _recovered(self, part: Part) -> list[Request]:
        """Find a part again whose process died while it was sending it; its requests, where nothing had been sent."""
        if batch := await self.patiently(lambda: self.api.find(part.name)):
            self._under_way(part, batch)
            return []
        if not part.file:
            found = await self.patiently(lambda: self.api.uploaded(part.name))
            if found is None:
                return self.drop(part)
            part.file = found
        await self._create(part)
        return []
