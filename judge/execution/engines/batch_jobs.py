"""Pending jobs at a Batch API, and the files that remember them.

Each step (packed, uploaded, created) is on disk before the next, so that a killed run resumes its jobs. The files hold
no key and no text.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

from judge.core import files
from judge.core.errors import StorageError, Transient
from judge.core.records import Request, Usage
from judge.execution import budget
from judge.execution.budget import BudgetLedger
from judge.execution.progress import JudgeProgress
from judge.providers.openai import MOST_BYTES, MOST_REQUESTS, Batch, BatchApi, line
from judge.providers.pricing import BATCH

FOLDER = "batches"
"""In that which outlives the process."""
_VERSION = 1
_KEPT_DAYS = 30
"""After which a provider has deleted a batch's files."""
_LOCK_POLL_SECONDS = 0.2
_OMITTED = ("messages", "model")


def key_without_n(request: Request) -> str:
    """The request's key whatever the number of draws asked for at once, which a server may have had its say in."""
    if "n" not in request.params:
        return request.key()
    return replace(request, params={name: value for name, value in request.params.items() if name != "n"}).key()


@dataclass(slots=True)
class BatchJob:
    """The requests of one batch; `name` is what the provider knows it by: its file's name and its metadata.

    `entries` maps `key_without_n` to a request's custom id and its index in `shapes` (the body without its texts).
    `file` and `batch` are the provider's ids, empty until they are known. `expected` are, by custom id, the requests
    that this run waits for.
    """

    path: Path
    endpoint: str
    entries: dict[str, tuple[str, int]] = field(default_factory=dict)
    shapes: list[dict[str, Any]] = field(default_factory=list)
    file: str = ""
    batch: str = ""
    expected: dict[str, Request] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"judge-{self.path.stem}"

    def add(self, request: Request, body: dict[str, Any]) -> None:
        shape = {name: value for name, value in body.items() if name not in _OMITTED and "cache" not in name}
        if shape not in self.shapes:
            self.shapes.append(shape)
        custom = request.key()
        self.entries[key_without_n(request)] = (custom, self.shapes.index(shape))
        self.expected[custom] = request

    def claim(self, plain: str, request: Request) -> bool:
        """Whether it holds this request, which is wanted from now on."""
        entry = self.entries.get(plain)
        if entry is not None:
            self.expected[entry[0]] = request
        return entry is not None

    def shape(self, request: Request) -> dict[str, Any]:
        """What the body of a request had besides its texts."""
        return self.shapes[self.entries[key_without_n(request)][1]]

    def done(self, custom: str) -> None:
        """A wanted request has its answer."""
        del self.entries[key_without_n(self.expected.pop(custom))]


class BatchJobStore:
    """A folder of parts, one JSON file each. Raises StorageError where it cannot be used."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder, self.endpoint = folder, endpoint

    def new(self) -> BatchJob:
        return BatchJob(self.folder / f"{secrets.token_hex(8)}.json", self.endpoint)

    def load(self, known: Iterable[str] = ()) -> list[BatchJob]:
        """The parts of this endpoint, without those whose names are `known`.

        What cannot be read is set aside, and what the provider no longer has is deleted.
        """
        jobs = []
        with _translating_errors(self.folder):
            for path in sorted(self.folder.glob("*.json")):
                if time.time() - path.stat().st_mtime > _KEPT_DAYS * 86400:
                    path.unlink(missing_ok=True)
                elif f"judge-{path.stem}" not in known and (job := _read(path)) and job.endpoint == self.endpoint:
                    jobs.append(job)
        return jobs

    def save(self, job: BatchJob) -> None:
        """On disk when this returns; never half."""
        data = {
            "version": _VERSION, "endpoint": job.endpoint, "file": job.file, "batch": job.batch,
            "shapes": job.shapes, "asked": job.entries,
        }  # fmt: skip
        aside = job.path.with_suffix(".new")
        with _translating_errors(self.folder):
            with aside.open("w", encoding="utf-8") as file:
                json.dump(data, file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            aside.replace(job.path)

    def forget(self, job: BatchJob) -> None:
        with _translating_errors(self.folder):
            job.path.unlink(missing_ok=True)

    @asynccontextmanager
    async def locked(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> AsyncIterator[None]:
        """While this lasts no other process puts a part in here; a lock ends with its process."""
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
    try:
        data = json.loads(path.read_bytes())
        if data["version"] != _VERSION:
            return None
        entries = {plain: (str(custom), int(at)) for plain, (custom, at) in data["asked"].items()}
        return BatchJob(path, data["endpoint"], entries, list(data["shapes"]), data["file"], data["batch"])
    except FileNotFoundError:  # another run is done with it
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        path.replace(path.with_suffix(".damaged"))
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


T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
SOONEST, LATEST = 1.0, 60.0
"""Seconds between two tries, or two looks: the first ones, and the most."""
_MAX_TRIES = 8


class BatchJobs:
    """The jobs of one judge at its Batch API: `jobs` by their names, `states` as they were last seen.

    `waiting_for_room` are jobs that are uploaded and wait for room in the provider's queue. One batch may take
    `most_tokens` of that queue, if this is known. Nothing is packed before `first_sent`, because the first request
    shows what the server accepts.
    """

    def __init__(
        self, api: BatchApi, folder: BatchJobStore, counts: JudgeProgress, ledger: BudgetLedger | None, *,
        sleep: Sleep = asyncio.sleep, most_requests: int = MOST_REQUESTS, most_bytes: int = MOST_BYTES,
    ) -> None:  # fmt: skip
        self.api, self.folder, self.counts, self.sleep = api, folder, counts, sleep
        self.jobs: dict[str, BatchJob] = {}
        self.states: dict[str, Batch] = {}
        self.waiting_for_room: list[BatchJob] = []
        self.most_tokens: int | None = None
        self.first_sent = False
        self._most_requests, self._most_bytes = most_requests, most_bytes
        self._ledger = ledger
        self._reserved: dict[str, float] = {}

    @property
    def open(self) -> list[BatchJob]:
        """The parts that something is wanted of."""
        return [job for job in self.jobs.values() if job.expected]

    def load_existing(self) -> None:
        """Know the parts that other processes have left, or are just waiting for."""
        self.jobs |= {job.name: job for job in self.folder.load(self.jobs)}

    def adopt(self, request: Request) -> bool:
        """Whether a request is in one of the parts, of which it is wanted from now on."""
        plain = key_without_n(request)
        return any(job.claim(plain, request) for job in self.jobs.values())

    async def submit(self, fresh: list[Request]) -> list[Request]:
        """Send what is not on its way yet; what cannot go, before the first one or beyond the budget, comes back.

        No other process does so meanwhile: no request is put in by two.
        """
        async with self.folder.locked(self.sleep):
            self.load_existing()
            rest = deque(request for request in fresh if not self.adopt(request))
            for job in [job for job in self.open if not job.batch and job not in self.waiting_for_room]:
                rest.extend(await self._recover(job))
            while rest and self.first_sent:
                with TemporaryFile() as file:
                    job = self._pack(rest, file)
                    if not job.entries:
                        break
                    self.jobs[job.name] = job
                    self.folder.save(job)
                    await self._upload(job, file)
                if self.most_tokens is None:
                    await self._create(job)
                else:
                    self.waiting_for_room.append(job)
        return list(rest)

    async def resubmit(self, job: BatchJob) -> None:
        """Have the file of a held part worked off, unless another process has seen to that."""
        async with self.folder.locked(self.sleep):
            batch = await self.with_retries(lambda: self.api.find(job.name))
            if batch is None:
                await self._create(job)
            else:
                self._record_created(job, batch)

    def drop(self, job: BatchJob) -> list[Request]:
        """Forget a part; what was wanted of it has to be had another way."""
        self.folder.forget(job)
        del self.jobs[job.name]
        self.states.pop(job.name, None)
        return list(job.expected.values())

    def complete(self, job: BatchJob) -> None:
        """Forget what has been answered of a part, and with the last of it the part."""
        if job.entries:
            self.folder.save(job)
        else:
            self.drop(job)

    def record_cost(self, request: Request, used: Usage) -> None:
        """A batch has answered a request."""
        self.counts.batched += used
        if self._ledger and (reserved := self._reserved.pop(request.key(), None)) is not None:
            self._ledger.commit(reserved, request, used, BATCH)

    def unpaid(self, request: Request) -> None:
        """A batch has not answered a request, and is not paid for it."""
        if self._ledger and (reserved := self._reserved.pop(request.key(), None)) is not None:
            self._ledger.release(reserved)

    async def with_retries(
        self, call: Callable[[], Awaitable[T]], find: Callable[[], Awaitable[T | None]] | None = None
    ) -> T:
        """What the call returns, tried again after a Transient; `find` looks whether it had not worked after all."""
        wait, failed = SOONEST, 0
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
                await self.sleep(min(max(error.retry_after or 0.0, wait), LATEST))
                wait *= 2

    def _pack(self, rest: deque[Request], file: IO[bytes]) -> BatchJob:
        """A part with as many of these as one file may hold and the budget pays for, which are taken off `rest`."""
        job, size, read = self.folder.new(), 0, 0
        try:
            while rest and len(job.entries) < self._most_requests:
                body, read = self.api.body(rest[0]), read + budget.estimate_request(rest[0])
                written = line(rest[0], body)
                if size and (size + len(written) > self._most_bytes or read > (self.most_tokens or read)):
                    break
                key = rest[0].key()
                if self._ledger is not None and key not in self._reserved:
                    reserved = self._ledger.try_reserve(rest[0], BATCH)
                    if reserved is None:
                        break
                    self._reserved[key] = reserved
                size += file.write(written)
                job.add(rest.popleft(), body)
        except OSError as error:
            raise StorageError(f"a file of requests cannot be written: {error.strerror or error}") from error
        return job

    async def _upload(self, job: BatchJob, file: IO[bytes]) -> None:
        job.file = await self.with_retries(lambda: self.api.upload(job.name, file), lambda: self.api.uploaded(job.name))
        self.folder.save(job)

    async def _create(self, job: BatchJob) -> None:
        batch = await self.with_retries(lambda: self.api.create(job.name, job.file), lambda: self.api.find(job.name))
        self.counts.sent += len(job.expected)
        self._record_created(job, batch)

    def _record_created(self, job: BatchJob, batch: Batch) -> None:
        job.batch, self.states[job.name] = batch.id, batch
        self.folder.save(job)

    async def _recover(self, job: BatchJob) -> list[Request]:
        """Find a part again whose process died while it was sending it; its requests, where nothing had been sent."""
        if batch := await self.with_retries(lambda: self.api.find(job.name)):
            self._record_created(job, batch)
            return []
        if not job.file:
            file = await self.with_retries(lambda: self.api.uploaded(job.name))
            if file is None:
                return self.drop(job)
            job.file = file
        await self._create(job)
        return []
