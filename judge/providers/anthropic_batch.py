"""Anthropic's Message Batches: `POST /v1/messages/batches`, in its own format.

As documented in November 2026. Parameters that Anthropic's OpenAI-compatible address ignores are
left out, so that a batch asks for the same as a request online.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import quote

from judge.core.records import Request
from judge.providers import batches
from judge.providers.batches import Batch, BatchApi, Body
from judge.providers.http_client import HttpClient, Options

_ANTHROPIC_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop_sequences",
    "thinking": "thinking",
}
# Left out, because the OpenAI-compatible address ignores them in silence.
_IGNORED_PARAMETERS = (
    "frequency_penalty",
    "logprobs",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "top_logprobs",
    "user",
)
# Anthropic requires `max_tokens`, so a request without a limit needs a default.
_DEFAULT_MAX_TOKENS = 8192
# OpenAI allows temperatures up to 2, Anthropic up to 1.
_MAX_TEMPERATURE = 1
_FINISH_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_NO_EARLIER_BATCH = "none"
_FAILED_COUNTS = ("errored", "canceled", "expired")


class AnthropicBatchApi(BatchApi):
    """Batches of inline requests. The results are lines of JSON in any order, kept for 29 days.

    Batches have neither a name nor metadata. Ours is the oldest batch of the right size that is
    newer than the newest batch before it was sent.
    """

    most_bytes = 50_000_000
    inline = True
    _path = "/messages/batches"
    _cursor = "after_id"

    @classmethod
    def client(cls, http: HttpClient, http_options: Options) -> HttpClient:
        headers = {"anthropic-version": "2023-06-01", **http_options.get("headers", {})}
        native: Options = {
            **http_options,
            "key_header": "x-api-key",
            "headers": headers,
        }
        return HttpClient(**native)

    def line(self, request: Request, body: Body) -> bytes:
        """Return a Messages request with the request's key as `custom_id`."""
        params: Body = {"model": body["model"], "max_tokens": _DEFAULT_MAX_TOKENS}
        names = _ANTHROPIC_NAMES
        params |= batches.renamed("Anthropic", body, names, _IGNORED_PARAMETERS)
        if "temperature" in params:
            params["temperature"] = min(params["temperature"], _MAX_TEMPERATURE)
        if isinstance(params.get("stop_sequences"), str):
            params["stop_sequences"] = [params["stop_sequences"]]
        # The Messages API takes the system message as a parameter and not as a message.
        system_texts = []
        params_messages = []
        for message in body["messages"]:
            if message["role"] == "system":
                system_texts.append(message["content"])
            else:
                params_messages.append(message)
        system_message = "\n".join(system_texts)
        if system_message:
            params["system"] = system_message
        params["messages"] = params_messages
        return batches.written({"custom_id": request.key(), "params": params})

    async def upload(self, name: str, file: IO[bytes]) -> str:
        """Return the id of the newest batch; the one about to be created comes after it."""
        async for data in self._pages(f"{self._path}?"):
            return str(data["id"])
        return _NO_EARLIER_BATCH

    async def create(
        self, name: str, file: str, content: IO[bytes] | None = None
    ) -> Batch:
        lines = batches.inline_requests(content)
        # The lines are JSON already, up to 50 MB of it: they are joined without parsing them.
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        data = await self._http.send(self._path, body, batches.TRANSFER_SECONDS)
        return self._batch(data)

    async def find(self, name: str, file: str, total: int) -> Batch | None:
        """Return the first batch of `total` requests that was created after the batch `file`."""
        oldest = None
        # The list begins with the newest batch, so the last match is the oldest one.
        async for data in self._pages(f"{self._path}?"):
            if data["id"] == file:
                break
            batch = self._batch(data)
            if batch.total == total:
                oldest = batch
        return oldest

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        for entry in super().lines(file):
            custom_id = entry.get("custom_id")
            yield batches.answer(custom_id, entry.get("result"), _completion)

    def _content_path(self, file: str) -> str:
        return f"{self._path}/{quote(file, safe='')}/results"

    def _batch(self, data: Any) -> Batch:
        batch_id = batches.id_of(data, self._http.url, "batch")
        running, succeeded, *failed = batches.counts(
            data.get("request_counts"),
            "processing",
            "succeeded",
            *_FAILED_COUNTS,
        )
        n_done = succeeded + sum(failed)
        failures = []
        for name, count in zip(_FAILED_COUNTS, failed, strict=True):
            if count:
                failures.append(f"{count:,} {name}")
        # The results have no id of their own.
        files = (batch_id,) if data.get("results_url") else ()
        status = str(data.get("processing_status"))
        return Batch(
            batch_id,
            status,
            done=n_done,
            total=running + n_done,
            files=files,
            why=", ".join(failures),
        )


def _completion(result: Any) -> Body:
    """Return a message as a chat completion. Raises TypeError, LookupError, AttributeError."""
    message = result["message"]
    texts = [block["text"] for block in message["content"] if block["type"] == "text"]
    uncached, cached, cache_written, written = batches.counts(
        message["usage"],
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    )
    choice = {
        "finish_reason": _FINISH_REASONS.get(message["stop_reason"], "stop"),
        "message": {"content": "".join(texts)},
    }
    # Anthropic counts cached tokens besides `input_tokens`, OpenAI among `prompt_tokens`.
    details = {"cached_tokens": cached, "cache_write_tokens": cache_written}
    usage = {
        "prompt_tokens": uncached + cached + cache_written,
        "completion_tokens": written,
        "prompt_tokens_details": details,
    }
    return {"model": message["model"], "choices": [choice], "usage": usage}
