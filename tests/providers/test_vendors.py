"""The table of vendors: addresses, keys and default settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from judge.config import load_config
from judge.core.errors import ConfigError
from judge.core.records import Request, Response, Usage
from judge.core.request_options import Judge
from judge.providers.openai import OpenAIProvider
from judge.providers.vendors import VENDORS, Vendor, host_of_another, signed, wrong_server_reason
from judge.run.judge_models import open_judge
from tests.factories import complete_all, cost_usd

PAGE = Path(__file__).resolve().parents[2] / "docs/models.md"
KEY = "a-key-of-some-length"
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "j", "strict": True, "schema": {"type": "object"}},
}
WANTED = Request(
    "m",
    ({"role": "user", "content": "p"},),
    {"temperature": 0.0, "max_tokens": 64, "top_logprobs": 20, "n": 2, "response_format": FORMAT},
)
HOSTED = [vendor for vendor in VENDORS.values() if not vendor.local and not vendor.url_env]
LOCAL = [vendor for vendor in VENDORS.values() if vendor.local]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in VENDORS.values():
        for name in (vendor.key_env, vendor.url_env):
            monkeypatch.delenv(name or vendor.key_env, raising=False)


def opened(name: str, **options: Any) -> OpenAIProvider:
    return OpenAIProvider.open("m", load_config(options=options), VENDORS[name])


def ask(provider: OpenAIProvider) -> Response:
    (response,) = complete_all(provider, WANTED)
    return response


def test_hosted_vendors_are_at_https_addresses_with_keys_of_their_own() -> None:
    assert {urlsplit(vendor.url).scheme for vendor in HOSTED} == {"https"}
    assert {urlsplit(vendor.url).hostname for vendor in LOCAL} == {"127.0.0.1"}
    keys = [vendor.key_env for vendor in VENDORS.values()]
    assert len(set(keys)) == len(keys)
    assert "OPENAI_API_KEY" not in keys


@pytest.mark.parametrize("vendor", HOSTED, ids=lambda vendor: vendor.name)
def test_a_hosted_vendor_is_asked_at_its_address(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, match=rf"\${vendor.key_env} is not set"):
        opened(vendor.name)
    monkeypatch.setenv(vendor.key_env, KEY)
    provider = opened(vendor.name)
    assert (provider.name, provider.model, provider.endpoint) == (vendor.name, "m", vendor.url)
    assert signed(provider) == f"{vendor.name}/m"


@pytest.mark.parametrize("vendor", LOCAL, ids=lambda vendor: vendor.name)
def test_a_local_server_needs_no_key(vendor: Vendor) -> None:
    provider = opened(vendor.name)
    assert (provider.endpoint, signed(provider)) == (vendor.url, f"{vendor.name}/m")


def test_the_entries_to_copy_name_models_at_their_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    block = re.search(r'```yaml title="vendors.yaml"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL)
    assert block
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://resource.openai.azure.com")
    for variable in re.findall(r"\b[A-Z]+_[A-Z_]*KEY|AWS_BEARER_TOKEN_BEDROCK", block[1]):
        monkeypatch.setenv(variable, KEY)
    config = load_config(
        options=yaml.safe_load(block[1].replace("gcloud auth print-access-token", f"echo {KEY}"))
    )
    opened = [open_judge(config, judge) for judge in config.model if isinstance(judge, Judge)]
    assert [
        (provider.name, provider.model, urlsplit(provider.endpoint).netloc) for provider in opened
    ] == [
        ("azure", "DEPLOYMENT", "resource.openai.azure.com"),
        ("openai", "openai.gpt-oss-120b", "bedrock-runtime.REGION.amazonaws.com"),
        ("openai", "google/gemini-3.8-flash", "aiplatform.googleapis.com"),
        ("openai", "grok-4.5", "api.x.ai"),
    ]
    assert len(opened) == len(config.model)


def test_the_vendors_key_is_sent_and_no_other(
    chat_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("OPENAI_API_KEY", "sk-of-openai-itself"),
        ("GROQ_API_KEY", KEY),
        ("MY_KEY", "my-own-long-key"),
    ):
        monkeypatch.setenv(name, value)
    ask(opened("groq", base_url=chat_server.url))
    ask(opened("groq", base_url=chat_server.url, key_env="MY_KEY"))
    ask(opened("vllm", base_url=chat_server.url))
    sent = [headers["authorization"] for headers in chat_server.headers]
    assert sent == [f"Bearer {KEY}", "Bearer my-own-long-key", "Bearer no-key"]


def test_a_custom_address_needs_no_key_unless_one_is_named(chat_server: Any) -> None:
    provider = opened("anthropic", base_url=chat_server.url)
    assert (provider.endpoint, signed(provider)) == (
        chat_server.url,
        f"anthropic/m@{chat_server.url[7:-3]}",
    )
    with pytest.raises(ConfigError, match=r"\$MY_KEY is not set"):
        opened("anthropic", base_url=chat_server.url, key_env="MY_KEY")


@pytest.mark.parametrize(
    "address",
    [
        "https://r.openai.azure.com",
        "https://r.openai.azure.com/",
        "https://r.openai.azure.com/openai/v1/",
    ],
)
def test_the_address_at_azure_is_in_a_variable(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    with pytest.raises(ConfigError, match=r"\$AZURE_OPENAI_ENDPOINT is not set"):
        opened("azure")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", address)
    provider = opened("azure")
    assert provider.endpoint == "https://r.openai.azure.com/openai/v1"
    assert (
        signed(provider) == "azure/m@r.openai.azure.com"
    )  # the name of a deployment has a meaning only at that address


def test_parameters_anthropic_ignores_are_dropped_and_noted(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion("4"))
    provider = opened("anthropic", base_url=chat_server.url)
    response = ask(provider)
    assert chat_server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "user", "content": "p"}],
            "temperature": 0.0,
            "max_completion_tokens": 64,
        }
    ]
    assert set(response.unmet) == {"logprobs", "response_format", "n"}
    assert provider.learned == {"n": 1, "dropped": ["logprobs", "response_format"]}


@pytest.mark.parametrize("name", ["anthropic", "gemini", "groq", "lmstudio", "ollama"])
def test_vendor_limits_are_known_to_a_plan_without_a_refusal(name: str, chat_server: Any) -> None:
    provider = opened(name, base_url=chat_server.url)
    assert provider.learned["n"] == 1
    ask(provider)
    (body,) = chat_server.bodies
    assert "n" not in body
    assert ("logprobs" in body) == (name == "ollama")


def test_a_claude_model_that_refuses_a_temperature_is_found_by_trying(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    refusal = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "`temperature` is deprecated for this model.",
        },
    }
    chat_server.answer = lambda body: (
        (400, {}, refusal) if "temperature" in body else (200, {}, make_completion("4"))
    )
    provider = opened("anthropic", base_url=chat_server.url)
    assert "temperature" in ask(provider).unmet
    assert "temperature" in provider.learned["dropped"]
    assert len(chat_server.bodies) == 2


@pytest.mark.parametrize("name", ["deepseek", "mistral", "ollama", "openrouter", "together"])
def test_a_server_that_may_not_see_the_new_word_for_the_limit_gets_the_old(
    name: str, chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    chat_server.answer = lambda body: (
        200,
        {},
        make_completion("4", top={"4": 1.0} if body.get("logprobs") else None),
    )
    ask(opened(name, base_url=chat_server.url))
    assert chat_server.bodies[0]["max_tokens"] == 64
    assert "max_completion_tokens" not in chat_server.bodies[0]


def gemini(name: str) -> Any:
    message = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def mistral(name: str) -> Any:
    detail = {
        "type": "extra_forbidden",
        "loc": ["body", name],
        "msg": "Extra inputs are not permitted",
        "input": 1,
    }
    return {
        "object": "error",
        "message": {"detail": [detail]},
        "type": "invalid_request_error",
        "param": None,
    }


@pytest.mark.parametrize(
    ("vendor", "status", "worded"), [("gemini", 400, gemini), ("mistral", 422, mistral)]
)
def test_refusals_in_a_vendors_own_shape_teach(
    vendor: str,
    status: int,
    worded: Callable[[str], Any],
    chat_server: Any,
    make_completion: Callable[..., Any],
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if "response_format" in body:
            return status, {}, json.dumps(worded("response_format")).encode()
        top = {"4": 1.0} if body.get("logprobs") else None
        return 200, {}, make_completion("4", top=top)

    chat_server.answer = answer
    provider = opened(vendor, base_url=chat_server.url)
    assert "response_format" in ask(provider).unmet
    assert "response_format" in provider.learned["dropped"]


def test_prices_are_known_if_the_vendor_publishes_them() -> None:
    used = Usage(prompt_tokens=1_000_000)
    assert cost_usd("claude-haiku-4-5", VENDORS["anthropic"].url, used) == pytest.approx(1.0)
    assert cost_usd("m", VENDORS["ollama"].url, used) is None


def test_a_host_belongs_to_one_vendor() -> None:
    assert host_of_another("anthropic", VENDORS["openrouter"].url)
    assert not host_of_another("openrouter", VENDORS["openrouter"].url)
    assert not host_of_another("anthropic", "http://127.0.0.1:8000/v1")
    assert not host_of_another("anthropic", None)


def test_a_vendor_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="after the slash"):
        OpenAIProvider.open("", load_config(), VENDORS["ollama"])


def test_the_key_of_a_hosted_vendor_is_sent_only_to_its_hosts() -> None:
    """Azure's address belongs to the customer, so judge checks the domains of its key as for other vendors."""
    for vendor in VENDORS.values():
        if not vendor.local:
            assert wrong_server_reason(vendor.key_env, "https://api.acme.example/v1"), vendor.name
            assert vendor.url_env or not wrong_server_reason(vendor.key_env, vendor.url), (
                vendor.name
            )
