"""The HTTP client of OpenAI-compatible endpoints: keys, requests and replies.

The official SDK's client supplies authentication, headers and its aiohttp transport. Requests go
straight to that transport, because the SDK's own path (parameter transform, copied options,
response models) takes several times the CPU of everything else
(docs/decisions/0037-requests-use-the-transport-of-openai-2-or-3.md).
`judge.execution.layers.retried` decides about retries. Redirects are not followed, so that a text
only goes to the host that was named. `judge.providers.reply_body` limits the memory of replies.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any, NamedTuple, TypedDict, Unpack
from urllib.parse import urlsplit

from judge.config import RunConfig
from judge.core.errors import (
    ConfigError,
    ProviderError,
    Refused,
    StorageError,
    Transient,
)
from judge.core.messages import in_python, option
from judge.core.normalization import whole_value
from judge.core.request_options import hidden
from judge.providers.http_errors import (
    connection_error,
    error_status,
    limits,
    redact,
    redact_and_truncate,
    status_error,
)
from judge.providers.key_command import CommandKey
from judge.providers.pricing import DEFAULT_URL
from judge.providers.proxies import check_proxy, wrong_proxy
from judge.providers.reply_body import MAX_REPLY_BYTES, read_body, read_whole_body
from judge.providers.sdk import sdk, tls_context
from judge.providers.server_capabilities import Caching
from judge.providers.vendors import wrong_server_reason

_REFUSED_KEY_STATUSES = (401, 403)
_CONNECT_SECONDS = 10.0
_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode
_JSON_HEADERS = {"content-type": "application/json"}
# Local servers are often given keys such as "x", which are no secret.
_MIN_SECRET_LENGTH = 12
MAX_TEXT = 1_000_000
"""Characters of one text in a reply."""
# Bytes of each text of a reply without probabilities. JSON may write the three bytes of "€" as six:
# "\u20ac".
_MAX_TEXT_BYTES = 2 * MAX_TEXT


def is_openai(url: str) -> bool:
    """Return whether an address is OpenAI's."""
    host = (urlsplit(url).hostname or "").lower()
    return host == "openai.com" or host.endswith(".openai.com")


class Reply(NamedTuple):
    """The JSON of a reply, and its `x-ratelimit-*` headers."""

    data: Any
    limits: dict[str, str]


class Options(TypedDict, total=False):
    """How to reach an endpoint.

    `base_url` None is $OPENAI_BASE_URL, else OpenAI itself. `named_by` is what the user set the
    address with, for messages (default: the option base_url, or $OPENAI_BASE_URL).

    `key_env` names the environment variable with the key; `key_command` prints the key instead.
    `needs_key` is whether the server insists on a key. By default OpenAI does, and so does any
    server if the variable is not the usual one, because it was named for a reason. `key_header`
    takes the key alone and replaces `authorization`. `headers` are sent with every request.

    `timeout` is for a whole reply, in seconds; `connections` are the most kept open at once.
    `caching` selects the prompt-cache fields of requests (default: all at OpenAI, none elsewhere).
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
    "base_url": None,
    "key_env": "OPENAI_API_KEY",
    "key_command": None,
    "headers": {},
    "timeout": 120.0,
    "connections": 64,
    "key_header": "",
    "named_by": "",
}


def options(config: RunConfig) -> Options:
    """Return the part of a run configuration that says how to reach its endpoint."""
    return {
        "base_url": config.base_url,
        "key_env": config.key_env,
        "key_command": config.key_command,
        "headers": config.headers,
        "timeout": config.timeout,
        "connections": config.max_concurrency,
        "named_by": config.address_set_by,
    }


class HttpClient:
    """One address, used in one event loop at a time. Raises ConfigError for a bad address or key.

    The key is read from the environment variable `key_env` when a request is sent, and stored
    nowhere else; if the server repeats it, it is redacted. A `key_command` runs before the first
    request instead, and again when the server answers 401 or 403. Only the default address insists
    on a key, because local servers often need none.
    """

    def __init__(self, **http_options: Unpack[Options]) -> None:
        self._options: Options = {**_DEFAULTS, **http_options}
        self._set_address(self._options["base_url"])
        headers = self._options["headers"]
        self._secret_headers = {
            name: value for name, value in headers.items() if hidden(name, value)
        }
        self._key_env = self._options["key_env"]
        key_command = self._options["key_command"]
        if key_command is None:
            self._check_key_is_of_this_server()
        is_default = self.url == DEFAULT_URL
        default_caching: Caching = "explicit" if is_default else ""
        self.caching: Caching = http_options.get("caching", default_caching)
        names_variable = self._key_env != _DEFAULTS["key_env"]
        self._needs_key = http_options.get("needs_key", is_default or names_variable)
        if self._needs_key and not key_command and not self._secret_headers:
            self._check_key_is_set()
        self._keys = CommandKey(key_command)
        self._transport: Any = None
        self._url_by_path: dict[str, Any] = {}

    def _check_key_is_of_this_server(self) -> None:
        """Raise ConfigError if the variable's name says that its key is for another server."""
        reason = wrong_server_reason(self._key_env, self.url)
        if reason:
            raise ConfigError(
                f"{reason}; put that server's key into a variable of its own, and name it "
                "with key_env"
            )

    def _check_key_is_set(self) -> None:
        if _key(self._key_env):
            return
        other_model = "or see a run without either: `judge init my-project`"
        if in_python():
            other_model = "or use a function of your own as the model"
        raise ConfigError(
            f"no key: ${self._key_env} is not set. Set it, or ask a server that needs no key "
            f"({option('base_url', 'URL')} without {option('key_env')}), {other_model}"
        )

    def _set_address(self, base_url: str | None) -> None:
        """Set `url`, and `named_by` for messages, which repeat nothing that may be a secret."""
        in_environment = os.environ.get("OPENAI_BASE_URL")
        url = base_url or in_environment or DEFAULT_URL
        variable = "$OPENAI_BASE_URL" if in_environment and not base_url else ""
        self.named_by = self._options["named_by"] or variable or option("base_url")
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ConfigError(
                f"{self.named_by} must be an address alone: no password, nothing after ? or #; "
                f"keys go into {option('key_env')}"
            )
        if parts.scheme not in ("http", "https") or not parts.netloc:
            # Behind @ or ? there may be a password, although the address is not a URL.
            quoted = "" if "@" in url or "?" in url else f" {url!r}"
            raise ConfigError(
                f"{self.named_by}{quoted} is not a URL; write for example http://127.0.0.1:8000/v1"
            )
        self.url = url.rstrip("/")

    @property
    def options(self) -> Options:
        """The options with which another process makes this client.

        They hold no key, so the other process needs its own if this one has one. Raises ConfigError
        for secret headers, which are sent to no other process.
        """
        if self._secret_headers:
            name = next(iter(self._secret_headers))
            environment_option = option("key_env")
            command_option = option("key_command")
            raise ConfigError(
                f"header {name}: a secret is not sent to other processes; use {environment_option} "
                f"or {command_option}, or leave out {option('engine')}"
            )
        has_key = not self._keys.command and bool(_key(self._key_env))
        return {
            **self._options,
            "base_url": self.url,
            "named_by": self.named_by,
            "caching": self.caching,
            "needs_key": self._needs_key or has_key,
        }

    async def post(self, path: str, body: dict[str, Any]) -> Reply:
        """Return the 200 reply to `POST {url}{path}`. Raises Transient or Refused."""
        max_bytes = MAX_REPLY_BYTES
        if "logprobs" not in body:
            max_bytes = _MAX_TEXT_BYTES * body.get("n", 1)
        content = _encode(body).encode()
        return await self._reply(
            "POST",
            path,
            max_bytes=max_bytes,
            content=content,
            headers=_JSON_HEADERS,
        )

    async def send(self, path: str, content: bytes, seconds: float) -> Any:
        """Return the JSON of the 200 reply to a `POST` of encoded JSON, within this time.

        Raises Transient or Refused.
        """
        reply = await self._reply(
            "POST", path, seconds, content=content, headers=_JSON_HEADERS
        )
        return reply.data

    async def get(self, path: str, max_bytes: int = MAX_REPLY_BYTES) -> Any:
        """Return the JSON of the 200 reply to `GET {url}{path}`. Raises Transient or Refused."""
        reply = await self._reply("GET", path, max_bytes=max_bytes)
        return reply.data

    async def upload(
        self,
        path: str,
        fields: dict[str, str],
        file: tuple[str, IO[bytes], str],
        seconds: float,
    ) -> Any:
        """Return the JSON of the 200 reply to a form with a file, within this time.

        `file` is the file's name, its content and its media type. Raises Transient or Refused.
        """
        reply = await self._reply(
            "POST", path, seconds, data=fields, files={"file": file}
        )
        return reply.data

    async def download(
        self,
        path: str,
        into: IO[bytes],
        max_bytes: int,
        seconds: float,
    ) -> None:
        """Write the 200 reply to `GET {url}{path}`, at most `max_bytes`, into a file.

        Raises Transient, Refused, StorageError.
        """

        def write(part: bytes) -> None:
            try:
                into.write(part)
            except OSError as error:
                raise StorageError(
                    f"a file of answers cannot be written: {error.strerror or error}"
                ) from error

        # An earlier attempt may have written a part.
        into.seek(0)
        into.truncate()
        async with self._open("GET", path, seconds) as reply:
            await read_body(reply, self.url, max_bytes, write)

    async def _reply(
        self,
        method: str,
        path: str,
        seconds: float | None = None,
        max_bytes: int = MAX_REPLY_BYTES,
        **content: Any,
    ) -> Reply:
        """Return the JSON of a 2xx reply. Raises Transient or Refused.

        `content` is the body and its headers, as the transport's `build_request` takes them.
        """
        async with self._open(method, path, seconds, **content) as reply:
            raw_body = await read_whole_body(reply, self.url, max_bytes)
        body = self.redacted(raw_body)
        secrets = self._secrets()
        data = self._parsed(reply, body)
        # Some servers answer 200 with an error inside.
        status = error_status(data)
        if status:
            raise status_error(
                reply, body, self.url, secrets, status, named_by=self.named_by
            )
        # With escapes, a secret in the parsed texts may not have been visible in the bytes.
        if b"\\" in body:
            data = _redacted_value(data, secrets)
        return Reply(data, limits(reply.headers))

    def _parsed(self, reply: Any, body: bytes) -> Any:
        """Return the JSON of a body, without lone surrogates. Raises Transient or Refused."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._not_json(reply, body, error) from error
        # Only an escape can write a lone surrogate in JSON that is UTF-8: "\ud83d".
        if b"\\u" not in body:
            return data
        try:
            return whole_value(data)
        except RecursionError as error:
            problem = "sent JSON that is nested too deeply"
            raise Transient(f"{self.url} {problem}", stops="if_first") from error

    def _not_json(
        self, reply: Any, body: bytes, error: Exception
    ) -> Transient | Refused:
        """Return the error of a 200 reply that is not JSON.

        What began as JSON may arrive whole next time; a web page will not turn into JSON.
        """
        content_type = reply.headers.get("content-type", "no content type")
        # "text/html; charset=utf-8"
        media_type, _, _ = content_type.partition(";")
        content_kind = redact_and_truncate(media_type, self._secrets())
        start = body.lstrip()[:1]
        last_character = body.rstrip()[-1:]
        if start in (b"{", b"[") or (start != b"<" and "json" in content_kind):
            problem = f"cut its reply off after {len(body):,} bytes"
            if last_character in (b"}", b"]"):
                problem = f"sent invalid JSON ({error})"
            return Transient(f"{self.url} {problem}", stops="if_first")
        hint = f"is {self.named_by} right? It usually ends in /v1"
        message = f"{self.url} answered with {content_kind} instead of JSON; {hint}"
        return Refused(message, status=reply.status_code, stops="if_first")

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        seconds: float | None = None,
        **content: Any,
    ) -> AsyncIterator[Any]:
        """Open a 2xx reply, which has to end within this time. Raises Transient or Refused.

        If a command prints the key and the server refuses it, send the request once more with the
        key that the command prints next.
        """
        if self._transport is None:
            self._connect()
        libraries = sdk()
        url = self._parsed_url(path)
        max_seconds = self._options["timeout"] if seconds is None else seconds
        if seconds is not None:
            content["timeout"] = seconds
        n_received = 0
        key_number = await self._keys.number()
        has_command = key_number > 0
        try:
            # This limit is for the whole reply; the transport's own is for each read.
            async with asyncio.timeout(max_seconds) as limit:
                reply = await self._send(method, url, key_number, content)
                try:
                    newer_key = 0
                    if has_command:
                        status = reply.status_code
                        newer_key = await self._newer_key(key_number, status, limit)
                    if newer_key:
                        await reply.aclose()
                        reply = await self._send(method, url, newer_key, content)
                    if not reply.is_success:
                        raise await self._status_error(reply, has_command=has_command)
                    yield reply
                finally:
                    n_received = reply.num_bytes_downloaded
                    await reply.aclose()
        except (
            libraries.aiohttp.ClientError,
            libraries.http.RequestError,
            TimeoutError,
        ) as error:
            raise connection_error(
                error,
                self.url,
                max_seconds,
                n_received,
                self.named_by,
            ) from error

    def _parsed_url(self, path: str) -> Any:
        """Return the URL of a path. The transport would parse a text again for every request."""
        if path not in self._url_by_path:
            self._url_by_path[path] = sdk().http.URL(f"{self.url}{path}")
        return self._url_by_path[path]

    async def _status_error(self, reply: Any, *, has_command: bool) -> ProviderError:
        """Read a reply that is not 2xx, and return its error."""
        body = await read_whole_body(reply, self.url)
        source_of_key = "the key in the environment"
        if has_command:
            source_of_key = option("key_command")
        return status_error(
            reply,
            body,
            self.url,
            self._secrets(),
            reply.status_code,
            key=source_of_key,
            named_by=self.named_by,
        )

    async def _send(
        self,
        method: str,
        url: Any,
        key_number: int,
        content: dict[str, Any],
    ) -> Any:
        """Send a request with the command's key of this number.

        With 0, the request has the key in the environment, which all requests have by default.
        """
        headers = dict(content.get("headers", {}))
        if key_number:
            headers |= self._authorization(self._keys.values[key_number - 1])
        # A request with a newer key sends its file a second time.
        for _, file, _ in content.get("files", {}).values():
            file.seek(0)
        content = {**content, "headers": headers}
        request = self._transport.build_request(method, url, **content)
        return await self._transport.send(request, stream=True)

    def _authorization(self, key: str) -> dict[str, str]:
        own_header = self._options["key_header"]
        if own_header:
            return {own_header: key}
        return {"authorization": f"Bearer {key}"}

    async def _newer_key(
        self, key_number: int, status: int, limit: asyncio.Timeout
    ) -> int:
        """Return the number of the key to repeat a request with, 0 not to repeat it.

        `status` is the server's answer to the key. The time of the command, which may take longer
        than a reply, does not count towards the `limit`.
        """
        deadline = limit.when()
        loop = asyncio.get_running_loop()
        start = loop.time()
        limit.reschedule(None)
        is_refused = status in _REFUSED_KEY_STATUSES
        newer_key = await self._keys.after(key_number, refused=is_refused)
        if deadline is not None:
            limit.reschedule(deadline + loop.time() - start)
        return newer_key

    def redacted(self, content: bytes) -> bytes:
        """Return what a server sent without the secrets, in case it repeats them."""
        for secret in self._secrets():
            content = content.replace(secret.encode(), b"***")
        return content

    def _secrets(self) -> list[str]:
        """Return the keys and the values of the user's headers.

        Short placeholders such as "x" or "none" are left out, because redaction would also remove
        them from replies.
        """
        headers = self._options["headers"]
        secrets = [_key(self._key_env), *self._keys.values, *headers.values()]
        for value in self._secret_headers.values():
            # "Bearer KEY": the key alone is a secret, too.
            secrets += value.split()[1:]
        return [secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH]

    async def aclose(self) -> None:
        """Close connections. The client may be used again afterwards, in another event loop."""
        transport = self._transport
        self._transport = None
        if transport is not None:
            await transport.aclose()

    def _connect(self) -> None:
        """Make the transport, with the address, key and headers that all requests share."""
        openai = sdk().openai
        self._keys.connect()
        connections = self._options["connections"]
        connection_limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=connections,
            # As many are kept alive, so that the next burst need not open most of them again.
            max_keepalive_connections=connections,
        )
        certificate_file = os.environ.get("SSL_CERT_FILE")
        certificate_folder = os.environ.get("SSL_CERT_DIR")
        certificates = tls_context(certificate_file, certificate_folder)
        timeout = openai.Timeout(self._options["timeout"], connect=_CONNECT_SECONDS)
        check_proxy(self.url)
        try:
            self._transport = openai.DefaultAioHttpClient(
                verify=certificates,
                limits=connection_limits,
                timeout=timeout,
                follow_redirects=False,
            )
        except (ValueError, sdk().http.InvalidURL) as error:
            # It reads all proxies of the environment, also those of no use here.
            raise wrong_proxy() from error
        key = (not self._keys.command and _key(self._key_env)) or "no-key"
        client = openai.AsyncOpenAI(
            api_key=key,
            base_url=self.url,
            http_client=self._transport,
        )
        for name, value in client.default_headers.items():
            if isinstance(value, str) and self._sends_header(name):
                self._transport.headers[name] = value
        own_headers = {**self._authorization(key), **self._options["headers"]}
        self._transport.headers.update(own_headers)

    def _sends_header(self, header_name: str) -> bool:
        """Return whether to send a header that the SDK sends by default."""
        # These describe this machine: X-Stainless-Arch, X-Stainless-OS.
        if header_name.startswith("X-Stainless"):
            return False
        # OpenAI-Organization and OpenAI-Project concern nobody else.
        if header_name.startswith("OpenAI-") and not is_openai(self.url):
            return False
        return header_name.lower() not in ("authorization", "content-type")


def _redacted_value(data: Any, secrets: Sequence[str]) -> Any:
    """Return parsed JSON without the secrets."""
    if isinstance(data, str):
        return redact(data, secrets)
    if isinstance(data, dict):
        return {
            field_name: _redacted_value(value, secrets)
            for field_name, value in data.items()
        }
    if isinstance(data, list):
        return [_redacted_value(entry, secrets) for entry in data]
    return data


def _key(variable: str) -> str:
    """Return the key in an environment variable.

    Raises ConfigError if it is not the name of a variable, or if an HTTP header cannot hold it.
    """
    if not variable.isidentifier():
        example = option("key_env", "OPENAI_API_KEY")
        raise ConfigError(
            f"{option('key_env')} takes the name of an environment variable, not a key: {example}"
        )
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"${variable} holds characters that no key has; set it again")
    return key
