"""The Batch API of an OpenAI-compatible address: files of requests, answered within a day for half the price."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import quote

from judge.core.errors import ConfigError, Refused
from judge.core.records import Request, Response
from judge.providers.http_client import MOST, HttpClient, body_error, redact_and_truncate

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
"""What one file may hold."""
_MOST_OF_EACH = 4_000_000
"""Bytes of the answer to one request, in the mean of a file."""
_PATH = "/v1/chat/completions"
_NAME = "judge"
_PAGE = 100
_MOST_PAGES = 20
_SLOWEST = 1800.0
"""Seconds that a file may take on its way."""
_ENDS = {"completed", "failed", "expired", "cancelled"}
_NONE_HERE = {404, 405, 501}
_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""JSON lets them stand, and readers of lines stumble over them."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """How a batch stands: `done` of its `total` requests have an answer or an error, which are in `files`.

    `why` is the reason where it failed as a whole, `code` that reason's name.
    """

    id: str
    status: str
    done: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    code: str = ""
    why: str = ""

    @property
    def ended(self) -> bool:
        return self.status in _ENDS

    @property
    def crowded(self) -> bool:
        """Whether it was refused because too many tokens are queued already."""
        return self.status == "failed" and self.code == "token_limit_exceeded"


class BatchApi:
    """The Batch API beside a chat endpoint. `body` and `read` are that endpoint's own: what it is sent, what it means.

    Everything raises Transient or Refused, as the endpoint does, and `fetch` StorageError where the disk is full.
    """

    def __init__(
        self, http: HttpClient, body: Callable[[Request], Body], read: Callable[[Request, Body, Any], Response]
    ) -> None:
        self.body, self.read = body, read
        self._http = http

    async def check(self) -> None:
        """Raises ConfigError where the address has no Batch API. Costs nothing."""
        try:
            await self._http.get("/batches?limit=1")
        except Refused as error:
            if error.status not in _NONE_HERE:
                raise
            raise ConfigError(f"--engine batch: {self._http.url} has no Batch API; leave the option out") from error

    async def upload(self, name: str, file: IO[bytes]) -> str:
        """The id of the file of requests that this becomes there."""
        data = await self._http.upload(
            "/files", {"purpose": "batch"}, (f"{name}.jsonl", file, "application/jsonl"), _SLOWEST
        )
        return _id(data, self._http.url, "file")

    async def create(self, name: str, file: str) -> Batch:
        """Have an uploaded file worked off."""
        how = {"input_file_id": file, "endpoint": _PATH, "completion_window": "24h", "metadata": {_NAME: name}}
        return self._batch((await self._http.post("/batches", how)).data)

    async def get(self, id: str) -> Batch:
        return self._batch(await self._http.get(f"/batches/{quote(id, safe='')}"))

    async def find(self, name: str) -> Batch | None:
        """The batch that was created with this name and has not failed, among the last 2,000."""
        async for data in self._pages("/batches?"):
            metadata = data.get("metadata")
            if isinstance(metadata, dict) and metadata.get(_NAME) == name and data.get("status") != "failed":
                return self._batch(data)
        return None

    async def uploaded(self, name: str) -> str | None:
        """The id of the file that was uploaded with this name, among the last 2,000."""
        async for data in self._pages("/files?purpose=batch&order=desc&"):
            if data.get("filename") == f"{name}.jsonl":
                return str(data["id"])
        return None

    async def fetch(self, file: str, into: IO[bytes], requests: int = MOST_REQUESTS) -> None:
        """Write a file of answers or errors to so many requests."""
        most = MOST + min(requests, MOST_REQUESTS) * _MOST_OF_EACH
        await self._http.download(f"/files/{quote(file, safe='')}/content", into, most, _SLOWEST)

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        """The objects of a file that was fetched, in no particular order; lines that are none are left out."""
        file.seek(0)
        for written in _short(file):
            try:
                found = json.loads(self._http.blotted(written))
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found

    async def _pages(self, path: str) -> AsyncIterator[Body]:
        after = ""
        for _ in range(_MOST_PAGES):
            page = await self._http.get(f"{path}limit={_PAGE}{after}")
            listed = page.get("data") if isinstance(page, dict) else None
            if not isinstance(listed, list):
                raise body_error(page, self._http.url, "list")
            for data in listed:
                if isinstance(data, dict) and data.get("id"):
                    yield data
                    after = f"&after={quote(str(data['id']), safe='')}"
            if not listed or not page.get("has_more"):
                return

    def _batch(self, data: Any) -> Batch:
        id = _id(data, self._http.url, "batch")
        counts = data.get("request_counts") or {}
        done, failed, total = (_count(counts, name) for name in ("completed", "failed", "total"))
        files = tuple(str(data[name]) for name in ("output_file_id", "error_file_id") if data.get(name))
        errors = data.get("errors") or {}
        listed = errors.get("data") if isinstance(errors, dict) else errors
        first = next((one for one in listed or () if isinstance(one, dict)), {})
        code, why = str(first.get("code") or ""), redact_and_truncate(first.get("message") or "")
        return Batch(id, str(data.get("status")), done + failed, total, files, code, why)


def line(request: Request, body: Body) -> bytes:
    """One line of a file of requests."""
    asked = {"custom_id": request.key(), "method": "POST", "url": _PATH, "body": body}
    return (json.dumps(asked, ensure_ascii=False, separators=(",", ":")).translate(_BREAKS) + "\n").encode()


def _short(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file that are no longer than a reply may be."""
    whole = True
    while written := file.readline(MOST):
        ended = written.endswith(b"\n")
        if whole and (ended or len(written) < MOST):
            yield written
        whole = ended


def _id(data: Any, url: str, what: str) -> str:
    if not isinstance(data, dict) or not isinstance(data.get("id"), str):
        raise body_error(data, url, what)
    return str(data["id"])


def _count(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int and value >= 0 else 0
