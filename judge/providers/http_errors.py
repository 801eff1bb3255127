"""Errors of HTTP replies and connections, in the classes that decide about retries.

No message repeats a secret, spans several lines, or contains what a terminal would interpret.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

from judge.core.errors import ProviderError, Refused, Stops, Transient
from judge.core.messages import in_python, option
from judge.providers.proxies import proxy_variable
from judge.providers.sdk import sdk

# Timeout, conflict, an error of the model itself (424: TGI, Bedrock), and rate limit. A server
# error (5xx) is retried as well.
_RETRIED_STATUSES = {408, 409, 424, 429}
# Waiting does not help then, although some of these have the status 429 (OpenAI, Moonshot, Zhipu),
# and others 400 (Anthropic, DashScope, a LiteLLM proxy). Gemini's "exceeded your current quota" is
# not among them, because it may be a limit per minute.
_OUT_OF_MONEY = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|billing_hard_limit_reached"
    r"|credit balance is too low|budget has been exceeded|exceeded_current_quota|arrearage"
    # xAI: "used all available credits", "doesn't have any credits". OpenRouter: "Key limit
    # exceeded".
    r"|(?:any|available|out of) credits|spending limit|key limit exceeded|余额不足|欠费",
    re.IGNORECASE,
)
_TOP_UP = "top up, then start the same command again"
# "rate limit" (MiniMax), "Open api qps request limit reached" (Baidu), in a reply with status 200
_RATE_LIMIT = re.compile(
    r"rate[ _-]?limit|too many requests|\b[qrt]p[ms] (?:request )?limit|request limit reached",
    re.IGNORECASE,
)
# "Rate Limit Exceeded" with the status 403 (Google), "Flex tier capacity exceeded" with 498 (Groq).
# "Not counted against your rate limit" is none.
_RATE_LIMIT_EXCEEDED = re.compile(
    r"(?:rate[ _-]?limit|capacity)[ _-]?(?:exceeded|reached)|exceed[^.]{0,40} rate[ _-]?limit"
    r"|too many requests|over capacity",
    re.IGNORECASE,
)
# "Request too large for m on tokens per min (TPM)" with the status 429 (OpenAI): it never fits.
_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
# "API key not valid" with the status 400 (Gemini), "Incorrect API key provided" (xAI), "The
# security token included in the request is expired" with the status 403 (Bedrock), "Invalid access
# token" (Databricks) and "Authentication error" (Cloudflare) with 403
_WRONG_KEY = re.compile(
    r"(?:incorrect|invalid) (?:api[ _]key|access token)|api[ _]key (?:not valid|expired)"
    r"|security token|authentication error",
    re.IGNORECASE,
)
# "Invalid model: m", "Unknown model: m", "Model Not Exist", "m is not a valid model ID": the status
# is 400 or 403. "Invalid model output" is about a reply.
_WRONG_MODEL = re.compile(
    r"(?:invalid|unknown|unavailable) model(?! (?:output|response|param))|not a valid model"
    r"|model[^.]{0,60} (?:not exist|decommissioned)|access to (?:the )?model|模型不存在",
    re.IGNORECASE,
)
# '"retryDelay": "37s"' (Gemini), "Try again in 60 seconds" (LiteLLM)
_RETRY_IN = re.compile(
    rb'(?:"retryDelay": ?"|again in )(\d+(?:\.\d+)?) ?s', re.IGNORECASE
)
# There is no such model or no such address.
_MISSING_STATUSES = (404, 405)
_MAX_MESSAGE = 300  # characters
_MAX_MESSAGE_READ = 100_000
# "The model `m` does not exist", but not "/v1/models/m not found".
_MODEL_WORD = re.compile(r"(?<![\w/])model\b", re.IGNORECASE)


def status_error(
    reply: Any,
    content: bytes,
    url: str,
    secrets: Sequence[str],
    status: int,
    *,
    key: str = "the key",
    named_by: str = "",
) -> ProviderError:
    """Return the error of a reply whose status is not 2xx.

    `key` and `named_by` name the option or variable with which the user set the key and the
    address. Secrets that the server repeats are redacted.
    """
    headers = reply.headers
    error = _error_object(content)
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    param = fields.get("param")
    reason = _reason(error, content, secrets, reply.reason_phrase)
    message = f"{url} answered {status}: {reason}"
    # A sentence of the server ends with a full stop, and the advice is added to it.
    sentence = message.rstrip(".")
    error_type = fields.get("type")
    if status == 402 or _OUT_OF_MONEY.search(f"{code} {error_type} {reason}"):
        return Refused(f"{sentence}; {_TOP_UP}", status=status, stops="always")
    is_server_error = status >= 500
    is_temporary = status in _RETRIED_STATUSES or is_server_error
    # OpenAI's and Anthropic's servers say if another try is useless.
    is_useless = headers.get("x-should-retry") == "false"
    may_retry = not is_useless and not _TOO_LARGE.search(reason)
    if is_temporary and may_retry:
        return Transient(
            message,
            status=status,
            retry_after=retry_after(headers, content),
            stops="if_first" if is_server_error else "never",
            limits=limits(headers),
        )
    is_wrong_key = status == 401 or _WRONG_KEY.search(reason) is not None
    is_rate_limit = _RATE_LIMIT_EXCEEDED.search(f"{code} {reason}") is not None
    if may_retry and is_rate_limit and not is_wrong_key:
        return Transient(message, status=429, retry_after=retry_after(headers, content))
    named_by = named_by or option("base_url")
    is_wrong_model = not is_wrong_key and _is_about_model(status, code, param, reason)
    advice = f"check {key}"
    if not is_wrong_key:
        advice = _advice(status, reason, url, named_by, is_wrong_model=is_wrong_model)
    if advice:
        message = f"{sentence}; {advice}"
    elif 300 <= status < 400:
        # Redirects are not followed: the texts go to no host that the user did not name.
        target = redact_and_truncate(headers.get("location", "another place"), secrets)
        message = f"{url} answered {status}: moved to {target}; name it with {named_by}"
    stops: Stops = "if_first" if is_wrong_model else "never"
    if is_wrong_key or status in (*_MISSING_STATUSES, 407) or status < 400:
        stops = "always"
    # A server may send anything there.
    refused_parameter = param if isinstance(param, str) else None
    if is_wrong_model:
        refused_parameter = "model"
    return Refused(message, status=status, param=refused_parameter, stops=stops)


def _is_about_model(status: int, code: Any, param: Any, reason: str) -> bool:
    """Return whether a refusal says that there is no such model, or not for this key."""
    if param == "model" or _WRONG_MODEL.search(reason):
        return True
    if status not in _MISSING_STATUSES:
        return False
    return code == "model_not_found" or _MODEL_WORD.search(reason) is not None


def _advice(
    status: int,
    reason: str,
    url: str,
    named_by: str,
    *,
    is_wrong_model: bool,
) -> str:
    """Return what to check or change after a refusal, "" if that is unknown.

    `named_by` is the option or variable of the address.
    """
    if status in _MISSING_STATUSES:
        return f"check {option('model')} and {named_by}"
    # DashScope: "parameter.enable_thinking must be set to false for non-streaming calls"
    if "enable_thinking" in reason:
        return f"turn it off with {_without_thinking()}"
    if is_wrong_model:
        return f"check {option('model')}"
    if status == 407:
        variable = proxy_variable(url) or "HTTP_PROXY"
        return f"a proxy needs a name and a password in ${variable}"
    return ""


def _without_thinking() -> str:
    """Return the option that turns thinking off for a vendor that has a key of its own for it."""
    keys = {"enable_thinking": False}
    if in_python():
        return option("extra_body", keys)
    extra_body = json.dumps(keys)
    return f"{option('extra_body')} '{extra_body}'"


def _error_object(content: bytes) -> Any:
    """Return the error in the body of a reply: an object, or a text if the body is not JSON."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace").strip()
    if isinstance(data, dict) and "error" not in data:
        data = data.get("errors", data)
    if isinstance(data, list) and len(data) == 1:
        # Gemini and Cloudflare put their errors into a list.
        data = data[0]
    return data.get("error", data) if isinstance(data, dict) else data


def _reason(
    error: Any,
    content: bytes,
    secrets: Sequence[str],
    phrase: str,
) -> str:
    """Return the server's own words; `phrase` is the name of the status, for an empty body."""
    if isinstance(error, dict) and error.get("message"):
        return redact_and_truncate(error["message"], secrets)
    server_words = error
    if not isinstance(server_words, str):
        server_words = content.decode("utf-8", "replace")
    text = redact_and_truncate(server_words, secrets)
    # Proxies answer with HTML. Its first 300 characters would tell the user nothing.
    return "a web page, not an API error" if text.startswith("<") else text or phrase


def error_status(data: Any) -> int:
    """Return the status that an error inside a 200 reply states, 0 if it states none.

    Some gateways send the errors of the server behind them like this.
    """
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, str):
        error = {"type": error}
    if not isinstance(error, dict):
        return 0
    code = str(error.get("code") or error.get("status"))
    if code.isascii() and code.isdigit() and len(code) == 3:
        return int(code) if code >= "400" else 0
    code_and_type = f"{code} {error.get('type')}".lower()
    if "rate_limit" in code_and_type:
        return 429
    return 503 if "overloaded" in code_and_type else 0


def body_error(
    data: Any,
    url: str,
    kind: str,
    named_by: str = "",
) -> ProviderError:
    """Return the error of a 200 reply whose JSON is not of a kind such as "chat completion".

    Vendors have fields of their own for errors in such replies (MiniMax, Baidu, Naver, Tencent,
    Cloudflare), so the words decide, and the message quotes the JSON.
    """
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict | str) and error:
        message = error.get("message") if isinstance(error, dict) else error
        reason = redact_and_truncate(message or error)
        stops: Stops = "never"
    else:
        json_text = redact_and_truncate(json.dumps(data, ensure_ascii=False))
        question = f"is {named_by or option('base_url')} right?"
        reason = f"no {kind}, but {json_text}; {question}"
        stops = "if_first"
    message = f"{url} answered 200: {reason}"
    if _OUT_OF_MONEY.search(reason):
        return Refused(f"{message}; {_TOP_UP}", status=200, stops="always")
    if _RATE_LIMIT.search(reason):
        return Transient(message, status=429)
    return Refused(message, status=200, stops=stops)


def connection_error(
    error: Exception,
    url: str,
    timeout: float,
    received: int,
    named_by: str = "",
) -> Transient:
    """Return the error of a connection that ended after `received` bytes of the reply.

    All of these are transient, and stop the run if they are its first answer.
    """
    import aiohttp

    no_connection_errors = (
        aiohttp.ClientConnectorError,
        aiohttp.ConnectionTimeoutError,
        aiohttp.InvalidURL,
    )
    # Under aiohttp the SDK raises a timeout for a refused connection: only the cause tells them
    # apart.
    for cause in _causes(error):
        if isinstance(cause, aiohttp.ClientConnectorCertificateError):
            return _untrusted_certificate(cause.certificate_error, url)
        if isinstance(cause, no_connection_errors):
            return _no_connection(cause, url, named_by or option("base_url"))
        if isinstance(cause, aiohttp.ClientHttpProxyError):
            return _refused_by_proxy(cause.status, url)
        if isinstance(cause, TimeoutError):
            return Transient(
                f"{url} did not answer within {timeout:g} s (see {option('timeout')})",
                billed=True,
                stops="if_first",
            )
    if isinstance(error, sdk().http.DecodingError):
        problem = "sent a reply that cannot be decompressed"
    elif received:
        problem = f"cut its reply off after {received:,} bytes"
    else:
        problem = "dropped the connection"
    return Transient(f"{url} {problem}", stops="if_first")


def _no_connection(error: Exception, url: str, named_by: str) -> Transient:
    """Return the error of an address that cannot be reached, perhaps because of a proxy."""
    reason = getattr(error, "strerror", None) or type(error).__name__
    advice = f"is it running? {named_by} names another address"
    if isinstance(getattr(error, "os_error", None), socket.gaierror):
        advice = f"check the network and the name; {named_by} names another address"
    variable = proxy_variable(url)
    if variable:
        advice = (
            f"is the proxy that ${variable} names running? $NO_PROXY lists the hosts that "
            "are reached without it"
        )
    elif "WRONG_VERSION_NUMBER" in reason:
        # A server that answers a TLS greeting in plain text
        advice = f"it speaks no TLS; does the address of {named_by} begin with http://?"
    return Transient(
        f"cannot connect to {url} ({reason}): {advice}",
        unreachable=True,
        stops="if_first",
    )


def _refused_by_proxy(status: int, url: str) -> Transient:
    """Return the error of a proxy that opens no connection to an address."""
    advice = f"check ${proxy_variable(url)}"
    if status == 407:
        advice = f"${proxy_variable(url)} needs a name and a password: http://NAME:PASSWORD@HOST"
    return Transient(
        f"cannot connect to {url}: the proxy answered {status}; {advice}",
        unreachable=True,
        stops="if_first",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _untrusted_certificate(certificate_error: Exception, url: str) -> Transient:
    reason = getattr(certificate_error, "verify_message", "") or str(certificate_error)
    return Transient(
        f"cannot connect to {url}: its certificate is not trusted ({reason}). For a certificate "
        "of your own authority, name the authority's file (.pem) in $SSL_CERT_FILE",
        unreachable=True,
        stops="if_first",
    )


def redact_and_truncate(server_words: Any, secrets: Sequence[str] = ()) -> str:
    """Return words as one short line without secrets and without control characters."""
    text = redact(str(server_words), secrets)
    line = " ".join(text[:_MAX_MESSAGE_READ].split())[:_MAX_MESSAGE]
    # A terminal would obey an escape sequence.
    printable = ""
    for character in line:
        if not character.isprintable():
            code = ord(character)
            character = f"\\x{code:02x}"
        printable += character
    return printable


def redact(text: str, secrets: Sequence[str]) -> str:
    """Return a text with `***` in place of each secret."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def retry_after(headers: Any, content: bytes = b"") -> float | None:
    """Return the seconds to wait as the server asks, None if it does not.

    The header is `retry-after-ms`, or `retry-after` in seconds or as a date. A time in the past
    is 0. A value that is neither a number nor a date, such as NaN, counts as absent. Without a
    header, the body of the error may have the seconds.
    """
    for header_name, seconds_per_unit in (
        ("retry-after-ms", 0.001),
        ("retry-after", 1.0),
    ):
        try:
            # "30s" is no number of HTTP, but gateways send it.
            wait = float(headers[header_name].removesuffix("s")) * seconds_per_unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait):
            return max(0.0, wait)
    until = _parse_date(headers.get("retry-after"))
    if until is None:
        in_body = _RETRY_IN.search(content[:_MAX_MESSAGE_READ])
        return float(in_body[1]) if in_body else None
    # The date is compared with the reply's own, in case this machine's clock is wrong.
    now = _parse_date(headers.get("date"))
    return max(0.0, until - (time.time() if now is None else now))


def _parse_date(date: str | None) -> float | None:
    """Return a header's date as seconds since 1970, None if it is not a date."""
    if not date:
        return None
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def limits(headers: Any) -> dict[str, str]:
    """Return the `x-ratelimit-*` headers by their lower-case names; empty if there are none."""
    values = {}
    for header_name, value in headers.raw:
        if header_name[:12].lower() == b"x-ratelimit-":
            name = header_name.decode("ascii", "replace").lower()
            values[name] = value.decode("latin-1")
    return values
