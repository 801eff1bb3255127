"""The Batch API of OpenAI and compatible vendors: answers within a day for half the price.

`anthropic_batch` and `google_batch` use those vendors' own formats. To the engine their batches look like OpenAI's: one
chat completion per line.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import quote

from judge.core.errors import ConfigError, Refused
from judge.core.records import Request, Response
from judge.providers.http_client import (
    MAX_REPLY_BYTES,
    HttpClient,
    Options,
    body_error,
    redact_and_truncate,
)

_MAX_ANSWER_BYTES = 4_000_000
"""Bytes per request that a file of answers may have on average."""
_CHAT = "/v1/chat/completions"
_NAME = "judge"
PAGE = 100
MAX_PAGES = 20
TRANSFER_SECONDS = 1800.0
"""Timeout of an upload or download, in seconds."""
_FINAL_STATES = {"completed", "ended", "succeeded", "failed", "expired", "cancelled"}
_NOT_FOUND = {404, 405, 501}
_ESCAPED_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""JSON allows these characters inside a text, but some readers split lines at them."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """The state of a batch: `done` of its `total` requests have an answer or an error, which are in `files`.

    If the whole batch failed, `why` is the reason and `code` the vendor's name for it.
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
        return self.status in _FINAL_STATES

    @property
    def queue_full(self) -> bool:
        """Whether the batch was refused because too many tokens are already queued."""
        return self.status == "failed" and self.code == "token_limit_exceeded"


class BatchApi:
    """The Batch API of a chat endpoint. `body` writes a request as the endpoint does; `read` reads the reply.

    `most_requests` and `most_bytes` limit one batch. If `inline`, nothing is uploaded: the requests are sent when the
    batch is created, and `upload` returns what `find` needs to recognize the batch. All methods raise Transient or
    Refused, as the endpoint does, and `fetch` raises StorageError if the disk is full.
    """

    most_requests, most_bytes = 50_000, 200_000_000
    inline = False
    _path, _cursor, _page_size = "/batches", "after", "limit"

    def __init__(
        self,
        http: HttpClient,
        body: Callable[[Request], Body],
        read: Callable[[Request, Body, Any], Response],
    ) -> None:
        self.body, self.read = body, read
        self._http = http

    @classmethod
    def client(cls, http: HttpClient, http_options: Options) -> HttpClient:
        """Return the client that reaches the batches of the chat endpoint that `http` reaches."""
        return http

    async def aclose(self) -> None:
        await self._http.aclose()

    def line(self, request: Request, body: Body) -> bytes:
        """Return a request as a line of JSON. Raises ConfigError for a parameter that a batch does not accept."""
        return written({"custom_id": request.key(), "method": "POST", "url": _CHAT, "body": body})

    async def check(self) -> None:
        """Raise ConfigError if the address has no Batch API. Costs nothing."""
        try:
            await self._http.get(f"{self._path}?{self._page_size}=1")
        except Refused as error:
            if error.status not in _NOT_FOUND:
                raise
            raise ConfigError(
                f"--engine batch: {self._http.url} has no Batch API; leave the option out"
            ) from error

    async def upload(self, name: str, file: IO[bytes]) -> str:
        """Upload the requests and return the file's id."""
        data = await self._http.upload(
            "/files",
            {"purpose": "batch"},
            (f"{name}.jsonl", file, "application/jsonl"),
            TRANSFER_SECONDS,
        )
        return id_of(data, self._http.url, "file")

    async def create(self, name: str, file: str, content: IO[bytes] | None = None) -> Batch:
        """Start a batch of an uploaded file, or `inline` of the requests in `content`."""
        request = {
            "input_file_id": file,
            "endpoint": _CHAT,
            "completion_window": "24h",
            "metadata": {_NAME: name},
        }
        return self._batch((await self._http.post(self._path, request)).data)

    async def get(self, id: str) -> Batch:
        return self._batch(await self._http.get(f"{self._path}/{quote(id, safe='')}"))

    async def find(self, name: str, file: str, total: int) -> Batch | None:
        """Return the batch created with this name, among the last 2,000, if it has not failed."""
        async for data in self._pages(f"{self._path}?"):
            metadata = data.get("metadata")
            if (
                isinstance(metadata, dict)
                and metadata.get(_NAME) == name
                and data.get("status") != "failed"
            ):
                return self._batch(data)
        return None

    async def uploaded(self, name: str) -> str | None:
        """Return the id of the file uploaded with this name, among the last 2,000."""
        if self.inline:
            return None
        async for data in self._pages("/files?purpose=batch&order=desc&"):
            if data.get("filename") == f"{name}.jsonl":
                return str(data["id"])
        return None

    async def fetch(self, file: str, into: IO[bytes], requests: int = 50_000) -> None:
        """Download a file of answers or errors to at most `requests` requests."""
        most = MAX_REPLY_BYTES + min(requests, self.most_requests) * _MAX_ANSWER_BYTES
        await self._http.download(self._content_path(file), into, most, TRANSFER_SECONDS)

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        """Yield the JSON objects of a downloaded file, in any order; other lines are skipped."""
        file.seek(0)
        while line := file.readline(
            MAX_REPLY_BYTES
        ):  # a longer one arrives in pieces, which are no JSON
            try:
                entry = json.loads(self._http.redacted(line))
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                yield entry

    def _content_path(self, file: str) -> str:
        return f"/files/{quote(file, safe='')}/content"

    async def _pages(self, path: str) -> AsyncIterator[Body]:
        after = ""
        for _ in range(MAX_PAGES):
            page = await self._http.get(f"{path}limit={PAGE}{after}")
            listed = page.get("data") if isinstance(page, dict) else None
            if not isinstance(listed, list):
                raise body_error(page, self._http.url, "list")
            for data in listed:
                if isinstance(data, dict) and data.get("id"):
                    yield data
                    after = f"&{self._cursor}={quote(str(data['id']), safe='')}"
            if not listed or not page.get("has_more"):
                return

    def _batch(self, data: Any) -> Batch:
        id = id_of(data, self._http.url, "batch")
        done, failed, total = counts(data.get("request_counts"), "completed", "failed", "total")
        files = tuple(
            str(data[name]) for name in ("output_file_id", "error_file_id") if data.get(name)
        )
        errors = data.get("errors") or {}
        listed = errors.get("data") if isinstance(errors, dict) else errors
        first = next((entry for entry in listed or () if isinstance(entry, dict)), {})
        code, why = str(first.get("code") or ""), redact_and_truncate(first.get("message") or "")
        return Batch(id, str(data.get("status")), done + failed, total, files, code, why)


def written(entry: Body) -> bytes:
    """Return an object as one line of JSON."""
    return (
        json.dumps(entry, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED_BREAKS)
        + "\n"
    ).encode()


def counts(data: Any, *names: str) -> list[int]:
    """Return the counts with these names; 0 for one that is missing or not a whole number."""
    stated = [str(data.get(name)) if isinstance(data, dict) else "" for name in names]
    return [int(count) if re.fullmatch(r"[0-9]{1,15}", count) else 0 for count in stated]


def renamed(vendor: str, body: Body, names: Mapping[str, str], ignored: Collection[str]) -> Body:
    """Return a chat request's parameters by the vendor's names. Raises ConfigError for one the vendor does not know."""
    if unknown := body.keys() - names.keys() - {"model", "messages", *ignored}:
        raise ConfigError(
            f"--engine batch: {vendor}'s batches take no {min(unknown)}; leave it or the engine out"
        )
    return {names[name]: value for name, value in body.items() if name in names}


def answer(custom_id: Any, reply: Any, completion: Callable[[Any], Body]) -> Body:
    """Return a vendor's reply in the form of an OpenAI result line; an error if `completion` cannot read it."""
    try:
        return {"custom_id": custom_id, "response": {"status_code": 200, "body": completion(reply)}}
    except (TypeError, LookupError, AttributeError, ValueError):
        return {"custom_id": custom_id, "error": "no answer"}


def inline_requests(content: IO[bytes] | None) -> list[bytes]:
    """Return the lines of a file of requests. Raises ValueError without a file."""
    if content is None:
        raise ValueError("an inline batch is created with its requests")
    content.seek(0)
    return content.read().splitlines()


def id_of(data: Any, url: str, kind: str, field: str = "id") -> str:
    """Return the id in a reply. Raises Refused if the reply does not describe an object of this kind."""
    if not isinstance(data, dict) or not isinstance(data.get(field), str):
        raise body_error(data, url, kind)
    return str(data[field])
