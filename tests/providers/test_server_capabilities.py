"""Limits that the chat provider learns from refusals: choices per request, reasoning effort, response format."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import Refused
from judge.core.records import Request, Response
from judge.providers.openai import OpenAIProvider
from judge.providers.server_capabilities import RequestAdapter
from tests.factories import complete_all, user_request

Answer = tuple[int, dict[str, str], Any]
PARAMS = {"temperature": 0.0, "max_tokens": 64, "top_logprobs": 20}
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "j", "strict": True, "schema": {"type": "object"}},
}
UNSUPPORTED = "Unsupported parameter: '{}' is not supported with this model."


def ask(server: Any, *requests: Request) -> tuple[list[Response], dict[str, Any]]:
    provider = OpenAIProvider("m", base_url=server.url)
    return complete_all(provider, *requests), provider.learned


@pytest.fixture
def reply(make_completion: Callable[..., Any]) -> Callable[..., Answer]:
    """A function that answers a body with the requested number of choices, or `count`, and log probabilities."""

    def answer_body(body: dict[str, Any], count: int | None = None) -> Answer:
        data = make_completion("4", top={"4": 1.0} if body.get("logprobs") else None)
        data["choices"] *= body.get("n", 1) if count is None else count
        return 200, {}, data

    return answer_body


def asked_n(server: Any) -> list[int | None]:
    return [body.get("n") for body in server.bodies]


def test_several_choices_come_from_one_request(
    chat_server: Any, reply: Callable[..., Answer]
) -> None:
    chat_server.answer = reply
    (several, single), learned = ask(chat_server, user_request(n=20), user_request(n=1))
    assert (len(several.choices), several.unmet, len(single.choices), learned) == (20, (), 1, {})
    assert asked_n(chat_server) == [20, None]


LLAMA = "Field 'n': Value must be between 1 <= value <= {most}, but got {n}"
REPLAY = (
    "Invalid 'n': integer out of range. Expected a value between 1 and {most}, but got {n} instead."
)


@pytest.mark.parametrize(
    ("message", "param", "most", "requested"),
    [
        (LLAMA, None, 8, [20, 8]),
        (REPLAY, "n", 8, [20, 8]),
        ("n is too large", "n", 6, [20, 10, 5]),
        ("too many choices: n", None, 6, [20, 10, 5]),
        ("n must be 1 when using greedy sampling, got {n}.", None, 1, [20, None]),
        ("Unsupported parameter: 'n' is not supported with this model.", "n", 1, [20, None]),
        (
            "Unsupported value: 'n' does not support {n}. Only the default (1) value is supported.",
            "n",
            1,
            [20, None],
        ),
        ("`n` is capped", None, 1, [20, 10, 5, 2, None]),
    ],
)
def test_a_server_with_a_limit_is_asked_for_fewer_choices(
    chat_server: Any,
    reply: Callable[..., Answer],
    make_error: Any,
    message: str,
    param: str | None,
    most: int,
    requested: list[int | None],
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if (n := body.get("n", 1)) > most:
            return 400, {}, make_error(message.format(n=n, most=most), param=param)
        return reply(body)

    chat_server.answer = answer
    (first, second, third), learned = ask(
        chat_server, user_request(n=20), user_request(n=20), user_request(n=1)
    )
    got = requested[-1] or 1
    assert (len(first.choices), len(second.choices), len(third.choices)) == (got, got, 1)
    assert (first.unmet, second.unmet, third.unmet) == (("n",), ("n",), ())
    assert asked_n(chat_server) == [*requested, requested[-1], None]
    assert learned == {"n": got}


def test_silently_missing_choices_are_noted_and_not_requested_again(
    chat_server: Any, reply: Callable[..., Answer]
) -> None:
    chat_server.answer = lambda body: reply(body, min(3, body.get("n", 1)))
    (first, second, third), learned = ask(
        chat_server, user_request(n=20), user_request(n=20), user_request(n=2)
    )
    assert [len(r.choices) for r in (first, second, third)] == [3, 3, 2]
    assert [r.unmet for r in (first, second, third)] == [("n",), ("n",), ()]
    assert asked_n(chat_server) == [20, 3, 2]
    assert learned == {"n": 3}


@pytest.mark.parametrize(("n", "sent"), [(1, 2), (4, 5), (4, 0)])
def test_refuses_too_many_or_no_choices(
    chat_server: Any, reply: Callable[..., Answer], n: int, sent: int
) -> None:
    chat_server.answer = lambda body: reply(body, sent)
    with pytest.raises(Refused, match=rf"{sent} choices .*\b{n}\b"):
        ask(chat_server, user_request(n=n))


def test_learned_limits_survive_concurrent_requests(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any
) -> None:
    provider = OpenAIProvider("m", base_url=chat_server.url)
    slow = asyncio.Event()

    async def both() -> None:
        post = provider._http.post

        async def held(path: str, body: dict[str, Any]) -> Any:
            data = await post(path, body)
            if "n" not in body and body.get("seed") == 1:
                await slow.wait()
            return data

        provider._http.post = held  # type: ignore[method-assign]
        plain = asyncio.create_task(provider.complete(user_request(seed=1)))
        await asyncio.sleep(0)
        await provider.complete(user_request(n=20))
        slow.set()
        await plain
        await provider.aclose()

    def answer(body: dict[str, Any]) -> Answer:
        return (
            reply(body)
            if body.get("n", 1) <= 8
            else (400, {}, make_error(LLAMA.format(n=body["n"], most=8)))
        )

    chat_server.answer = answer
    asyncio.run(both())
    assert provider.learned == {"n": 8}


# Reasoning effort. OpenAI's models, according to their documentation and user reports.


def reasoning_by_default(
    body: dict[str, Any], *, efforts: tuple[str, ...], always: tuple[str, ...] = ()
) -> str | None:
    """Return the parameter that a model with these efforts refuses. It refuses `always` at every effort."""
    if body.get("reasoning_effort", efforts[0]) not in efforts:
        return "reasoning_effort"
    free = body.get("reasoning_effort") == "none"
    for name in ("temperature", "logprobs"):
        refused = name in always or not free
        if name in body and refused and not (name == "temperature" and body[name] == 1):
            return name
    return None


@pytest.mark.parametrize(
    ("efforts", "always", "unmet", "learned", "sent"),
    [
        (("medium", "none"), (), ("reasoning",), {"reasoning_effort": "none"}, 3),
        (
            ("medium", "none"),
            ("temperature",),
            ("temperature", "reasoning"),
            {"reasoning_effort": "none", "dropped": ["temperature"]},
            4,
        ),
        (
            ("medium", "none"),
            ("logprobs",),
            ("temperature", "logprobs"),
            {"dropped": ["logprobs", "temperature"]},
            4,
        ),
        (("medium",), (), ("temperature", "logprobs"), {"dropped": ["logprobs", "temperature"]}, 4),
    ],
)
def test_a_reasoning_model_is_first_asked_not_to_reason(
    chat_server: Any,
    reply: Callable[..., Answer],
    make_error: Any,
    efforts: tuple[str, ...],
    always: tuple[str, ...],
    unmet: tuple[str, ...],
    learned: dict[str, Any],
    sent: int,
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        refused = reasoning_by_default(body, efforts=efforts, always=always)
        return (
            (400, {}, make_error(UNSUPPORTED.format(refused), param=refused))
            if refused
            else reply(body)
        )

    chat_server.answer = answer
    (first, second), known = ask(chat_server, user_request(**PARAMS), user_request(**PARAMS))
    assert set(first.unmet) == set(second.unmet) == set(unmet)
    assert known == learned
    assert len(chat_server.bodies) == sent + 1
    assert chat_server.bodies[-1] == chat_server.bodies[-2]
    assert ("reasoning_effort" in chat_server.bodies[-1]) == ("reasoning_effort" in learned)


@pytest.mark.parametrize("also_refused", [(), ("logprobs",)])
def test_a_refused_effort_of_the_user_is_a_known_limit(
    chat_server: Any,
    reply: Callable[..., Answer],
    make_error: Any,
    also_refused: tuple[str, ...],
) -> None:
    refused = ("reasoning_effort", *also_refused)

    def answer(body: dict[str, Any]) -> Answer:
        for name in refused:
            if name in body:
                return 400, {}, make_error(UNSUPPORTED.format(name), param=name)
        return reply(body)

    chat_server.answer = answer
    request = user_request(reasoning_effort="low", top_logprobs=20)
    (response,), learned = ask(chat_server, request)
    assert set(response.unmet) == set(refused)
    assert learned == {"dropped": sorted(refused)}


def test_temperature_does_not_disable_reasoning(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        refused = reasoning_by_default(body, efforts=("medium", "none"))
        return (
            (400, {}, make_error(UNSUPPORTED.format(refused), param=refused))
            if refused
            else reply(body)
        )

    chat_server.answer = answer
    (cold, warm), learned = ask(
        chat_server, user_request(temperature=0.0), user_request(temperature=1.0)
    )
    assert (cold.unmet, warm.unmet, learned) == (("temperature",), (), {"dropped": ["temperature"]})
    assert not any("reasoning_effort" in body for body in chat_server.bodies)


def test_reasoning_is_turned_off_only_if_a_request_needs_it(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if "logprobs" in body and "reasoning_effort" not in body:
            return 400, {}, make_error(UNSUPPORTED.format("logprobs"), param="logprobs")
        return reply(body)

    chat_server.answer = answer
    replies, _ = ask(chat_server, user_request(top_logprobs=20), user_request(temperature=1.0))
    assert [body.get("reasoning_effort") for body in chat_server.bodies] == [None, "none", None]
    assert [reply.unmet for reply in replies] == [("reasoning",), ()]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unrecognized request argument supplied: logprobs"),
        (422, "logprobs: Extra inputs are not permitted"),
        (403, "You are not allowed to request logprobs from this model"),
    ],
)
def test_a_server_that_knows_no_such_parameter_is_not_asked_about_reasoning(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any, status: int, message: str
) -> None:
    chat_server.answer = lambda body: (
        (status, {}, make_error(message)) if "logprobs" in body else reply(body)
    )
    (response,), learned = ask(chat_server, user_request(**PARAMS))
    assert (response.unmet, learned) == (("logprobs",), {"dropped": ["logprobs"]})
    assert not any("reasoning_effort" in body for body in chat_server.bodies)


@pytest.mark.parametrize("words", [UNSUPPORTED.format("reasoning_effort"), "Bad request"])
def test_a_refused_effort_costs_one_request(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any, words: str
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if "reasoning_effort" in body:
            return 400, {}, make_error(words)
        if "logprobs" in body:
            return 400, {}, make_error(UNSUPPORTED.format("logprobs"))
        return reply(body)

    chat_server.answer = answer
    (response,), learned = ask(chat_server, user_request(**PARAMS))
    assert (response.unmet, learned) == (("logprobs",), {"dropped": ["logprobs"]})
    assert len(chat_server.bodies) == 3


def test_an_effort_that_did_not_help_is_taken_back_and_not_tried_again(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        for name in ("logprobs", "temperature"):
            if name in body:
                return 400, {}, make_error(UNSUPPORTED.format(name), param=name)
        return reply(body)

    chat_server.answer = answer
    (response,), learned = ask(chat_server, user_request(**PARAMS))
    assert set(response.unmet) == {"logprobs", "temperature"}
    assert learned == {"dropped": ["logprobs", "temperature"]}
    assert [body.get("reasoning_effort") for body in chat_server.bodies] == [
        None,
        "none",
        None,
        None,
    ]


def test_twenty_alternatives_are_not_lowered_for_a_model_that_reasons(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if "top_logprobs" in body and "reasoning_effort" not in body:
            return 400, {}, make_error(UNSUPPORTED.format("top_logprobs"), param="top_logprobs")
        return reply(body)

    chat_server.answer = answer
    (response,), learned = ask(chat_server, user_request(**PARAMS))
    assert (response.unmet, learned) == (("reasoning",), {"reasoning_effort": "none"})
    assert chat_server.bodies[-1]["top_logprobs"] == 20


# Response format.


def test_a_response_format_is_sent_unchanged(
    chat_server: Any, reply: Callable[..., Answer]
) -> None:
    chat_server.answer = reply
    (response,), _ = ask(chat_server, user_request(response_format=FORMAT))
    assert (chat_server.bodies[0]["response_format"], response.unmet) == (FORMAT, ())


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model",
            None,
        ),
        (
            "Invalid schema for response_format 'j': In context=(), 'additionalProperties' is required",
            None,
        ),
        ("json_schema is not supported", "response_format.type"),
        ("This response_format type is unavailable now", None),
        ("Automatic parser generation failed: JSON schema error at #: unrecognized type", None),
    ],
)
def test_a_refused_response_format_is_omitted(
    chat_server: Any, reply: Callable[..., Answer], make_error: Any, message: str, param: str | None
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return (
            (400, {}, make_error(message, param=param))
            if "response_format" in body
            else reply(body)
        )

    chat_server.answer = answer
    (first, second), learned = ask(
        chat_server, *[user_request(response_format=FORMAT, temperature=0.0)] * 2
    )
    assert first.unmet == second.unmet == ("response_format",)
    assert learned == {"dropped": ["response_format"]}
    assert len(chat_server.bodies) == 3


# Prompt caching.

TEXT = "the document, and what is asked about it"


def grouped(length: int = 12, text: str = TEXT) -> Request:
    return Request(
        "m", ({"role": "user", "content": text},), {"max_tokens": 9}, prefix=("g1", length)
    )


def test_a_server_without_prompt_caching_gets_plain_text() -> None:
    body = RequestAdapter().body(grouped())
    assert body["messages"] == [{"role": "user", "content": TEXT}]
    assert not [name for name in body if "cache" in name]


@pytest.mark.parametrize("length", [0, 12])
def test_a_group_has_its_key(length: int) -> None:
    body = RequestAdapter(caching="key").body(grouped(length))
    assert (body["prompt_cache_key"], body["messages"][0]["content"]) == ("g1", TEXT)
    assert "prompt_cache_options" not in body


def test_requests_without_a_group_have_no_cache_key() -> None:
    assert "prompt_cache_key" not in RequestAdapter(caching="key").body(user_request())


def test_only_reused_prefixes_are_marked_if_cache_writes_cost() -> None:
    dialect = RequestAdapter(caching="explicit")
    alone, shared, plain = (dialect.body(one) for one in (grouped(0), grouped(12), user_request()))
    assert [body["prompt_cache_options"] for body in (alone, shared, plain)] == [
        {"mode": "explicit"}
    ] * 3
    assert (alone["messages"][0]["content"], plain["messages"][0]["content"]) == (TEXT, "p")
    assert shared["messages"][0]["content"] == [
        {"type": "text", "text": TEXT[:12], "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "text", "text": TEXT[12:]},
    ]


@given(st.text(min_size=1, max_size=40), st.data())
def test_the_parts_are_the_text(text: str, data: Any) -> None:
    length = data.draw(st.integers(1, len(text)))
    (message,) = RequestAdapter(caching="explicit").body(grouped(length, text))["messages"]
    assert "".join(part["text"] for part in message["content"]) == text
    assert all(part["text"] for part in message["content"])


def test_cache_parameters_are_not_reported_as_unmet() -> None:
    body = RequestAdapter(caching="explicit").body(grouped())
    assert RequestAdapter(caching="explicit").unmet(grouped(), body) == ()
