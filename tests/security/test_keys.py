"""Keys, account names and headers are sent only to the right server, and secrets are not stored."""

from __future__ import annotations

import asyncio
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError, Refused
from judge.core.records import Request
from judge.core.request_options import hidden
from judge.providers.http_client import HttpClient, is_openai
from judge.providers.key_command import CommandKey
from judge.providers.openai import OpenAIProvider
from judge.providers.vendors import wrong_server_reason

REQUEST = Request("m", ({"role": "user", "content": "?"},), {"temperature": 0.0, "max_tokens": 8})
ELSEWHERE = "https://judges.example/v1"


@pytest.mark.parametrize(
    "variable",
    [
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "NPM_TOKEN",
        "DATABASE_URL",
        "CI_JOB_TOKEN",
        "ANTHROPIC_API_KEY",
        "HOME",
    ],
)
def test_a_secret_of_another_service_is_not_sent(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "a-secret-of-somebody")
    with pytest.raises(ConfigError, match=f"\\${variable} is .*its own") as error:
        HttpClient(base_url=ELSEWHERE, key_env=variable)
    assert "a-secret-of-somebody" not in str(error.value)


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("OPENAI_API_KEY", ELSEWHERE), ("MY_KEY", ELSEWHERE), ("HF_TOKEN", "https://router.huggingface.co/v1"),
        ("ANTHROPIC_API_KEY", "https://api.anthropic.com/v1"), ("ANTHROPIC_API_KEY", "http://127.0.0.1:4000/v1"),
        ("GITHUB_TOKEN", "https://models.github.ai/inference"),
        ("AZURE_OPENAI_API_KEY", "https://ours.openai.azure.com/openai/v1"),
        ("TEAM_GATEWAY_TOKEN", "http://10.1.2.3:8000/v1"),
    ],
)  # fmt: skip
def test_a_key_of_this_server_is_accepted(variable: str, url: str) -> None:
    assert not wrong_server_reason(variable, url)


@pytest.mark.parametrize(
    "host", ["evilanthropic.com", "anthropic.com.evil.example", "127.0.0.1.evil.example"]
)
def test_a_host_with_a_similar_name_gets_no_key(host: str) -> None:
    assert wrong_server_reason("ANTHROPIC_API_KEY", f"https://{host}/v1")
    assert not is_openai(f"https://{host}/v1")


def test_the_account_name_is_sent_only_to_openai(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def send_request() -> None:
        try:
            await provider.complete(REQUEST)
        finally:
            await provider.aclose()

    asyncio.run(send_request())
    assert not {"openai-organization", "openai-project"} & chat_server.headers[0].keys()
    endpoint = HttpClient()
    endpoint._connect()
    sent = endpoint._transport.headers
    assert (sent["OpenAI-Organization"], sent["OpenAI-Project"]) == ("org-1", "proj-1")


SECRETS = {"X-Api-Key": "header-secret-0123456789", "X-Plain": "Bearer bearer-secret-0123456789"}
ROWS = [
    {"item": str(n), "system": "s", "source": "The sea is blue.", "output": f"Blue, {n}."}
    for n in range(12)
]


@pytest.fixture
def key_command(tmp_path: Path) -> str:
    """Return a command that prints another key at each run, and counts its runs in a file."""
    script = tmp_path / "command" / "key.py"
    script.parent.mkdir()
    script.write_text(
        "from pathlib import Path\nruns = Path(__file__).with_name('runs')\n"
        "number = len(runs.read_text()) + 1 if runs.exists() else 1\nruns.write_text('x' * number)\n"
        "print(f'printed-secret-000{number}')\n"
    )
    return f"{sys.executable} {script} --password argument-secret"


def command_runs(tmp_path: Path) -> int:
    """Return how often the command of `key_command` ran."""
    return len((tmp_path / "command" / "runs").read_text())


def evaluate(server: Any, **options: Any) -> judge.Result:
    settings = {
        "model": "m",
        "base_url": server.url,
        "metrics": [],
        "weighting": "single",
        "cache": False,
    } | options
    return judge.evaluate(ROWS, ["relevance"], **settings)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("Authorization", "x", True), ("X-API-Key", "x", True), ("Cookie", "x", True), ("access_token", "x", True),
        ("X-Anything", "sk-0123456789abcdef", True), ("X-Anything", "Basic dTpw", True),
        ("X-Team", "evals", False), ("budget_tokens", 1024, False), ("tokenizer", "auto", False),
    ],
)  # fmt: skip
def test_headers_with_a_secret_name_or_value_are_hidden(
    name: str, value: Any, secret: bool
) -> None:
    assert hidden(name, value) == secret


def test_secrets_are_sent_to_the_server_but_not_stored(
    chat_server: Any, tmp_path: Path, key_command: str
) -> None:
    repeated = " ".join([*SECRETS.values(), "printed-secret-0001"])

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        """Repeat the secrets in every reply and error."""
        text = f"4, and my headers are {repeated}"
        choices = [{"message": {"content": text}, "finish_reason": "stop"}]
        if "Blue, 0" in str(body["messages"]):
            return 400, {}, {"error": {"message": text}}
        return 200, {}, {"model": "m", "choices": choices, "usage": {}}

    chat_server.answer = answer
    out, cache, recording = tmp_path / "run", tmp_path / "cache", tmp_path / "calls.jsonl"
    options = {"headers": SECRETS | {"X-Team": "evals"}, "key_command": key_command}
    result = evaluate(chat_server, **options, out=out, cache=cache, record=recording)
    sent = chat_server.headers[0]
    assert (sent["x-api-key"], sent["x-plain"]) == tuple(SECRETS.values())
    assert (sent["authorization"], sent["x-team"]) == ("Bearer printed-secret-0001", "evals")
    stored_headers = result.info.to_json()["config"]["headers"]
    assert (stored_headers["X-Api-Key"], stored_headers["X-Plain"]) == ("…", "…")
    assert result.info.judges["m"].settings["key_command"] == f"{sys.executable} …"
    files = [path for path in (*out.rglob("*"), *cache.rglob("*"), recording) if path.is_file()]
    stored = b"".join(path.read_bytes() for path in files)
    printed = repr(result) + repr(result.failures) + str(result.info) + result.report("markdown")
    assert b"X-Team" in stored
    assert b"evals" not in stored
    for secret in ("header-secret", "bearer-secret", "printed-secret", "argument-secret"):
        assert secret.encode() not in stored
        assert secret not in printed


@pytest.mark.parametrize(
    ("name", "owner"), [("X-Pass", "run"), ("X-Team", "judge"), ("Ocp-Apim", "system")]
)
def test_header_values_are_never_stored(
    chat_server: Any, tmp_path: Path, name: str, owner: str, make_completion: Any
) -> None:
    value = "open sesame, 0123456789"

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        """Repeat the value in the replies and errors of the model that has the header."""
        if body["model"] != "with-header":
            return 200, {}, make_completion("4")
        if "Blue, 0" in str(body["messages"]):
            return 400, {}, {"error": {"message": f"wrong: {value}"}}
        return 200, {}, make_completion(f"4, because the header is {value}")

    chat_server.answer = answer
    out, cache, recording = tmp_path / "run", tmp_path / "cache", tmp_path / "calls.jsonl"
    model_with_header = {"name": "with-header", "headers": {name: value}}
    options: dict[str, Any] = {"model": "with-header", "headers": {name: value}}
    if owner == "judge":
        options = {"model": [model_with_header, {"name": "without-header"}]}
    if owner == "system":
        prompt = tmp_path / "prompt.jinja"
        prompt.write_text("Write about {{ source }}.")
        system = {"prompt": str(prompt), "model": "with-header", "headers": {name: value}}
        options = {"systems": {"s": system}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(chat_server, **options, out=out, cache=cache, record=recording)
    assert value in {headers.get(name.lower()) for headers in chat_server.headers}
    files = [path for path in (*out.rglob("*"), *cache.rglob("*"), recording) if path.is_file()]
    stored = "".join(path.read_bytes().decode("utf-8", "replace") for path in files)
    assert "sesame" not in stored
    assert "sesame" not in repr(result) + str(result.info) + result.report("json")


def test_header_values_are_part_of_the_cache_key_unless_secret(
    chat_server: Any, tmp_path: Path, make_completion: Any
) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion("4"))

    def requests_sent(headers: dict[str, str]) -> int:
        before = len(chat_server.bodies)
        evaluate(chat_server, headers=headers, cache=tmp_path)
        return len(chat_server.bodies) - before

    assert requests_sent({"X-Mode": "one"}) == len(ROWS)
    assert requests_sent({"X-Mode": "one"}) == 0
    assert requests_sent({"X-Mode": "two"}) == len(ROWS)
    assert requests_sent({"X-Mode": "two", "X-Api-Key": "new"}) == 0


def test_a_provider_with_a_secret_header_is_not_pickled(chat_server: Any) -> None:
    provider = OpenAIProvider(
        "m", base_url=chat_server.url, headers={"X-Team": "evals"}, key_command="print-key"
    )
    assert b"evals" in pickle.dumps(provider)
    with pytest.raises(ConfigError, match="X-Api-Key: a secret"):
        pickle.dumps(OpenAIProvider("m", base_url=chat_server.url, headers=SECRETS))


def test_an_expired_key_is_replaced_once_for_all_requests(
    chat_server: Any, make_completion: Callable[..., Any], tmp_path: Path, key_command: str
) -> None:
    expired: set[str] = set()

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        key = chat_server.headers[-1]["authorization"]
        if len(chat_server.bodies) == 4:
            expired.add("Bearer printed-secret-0001")
        if key in expired:
            return 403, {}, {"error": {"message": f"{key} expired"}}
        return 200, {}, make_completion()

    chat_server.answer = answer
    result = evaluate(chat_server, key_command=key_command, max_concurrency=1)
    assert result.failures == ()
    assert (command_runs(tmp_path), len(chat_server.bodies)) == (2, len(ROWS) + 1)


def test_a_plan_runs_no_key_command(
    chat_server: Any, make_completion: Callable[..., Any], tmp_path: Path, key_command: str
) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion())
    options: dict[str, Any] = {"model": "m", "base_url": chat_server.url, "metrics": []}
    judge.plan(ROWS, ["relevance"], key_command=key_command, **options)
    assert not (tmp_path / "command" / "runs").exists()


def test_concurrent_requests_run_the_command_once(tmp_path: Path, key_command: str) -> None:
    async def use() -> None:
        key = CommandKey(key_command)
        assert {*await asyncio.gather(*(key.number() for _ in range(20)))} == {1}
        assert {*await asyncio.gather(*(key.after(1, refused=True) for _ in range(20)))} == {2}
        assert (command_runs(tmp_path), await key.after(1, refused=True)) == (2, 2)
        assert await key.after(2, refused=True) == 0, "the new key was never accepted"
        assert await key.after(2, refused=False) == 0
        assert (await key.after(2, refused=True), command_runs(tmp_path)) == (3, 3)

    asyncio.run(use())


def test_a_run_stops_if_the_second_key_is_refused_too(
    chat_server: Any, tmp_path: Path, key_command: str
) -> None:
    chat_server.answer = lambda _: (401, {}, {"error": {"message": "no such account"}})
    with pytest.raises(Refused, match=r"answered 401: .*key_command"):
        evaluate(chat_server, key_command=key_command)
    assert command_runs(tmp_path) == 2


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import sys; print('printed-secret'); sys.exit('no such profile')",
            "exit code 1: no such",
        ),
        ("print('')", "printed nothing"),
        ("print('printed-secret'); print('more')", "printed more than a key"),
        (
            "import sys; print('printed-secret'); sys.exit('printed-secret is no good')",
            r"\*\*\* is no good",
        ),
    ],
)
def test_a_failing_key_command_never_shows_its_output(
    chat_server: Any, code: str, message: str
) -> None:
    with pytest.raises(Refused, match=message) as error:
        evaluate(chat_server, key_command=f'{sys.executable} -c "{code}"')
    assert "printed-secret" not in str(error.value)
    assert not chat_server.bodies


def test_a_key_command_that_does_not_exist_is_an_error(chat_server: Any) -> None:
    with pytest.raises(Refused, match="No such file"):
        evaluate(chat_server, key_command="a-missing-program --option")
    assert not chat_server.bodies
