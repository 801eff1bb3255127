"""Google's batches for Gemini: `POST /v1beta/models/{model}:batchGenerateContent`, in its format.

As documented in November 2026. The OpenAI-compatible address has batches too, but their files need
another upload; here the requests are sent inline. Neither log probabilities nor several candidates
are requested (`judge.providers.vendors`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import IO, Any
from urllib.parse import quote

from judge.core.records import Request
from judge.providers import batches
from judge.providers.batches import Batch, BatchApi, Body
from judge.providers.http_client import HttpClient, Options
from judge.providers.http_errors import body_error, redact_and_truncate
from judge.providers.reply_body import MAX_REPLY_BYTES

_GEMINI_NAMES = {
    "max_completion_tokens": "maxOutputTokens",
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "stop": "stopSequences",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}
# `_generation` translates the effort and the format; the others are left out.
_OTHER_PARAMETERS = (
    "logprobs",
    "reasoning_effort",
    "response_format",
    "top_logprobs",
    "user",
)
# Reasoning tokens of Gemini 2 by effort, as the OpenAI-compatible address translates it.
_THINKING_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192}
_MOST_THINKING = 24_576  # of "high" and above
_FINISH_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
# The answers are part of the batch's state, so that reply is longer than any other.
_MAX_STATE_BYTES = 8 * MAX_REPLY_BYTES


class GoogleBatchApi(BatchApi):
    """Batches of inline requests, found again by their display name.

    The answers come with the batch's state.
    """

    most_requests = 2_000
    # Google takes 20 MB for all inline requests; the rest is for the words around them.
    most_bytes = 19_000_000
    inline = True
    _page_size = "pageSize"

    @classmethod
    def client(cls, http: HttpClient, http_options: Options) -> HttpClient:
        address = http.url.removesuffix("/openai")
        native: Options = {
            **http_options,
            "base_url": address,
            "key_header": "x-goog-api-key",
        }
        return HttpClient(**native)

    def line(self, request: Request, body: Body) -> bytes:
        """Return a `generateContent` request with the request's key as metadata."""
        model = body["model"].removeprefix("models/")
        system_parts: list[Body] = []
        contents: list[Body] = []
        for message in body["messages"]:
            message_part = {"text": message["content"]}
            if message["role"] == "system":
                system_parts.append(message_part)
            else:
                role = "model" if message["role"] == "assistant" else "user"
                contents.append({"role": role, "parts": [message_part]})
        content: Body = {"model": f"models/{model}", "contents": contents}
        if system_parts:
            content["systemInstruction"] = {"parts": system_parts}
        content["generationConfig"] = _generation(body)
        metadata = {"key": request.key()}
        return batches.written({"request": content, "metadata": metadata})

    async def upload(self, name: str, file: IO[bytes]) -> str:
        return name

    async def create(
        self, name: str, file: str, content: IO[bytes] | None = None
    ) -> Batch:
        requests = batches.inline_requests(content)
        first_request = json.loads(requests[0])["request"]
        model = first_request["model"].removeprefix("models/")
        no_requests: Body = {"requests": {"requests": []}}
        frame = {"batch": {"displayName": name, "inputConfig": no_requests}}
        # The requests are JSON already: they are put into the frame without parsing them again.
        array = b"[" + b",".join(requests) + b"]"
        body = json.dumps(frame).encode().replace(b"[]", array)
        path = f"/models/{quote(model, safe='')}:batchGenerateContent"
        data = await self._http.send(path, body, batches.TRANSFER_SECONDS)
        return self._batch(data)

    async def get(self, id: str) -> Batch:
        data = await self._http.get(self._content_path(id), _MAX_STATE_BYTES)
        return self._batch(data)

    async def find(self, name: str, file: str, total: int) -> Batch | None:
        async for data in self._pages("/batches?"):
            if _metadata(data).get("displayName") != name:
                continue
            batch = self._batch(data)
            if batch.status != "failed":
                return batch
        return None

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        """Yield each inlined response as an OpenAI result line; none if the file is damaged."""
        file.seek(0)
        try:
            text = self._http.redacted(file.read())
            data = json.loads(text)
            answers = _output(data)["inlinedResponses"]["inlinedResponses"]
        except (ValueError, RecursionError, LookupError, TypeError):
            return
        if not isinstance(answers, list):
            return
        for entry in answers:
            if isinstance(entry, dict):
                key = _metadata(entry).get("key")
                yield batches.answer(key, entry.get("response"), _completion)

    def _content_path(self, file: str) -> str:
        return f"/batches/{quote(file.removeprefix('batches/'), safe='')}"

    async def _pages(self, path: str) -> AsyncIterator[Body]:
        cursor = ""
        for _ in range(batches.MAX_PAGES):
            page = await self._http.get(f"{path}pageSize={batches.PAGE}{cursor}")
            if not isinstance(page, dict):
                raise body_error(page, self._http.url, "list")
            operations = page.get("operations")
            for data in operations if isinstance(operations, list) else ():
                if isinstance(data, dict) and data.get("name"):
                    yield data
            page_token = page.get("nextPageToken")
            if not page_token:
                return
            cursor = f"&pageToken={quote(str(page_token), safe='')}"

    def _batch(self, data: Any) -> Batch:
        batch_id = batches.id_of(data, self._http.url, "batch", "name")
        metadata = _metadata(data)
        # "BATCH_STATE_SUCCEEDED" becomes "succeeded".
        status = str(metadata.get("state")).rpartition("_")[2].lower()
        succeeded, failed, total = batches.counts(
            metadata.get("batchStats"),
            "successfulRequestCount",
            "failedRequestCount",
            "requestCount",
        )
        error = data.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        # The answers are in the batch itself.
        files = (batch_id,) if isinstance(_output(data), dict) else ()
        return Batch(
            batch_id,
            status,
            done=succeeded + failed,
            total=total,
            files=files,
            why=redact_and_truncate(message or ""),
        )


def _metadata(data: Body) -> Body:
    metadata = data.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _output(data: Any) -> Any:
    """Return the answers of a batch, which are in `response` or in `metadata.output`."""
    return data.get("response") or _metadata(data).get("output")


def _generation(body: Body) -> Body:
    """Return a chat request's parameters as Gemini's generationConfig."""
    config = batches.renamed("Google", body, _GEMINI_NAMES, _OTHER_PARAMETERS)
    if isinstance(config.get("stopSequences"), str):
        config["stopSequences"] = [config["stopSequences"]]
    response_format = body.get("response_format")
    if response_format:
        config["responseMimeType"] = "application/json"
        if "json_schema" in response_format:
            config["responseJsonSchema"] = response_format["json_schema"]["schema"]
    effort = body.get("reasoning_effort")
    if effort:
        config["thinkingConfig"] = _thinking_config(body["model"], effort)
    return config


def _thinking_config(model: str, effort: str) -> Body:
    """Return a reasoning effort in tokens, for Gemini 2, or as a level, for later models."""
    if "gemini-2" in model:
        return {"thinkingBudget": _THINKING_BUDGETS.get(effort, _MOST_THINKING)}
    # The Pro models have no level MINIMAL.
    lowest = "low" if "pro" in model else "minimal"
    level = lowest if effort == "minimal" else effort
    return {"thinkingLevel": level.upper()}


def _completion(response: Any) -> Body:
    """Return Gemini's response as a chat completion.

    Raises TypeError, LookupError, AttributeError.
    """
    choices = []
    for candidate in response["candidates"]:
        parts = candidate.get("content", {}).get("parts", ())
        answer_parts = [part for part in parts if not part.get("thought")]
        texts = [part["text"] for part in answer_parts if "text" in part]
        google_reason = candidate.get("finishReason", "STOP")
        # Any other reason names a filter: SAFETY, RECITATION, PROHIBITED_CONTENT.
        finish_reason = _FINISH_REASONS.get(google_reason, "content_filter")
        message = {"content": "".join(texts)}
        choices.append({"finish_reason": finish_reason, "message": message})
    prompt, cached, replied, reasoned = batches.counts(
        response.get("usageMetadata"),
        "promptTokenCount",
        "cachedContentTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
    )
    # Google counts reasoning besides the reply, OpenAI among the completion's tokens.
    usage = {
        "prompt_tokens": prompt,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens": replied + reasoned,
        "completion_tokens_details": {"reasoning_tokens": reasoned},
    }
    return {"model": response.get("modelVersion"), "choices": choices, "usage": usage}
