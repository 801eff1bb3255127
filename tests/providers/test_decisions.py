"""Typed questions in both wire forms, against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.config import load_config
from judge.core.errors import ProviderError, Refused, Transient
from judge.core.records import Choice, Request, Response, Usage
from judge.providers import Provider
from judge.providers.decisions import _FORMS, DecisionsProvider, _questions, _response
from judge.run.judge_models import open_judge
from tests.factories import complete_all

SCORE = {
    "name": "coherence",
    "type": "score",
    "instructions": "How coherent?",
    "labels": ["1", "2", "3"],
}
CHOICE = {
    "name": "kind",
    "type": "choice",
    "instructions": "Which kind?",
    "labels": ["news", "opinion", "other"],
}
PREDICATE = {
    "name": "faithful",
    "type": "predicate",
    "instructions": "It is faithful.",
    "labels": ["no", "yes"],
}
QUESTIONS = [SCORE, CHOICE, PREDICATE]
NO_SUCH_PATH = {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}

# Answers of a llama.cpp server to the three questions above on /v1/systemone, with rounded numbers.
SYSTEMONE = {
    "model": "dec.gguf",
    "answers": {
        "faithful": {"type": "noul", "noul": 0.25},
        "coherence": {
            "type": "score",
            "score": 1.125,
            "legend": {"0": "1", "1": "2", "2": "3"},
            "probabilities": {"0": 0.25, "1": 0.375, "2": 0.375},
            "confidence": 0.0,
        },
        "kind": {
            "type": "choice",
            "choice": "opinion",
            "probabilities": {"news": 0.25, "opinion": 0.5, "other": 0.25},
            "confidence": 0.07,
        },
    },
    "usage": {"input_tokens": 51, "output_tokens": 0},
}
DECISIONS = {
    "model": "gpt-6-luna-2026-10-22",
    "answers": [
        {
            "type": "score",
            "name": "coherence",
            "score": 1.125,
            "confidence": 0.4,
            "probabilities": [
                {"label": "2", "probability": 0.375, "value": 1},
                {"label": "1", "probability": 0.25, "value": 0},
                {"label": "3", "probability": 0.375, "value": 2},
            ],
        },
        {
            "type": "choice",
            "name": "kind",
            "choice": "opinion",
            "confidence": 0.3,
            "probabilities": [
                {"value": "news", "probability": 0.25},
                {"value": "opinion", "probability": 0.5},
                {"value": "other", "probability": 0.25},
            ],
        },
        {"type": "predicate", "name": None, "probability": 0.25},
    ],
    "usage": {
        "input_tokens": 51,
        "input_tokens_details": {"cached_tokens": 32, "cache_write_tokens": 7},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 53,
    },
}
ANSWERED = (
    Choice("2", shares=(("1", 0.25), ("2", 0.375), ("3", 0.375))),
    Choice("opinion", shares=(("news", 0.25), ("opinion", 0.5), ("other", 0.25))),
    Choice("no", shares=(("no", 0.75), ("yes", 0.25))),
)


def request(*questions: dict[str, Any], text: str = "A text about 「それ」.") -> Request:
    return Request(
        "m", ({"role": "user", "content": text},), {"questions": list(questions or QUESTIONS)}
    )


def ask(server: Any, *requests: Request, **options: Any) -> list[Response]:
    provider = DecisionsProvider("m", base_url=server.url, **options)
    return complete_all(provider, *(requests or (request(),)))


def open_server(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    """A server with /systemone but without /decisions."""
    return (200, {}, SYSTEMONE) if "state" in body else (404, {}, NO_SUCH_PATH)


def test_openais_form(chat_server: Any, asked_paths: list[str]) -> None:
    chat_server.answer = lambda _: (200, {}, DECISIONS)
    (response,) = ask(chat_server)
    assert response == Response(ANSWERED, Usage(51, 2, 32, 1, 7), "gpt-6-luna-2026-10-22")
    assert asked_paths == ["/v1/decisions"]


def test_the_open_form(chat_server: Any, asked_paths: list[str]) -> None:
    chat_server.answer = open_server
    (response,) = ask(chat_server)
    assert response == Response(ANSWERED, Usage(51, 0), "dec.gguf")
    assert asked_paths == ["/v1/decisions", "/v1/systemone"]
    assert chat_server.bodies[1] == {
        "model": "m",
        "state": "A text about 「それ」.",
        "questions": {
            "coherence": {
                "type": "score",
                "instructions": "How coherent?",
                "criteria": ["1", "2", "3"],
            },
            "kind": {
                "type": "choice",
                "instructions": "Which kind?",
                "criteria": {"news": None, "opinion": None, "other": None},
            },
            "faithful": {"type": "noul", "instructions": "It is faithful."},
        },
    }


@pytest.mark.skipif(
    not hasattr(openai.AsyncOpenAI, "decisions"), reason="openai 2 has no client of this endpoint"
)
def test_requests_and_replies_match_the_sdk(chat_server: Any, asked_paths: list[str]) -> None:
    chat_server.answer = lambda _: (200, {}, DECISIONS)
    ask(chat_server)

    async def through_the_sdk() -> Any:
        async with openai.AsyncOpenAI(
            api_key="k", base_url=chat_server.url, _strict_response_validation=True
        ) as client:
            return await client.decisions.create(
                model="m",
                input="A text about 「それ」.",
                questions=[
                    {
                        "type": "score",
                        "name": "coherence",
                        "instructions": "How coherent?",
                        "levels": [{"label": "1"}, {"label": "2"}, {"label": "3"}],
                    },
                    {
                        "type": "choice",
                        "name": "kind",
                        "instructions": "Which kind?",
                        "choices": [{"value": "news"}, {"value": "opinion"}, {"value": "other"}],
                    },
                    {"type": "predicate", "name": "faithful", "instructions": "It is faithful."},
                ],
            )

    decision = asyncio.run(through_the_sdk())
    assert decision.model == "gpt-6-luna-2026-10-22"
    assert chat_server.bodies[0] == chat_server.bodies[1]
    assert asked_paths == ["/v1/decisions"] * 2


@pytest.mark.parametrize("status", [404, 405, 501])
def test_the_form_is_detected_once(chat_server: Any, asked_paths: list[str], status: int) -> None:
    chat_server.answer = lambda body: (
        (200, {}, SYSTEMONE) if "state" in body else (status, {}, NO_SUCH_PATH)
    )
    provider = DecisionsProvider("m", base_url=chat_server.url)
    assert isinstance(provider, Provider)
    assert (provider.decides, provider.learned) == (True, {})

    async def once() -> tuple[Choice, ...]:
        response = await provider.complete(request())
        await provider.aclose()
        return response.choices

    assert [asyncio.run(once()) for _ in range(3)] == [ANSWERED] * 3
    assert asked_paths == ["/v1/decisions", *["/v1/systemone"] * 3]
    assert provider.learned == {"path": "/systemone"}


def test_the_provider_keeps_a_working_form_after_errors(
    chat_server: Any, asked_paths: list[str]
) -> None:
    answers = [(200, {}, DECISIONS), (404, {}, NO_SUCH_PATH), (200, {}, DECISIONS)]
    chat_server.answer = lambda _: answers.pop(0)
    provider = DecisionsProvider("m", base_url=chat_server.url)

    async def three() -> None:
        await provider.complete(request())
        with pytest.raises(Refused, match="check --model and --base-url"):
            await provider.complete(request())
        await provider.complete(request())
        await provider.aclose()

    asyncio.run(three())
    assert asked_paths == ["/v1/decisions"] * 3


def test_a_server_without_typed_questions_is_called_so(
    chat_server: Any, asked_paths: list[str]
) -> None:
    chat_server.answer = lambda _: (404, {}, b"404 page not found")
    with pytest.raises(Refused, match="neither /decisions nor /systemone") as caught:
        ask(chat_server)
    assert caught.value.stops == "always"
    assert asked_paths == ["/v1/decisions", "/v1/systemone"]


@pytest.mark.parametrize("answer", [(404, {}, b"no such page"), (200, {}, {"object": "list"})])
@pytest.mark.parametrize("place", ["option", "variable", "entry"])
def test_unsupported_decisions_blame_the_option_that_set_the_address(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch, answer: Any, place: str
) -> None:
    chat_server.answer = lambda _: answer
    entry = {"name": "decisions/m"}
    options: dict[str, Any] = {"model": entry}
    if place == "option":
        options["base_url"] = chat_server.url
    elif place == "variable":
        monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    else:
        entry["base_url"] = chat_server.url
    config = load_config(options=options)
    provider = open_judge(config, config.model[0])

    async def once() -> None:
        try:
            await provider.complete(request())
        finally:
            await provider.aclose()

    with pytest.raises(Refused) as caught:
        asyncio.run(once())
    blamed = {
        "option": "--base-url",
        "variable": "$OPENAI_BASE_URL",
        "entry": "base_url of decisions/m",
    }
    assert [name for name in blamed.values() if name in str(caught.value)] == [blamed[place]]


@pytest.mark.parametrize(
    "error_fields",
    [
        {
            "message": "The model `m` does not exist or you do not have access to it.",
            "code": "model_not_found",
        },
        {"message": 'model "m" not found, try pulling it first', "type": "api_error"},
        {"message": "no such thing", "code": "model_not_found"},
        {"message": "no such thing", "param": "model"},
    ],
)
def test_an_unknown_model_is_not_reported_as_a_missing_address(
    chat_server: Any, asked_paths: list[str], make_error: Any, error_fields: dict[str, Any]
) -> None:
    chat_server.answer = lambda _: (404, {}, make_error(**error_fields))
    with pytest.raises(Refused, match="check --model") as caught:
        ask(chat_server)
    assert caught.value.stops == "always"
    assert asked_paths == ["/v1/decisions"]


def test_a_refused_question_leaves_the_others(chat_server: Any) -> None:
    refused = {"type": "refusal", "name": "coherence"}
    chat_server.answer = lambda _: (
        200,
        {},
        DECISIONS | {"answers": [refused, *DECISIONS["answers"][1:]]},
    )
    (response,) = ask(chat_server)
    assert response.choices == (Choice("", "refusal"), *ANSWERED[1:])
    assert Response.from_json(response.to_json()) == response


def test_questions_with_equal_names_are_distinguished(chat_server: Any) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if "state" not in body:
            return 404, {}, NO_SUCH_PATH
        probabilities = [0.125 * (1 + place) for place in range(len(body["questions"]))]
        answers = {
            n: {"type": "noul", "noul": p}
            for n, p in zip(body["questions"], probabilities, strict=True)
        }
        return 200, {}, {"answers": answers}

    chat_server.answer = answer
    names = ["a", "a", "a_", "b", "a"]
    (response,) = ask(chat_server, request(*({**PREDICATE, "name": name} for name in names)))
    assert [dict(c.shares or ())["yes"] for c in response.choices] == [
        0.125,
        0.25,
        0.375,
        0.5,
        0.625,
    ]


def one(answer: Any) -> dict[str, Any]:
    return {"answers": {"q": answer}}


def shares(probabilities: Any, kind: str = "score") -> dict[str, Any]:
    return one({"type": kind, "probabilities": probabilities})


GOOD = {"0": 0.5, "1": 0.25, "2": 0.25}


@pytest.mark.parametrize(
    ("question", "data", "words"),
    [
        (SCORE, {"answers": {}}, "lack one, to 'q'"),
        (SCORE, {"answers": []}, "questions' names"),
        (SCORE, one(None), "does not have the form"),
        (SCORE, one({"probabilities": GOOD}), "does not have the form"),
        (SCORE, one({"type": "score"}), "does not have the form"),
        (SCORE, shares([0.5, 0.5]), "not"),
        (SCORE, shares(GOOD, "choice"), "choice, not a score"),
        (SCORE, shares(GOOD | {"3": 0.1}), "not offered: '3'"),
        (SCORE, shares({"0": 0.5, "1": 0.5}), "no probability for '3'"),
        (SCORE, shares(dict.fromkeys(GOOD, 0.0)), "no label any probability"),
        (SCORE, shares(GOOD | {"2": -0.01}), "'-0.01' where a probability"),
        (SCORE, shares(GOOD | {"2": 1.01}), "'1.01' where a probability"),
        (SCORE, shares(GOOD | {"2": float("nan")}), "'nan' where a probability"),
        (SCORE, shares(GOOD | {"2": float("inf")}), "'inf' where a probability"),
        (SCORE, shares(GOOD | {"2": None}), "'None' where a probability"),
        (SCORE, shares(GOOD | {"2": True}), "'True' where a probability"),
        (SCORE, shares(GOOD | {"2": "0.25"}), "'0.25' where a probability"),
        (
            CHOICE,
            shares({"news": 0.5, "opinion": 0.5, "sport": 0}, "choice"),
            "not offered: 'sport'",
        ),
        (CHOICE, shares({"news": 0.5, "opinion": 0.5}, "choice"), "no probability for 'other'"),
        (PREDICATE, one({"type": "noul", "noul": 2}), "'2' where a probability"),
        (PREDICATE, one({"type": "noul"}), "does not have the form"),
        (PREDICATE, one({"type": "predicate", "probability": 0.5}), "predicate, not a noul"),
    ],
)
def test_an_answer_with_the_wrong_structure_is_refused(
    chat_server: Any, question: dict[str, Any], data: dict[str, Any], words: str
) -> None:
    text = json.dumps(data).encode()
    chat_server.answer = lambda body: (
        (200, {}, text) if "state" in body else (404, {}, NO_SUCH_PATH)
    )
    with pytest.raises(Refused, match=words) as caught:
        ask(chat_server, request(question | {"name": "q"}))
    assert caught.value.stops == "never"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (DECISIONS["answers"][:2], "do not come to 3"),
        ([*DECISIONS["answers"], {"type": "refusal", "name": None}], "do not come to 3"),
        ({"coherence": DECISIONS["answers"][0]}, "do not come to 3"),
        ([DECISIONS["answers"][i] for i in (1, 0, 2)], "'kind' is out of place"),
        (
            [DECISIONS["answers"][0], {**DECISIONS["answers"][1], "probabilities": [1]}, {}],
            "does not have the form",
        ),
        (
            [
                {
                    **DECISIONS["answers"][0],
                    "probabilities": [{"label": "1", "probability": 0.5}] * 2,
                },
                {},
                {},
            ],
            "no probability for '2'",
        ),
        (
            [
                DECISIONS["answers"][0],
                {
                    **DECISIONS["answers"][1],
                    "probabilities": DECISIONS["answers"][1]["probabilities"] * 2,
                },
                {},
            ],
            "two probabilities for one label",
        ),
    ],
)
def test_openais_answers_are_as_many_and_in_order(
    chat_server: Any, answers: Any, words: str
) -> None:
    chat_server.answer = lambda _: (200, {}, {"answers": answers})
    with pytest.raises(Refused, match=words):
        ask(chat_server)


def test_a_probability_rounded_above_one_is_one(chat_server: Any) -> None:
    rounded = one(
        {"type": "noul", "noul": 1.0000001192092896}
    )  # 1 + 2^-23, the next number in single precision
    chat_server.answer = lambda body: (
        (200, {}, rounded) if "state" in body else (404, {}, NO_SUCH_PATH)
    )
    (response,) = ask(chat_server, request(PREDICATE | {"name": "q"}))
    assert response.choices == (Choice("yes", shares=(("no", 0.0), ("yes", 1.0))),)


@pytest.mark.parametrize(
    ("status", "body", "kind", "words", "stops"),
    [
        (
            400,
            {"error": {"message": '"criteria" must be an array of 2 to 10 levels'}},
            Refused,
            "2 to 10",
            "never",
        ),
        (503, {"error": {"message": "busy"}}, Transient, "busy", "if_first"),
        (200, {"object": "list"}, Refused, "no answer to typed questions", "if_first"),
        (200, {"error": {"message": "slow down", "code": 429}}, Transient, "slow down", "never"),
        (0, None, Transient, "dropped", "if_first"),
    ],
)
def test_other_replies_of_a_server(
    chat_server: Any,
    asked_paths: list[str],
    status: int,
    body: Any,
    kind: type[ProviderError],
    words: str,
    stops: str,
) -> None:
    chat_server.answer = lambda _: (status, {}, body)
    with pytest.raises(kind, match=words) as caught:
        ask(chat_server)
    assert caught.value.stops == stops
    assert asked_paths == ["/v1/decisions"]


FIELDS = (
    "type",
    "name",
    "score",
    "choice",
    "noul",
    "probabilities",
    "probability",
    "label",
    "value",
    "0",
    "1",
    "2",
)
WORDS = st.sampled_from(
    ("coherence", "kind", "faithful", "score", "choice", "noul", "predicate", "refusal", "1")
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(JSON, JSON, JSON, JSON)
def test_a_body_of_any_shape_is_a_response_or_a_provider_error(
    a: Any, b: Any, c: Any, usage: Any
) -> None:
    questions = _questions(request())
    for answers in (a, [a, b, c], {"coherence": a, "kind": b, "faithful": c}):
        for form in _FORMS:
            try:
                response = _response(
                    {"answers": answers, "usage": usage, "model": a}, form, questions, "url"
                )
            except ProviderError:
                continue
            assert Response.from_json(response.to_json()) == response
            for choice, question in zip(response.choices, QUESTIONS, strict=True):
                shares = dict(choice.shares or ())
                assert choice.finish_reason == "refusal" or list(shares) == question["labels"]
                assert all(0 <= p <= 1 for p in shares.values())


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(any), st.permutations(range(3)))
def test_the_shares_are_in_the_order_of_the_labels(p: list[float], order: list[int]) -> None:
    openai_form, systemone_form = _FORMS
    listed = [{"value": CHOICE["labels"][i], "probability": p[i]} for i in order]
    named = {CHOICE["labels"][i]: p[i] for i in order}
    questions = _questions(request(CHOICE))
    first = _response(
        {"answers": [{"type": "choice", "probabilities": listed}]}, openai_form, questions, ""
    )
    second = _response(
        {"answers": {"kind": {"type": "choice", "probabilities": named}}},
        systemone_form,
        questions,
        "",
    )
    assert first.choices == second.choices
    (choice,) = first.choices
    assert choice.shares == tuple(zip(CHOICE["labels"], p, strict=True))
    assert dict(choice.shares)[choice.text] == max(p)


def test_a_pickled_provider_keeps_the_path_that_it_learned(
    chat_server: Any, asked_paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-that-stays-where-it-is"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    provider = DecisionsProvider("m", base_url=chat_server.url)
    fresh = pickle.loads(pickle.dumps(provider))
    assert (fresh.model, fresh.endpoint, fresh.shared_state, fresh.learned) == (
        "m",
        chat_server.url,
        "",
        {},
    )
    provider.shared_state = "/systemone"
    sent = pickle.dumps(provider)
    assert key.encode() not in sent
    assert pickle.loads(sent).learned == {"path": "/systemone"}
