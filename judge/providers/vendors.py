"""Vendors behind OpenAI-compatible addresses: `--model VENDOR/MODEL`, over the one chat provider.

The refusals of a server teach `server_capabilities` what it does not accept. The table has what
they cannot: the address, the key's variable, parameters that a server ignores in silence, and what
a plan has to know before anything is sent. Looked up in the vendors' documentation in November
2026.

A run configuration may come from somebody else and name any variable with any address.
`wrong_server_reason` refuses variables that hold no key for that server.
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

# For a server that documents only `max_tokens`. It might ignore `max_completion_tokens`, so that
# the reply would have no limit.
_OLD_LIMIT = RequestAdapter(limit_name="max_tokens")


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor, or a server program on the user's own machine.

    `url` is the address; if the variable `url_env` has the address, `url` is the path after it.
    `local`: it runs on the user's machine and may need no key. `dialect` is the form of the first
    request. The key is for the domain of the address, or for `domains`.
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
        """The base URL. Raises ConfigError if its environment variable is not set."""
        if not self.url_env:
            return self.url
        configured = os.environ.get(self.url_env, "").strip().rstrip("/")
        if not configured:
            model_option = option("model", f"{self.name}/...")
            address_option = option("base_url")
            raise ConfigError(
                f"{model_option}: ${self.url_env} is not set; set it to your resource's address, "
                f"or name the whole address with {address_option}"
            )
        if configured.endswith(self.url):
            return configured
        return f"{configured}{self.url}"


_TABLE = (
    # Ignores logprobs and response_format in silence. n must be 1. The newest models also refuse a
    # temperature ("`temperature` is deprecated for this model"). Their names follow no rule, so
    # `refusals` finds that out, with one refused request.
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
    Vendor(
        "deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", dialect=_OLD_LIMIT
    ),
    # Refuses logprobs ("Logprobs is not enabled for models/…") and n above 1 ("Multiple candidates
    # is not enabled").
    Vendor(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        dialect=RequestAdapter(n=1, dropped=frozenset({"logprobs"})),
    ),
    # Refuses logprobs and n above 1.
    Vendor(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        dialect=RequestAdapter(n=1, dropped=frozenset({"logprobs"})),
    ),
    Vendor(
        "mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", dialect=_OLD_LIMIT
    ),
    Vendor(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        dialect=_OLD_LIMIT,
    ),
    Vendor(
        "together",
        "https://api.together.ai/v1",
        "TOGETHER_API_KEY",
        dialect=_OLD_LIMIT,
        domains=("together.ai", "together.xyz"),
    ),
    Vendor("litellm", "http://127.0.0.1:4000/v1", "LITELLM_PROXY_API_KEY", local=True),
    Vendor("llamacpp", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY", local=True),
    # Ignores logprobs and n in silence.
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
_GITHUB_DOMAINS = ("github.ai", "github.com", "githubcopilot.com", "azure.com")


def _key_domains() -> dict[str, tuple[str, ...]]:
    """Return the domains that may receive the key in each variable.

    $OPENAI_API_KEY is not among the variables, because users send it to local servers, too.
    """
    domains = {}
    for vendor in _TABLE:
        if not vendor.local:
            # "https://api.groq.com/openai/v1" is of the domain "groq.com".
            host = urlsplit(vendor.url).netloc
            domain = ".".join(host.split(".")[-2:])
            domains[vendor.key_env] = vendor.domains or (domain,)
    domains["AWS_BEARER_TOKEN_BEDROCK"] = ("amazonaws.com", "api.aws")
    domains["GH_TOKEN"] = _GITHUB_DOMAINS
    domains["GITHUB_TOKEN"] = _GITHUB_DOMAINS
    domains["GOOGLE_API_KEY"] = ("googleapis.com",)
    return domains


_KEY_DOMAINS = _key_domains()
# Variables with secrets of other services: "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "DATABASE_URL".
_NOT_A_KEY = re.compile(
    r"(?:ACTIONS|AWS|CI|CODECOV|DOCKER|GITLAB|GPG|MYSQL|NPM|PG|POSTGRES|PYPI|REDIS|SENTRY|SLACK"
    r"|SSH|STRIPE|TWINE|UV|VAULT)_\w+"
    r"|\w*(?:PASSWORD|PASSWD|PASSPHRASE|_URL|_URI|_DSN)|PGPASS\w*|PATH|HOME|USER",
    re.IGNORECASE,
)
# "127.0.0.1": the whole block is the loopback network (RFC 1122, section 3.2.1.3).
_LOOPBACK = re.compile(r"127(?:\.\d{1,3}){3}")


def wrong_server_reason(variable: str, url: str) -> str:
    """Return why the content of a variable is not for the server at an address, "" if it may be.

    Only the variable's name is considered, not its content.
    """
    host = (urlsplit(url).hostname or "").lower()
    domains = _KEY_DOMAINS.get(variable.upper(), ())
    if not domains:
        if _NOT_A_KEY.fullmatch(variable):
            return f"${variable} is not the key of a model server"
        return ""
    if is_local_host(host):
        return ""
    # The domain itself, or one below it
    if any(f".{host}".endswith(f".{domain}") for domain in domains):
        return ""
    return f"${variable} is the key for {domains[0]}, and not for {host}"


def is_local_host(host: str) -> bool:
    """Return whether a host is this machine."""
    return host in ("localhost", "::1") or _LOOPBACK.fullmatch(host) is not None


def signed(provider: Provider) -> str:
    """Return a model's name in signatures, with an address that is not its vendor's.

    `openai/m` at OpenAI, `openai/m@127.0.0.1:8000` elsewhere.
    """
    vendor_url = VENDORS[provider.name].url if provider.name in VENDORS else DEFAULT_URL
    host = urlsplit(provider.endpoint).netloc
    model_name = f"{provider.name}/{provider.model}"
    if not host or host == urlsplit(vendor_url).netloc:
        return model_name
    return f"{model_name}@{host}"


def host_of_another(vendor_name: str, url: str | None) -> bool:
    """Return whether an address belongs to another vendor than the one of this name."""
    host = urlsplit(url or "").netloc
    if not host:
        return False
    others = [
        vendor for vendor in _TABLE if vendor.name != vendor_name and not vendor.local
    ]
    return any(urlsplit(vendor.url).netloc == host for vendor in others)
