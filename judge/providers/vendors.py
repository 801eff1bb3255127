"""Whose models there are behind OpenAI-compatible addresses: `--model VENDOR/MODEL`, over the one provider for chat.

A server's refusals teach `server_capabilities` what it does not take. The table holds what they cannot: the address,
the key's variable, wishes that a server takes without a word and does not fulfil, and what a plan has to know before
anything is sent. Looked up in the vendors' documentation in November 2026.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.providers import Provider
from judge.providers.pricing import DEFAULT_URL
from judge.providers.server_capabilities import Caching, RequestAdapter

if TYPE_CHECKING:
    from judge.providers.openai import OpenAIProvider

_OLD_LIMIT = RequestAdapter(limit_name="max_tokens")
"""For a server that documents `max_tokens` alone and may not see `max_completion_tokens`: a reply without a limit."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor, or the server program that stands in its place.

    `url` is the address, and where `url_env` names the variable that has it, the path after it. `local` says that it
    runs on one's own machine and may want no key; `dialect` is what to begin with.
    """

    name: str
    url: str
    key_env: str
    url_env: str = ""
    dialect: RequestAdapter = field(default_factory=RequestAdapter)
    caching: Caching = ""
    local: bool = False

    @property
    def address(self) -> str:
        """The base URL. Raises ConfigError where the variable that has it is not set."""
        if not self.url_env:
            return self.url
        configured = os.environ.get(self.url_env, "").strip().rstrip("/")
        if not configured:
            raise ConfigError(
                f"--model {self.name}/...: ${self.url_env} is not set; set it to your resource's address, or name the "
                "whole address with --base-url"
            )
        return configured if configured.endswith(self.url) else f"{configured}{self.url}"

    def open(self, model: str, config: RunConfig) -> OpenAIProvider:
        """The provider of a plan; its address and its key's variable go before the table's. Raises ConfigError."""
        from judge.providers.http_client import options
        from judge.providers.openai import OpenAIProvider

        if not model:
            raise ConfigError(f"--model {self.name}/: write the model's name after the slash")
        named = "key_env" in config.model_fields_set
        http_options = options(config)
        http_options["base_url"] = config.base_url or self.address
        http_options["key_env"] = config.key_env if named else self.key_env
        http_options["needs_key"] = named or not (self.local or config.base_url)
        http_options["caching"] = self.caching
        return OpenAIProvider(model, name=self.name, dialect=self.dialect, **http_options)


_TABLE = (
    # Ignored in silence there: logprobs, response_format. n must be 1.
    Vendor(
        "anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        dialect=RequestAdapter(n=1, dropped=frozenset({"logprobs", "response_format"})),
    ),
    Vendor("azure", "/openai/v1", "AZURE_OPENAI_API_KEY", url_env="AZURE_OPENAI_ENDPOINT", caching="key"),
    Vendor("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", dialect=_OLD_LIMIT),
    Vendor("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    # Refused there: logprobs, n above 1.
    Vendor(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        dialect=RequestAdapter(n=1, dropped=frozenset({"logprobs"})),
    ),
    Vendor("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", dialect=_OLD_LIMIT),
    Vendor("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", dialect=_OLD_LIMIT),
    Vendor("together", "https://api.together.ai/v1", "TOGETHER_API_KEY", dialect=_OLD_LIMIT),
    Vendor("litellm", "http://127.0.0.1:4000/v1", "LITELLM_PROXY_API_KEY", local=True),
    Vendor("llamacpp", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY", local=True),
    Vendor("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", dialect=replace(_OLD_LIMIT, n=1), local=True),
    Vendor("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", local=True),
)
VENDORS = {vendor.name: vendor for vendor in _TABLE}


def signed(provider: Provider) -> str:
    """A model as signatures name it, with its address where that is not its vendor's: `openai/m@127.0.0.1:8000`."""
    default_url = VENDORS[provider.name].url if provider.name in VENDORS else DEFAULT_URL
    there = urlsplit(provider.endpoint).netloc
    return f"{provider.name}/{provider.model}{f'@{there}' if there and there != urlsplit(default_url).netloc else ''}"


def host_of_another(name: str, url: str | None) -> bool:
    """Whether an address is that of a vendor other than this one, where `name/model` is a model's whole name."""
    there = urlsplit(url or "").netloc
    return any(there == urlsplit(v.url).netloc and not v.local for v in _TABLE if there and v.name != name)
