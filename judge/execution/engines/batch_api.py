"""Batch APIs as an engine: the first request online, the others in files, leftovers online.

Each step of a job (packed, uploaded, created) is on disk before the next, so that a killed run
resumes its jobs (docs/decisions/0023-a-batch-is-identified-by-its-name.md).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import filterfalse, islice
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
from judge.core.messages import option
from judge.core.records import Request, Response
from judge.execution import token_estimates
from judge.execution.budget import BudgetLedger
from judge.execution.engines import EngineContext, MakeLayer
from judge.execution.engines.batch_jobs import FOLDER, BatchJob, BatchJobStore
from judge.execution.layers import Layer, RunStopped
from judge.providers import Capabilities
from judge.providers.batches import Batch, BatchApi
from judge.providers.pricing import BATCH

# Seconds between two tries, or two looks: the first wait, the longest one, and the growth as long
# as no batch ends.
_FIRST_WAIT = 1.0
_MAX_WAIT = 60.0
_WAIT_GROWTH = 1.5
_MAX_TRIES = 8
# Tries of a server that has never answered and cannot be reached: it is probably not started.
_MAX_FIRST_TRIES = 3
# Looks in a row, a minute apart once the waits have grown, at a server that does not answer.
_MAX_FAILED_LOOKS = 120
# Lines of a file of answers that are stored together.
_CHUNK = 64
# Times in a row, a minute apart in the end, that the provider's queue has no room for one request.
_MAX_REFUSALS = 120
# Seconds without a new request after which every judgment waits for an answer.
_QUIET_SECONDS = 0.1

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Gathered:
    """The requests that wait for an answer, by key; those that no batch has yet are `unsent`.

    An answer that comes after `fail_all` is dropped, because nobody waits for it any more.
    """

    unsent: list[Request] = field(default_factory=list)
    _answers: dict[str, asyncio.Future[Response]] = field(default_factory=dict)
    _added: int = 0

    def add(self, request: Request) -> asyncio.Future[Response]:
        """Return the future answer to a request, the same one for an equal request."""
        request_key = request.key()
        if request_key in self._answers:
            return self._answers[request_key]
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._answers[request_key] = answer
        self._added += 1
        return answer

    def answer(self, request: Request, response: Response) -> None:
        answer = self._answers.pop(request.key(), None)
        if answer is not None and not answer.done():
            answer.set_result(response)

    def fail(self, request: Request, error: Exception) -> None:
        answer = self._answers.pop(request.key(), None)
        if answer is not None and not answer.done():
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
    """What is reserved of the budget for requests in batches, at a batch's share of the price.

    Once the budget paid for only a part of the requests, it `is_short`: the rest is sent if all of
    it fits. Otherwise many small batches, each of which takes up to a day, would use up the budget.
    """

    ledger: BudgetLedger | None
    is_short: bool = False
    _rest_fits: bool = True
    _reserved: dict[str, float] = field(default_factory=dict)

    def look_at(self, rest: Iterable[Request]) -> None:
        """Note whether the budget covers all requests that no batch has yet."""
        if self.ledger is not None:
            reserved = self._reserved
            unpaid = [request for request in rest if request.key() not in reserved]
            self._rest_fits = self.ledger.covers_all(unpaid, BATCH)

    def reserve(self, request: Request) -> bool:
        """Reserve what a request can cost; False if the budget does not have that now."""
        if self.ledger is None or request.key() in self._reserved:
            return True
        if self.is_short and not self._rest_fits:
            return False
        reserved = self.ledger.try_reserve(request, BATCH)
        if reserved is None:
            # Without a reservation of this judge, another judge's requests hold the budget.
            self.is_short = self.is_short or bool(self._reserved)
            return False
        self._reserved[request.key()] = reserved
        return True

    def commit(self, request: Request, response: Response) -> None:
        reserved = self._reserved.pop(request.key(), None)
        if self.ledger is not None and reserved is not None:
            self.ledger.commit(reserved, request, response.usage, BATCH)

    def release(self, request: Request) -> None:
        reserved = self._reserved.pop(request.key(), None)
        if self.ledger is not None and reserved is not None:
            self.ledger.release(reserved)

    async def until_affordable(self, unsent: list[Request]) -> None:
        """Wait until the first request could be paid for.

        Raises BudgetReached if it never can be, or if the budget is short and no request is left
        whose reply could make room for all of them.
        """
        if self.ledger is None:
            return
        if self.is_short:
            if self.ledger.is_idle:
                raise self.ledger.short_of(unsent, BATCH)
            return
        reserved = await self.ledger.reserve(unsent[0], BATCH)
        # It is reserved again when the batch is packed.
        self.ledger.release(reserved)


@dataclass(slots=True)
class _ProviderQueue:
    """The room in the provider's queue of tokens.

    `most_tokens` is the limit of one batch, None until the queue had no room. `refusals` counts how
    often in a row it had no room for a single request.
    """

    most_tokens: int | None = None
    refusals: int = 0

    def refuse(self, requests: list[Request], *, others: bool) -> None:
        """Note that there was no room.

        Batches get smaller then, unless `others` of ours are in the queue.
        """
        n_tokens = sum(map(token_estimates.estimate_request, requests))
        n_tokens = min(n_tokens, self.most_tokens or n_tokens)
        self.most_tokens = n_tokens if others else max(1, n_tokens // 2)
        self.refusals = self.refusals + 1 if len(requests) == 1 else 0

    def accept(self) -> None:
        """Note that a batch has ended."""
        if self.most_tokens is not None:
            # An ended batch leaves its room in the queue to a larger one.
            self.most_tokens *= 2
            self.refusals = 0


class BatchEngine:
    """One judge's requests through the Batch API.

    The first request of a run is sent online and alone, because its reply shows which parameters
    the bodies of all others may have. The others are gathered until every judgment waits, and sent
    in as few files as the limits allow. Requests that a batch does not answer are sent online.

    Each batch is on disk before it is waited for. After a kill, the next run finds it again, if
    necessary by its name at the provider, and uploads nothing twice. If the engine is closed
    earlier, its batches continue.
    """

    gathers: ClassVar = True

    def __init__(
        self, api: BatchApi, store: BatchJobStore, context: EngineContext
    ) -> None:
        self.api = api
        self.store = store
        self._was_reached = False
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
        self._begun = False
        self._first_sent = False
        self._watching = False
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def open(cls, context: EngineContext) -> Self:
        """Return the engine of a run.

        Raises ConfigError without a Batch API, or without a cache.
        """
        provider = context.provider
        batches = Capabilities.of(provider).batches
        if batches is None:
            raise ConfigError(
                f"{option('engine', 'batch')}: {provider.name}/{provider.model} has no Batch API, "
                "which only chat endpoints have; leave the option out"
            )
        if context.folder is None:
            engine_option = option("engine", "batch")
            no_cache = option("cache", False)
            raise ConfigError(
                f"{engine_option} keeps its pending requests in the cache; leave out {no_cache}"
            )
        store = BatchJobStore(context.folder / FOLDER, provider.endpoint)
        return cls(batches, store, context)

    def layer(self, sending: MakeLayer) -> Layer:
        self._online = sending(self._context.provider.complete)
        return self

    async def ask(self, request: Request) -> Response:
        """Return the answer of a batch, or of the provider online if no batch has it."""
        # The other requests wait until the first one has shown what the server accepts.
        async with self._opening:
            if self._refused is not None:
                raise self._refused
            if not self._begun:
                await self._begin(request)
            if self._context.counts.stopping:
                raise RunStopped
            is_in_a_batch = self._is_in_a_batch(request)
            if not (is_in_a_batch or self._first_sent):
                self._first_sent = True
                return await self._online.ask(request)
        if not is_in_a_batch:
            self._gathered.unsent.append(request)
        return await self._from_a_batch(request)

    async def aclose(self) -> None:
        """Stop waiting for the batches, which continue at the provider."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, request: Request) -> None:
        """Find the jobs of an earlier run. Raises if no batch can have such a request."""
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

    def _is_in_a_batch(self, request: Request) -> bool:
        """Return whether a batch has the request already, and mark it as expected there."""
        return any(job.claim(request) for job in self._jobs)

    async def _from_a_batch(self, request: Request) -> Response:
        answer = self._gathered.add(request)
        if not self._watching:
            self._watching = True
            self._start(self._run())
        return await asyncio.shield(answer)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        """Submit what is gathered and watch the batches until nothing is left.

        An error is raised wherever an answer is awaited.
        """
        clock = asyncio.timeout_at(self._context.deadline)
        try:
            async with clock:
                await self._gathered.until_quiet()
                await self._watch()
        except TimeoutError as error:
            if clock.expired():
                time_is_over = DeadlineReached(
                    f"the time for judging ({option('deadline')}) is over; batches at the "
                    "provider continue"
                )
                self._gathered.fail_all(time_is_over)
            else:
                self._gathered.fail_all(error)
        except Exception as error:  # noqa: BLE001  (raised where each answer is awaited)
            if isinstance(error, ProviderError):
                # It fails every request, not one text.
                error.stops = "always"
            self._gathered.fail_all(error)
        finally:
            self._watching = False

    @property
    def _open(self) -> list[BatchJob]:
        """The jobs with requests that this run needs."""
        return [job for job in self._jobs if job.expected]

    async def _watch(self) -> None:
        """Send what is gathered, and look at every batch until the last one has ended.

        Answers are handed over, and what no batch answers is sent online meanwhile.
        """
        seconds = _FIRST_WAIT
        await self._submit()
        while True:
            self._update_status()
            has_ended = await self._deliver_ended()
            self._update_status()
            if has_ended:
                # Answers may lead to further requests, such as repair questions.
                await self._gathered.until_quiet()
            if self._gathered.unsent and (has_ended or not self._open):
                await self._submit()
                if self._gathered.unsent and not self._open:
                    await self._reservations.until_affordable(self._gathered.unsent)
            self._update_status()
            if not self._open and not self._gathered.unsent:
                return
            await self.sleep(seconds)
            seconds = min(seconds * _WAIT_GROWTH, _MAX_WAIT)
            if has_ended:
                seconds = _FIRST_WAIT

    async def _deliver_ended(self) -> bool:
        """Hand over the answers of the batches that have ended; return whether there are any."""
        ended: list[tuple[BatchJob, Batch]] = []
        for job in self._open:
            batch = await self._ended(job)
            if batch is not None:
                ended.append((job, batch))
        for job, batch in ended:
            await self._deliver(job, batch)
        return bool(ended)

    async def _submit(self) -> None:
        """Send what no batch has yet; what the budget has no room for stays unsent.

        Meanwhile no other process sends, so that no request is in two batches. If the provider's
        queue was full, one batch is sent at a time. If the process that sent the others was killed
        before its first request, that is sent online.
        """
        async with self.store.locked(self.sleep):
            self._jobs += self.store.load(self._jobs)
            # More requests may be gathered while these are sent.
            requests = self._gathered.unsent
            self._gathered.unsent = []
            rest = deque(filterfalse(self._is_in_a_batch, requests))
            for job in self._open:
                if not job.batch:
                    rest.extend(await self._recover(job))
            if rest and not self._first_sent:
                self._first_sent = True
                await self._ask_online(rest.popleft())
            self._reservations.look_at(rest)
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
        """Upload a job and create its batch.

        If the provider has no room for it, its requests are put back into `rest`.
        """
        self._jobs.append(job)
        self.store.save(job)
        upload = partial(self.api.upload, job.name, file)
        find_upload = partial(self.api.uploaded, job.name)
        try:
            job.file = await self._with_retries(upload, find_upload)
            self.store.save(job)
            await self._create(job, file)
        except Refused as error:
            # A refusal that always stops a run, such as that of a wrong key, is not about batches.
            is_about_batches = error.stops != "always"
            if is_about_batches or not job.file:
                self._drop(job)
            if is_about_batches:
                error.add_note(
                    f"The server accepts no batch of these requests. Leave out "
                    f"{option('engine', 'batch')} to send them online."
                )
            raise
        except Transient as error:
            # With an inline API, a full queue refuses the creation itself.
            may_be_smaller = self.api.inline and job.file and len(job.expected) > 1
            if error.status != 429 or not may_be_smaller:
                raise
            taken_back = self._take_back(job)
            rest.extendleft(reversed(taken_back))

    def _pack(self, rest: deque[Request], file: IO[bytes]) -> BatchJob:
        """Take requests off `rest` into a job, as many as fit into a file and the budget."""
        job = self.store.new()
        size = 0
        tokens = 0
        try:
            while rest and len(job.entries) < self.api.most_requests:
                request = rest[0]
                body = self.api.body(request)
                line = self.api.line(request, body)
                tokens += token_estimates.estimate_request(request)
                most_tokens = self._queue.most_tokens or tokens
                is_too_large = size + len(line) > self.api.most_bytes
                is_full = is_too_large or tokens > most_tokens
                # A request that is too large alone is sent nevertheless: the provider decides.
                if size and is_full:
                    break
                if not self._reservations.reserve(request):
                    break
                size += file.write(line)
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
        n_requests = len(job.entries)
        return partial(self.api.find, job.name, job.file, n_requests)

    def _record_created(self, job: BatchJob, batch: Batch) -> None:
        job.batch = batch.id
        job.state = batch
        self.store.save(job)

    async def _recover(self, job: BatchJob) -> list[Request]:
        """Continue a job whose process was killed while it sent the job.

        Returns its requests if nothing was sent.
        """
        was_sent = bool(job.file) or not self.api.inline
        if was_sent:
            batch = await self._with_retries(self._finding(job))
            if batch:
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
        """Drop a job and return its unanswered requests."""
        self.store.forget(job)
        self._jobs.remove(job)
        return list(job.expected.values())

    async def _with_retries(
        self,
        call: Callable[[], Awaitable[T]],
        find: Callable[[], Awaitable[T | None]] | None = None,
    ) -> T:
        """Return the result of a call, which is retried after a Transient.

        Before a retry, `find` looks whether the failed call has worked nevertheless.
        """
        seconds = _FIRST_WAIT
        failures = 0
        while True:
            try:
                if failures and find is not None:
                    result = await find()
                    if result is not None:
                        return result
                answer = await call()
                self._was_reached = True
                return answer
            except Transient as error:
                failures += 1
                is_absent = error.unreachable and not self._was_reached
                if failures >= (_MAX_FIRST_TRIES if is_absent else _MAX_TRIES):
                    error.stops = "always"
                    raise
                wanted_wait = max(error.retry_after or 0.0, seconds)
                await self.sleep(min(wanted_wait, _MAX_WAIT))
                seconds *= 2

    def _take_back(self, job: BatchJob) -> list[Request]:
        """Drop a batch that had no room in the provider's queue, and return its requests.

        They are sent in smaller batches. A single request that never has room is sent online.
        """
        requests = self._drop(job)
        self._queue.refuse(requests, others=bool(self._open))
        if self._queue.refusals < _MAX_REFUSALS:
            return requests
        self._queue.refusals = 0
        self._remark(
            "A request was asked online, at the full price: the provider's queue had no room for "
            "it."
        )
        self._start_online(requests)
        return []

    async def _ended(self, job: BatchJob) -> Batch | None:
        """Return the batch if it has ended.

        The requests of a batch that the provider no longer knows, or had no room for, are unsent
        again.
        """
        try:
            batch = await self.api.get(job.batch)
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
            # First in the list, because budget is reserved for them: others may wait for that.
            self._gathered.unsent[:0] = self._drop(job)
            return None
        job.state = batch
        self._failed_looks = 0
        if batch.queue_full:
            self._gathered.unsent[:0] = self._take_back(job)
            return None
        return batch if batch.ended else None

    async def _deliver(self, job: BatchJob, batch: Batch) -> None:
        """Hand over the answers of a batch, and send online what it did not answer."""
        self._queue.accept()
        for file_name in batch.files:
            await self._hand_over_file(job, batch, file_name)
        unanswered = list(job.expected.values())
        if unanswered:
            reason = f" ({batch.why})" if batch.why else ""
            requests = plural(len(unanswered), "request")
            self._remark(
                f"Batch {batch.id}, {batch.status}{reason}, left {requests} to be asked online, "
                "at the full price."
            )
            self._start_online(unanswered)
        for custom_id in list(job.expected):
            job.done(custom_id)
        if job.entries:
            # Another run waits for these.
            self.store.save(job)
        else:
            self._drop(job)

    async def _hand_over_file(
        self, job: BatchJob, batch: Batch, file_name: str
    ) -> None:
        with TemporaryFile() as file:
            fetch = partial(self.api.fetch, file_name, file, batch.total)
            try:
                await self._with_retries(fetch)
            except Refused as error:
                if error.status != 404:
                    raise
                # The file was deleted: its requests are sent online.
                return
            lines = self.api.lines(file)
            while chunk := list(islice(lines, _CHUNK)):
                await asyncio.gather(*(self._hand_over(job, data) for data in chunk))

    async def _hand_over(self, job: BatchJob, data: dict[str, Any]) -> None:
        """Take the answer in a line. If it is an error, the request is sent online later."""
        custom_id = str(data.get("custom_id"))
        reply = data.get("response")
        request = job.expected.get(custom_id)
        if request is None or data.get("error"):
            return
        if not isinstance(reply, dict) or reply.get("status_code") != 200:
            return
        try:
            body = reply.get("body")
            response: Response = self.api.read(request, job.shape(request), body)
        except ProviderError:
            return
        job.done(custom_id)
        self._context.counts.batched += response.usage
        self._reservations.commit(request, response)
        await self._context.store(request, response)
        self._gathered.answer(request, response)

    def _start_online(self, requests: Iterable[Request]) -> None:
        """Send requests online that no batch has answered, or had room for."""
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
        if not states:
            self._context.counts.batch_status = ""
            return
        done = sum(state.done for state in states)
        total = sum(state.total for state in states)
        count_by_status = Counter(state.status for state in states)
        counts = sorted(count_by_status.items())
        statuses = [f"{count} {status}" for status, count in counts]
        self._context.counts.batch_status = (
            f"batches: {', '.join(statuses)}, {done:,} of {total:,} requests answered"
        )

    def _remark(self, remark: str) -> None:
        self._context.counts.remarks.append(remark)
