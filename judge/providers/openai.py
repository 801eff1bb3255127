"""Any OpenAI-compatible chat endpoint, through the official SDK.

The SDK's client does authentication, URLs and errors; its aiohttp transport and `client.post(cast_to=Response)`
skip its parameter transform and model construction, which cost three times the CPU of all the rest. Its own
retries are off: `judge.retry` decides. Redirects are not followed: a text goes to the host that was named.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai

from judge.config import Plan
from judge.errors import ConfigError, Refused
from judge.providers.dialect import Dialect
from judge.providers.openai_errors import body_error, connection_error, not_an_api, status_error
from judge.records import Choice, Request, Response, Token, Usage

DEFAULT_URL = "https://api.openai.com/v1"


class OpenAIProvider:
    """A provider for `POST {base_url}/chat/completions`, in one event loop at a time.

    The key is read from the environment variable `key_env` when a request is sent, and kept nowhere else; where
    the server repeats it, it is blotted out. Only the default endpoint insists on one: servers of one's own often
    want none.
    """

    name = "openai"
    notice = ""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key_env: str = "OPENAI_API_KEY",
        timeout: float = 120.0,
        connections: int = 64,
    ) -> None:
        self.model = model
        self.endpoint = _checked(base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL)
        if not _key(key_env) and (self.endpoint == DEFAULT_URL or key_env != "OPENAI_API_KEY"):
            raise ConfigError(
                f"no key: ${key_env} is not set. Set it, or name a server of your own with --base-url; "
                "`make demo` shows a run without either"
            )
        self._url = f"{self.endpoint}/chat/completions"  # whole: the SDK takes longer to join it for each request
        self._key_env = key_env
        self._timeout = timeout
        self._connections = connections
        self._client: openai.AsyncOpenAI | None = None
        self._dialect = Dialect()

    @classmethod
    def open(cls, model: str, plan: Plan) -> OpenAIProvider:
        """The provider of a plan. Raises ConfigError."""
        return cls(
            model,
            base_url=plan.base_url,
            key_env=plan.key_env,
            timeout=plan.timeout,
            connections=plan.max_concurrency,
        )

    async def complete(self, request: Request) -> Response:
        """One response, whose `unmet` says what this server would not do. Raises Transient or Refused.

        Words that helped once are used from then on; what did not help is forgotten.
        """
        dialect = self._dialect
        while True:
            body = dialect.body(request)
            try:
                response = _response(await self._post(body), body, dialect.unmet(request, body), self.endpoint)
            except Refused as refused:
                tried, dialect = dialect, dialect.after(refused, body) or dialect
                if dialect == tried:
                    raise
            else:
                self._dialect = dialect
                return response

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _post(self, body: dict[str, Any]) -> Any:
        if self._client is None:
            self._client = self._open()
        key = _key(self._key_env)
        try:
            async with asyncio.timeout(self._timeout):  # for the whole reply; the client's own is for each read
                reply = await self._client.post(self._url, body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            raise status_error(error, self.endpoint, key) from error
        except (openai.APIConnectionError, aiohttp.ClientError, TimeoutError) as error:
            raise connection_error(error, self.endpoint, self._timeout) from error
        try:
            return json.loads(reply.content.replace(key.encode(), b"***") if key else reply.content)
        except (ValueError, RecursionError) as error:
            raise not_an_api(reply, self.endpoint, key) from error

    def _open(self) -> openai.AsyncOpenAI:
        limits = httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections)
        timeout = httpx2.Timeout(self._timeout, connect=10.0)
        return openai.AsyncOpenAI(
            api_key=_key(self._key_env) or "no-key",
            base_url=self.endpoint,
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAioHttpClient(limits=limits, timeout=timeout, follow_redirects=False),
        )


def _checked(url: str) -> str:
    """The URL without a slash at its end. Raises ConfigError, which repeats nothing that may be a secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            "--base-url must be an address alone: no password, nothing after ? or #; keys go into --key-env"
        )
    if parts.scheme not in ("http", "https") or not parts.netloc:
        shown = "" if "@" in url or "?" in url else f" {url!r}"
        raise ConfigError(f"--base-url{shown} is not a URL; write for example http://127.0.0.1:8000/v1")
    return url.rstrip("/")


def _key(name: str) -> str:
    """The key in an environment variable. Raises ConfigError where it cannot stand in an HTTP header."""
    key = os.environ.get(name, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"${name} holds characters that no key has; set it again")
    return key


def _response(data: Any, body: dict[str, Any], unmet: tuple[str, ...], url: str) -> Response:
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise body_error(data, url)
    choices = tuple(_choice(choice, url) for choice in data["choices"])
    usage = _usage(data.get("usage"))
    if len(choices) != body.get("n", 1):
        raise Refused(f"{url} sent {len(choices)} choices where {body.get('n', 1)} were asked for")
    if usage.reasoning_tokens and any(c.finish_reason == "length" and not c.text for c in choices):
        limit = next((name for name in ("max_completion_tokens", "max_tokens") if name in body), None)
        raise Refused(f"{url}: the model spent its whole token limit on hidden reasoning", param=limit)
    if body.get("logprobs") and any(c.tokens is None for c in choices):
        unmet = (*unmet, "logprobs")
    served_by = "/".join(str(data[k]) for k in ("model", "system_fingerprint") if data.get(k))
    return Response(choices, usage, served_by, unmet)


def _choice(data: Any, url: str) -> Choice:
    message = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict):
        raise Refused(f"{url} sent a choice without a message")
    text, refusal = message.get("content"), message.get("refusal")
    finish = str(data.get("finish_reason") or "stop")
    if text is None and isinstance(refusal, str):
        text, finish = refusal, "refusal"
    if not isinstance(text, str | None):
        raise Refused(f"{url} sent a message whose content is {type(text).__name__}, not text")
    return Choice(text or "", finish, _tokens(data.get("logprobs")))


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """The tokens with their alternatives; None where there are none, or where any of it is not what it should be."""
    listed = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(listed, list):
        return None
    try:
        return tuple(Token(*_pair(t), tuple(map(_pair, t.get("top_logprobs") or ()))) for t in listed) or None
    except (TypeError, AttributeError, LookupError, ValueError):
        return None


def _pair(data: Any) -> tuple[str, float]:
    text, logprob = data["token"], data["logprob"]
    if not isinstance(text, str):
        raise TypeError("a token is text")
    return text, -math.inf if logprob is None else float(logprob)


def _usage(data: Any) -> Usage:
    """The tokens used; what a server does not count, or counts in no way a number should look, is 0."""

    def count(name: str, details: str | None = None) -> int:
        where = data.get(details) if details and isinstance(data, dict) else data
        value = where.get(name) if isinstance(where, dict) else None
        return value if type(value) is int and value >= 0 else 0

    prompt, completion = "prompt_tokens_details", "completion_tokens_details"
    return Usage(
        count("prompt_tokens"),
        count("completion_tokens"),
        count("cached_tokens", prompt),
        count("reasoning_tokens", completion),
        count("cache_write_tokens", prompt),
    )
