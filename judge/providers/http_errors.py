"""What went wrong with a request to an OpenAI-compatible endpoint, as `Transient` or `Refused`."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from typing import Any

import aiohttp
import httpx2
import openai

from judge.core.errors import ProviderError, Refused, Stops, Transient
from judge.core.messages import option

_RETRIED = {408, 409, 429}
_STOPPING = {401, 404}
_OUT_OF_MONEY = {"insufficient_quota", "billing_hard_limit_reached"}
_LONGEST, _MOST_READ = 300, 100_000
_MODEL = re.compile(r"(?<![\w/])model\b", re.I)
"""A 404 that has this word, and not in an address, is about the model."""


def status_error(error: openai.APIStatusError, url: str, key: str) -> ProviderError:
    """For every status but 2xx. A key that the server repeats is blotted out."""
    status, headers = error.status_code, error.response.headers
    message = f"{url} answered {status}: {_said(error, key)}"
    if error.code in _OUT_OF_MONEY:
        return Refused(f"{message}; top up, then start the same command again", status=status, stops="always")
    if (status in _RETRIED or status >= 500) and headers.get("x-should-retry") != "false":
        again: Stops = "if_first" if status >= 500 else "never"
        wait = _retry_after(headers)
        return Transient(message, status=status, retry_after=wait, stops=again, limits=limits(headers))
    if status == 401:
        message = f"{message.rstrip('.')}; check the key in the environment"
    elif status == 404:
        message = f"{message.rstrip('.')}; check {option('model')} and {option('base_url')}"
    elif 300 <= status < 400:
        place = cut(headers.get("location", "another place"), key)
        message = f"{url} answered {status}: moved to {place}; name it with {option('base_url')}"
    stops: Stops = "always" if status in _STOPPING or status < 400 else "never"
    param = error.param if isinstance(error.param, str) else None
    if status == 404 and (error.code == "model_not_found" or _MODEL.search(_said(error, key))):
        param = "model"
    return Refused(message, status=status, param=param, stops=stops)


def error_in(reply: httpx2.Response) -> Any:
    """What a reply that is no success says of its error: a mapping where it is worded as OpenAI words them."""
    try:
        data = json.loads(reply.content)
    except (ValueError, RecursionError):
        return reply.text.strip()
    return data.get("error", data) if isinstance(data, dict) else data


def body_error(data: Any, url: str, what: str) -> ProviderError:
    """For a 200 that does not hold `what` it should: some gateways send their errors so."""
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, str):
        error = {"message": error}
    if isinstance(error, dict):
        code = str(error.get("code"))
        status = int(code) if code.isascii() and code.isdigit() else 0
        message = f"{url} answered: {cut(error.get('message') or error)}"
        return Transient(message, status=status) if status in _RETRIED or status >= 500 else Refused(message)
    return Refused(f"{url} answered with JSON that is no {what}; is {option('base_url')} right?", stops="if_first")


def not_an_api(reply: httpx2.Response, url: str, key: str) -> Refused:
    """For a 200 that is not even JSON."""
    kind = cut(reply.headers.get("content-type", "no content type").partition(";")[0], key)
    hint = f"is {option('base_url')} right? It usually ends in /v1"
    return Refused(f"{url} answered with {kind} instead of JSON; {hint}", status=reply.status_code, stops="if_first")


def connection_error(error: Exception, url: str, timeout: float) -> Transient:
    """What really happened: under aiohttp the SDK calls a refused connection a time-out."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
            why = getattr(cause, "strerror", None) or type(cause).__name__
            return Transient(
                f"cannot connect to {url} ({why}): is it started? {option('base_url')} names another address",
                unreachable=True,
                stops="if_first",
            )
        if isinstance(cause, TimeoutError):
            return Transient(
                f"{url} did not answer within {timeout:g} s (see {option('timeout')})", billed=True, stops="if_first"
            )
        cause = cause.__cause__
    return Transient(f"{url} dropped the connection", stops="if_first")


def _said(error: openai.APIStatusError, key: str) -> str:
    """The server's own words, without the page around them where it sent one."""
    body = error.body
    if isinstance(body, dict) and body.get("message"):
        return cut(body["message"], key)
    text = cut(body if isinstance(body, str) else error.response.text, key)
    return "a web page, not an API error" if text[:1] == "<" else text or error.response.reason_phrase


def cut(words: Any, key: str = "") -> str:
    """Words on one line, not too many, with the key blotted out and nothing in them that a terminal obeys."""
    text = str(words).replace(key, "***") if key else str(words)
    text = " ".join(text[:_MOST_READ].split())[:_LONGEST]
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds to wait as the server asks: `retry-after-ms`, or `retry-after` in seconds or as a date.

    A date is read against the reply's own, so that a clock which is wrong does no harm. None for what is neither.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait):
            return max(0.0, wait)
    until, now = _moment(headers.get("retry-after")), _moment(headers.get("date"))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _moment(date: str | None) -> float | None:
    """A header's date as seconds since 1970."""
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, OverflowError):
        return None


def limits(headers: httpx2.Headers) -> dict[str, str]:
    """The `x-ratelimit-*` headers, by their names in lower case; empty where the server, or a proxy, sends none."""
    raw = headers.raw
    return {
        name.decode("ascii", "replace").lower(): value.decode("latin-1")
        for name, value in raw
        if name[:12].lower() == b"x-ratelimit-"
    }
