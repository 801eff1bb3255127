"""The address of a cache that machines share, which may hold a password and shows none."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

_REDIS = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss", "unix": "unix"}
"""What an address may begin with, and what redis-py calls that."""
_BEGINNING = re.compile(rf"\s*({'|'.join(_REDIS)}):|\s*[\w+.-]{{2,}}:[/\\]|.*://", re.I | re.S)
"""A scheme, known or not, also where a path has taken one of its slashes; a single letter is a drive."""
_SECRET = re.compile(r"(?!\s*[a-z]:[/\\])[^/\\]*:.*@", re.I | re.S)
"""What has a password before its host, and no scheme before that."""
_BARE = re.compile(r"\s*(\[[0-9a-f:.]*\]|[^/\\:]*):[0-9]{1,5}(/[0-9]*)?\s*", re.I)
_WRITE_BARE = "write redis://HOST:PORT for a Redis, or ./NAME for a folder that is called so"
_MORE = (
    "db", "username", "password", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_cert_reqs",
    "ssl_check_hostname",
)  # fmt: skip
_WRITE = (
    "write redis://:PASSWORD@HOST:PORT/NUMBER, rediss:// for one with TLS, or unix://:PASSWORD@/PATH?db=NUMBER, the "
    f"password's own signs as %40 for @, %2F for /; after a ? only {', '.join(_MORE)}"
)


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """The address of a Redis or Valkey. `url` is for the client only; `shown` has no password."""

    url: str = field(repr=False)
    shown: str

    def __str__(self) -> str:
        return self.shown

    @classmethod
    def read(cls, text: str) -> RedisUrl:
        """Parse an address. Raises ValueError, which quotes nothing from the text."""
        if _BARE.fullmatch(text) and not _BEGINNING.match(text):
            raise ValueError(_WRITE_BARE)
        try:
            parts = urlsplit(text)
            host, port, query = parts.hostname, parts.port, dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError:
            raise ValueError(_WRITE) from None
        kind, location = _REDIS.get(parts.scheme), parts.path
        number = query.pop("db", "" if kind == "unix" else unquote(location).strip("/")) or "0"
        if kind != "unix" and host:
            location = f"{f'[{host}]' if ':' in host else host}:{port or 6379}"
        elif kind != "unix" or host:
            location = ""
        known = {name for name in _MORE if kind == "rediss" or not name.startswith("ssl_")}
        if kind is None or not location or parts.fragment or query.keys() - known or not re.fullmatch("[0-9]+", number):
            raise ValueError(_WRITE)
        location += f"?db={number}" if kind == "unix" else f"/{number}"
        query_text = urlencode(query, quote_via=quote)
        query_text = f"{'&' if kind == 'unix' else '?'}{query_text}" if query_text else ""
        user, at, _ = parts.netloc.rpartition("@")
        return cls(f"{kind}://{user}{at}{location}{query_text}", f"{parts.scheme}://{location}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Accept instances only; serialize them as the text without a password."""
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls, serialization=core_schema.to_string_ser_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string"}


def is_redis_url(value: object, *, bare: bool = True) -> bool:
    """Return whether this is a cache's address (even a wrong one) and not a folder; with `bare`, HOST:PORT counts."""
    if isinstance(value, str):
        return any((_BEGINNING.match(value), _SECRET.match(value), bare and _BARE.fullmatch(value)))
    return isinstance(value, RedisUrl)


def parse_cache_location(value: str | RedisUrl) -> str | RedisUrl:
    """Convert a text that is an address; return any other unchanged. Raises ValueError as `RedisUrl.read`."""
    return RedisUrl.read(value) if isinstance(value, str) and is_redis_url(value) else value
