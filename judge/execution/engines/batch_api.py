"""Batch APIs as an engine: the first request online, the others in files, leftovers online.

Each step of a job (packed, uploaded, created) is on disk before the next, so that a killed run resumes its jobs.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Self, TypeVar

from judge.core.errors import (
    ConfigError,
    DeadlineReached,
    JudgeError,
    ProviderError,
    Refused,
    StorageError,
    Transient,
)
from judge.core.format import plural
from judge.core.records import Request, Response
from judge.execution import budget
from judge.execution.budget import BudgetLedger
from judge.execution.engines import EngineContext, MakeLayer
from judge.execution.engines.batch_jobs import FOLDER, BatchJob, BatchJobStore
from judge.execution.layers import Layer, RunStopped
from judge.providers import Capabilities
from judge.providers.batches import Batch, BatchApi
from judge.providers.pricing import BATCH

_SOONEST, _LATEST, _WAIT_GROWTH = 1.0, 60.0, 1.5
"""Seconds between two tries, or two looks: the first ones and the most; and the growth as long as no batch ends."""
_MAX_TRIES = 8
_MAX_FAILED_LOOKS = 120
"""Looks in a row, of a minute each once the waits have grown, after which an unreachable server is given up."""
_CHUNK = 64
_MAX_REFUSALS = 120
"""Times in a row that the provider's queue may have no room for a single request, of a minute each in the end."""
_QUIET_SECONDS = 0.1
"""Seconds without a new request, after which every judgment waits for an answer."""

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Gathered:
    """The requests that wait for an answer, by key, and those among them that no batch has yet, `unsent`."""

    unsent: list[Request] = field(default_factory=list)
    _answers: dict[str, asyncio.Future[Response]] = field(default_factory=dict)
    _added: int = 0

    def add(self, request: Request) -> asyncio.Future[Response]:
        """Return the future answer to a request, the same one for an equal request."""
        if (waiting := self._answers.get(request.key())) is not None:
            return waiting
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._answers[request.key()] = answer
        self._added += 1
        return answer

    def answer(self, request: Request, response: Response) -> None:
        answer = self._answers.pop(request.key())
        if not answer.done():
            answer.set_result(response)

    def fail(self, request: Request, error: Exception) -> None:
        answer = self._answers.pop(request.key())
        if not answer.done():
            answer.set_exception(error)

    def fail_all(self, error: Exception) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)
        self._answers.clear()

    async def until_quiet(self) -> None:
        """Wait until nothing has been added for a moment."""
        before = -1
        while before != self._added:
            before = self._added
            await asyncio.sleep(_QUIET_SECONDS)


@dataclass(slots=True, eq=False)
class _Reservations:
    """What is kept of the budget for requests in batches, at a batch's share of the price."""

    ledger: BudgetLedger | None
    _reserved: dict[str, float] = field(default_factory=dict)

    def reserve(self, request: Request) -> bool:
        """Keep what a request can cost; False if the budget does not have that now."""
        if self.ledger is None or request.key() in self._reserved:
            return True
        reserved = self.ledger.try_reserve(request, BATCH)
        if reserved is None:
            return False
        self._reserved[request.key()] = reserved
        return True

    def commit(self, request: Request, response: Response) -> None:
        if self.ledger is not None and (reserved := self._pop(request)) is not None:
            self.ledger.commit(reserved, request, response.usage, BATCH)

    def release(self, request: Request) -> None:
        if self.ledger is not None and (reserved := self._pop(request)) is not None:
            self.ledger.release(reserved)

    async def until_affordable(self, request: Request) -> None:
        """Wait until a request could be paid for. Raises BudgetReached if it never can be."""
        if self.ledger is not None:
            self.ledger.release(await self.ledger.reserve(request, BATCH))

    def _pop(self, request: Request) -> float | None:
        return self._reserved.pop(request.key(), None)


@dataclass(slots=True)
class _ProviderQueue:
    """What one batch may take of the provider's queue once that had no room: None until then.

    `refusals` counts how often in a row it had no room for a single request.
    """

    most_tokens: int | None = None
    refusals: int = 0

    def refuse(self, requests: list[Request], *, others: bool) -> None:
        """Note that there was no room: smaller batches are sent, unless `others` of ours are in the queue."""
        size = sum(map(budget.estimate_request, requests))
        size = min(size, self.most_tokens or size)
        self.most_tokens = size if others else max(1, size // 2)
        self.refusals = self.refusals + 1 if len(requests) == 1 else 0

    def accept(self) -> None:
        """Note that a batch has ended."""
        if self.most_tokens is not None:
            self.most_tokens, self.refusals = 2 * self.most_tokens, 0


class BatchEngine:
    """One judge's requests through the Batch API.

    The first request of a run goes online and alone: what it teaches stands in the bodies of all others. Those are
    gathered until every judgment waits, and sent in as few files as the limits allow. What a batch does not answer
    goes online. Whatever is under way is on disk before it is waited for: after a kill the next run finds it again, by
    its name at the provider if the process died between the two, and uploads nothing twice. Closed before its end, it
    leaves its batches running.
    """

    gathers: ClassVar = True

    def __init__(self, api: BatchApi, store: BatchJobStore, context: EngineContext) -> None:
        self.api = api
        self.store = store
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._context = context
        self._online: Layer
        self._gathered = _Gathered()
        self._reservations = _Reservations(context.ledger)
        self._queue = _ProviderQueue()
        self._jobs: list[BatchJob] = []
        self._failed_looks = 0
        self._opening = asyncio.Lock()
        self._refused: JudgeError | None = None
        self._begun = self._first_sent = self._watching = False
        self._tasks: set[asyncio.Task[None]] = set()

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
            raise ConfigError(
                "--engine batch keeps what it waits for in the cache; leave out --no-cache"
            )
        store = BatchJobStore(context.folder / FOLDER, provider.endpoint)
        return cls(batches, store, context)

    def layer(self, sending: MakeLayer) -> Layer:
        self._online = sending(self._context.provider.complete)
        return self

    async def ask(self, request: Request) -> Response:
        """Return the answer of a batch, or of the provider online if no batch has it."""
        async with self._opening:  # the others wait for what the first one teaches
            if self._refused is not None:
                raise self._refused
            if not self._begun:
                await self._begin(request)
            if self._context.counts.stopping:
                raise RunStopped
            under_way = self._is_under_way(request)
            if not (under_way or self._first_sent):
                self._first_sent = True
                return await self._online.ask(request)
        if not under_way:
            self._gathered.unsent.append(request)
        return await self._from_a_batch(request)

    async def aclose(self) -> None:
        """Let go of the batches, which go on at the provider."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, request: Request) -> None:
        """Find the jobs of an earlier run. Raises for what no batch can ask for."""
        try:
            self.api.line(request, self.api.body(request))
            await self._with_retries(self.api.check)
        except JudgeError as error:
            if isinstance(error, ProviderError):
                error.stops = "always"
            self._refused = error
            raise
        self._jobs += self.store.load(self._jobs)
        self._begun = True

    def _is_under_way(self, request: Request) -> bool:
        """Whether a request is in one of the jobs, of which it is wanted from now on."""
        return any(job.claim(request) for job in self._jobs)

    async def _from_a_batch(self, request: Request) -> Response:
        answer = self._gathered.add(request)
        if not self._watching:
            self._watching = True
            self._start(self._run())
        return await asyncio.shield(answer)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        """Submit what is gathered and watch the batches, until nothing is left. Errors go to all who wait."""
        clock = asyncio.timeout_at(self._context.deadline)
        try:
            async with clock:
                await self._gathered.until_quiet()
                await self._watch()
        except TimeoutError as error:
            up = DeadlineReached(
                "the time for judging (--deadline) is up; batches at the provider go on without it"
            )
            self._gathered.fail_all(up if clock.expired() else error)
        except Exception as error:  # noqa: BLE001  (raised where each answer is awaited)
            self._gathered.fail_all(error)
        finally:
            self._watching = False

    @property
    def _open(self) -> list[BatchJob]:
        """The jobs that something is wanted of."""
        return [job for job in self._jobs if job.expected]

    async def _watch(self) -> None:
        """Send what is gathered, look at every batch until the last one has ended, and hand over its answers.

        What no batch answers is asked online meanwhile.
        """
        wait = _SOONEST
        await self._submit()
        while True:
            self._update_status()
            ended = [
                (job, batch) for job in self._open if (batch := await self._ended(job)) is not None
            ]
            for job, batch in ended:
                await self._deliver(job, batch)
            self._update_status()
            if ended:
                await self._gathered.until_quiet()
            if self._gathered.unsent and (ended or not self._open):
                await self._submit()
                if self._gathered.unsent and not self._open:
                    await self._reservations.until_affordable(self._gathered.unsent[0])
            self._update_status()
            if not self._open and not self._gathered.unsent:
                return
            await self.sleep(wait)
            wait = _SOONEST if ended else min(wait * _WAIT_GROWTH, _LATEST)

    # Sending.

    async def _submit(self) -> None:
        """Send what no batch has yet; what the budget does not pay for yet stays unsent.

        No other process sends meanwhile: no request is put in by two. Where the provider's queue was full, one batch is
        sent at a time. The first request goes online if the process that sent the others did not get that far.
        """
        async with self.store.locked(self.sleep):
            self._jobs += self.store.load(self._jobs)
            # Others may come while these are sent.
            requests, self._gathered.unsent = self._gathered.unsent, []
            rest = deque(request for request in requests if not self._is_under_way(request))
            for job in self._open:
                if not job.batch:
                    rest.extend(await self._recover(job))
            if rest and not self._first_sent:
                self._first_sent = True
                await self._ask_online(rest.popleft())
            while rest:
                with TemporaryFile() as file:
                    job = self._pack(rest, file)
                    if not job.entries:
                        break
                    await self._send(job, file, rest)
                if self._queue.most_tokens is not None:
                    break
        self._gathered.unsent[:0] = rest

    async def _send(self, job: BatchJob, file: IO[bytes], rest: deque[Request]) -> None:
        """Upload a job and have its batch created; if the provider has no room for it, its requests are `rest` again."""
        self._jobs.append(job)
        self.store.save(job)
        upload = partial(self.api.upload, job.name, file)
        job.file = await self._with_retries(upload, partial(self.api.uploaded, job.name))
        self.store.save(job)
        try:
            await self._create(job, file)
        except Transient as error:
            if error.status != 429 or not self.api.inline or len(job.expected) == 1:
                raise
            rest.extendleft(reversed(self._take_back(job)))

    def _pack(self, rest: deque[Request], file: IO[bytes]) -> BatchJob:
        """A job with as many of these as one file may hold and the budget pays for, which are taken off `rest`."""
        job, size, read = self.store.new(), 0, 0
        try:
            while rest and len(job.entries) < self.api.most_requests:
                body, read = self.api.body(rest[0]), read + budget.estimate_request(rest[0])
                written = self.api.line(rest[0], body)
                full = size + len(written) > self.api.most_bytes
                if size and (full or read > (self._queue.most_tokens or read)):
                    break
                if not self._reservations.reserve(rest[0]):
                    break
                size += file.write(written)
                job.add(rest.popleft(), body)
        except OSError as error:
            raise StorageError(
                f"a file of requests cannot be written: {error.strerror or error}"
            ) from error
        return job

    async def _create(self, job: BatchJob, content: IO[bytes] | None = None) -> None:
        create = partial(self.api.create, job.name, job.file, content)
        batch = await self._with_retries(create, self._finding(job))
        self._context.counts.sent += len(job.expected)
        self._record_created(job, batch)

    def _finding(self, job: BatchJob) -> Callable[[], Awaitable[Batch | None]]:
        return partial(self.api.find, job.name, job.file, len(job.entries))

    def _record_created(self, job: BatchJob, batch: Batch) -> None:
        job.batch, job.state = batch.id, batch
        self.store.save(job)

    async def _recover(self, job: BatchJob) -> list[Request]:
        """Find a job again whose process died while it was sending it; its requests, where nothing had been sent."""
        begun = job.file or not self.api.inline
        if begun and (batch := await self._with_retries(self._finding(job))):
            self._record_created(job, batch)
            return []
        if self.api.inline:
            return self._drop(job)
        if not job.file:
            file = await self._with_retries(partial(self.api.uploaded, job.name))
            if file is None:
                return self._drop(job)
            job.file = file
        await self._create(job)
        return []

    def _drop(self, job: BatchJob) -> list[Request]:
        """Forget a job; what was wanted of it has to be had another way."""
        self.store.forget(job)
        self._jobs.remove(job)
        return list(job.expected.values())

    async def _with_retries(
        self,
        call: Callable[[], Awaitable[T]],
        find: Callable[[], Awaitable[T | None]] | None = None,
    ) -> T:
        """What the call returns, tried again after a Transient; `find` looks whether it had not worked after all."""
        wait, failed = _SOONEST, 0
        while True:
            try:
                if failed and find is not None and (result := await find()) is not None:
                    return result
                return await call()
            except Transient as error:
                failed += 1
                if failed >= _MAX_TRIES:
                    error.stops = "always"
                    raise
                await self.sleep(min(max(error.retry_after or 0.0, wait), _LATEST))
                wait *= 2

    def _take_back(self, job: BatchJob) -> list[Request]:
        """Drop a batch that the provider's queue had no room for; return its requests, which go in smaller batches.

        A single request that never gets a place is asked online.
        """
        requests = self._drop(job)
        self._queue.refuse(requests, others=bool(self._open))
        if self._queue.refusals < _MAX_REFUSALS:
            return requests
        self._queue.refusals = 0
        self._remark(
            "A request was asked online, at the full price: the provider's queue had no room for it."
        )
        self._start_online(requests)
        return []

    # Receiving.

    async def _ended(self, job: BatchJob) -> Batch | None:
        """The batch if it has ended. What the provider does not know any more, or had no room for, is unsent again."""
        try:
            batch = job.state = await self.api.get(job.batch)
        except Transient as error:
            self._failed_looks += 1
            if self._failed_looks > _MAX_FAILED_LOOKS:
                error.stops = "always"
                raise
            return None
        except Refused as error:
            if error.status != 404:
                raise
            self._remark(
                f"The provider no longer knew batch {job.batch}: its requests were sent once more."
            )
            # First, as they are paid for: others may wait for that money.
            self._gathered.unsent[:0] = self._drop(job)
            return None
        self._failed_looks = 0
        if batch.queue_full:
            self._gathered.unsent[:0] = self._take_back(job)
            return None
        return batch if batch.ended else None

    async def _deliver(self, job: BatchJob, batch: Batch) -> None:
        """Hand over what a batch brought, and have asked online what it did not."""
        self._queue.accept()
        for name in batch.files:
            with TemporaryFile() as file:
                try:
                    await self._with_retries(partial(self.api.fetch, name, file, batch.total))
                except Refused as error:
                    if error.status != 404:
                        raise
                    continue  # deleted: what it held was not returned
                lines = self.api.lines(file)
                while chunk := list(islice(lines, _CHUNK)):
                    await asyncio.gather(*(self._hand_over(job, data) for data in chunk))
        if unanswered := list(job.expected.values()):
            why = f" ({batch.why})" if batch.why else ""
            self._remark(
                f"Batch {batch.id}, {batch.status}{why}, left {plural(len(unanswered), 'request')} to be asked online, "
                "at the full price."
            )
            self._start_online(unanswered)
        for custom in list(job.expected):
            job.done(custom)
        if job.entries:  # what another run waits for
            self.store.save(job)
        else:
            self._drop(job)

    async def _hand_over(self, job: BatchJob, data: dict[str, Any]) -> None:
        """Take the answer in a line, if it is one: what is wrong with others is found out online."""
        custom, reply = str(data.get("custom_id")), data.get("response")
        request = job.expected.get(custom)
        if (
            request is None
            or data.get("error")
            or not isinstance(reply, dict)
            or reply.get("status_code") != 200
        ):
            return
        try:
            response: Response = self.api.read(request, job.shape(request), reply.get("body"))
        except ProviderError:
            return
        job.done(custom)
        self._context.counts.batched += response.usage
        self._reservations.commit(request, response)
        await self._context.store(request, response)
        self._gathered.answer(request, response)

    def _start_online(self, requests: Iterable[Request]) -> None:
        """Have requests asked online that no batch has answered, or was paid for."""
        for request in requests:
            self._reservations.release(request)
            self._start(self._ask_online(request))

    async def _ask_online(self, request: Request) -> None:
        try:
            response = await self._online.ask(request)
        except (JudgeError, RunStopped) as error:
            self._gathered.fail(request, error)
        else:
            self._gathered.answer(request, response)

    def _update_status(self) -> None:
        states = [job.state for job in self._open if job.state is not None]
        done, total = sum(state.done for state in states), sum(state.total for state in states)
        by_status = ", ".join(
            f"{n} {status}" for status, n in sorted(Counter(s.status for s in states).items())
        )
        self._context.counts.batch_status = (
            f"batches: {by_status}, {done:,} of {total:,} requests answered" if states else ""
        )

    def _remark(self, remark: str) -> None:
        self._context.counts.remarks.append(remark)
