"""The provider contract against a real HTTP server on loopback: answers, refusals and malformed replies."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.config import RunConfig
from judge.core.errors import ConfigError, ProviderError, Refused, Transient
from judge.core.records import Request, Response, Usage
from judge.execution.layers.retried import Policy
from judge.providers import Provider
from judge.providers.http_errors import connection_error
from judge.providers.openai import OpenAIProvider, _response
from judge.providers.vendors import VENDORS
from tests.factories import complete_all, has_line, user_request
from tests.senders import Sender

FIELDS = (
    "content", "refusal", "token", "logprob", "top_logprobs", "prompt_tokens", "completion_tokens", "message", "code",
    "prompt_tokens_details", "completion_tokens_details", "cached_tokens", "reasoning_tokens", "choices",
)  # fmt: skip
PARAMS = {"temperature": 0.0, "max_tokens": 64, "top_logprobs": 20}


def request(**params: Any) -> Request:
    return user_request("How good is 「それ」?", **(PARAMS | params))


def ask(server: Any, *requests: Request, **options: Any) -> list[Response]:
    provider = OpenAIProvider("m", base_url=server.url, **options)
    return complete_all(provider, *(requests or (request(),)))


def failure(
    server: Any, status: int, body: Any, headers: dict[str, str] | None = None, **options: Any
) -> ProviderError:
    server.answer = lambda _: (status, headers or {}, body)
    with pytest.raises(ProviderError) as caught:
        ask(server, **options)
    return caught.value


def error(message: str = "it said so", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "t", "param": None, "code": None} | fields}


def test_a_reply_with_probabilities(chat_server: Any, make_completion: Callable[..., Any]) -> None:
    chat_server.answer = lambda _: (
        200,
        {},
        make_completion("4", top={"4": 0.6, "5": 0.4}, system_fingerprint="fp"),
    )
    (response,) = ask(chat_server)
    token = response.choices[0].tokens[0] if response.choices[0].tokens else None
    assert token is not None
    assert [t for t, _ in token.top] == ["4", "5"]
    assert (response.choices[0].text, response.unmet, response.served_by) == (
        "4",
        (),
        "test-model-1/fp",
    )
    assert response.usage == Usage(100, 1, 64, 0)
    assert chat_server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "How good is 「それ」?"}],
            "temperature": 0.0,
            "max_completion_tokens": 64,
            "logprobs": True,
            "top_logprobs": 20,
        }
    ]


def test_the_provider_works_in_several_event_loops_in_turn(chat_server: Any) -> None:
    provider = OpenAIProvider("m", base_url=chat_server.url)
    assert isinstance(provider, Provider)

    async def once() -> str:
        response = await provider.complete(request())
        await provider.aclose()
        return response.choices[0].text

    assert [asyncio.run(once()) for _ in range(3)] == ["4", "4", "4"]


def test_silently_missing_logprobs_are_noted(chat_server: Any) -> None:
    (response,) = ask(chat_server)
    assert response.unmet == ("logprobs",)
    assert response.choices[0].tokens is None


@pytest.mark.parametrize(
    ("refused", "unmet", "requests_sent"),
    [
        ("logprobs", ("logprobs",), 3),  # the second request has no reasoning
        ("temperature", ("temperature",), 2),
        ("max_completion_tokens", (), 2),
    ],
)
def test_a_refused_parameter_is_omitted_from_later_requests(
    chat_server: Any,
    make_completion: Callable[..., Any],
    refused: str,
    unmet: tuple[str, ...],
    requests_sent: int,
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if refused in body:
            return (
                400,
                {},
                error(
                    f"Unsupported parameter: '{refused}'",
                    param=refused,
                    code="unsupported_parameter",
                ),
            )
        return 200, {}, make_completion("4", top={"4": 1.0} if "logprobs" in body else None)

    chat_server.answer = answer
    first, second = ask(chat_server, request(), request())
    assert first.unmet == second.unmet == unmet
    assert len(chat_server.bodies) == requests_sent + 1


def test_a_403_that_only_speaks_of_logprobs_is_understood(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if "logprobs" in body:
            return 403, {}, error("You are not allowed to request logprobs from this model")
        return 200, {}, make_completion()

    chat_server.answer = answer
    assert ask(chat_server)[0].unmet == ("logprobs",)


def test_twenty_alternatives_are_lowered_to_five(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if body.get("top_logprobs", 0) > 5:
            return 400, {}, error("top_logprobs must be at most 5", param="top_logprobs")
        return 200, {}, make_completion("4", top={"4": 1.0})

    chat_server.answer = answer
    (response,) = ask(chat_server)
    assert response.unmet == ("top_logprobs",)
    assert response.choices[0].tokens is not None


def test_a_server_that_knows_no_token_limit(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        for name in ("max_completion_tokens", "max_tokens"):
            if name in body:
                return 422, {}, error(f"unknown field {name}")
        return 200, {}, make_completion("4", top={"4": 1.0})

    chat_server.answer = answer
    assert ask(chat_server)[0].unmet == ("max_tokens",)


@pytest.mark.parametrize("usage", [{"completion_tokens_details": {"reasoning_tokens": 64}}, {}])
def test_a_limit_eaten_by_hidden_reasoning_is_lifted(
    chat_server: Any, make_completion: Callable[..., Any], usage: dict[str, Any]
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if "max_completion_tokens" in body:
            used = {"completion_tokens": 64, **usage}
            return 200, {}, make_completion("", choice={"finish_reason": "length"}, usage=used)
        return 200, {}, make_completion("5", top={"5": 1.0})

    chat_server.answer = answer
    (response,) = ask(chat_server)
    assert (response.choices[0].text, response.unmet) == ("5", ("max_tokens",))


def test_endless_hidden_reasoning_names_the_option_to_change(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    refused = failure(chat_server, 200, make_completion("", choice={"finish_reason": "length"}))
    assert has_line(str(refused), "--max-tokens", "--reasoning-effort none")


@pytest.mark.parametrize(
    ("status", "stops", "hint"),
    [
        (400, "never", "it said so"),
        (401, "always", "the key"),
        (403, "never", "it said so"),
        (404, "always", "--model"),
        (405, "always", "--base-url"),
        (407, "always", "a password"),
    ],
)
def test_refusals(chat_server: Any, status: int, stops: str, hint: str) -> None:
    refused = failure(chat_server, status, error())
    assert isinstance(refused, Refused)
    assert refused.stops == stops
    assert hint in str(refused)


@pytest.mark.parametrize("status", [408, 409, 424, 429, 500, 503, 529])
def test_transient_errors(chat_server: Any, status: int) -> None:
    transient = failure(chat_server, status, error())
    assert isinstance(transient, Transient)
    stops = "if_first" if status >= 500 else "never"
    assert (transient.status, transient.stops, transient.retry_after) == (status, stops, None)
    assert len(chat_server.bodies) == 1  # the SDK's own retries are off


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "30s"}, 30.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1000000000"}, 1e9),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Mon, 99 Foo 2026 99:99:99 GMT"}, None),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
        ({"retry-after-ms": "-inf"}, None),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
    ],
)
def test_retry_after_in_every_form(
    chat_server: Any, headers: dict[str, str], seconds: float | None
) -> None:
    for status, body in [
        (429, error()),
        (200, error(code=429)),
        (200, error(code="rate_limit_exceeded")),
    ]:
        transient = failure(chat_server, status, body, headers)
        assert isinstance(transient, Transient)
        assert (transient.status, transient.retry_after) == (429, seconds)


def test_a_clock_that_is_wrong_does_no_harm_to_a_date() -> None:
    def reply(connection: socket.socket) -> None:
        headers = (
            "Date: Tue, 01 Jan 2030 00:00:00 GMT",
            "Retry-After: Tue, 01 Jan 2030 00:00:07 GMT",
        )
        connection.sendall(
            "\r\n".join(["HTTP/1.1 429 Slow", *headers, "Content-Length: 0", "", ""]).encode()
        )

    transient = answered_by(reply, timeout=5.0)
    assert isinstance(transient, Transient)
    assert transient.retry_after == 7.0


def test_rate_limit_headers_are_passed_on(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    headers = {
        "X-RateLimit-Remaining-Requests": "7",
        "x-ratelimit-reset-tokens": "6m0s",
        "x-request-id": "1",
    }
    limits = {"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-tokens": "6m0s"}
    transient = failure(chat_server, 429, error(), headers)
    assert isinstance(transient, Transient)
    assert transient.limits == limits
    chat_server.answer = lambda _: (200, headers, make_completion())
    (response,) = ask(chat_server)
    assert response.limits == limits
    assert Response.from_json(response.to_json()) == response
    assert "ratelimit" not in response.to_json() + repr(response)
    chat_server.answer = lambda _: (200, {}, make_completion())
    assert ask(chat_server)[0].limits == {}


# Messages of OpenAI, DeepSeek, Anthropic, a LiteLLM proxy, DashScope, Moonshot, Zhipu, xAI, OpenRouter
# and MiniMax
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, error("You exceeded your quota", code="insufficient_quota")),
        (402, error("Payment Required")),
        (400, error("Your credit balance is too low to access the Anthropic API.")),
        (400, error("Budget has been exceeded! Current cost: 10.2, Max budget: 5.0")),
        (400, error("Your account is not in good standing.", code="Arrearage")),
        (429, error("Check your plan", type="exceeded_current_quota_error")),
        (429, error("您的账户已欠费，请充值后重试。", code="1113")),
        (429, {"error": "Your team has used all available credits or its monthly spending limit."}),
        (403, {"error": "Your newly created team doesn't have any credits or licenses yet."}),
        (403, error("Key limit exceeded (total limit).", code=403)),
        (200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
    ],
)
def test_an_empty_account_stops_the_run(chat_server: Any, status: int, body: Any) -> None:
    refused = failure(chat_server, status, body)
    assert isinstance(refused, Refused)
    assert refused.stops == "always"
    assert "; top up" in str(refused)
    assert len(chat_server.bodies) == 1


# Messages of Bedrock, Databricks, Cloudflare, Gemini and xAI
@pytest.mark.parametrize(
    "body",
    [
        {"message": "Invalid access token. [ReqId: 1]"},
        {"errors": [{"message": "Authentication error", "code": 10000}]},
        {"message": "The security token included in the request is expired"},
        [error("API key not valid. Please pass a valid API key.")],
        {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: x"},
    ],
)
def test_a_wrong_key_with_status_400_stops_the_run(chat_server: Any, body: Any) -> None:
    refused = failure(chat_server, 400, body)
    assert refused.stops == "always"
    assert "; check the key" in str(refused)
    assert "[{" not in str(refused)
    assert len(chat_server.bodies) == 1


# Messages of Mistral, GitHub, DeepSeek, OpenRouter, Groq, OpenAI and Zhipu
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid model: m"),
        (400, "Unknown model: m"),
        (400, "Model Not Exist"),
        (400, "m is not a valid model ID"),
        (400, "The model `m` has been decommissioned and is no longer supported."),
        (403, "You don't have access to the model with the specified model ID."),
        (403, "Project `p` does not have access to model `m`"),
        (400, "模型不存在，请检查模型代码。"),
    ],
)
def test_a_wrong_model_names_the_option_for_every_status(
    chat_server: Any, status: int, message: str
) -> None:
    refused = failure(chat_server, status, error(message))
    assert "; check --model" in str(refused)
    assert refused.stops == "if_first"
    assert len(chat_server.bodies) == 1


def test_a_refusal_of_the_model_is_known_by_its_param(chat_server: Any) -> None:
    # Hugging Face's router
    words = "The requested model 'm' is not supported by any provider you have enabled."
    refused = failure(chat_server, 400, error(words, param="model"))
    assert "; check --model" in str(refused)
    assert len(chat_server.bodies) == 1


# Messages of Google and of a gateway
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, "Rate Limit Exceeded"),
        (400, "upstream error: rate limit exceeded"),
        (498, "Flex tier capacity exceeded"),
    ],
)
def test_a_rate_limit_is_known_by_its_words(chat_server: Any, status: int, message: str) -> None:
    limited = failure(chat_server, status, error(message))
    assert isinstance(limited, Transient)
    assert limited.status == 429
    assert len(chat_server.bodies) == 1


def test_a_text_above_the_tokens_per_minute_is_refused_and_not_retried(chat_server: Any) -> None:
    words = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000."
    refused = failure(chat_server, 429, error(words, code="rate_limit_exceeded"))
    assert isinstance(refused, Refused)
    assert refused.stops == "never"


# Bodies of Gemini and of a LiteLLM proxy
@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ([{"error": {"message": "Quota", "details": [{"retryDelay": "37.5s"}]}}], 37.5),
        (error("No deployments available, Try again in 60 seconds."), 60.0),
        (error("Please try again in 20ms."), None),
    ],
)
def test_the_body_of_a_rate_limit_may_have_the_seconds_to_wait(
    chat_server: Any, body: Any, seconds: float | None
) -> None:
    limited = failure(chat_server, 429, body)
    assert isinstance(limited, Transient)
    assert limited.retry_after == seconds


def test_a_refused_enable_thinking_names_the_option_that_turns_it_off(chat_server: Any) -> None:
    words = "parameter.enable_thinking must be set to false for non-streaming calls"
    advice = "--extra-body '{\"enable_thinking\": false}'"
    assert advice in str(failure(chat_server, 400, error(words)))


def test_a_server_may_forbid_retries(chat_server: Any) -> None:
    assert isinstance(failure(chat_server, 500, error(), {"x-should-retry": "false"}), Refused)


@pytest.mark.parametrize("status", [200, 404, 502])
def test_a_web_page_is_named_in_the_error(chat_server: Any, status: int) -> None:
    page = failure(
        chat_server, status, b"<!doctype html><title>Welcome</title>", {"content-type": "text/html"}
    )
    assert "text/html" in str(page) or "web page" in str(page)
    assert "Welcome" not in str(page)
    assert page.stops == {200: "if_first", 404: "always", 502: "if_first"}[status]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"choices": []}, Refused, "0 choices instead of 1"),
        ({"object": "list"}, Refused, "no chat completion"),
        ([1], Refused, "no chat completion"),
        ({"choices": [{}]}, Refused, "without a message"),
        ({"choices": [{"message": {"content": [1]}}]}, Refused, "content is a list"),
        (
            {"error": {"message": "upstream fell over", "code": 502}},
            Transient,
            "upstream fell over",
        ),
        ({"error": {"message": "slow down", "code": "429"}}, Transient, "slow down"),
        ({"error": {"message": "blocked", "code": "policy"}}, Refused, "blocked"),
        ({"error": "blocked"}, Refused, "blocked"),
        ({"error": "model overloaded"}, Transient, "model overloaded"),
        ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, Transient, "rate limit"),
        ({"error_code": 18, "error_msg": "qps request limit reached"}, Transient, "qps"),
        ({"success": False, "errors": [{"message": "no such"}]}, Refused, "no such"),
    ],
)
def test_a_200_without_a_completion_is_an_error(
    chat_server: Any, body: Any, kind: type[ProviderError], words: str
) -> None:
    error = failure(chat_server, 200, body)
    assert isinstance(error, kind)
    assert words in str(error)


@pytest.mark.parametrize(
    ("headers", "body", "problem"),
    [
        ({}, b'{"choices": [{"mess', "after 19 bytes"),
        ({}, b"", "after 0 bytes"),
        ({}, b"[" * 9_999 + b"]", "invalid JSON"),
        ({}, b'{"choices": [}\xff]}', "invalid JSON"),
        ({"content-encoding": "gzip"}, b"no gzip", "cannot be decompressed"),
    ],
)
def test_a_first_reply_that_cannot_be_read_is_asked_again(
    chat_server: Any,
    make_completion: Callable[..., Any],
    headers: dict[str, str],
    body: bytes,
    problem: str,
) -> None:
    transient = failure(chat_server, 200, body, headers)
    assert isinstance(transient, Transient)
    assert has_line(str(transient), chat_server.url, problem)
    replies = [(200, headers, body), (200, {}, make_completion("5"))]
    chat_server.answer = lambda _: replies.pop(0)
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def send_request() -> Response:
        try:
            return await Sender(Policy(base=0.0))(lambda: provider.complete(request()), request())
        finally:
            await provider.aclose()

    assert asyncio.run(send_request()).choices[0].text == "5"


def test_a_reply_that_ends_before_its_announced_length_was_cut_off() -> None:
    def reply(connection: socket.socket) -> None:
        connection.sendall(
            b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"choices"'
        )

    transient = answered_by(reply, timeout=5.0)
    assert isinstance(transient, Transient)
    assert "after 10 bytes" in str(transient)


@pytest.mark.parametrize("top", [0, 20])
def test_a_text_beyond_a_megabyte_is_refused_and_counts_as_billed(
    chat_server: Any, make_completion: Callable[..., Any], top: int
) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion("Score: 4. " * 300_000))
    with pytest.raises(Refused, match=r"1 MB|more than 2 MB") as caught:
        ask(chat_server, Request("m", request().messages, {"top_logprobs": top} if top else {}))
    assert caught.value.billed


# Finish reasons of Gemini, Mistral, Anthropic and Zhipu
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("model_context_window_exceeded", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("sensitive", "content_filter"),
        ("eos", "eos"),
    ],
)
def test_reasons_of_other_servers_have_the_names_of_openai(
    chat_server: Any, make_completion: Callable[..., Any], theirs: str, ours: str
) -> None:
    choice = {"finish_reason": theirs, "message": {"content": "The text is"}}
    chat_server.answer = lambda _: (200, {}, make_completion(choice=choice))
    assert ask(chat_server)[0].choices[0].finish_reason == ours


def test_a_filtered_reply_may_have_no_message(chat_server: Any) -> None:
    chat_server.answer = lambda _: (200, {}, {"choices": [{"finish_reason": "content_filter"}]})
    choice = ask(chat_server)[0].choices[0]
    assert (choice.text, choice.finish_reason) == ("", "content_filter")


# OpenRouter, DeepSeek, Zhipu
@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"finish_reason": "error", "error": {"code": 502, "message": "Gone"}}, "Gone"),
        ({"finish_reason": "insufficient_system_resource"}, "insufficient_system_resource"),
        ({"finish_reason": "network_error"}, "network_error"),
    ],
)
def test_a_reply_that_the_server_broke_off_is_transient(
    chat_server: Any, choice: dict[str, Any], words: str
) -> None:
    choice = {"message": {"content": ""}, **choice}
    transient = failure(chat_server, 200, {"choices": [choice]})
    assert isinstance(transient, Transient)
    assert words in str(transient)


def test_the_text_of_a_refusal_is_the_reply(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    refusal = {
        "message": {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    }
    chat_server.answer = lambda _: (200, {}, make_completion(choice=refusal))
    choice = ask(chat_server)[0].choices[0]
    assert (choice.text, choice.finish_reason) == ("I cannot help with that.", "refusal")


def test_a_dropped_connection_is_transient(chat_server: Any) -> None:
    transient = failure(chat_server, 0, None)
    assert isinstance(transient, Transient)
    assert (transient.billed, transient.stops) == (False, "if_first")
    assert "dropped" in str(transient)


def test_a_hung_server_times_out_and_may_have_billed(chat_server: Any) -> None:
    def slow(_: Any) -> tuple[int, dict[str, str], Any]:
        time.sleep(0.4)
        return 200, {}, None

    chat_server.answer = slow
    with pytest.raises(Transient, match=r"within 0\.1 s") as caught:
        ask(chat_server, timeout=0.1)
    assert caught.value.billed


def test_connection_refused_is_reported_as_such(chat_server: Any) -> None:
    chat_server.close()
    with pytest.raises(Transient, match=r"cannot connect .*running\? --base-url") as caught:
        ask(chat_server)
    assert caught.value.unreachable
    chat_server.__init__()


def test_a_name_without_an_address_is_no_server_that_is_not_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    provider = OpenAIProvider("m", base_url="http://judge.invalid/v1")
    with pytest.raises(Transient, match="check the network and the name") as caught:
        complete_all(provider, request())
    assert "running" not in str(caught.value)


def test_the_key_comes_from_the_environment_and_is_sent_only_to_the_server(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    provider = OpenAIProvider("m", base_url=chat_server.url, key_env="MY_KEY")
    assert "sk-very-secret" not in repr(vars(provider))
    asyncio.run(_once(provider))
    assert chat_server.headers[0]["authorization"] == "Bearer sk-very-secret"


async def _once(provider: OpenAIProvider) -> None:
    try:
        await provider.complete(request())
    finally:
        await provider.aclose()


def test_a_missing_key_is_an_error_before_any_request() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        OpenAIProvider("m")


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://x/v1",
        "https://user:secret@example.org/v1",
        "https://:secret@example.org/v1",
        "user:secret@example.org/v1",
        "https://example.org/v1?key=secret",
        "example.org/v1?key=secret",
        "https://example.org/v1#secret",
        "http://[::1/v1",
    ],
)
def test_a_bad_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--base-url") as caught:
        OpenAIProvider("m", base_url=url)
    assert "secret" not in str(caught.value)


def test_a_lone_surrogate_is_sent_as_a_replacement_character(chat_server: Any) -> None:
    broken = Request("m", ({"role": "user", "content": "a\ud800b"},), {})
    ask(chat_server, broken)
    assert chat_server.bodies[0]["messages"][0]["content"] == "a\ufffdb"


@pytest.mark.parametrize("key", ["sk-1\nInjected: yes", "sk-ключ"])
def test_a_key_that_cannot_be_a_key_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ConfigError, match=r"\$OPENAI_API_KEY holds") as caught:
        OpenAIProvider("m")
    assert "sk-" not in str(caught.value)


def test_a_missing_named_key_is_an_error(chat_server: Any) -> None:
    with pytest.raises(ConfigError, match=r"\$NO_SUCH_KEY is not set.* without --key-env"):
        OpenAIProvider("m", base_url=chat_server.url, key_env="NO_SUCH_KEY")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_text_does_not_follow_a_redirect(chat_server: Any, status: int) -> None:
    refused = failure(chat_server, status, {}, {"location": "http://127.0.0.1:1/v1"})
    assert isinstance(refused, Refused)
    assert refused.stops == "always"
    assert "http://127.0.0.1:1/v1" in str(refused)
    assert len(chat_server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "message", "param"),
    [
        (
            400,
            "'max_completion_tokens' is too large: the model's maximum context length is 4096 tokens",
            None,
        ),
        (400, "rejected by the content policy (temperature of the debate)", None),
        (400, "Unsupported parameter: 'response_format'", "response_format"),
        (400, "this is not supported", None),
        (401, "logprobs are not supported", None),
    ],
)
def test_a_refusal_of_one_text_changes_nothing_for_the_next(
    chat_server: Any,
    make_completion: Callable[..., Any],
    status: int,
    message: str,
    param: str | None,
) -> None:
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def two() -> None:
        chat_server.answer = lambda _: (status, {}, error(message, param=param))
        with pytest.raises(Refused):
            await provider.complete(request())
        chat_server.answer = lambda _: (200, {}, make_completion("4", top={"4": 1.0}))
        assert (await provider.complete(request())).unmet == ()
        await provider.aclose()

    asyncio.run(two())
    assert chat_server.bodies[-1] == chat_server.bodies[0]


def test_other_words_that_did_not_help_are_forgotten(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def two() -> None:
        chat_server.answer = lambda _: (
            400,
            {},
            error("temperature is not supported, nor anything else"),
        )
        with pytest.raises(Refused):
            await provider.complete(request())
        chat_server.answer = lambda _: (200, {}, make_completion("4", top={"4": 1.0}))
        assert (await provider.complete(request())).unmet == ()
        await provider.aclose()

    asyncio.run(two())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(JSON, JSON, JSON)
def test_a_body_of_any_shape_is_a_response_or_a_provider_error(
    logprobs: Any, usage: Any, message: Any
) -> None:
    choice = {"message": message, "logprobs": logprobs, "finish_reason": usage}
    for data in (
        message,
        {"choices": message},
        {"choices": [choice], "usage": usage},
        {"error": usage},
    ):
        try:
            response = _response(data, {"logprobs": True}, (), "url", {})
        except ProviderError:
            continue
        assert Response.from_json(response.to_json()).usage == response.usage
        assert all(
            isinstance(c.text, str) and isinstance(c.finish_reason, str) for c in response.choices
        )
        assert min(getattr(response.usage, name) for name in Usage.__slots__) >= 0


def test_a_malformed_list_of_tokens_costs_the_probabilities_and_not_the_reply(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    broken = {"content": [{"token": 4, "logprob": -0.1}]}
    chat_server.answer = lambda _: (200, {}, make_completion(choice={"logprobs": broken}, usage=[]))
    (response,) = ask(chat_server)
    assert (response.choices[0].text, response.choices[0].tokens, response.unmet) == (
        "4",
        None,
        ("logprobs",),
    )
    assert response.usage == Usage()


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (
            200,
            {},
            {"model": "sk-very-secret", "choices": [{"message": {"content": "sk-very-secret"}}]},
        ),
        (200, {}, {"error": {"message": "sk-very-secret"}}),
        (400, {}, {"error": {"message": "x" * 291 + " sk-very-secret"}}),
        (403, {}, {"error": {"message": "the key sk-very-secret may not do that"}}),
        (307, {"location": "http://127.0.0.1/sk-very-secret"}, {}),
        (200, {"content-type": "text/sk-very-secret"}, b"no json"),
    ],
)
def test_a_key_comes_back_from_nowhere(
    chat_server: Any,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    headers: dict[str, str],
    body: Any,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    chat_server.answer = lambda _: (status, headers, body)
    try:
        text = ask(chat_server)[0].to_json()
    except ProviderError as error:
        text = str(error)
    assert "sk-ver" not in text
    assert "***" in text or status == 400


def answered_by(
    talk: Callable[[socket.socket], None],
    *,
    timeout: float,
    after: Callable[[], None] = lambda: None,
) -> ProviderError:
    """Return the provider's error for a server that answers each request with `talk`."""

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            talk(connection)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve, args=(listening,))
        server.start()
        provider = OpenAIProvider(
            "m", base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", timeout=timeout
        )
        with pytest.raises(ProviderError) as caught:
            asyncio.run(_once(provider))
        after()
        server.join()
    return caught.value


def test_a_reply_in_drops_times_out_as_a_whole() -> None:
    """Each byte arrives within the timeout, but the reply never ends."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        for _ in range(400):
            connection.sendall(b" ")
            time.sleep(0.05)

    transient = answered_by(drip, timeout=0.3)
    assert isinstance(transient, Transient)
    assert transient.billed


@pytest.mark.parametrize(
    "first_bytes",
    [
        b"",
        b'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"choices": [',
        b"HTTP/1.1 429 Slow\r\nretry-af",
    ],
)
def test_a_server_that_falls_silent_times_out(first_bytes: bytes) -> None:
    given_up = threading.Event()

    def stall(connection: socket.socket) -> None:
        connection.sendall(first_bytes)
        given_up.wait(10.0)

    transient = answered_by(stall, timeout=0.2, after=given_up.set)
    assert isinstance(transient, Transient)
    assert transient.billed
    assert "--timeout" in str(transient)


def test_a_reply_that_is_not_even_http_is_transient() -> None:
    transient = answered_by(
        lambda connection: connection.sendall(b"SSH-2.0-nothing like it\r\n\r\n"), timeout=5.0
    )
    assert isinstance(transient, Transient)
    assert "dropped the connection" in str(transient)


def test_a_word_too_short_for_a_key_stays_in_the_replies(
    chat_server: Any, make_completion: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat_server.answer = lambda body: (200, {}, make_completion("none of the points"))
    (response,) = ask(chat_server)
    assert response.choices[0].text == "none of the points"


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("gpt-5.4-mini", {}, "key"),
        ("gpt-6-luna", {}, "explicit"),
        ("a-model-of-tomorrow", {}, "key"),
        ("gpt-6-luna", {"base_url": "http://127.0.0.1:9/v1"}, ""),
        ("gpt-5.4-mini", {"base_url": "http://127.0.0.1:9/v1", "caching": "key"}, "key"),
    ],
)
def test_prompt_cache_parameters_by_server(
    monkeypatch: pytest.MonkeyPatch, model: str, options: dict[str, Any], expected: str
) -> None:
    """According to genai-prices, gpt-6-luna charges more for cache writes than for uncached input."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    assert OpenAIProvider(model, **options).caching == expected


def test_a_pickled_provider_does_not_contain_its_key(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch, make_completion: Any, make_error: Any
) -> None:
    """The copy keeps the address and learned limits. Without the key in its environment, unpickling fails."""
    key = "sk-that-stays-where-it-is"
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    provider = OpenAIProvider("m", name="vllm", timeout=7.0, connections=3)
    chat_server.answer = lambda body: (
        (400, {}, make_error("n is not supported", param="n"))
        if "n" in body
        else (200, {}, make_completion())
    )

    async def learn() -> None:
        await provider.complete(Request("m", ({"role": "user", "content": "x"},), {"n": 2}))
        await provider.aclose()

    asyncio.run(learn())
    sent = pickle.dumps(provider)
    assert key.encode() not in sent
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    unpickled = pickle.loads(sent)
    assert (unpickled.name, unpickled.model, unpickled.endpoint) == ("vllm", "m", chat_server.url)
    assert unpickled._http.options == provider._http.options
    assert unpickled.learned == provider.learned == {"n": 1}
    assert unpickled.shared_state == provider.shared_state
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        pickle.loads(sent)


AZURE = "AZURE_OPENAI_ENDPOINT"


@pytest.mark.parametrize(
    ("variable", "model", "key"),
    [(AZURE, "azure/x", "AZURE_OPENAI_API_KEY"), ("OPENAI_BASE_URL", "x", "OPENAI_API_KEY")],
)
@pytest.mark.parametrize(
    "url", ["https://r.openai.azure.com?api-version=2024", "r.openai.azure.com", "ftp://x"]
)
def test_a_bad_address_of_the_environment_is_blamed_on_its_variable(
    variable: str, model: str, key: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, "k")
    monkeypatch.setenv(variable, url)
    with pytest.raises(ConfigError) as caught:
        judge.evaluate([{"output": "a", "source": "b"}], "fluency", model=model, metrics=[])
    assert str(caught.value).startswith(f"${variable}")
    assert "base_url" not in str(caught.value)
    assert "base-url" not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [(404, {}, b"no such page"), (302, {"location": "/x"}, b""), (200, {}, b"<html>"), None],
)
def test_errors_of_an_azure_endpoint_do_not_blame_an_option(
    reply: Any, chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat_server.answer = lambda _: reply
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    monkeypatch.setenv(AZURE, chat_server.url)
    if reply is None:
        chat_server.close()
    provider = OpenAIProvider.open("x", RunConfig(), VENDORS["azure"])
    with pytest.raises((Refused, Transient)) as caught:
        asyncio.run(_once(provider))
    if reply is None:
        chat_server.__init__()
    assert f"${AZURE}" in str(caught.value)
    assert "base-url" not in str(caught.value)


def test_errors_of_a_model_entry_address_blame_the_entry(
    chat_server: Any,
) -> None:
    chat_server.answer = lambda _: (404, {}, b"no such page")
    model = {"name": "vllm/m", "base_url": chat_server.url}
    with pytest.raises(Refused, match=r"and base_url of vllm/m$"):
        judge.evaluate([{"output": "a", "source": "b"}], "fluency", model=model, metrics=[])


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:1080", "socks://h:1", "http://[::1"])
def test_a_proxy_that_is_no_http_proxy_is_refused_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    provider = OpenAIProvider("m", base_url="https://judge.example/v1")
    with pytest.raises(ConfigError, match=r"\$HTTPS_PROXY: .* http://") as caught:
        complete_all(provider, request())
    assert address not in str(caught.value)


def test_a_proxy_that_is_not_running_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setenv("https_proxy", proxy)
        provider = OpenAIProvider("m", base_url="https://judge.example/v1")
        with pytest.raises(Transient, match=r"\$https_proxy .*running") as caught:
            complete_all(provider, request())
    assert caught.value.unreachable


def test_a_host_in_no_proxy_blames_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    provider = OpenAIProvider("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(Transient, match=r"cannot connect .* --base-url"):
        complete_all(provider, request())


@pytest.mark.parametrize(("status", "words"), [(407, "a password"), (403, "check $HTTPS_PROXY")])
def test_a_proxy_that_refuses_is_named(
    monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    monkeypatch.delenv("https_proxy", raising=False)
    error = aiohttp.ClientHttpProxyError(Any, (), status=status)
    described = connection_error(error, "https://judge.example/v1", 1.0, 0)
    assert f"the proxy answered {status}" in str(described)
    assert words in str(described)


def test_a_server_without_tls_is_called_so() -> None:
    why = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    error = aiohttp.ClientConnectorSSLError(Any, why)
    described = connection_error(error, "https://127.0.0.1:8000/v1", 1.0, 0)
    assert "begin with http://" in str(described)


def test_a_certificate_of_an_own_authority_is_called_so() -> None:
    why = ssl.SSLCertVerificationError("self-signed certificate")
    key = Any
    error = aiohttp.ClientConnectorCertificateError(key, why)
    described = connection_error(error, "https://judge.example/v1", 1.0, 0)
    assert "certificate is not trusted" in str(described)
    assert "$SSL_CERT_FILE" in str(described)
    assert described.unreachable
