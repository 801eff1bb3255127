"""The models that `--model` selects, and notes on options without effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.config import load_config
from judge.core.errors import ConfigError
from judge.core.records import Request
from judge.providers.vendors import VENDORS
from judge.run.judge_models import open_judge, open_judges

OPENAI = "https://api.openai.com/v1"
OPENROUTER = VENDORS["openrouter"].url
OWN = "http://127.0.0.1:9/v1"
SOURCE = (
    "The ferry Alba left Norholm at seven on Monday with 212 passengers. Two hours later its engine failed in fog. "
    "The lifeboat of Skarvik towed it to the harbour, where it arrived shortly before noon. Nobody was hurt."
)
ROWS = [{"item": "1", "system": "s", "source": SOURCE, "output": SOURCE.partition(". ")[0] + "."}]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, "a-key-of-some-length")


def run(**options: Any) -> judge.Result:
    return judge.evaluate(
        ROWS, **{"metrics": [], "cache": False, "criteria": ["relevance"], **options}
    )


@pytest.mark.parametrize(
    ("name", "base_url", "meant"),
    [
        ("gpt-5.4-mini", None, ("openai", "gpt-5.4-mini", OPENAI)),
        ("openai/gpt-5.4-mini", None, ("openai", "gpt-5.4-mini", OPENAI)),
        ("decisions/gpt-6-luna", None, ("decisions", "gpt-6-luna", OPENAI)),
        ("gpt-5.4-mini", OWN, ("openai", "gpt-5.4-mini", OWN)),
        ("openai/gpt-5.4-mini", OWN, ("openai", "openai/gpt-5.4-mini", OWN)),
        ("meta-llama/Llama-3", OWN, ("openai", "meta-llama/Llama-3", OWN)),
        (
            "anthropic/claude-haiku-5-5",
            None,
            ("anthropic", "claude-haiku-5-5", "https://api.anthropic.com/v1"),
        ),
        ("anthropic/claude-haiku-5-5", OWN, ("anthropic", "claude-haiku-5-5", OWN)),
        ("openrouter/anthropic/claude", None, ("openrouter", "anthropic/claude", OPENROUTER)),
        ("anthropic/claude", OPENROUTER, ("openai", "anthropic/claude", OPENROUTER)),
        ("ollama/llama3:8b", None, ("ollama", "llama3:8b", "http://127.0.0.1:11434/v1")),
    ],
)
def test_who_is_meant(name: str, base_url: str | None, meant: tuple[str, str, str]) -> None:
    options = {"model": name} | ({"base_url": base_url} if base_url else {})
    config = load_config(options=options)
    provider = open_judge(config, config.model[0])
    assert (provider.name, provider.model, provider.endpoint) == meant


def test_the_cache_key_of_a_plain_model_is_that_of_the_first_release() -> None:
    """The key is the same as in the release before vendor names."""
    config = load_config(options={"model": "gpt-5.4-mini"})
    provider = open_judge(config, config.model[0])
    message = {"role": "user", "content": "p"}
    request = Request(provider.model, (message,), {"temperature": 0.0}, endpoint=provider.endpoint)
    assert request.key() == "a58db9540dbd264ffe5a375a3fd03fda8e16385d09736dc678c32d481f8e25a1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("antropic/claude", "did you mean 'anthropic'"), ("meta-llama/Llama-3", "--base-url"),
        ("azure/gpt", "AZURE_OPENAI_ENDPOINT"),
        ("mistral/small", r"\$MISTRAL_API_KEY"), ("a,b", "--model a --model b$"),
        ("vllm/a, gpt-5.4-mini", "--model vllm/a --model gpt-5.4-mini$"),
    ],
)  # fmt: skip
def test_an_unknown_model_is_an_error_before_the_missing_key(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "MISTRAL_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    config = load_config(options={"model": name})
    with pytest.raises(ConfigError, match=message):
        open_judges(config, config.model)


def test_a_vendor_key_may_come_from_a_different_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("MINE", "a-key-of-some-length")
    panel = load_config(
        options={"model": ["gpt-5.4-mini", {"name": "anthropic/claude", "key_env": "MINE"}]}
    )
    assert list(open_judges(panel, panel.model)) == ["gpt-5.4-mini", "claude"]
    for_all = load_config(
        options={"model": ["gpt-5.4-mini", "anthropic/claude"], "key_env": "MINE"}
    )
    assert list(open_judges(for_all, for_all.model)) == ["gpt-5.4-mini", "claude"]


def test_one_model_at_two_vendors_is_a_panel() -> None:
    config = load_config(options={"model": ["ollama/m", "vllm/m"]})
    assert list(open_judges(config, config.model)) == ["ollama/m", "vllm/m"]


def test_a_vendors_model_is_signed_with_its_name(chat_server: Any, make_completion: Any) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion("4"))
    result = run(model="vllm/m", base_url=chat_server.url, weighting="single")
    place = chat_server.url[7:-3]
    assert f"|vllm/m@{place}|" in result.table.signatures["relevance"]
    assert (result.info.model, result.info.provider) == ("m", "vllm")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"criteria": [], "metrics": ["distinct"], "record": "calls.jsonl"},
            "no replies to record",
        ),
    ],
)
def test_refuses_settings_that_would_be_ignored(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    if "record" in options:
        options = options | {"record": tmp_path / options["record"]}
    with pytest.raises(ConfigError, match=message):
        run(**options)
    assert not list(tmp_path.iterdir())


def recorded(tmp_path: Path, server: Any, model: str) -> Path:
    path = tmp_path / "calls.jsonl"
    run(model=model, base_url=server.url, weighting="single", record=path)
    assert json.loads(path.read_text("utf-8").splitlines()[-1])["model"]
    return path


def test_a_recording_matches_the_model_name_of_a_gateway(chat_server: Any, tmp_path: Path) -> None:
    path = recorded(tmp_path, chat_server, "meta/m")
    path.write_text(path.read_text("utf-8").replace("meta/m", "anthropic/m"), "utf-8")
    with pytest.raises(ConfigError, match="unknown model"):
        run(model="anthropic/other", replay=path)
    config = load_config(options={"model": "anthropic/m", "replay": path})
    assert list(open_judges(config, config.model)) == ["anthropic/m"]
