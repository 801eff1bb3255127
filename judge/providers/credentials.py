"""Which variables of the environment are no keys for a server: a plan that somebody else wrote may name any of both."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_OWNERS = {
    "ANTHROPIC_API_KEY": ("anthropic.com",),
    "AWS_BEARER_TOKEN_BEDROCK": ("amazonaws.com", "api.aws"),
    "AZURE_OPENAI_API_KEY": ("azure.com", "microsoft.com", "azure.us", "azure.cn"),
    "DEEPSEEK_API_KEY": ("deepseek.com",),
    "GEMINI_API_KEY": ("googleapis.com",),
    "GH_TOKEN": ("github.ai", "github.com", "githubcopilot.com", "azure.com"),
    "GITHUB_TOKEN": ("github.ai", "github.com", "githubcopilot.com", "azure.com"),
    "GOOGLE_API_KEY": ("googleapis.com",),
    "GROQ_API_KEY": ("groq.com",),
    "MISTRAL_API_KEY": ("mistral.ai",),
    "OPENROUTER_API_KEY": ("openrouter.ai",),
    "TOGETHER_API_KEY": ("together.ai", "together.xyz"),
}
"""The domains of those whose secret it is. $OPENAI_API_KEY is not here: servers of one's own are told it, too."""
_NEVER = re.compile(
    r"(?:ACTIONS|AWS|CI|CODECOV|DOCKER|GITLAB|GPG|MYSQL|NPM|PG|POSTGRES|PYPI|REDIS|SENTRY|SLACK|SSH|STRIPE|TWINE|UV|VAULT)"
    r"_\w+|\w*(?:PASSWORD|PASSWD|PASSPHRASE|_URL|_URI|_DSN)|PGPASS\w*|PATH|HOME|USER",
    re.IGNORECASE,
)


def misdirected(variable: str, url: str) -> str:
    """Why this variable's content is not for the server at this address, or "". Its name alone is looked at."""
    host = (urlsplit(url).hostname or "").lower()
    domains = _OWNERS.get(variable.upper(), ())
    if domains and not is_own(host) and not any(host == one or host.endswith(f".{one}") for one in domains):
        return f"${variable} is the key for {domains[0]}, and not for {host}"
    return f"${variable} is no key of a model's server" if not domains and _NEVER.fullmatch(variable) else ""


def is_own(host: str) -> bool:
    """Whether a host is this machine."""
    return host in ("localhost", "::1") or re.fullmatch(r"127(?:\.\d{1,3}){3}", host) is not None


def is_openai(url: str) -> bool:
    """Whether an address is OpenAI's."""
    host = (urlsplit(url).hostname or "").lower()
    return host == "openai.com" or host.endswith(".openai.com")
