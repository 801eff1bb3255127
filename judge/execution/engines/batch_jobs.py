"""The jobs of a Batch API that are under way, on disk before each step.

The files hold no key and no text.
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
from judge.core.records import Request
from judge.providers.batches import Batch

FOLDER = "batches"
"""In that which outlives the process."""
_VERSION = 1
_KEPT_DAYS = 30
"""After which a provider has deleted a batch's files."""
_LOCK_POLL_SECONDS = 0.2
_OMITTED = ("messages", "model")


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
