"""What is under way at a Batch API, in files that outlive the process. No key and no text is in them."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any

from judge.core import file_lock
from judge.core.errors import StorageError
from judge.core.records import Request

FOLDER = "batches"
"""In that which outlives the process."""
_VERSION = 1
_KEPT_DAYS = 30
"""After which a provider has deleted a batch's files."""
_LOOK_SECONDS = 0.2
_TEXTS = ("messages", "model")


def plain_key(request: Request) -> str:
    """The request's key whatever the number of draws asked for at once, which a server may have had its say in."""
    if "n" not in request.params:
        return request.key()
    return replace(request, params={name: value for name, value in request.params.items() if name != "n"}).key()


@dataclass(slots=True)
class Part:
    """The requests of one batch; `name` is what the provider knows it by: its file's name and its metadata.

    `asked` has, by `plain_key`, a request's custom id and the place in `shapes` of what its body had besides texts.
    `file` and `batch` are the provider's ids, empty until they are known. `wanted` are, by custom id, the requests that
    this run waits for.
    """

    path: Path
    endpoint: str
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)
    shapes: list[dict[str, Any]] = field(default_factory=list)
    file: str = ""
    batch: str = ""
    wanted: dict[str, Request] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"judge-{self.path.stem}"

    def add(self, request: Request, body: dict[str, Any]) -> None:
        shape = {name: value for name, value in body.items() if name not in _TEXTS and "cache" not in name}
        if shape not in self.shapes:
            self.shapes.append(shape)
        custom = request.key()
        self.asked[plain_key(request)] = (custom, self.shapes.index(shape))
        self.wanted[custom] = request

    def claim(self, plain: str, request: Request) -> bool:
        """Whether it holds this request, which is wanted from now on."""
        found = self.asked.get(plain)
        if found is not None:
            self.wanted[found[0]] = request
        return found is not None

    def shape(self, request: Request) -> dict[str, Any]:
        """What the body of a request had besides its texts."""
        return self.shapes[self.asked[plain_key(request)][1]]

    def done(self, custom: str) -> None:
        """A wanted request has its answer."""
        del self.asked[plain_key(self.wanted.pop(custom))]


class Parts:
    """A folder of parts, one JSON file each. Raises StorageError where it cannot be used."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder, self.endpoint = folder, endpoint

    def new(self) -> Part:
        return Part(self.folder / f"{secrets.token_hex(8)}.json", self.endpoint)

    def load(self, known: Iterable[str] = ()) -> list[Part]:
        """The parts of this endpoint, without those whose names are `known`.

        What cannot be read is set aside, and what the provider no longer has is deleted.
        """
        found = []
        with _guarded(self.folder):
            for path in sorted(self.folder.glob("*.json")):
                if time.time() - path.stat().st_mtime > _KEPT_DAYS * 86400:
                    path.unlink(missing_ok=True)
                elif f"judge-{path.stem}" not in known and (part := _read(path)) and part.endpoint == self.endpoint:
                    found.append(part)
        return found

    def save(self, part: Part) -> None:
        """On disk when this returns; never half."""
        data = {
            "version": _VERSION, "endpoint": part.endpoint, "file": part.file, "batch": part.batch,
            "shapes": part.shapes, "asked": part.asked,
        }  # fmt: skip
        aside = part.path.with_suffix(".new")
        with _guarded(self.folder):
            with aside.open("w", encoding="utf-8") as file:
                json.dump(data, file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            aside.replace(part.path)

    def forget(self, part: Part) -> None:
        with _guarded(self.folder):
            part.path.unlink(missing_ok=True)

    @asynccontextmanager
    async def locked(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> AsyncIterator[None]:
        """While this lasts no other process puts a part in here; a lock ends with its process."""
        with _guarded(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            file = FileIO(self.folder / "lock", "a")
        with file:
            with _guarded(self.folder):
                while not file_lock.taken(file):
                    await sleep(_LOOK_SECONDS)
            yield


def under_way(folder: Path, endpoint: str) -> int:
    """How many requests to this endpoint are in batches that nobody has fetched yet. Raises StorageError."""
    return sum(len(part.asked) for part in Parts(folder / FOLDER, endpoint).load())


def _read(path: Path) -> Part | None:
    try:
        data = json.loads(path.read_bytes())
        if data["version"] != _VERSION:
            return None
        asked = {plain: (str(custom), int(at)) for plain, (custom, at) in data["asked"].items()}
        return Part(path, data["endpoint"], asked, list(data["shapes"]), data["file"], data["batch"])
    except FileNotFoundError:  # another run is done with it
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        path.replace(path.with_suffix(".damaged"))
        return None


@contextmanager
def _guarded(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{folder}: {error.strerror or error}; make room or name another folder with --cache DIR, "
            "then start the same command again"
        ) from error
