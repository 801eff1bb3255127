"""The unfinished jobs of a Batch API, written to disk before each step.

The files have neither a key nor any text.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any

from judge.core import files
from judge.core.errors import StorageError
from judge.core.messages import option, start_again
from judge.core.records import Request
from judge.providers.batches import Batch

FOLDER = "batches"
"""The folder of the jobs, under that of the cache."""
_VERSION = 1
# After this time, a provider has deleted a batch's files.
_KEPT_DAYS = 30
_SECONDS_PER_DAY = 86400
_LOCK_POLL_SECONDS = 0.2
_TEXT_KEYS = ("messages", "model")


def _is_about_text(parameter: str) -> bool:
    # The parameters of prompt caching have a digest of the text.
    return parameter in _TEXT_KEYS or "cache" in parameter


def _key_without_n(request: Request) -> str:
    """Return the request's key without `n`, because servers limit `n`."""
    if "n" not in request.params:
        return request.key()
    params = dict(request.params)
    del params["n"]
    return replace(request, params=params).key()


@dataclass(slots=True)
class BatchJob:
    """The requests of one batch. The provider has its `name` in the file's name and in metadata.

    `entries` maps a request's key without `n` to its custom id and its index in `shapes` (bodies
    without their texts). `file` and `batch` are the provider's ids, empty until they are known.
    `expected` are, by custom id, the requests that this run waits for. `state` is the last known
    state of the batch.
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
            parameter: value
            for parameter, value in body.items()
            if not _is_about_text(parameter)
        }
        # Most requests of a batch differ in their texts alone.
        if shape not in self.shapes:
            self.shapes.append(shape)
        custom_id = request.key()
        self.entries[_key_without_n(request)] = (custom_id, self.shapes.index(shape))
        self.expected[custom_id] = request

    def claim(self, request: Request) -> bool:
        """Return whether the job has this request, and mark it as expected."""
        entry = self.entries.get(_key_without_n(request))
        if entry is None:
            return False
        custom_id, _ = entry
        self.expected[custom_id] = request
        return True

    def shape(self, request: Request) -> dict[str, Any]:
        """Return the body of a request without its texts."""
        _, index = self.entries[_key_without_n(request)]
        return self.shapes[index]

    def done(self, custom_id: str) -> None:
        """Remove an expected request that has its answer."""
        request = self.expected.pop(custom_id)
        del self.entries[_key_without_n(request)]


class BatchJobStore:
    """A folder of jobs, one JSON file each. Raises StorageError if it cannot be used."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder = folder
        self.endpoint = endpoint

    def new(self) -> BatchJob:
        # No other job of the provider's account may have the name, by which a batch is found again.
        job_name = secrets.token_hex(8)
        return BatchJob(self.folder / f"{job_name}.json", self.endpoint)

    def load(self, known: Iterable[BatchJob] = ()) -> list[BatchJob]:
        """Return the jobs of this endpoint except those that are `known`.

        Jobs whose files the provider has deleted are left out. They stay on the disk, because this
        machine's clock may be wrong.
        """
        jobs = []
        known_paths = {job.path for job in known}
        with _translating_errors(self.folder):
            for path in sorted(self.folder.glob("*.json")):
                age = time.time() - path.stat().st_mtime
                if age > _KEPT_DAYS * _SECONDS_PER_DAY or path in known_paths:
                    continue
                job = _read(path)
                if job and job.endpoint == self.endpoint:
                    jobs.append(job)
        return jobs

    def save(self, job: BatchJob) -> None:
        """Write a job to disk, completely or not at all."""
        data = {
            "version": _VERSION,
            "endpoint": job.endpoint,
            "file": job.file,
            "batch": job.batch,
            "shapes": job.shapes,
            "asked": job.entries,
        }
        content = json.dumps(data, separators=(",", ":")).encode()
        with _translating_errors(self.folder), files.replacing(job.path) as file:
            file.write(content)

    def forget(self, job: BatchJob) -> None:
        with _translating_errors(self.folder):
            job.path.unlink(missing_ok=True)

    @asynccontextmanager
    async def locked(
        self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> AsyncIterator[None]:
        """Keep other processes from adding jobs. The lock ends with its process."""
        with _translating_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            # Jobs hold parameters of requests, which are the owner's alone.
            self.folder.chmod(0o700)
            file = FileIO(self.folder / "lock", "a")
        with file:
            with _translating_errors(self.folder):
                while not files.try_lock(file):
                    await sleep(_LOCK_POLL_SECONDS)
            yield


def under_way(folder: Path, endpoint: str) -> int:
    """Return the number of requests to an endpoint in batches whose answers nobody has fetched.

    Raises StorageError.
    """
    jobs = BatchJobStore(folder / FOLDER, endpoint).load()
    return sum(len(job.entries) for job in jobs)


def _read(path: Path) -> BatchJob | None:
    """Return the job in a file; None if it is damaged, or if another run has just deleted it."""
    try:
        data = json.loads(path.read_bytes())
        if data["version"] != _VERSION:
            return None
        entries = {}
        for key, (custom_id, position) in data["asked"].items():
            entries[key] = (str(custom_id), int(position))
        return BatchJob(
            path=path,
            endpoint=data["endpoint"],
            entries=entries,
            shapes=list(data["shapes"]),
            file=data["file"],
            batch=data["batch"],
        )
    except (
        FileNotFoundError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
    ):
        return None


@contextmanager
def _translating_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = error.strerror or error
        cache_option = option("cache", "DIR")
        raise StorageError(
            f"{folder}: {problem}; make room or name another folder with {cache_option}, then "
            f"{start_again()}"
        ) from error
