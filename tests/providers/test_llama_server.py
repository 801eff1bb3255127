"""Both providers against a real llama.cpp server with a tiny random model, if one can be started."""

from __future__ import annotations

import importlib.util
import json
import math
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

import judge
from judge.core.errors import Refused
from judge.core.records import Criterion, Prompt, Request, Scale
from judge.providers.decisions import DecisionsProvider
from judge.providers.openai import OpenAIProvider
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions
from tests.factories import complete_all

pytestmark = pytest.mark.extra

SLOTS = 3
# One thread: several threads keep cores busy while they wait for each other.
SERVER = f"""
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_parallel, params.n_ctx = {SLOTS}, 4096 * {SLOTS}
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.n_gpu_layers, params.warmup = 0, False
server = xllamacpp.Server(params)
print("listening", flush=True)
while True:
    time.sleep(3600)
"""
TEXT = ({"role": "user", "content": "The ferry left the harbour at noon."},)
FIVE = {
    "name": "coherence",
    "type": "score",
    "instructions": "How coherent?",
    "labels": ["1", "2", "3", "4", "5"],
}
CHOICE = {
    "name": "kind",
    "type": "choice",
    "instructions": "Which kind?",
    "labels": ["news", "opinion"],
}
PREDICATE = {
    "name": "calm",
    "type": "predicate",
    "instructions": "The text is calm.",
    "labels": ["no", "yes"],
}


@pytest.fixture(scope="module")
def llama(
    shared_tool: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The base URL of a llama.cpp server with chat and /systemone. The fixture creates its model."""
    for package in ("xllamacpp", "gguf"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}: pip install xllamacpp gguf")
    maker = shared_tool("make_gguf_decision.py")
    folder = tmp_path_factory.mktemp("llama")
    subprocess.run([sys.executable, maker], cwd=folder, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    command = [sys.executable, "-c", SERVER, folder / "dec.gguf", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        assert running.stdout is not None
        try:
            assert any(line.startswith("listening") for line in running.stdout), (
                "the server did not start"
            )
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            running.kill()


def chat(**params: Any) -> Request:
    return Request("tiny", TEXT, {"max_tokens": 4, **params})


def test_more_choices_than_slots_come_as_many_as_there_are(llama: str) -> None:
    provider = OpenAIProvider("tiny", base_url=llama)
    first, second, single = complete_all(
        provider, chat(n=20, temperature=1.0), chat(n=2, temperature=1.0), chat()
    )
    assert [len(r.choices) for r in (first, second, single)] == [SLOTS, 2, 1]
    assert [r.unmet for r in (first, second, single)] == [("n",), (), ()]
    assert provider.learned == {"n": SLOTS}


def test_usage_of_several_choices_is_reported_for_one(llama: str) -> None:
    """llama.cpp reports the output tokens of one choice, so the usage of several draws is too low."""
    (several,) = complete_all(
        OpenAIProvider("tiny", base_url=llama), chat(n=SLOTS, temperature=1.0)
    )
    assert [choice.finish_reason for choice in several.choices] == ["length"] * SLOTS
    assert several.usage.completion_tokens == 4


def test_token_probabilities(llama: str) -> None:
    (response,) = complete_all(
        OpenAIProvider("tiny", base_url=llama), chat(temperature=0.0, top_logprobs=20)
    )
    (choice,) = response.choices
    assert choice.tokens is not None
    assert response.unmet == ()
    for token in choice.tokens:
        assert len(token.top) == 20
        assert 0 < sum(math.exp(p) for _, p in token.top) <= 1.001


def test_a_reply_in_a_schema(llama: str) -> None:
    schema = {
        "type": "object",
        "properties": {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
        "required": ["score"],
        "additionalProperties": False,
    }
    json_schema = {
        "type": "json_schema",
        "json_schema": {"name": "judgment", "strict": True, "schema": schema},
    }
    (response,) = complete_all(
        OpenAIProvider("tiny", base_url=llama), chat(max_tokens=256, response_format=json_schema)
    )
    assert response.unmet == ()
    assert json.loads(response.choices[0].text)["score"] in {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    "scale", [Scale.integers(1, 5), Scale.integers(0, 10)], ids=["digits", "two digits"]
)
def test_a_score_is_weighed_although_tokens_do_not_join_to_the_reply(
    llama: str, scale: Scale
) -> None:
    """With a schema the tokens have extra white space and an empty last token; " 10" is two tokens."""
    criterion = Criterion("c", "", scale, form="json")
    prompt = Prompt("1", "s", "c", TEXT)
    (request,) = strategies.requests(prompt, criterion, "logprobs", SamplingOptions(max_tokens=256))
    (response,) = complete_all(
        OpenAIProvider("tiny", base_url=llama), Request("tiny", request.messages, request.params)
    )
    (choice,) = response.choices
    assert choice.tokens is not None
    assert choice.tokens[-1].text == ""
    assert "".join(token.text for token in choice.tokens) != choice.text
    value, provenance = strategies.score_reply(
        "logprobs", [response], criterion, SamplingOptions(min_mass=0.0)
    )
    assert provenance.argmax is not None
    assert scale.low <= value <= scale.high
    assert provenance.method == "logprobs"
    assert provenance.mass is not None
    assert 0 < provenance.mass <= 1.001


def test_a_text_longer_than_the_context_is_refused_and_teaches_nothing(llama: str) -> None:
    provider = OpenAIProvider("tiny", base_url=llama)
    long = Request(
        "tiny",
        ({"role": "user", "content": "word " * 6000},),
        {"max_tokens": 4, "top_logprobs": 20},
    )
    with pytest.raises(Refused, match="exceeds the available context size") as caught:
        complete_all(provider, long)
    assert (caught.value.status, caught.value.stops) == (400, "never")
    assert provider.learned == {}


def test_a_request_without_messages_is_answered(llama: str) -> None:
    """llama.cpp accepts an empty prompt, so judge must never send one."""
    (response,) = complete_all(
        OpenAIProvider("tiny", base_url=llama), Request("tiny", (), {"max_tokens": 4})
    )
    assert response.usage.prompt_tokens > 0


@pytest.mark.slow
def test_a_whole_run_by_the_vendors_name(llama: str) -> None:
    rows = [
        {"item": i, "system": "s", "source": "The ferry left at noon.", "output": f"A ferry {i}"}
        for i in "12"
    ]
    result = judge.evaluate(
        rows, ["coherence", "fluency"], model="llamacpp/tiny", base_url=llama, metrics=[], cache=False, structured=True,
        max_tokens=256, draws=4,
    )  # fmt: skip
    assert result.failures == ()
    assert {s.provenance.method for s in result.table.scores} <= {"logprobs", "samples", "single"}
    assert all(1 <= s.value <= 5 for s in result.table.scores)
    assert f"|llamacpp/tiny@{llama[7:-3]}|" in result.table.signatures["coherence"]


def test_a_schema_that_the_server_cannot_parse_is_omitted(llama: str) -> None:
    nonsense = {
        "type": "json_schema",
        "json_schema": {"name": "j", "strict": True, "schema": {"type": "nonsense"}},
    }
    (response,) = complete_all(
        OpenAIProvider("tiny", base_url=llama), chat(response_format=nonsense)
    )
    assert response.unmet == ("response_format",)


def test_typed_questions(llama: str) -> None:
    provider = DecisionsProvider("tiny", base_url=llama)
    (response,) = complete_all(
        provider, Request("tiny", TEXT, {"questions": [FIVE, CHOICE, PREDICATE]})
    )
    for choice, question in zip(response.choices, (FIVE, CHOICE, PREDICATE), strict=True):
        assert choice.shares is not None
        assert [label for label, _ in choice.shares] == question["labels"]
        assert sum(p for _, p in choice.shares) == pytest.approx(1, abs=1e-5)
    assert response.usage.prompt_tokens > 0
    assert provider.learned == {"path": "/systemone"}


def test_eleven_levels_are_too_many(llama: str) -> None:
    eleven = {**FIVE, "labels": [str(n) for n in range(11)]}
    with pytest.raises(Refused, match="2 to 10 levels"):
        complete_all(
            DecisionsProvider("tiny", base_url=llama),
            Request("tiny", TEXT, {"questions": [eleven]}),
        )


# The same server behind a proxy that refuses parameters with the messages of vendors.

Refusal = Callable[[dict[str, Any]], str]
"""Return the refusal message for these parameters, or "" if they are accepted."""


def no_logprobs(body: dict[str, Any]) -> str:
    return "Logprobs is not enabled for this model." if body.get("logprobs") else ""


def five_logprobs(body: dict[str, Any]) -> str:
    if (body.get("top_logprobs") or 0) <= 5:
        return ""
    return f"Cannot request more than 5 logprobs, got {body['top_logprobs']}."


def one_choice(body: dict[str, Any]) -> str:
    return "Multiple candidates is not enabled for this model." if body.get("n", 1) > 1 else ""


@contextmanager
def refusing(server: str, *refusals: Refusal) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the address of a proxy to `server` and the bodies that it forwards."""
    passed: list[dict[str, Any]] = []

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = next((text for refuse in refusals if (text := refuse(body))), "")
            if message:
                self._answer(400, json.dumps({"error": {"message": message}}).encode())
                return
            passed.append(body)
            path = self.path.removeprefix("/v1")
            reply = httpx2.post(f"{server}{path}", json=body, timeout=60)
            self._answer(reply.status_code, reply.content)

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            """Write nothing."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}/v1", passed
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


@pytest.mark.slow  # the tiny model always writes up to the token limit: 20 s per case
@pytest.mark.parametrize(
    ("refusals", "method", "top_logprobs"),
    [
        ([no_logprobs], "samples", {None}),
        ([five_logprobs], "logprobs", {5}),
        ([no_logprobs, one_choice], "samples", {None}),
        ([five_logprobs, one_choice], "logprobs", {5}),
    ],
)
def test_a_run_drops_parameters_the_server_refuses(
    llama: str, refusals: list[Refusal], method: str, top_logprobs: set[int | None]
) -> None:
    rows = [{"item": "1", "source": "The ferry left at noon.", "output": "A ferry left."}]
    with refusing(llama, *refusals) as (url, passed):
        result = judge.evaluate(
            rows, ["coherence", "fluency_5"], model="llamacpp/tiny", base_url=url, metrics=[], cache=False,
            structured=True, max_tokens=256, draws=2,
        )  # fmt: skip
    assert result.failures == ()
    assert {score.provenance.method for score in result.table.scores} == {method}
    assert {body.get("top_logprobs") for body in passed} == top_logprobs
