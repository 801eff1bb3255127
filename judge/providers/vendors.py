"""Whose models there are behind OpenAI-compatible addresses: `--model VENDOR/MODEL`, over the one provider for chat.

A server's refusals teach `server_capabilities` what it does not take. The table holds what they cannot: the address,
the key's variable, wishes that a server takes without a word and does not fulfil, and what a plan has to know before
anything is sent. Looked up in the vendors' documentation in November 2026.

A plan may come from somebody else and name any variable with any address. `wrong_server_reason` refuses variables that
hold no key for that server.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.providers import Provider
from judge.providers.pricing import DEFAULT_URL
from judge.providers.server_capabilities import Caching, RequestAdapter

_OLD_LIMIT = RequestAdapter(limit_name="max_tokens")
"""For a server that documents `max_tokens` alone and may not see `max_completion_tokens`: a reply without a limit."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor, or the server program that stands in its place.

    `url` is the address, and where `url_env` names the variable that has it, the path after it. `local` says that it
    runs on one's own machine and may want no key; `dialect` is what to begin with. Its key is for the domain of its
    address, or for `domains`.
    """

    name: str
    url: str
    key_env: str
    url_env: str = ""
    dialect: RequestAdapter = field(default_factory=RequestAdapter)
    caching: Caching = ""
    local: bool = False
    domains: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The base URL. Raises ConfigError where the variable that has it is not set."""
        if not self.url_env:
            return self.url
        configured = os.environ.get(self.url_env, "").strip().rstrip("/")
        if not configured:
            raise ConfigError(
                f"{option('model', f'{self.name}/...')}: ${self.url_env} is not set; set it to your resource's address, or "
                f"name the whole address with {option('base_url')}"
            )
        return configured if configured.endswith(self.url) else f"{configured}{self.url}"


_TABLE = (
    # Ignored in silence there: logprobs, response_format. n must be 1. The newest models also refuse temperature
    # ("`temperature` is deprecated for this model"). No rule tells them from the others by name, so `refusals` finds
    # that out, with one refused request.
    Vendor(
        "anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
        dialect=RequestAdapter(n=1, dropped=frozenset({"logprobs", "response_format"})),
    ),
    Vendor(
        "azure",
        "/openai/v1",
        "AZURE_OPENAI_API_KEY",
        url_env="AZURE_OPENAI_ENDPOINT",
        caching="key",
        domains=("azure.com", "microsoft.com", "azure.us", "azure.cn"),
    ),
    Vendor("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", dialect=_OLD_LIMIT),
    # Refused there: logprobs ("Logprobs is not enabled for models/…"), n above 1 ("Multiple candidates is not
    # enabled").
    Vendor(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        dialect=RequestAdapter(n=1, dropped=frozenset({"logprobs"})),
    ),
    # Refused there: logprobs, n above 1.
    Vendor(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        dialect=RequestAdapter(n=1, dropped=frozenset({"logprobs"})),
    ),
    Vendor("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", dialect=_OLD_LIMIT),
    Vendor("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", dialect=_OLD_LIMIT),
    Vendor(
        "together",
        "https://api.together.ai/v1",
        "TOGETHER_API_KEY",
        dialect=_OLD_LIMIT,
        domains=("together.ai", "together.xyz"),
    ),
    Vendor("litellm", "http://127.0.0.1:4000/v1", "LITELLM_PROXY_API_KEY", local=True),
    Vendor("llamacpp", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY", local=True),
    # Ignored in silence there: logprobs, n.
    Vendor(
        "lmstudio",
        "http://127.0.0.1:1234/v1",
        "LM_API_TOKEN",
        dialect=replace(_OLD_LIMIT, n=1, dropped=frozenset({"logprobs"})),
        local=True,
    ),
    Vendor(
        "ollama",
        "http://127.0.0.1:11434/v1",
        "OLLAMA_API_KEY",
        dialect=replace(_OLD_LIMIT, n=1),
        local=True,
    ),
    Vendor("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", local=True),
)
VENDORS = {vendor.name: vendor for vendor in _TABLE}
_KEY_DOMAINS = {
    vendor.key_env: vendor.domains or (".".join(urlsplit(vendor.url).netloc.split(".")[-2:]),)
    for vendor in _TABLE
    if not vendor.local
} | {
    "AWS_BEARER_TOKEN_BEDROCK": ("amazonaws.com", "api.aws"),
    "GH_TOKEN": ("github.ai", "github.com", "githubcopilot.com", "azure.com"),
    "GITHUB_TOKEN": ("github.ai", "github.com", "githubcopilot.com", "azure.com"),
    "GOOGLE_API_KEY": ("googleapis.com",),
}
"""The domains of those whose secret it is. $OPENAI_API_KEY is not here: servers of one's own are told it, too."""
_NOT_A_KEY = re.compile(
    r"(?:ACTIONS|AWS|CI|CODECOV|DOCKER|GITLAB|GPG|MYSQL|NPM|PG|POSTGRES|PYPI|REDIS|SENTRY|SLACK|SSH|STRIPE|TWINE|UV|VAULT)"
    r"_\w+|\w*(?:PASSWORD|PASSWD|PASSPHRASE|_URL|_URI|_DSN)|PGPASS\w*|PATH|HOME|USER",
    re.IGNORECASE,
)


def wrong_server_reason(variable: str, url: str) -> str:
    """Why this variable's content is not for the server at this address, or "". Its name alone is looked at."""
    host = (urlsplit(url).hostname or "").lower()
    domains = _KEY_DOMAINS.get(variable.upper(), ())
    if not domains:
        return (
            f"${variable} is no key of a model's server" if _NOT_A_KEY.fullmatch(variable) else ""
        )
    if is_local_host(host) or any(f".{host}".endswith(f".{domain}") for domain in domains):
        return ""
    return f"${variable} is the key for {domains[0]}, and not for {host}"


def is_local_host(host: str) -> bool:
    """Whether a host is this machine."""
    return host in ("localhost", "::1") or re.fullmatch(r"127(?:\.\d{1,3}){3}", host) is not None


def signed(provider: Provider) -> str:
    """A model as signatures name it, with its address where that is not its vendor's: `openai/m@127.0.0.1:8000`."""
    default_url = VENDORS[provider.name].url if provider.name in VENDORS else DEFAULT_URL
    there = urlsplit(provider.endpoint).netloc
    return f"{provider.name}/{provider.model}{f'@{there}' if there and there != urlsplit(default_url).netloc else ''}"


def host_of_another(name: str, url: str | None) -> bool:
    """Whether an address is that of a vendor other than this one, where `name/model` is a model's whole name."""
    there = urlsplit(url or "").netloc
    return any(
        there == urlsplit(v.url).netloc and not v.local for v in _TABLE if there and v.name != name
    )
