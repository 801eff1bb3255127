"""Any OpenAI-compatible chat endpoint, through the official SDK.

The SDK's client does authentication, URLs and errors; its aiohttp transport and `client.post(cast_to=Response)`
skip its parameter transform and model construction, which cost three times the CPU of all the rest. Its own
retries are off: `judge.retry` decides.
"""

from __future__ import annotations

import email.utils
import json
import os
import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai

from judge.errors import ConfigError, ProviderError, Refused, Transient
from judge.providers.dialect import Dialect
from judge.records import Choice, Request, Response, Token, Usage

DEFAULT_URL = "https://api.openai.com/v1"
_RETRIED = {408, 409, 429}
_STOPPING = {401, 404}
_OUT_OF_MONEY = {"insufficient_quota", "billing_hard_limit_reached"}


class OpenAIProvider:
    """A provider for `POST {base_url}/chat/completions`.

    The key is read from the environment variable `key_env` when the first request is sent, and kept nowhere
    else. Only the default endpoint insists on one: servers of one's own often want none.
    """

    name = "openai"
    notice = ""

    def __init__(
        self,
        *,
        base_url: str | None = None,
        key_env: str = "OPENAI_API_KEY",
        timeout: float = 120.0,
        connections: int = 64,
    ) -> None:
        self.endpoint = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")
        if urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise ConfigError(f"--base-url {self.endpoint!r} is not a URL; write for example http://127.0.0.1:8000/v1")
        if urlsplit(self.endpoint).username:
            raise ConfigError(f"--base-url must not hold a password; put the key into ${key_env}")
        if self.endpoint == DEFAULT_URL and not os.environ.get(key_env):
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

    async def complete(self, request: Request) -> Response:
        """One response, whose `unmet` says what this server would not do. Raises Transient or Refused."""
        while True:
            body = self._dialect.body(request)
            try:
                data = await self._post(body)
                return _response(data, body, self._dialect.unmet(request, body), self.endpoint)
            except Refused as refused:
                if not self._dialect.learn(refused, body):
                    raise

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _post(self, body: dict[str, Any]) -> Any:
        if self._client is None:
            self._client = self._open()
        try:
            reply = await self._client.post(self._url, body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            raise _status_error(error, self.endpoint) from error
        except openai.APIConnectionError as error:
            raise _connection_error(error, self.endpoint, self._timeout) from error
        try:
            return json.loads(reply.content)
        except ValueError as error:
            raise _not_an_api(reply, self.endpoint) from error

    def _open(self) -> openai.AsyncOpenAI:
        limits = httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections)
        timeout = httpx2.Timeout(self._timeout, connect=10.0)
        return openai.AsyncOpenAI(
            api_key=os.environ.get(self._key_env) or "no-key",
            base_url=self.endpoint,
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAioHttpClient(limits=limits, timeout=timeout),
        )


def _response(data: Any, body: dict[str, Any], unmet: tuple[str, ...], url: str) -> Response:
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise _body_error(data, url)
    try:
        choices = tuple(_choice(c) for c in data["choices"])
        usage = _usage(data.get("usage") or {})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Refused(f"{url} answered with a chat completion that cannot be read: {error!r}") from error
    if len(choices) != body.get("n", 1):
        raise Refused(f"{url} sent {len(choices)} choices where {body.get('n', 1)} were asked for")
    if usage.reasoning_tokens and any(c.finish_reason == "length" and not c.text for c in choices):
        limit = next((name for name in ("max_completion_tokens", "max_tokens") if name in body), None)
        raise Refused(f"{url}: the model spent its whole token limit on hidden reasoning", param=limit)
    if body.get("logprobs") and any(c.tokens is None for c in choices):
        unmet = (*unmet, "logprobs")
    served_by = "/".join(str(data[k]) for k in ("model", "system_fingerprint") if data.get(k))
    return Response(choices, usage, served_by, unmet)


def _choice(data: dict[str, Any]) -> Choice:
    message = data["message"]
    text = message.get("content")
    finish = data.get("finish_reason") or "stop"
    if text is None:
        text, finish = message.get("refusal") or "", "refusal" if message.get("refusal") else finish
    if not isinstance(text, str):
        raise TypeError(f"content is {type(text).__name__}, not text")
    listed = (data.get("logprobs") or {}).get("content")
    return Choice(text, finish, tuple(map(_token, listed)) if listed else None)


def _token(data: dict[str, Any]) -> Token:
    top = data.get("top_logprobs") or ()
    return Token(data["token"], float(data["logprob"]), tuple((t["token"], float(t["logprob"])) for t in top))


def _usage(data: dict[str, Any]) -> Usage:
    return Usage(
        data.get("prompt_tokens") or 0,
        data.get("completion_tokens") or 0,
        (data.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
        (data.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0,
    )


def _body_error(data: Any, url: str) -> ProviderError:
    """For a 200 that holds no completion: some gateways send their errors so."""
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict):
        code = error.get("code")
        message = f"{url} answered: {error.get('message') or error}"
        if isinstance(code, int) and (code in _RETRIED or code >= 500):
            return Transient(message, status=code)
        return Refused(message)
    return Refused(f"{url} answered with JSON that is no chat completion; is --base-url right?", stops="if_first")


def _not_an_api(reply: httpx2.Response, url: str) -> Refused:
    kind = reply.headers.get("content-type", "no content type").partition(";")[0]
    hint = "is --base-url right? It usually ends in /v1"
    return Refused(f"{url} answered with {kind} instead of JSON; {hint}", status=reply.status_code, stops="if_first")


def _status_error(error: openai.APIStatusError, url: str) -> ProviderError:
    status, headers = error.status_code, error.response.headers
    message = f"{url} answered {status}: {_said(error)}"
    if error.code in _OUT_OF_MONEY:
        return Refused(f"{message}; top up, then start the same command again", status=status, stops="always")
    if (status in _RETRIED or status >= 500) and headers.get("x-should-retry") != "false":
        return Transient(message, status=status, retry_after=_retry_after(headers))
    if status == 401:
        message += "; check the key in the environment"
    elif status == 404:
        message += "; check --model and --base-url"
    return Refused(message, status=status, param=error.param, stops="always" if status in _STOPPING else "never")


def _said(error: openai.APIStatusError) -> str:
    """The server's own words, without the page around them where it sent one."""
    body = error.body
    if isinstance(body, dict) and body.get("message"):
        return str(body["message"])
    text = " ".join(str(body if isinstance(body, str) else error.response.text).split())
    return "a web page, not an API error" if text[:1] == "<" else text[:300] or error.response.reason_phrase


def _connection_error(error: openai.APIConnectionError, url: str, timeout: float) -> Transient:
    """What really happened: under aiohttp the SDK calls a refused connection a time-out."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return Transient(f"cannot connect to {url} ({cause})", stops="if_first")
        if isinstance(cause, aiohttp.InvalidURL):
            return Transient(f"cannot connect to {url}: not a URL", stops="if_first")
        if isinstance(cause, TimeoutError):
            return Transient(f"{url} did not answer within {timeout:g} s (see --timeout)", billed=True)
        cause = cause.__cause__
    return Transient(f"{url} dropped the connection")


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds to wait as the server asks: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None
