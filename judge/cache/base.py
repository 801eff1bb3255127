"""The cache protocols, the cache that keeps nothing, and the text form of a cache row.

A row is the reply as JSON, then a line with the request without its messages. The messages are stored once for all
draws, by their digest. Rows of older versions hold the reply alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, Self

from judge.core.records import Request, Response


class Cache(Protocol):
    """What a run needs of a cache."""

    @property
    def claims(self) -> bool:
        """Whether another process may ever hold what is to be claimed."""
        ...

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The stored responses among these keys."""
        ...

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        """Keep a response and what was asked; both are safe on disk after the next `flush`."""
        ...

    def flush(self) -> None:
        """Write what was put. Raises StorageError, keeping everything unwritten for the next try."""
        ...

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Those of these keys that another process is asking for just now; the others are this one's from now on.

        They are until they are released, or this process ends. A reply may have come in since it was last looked up.
        """
        ...

    def release(self, keys: Sequence[str]) -> None:
        """Let others ask for these, or find what is kept of them: after the `flush` of what was put."""
        ...

    def close(self) -> None:
        """Flush and let go of the files."""
        ...


class InspectableCache(Cache, Protocol):
    """A cache to be counted, copied or forgotten. Each of these may raise StorageError."""

    def stats(self) -> dict[str, int]:
        """Number of `responses`, and `bytes` that are kept."""
        ...

    def clear(self) -> int:
        """Forget every response; returns how many there were."""
        ...

    def iter_all(self) -> Iterator[tuple[Response, Request | None]]:
        """Every stored response and what was asked for it, as far as it is known; some may come twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class NoCache:
    """Remembers nothing (`--no-cache`)."""

    claims = False

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        return {}

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        return

    def flush(self) -> None:
        return

    def claim(self, keys: Sequence[str]) -> set[str]:
        return set()

    def release(self, keys: Sequence[str]) -> None:
        return

    def close(self) -> None:
        return


def encode(response: Response, request: Request | None) -> tuple[str, tuple[str, str] | None]:
    """The text of a row, and the messages with their digest before them."""
    if request is None:
        return response.to_json(), None
    messages = _json([dict(message) for message in request.messages])
    digest = hashlib.sha256(messages.encode()).hexdigest()
    request_line = _json([request.endpoint, request.model, request.draw, dict(request.params), digest])
    return f"{response.to_json()}\n{request_line}", (digest, messages)


def decode_reply(text: str) -> Response:
    """The reply of a row. Raises ValueError for a text that is no row."""
    return Response.from_json(text.partition("\n")[0])


def decode_request(text: str, messages: str | None) -> Request | None:
    """Return the request, None if the row does not hold it or its messages are missing. Raises ValueError."""
    fields = _request_fields(text)
    if fields is None or messages is None:
        return None
    endpoint, model, draw, params, _ = fields
    return Request(model, tuple(json.loads(messages)), params, draw, endpoint)


def digest_of(text: str) -> str:
    """Return the digest of the messages, "" for a row without a request. Raises ValueError."""
    fields = _request_fields(text)
    return str(fields[-1]) if fields is not None else ""


def _request_fields(text: str) -> list[Any] | None:
    """The second line; None where there is none. Raises ValueError for one that nobody here wrote."""
    line = text.partition("\n")[2]
    if not line:
        return None
    fields = json.loads(line)
    if not isinstance(fields, list) or len(fields) != 5 or not isinstance(fields[3], dict):
        raise ValueError("not what was asked")
    return fields


def _json(value: object) -> str:
    """As people would read it, but for lone surrogates, which no file holds otherwise."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def digest_matches(digest: str, messages: str) -> bool:
    """Whether a digest is that of these messages."""
    return hashlib.sha256(messages.encode()).hexdigest() == digest
