"""The Batch API of OpenAI and compatible vendors: answers within a day for half the price.

`anthropic_batch` and `google_batch` use those vendors' own formats. To the engine their batches
look like OpenAI's: one chat completion per line.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import quote

from judge.core.errors import ConfigError, Refused
from judge.core.messages import option
from judge.core.records import Request, Response
from judge.providers.http_client import HttpClient, Options
from judge.providers.http_errors import body_error, redact_and_truncate
from judge.providers.reply_body import MAX_REPLY_BYTES

# Bytes per request that a file of answers may have on average.
_MAX_ANSWER_BYTES = 4_000_000
_CHAT_PATH = "/v1/chat/completions"
# The key of a batch's name in its metadata, by which an interrupted run finds it again
# (docs/decisions/0023-a-batch-is-identified-by-its-name.md).
_NAME_KEY = "judge"
PAGE = 100  # entries of a list; OpenAI returns no more at once
MAX_PAGES = 20
TRANSFER_SECONDS = 1800.0
"""Timeout of an upload or download, in seconds."""
_FINAL_STATES = {
    "completed",
    "ended",
    "succeeded",
    "failed",
    "expired",
    "cancelled",
    "canceled",
}
_NO_SUCH_PATH = {404, 405, 501}
# JSON allows these characters inside a text, but some readers split lines at them.
_ESCAPED_BREAKS = str.maketrans(
    {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
# "0", "50000"
_WHOLE_NUMBER = re.compile(r"[0-9]{1,15}")

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """The state of a batch.

    `done` of its `total` requests have an answer or an error; both kinds are in `files`. If the
    whole batch failed, `why` is the reason and `code` the vendor's name for it.
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
    """The Batch API of a chat endpoint.

    `body` writes a request as the endpoint does, and `read` reads the reply. `most_requests` and
    `most_bytes` limit one batch. If `inline`, nothing is uploaded: the requests are sent when the
    batch is created, and `upload` returns what `find` needs to recognize the batch.

    All methods raise Transient or Refused, as the endpoint does, and `fetch` raises StorageError
    if the disk is full.
    """

    most_requests = 50_000
    most_bytes = 200_000_000
    inline = False
    _path = "/batches"
    _cursor = "after"
    _page_size = "limit"

    def __init__(
        self,
        http: HttpClient,
        body: Callable[[Request], Body],
        read: Callable[[Request, Body, Any], Response],
    ) -> None:
        self.body = body
        self.read = read
        self._http = http

    @classmethod
    def client(cls, http: HttpClient, http_options: Options) -> HttpClient:
        """Return the client for the batches of the chat endpoint that `http` reaches."""
        return http

    async def aclose(self) -> None:
        await self._http.aclose()

    def line(self, request: Request, body: Body) -> bytes:
        """Return a request as a line of JSON.

        Raises ConfigError for a parameter that a batch does not accept.
        """
        entry = {
            "custom_id": request.key(),
            "method": "POST",
            "url": _CHAT_PATH,
            "body": body,
        }
        return written(entry)

    async def check(self) -> None:
        """Raise ConfigError if the address has no Batch API. Costs nothing."""
        try:
            await self._http.get(f"{self._path}?{self._page_size}=1")
        except Refused as error:
            if error.status not in _NO_SUCH_PATH:
                raise
            raise ConfigError(
                f"{option('engine', 'batch')}: {self._http.url} has no Batch API; leave the option "
                "out"
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

    async def create(
        self, name: str, file: str, content: IO[bytes] | None = None
    ) -> Batch:
        """Start a batch of an uploaded file, or `inline` of the requests in `content`."""
        request = {
            "input_file_id": file,
            "endpoint": _CHAT_PATH,
            "completion_window": "24h",
            "metadata": {_NAME_KEY: name},
        }
        reply = await self._http.post(self._path, request)
        return self._batch(reply.data)

    async def get(self, id: str) -> Batch:
        quoted_id = quote(id, safe="")
        data = await self._http.get(f"{self._path}/{quoted_id}")
        return self._batch(data)

    async def find(self, name: str, file: str, total: int) -> Batch | None:
        """Return the batch created with this name, among the last 2,000, if it has not failed."""
        async for data in self._pages(f"{self._path}?"):
            metadata = data.get("metadata")
            if not isinstance(metadata, dict) or metadata.get(_NAME_KEY) != name:
                continue
            batch = self._batch(data)
            if batch.status != "failed":
                return batch
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
        answers = min(requests, self.most_requests)
        most_bytes = MAX_REPLY_BYTES + answers * _MAX_ANSWER_BYTES
        path = self._content_path(file)
        await self._http.download(path, into, most_bytes, TRANSFER_SECONDS)

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        """Yield the JSON objects of a downloaded file, in any order; other lines are skipped."""
        file.seek(0)
        # A line longer than the limit arrives in pieces, which are not JSON and are skipped.
        while line := file.readline(MAX_REPLY_BYTES):
            try:
                entry = json.loads(self._http.redacted(line))
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                yield entry

    def _content_path(self, file: str) -> str:
        return f"/files/{quote(file, safe='')}/content"

    async def _pages(self, path: str) -> AsyncIterator[Body]:
        cursor = ""
        for _ in range(MAX_PAGES):
            page = await self._http.get(f"{path}limit={PAGE}{cursor}")
            entries = page.get("data") if isinstance(page, dict) else None
            if not isinstance(entries, list):
                raise body_error(page, self._http.url, "list")
            for entry in entries:
                if isinstance(entry, dict) and entry.get("id"):
                    yield entry
                    last_id = quote(str(entry["id"]), safe="")
                    cursor = f"&{self._cursor}={last_id}"
            if not entries or not page.get("has_more"):
                return

    def _batch(self, data: Any) -> Batch:
        batch_id = id_of(data, self._http.url, "batch")
        completed, failed, total = counts(
            data.get("request_counts"),
            "completed",
            "failed",
            "total",
        )
        # The replies of requests that failed are in a file of their own.
        file_ids = [data.get("output_file_id"), data.get("error_file_id")]
        files = tuple(str(file_id) for file_id in file_ids if file_id)
        error = _first_error(data)
        message = error.get("message") or ""
        # Together writes COMPLETED.
        status = str(data.get("status")).lower()
        code = str(error.get("code") or "")
        return Batch(
            batch_id,
            status,
            done=completed + failed,
            total=total,
            files=files,
            code=code,
            why=redact_and_truncate(message),
        )


def _first_error(data: Body) -> Body:
    """Return the first error of a batch, {} if it has none."""
    errors = data.get("errors") or {}
    # OpenAI wraps the list in an object. A bare list is read, too.
    entries = errors.get("data") if isinstance(errors, dict) else errors
    for entry in entries or ():
        if isinstance(entry, dict):
            return entry
    return {}


def written(entry: Body) -> bytes:
    """Return an object as one line of JSON."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    return f"{text.translate(_ESCAPED_BREAKS)}\n".encode()


def counts(data: Any, *counters: str) -> list[int]:
    """Return the counts with these names; 0 for one that is missing or not a whole number."""
    numbers = []
    for counter in counters:
        # Google sends its counts as texts, the others as numbers.
        stated = str(data.get(counter)) if isinstance(data, dict) else ""
        number = int(stated) if _WHOLE_NUMBER.fullmatch(stated) else 0
        numbers.append(number)
    return numbers


def renamed(
    vendor: str,
    body: Body,
    vendor_names: Mapping[str, str],
    ignored: Collection[str],
) -> Body:
    """Return a chat request's parameters by the vendor's names.

    Raises ConfigError for a parameter that the vendor does not know.
    """
    unknown = body.keys() - vendor_names.keys() - {"model", "messages", *ignored}
    if unknown:
        engine_option = option("engine", "batch")
        raise ConfigError(
            f"{engine_option}: {vendor}'s batches take no {min(unknown)}; leave it or the engine "
            "out"
        )
    return {
        vendor_names[parameter]: value
        for parameter, value in body.items()
        if parameter in vendor_names
    }


def answer(
    custom_id: Any, vendor_reply: Any, completion: Callable[[Any], Body]
) -> Body:
    """Return a vendor's reply as an OpenAI result line, an error if `completion` cannot read it."""
    try:
        body = completion(vendor_reply)
    except (TypeError, LookupError, AttributeError, ValueError):
        return {"custom_id": custom_id, "error": "no answer"}
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": body}}


def inline_requests(content: IO[bytes] | None) -> list[bytes]:
    """Return the lines of a file of requests. Raises ValueError without a file."""
    if content is None:
        raise ValueError("an inline batch is created with its requests")
    content.seek(0)
    return content.read().splitlines()


def id_of(data: Any, url: str, object_kind: str, field: str = "id") -> str:
    """Return the id in a reply. Raises Refused if the reply is not an object of this kind."""
    if not isinstance(data, dict) or not isinstance(data.get(field), str):
        raise body_error(data, url, object_kind)
    return str(data[field])
