"""The HTTP client of OpenAI-compatible endpoints: keys, requests, replies and errors.

The official SDK's client supplies authentication, headers and its aiohttp transport. Requests go straight to that
transport, because the SDK's own path (parameter transform, copied options, response models) takes several times the CPU
of everything else. `judge.execution.layers.retried` decides about retries. Redirects are not followed, so that a text only goes
to the host that was named. A reply takes at most `MAX_REPLY_BYTES` of memory.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import cache
from importlib import import_module
from typing import IO, Any, NamedTuple, TypedDict, Unpack
from urllib.parse import urlsplit

from judge.config import RunConfig
from judge.core.errors import ConfigError, ProviderError, Refused, Stops, StorageError, Transient
from judge.core.messages import in_python, option
from judge.core.records import Usage, whole_value
from judge.core.request_options import hidden
from judge.providers.key_command import CommandKey
from judge.providers.pricing import DEFAULT_URL
from judge.providers.server_capabilities import Caching
from judge.providers.vendors import wrong_server_reason


def is_openai(url: str) -> bool:
    """Whether an address is OpenAI's."""
    host = (urlsplit(url).hostname or "").lower()
    return host == "openai.com" or host.endswith(".openai.com")


_KEY_REFUSED = (401, 403)
_RETRIED_STATUSES = {408, 409, 429}
_STOPPING_STATUSES = {401, 404}
_OUT_OF_MONEY_CODES = ("insufficient_quota", "billing_hard_limit_reached")
_MAX_MESSAGE, _MAX_MESSAGE_READ = 300, 100_000
_MODEL = re.compile(r"(?<![\w/])model\b", re.I)
"""A 404 that has this word, and not in an address, is about the model."""


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
    """Return the error of a reply with this status, which is not 2xx. Secrets that the server repeats are redacted."""
    headers = reply.headers
    named_by = named_by or option("base_url")
    try:
        data = json.loads(content)
        error = data.get("error", data) if isinstance(data, dict) else data
    except (ValueError, RecursionError):
        error = content.decode("utf-8", "replace").strip()
    fields = error if isinstance(error, dict) else {}
    if fields.get("message"):
        reason = redact_and_truncate(fields["message"], secrets)
    else:
        text = redact_and_truncate(
            error if isinstance(error, str) else content.decode("utf-8", "replace"), secrets
        )
        reason = "a web page, not an API error" if text[:1] == "<" else text or reply.reason_phrase
    code, param = fields.get("code"), fields.get("param")
    message = f"{url} answered {status}: {reason}"
    if code in _OUT_OF_MONEY_CODES:
        return Refused(
            f"{message}; top up, then start the same command again", status=status, stops="always"
        )
    if (status in _RETRIED_STATUSES or status >= 500) and headers.get("x-should-retry") != "false":
        again: Stops = "if_first" if status >= 500 else "never"
        wait = _retry_after(headers)
        return Transient(
            message, status=status, retry_after=wait, stops=again, limits=limits(headers)
        )
    if status == 401:
        message = f"{message.rstrip('.')}; check {key}"
    elif status == 404:
        message = f"{message.rstrip('.')}; check {option('model')} and {named_by}"
    elif 300 <= status < 400:
        place = redact_and_truncate(headers.get("location", "another place"), secrets)
        message = f"{url} answered {status}: moved to {place}; name it with {named_by}"
    stops: Stops = "always" if status in _STOPPING_STATUSES or status < 400 else "never"
    if status == 404 and (code == "model_not_found" or _MODEL.search(reason)):
        param = "model"
    return Refused(
        message, status=status, param=param if isinstance(param, str) else None, stops=stops
    )


def _error_status(data: Any) -> int:
    """Return the status that an error inside a 200 reply states, as some gateways send it; 0 if it states none."""
    error = data.get("error") if isinstance(data, dict) else None
    if not isinstance(error, dict):
        return 0
    code = str(error.get("code") or error.get("status"))
    if code.isascii() and code.isdigit() and len(code) == 3:
        return int(code) if code >= "400" else 0
    name = f"{code} {error.get('type')}".lower()
    return 429 if "rate_limit" in name else 503 if "overloaded" in name else 0


def body_error(data: Any, url: str, kind: str, named_by: str = "") -> Refused:
    """Return the error of a 200 reply whose JSON is not of this kind, such as "chat completion"."""
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict | str) and error:
        message = error.get("message") if isinstance(error, dict) else error
        return Refused(f"{url} answered: {redact_and_truncate(message or error)}")
    return Refused(
        f"{url} answered with JSON that is no {kind}; is {named_by or option('base_url')} right?",
        stops="if_first",
    )


def connection_error(
    error: Exception, url: str, timeout: float, received: int, named_by: str = ""
) -> Transient:
    """Return the error of a connection that ended after this many bytes of the reply.

    Under aiohttp the SDK calls a refused connection a time-out.
    """
    import aiohttp

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, aiohttp.ClientConnectorCertificateError):
            why = getattr(cause.certificate_error, "verify_message", "") or str(
                cause.certificate_error
            )
            return Transient(
                f"cannot connect to {url}: its certificate is not trusted ({why}). For a certificate of your own "
                "authority, name the authority's file (.pem) in $SSL_CERT_FILE",
                unreachable=True,
                stops="if_first",
            )
        if isinstance(
            cause,
            aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL,
        ):
            why = getattr(cause, "strerror", None) or type(cause).__name__
            elsewhere = f"{named_by or option('base_url')} names another address"
            return Transient(
                f"cannot connect to {url} ({why}): is it started? {elsewhere}",
                unreachable=True,
                stops="if_first",
            )
        if isinstance(cause, TimeoutError):
            return Transient(
                f"{url} did not answer within {timeout:g} s (see {option('timeout')})",
                billed=True,
                stops="if_first",
            )
        cause = cause.__cause__
    if isinstance(error, _sdk().http.DecodingError):
        return Transient(f"{url} sent a reply that cannot be decompressed", stops="if_first")
    problem = (
        f"cut its reply off after {received:,} bytes" if received else "dropped the connection"
    )
    return Transient(f"{url} {problem}", stops="if_first")


def redact_and_truncate(words: Any, secrets: Sequence[str] = ()) -> str:
    """Words on one line, not too many, with the secrets blotted out and nothing in them that a terminal obeys."""
    text = _blot(str(words), secrets)
    text = " ".join(text[:_MAX_MESSAGE_READ].split())[:_MAX_MESSAGE]
    return "".join(
        character if character.isprintable() else f"\\x{ord(character):02x}" for character in text
    )


def _blot(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _retry_after(headers: Any) -> float | None:
    """Seconds to wait as the server asks: `retry-after-ms`, or `retry-after` in seconds or as a date.

    A date is compared with the reply's own, in case this machine's clock is wrong. A time in the past is 0. A value
    that is neither, such as NaN, counts as absent: None.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait):
            return max(0.0, wait)
    until, now = _parse_date(headers.get("retry-after")), _parse_date(headers.get("date"))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _parse_date(date: str | None) -> float | None:
    """A header's date as seconds since 1970."""
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, OverflowError):
        return None


def limits(headers: Any) -> dict[str, str]:
    """The `x-ratelimit-*` headers, by their names in lower case; empty where the server, or a proxy, sends none."""
    return {
        name.decode("ascii", "replace").lower(): value.decode("latin-1")
        for name, value in headers.raw
        if name[:12].lower() == b"x-ratelimit-"
    }


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_JSON = {"content-type": "application/json"}
_MIN_KEY_LENGTH = 12
_MAX_TOKENS = 10_000_000  # of one reply; no model reads or writes more
MAX_REPLY_BYTES = 64_000_000
"""Bytes of one reply, unpacked; those with 20 probabilities for each of 4,096 tokens have some 7 million."""
MAX_TEXT = 1_000_000
"""Characters of one text in a reply."""
_MAX_TEXT_BYTES = 2 * MAX_TEXT
"""Bytes of each text of a reply without probabilities: JSON may write a character of three bytes in six."""


class Reply(NamedTuple):
    """The JSON of a reply, and its `x-ratelimit-*` headers."""

    data: Any
    limits: dict[str, str]


class _Sdk(NamedTuple):
    """The official SDK, its aiohttp, and its HTTP library: httpx for openai 2, httpx2 for openai 3."""

    openai: Any
    aiohttp: Any
    http: Any


@cache
def _sdk() -> _Sdk:
    """Import the SDK. A run that finds all its replies in the cache never does, and is half a second quicker."""
    openai = import_module("openai")
    library = type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0]
    return _Sdk(openai, import_module("aiohttp"), import_module(library))


class Options(TypedDict, total=False):
    """How to reach an endpoint.

    `base_url` None is $OPENAI_BASE_URL, else OpenAI itself; `key_env` names the environment variable with the key;
    `key_command` prints the key instead; `headers` are sent with every request;
    `timeout` is for a whole reply, in seconds; `connections` are the most kept open at once. `caching` is what the
    server may be told of it (default: everything at OpenAI, nothing elsewhere), `needs_key` whether it insists on a
    key (default: OpenAI does, and one that is not the usual variable's was named for a reason). `key_header` takes the
    key alone, in place of `authorization`. `named_by` is what the user set the address with (default: the option
    base_url, or $OPENAI_BASE_URL), for messages.
    """

    base_url: str | None
    key_env: str
    key_command: str | None
    headers: Mapping[str, str]
    timeout: float
    connections: int
    caching: Caching
    needs_key: bool
    key_header: str
    named_by: str


_DEFAULTS: Options = {
    "base_url": None, "key_env": "OPENAI_API_KEY", "key_command": None, "headers": {}, "timeout": 120.0,
    "connections": 64, "key_header": "", "named_by": "",
}  # fmt: skip


def options(config: RunConfig) -> Options:
    """The part of a plan that says how to reach its endpoint."""
    return {
        "base_url": config.base_url, "key_env": config.key_env, "key_command": config.key_command,
        "headers": config.headers, "timeout": config.timeout, "connections": config.max_concurrency,
        "named_by": config.address_set_by,
    }  # fmt: skip


class HttpClient:
    """One address, used in one event loop at a time. Raises ConfigError for an address or a key that cannot be one.

    The key is read from the environment variable `key_env` when a request is sent, and kept nowhere else; where
    the server repeats it, it is blotted out. A `key_command` runs before the first request instead, and again when the
    server answers 401 or 403. Only the default address insists on a key: servers of one's own often want none.
    """

    def __init__(self, **given: Unpack[Options]) -> None:
        self._options: Options = {**_DEFAULTS, **given}
        key_env, key_command = self._options["key_env"], self._options["key_command"]
        # Messages repeat nothing that may be a secret.
        own_url, of_environment = self._options["base_url"], os.environ.get("OPENAI_BASE_URL")
        url = own_url or of_environment or DEFAULT_URL
        in_variable = "$OPENAI_BASE_URL" if of_environment and not own_url else ""
        self.named_by = self._options["named_by"] or in_variable or option("base_url")
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ConfigError(
                f"{self.named_by} must be an address alone: no password, nothing after ? or #; keys go into "
                f"{option('key_env')}"
            )
        if parts.scheme not in ("http", "https") or not parts.netloc:
            quoted = "" if "@" in url or "?" in url else f" {url!r}"
            raise ConfigError(
                f"{self.named_by}{quoted} is not a URL; write for example http://127.0.0.1:8000/v1"
            )
        self.url = url.rstrip("/")
        headers = self._options["headers"]
        self._secret_headers = {
            name: value for name, value in headers.items() if hidden(name, value)
        }
        if key_command is None and (why := wrong_server_reason(key_env, self.url)):
            raise ConfigError(
                f"{why}; put that server's key into a variable of its own, and name it with key_env"
            )
        openai_itself = self.url == DEFAULT_URL
        self.caching: Caching = given.get("caching", "explicit" if openai_itself else "")
        needed = given.get("needs_key", openai_itself or key_env != "OPENAI_API_KEY")
        if needed and not (key_command or self._secret_headers or _key(key_env)):
            raise ConfigError(
                f"no key: ${key_env} is not set. Set it, or name a server of your own with {option('base_url')}; "
                f"{'a function of yours can be the model' if in_python() else '`make demo` shows a run'} without either"
            )
        self._key_env = key_env
        self._keys = CommandKey(key_command)
        self._needs_key = needed
        self._transport: Any = None
        self._addresses: dict[str, Any] = {}

    @property
    def options(self) -> Options:
        """What makes this endpoint again in another process, which has to have a key of its own where this one has.

        Raises ConfigError for secret headers, which go into no other process.
        """
        if self._secret_headers:
            name = next(iter(self._secret_headers))
            raise ConfigError(
                f"header {name}: a secret is not sent to other processes; use {option('key_env')} or "
                f"{option('key_command')}, or leave out {option('engine')}"
            )
        needs_key = self._needs_key or bool(not self._keys.command and _key(self._key_env))
        return {
            **self._options,
            "base_url": self.url,
            "named_by": self.named_by,
            "caching": self.caching,
            "needs_key": needs_key,
        }

    async def post(self, path: str, body: dict[str, Any]) -> Reply:
        """What a 200 to `POST {url}{path}` holds. Raises Transient or Refused."""
        most = MAX_REPLY_BYTES if "logprobs" in body else _MAX_TEXT_BYTES * body.get("n", 1)
        return await self._reply(
            "POST", path, most=most, content=_encode(body).encode(), headers=_JSON
        )

    async def send(self, path: str, content: bytes, seconds: float) -> Any:
        """The JSON that a 200 to a `POST` of this JSON holds. Raises Transient or Refused."""
        return (await self._reply("POST", path, seconds, content=content, headers=_JSON)).data

    async def get(self, path: str, most: int = MAX_REPLY_BYTES) -> Any:
        """The JSON that a 200 to `GET {url}{path}` holds. Raises Transient or Refused."""
        return (await self._reply("GET", path, most=most)).data

    async def upload(
        self, path: str, fields: dict[str, str], file: tuple[str, IO[bytes], str], seconds: float
    ) -> Any:
        """The JSON that a 200 to a form with a file (its name, itself, its type) holds. Raises Transient or Refused."""
        return (await self._reply("POST", path, seconds, data=fields, files={"file": file})).data

    async def download(self, path: str, into: IO[bytes], most: int, seconds: float) -> None:
        """Write what a 200 to `GET {url}{path}` holds, of `most` bytes. Raises Transient, Refused, StorageError."""

        def write(part: bytes) -> None:
            try:
                into.write(part)
            except OSError as error:
                raise StorageError(
                    f"a file of answers cannot be written: {error.strerror or error}"
                ) from error

        into.seek(0)
        into.truncate()
        async with self._open("GET", path, seconds) as reply:
            await _read(reply, self.url, most, write)

    async def _reply(
        self,
        method: str,
        path: str,
        seconds: float | None = None,
        most: int = MAX_REPLY_BYTES,
        **content: Any,
    ) -> Reply:
        """The JSON of a 2xx reply of at most `most` bytes. Raises Transient or Refused."""
        async with self._open(method, path, seconds, **content) as reply:
            parts: list[bytes] = []
            await _read(reply, self.url, most, parts.append)
            whole = self.redacted(b"".join(parts))
        secrets = self._secrets()
        try:
            data = json.loads(whole)
        except (ValueError, RecursionError) as error:
            kind = redact_and_truncate(
                reply.headers.get("content-type", "no content type").partition(";")[0], secrets
            )
            start = whole.lstrip()[:1]
            if start in (b"{", b"[") or (start != b"<" and "json" in kind):
                cut = whole.rstrip()[-1:] not in (b"}", b"]")
                problem = (
                    f"cut its reply off after {len(whole):,} bytes"
                    if cut
                    else f"sent invalid JSON ({error})"
                )
                raise Transient(f"{self.url} {problem}", stops="if_first") from error
            hint = f"is {self.named_by} right? It usually ends in /v1"
            message = f"{self.url} answered with {kind} instead of JSON; {hint}"
            raise Refused(message, status=reply.status_code, stops="if_first") from error
        if b"\\u" in whole:  # only there can JSON have a lone surrogate
            try:
                data = whole_value(data)
            except RecursionError as error:
                problem = "sent JSON that is nested too deeply"
                raise Transient(f"{self.url} {problem}", stops="if_first") from error
        if status := _error_status(data):
            raise status_error(reply, whole, self.url, secrets, status, named_by=self.named_by)
        # In the text of JSON a secret may be written with escapes.
        return Reply(
            data if b"\\" not in whole else _redacted(data, secrets), limits(reply.headers)
        )

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, seconds: float | None = None, **content: Any
    ) -> AsyncIterator[Any]:
        """The beginning of a reply with status 2xx, which ends within so many seconds. Raises Transient or Refused."""
        if self._transport is None:
            self._connect()
        sdk = _sdk()
        if path not in self._addresses:
            self._addresses[path] = sdk.http.URL(f"{self.url}{path}")
        longest = self._options["timeout"] if seconds is None else seconds
        if seconds is not None:
            content["timeout"] = seconds
        received, number = 0, await self._keys.number()
        try:
            async with asyncio.timeout(
                longest
            ) as limit:  # for the whole reply; the transport's own is for each read
                reply = await self._send(method, self._addresses[path], number, content)
                try:
                    if number and (
                        newer := await self._newer_key(number, reply.status_code, limit)
                    ):
                        await reply.aclose()
                        reply = await self._send(method, self._addresses[path], newer, content)
                    if not reply.is_success:
                        parts: list[bytes] = []
                        await _read(reply, self.url, MAX_REPLY_BYTES, parts.append)
                        key = "the key in the environment" if not number else option("key_command")
                        raise status_error(
                            reply, b"".join(parts), self.url, self._secrets(), reply.status_code, key=key,
                            named_by=self.named_by,
                        )  # fmt: skip
                    yield reply
                finally:
                    received = reply.num_bytes_downloaded
                    await reply.aclose()
        except (sdk.aiohttp.ClientError, sdk.http.RequestError, TimeoutError) as error:
            raise connection_error(error, self.url, longest, received, self.named_by) from error

    async def _send(self, method: str, address: Any, number: int, content: dict[str, Any]) -> Any:
        """Send a request with the key of this number."""
        key = self._authorization(self._keys.values[number - 1]) if number else {}
        for _, file, _ in content.get("files", {}).values():
            file.seek(0)
        headers = content.get("headers", {}) | key
        request = self._transport.build_request(method, address, **{**content, "headers": headers})
        return await self._transport.send(request, stream=True)

    def _authorization(self, key: str) -> dict[str, str]:
        header = self._options["key_header"]
        return {header: key} if header else {"authorization": f"Bearer {key}"}

    async def _newer_key(self, number: int, status: int, limit: asyncio.Timeout) -> int:
        """Return the number of the key with which to repeat a request, 0 if it is not to be repeated."""
        before, now = limit.when(), asyncio.get_running_loop().time()
        limit.reschedule(None)  # a command may take longer than a reply
        newer = await self._keys.after(number, refused=status in _KEY_REFUSED)
        limit.reschedule(before and before + asyncio.get_running_loop().time() - now)
        return newer

    def redacted(self, content: bytes) -> bytes:
        """What a server sent, without the secrets in case it repeats them."""
        for secret in self._secrets():
            content = content.replace(secret.encode(), b"***")
        return content

    def _secrets(self) -> list[str]:
        """The keys and the values of the user's headers, unless they are too short for a secret.

        What a server of one's own is told ("x", "none") is no secret. Blotted out, such a word would be missing from
        the replies.
        """
        held = [_key(self._key_env), *self._keys.values, *self._options["headers"].values()]
        held += [
            word for value in self._secret_headers.values() for word in value.split()[1:]
        ]  # Bearer KEY
        return [secret for secret in held if len(secret) >= _MIN_KEY_LENGTH]

    async def aclose(self) -> None:
        """Let go of connections. The endpoint may be used again afterwards, in another event loop."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    def _connect(self) -> None:
        openai = _sdk().openai
        self._keys.connect()
        most = self._options["connections"]
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=most, max_keepalive_connections=most
        )
        timeout = openai.Timeout(self._options["timeout"], connect=10.0)
        self._transport = openai.DefaultAioHttpClient(
            limits=limits, timeout=timeout, follow_redirects=False
        )
        key = (not self._keys.command and _key(self._key_env)) or "no-key"
        client = openai.AsyncOpenAI(
            api_key=key,
            base_url=self.url,
            http_client=self._transport,
        )
        self._transport.headers.update(  # without what the SDK tells about this machine
            {
                name: value
                for name, value in client.default_headers.items()
                if isinstance(value, str) and not name.startswith("X-Stainless")
                if name.lower() not in ("authorization", "content-type")
                if not name.startswith("OpenAI-") or is_openai(self.url)
            }
        )
        self._transport.headers.update({**self._authorization(key), **self._options["headers"]})


_MAX_TOTAL_BYTES = 4 * MAX_REPLY_BYTES
"""The most bytes of all replies together that are being read; many at once may be bombs."""
_SMALL_REPLY = 1_000_000
"""Bytes of a reply that is read however many others there are."""
_in_flight: dict[int, int] = {}
"""The bytes read so far, for each reply that is being read."""


async def _read(reply: Any, url: str, most: int, take: Callable[[bytes], object]) -> None:
    """Hand `take` the parts of a reply, decompressed. Raises Refused beyond `most` bytes.

    Also refused is a large reply if all that are being read take more than `_MAX_TOTAL_BYTES`.
    """
    try:
        await _read_parts(reply, url, most, take)
    finally:
        _in_flight.pop(id(reply), None)


async def _read_parts(reply: Any, url: str, most: int, take: Callable[[bytes], object]) -> None:
    size = 0
    async with aclosing(reply.aiter_bytes()) as parts:
        async for part in parts:
            size += len(part)
            _in_flight[id(reply)] = size
            if size > _SMALL_REPLY and sum(_in_flight.values()) > max(_MAX_TOTAL_BYTES, most):
                total = f"{max(_MAX_TOTAL_BYTES, most) / 1e6:,.0f} MB"
                many = f"{url} answered several requests at once with more than {total} together"
                raise Refused(
                    f"{many}; is the address right?",
                    status=reply.status_code,
                    billed=True,
                    stops="if_first",
                )
            if size > most:
                many = f"{url} answered with more than {most / 1e6:,.0f} MB, which no judge's reply has"
                raise Refused(
                    f"{many}; is the address right?",
                    status=reply.status_code,
                    billed=True,
                    stops="if_first",
                )
            take(part)


def _redacted(data: Any, secrets: Sequence[str]) -> Any:
    """JSON without the secrets, which in the text of it may be written with escapes."""
    if isinstance(data, str):
        return _blot(data, secrets)
    if isinstance(data, dict):
        return {name: _redacted(value, secrets) for name, value in data.items()}
    return [_redacted(entry, secrets) for entry in data] if isinstance(data, list) else data


def usage(data: Any, read: str, written: str) -> Usage:
    """The tokens used, by the names `{read}_tokens` and `{written}_tokens`.

    What a server does not count, or counts in no way a number should look, is 0. Some count what they read from a cache
    or wrote to one besides the tokens read, and not among them.
    """

    def count(name: str, details: str | None = None) -> int:
        where = data.get(details) if details and isinstance(data, dict) else data
        value = where.get(name) if isinstance(where, dict) else None
        return value if type(value) is int and 0 <= value <= _MAX_TOKENS else 0

    tokens, details = count(f"{read}_tokens"), f"{read}_tokens_details"
    cache_reads, cache_writes = (
        count("cached_tokens", details),
        count("cache_write_tokens", details),
    )
    return Usage(
        tokens if cache_reads + cache_writes <= tokens else tokens + cache_reads + cache_writes,
        count(f"{written}_tokens"),
        cache_reads,
        count("reasoning_tokens", f"{written}_tokens_details"),
        cache_writes,
    )


def _key(name: str) -> str:
    """The key in an environment variable. Raises ConfigError where it cannot stand in an HTTP header."""
    if not name.isidentifier():
        raise ConfigError(
            f"{option('key_env')} takes the name of an environment variable, not a key: "
            f"{option('key_env', 'OPENAI_API_KEY')}"
        )
    key = os.environ.get(name, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"${name} holds characters that no key has; set it again")
    return key
