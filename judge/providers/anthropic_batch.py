"""Anthropic's Message Batches: `POST /v1/messages/batches`, in its own format.

As documented in November 2026. Parameters that Anthropic's OpenAI-compatible address ignores are left out, so that a
batch asks for the same as a request online. Batches have no name and no metadata: ours is the oldest one of the right
size that is newer than the newest one before it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import quote

from judge.core.records import Request
from judge.providers import batches
from judge.providers.batches import Batch, BatchApi, Body
from judge.providers.http_client import HttpClient, Options

_NAMES = {
    "max_completion_tokens": "max_tokens", "max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p",
    "top_k": "top_k", "stop": "stop_sequences", "thinking": "thinking",
}  # fmt: skip
_IGNORED = (
    "frequency_penalty", "logprobs", "presence_penalty", "reasoning_effort", "response_format", "seed", "top_logprobs",
    "user",
)  # fmt: skip
_MAX_TOKENS = 8192
"""The default for `max_tokens`, which Anthropic requires."""
_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}
_NONE = "none"


class AnthropicBatchApi(BatchApi):
    """Batches of inline requests. The results are lines of JSON in any order, available for 29 days."""

    most_bytes = 50_000_000
    inline = True
    _path, _cursor = "/messages/batches", "after_id"

    @classmethod
    def client(cls, http: HttpClient, http_options: Options) -> HttpClient:
        headers = {"anthropic-version": "2023-06-01", **http_options.get("headers", {})}
        native: Options = {**http_options, "key_header": "x-api-key", "headers": headers}
        return HttpClient(**native)

    def line(self, request: Request, body: Body) -> bytes:
        """Return a Messages request with the request's key as `custom_id`."""
        params = {"max_tokens": _MAX_TOKENS, **batches.renamed("Anthropic", body, _NAMES, _IGNORED)}
        if "temperature" in params:
            params["temperature"] = min(params["temperature"], 1)
        if isinstance(params.get("stop_sequences"), str):
            params["stop_sequences"] = [params["stop_sequences"]]
        if system := "\n".join(m["content"] for m in body["messages"] if m["role"] == "system"):
            params["system"] = system
        params["messages"] = [m for m in body["messages"] if m["role"] != "system"]
        return batches.written(
            {"custom_id": request.key(), "params": {"model": body["model"], **params}}
        )

    async def upload(self, name: str, file: IO[bytes]) -> str:
        """Return the id of the newest batch; the one about to be created comes after it."""
        async for data in self._pages(f"{self._path}?"):
            return str(data["id"])
        return _NONE

    async def create(self, name: str, file: str, content: IO[bytes] | None = None) -> Batch:
        requests = b'{"requests":[' + b",".join(batches.inline_requests(content)) + b"]}"
        return self._batch(await self._http.send(self._path, requests, batches.TRANSFER_SECONDS))

    async def find(self, name: str, file: str, total: int) -> Batch | None:
        """Return the first batch of `total` requests that was created after the batch `file`."""
        first = None
        async for data in self._pages(f"{self._path}?"):
            if data["id"] == file:
                break
            batch = self._batch(data)
            first = batch if batch.total == total else first
        return first

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        for entry in super().lines(file):
            yield batches.answer(entry.get("custom_id"), entry.get("result"), _completion)

    def _content_path(self, file: str) -> str:
        return f"{self._path}/{quote(file, safe='')}/results"

    def _batch(self, data: Any) -> Batch:
        id, names = batches.id_of(data, self._http.url, "batch"), ("errored", "canceled", "expired")
        running, succeeded, *others = batches.counts(
            data.get("request_counts"), "processing", "succeeded", *names
        )
        done = succeeded + sum(others)
        files = (id,) if data.get("results_url") else ()
        why = ", ".join(
            f"{count:,} {name}" for count, name in zip(others, names, strict=True) if count
        )
        return Batch(id, str(data.get("processing_status")), done, running + done, files, why=why)


def _completion(result: Any) -> Body:
    """Return a message as a chat completion. Raises TypeError, LookupError, AttributeError."""
    message = result["message"]
    text = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    used = message["usage"]
    fresh, read, stored, written = batches.counts(
        used,
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    )
    details = {"cached_tokens": read, "cache_write_tokens": stored}
    return {
        "model": message["model"],
        "choices": [{"finish_reason": _FINISH.get(message["stop_reason"], "stop"), "message": {"content": text}}],
        "usage": {
            "prompt_tokens": fresh + read + stored, "completion_tokens": written, "prompt_tokens_details": details,
        },
    }  # fmt: skip
