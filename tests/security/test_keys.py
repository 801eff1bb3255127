"""Keys and names of the account go to those they are for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from judge.core.errors import ConfigError
from judge.core.records import Request
from judge.providers.http_client import HttpClient, is_openai
from judge.providers.openai import OpenAIProvider
from judge.providers.vendors import wrong_server_reason

REQUEST = Request("m", ({"role": "user", "content": "?"},), {"temperature": 0.0, "max_tokens": 8})
ELSEWHERE = "https://judges.example/v1"


@pytest.mark.parametrize(
    "variable",
    ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "NPM_TOKEN", "DATABASE_URL", "CI_JOB_TOKEN", "ANTHROPIC_API_KEY", "HOME"],
)
def test_a_secret_for_others_is_not_sent(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "a-secret-of-somebody")
    with pytest.raises(ConfigError, match=f"\\${variable} is .*a variable of its own") as caught:
        HttpClient(base_url=ELSEWHERE, key_env=variable)
    assert "a-secret-of-somebody" not in str(caught.value)


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
def test_a_key_for_that_server_is(variable: str, url: str) -> None:
    assert not wrong_server_reason(variable, url)


@pytest.mark.parametrize("host", ["evilanthropic.com", "anthropic.com.evil.example", "127.0.0.1.evil.example"])
def test_a_host_that_only_looks_like_its_owners_does_not_get_it(host: str) -> None:
    assert wrong_server_reason("ANTHROPIC_API_KEY", f"https://{host}/v1")
    assert not is_openai(f"https://{host}/v1")


def test_the_accounts_name_goes_to_openai_alone(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def ask() -> None:
        try:
            await provider.complete(REQUEST)
        finally:
            await provider.aclose()

    asyncio.run(ask())
    assert not {"openai-organization", "openai-project"} & chat_server.headers[0].keys()
    endpoint = HttpClient()
    endpoint._connect()
    sent = endpoint._transport.headers
    assert (sent["OpenAI-Organization"], sent["OpenAI-Project"]) == ("org-1", "proj-1")
