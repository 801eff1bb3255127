"""Google's batches for Gemini: `POST /v1beta/models/{model}:batchGenerateContent`, in its own format.

As documented in November 2026. The OpenAI-compatible address has batches too, but their files need another upload; here
the requests are sent inline. Neither log probabilities nor several candidates are requested (`judge.providers.vendors`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import IO, Any
from urllib.parse import quote

from judge.core.records import Request
from judge.providers import batches
from judge.providers.batches import Batch, BatchApi, Body
from judge.providers.http_client import (
    MAX_REPLY_BYTES,
    HttpClient,
    Options,
    body_error,
    redact_and_truncate,
)

_NAMES = {
    "max_completion_tokens": "maxOutputTokens", "max_tokens": "maxOutputTokens", "temperature": "temperature",
    "top_p": "topP", "top_k": "topK", "seed": "seed", "stop": "stopSequences",
    "frequency_penalty": "frequencyPenalty", "presence_penalty": "presencePenalty",
}  # fmt: skip
_SPECIAL = ("logprobs", "reasoning_effort", "response_format", "top_logprobs", "user")
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192}
_MOST_BUDGET = 24_576
"""Reasoning tokens of Gemini 2 by effort, as the OpenAI-compatible address translates it."""
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}


class GoogleBatchApi(BatchApi):
    """Batches of inline requests, found again by their display name. The answers come with the batch's state."""

    most_requests, most_bytes = 2_000, 19_000_000
    inline = True
    _page_size = "pageSize"

    @classmethod
    def client(cls, http: HttpClient, http_options: Options) -> HttpClient:
        address = http.url.removesuffix("/openai")
        native: Options = {**http_options, "base_url": address, "key_header": "x-goog-api-key"}
        return HttpClient(**native)

    def line(self, request: Request, body: Body) -> bytes:
        """Return a `generateContent` request with the request's key as metadata."""
        content: Body = {"model": f"models/{body['model'].removeprefix('models/')}", "contents": []}
        for message in body["messages"]:
            parts = {"parts": [{"text": message["content"]}]}
            if message["role"] == "system":
                content.setdefault("systemInstruction", {"parts": []})["parts"] += parts["parts"]
            else:
                content["contents"].append(
                    {"role": "model" if message["role"] == "assistant" else "user"} | parts
                )
        content["generationConfig"] = _generation(body)
        return batches.written({"request": content, "metadata": {"key": request.key()}})

    async def upload(self, name: str, file: IO[bytes]) -> str:
        return name

    async def create(self, name: str, file: str, content: IO[bytes] | None = None) -> Batch:
        requests = batches.inline_requests(content)
        model = json.loads(requests[0])["request"]["model"]
        start = json.dumps(
            {"batch": {"displayName": name, "inputConfig": {"requests": {"requests": []}}}}
        )
        whole = start.encode().replace(b"[]", b"[" + b",".join(requests) + b"]")
        path = f"/models/{quote(model.removeprefix('models/'), safe='')}:batchGenerateContent"
        return self._batch(await self._http.send(path, whole, batches.TRANSFER_SECONDS))

    async def get(self, id: str) -> Batch:
        return self._batch(await self._http.get(self._content_path(id), 8 * MAX_REPLY_BYTES))

    async def find(self, name: str, file: str, total: int) -> Batch | None:
        async for data in self._pages("/batches?"):
            if (
                _metadata(data).get("displayName") == name
                and (batch := self._batch(data)).status != "failed"
            ):
                return batch
        return None

    def lines(self, file: IO[bytes]) -> Iterator[Body]:
        """Yield each inlined response in the form of an OpenAI result line; none if the file is damaged."""
        file.seek(0)
        try:
            answers = _output(json.loads(self._http.redacted(file.read())))["inlinedResponses"][
                "inlinedResponses"
            ]
        except (ValueError, RecursionError, LookupError, TypeError):
            return
        for entry in answers if isinstance(answers, list) else ():
            if isinstance(entry, dict):
                key = (
                    entry["metadata"].get("key")
                    if isinstance(entry.get("metadata"), dict)
                    else None
                )
                yield batches.answer(key, entry.get("response"), _completion)

    def _content_path(self, file: str) -> str:
        return f"/batches/{quote(file.removeprefix('batches/'), safe='')}"

    async def _pages(self, path: str) -> AsyncIterator[Body]:
        token = ""
        for _ in range(batches.MAX_PAGES):
            page = await self._http.get(f"{path}pageSize={batches.PAGE}{token}")
            if not isinstance(page, dict):
                raise body_error(page, self._http.url, "list")
            listed = page.get("operations")
            for data in listed if isinstance(listed, list) else ():
                if isinstance(data, dict) and data.get("name"):
                    yield data
            if not page.get("nextPageToken"):
                return
            token = f"&pageToken={quote(str(page['nextPageToken']), safe='')}"

    def _batch(self, data: Any) -> Batch:
        id = batches.id_of(data, self._http.url, "batch", "name")
        about = _metadata(data)
        status = str(about.get("state")).rpartition("_")[2].lower()
        names = ("successfulRequestCount", "failedRequestCount", "requestCount")
        succeeded, failed, total = batches.counts(about.get("batchStats"), *names)
        files = (id,) if isinstance(_output(data), dict) else ()
        error = data.get("error")
        why = redact_and_truncate(error.get("message") or "") if isinstance(error, dict) else ""
        return Batch(id, status, succeeded + failed, total, files, why=why)


def _metadata(data: Body) -> Body:
    about = data.get("metadata")
    return about if isinstance(about, dict) else {}


def _output(data: Any) -> Any:
    return data.get("response") or _metadata(data).get("output")


def _generation(body: Body) -> Body:
    """Return a chat request's parameters as Gemini's generationConfig."""
    config = batches.renamed("Google", body, _NAMES, _SPECIAL)
    if isinstance(config.get("stopSequences"), str):
        config["stopSequences"] = [config["stopSequences"]]
    if form := body.get("response_format"):
        config["responseMimeType"] = "application/json"
        if "json_schema" in form:
            config["responseJsonSchema"] = form["json_schema"]["schema"]
    if effort := body.get("reasoning_effort"):
        if "gemini-2" in body["model"]:
            config["thinkingConfig"] = {"thinkingBudget": _BUDGETS.get(effort, _MOST_BUDGET)}
        else:
            lowest = "low" if "pro" in body["model"] else "minimal"
            config["thinkingConfig"] = {
                "thinkingLevel": (lowest if effort == "minimal" else effort).upper()
            }
    return config


def _completion(response: Any) -> Body:
    """Return Gemini's response as a chat completion. Raises TypeError, LookupError, AttributeError."""
    choices = []
    for candidate in response["candidates"]:
        parts = candidate.get("content", {}).get("parts", ())
        text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
        finish = _FINISH.get(candidate.get("finishReason", "STOP"), "content_filter")
        choices.append({"finish_reason": finish, "message": {"content": text}})
    prompt, cached, replied, reasoned = batches.counts(
        response.get("usageMetadata"),
        "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount",
    )  # fmt: skip
    return {
        "model": response.get("modelVersion"),
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt, "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens": replied + reasoned, "completion_tokens_details": {"reasoning_tokens": reasoned},
        },
    }  # fmt: skip
