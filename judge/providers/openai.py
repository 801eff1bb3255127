"""The provider of OpenAI-compatible chat endpoints, and their Batch API (answers within a day for half the price)."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, Unpack
from urllib.parse import quote

from judge.config import RunConfig
from judge.core.errors import ConfigError, Refused
from judge.core.records import Choice, Request, Response, Token
from judge.providers.http_client import (
    MAX_REPLY_BYTES,
    MAX_TEXT,
    HttpClient,
    Options,
    body_error,
    options,
    redact_and_truncate,
    usage,
)
from judge.providers.pricing import per_token
from judge.providers.server_capabilities import Caching, RequestAdapter
from judge.providers.vendors import Vendor

MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
"""What one file may hold."""
_MAX_ANSWER_BYTES = 4_000_000
"""Bytes of the answer to one request, in the mean of a file."""
_PATH = "/v1/chat/completions"
_NAME = "judge"
_PAGE = 100
_MAX_PAGES = 20
_TRANSFER_SECONDS = 1800.0
"""Seconds that a file may take on its way."""
_FINAL_STATES = {"completed", "failed", "expired", "cancelled"}
_NOT_FOUND = {404, 405, 501}
_ESCAPED_BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
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
        return self.status in _FINAL_STATES

    @property
    def queue_full(self) -> bool:
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
            if error.status not in _NOT_FOUND:
                raise
            raise ConfigError(f"--engine batch: {self._http.url} has no Batch API; leave the option out") from error

    async def upload(self, name: str, file: IO[bytes]) -> str:
        """The id of the file of requests that this becomes there."""
        data = await self._http.upload(
            "/files", {"purpose": "batch"}, (f"{name}.jsonl", file, "application/jsonl"), _TRANSFER_SECONDS
        )
        return _id(data, self._http.url, "file")

    async def create(self, name: str, file: str) -> Batch:
        """Have an uploaded file worked off."""
        request = {"input_file_id": file, "endpoint": _PATH, "completion_window": "24h", "metadata": {_NAME: name}}
        return self._batch((await self._http.post("/batches", request)).data)

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
        most = MAX_REPLY_BYTES + min(requests, MOST_REQUESTS) * _MAX_ANSWER_BYTES
        await self._http.download(f"/files/{quote(file, safe='')}/content", into, most, _TRANSFER_SECONDS)

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        """The objects of a file that was fetched, in no particular order; lines that are none are left out."""
        file.seek(0)
        line_start = True
        while written := file.readline(MAX_REPLY_BYTES):
            ended = written.endswith(b"\n")
            # A line that is longer than a reply may be comes in pieces, of which none is read.
            within_limit = line_start and (ended or len(written) < MAX_REPLY_BYTES)
            line_start = ended
            if not within_limit:
                continue
            try:
                entry = json.loads(self._http.redacted(written))
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                yield entry

    async def _pages(self, path: str) -> AsyncIterator[Body]:
        after = ""
        for _ in range(_MAX_PAGES):
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
        stated = data.get("request_counts")
        counts = stated if isinstance(stated, dict) else {}
        done, failed, total = (
            n if type(n := counts.get(name)) is int and n >= 0 else 0 for name in ("completed", "failed", "total")
        )
        files = tuple(str(data[name]) for name in ("output_file_id", "error_file_id") if data.get(name))
        errors = data.get("errors") or {}
        listed = errors.get("data") if isinstance(errors, dict) else errors
        first = next((entry for entry in listed or () if isinstance(entry, dict)), {})
        code, why = str(first.get("code") or ""), redact_and_truncate(first.get("message") or "")
        return Batch(id, str(data.get("status")), done + failed, total, files, code, why)


def line(request: Request, body: Body) -> bytes:
    """One line of a file of requests."""
    entry = {"custom_id": request.key(), "method": "POST", "url": _PATH, "body": body}
    return (json.dumps(entry, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED_BREAKS) + "\n").encode()


def _id(data: Any, url: str, kind: str) -> str:
    if not isinstance(data, dict) or not isinstance(data.get("id"), str):
        raise body_error(data, url, kind)
    return str(data["id"])


class OpenAIProvider:
    """A provider for `POST {base_url}/chat/completions`, in one event loop at a time."""

    notice = ""
    decides = False

    def __init__(
        self,
        model: str,
        *,
        name: str = "openai",
        dialect: RequestAdapter | None = None,
        **http_options: Unpack[Options],
    ) -> None:
        self.name, self.model = name, model
        self._http = HttpClient(**http_options)
        self.endpoint = self._http.url
        # What to tell a server of prompt caching; where to break it off only for a model whose cache costs to write
        # to.
        http = self._http
        prices = per_token(model, http.url) if http.caching == "explicit" else None
        read_afresh, _, written, _ = prices or (0.0, 0.0, 0.0, 0.0)
        self._adapter = replace(
            dialect or RequestAdapter(),
            caching="key" if http.caching == "explicit" and written <= read_afresh else http.caching,
        )
        self.batches = BatchApi(
            http,
            lambda request: self._adapter.body(request),
            lambda request, body, data: _response(data, body, self._adapter.unmet(request, body), http.url, {}),
        )

    @classmethod
    def open(cls, model: str, config: RunConfig, vendor: Vendor | None = None) -> OpenAIProvider:
        """The provider of a plan, whose address and key's variable go before a vendor's. Raises ConfigError."""
        http_options = options(config)
        if vendor is None:
            return cls(model, **http_options)
        if not model:
            raise ConfigError(f"--model {vendor.name}/: write the model's name after the slash")
        named = "key_env" in config.model_fields_set
        http_options["base_url"] = config.base_url or vendor.address
        http_options["key_env"] = config.key_env if named else vendor.key_env
        http_options["needs_key"] = named or not (vendor.local or config.base_url)
        http_options["caching"] = vendor.caching
        return cls(model, name=vendor.name, dialect=vendor.dialect, **http_options)

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again in another process. No key is in it."""
        return partial(type(self), self.model, name=self.name, dialect=self._adapter, **self._http.options), ()

    @property
    def learned(self) -> dict[str, Any]:
        return self._adapter.known_limits

    @property
    def shared_state(self) -> RequestAdapter:
        """The words that this server takes, as far as they are known."""
        return self._adapter

    @shared_state.setter
    def shared_state(self, dialect: RequestAdapter) -> None:
        self._adapter = dialect

    @property
    def caching(self) -> Caching:
        """What this server is told of prompt caching."""
        return self._adapter.caching

    async def complete(self, request: Request) -> Response:
        """One response, whose `unmet` says what this server would not do. Raises Transient or Refused.

        It has a choice for each of the `n` wanted, or fewer. Words that helped once are used from then on; what did
        not help is forgotten.
        """
        before = dialect = self._adapter
        while True:
            body = dialect.body(request)
            try:
                data, limits = await self._http.post("/chat/completions", body)
                response = _response(data, body, dialect.unmet(request, body), self.endpoint, limits)
            except Refused as refused:
                tried, dialect = dialect, dialect.after_refusal(refused, body) or dialect
                if dialect == tried:
                    raise
            else:
                dialect = dialect.with_max_choices(len(response.choices), body)
                if dialect != before:  # what another request has learned meanwhile is not unlearned by this one
                    self._adapter = dialect
                return response

    async def aclose(self) -> None:
        await self._http.aclose()


def _response(data: Any, body: dict[str, Any], unmet: tuple[str, ...], url: str, limits: Mapping[str, str]) -> Response:
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise body_error(data, url, "chat completion")
    choices = tuple(_choice(choice, url) for choice in data["choices"])
    requested, used = body.get("n", 1), usage(data.get("usage"), "prompt", "completion")
    if not 1 <= len(choices) <= requested:
        raise Refused(f"{url} sent {len(choices)} choices where {requested} were asked for", billed=True)
    if any(c.finish_reason == "length" and not c.text and not c.tokens for c in choices):
        limit = next((name for name in ("max_completion_tokens", "max_tokens") if name in body), None)
        raise Refused(f"{url}: the model spent its whole token limit on hidden reasoning", param=limit, billed=True)
    if len(choices) < requested and "n" not in unmet:
        unmet = (*unmet, "n")
    if body.get("logprobs") and any(c.tokens is None for c in choices):
        unmet = (*unmet, "logprobs")
    served_by = "/".join(str(data[k]) for k in ("model", "system_fingerprint") if data.get(k))
    return Response(choices, used, served_by, unmet, limits)


def _choice(data: Any, url: str) -> Choice:
    message = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict):
        raise Refused(f"{url} sent a choice without a message", billed=True)
    text, refusal = message.get("content"), message.get("refusal")
    finish = str(data.get("finish_reason") or "stop")
    if text is None and isinstance(refusal, str):
        text, finish = refusal, "refusal"
    if not isinstance(text, str | None):
        raise Refused(f"{url} sent a message whose content is {type(text).__name__}, not text", billed=True)
    if text and len(text) > MAX_TEXT:
        raise Refused(f"{url} sent a text of more than 1 MB, which no judge's reply has", billed=True)
    return Choice(text or "", finish, _tokens(data.get("logprobs")))


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """The tokens with their alternatives; None where there are none, or where any of it is not what it should be."""
    listed = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(listed, list):
        return None
    try:
        return tuple(Token(*_pair(t), tuple(map(_pair, t.get("top_logprobs") or ()))) for t in listed) or None
    except (TypeError, AttributeError, LookupError, ValueError, OverflowError):
        return None


def _pair(data: Any) -> tuple[str, float]:
    text, logprob = data["token"], data["logprob"]
    if not isinstance(text, str):
        raise TypeError("a token is text")
    return text, -math.inf if logprob is None else float(logprob)
