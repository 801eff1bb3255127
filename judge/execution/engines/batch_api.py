"""Batch APIs as an engine: the first request online, all others of a round in files, leftovers online.

Each step of a job (packed, uploaded, created) is on disk before the next, so that a killed run resumes its jobs. The
files hold no key and no text.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import FileIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Self, TypeVar

from judge.core import files
from judge.core.errors import (
    ConfigError,
    DeadlineReached,
    ProviderError,
    Refused,
    StorageError,
    Transient,
)
from judge.core.format import plural
from judge.core.records import Request, Response
from judge.execution import budget, engines
from judge.execution.budget import BudgetLedger
from judge.execution.engines import Ask, Done, EngineContext
from judge.execution.progress import JudgeProgress
from judge.providers import Capabilities
from judge.providers.batches import Batch, BatchApi
from judge.providers.pricing import BATCH

FOLDER = "batches"
"""In that which outlives the process."""
_VERSION = 1
_KEPT_DAYS = 30
"""After which a provider has deleted a batch's files."""
_LOCK_POLL_SECONDS = 0.2
_OMITTED = ("messages", "model")
_SOONEST, _LATEST, _WAIT_GROWTH = 1.0, 60.0, 1.5
"""Seconds between two tries, or two looks: the first ones and the most; and the growth as long as no batch ends."""
_MAX_TRIES = 8
_MAX_FAILED_LOOKS = 120
"""Looks in a row, of a minute each once the waits have grown, after which an unreachable server is given up."""
_CHUNK = 64
_MAX_REFUSALS = 120
"""Times in a row that the provider's queue may have no room for a single request, of a minute each in the end."""

T = TypeVar("T")
Online = Callable[[Iterable[Request]], Coroutine[Any, Any, None]]
Later = Callable[[Iterable[Request]], object]


def _key_without_n(request: Request) -> str:
    """The request's key whatever the number of draws asked for at once, which a server may have had its say in."""
    if "n" not in request.params:
        return request.key()
    return replace(
        request, params={name: value for name, value in request.params.items() if name != "n"}
    ).key()


@dataclass(slots=True)
class BatchJob:
    """The requests of one batch; `name` is what the provider knows it by: its file's name and its metadata.

    `entries` maps a request's key without `n` to its custom id and its index in `shapes` (the body without its texts).
    `file` and `batch` are the provider's ids, empty until they are known. `expected` are, by custom id, the requests
    that this run waits for. `state` is the batch as it was last seen.
    """

    path: Path
    endpoint: str
    entries: dict[str, tuple[str, int]] = field(default_factory=dict)
    shapes: list[dict[str, Any]] = field(default_factory=list)
    file: str = ""
    batch: str = ""
    expected: dict[str, Request] = field(default_factory=dict)
    state: Batch | None = None

    @property
    def name(self) -> str:
        return f"judge-{self.path.stem}"

    def add(self, request: Request, body: dict[str, Any]) -> None:
        shape = {
            name: value
            for name, value in body.items()
            if name not in _OMITTED and "cache" not in name
        }
        if shape not in self.shapes:
            self.shapes.append(shape)
        custom = request.key()
        self.entries[_key_without_n(request)] = (custom, self.shapes.index(shape))
        self.expected[custom] = request

    def claim(self, request: Request) -> bool:
        """Whether it holds this request, which is wanted from now on."""
        entry = self.entries.get(_key_without_n(request))
        if entry is not None:
            self.expected[entry[0]] = request
        return entry is not None

    def shape(self, request: Request) -> dict[str, Any]:
        """What the body of a request had besides its texts."""
        return self.shapes[self.entries[_key_without_n(request)][1]]

    def done(self, custom: str) -> None:
        """A wanted request has its answer."""
        del self.entries[_key_without_n(self.expected.pop(custom))]


class BatchJobStore:
    """A folder of jobs, one JSON file each. Raises StorageError where it cannot be used."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder, self.endpoint = folder, endpoint

    def new(self) -> BatchJob:
        return BatchJob(self.folder / f"{secrets.token_hex(8)}.json", self.endpoint)

    def load(self, known: Iterable[BatchJob] = ()) -> list[BatchJob]:
        """The jobs of this endpoint that are not known. What the provider no longer has is deleted."""
        jobs, paths = [], {job.path for job in known}
        with _translating_errors(self.folder):
            for path in sorted(self.folder.glob("*.json")):
                if time.time() - path.stat().st_mtime > _KEPT_DAYS * 86400:
                    path.unlink(missing_ok=True)
                elif path not in paths and (job := _read(path)) and job.endpoint == self.endpoint:
                    jobs.append(job)
        return jobs

    def save(self, job: BatchJob) -> None:
        """On disk when this returns; never half."""
        data = {
            "version": _VERSION, "endpoint": job.endpoint, "file": job.file, "batch": job.batch,
            "shapes": job.shapes, "asked": job.entries,
        }  # fmt: skip
        with _translating_errors(self.folder), files.replacing(job.path) as file:
            file.write(json.dumps(data, separators=(",", ":")).encode())

    def forget(self, job: BatchJob) -> None:
        with _translating_errors(self.folder):
            job.path.unlink(missing_ok=True)

    @asynccontextmanager
    async def locked(
        self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> AsyncIterator[None]:
        """While this lasts no other process puts a job in here; a lock ends with its process."""
        with _translating_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            file = FileIO(self.folder / "lock", "a")
        with file:
            with _translating_errors(self.folder):
                while not files.try_lock(file):
                    await sleep(_LOCK_POLL_SECONDS)
            yield


def under_way(folder: Path, endpoint: str) -> int:
    """How many requests to this endpoint are in batches that nobody has fetched yet. Raises StorageError."""
    return sum(len(job.entries) for job in BatchJobStore(folder / FOLDER, endpoint).load())


def _read(path: Path) -> BatchJob | None:
    """The job in a file; None for a damaged file, and for one that another run is done with."""
    try:
        data = json.loads(path.read_bytes())
        if data["version"] != _VERSION:
            return None
        entries = {plain: (str(custom), int(at)) for plain, (custom, at) in data["asked"].items()}
        return BatchJob(
            path, data["endpoint"], entries, list(data["shapes"]), data["file"], data["batch"]
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


@contextmanager
def _translating_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{folder}: {error.strerror or error}; make room or name another folder with --cache DIR, "
            "then start the same command again"
        ) from error


@dataclass(eq=False)
class BatchEngine:
    """One judge's requests through the Batch API.

    The first request of a run goes online and alone: what it teaches stands in the bodies of all others, which are sent
    in as few files as the limits allow. What a batch does not answer goes online. Whatever is under way is on disk
    before it is waited for: after a kill the next run finds it again, by its name at the provider if the process died
    between the two, and uploads nothing twice. Cancelled, it leaves its batches running.
    """

    gathers: ClassVar = True

    api: BatchApi
    store: BatchJobStore
    counts: JudgeProgress
    ledger: BudgetLedger | None = None
    deadline: float | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._most_tokens: int | None = None
        """What one batch may take of the provider's queue, once that had no room."""
        self._refusals = 0
        self._jobs: list[BatchJob] = []
        self._reserved: dict[str, float] = {}
        self._failed_looks = 0
        self._begun = self._first_sent = False

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
        return cls(batches, store, context.counts, context.ledger, context.deadline)

    async def __call__(
        self, requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int
    ) -> None:
        """Have all requests answered. Raises what ends a run; batches that are under way then stay so."""

        async def online(batch: Iterable[Request]) -> None:
            async def each() -> AsyncIterator[Request]:
                for request in batch:
                    yield request

            await engines.run_local(each(), ask, done, concurrency=concurrency)

        clock = asyncio.timeout_at(self.deadline)
        try:
            async with clock:
                await self._round(requests, online, done)
        except TimeoutError:
            if clock.expired():
                raise DeadlineReached(
                    "the time for judging (--deadline) is up; batches at the provider go on without it"
                ) from None
            raise
        self.counts.batch_status = ""

    @property
    def _open(self) -> list[BatchJob]:
        """The jobs that something is wanted of."""
        return [job for job in self._jobs if job.expected]

    async def _round(self, requests: AsyncIterator[Request], online: Online, done: Done) -> None:
        rest: list[Request] = []
        async for request in requests:
            if not self._begun:
                self.api.line(
                    request, self.api.body(request)
                )  # raises for what no batch can ask for
                await self._with_retries(self.api.check)
                self._jobs += self.store.load(self._jobs)
                self._begun = True
            if self._is_under_way(request):
                continue
            if self._first_sent:
                rest.append(request)
            else:
                await online([request])
                self._first_sent = True
        if not rest and not self._open:
            return
        try:
            async with (
                asyncio.TaskGroup() as group
            ):  # what goes online may wait for what batches keep of a budget
                await self._watch(
                    rest, done, online, lambda unanswered: group.create_task(online(unanswered))
                )
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def _is_under_way(self, request: Request) -> bool:
        """Whether a request is in one of the jobs, of which it is wanted from now on."""
        return any(job.claim(request) for job in self._jobs)

    async def _watch(self, rest: list[Request], done: Done, online: Online, later: Later) -> None:
        """Send the rest, look at every batch until the last one has ended, and hand over its answers as it does.

        What no batch answers is asked online meanwhile.
        """
        rest = await self._submit(rest, online, later)
        self._update_status()
        wait = _SOONEST
        while True:
            ends = [
                (job, batch) for job in self._open if (batch := await self._ended(job, rest, later))
            ]
            for job, batch in ends:
                await self._deliver(job, batch, done, later)
            if rest and (ends or not self._open):
                rest = await self._submit(rest, online, later)
                if rest and self.ledger and not self._open:
                    reserved = await self.ledger.reserve(
                        rest[0], BATCH
                    )  # raises where it can never be paid for
                    self.ledger.release(reserved)
            self._update_status()
            if not self._open and not rest:
                return
            await self.sleep(wait)
            wait = _SOONEST if ends else min(wait * _WAIT_GROWTH, _LATEST)

    # Sending.

    async def _submit(self, requests: list[Request], online: Online, later: Later) -> list[Request]:
        """Send what is not on its way yet; what the budget does not pay for yet comes back.

        The first goes online where the process that had sent the others did not get that far. No other process sends
        meanwhile: no request is put in by two. Where the provider's queue was full, one batch is sent at a time.
        """
        async with self.store.locked(self.sleep):
            self._jobs += self.store.load(self._jobs)
            rest = deque(request for request in requests if not self._is_under_way(request))
            for job in self._open:
                if not job.batch:
                    rest.extend(await self._recover(job))
            while rest and self._first_sent:
                with TemporaryFile() as file:
                    job = self._pack(rest, file)
                    if not job.entries:
                        break
                    self._jobs.append(job)
                    self.store.save(job)
                    upload, find = (
                        partial(self.api.upload, job.name, file),
                        partial(self.api.uploaded, job.name),
                    )
                    job.file = await self._with_retries(upload, find)
                    self.store.save(job)
                    try:
                        await self._create(job, file)
                    except Transient as error:
                        if error.status != 429 or not self.api.inline or len(job.expected) == 1:
                            raise
                        rest.extendleft(reversed(self._take_back(job, later)))
                    if self._most_tokens is not None:
                        break
        if rest and not self._first_sent:
            await online([rest.popleft()])
            self._first_sent = True
            return await self._submit(list(rest), online, later)
        return list(rest)

    def _pack(self, rest: deque[Request], file: IO[bytes]) -> BatchJob:
        """A job with as many of these as one file may hold and the budget pays for, which are taken off `rest`."""
        job, size, read = self.store.new(), 0, 0
        try:
            while rest and len(job.entries) < self.api.most_requests:
                body, read = self.api.body(rest[0]), read + budget.estimate_request(rest[0])
                written = self.api.line(rest[0], body)
                if size and (
                    size + len(written) > self.api.most_bytes or read > (self._most_tokens or read)
                ):
                    break
                key = rest[0].key()
                if self.ledger is not None and key not in self._reserved:
                    reserved = self.ledger.try_reserve(rest[0], BATCH)
                    if reserved is None:
                        break
                    self._reserved[key] = reserved
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
        self.counts.sent += len(job.expected)
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

    def _take_back(self, job: BatchJob, later: Later) -> list[Request]:
        """Drop a batch that the provider's queue had no room for; return its requests, which go in smaller batches.

        Smaller, unless others of ours are in the queue. A single request that never gets a place is asked online.
        """
        requests = self._drop(job)
        size = sum(map(budget.estimate_request, requests))
        size = min(size, self._most_tokens or size)
        self._most_tokens = size if self._open else max(1, size // 2)
        self._refusals = self._refusals + 1 if len(requests) == 1 else 0
        if self._refusals < _MAX_REFUSALS:
            return requests
        self._refusals = 0
        self._remark(
            "A request was asked online, at the full price: the provider's queue had no room for it."
        )
        self._ask_online(requests, later)
        return []

    # Receiving.

    async def _ended(self, job: BatchJob, rest: list[Request], later: Later) -> Batch | None:
        """The batch if it has ended. What the provider does not know any more, or had no room for, joins the `rest`."""
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
            rest[:0] = self._drop(
                job
            )  # first, as they are paid for: others may wait for that money
            return None
        self._failed_looks = 0
        if batch.queue_full:
            rest[:0] = self._take_back(job, later)
            return None
        return batch if batch.ended else None

    async def _deliver(self, job: BatchJob, batch: Batch, done: Done, later: Later) -> None:
        """Hand over what a batch brought, and have asked online what it did not."""
        if self._most_tokens is not None:
            self._most_tokens, self._refusals = 2 * self._most_tokens, 0
        for name in batch.files:
            with TemporaryFile() as file:
                try:
                    await self._with_retries(partial(self.api.fetch, name, file, batch.total))
                except Refused as error:
                    if error.status != 404:
                        raise
                    continue  # deleted: what it held was not returned
                lines = self.api.lines(file)
                while chunk := list(
                    islice(lines, _CHUNK)
                ):  # many at once, so that they share a write
                    stored = [self._hand_over(job, data, done) for data in chunk]
                    await (next(filter(None, reversed(stored)), None) or asyncio.sleep(0))
        if unanswered := list(job.expected.values()):
            why = f" ({batch.why})" if batch.why else ""
            self._remark(
                f"Batch {batch.id}, {batch.status}{why}, left {plural(len(unanswered), 'request')} to be asked online, "
                "at the full price."
            )
            self._ask_online(unanswered, later)
        for custom in list(job.expected):
            job.done(custom)
        if job.entries:  # what another run waits for
            self.store.save(job)
        else:
            self._drop(job)

    def _hand_over(self, job: BatchJob, data: dict[str, Any], done: Done) -> Awaitable[None] | None:
        """Take the answer in a line, if it is one: what is wrong with others is found out online."""
        custom, reply = str(data.get("custom_id")), data.get("response")
        request = job.expected.get(custom)
        if (
            request is None
            or data.get("error")
            or not isinstance(reply, dict)
            or reply.get("status_code") != 200
        ):
            return None
        try:
            response: Response = self.api.read(request, job.shape(request), reply.get("body"))
        except ProviderError:
            return None
        job.done(custom)
        self.counts.batched += response.usage
        if self.ledger and (reserved := self._reserved.pop(request.key(), None)) is not None:
            self.ledger.commit(reserved, request, response.usage, BATCH)
        return done(request, response)

    def _ask_online(self, requests: Iterable[Request], later: Later) -> None:
        """Have requests asked online that no batch has answered, or was paid for."""
        for request in requests:
            if self.ledger and (reserved := self._reserved.pop(request.key(), None)) is not None:
                self.ledger.release(reserved)
        later(requests)

    def _update_status(self) -> None:
        states = [job.state for job in self._open if job.state]
        done, total = sum(state.done for state in states), sum(state.total for state in states)
        by_status = ", ".join(
            f"{n} {status}" for status, n in sorted(Counter(s.status for s in states).items())
        )
        self.counts.batch_status = (
            f"batches: {by_status}, {done:,} of {total:,} requests answered" if states else ""
        )

    def _remark(self, remark: str) -> None:
        self.counts.remarks.append(remark)
