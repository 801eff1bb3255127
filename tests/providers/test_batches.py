"""Chat requests in the formats of Anthropic's and Google's batches, and their answers as chat completions."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from judge.core.errors import Refused
from judge.core.records import Choice, Request, Response, Usage
from judge.providers.openai import OpenAIProvider
from judge.providers.vendors import VENDORS

MESSAGES = (
    {"role": "system", "content": "Be fair."},
    {"role": "user", "content": "How good is it?"},
    {"role": "assistant", "content": "Good"},
    {"role": "user", "content": "As a number?"},
)
SCHEMA = {"type": "object", "properties": {"score": {"enum": [1, 2]}}}
WISHES: Mapping[str, Any] = {
    "temperature": 1.5, "max_tokens": 64, "top_logprobs": 20, "n": 3, "seed": 7, "stop": "END", "top_p": 0.9,
    "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True}},
    "reasoning_effort": "minimal",
}  # fmt: skip


def provider(vendor: str, model: str = "m-1") -> OpenAIProvider:
    url = {"anthropic": "http://127.0.0.1:1/v1", "gemini": "http://127.0.0.1:1/v1beta/openai"}[
        vendor
    ]
    return OpenAIProvider(model, name=vendor, dialect=VENDORS[vendor].dialect, base_url=url)


def line(vendor: str, model: str = "m-1", **params: Any) -> Any:
    request = Request(model, MESSAGES, params or WISHES)
    api = provider(vendor, model).batches
    written = json.loads(api.line(request, api.body(request)))
    assert request.key() in (written.get("custom_id"), written.get("metadata", {}).get("key"))
    return written


def test_anthropic_batch_requests_use_the_compatible_fields() -> None:
    assert line("anthropic")["params"] == {
        "model": "m-1", "max_tokens": 64, "temperature": 1, "top_p": 0.9, "stop_sequences": ["END"],
        "system": "Be fair.", "messages": [*MESSAGES[1:]],
    }  # fmt: skip
    assert line("anthropic", temperature=0)["params"]["max_tokens"] == 8192


def test_a_request_to_google() -> None:
    assert line("gemini")["request"] == {
        "model": "models/m-1",
        "systemInstruction": {"parts": [{"text": "Be fair."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "How good is it?"}]},
            {"role": "model", "parts": [{"text": "Good"}]},
            {"role": "user", "parts": [{"text": "As a number?"}]},
        ],
        "generationConfig": {
            "temperature": 1.5, "maxOutputTokens": 64, "seed": 7, "stopSequences": ["END"],
            "topP": 0.9, "responseMimeType": "application/json", "responseJsonSchema": SCHEMA,
            "thinkingConfig": {"thinkingLevel": "MINIMAL"},
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "high", {"thinkingBudget": 24_576}),
        ("gemini-3.1-pro", "minimal", {"thinkingLevel": "LOW"}),
        ("gemini-3.5-flash", "medium", {"thinkingLevel": "MEDIUM"}),
    ],
)
def test_googles_words_for_an_effort(model: str, effort: str, thinking: dict[str, Any]) -> None:
    assert line("gemini", model, reasoning_effort=effort)["request"]["generationConfig"] == {
        "thinkingConfig": thinking
    }


def read(vendor: str, reply: dict[str, Any], **params: Any) -> Response:
    """Return the response for an answer in a batch's results. Raise Refused if it is invalid."""
    request = Request("m-1", MESSAGES, params)
    api = provider(vendor).batches
    answers: Any = {"custom_id": "x", "result": {"type": "succeeded", "message": reply}}
    if vendor == "gemini":
        answers = {
            "response": {
                "inlinedResponses": {
                    "inlinedResponses": [{"metadata": {"key": "x"}, "response": reply}]
                }
            }
        }
    (entry,) = api.lines(
        io.BytesIO(json.dumps(answers, indent=None if vendor == "anthropic" else 2).encode())
    )
    assert entry["custom_id"] == "x"
    return api.read(request, api.body(request), entry["response"]["body"])


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
    ],
)
def test_a_message_of_anthropics(stop: str, finish: str) -> None:
    content = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "4"},
        {"type": "text", "text": "2"},
    ]
    used = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 5,
        "cache_read_input_tokens": 3,
        "output_tokens": 2,
    }
    response = read(
        "anthropic", {"model": "m-1-2026", "content": content, "stop_reason": stop, "usage": used}
    )
    assert response.choices == (Choice("42", finish),)
    assert response.usage == Usage(18, 2, cached_tokens=3, cache_write_tokens=5)
    assert response.served_by == "m-1-2026"


@pytest.mark.parametrize(
    ("stop", "finish"), [("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter")]
)
def test_an_answer_of_googles(stop: str, finish: str) -> None:
    candidates = [
        {
            "content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "4"}]},
            "finishReason": stop,
        },
    ]
    used = {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 6,
    }
    response = read(
        "gemini", {"modelVersion": "m-1-002", "candidates": candidates, "usageMetadata": used}
    )
    assert response.choices == (Choice("4", finish),)
    assert response.usage == Usage(10, 8, cached_tokens=4, reasoning_tokens=6)
    assert response.served_by == "m-1-002"


def test_log_probabilities_that_google_was_not_asked_for_are_unmet() -> None:
    candidate = {"content": {"parts": [{"text": "4"}]}, "finishReason": "STOP"}
    assert read("gemini", {"candidates": [candidate]}, top_logprobs=5).unmet == ("logprobs",)


def test_a_blocked_google_prompt_is_not_an_answer() -> None:
    with pytest.raises(Refused, match="0 choices"):
        read("gemini", {"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}})


@pytest.mark.parametrize(
    ("vendor", "path"),
    [
        ("anthropic", "/messages/batches/..%2Fadmin%3Fx%3D%23"),
        ("gemini", "/batches/..%2Fadmin%3Fx%3D%23"),
    ],
)
def test_an_id_from_a_server_is_quoted_in_the_path(
    vendor: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, paths = provider(vendor).batches, []

    async def get(path: str, *_: Any) -> Any:
        paths.append(path)
        return {"id": "x", "name": "x"}

    monkeypatch.setattr(api._http, "get", get)
    asyncio.run(api.get("../admin?x=#"))
    assert paths == [path]


def test_batches_are_the_same_in_every_process() -> None:
    rebuilt = provider("gemini").__reduce__()[0]()
    assert (type(rebuilt.batches), rebuilt.batches._http.url) == (
        type(provider("gemini").batches),
        "http://127.0.0.1:1/v1beta",
    )
