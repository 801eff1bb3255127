"""The OpenAI Batch API as an engine: the first request online, all others of a round in files, leftovers online."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from itertools import islice
from tempfile import TemporaryFile
from typing import Any, Self

from judge.core.errors import ConfigError, DeadlineReached, ProviderError, Refused, Transient
from judge.core.records import Request, Response
from judge.execution import budget, engines
from judge.execution.budget import BudgetLedger
from judge.execution.engines import Ask, Done, EngineContext
from judge.execution.engines.batch_jobs import FOLDER, LATEST, SOONEST, BatchJob, BatchJobs, BatchJobStore
from judge.providers import Capabilities
from judge.providers.pricing import BATCH

Online = Callable[[Iterable[Request]], Coroutine[Any, Any, None]]
Later = Callable[[Iterable[Request]], object]
_WAIT_GROWTH = 1.5
"""By how much the wait for the next look at batches grows, as long as none of them has ended."""
_MAX_FAILED_LOOKS = 120
"""Looks in a row, of a minute each once the waits have grown, after which an unreachable server is given up."""
_CHUNK = 64
_QUEUE_SHARE = 0.8
"""How much of the provider's queue one batch may take by our estimate of its tokens."""
_LIMIT = re.compile(r"limit\D{0,40}?(\d[\d,]*)\s*([KMB]?)(?![\w.])", re.I)
_MULTIPLIERS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}


class BatchEngine:
    """One judge's requests through the Batch API.

    The first request of a run goes online and alone: what it teaches stands in the bodies of all others, which are sent
    in as few files as the limits allow. What a batch does not answer goes online. Whatever is under way is on disk
    before it is waited for: after a kill the next run finds it again, by its name at the provider if the process died
    between the two, and uploads nothing twice. Cancelled, it leaves its batches running.
    """

    gathers = True

    def __init__(self, outbox: BatchJobs, ledger: BudgetLedger | None = None, deadline: float | None = None) -> None:
        self._jobs, self._counts = outbox, outbox.counts
        self._ledger, self._deadline = ledger, deadline
        self._failed_looks = 0
        self._begun = False

    @classmethod
    def open(cls, context: EngineContext) -> Self:
        """The engine of a run. Raises ConfigError where the judge has no Batch API or what it waits for no place."""
        provider, batches = context.provider, Capabilities.of(context.provider).batches
        if batches is None:
            raise ConfigError(
                f"--engine batch: {provider.name}/{provider.model} has no Batch API, which only chat endpoints have; "
                "leave the option out"
            )
        if context.folder is None:
            raise ConfigError("--engine batch keeps what it waits for in the cache; leave out --no-cache")
        parts = BatchJobStore(context.folder / FOLDER, provider.endpoint)
        return cls(BatchJobs(batches, parts, context.counts, context.ledger), context.ledger, context.deadline)

    async def __call__(self, requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int) -> None:
        """Have all requests answered. Raises what ends a run; batches that are under way then stay so."""

        async def online(batch: Iterable[Request]) -> None:
            async def each() -> AsyncIterator[Request]:
                for request in batch:
                    yield request

            await engines.run_local(each(), ask, done, concurrency=concurrency)

        clock = asyncio.timeout_at(self._deadline)
        try:
            async with clock:
                await self._round(requests, online, done)
        except TimeoutError:
            if clock.expired():
                raise DeadlineReached(
                    "the time for judging (--deadline) is up; batches at the provider go on without it"
                ) from None
            raise
        self._counts.batch_status = ""

    async def _round(self, requests: AsyncIterator[Request], online: Online, done: Done) -> None:
        fresh: list[Request] = []
        async for request in requests:
            if not self._begun:
                await self._jobs.with_retries(self._jobs.api.check)
                self._jobs.load_existing()
                self._begun = True
            if self._jobs.adopt(request):
                continue
            if self._jobs.first_sent:
                fresh.append(request)
            else:
                await self._send_first(request, online)
        if not fresh and not self._jobs.open:
            return
        try:
            async with asyncio.TaskGroup() as group:  # what goes online may wait for what batches keep of a budget
                await self._watch(fresh, done, online, lambda unanswered: group.create_task(online(unanswered)))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _send_first(self, request: Request, online: Online) -> None:
        await online([request])
        self._jobs.first_sent = True

    async def _submit(self, fresh: list[Request], online: Online) -> list[Request]:
        """Have these worked off; those that the budget does not pay for yet come back.

        The first goes online where the process that had sent the others did not get that far.
        """
        rest = await self._jobs.submit(fresh)
        if rest and not self._jobs.first_sent:
            await self._send_first(rest[0], online)
            rest = await self._jobs.submit(rest[1:])
        return rest

    async def _watch(self, rest: list[Request], done: Done, online: Online, later: Later) -> None:
        """Send the rest, look at every batch until the last one has ended, and hand over its answers as it does.

        What no batch answers is asked online meanwhile.
        """
        rest = await self._submit(rest, online)
        self._update_status()
        wait = SOONEST
        while True:
            waiting = [job for job in self._jobs.open if job not in self._jobs.waiting_for_room]
            ends = [job for job in waiting if await self._has_ended(job, rest)]
            for job in ends:
                await self._deliver(job, done, later)
            if rest and (ends or not self._jobs.open):
                rest = await self._submit(rest, online)
                if rest and self._ledger and not self._jobs.open:
                    reserved = await self._ledger.reserve(rest[0], BATCH)  # raises where it can never be paid for
                    self._ledger.release(reserved)
            self._update_status()
            if not self._jobs.open and not rest:
                return
            await self._jobs.sleep(wait)
            wait = SOONEST if ends else min(wait * _WAIT_GROWTH, LATEST)
            await self._make_room(rest, later, freed=bool(ends))

    async def _has_ended(self, job: BatchJob, rest: list[Request]) -> bool:
        """Whether there is something to be had of it. What the provider does not know any more joins the `rest`."""
        try:
            batch = self._jobs.states[job.name] = await self._jobs.api.get(job.batch)
        except Transient as error:
            self._failed_looks += 1
            if self._failed_looks > _MAX_FAILED_LOOKS:
                error.stops = "always"
                raise
            return False
        except Refused as error:
            if error.status != 404:
                raise
            self._remark(f"The provider no longer knew batch {job.batch}: its requests were sent once more.")
            rest[:0] = self._jobs.drop(job)  # first, as they are paid for: others may wait for that money
            return False
        self._failed_looks = 0
        if batch.queue_full:
            self._jobs.waiting_for_room.append(job)
        return batch.ended and not batch.queue_full

    async def _deliver(self, job: BatchJob, done: Done, later: Later) -> None:
        """Hand over what a batch brought, and have asked online what it did not."""
        batch = self._jobs.states[job.name]
        for name in batch.files:
            with TemporaryFile() as file:
                try:
                    await self._jobs.with_retries(partial(self._jobs.api.fetch, name, file, batch.total))
                except Refused as error:
                    if error.status != 404:
                        raise
                    continue  # deleted: what it held was not returned
                await self._hand_over(job, self._jobs.api.lines(file), done)
        if unanswered := list(job.expected.values()):
            why = f" ({batch.why})" if batch.why else ""
            count = f"{len(unanswered):,} request{'s' * (len(unanswered) > 1)}"
            self._remark(f"Batch {batch.id}, {batch.status}{why}, left {count} to be asked online, at the full price.")
            for request in unanswered:
                self._jobs.unpaid(request)
            later(unanswered)
        for custom in list(job.expected):
            job.done(custom)
        self._jobs.complete(job)

    async def _hand_over(self, job: BatchJob, lines: Iterator[dict[str, Any]], done: Done) -> None:
        """Many at once, so that they share a write."""
        while chunk := list(islice(lines, _CHUNK)):
            stored: Awaitable[None] | None = None
            for data in chunk:
                custom = str(data.get("custom_id"))
                request = job.expected.get(custom)
                response = None if request is None else self._read(request, job.shape(request), data)
                if request is not None and response is not None:
                    job.done(custom)
                    self._jobs.record_cost(request, response.usage)
                    stored = done(request, response) or stored
            await (stored or asyncio.sleep(0))

    def _read(self, request: Request, shape: dict[str, Any], data: dict[str, Any]) -> Response | None:
        """The answer in a line, None where it holds an error or nothing of use: what is wrong is found out online."""
        reply = data.get("response")
        if data.get("error") or not isinstance(reply, dict) or reply.get("status_code") != 200:
            return None
        try:
            return self._jobs.api.read(request, shape, reply.get("body"))
        except ProviderError:
            return None

    async def _make_room(self, rest: list[Request], later: Later, *, freed: bool) -> None:
        """Send a part again that the provider's queue had no room for.

        Once one of ours has left the queue, or, where there is none in it, in smaller parts: it joins the `rest`. Where
        it is small enough for what the provider says it takes, the queue is full of others' batches, and it waits on.
        """
        out = self._jobs
        alone = len(out.waiting_for_room) == len(out.open)
        if not out.waiting_for_room or not (freed or alone):
            return
        job = out.waiting_for_room.pop(0)
        if job.batch and alone:
            why, read = out.states[job.name].why, sum(map(budget.estimate_request, job.expected.values()))
            # The tokens that one batch may safely have, by the words with which the provider refused one.
            match = _LIMIT.search(why)
            takes = (
                int(_QUEUE_SHARE * int(match[1].replace(",", "")) * _MULTIPLIERS[match[2].upper()]) if match else None
            ) or read // 2
            out.most_tokens = min(out.most_tokens or takes, takes)
            if read > out.most_tokens and len(job.expected) > 1:
                rest[:0] = out.drop(job)
                return
            if read > out.most_tokens:
                self._remark(f"A request was asked online, at the full price: it is too much for a batch ({why}).")
                dropped = out.drop(job)
                out.unpaid(dropped[0])
                later(dropped)
                return
        await out.resubmit(job)

    def _update_status(self) -> None:
        states = [self._jobs.states[job.name] for job in self._jobs.open if job.name in self._jobs.states]
        done, total = sum(state.done for state in states), sum(state.total for state in states)
        number_by_status = Counter(state.status for state in states)
        by_status = ", ".join(f"{count} {status}" for status, count in sorted(number_by_status.items()))
        held = len(self._jobs.waiting_for_room)
        room = f"; {held} waiting for room in the provider's queue" if held else ""
        self._counts.batch_status = (
            f"batches: {by_status}, {done:,} of {total:,} requests answered{room}" if states else ""
        )

    def _remark(self, remark: str) -> None:
        self._counts.remarks.append(remark)
