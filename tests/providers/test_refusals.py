"""After a refusal the chat provider omits one parameter after another, for every wording of the error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.errors import ProviderError, Refused, Transient
from judge.core.records import Choice, Request, Response, Token, Usage
from judge.providers.openai import OpenAIProvider
from judge.providers.refusals import RefusalSearch
from judge.providers.server_capabilities import RequestAdapter
from tests.factories import user_request

SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "j", "strict": True, "schema": {"type": "object"}},
}
JUDGMENT = {"temperature": 0.0, "max_tokens": 64, "top_logprobs": 20}
DRAWS = {"temperature": 1.0, "max_tokens": 64, "n": 20}
EVERYTHING = JUDGMENT | {"n": 20, "seed": 1, "response_format": SCHEMA, "reasoning_effort": "low"}


# Each row: the parameters of a request, those that the server refuses, the status and body of the refusal as
# reported by users and vendors, and the limits that the provider learns.
LOGPROBS_REFUSED = {"dropped": ["logprobs"]}
ONE_REPLY = {"n": 1}
REAL_REFUSALS: list[
    tuple[str, dict[str, Any], Callable[[dict[str, Any]], bool], int, Any, dict[str, Any]]
] = [
    (
        "gemini: logprobs",
        JUDGMENT,
        lambda body: "logprobs" in body,
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "Logprobs is not enabled for models/g",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        LOGPROBS_REFUSED,
    ),
    (
        "vertex: logprobs",
        JUDGMENT,
        lambda body: "logprobs" in body,
        400,
        {
            "error": {
                "message": "Unable to submit request because Logprobs is not supported for this model."
            }
        },
        LOGPROBS_REFUSED,
    ),
    (
        "gemini: several candidates",
        DRAWS,
        lambda body: body.get("n", 1) > 1,
        400,
        [{"error": {"code": 400, "message": "Multiple candidates is not enabled for this model"}}],
        ONE_REPLY,
    ),
    (
        "anthropic: temperature",
        DRAWS | {"n": 1},
        lambda body: "temperature" in body,
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated."},
        },
        {"dropped": ["temperature"]},
    ),
    (
        "openai: reasoning models",
        DRAWS | {"n": 1, "temperature": 0.0},
        lambda body: body.get("temperature", 1) != 1,
        400,
        {
            "error": {
                "message": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
                "value is supported.",
                "param": "temperature",
                "code": "unsupported_value",
            }
        },
        {"dropped": ["temperature"]},
    ),
    (
        "deepseek: json_schema",
        {"temperature": 0.0, "response_format": SCHEMA},
        lambda body: "response_format" in body,
        400,
        {"error": {"message": "This response_format type is unavailable now", "param": None}},
        {"dropped": ["response_format"]},
    ),
    (
        "deepseek: json_schema, in its parser's words",
        {"temperature": 0.0, "response_format": SCHEMA},
        lambda body: "response_format" in body,
        422,
        {
            "error": {
                "message": "Failed to deserialize the JSON body into the target type: unknown variant"
            }
        },
        {"dropped": ["response_format"]},
    ),
    (
        "deepseek: more probabilities than its limit",
        JUDGMENT,
        lambda body: "logprobs" in body,
        400,
        {"detail": "Invalid top_logprobs and logprobs value"},
        LOGPROBS_REFUSED,
    ),
    (
        "vllm: a limit of 5, with the field's name",
        JUDGMENT,
        lambda body: body.get("top_logprobs", 0) > 5,
        400,
        {
            "error": {
                "message": "Requested sample logprobs of 20, which is greater than max allowed: 5"
            }
        },
        {"top_logprobs": 5},
    ),
    (
        "vllm: a limit of 5",
        JUDGMENT,
        lambda body: body.get("top_logprobs", 0) > 5,
        400,
        {"object": "error", "message": "Cannot request more than 5 logprobs.", "code": 400},
        {"top_logprobs": 5},
    ),
    (
        "vllm: extra inputs",
        JUDGMENT,
        lambda body: "max_completion_tokens" in body,
        400,
        {
            "object": "error",
            "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs "
            "are not permitted'}]",
        },
        {"limit": "max_tokens"},
    ),
    (
        "tgi: a limit of 5",
        JUDGMENT,
        lambda body: body.get("top_logprobs", 0) > 5,
        422,
        {"error": "Input validation error: `top_n_tokens` must be >= 0 and <= 5. Given: 20"},
        {"top_logprobs": 5},
    ),
    (
        "a limit of 11, found by its number",
        JUDGMENT,
        lambda body: body.get("top_logprobs", 0) > 11,
        400,
        {"error": {"message": "top_logprobs: at most 11"}},
        {"top_logprobs": 11},
    ),
    (
        "a limit of 3, without its number",
        JUDGMENT,
        lambda body: body.get("top_logprobs", 0) > 3,
        400,
        {"error": {"message": "too many token probabilities"}},
        {"top_logprobs": 2},
    ),
    (
        "litellm proxy: several parameters",
        JUDGMENT,
        lambda body: "logprobs" in body,
        400,
        {
            "error": {
                "message": "UnsupportedParamsError: x does not support parameters: ['logprobs', 'top_logprobs']"
            }
        },
        LOGPROBS_REFUSED,
    ),
    (
        "dynamo: several replies at temperature 0",
        DRAWS | {"temperature": 0.0},
        lambda body: body.get("n", 1) > 1 and body.get("temperature") == 0,
        400,
        {
            "message": "When n > 1, temperature must be greater than 0 to ensure diverse outputs. Got n=20"
        },
        ONE_REPLY,
    ),
    (
        "a gateway that wraps the refusal",
        {"temperature": 0.0, "response_format": SCHEMA},
        lambda body: "response_format" in body,
        400,
        {"error": {"message": '{"error":{"message":"Invalid input","param":"response_format"}}'}},
        {"dropped": ["response_format"]},
    ),
    (
        "without a word",
        JUDGMENT,
        lambda body: "logprobs" in body,
        400,
        {"error": {"message": "Bad Request"}},
        LOGPROBS_REFUSED,
    ),
    (
        "in another language",
        JUDGMENT,
        lambda body: "temperature" in body,
        422,
        {"error": {"message": "パラメーターが正しくありません"}},
        {"dropped": ["temperature"]},
    ),
    (
        "no JSON at all",
        DRAWS,
        lambda body: body.get("n", 1) > 1,
        403,
        "<html>Forbidden</html>",
        ONE_REPLY,
    ),
    (
        "seed, sent by the user",
        {"temperature": 0.0, "seed": 7},
        lambda body: "seed" in body,
        400,
        {"error": {"message": "seed is not a valid field"}},
        {"dropped": ["seed"]},
    ),
    (
        "a local server that raises, named with the status 500",
        DRAWS,
        lambda body: body.get("n", 1) > 1,
        500,
        {"object": "error", "message": "n > 1 is not supported with this backend", "code": 500},
        ONE_REPLY,
    ),
    (
        "a server without the feature (501)",
        JUDGMENT,
        lambda body: "logprobs" in body,
        501,
        {"message": "logprobs are not implemented for provisioned throughput"},
        LOGPROBS_REFUSED,
    ),
    (
        "a router without a server for a parameter (404)",
        JUDGMENT,
        lambda body: "logprobs" in body,
        404,
        {"error": {"message": "No endpoints found that can handle the requested parameters."}},
        LOGPROBS_REFUSED,
    ),
    (
        "a conflict that names the parameter (409)",
        JUDGMENT,
        lambda body: "logprobs" in body,
        409,
        {"error": {"code": 3, "message": "logprobs invalid"}},
        LOGPROBS_REFUSED,
    ),
    (
        "a parameter and a rate limit in one message",
        DRAWS,
        lambda body: body.get("n", 1) > 1,
        400,
        {"error": {"message": "n > 1 is not allowed, as it would count against the rate limit"}},
        ONE_REPLY,
    ),
    (
        "words on the output of a model",
        {"temperature": 0.0, "response_format": SCHEMA},
        lambda body: "response_format" in body,
        400,
        {"error": {"message": "Invalid model output"}},
        {"dropped": ["response_format"]},
    ),
    (
        "a gateway that blames the model",
        JUDGMENT,
        lambda body: "logprobs" in body,
        400,
        {"error": {"message": "This model does not support logprobs.", "param": "model"}},
        LOGPROBS_REFUSED,
    ),
    (
        "an error in a reply with status 200, in a vendor's own fields",
        DRAWS,
        lambda body: body.get("n", 1) > 1,
        200,
        {"choices": None, "base_resp": {"status_code": 2013, "status_msg": "n must be 1"}},
        ONE_REPLY,
    ),
    (
        "an error in a reply with status 200, in Chinese",
        JUDGMENT,
        lambda body: "logprobs" in body,
        200,
        {"error": {"code": "1210", "message": "logprobs 参数非法"}},
        LOGPROBS_REFUSED,
    ),
]


@pytest.mark.parametrize(
    ("params", "refuses", "status", "answer", "learned"),
    [row[1:] for row in REAL_REFUSALS],
    ids=[row[0] for row in REAL_REFUSALS],
)
def test_a_server_that_refuses_a_parameter_answers_without_it(
    chat_server: Any,
    make_completion: Callable[..., Any],
    params: dict[str, Any],
    refuses: Callable[[dict[str, Any]], bool],
    status: int,
    answer: Any,
    learned: dict[str, Any],
) -> None:
    def respond(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if refuses(body):
            return status, {}, answer
        data = make_completion("4", top={"4": 1.0} if body.get("logprobs") else None)
        data["choices"] *= body.get("n", 1)
        return 200, {}, data

    chat_server.answer = respond
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def two_texts() -> None:
        await provider.complete(user_request("a", **params))
        sent = len(chat_server.bodies)
        await provider.complete(user_request("b", **params))
        assert len(chat_server.bodies) == sent + 1, "what was learned is not used"
        await provider.aclose()

    asyncio.run(two_texts())
    assert provider.learned == learned


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "n must be 1: too many requests"),
        (503, "logprobs are not available, the server is overloaded"),
        (500, "CUDA error while it computed logprobs"),
        (404, "The model `m` does not exist"),
    ],
)
def test_an_error_that_refuses_no_parameter_costs_one_request(
    chat_server: Any, status: int, message: str
) -> None:
    chat_server.answer = lambda _: (status, {}, {"error": {"message": message}})
    provider = OpenAIProvider("m", base_url=chat_server.url)
    (outcome,) = complete_all(provider, "a")
    assert isinstance(outcome, ProviderError)
    assert len(chat_server.bodies) == 1
    assert provider.learned == {}


def test_a_server_error_that_names_an_accepted_parameter_is_retried(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    def respond(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if body["messages"][-1]["content"] == "b":
            return 500, {}, {"error": {"message": "logprobs are not available"}}
        return 200, {}, make_completion("4", top={"4": 1.0} if body.get("logprobs") else None)

    chat_server.answer = respond
    provider = OpenAIProvider("m", base_url=chat_server.url)
    first, second = complete_all(provider, "ab")
    assert first.unmet == ()
    assert isinstance(second, Transient)
    assert provider.learned == {}


def test_a_refusal_names_the_keys_that_the_user_added(chat_server: Any) -> None:
    chat_server.answer = lambda _: (400, {}, {"error": {"message": "Penalty is not enabled."}})
    provider = OpenAIProvider("m", base_url=chat_server.url)
    (outcome,) = complete_all(provider, "a", presence_penalty=0.5)
    assert isinstance(outcome, Refused)
    assert "`presence_penalty`, change --extra-body" in str(outcome)


# Servers that refuse any set of parameters with any message. The server's rules are the oracle.

OPAQUE = "Bad request"
WORDINGS: dict[str, Callable[[str, int], str]] = {
    "says nothing": lambda name, count: OPAQUE,
    "names the parameter": lambda name, count: f"{name}: not for this model",
    "names another one": lambda name, count: "temperature and n look odd",
    "numbers its refusals": lambda name, count: f"request r{count}-x failed",
    "never says the same": lambda name, count: f"failed: {'x' * count}",
}


@dataclass
class FakeServer:
    """Refuse the parameters in `refused` and more than `most_probabilities`, or every request."""

    refused: frozenset[str]
    most_probabilities: int
    wording: Callable[[str, int], str]
    everything: bool = False
    sent: int = 0

    def objection(self, body: dict[str, Any]) -> str:
        """Return the first parameter that the server refuses, or "" if it accepts the body."""
        if self.everything:
            return "messages"
        if body.get("top_logprobs", 0) > self.most_probabilities:
            return "logprobs"
        if body.get("n", 1) > 1 and "n" in self.refused:
            return "n"
        return next((name for name in sorted(self.refused - {"n"}) if name in body), "")

    async def send(self, adapter: RequestAdapter, request: Request) -> Response:
        self.sent += 1
        body = adapter.body(request)
        if name := self.objection(body):
            message = f"http://x/v1 answered 400: {self.wording(name, self.sent)}"
            raise Refused(message, status=400)
        tokens = (Token("4", 0.0, ()),) if "logprobs" in body else None
        return Response((Choice("4", "stop", tokens),) * body.get("n", 1), Usage(10, 1))


def search(server: FakeServer, request: Request) -> tuple[RequestAdapter, Response]:
    async def run() -> tuple[RequestAdapter, Response]:
        before = RequestAdapter()
        try:
            return before, await server.send(before, request)
        except Refused as refused:
            search = RefusalSearch(before, request, lambda adapter: server.send(adapter, request))
            return await search.run(refused)

    return asyncio.run(run())


PARAMETERS = (
    "n",
    "temperature",
    "response_format",
    "seed",
    "reasoning_effort",
    "max_completion_tokens",
    "max_tokens",
)


@settings(max_examples=200)
@given(
    st.frozensets(st.sampled_from(PARAMETERS)),
    st.sampled_from((20, 11, 5, 2, 0)),
    st.sampled_from(sorted(WORDINGS)),
)
@pytest.mark.slow
def test_the_search_keeps_every_parameter_that_the_server_accepts(
    refused: frozenset[str], most_probabilities: int, wording: str
) -> None:
    server = FakeServer(refused, most_probabilities, WORDINGS[wording])
    adapter, response = search(server, user_request(**EVERYTHING))
    body = adapter.body(user_request(**EVERYTHING))
    assert server.objection(body) == ""
    for name in ("temperature", "response_format", "seed", "reasoning_effort"):
        assert (name in body) == (name not in refused), (name, wording)
    assert (body.get("n", 1) > 1) == ("n" not in refused)
    largest = max((count for count in (20, 5, 2) if count <= most_probabilities), default=0)
    assert body.get("top_logprobs", 0) == largest
    limits = {"max_completion_tokens", "max_tokens"}
    assert len(limits & body.keys()) == (0 if limits <= refused else 1)
    assert len(response.choices) == body.get("n", 1)
    assert server.sent < 60


@given(st.sampled_from(sorted(WORDINGS)))
def test_a_bare_request_that_is_refused_raises_the_first_refusal(wording: str) -> None:
    server = FakeServer(frozenset(), 20, WORDINGS[wording], everything=True)
    with pytest.raises(Refused) as caught:
        search(server, user_request(**EVERYTHING))
    assert str(caught.value).endswith(WORDINGS[wording]("messages", 1))
    assert server.sent < 60


def test_usage_sums_all_accepted_requests() -> None:
    server = FakeServer(frozenset({"seed", "n"}), 20, WORDINGS["says nothing"])
    _, response = search(server, user_request(**EVERYTHING))
    accepted = response.usage.completion_tokens
    assert response.usage == Usage(10 * accepted, accepted)
    assert accepted > 1


# Refusals of one text.


def fails_for(
    texts: set[str], make_completion: Callable[..., Any]
) -> Callable[[dict[str, Any]], Any]:
    def respond(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if body["messages"][-1]["content"] in texts:
            return (
                400,
                {},
                {
                    "error": {
                        "message": "This model's maximum context length is 10 tokens (max_tokens: 64)"
                    }
                },
            )
        return 200, {}, make_completion("4", top={"4": 1.0} if body.get("logprobs") else None)

    return respond


def complete_all(provider: OpenAIProvider, texts: str, **extra: Any) -> list[Any]:
    async def run() -> list[Any]:
        outcomes: list[Any] = []
        for text in texts:
            try:
                outcomes.append(await provider.complete(user_request(text, **JUDGMENT, **extra)))
            except ProviderError as error:
                outcomes.append(error)
        await provider.aclose()
        return outcomes

    return asyncio.run(run())


@pytest.mark.parametrize("position", [0, 1, 3])
def test_a_text_that_is_refused_teaches_nothing(
    chat_server: Any, make_completion: Callable[..., Any], position: int
) -> None:
    texts = "abcd"
    chat_server.answer = fails_for({texts[position]}, make_completion)
    provider = OpenAIProvider("m", base_url=chat_server.url)
    outcomes = complete_all(provider, texts)
    refused = outcomes.pop(position)
    assert isinstance(refused, Refused)
    assert refused.stops == "never"
    assert all(outcome.unmet == () for outcome in outcomes)
    assert provider.learned == {}


def test_once_a_request_was_accepted_a_refused_text_costs_one_request(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    chat_server.answer = fails_for({"b"}, make_completion)
    complete_all(OpenAIProvider("m", base_url=chat_server.url), "abc")
    assert len(chat_server.bodies) == 3


@pytest.mark.parametrize("status", [400, 410, 451])
def test_the_run_stops_with_the_first_message_after_three_refused_texts(
    chat_server: Any, status: int
) -> None:
    chat_server.answer = lambda body: (
        status,
        {},
        {"error": {"message": f"no such thing for {body['messages'][-1]['content']}"}},
    )
    outcomes = complete_all(OpenAIProvider("m", base_url=chat_server.url), "abcd")
    assert [outcome.stops for outcome in outcomes[:3]] == ["never", "never", "always"]
    assert "no such thing" in str(outcomes[2])


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 10 tokens",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens",
        "Range of input length should be [1, 129024]",
        "The response was filtered due to the content management policy.",
        "Content Exists Risk",
        "Your input was flagged",
        "系统检测到输入可能包含敏感内容",
    ],
)
def test_texts_that_are_too_long_or_filtered_do_not_stop_the_run(
    chat_server: Any, message: str
) -> None:
    chat_server.answer = lambda _: (400, {}, {"error": {"message": message}})
    outcomes = complete_all(OpenAIProvider("m", base_url=chat_server.url), "abcd")
    assert {outcome.stops for outcome in outcomes} == {"never"}


def test_requests_at_the_same_time_search_once(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    def respond(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if "temperature" in body:
            return 400, {}, {"error": {"message": OPAQUE}}
        return 200, {}, make_completion("4", top={"4": 1.0} if body.get("logprobs") else None)

    chat_server.answer = respond
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def run() -> None:
        await asyncio.gather(
            *(provider.complete(user_request(text, **JUDGMENT)) for text in "abcdefgh")
        )
        await provider.aclose()

    asyncio.run(run())
    accepted = [body for body in chat_server.bodies if "temperature" not in body]
    assert len(accepted) == 8
    assert all("logprobs" in body for body in accepted)
