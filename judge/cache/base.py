"""The base class of caches, the cache that keeps nothing, and the text form of a cache's rows.

The row of a reply is the reply as JSON, then a line with the request without its messages. The messages are a row of
their own, once for all draws, by their digest. Rows of older versions hold the reply alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from judge.core.records import Request, Response

_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
PROMPT = "prompt:"
"""Begins the key of a row with messages; the key of a reply is that of its request."""


class Cache:
    """What a run needs of a cache. This one keeps nothing (`NoCache`, for `--no-cache`).

    `keeps` is True if a reply that was put can be read again.
    """

    keeps: ClassVar[bool] = False

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """The stored responses among these keys; one that cannot be read back counts as absent."""
        return {}

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        """Keep a response and its request. After the next `flush` both survive the end of this process."""

    def flush(self) -> None:
        """Write what was put. Raises StorageError, keeping everything unwritten for the next try."""

    def close(self) -> None:
        """Flush and close the files."""


class NoCache(Cache):
    """Remembers nothing (`--no-cache`)."""


def encode(key: str, response: Response, request: Request | None) -> dict[str, str]:
    """The rows of a response and its prompt by their keys."""
    if request is None:
        return {key: response.to_json()}
    messages = _json([dict(message) for message in request.messages])
    digest = _digest(messages)
    request_line = _json(
        [request.endpoint, request.model, request.draw, dict(request.params), digest]
    )
    return {PROMPT + digest: messages, key: f"{response.to_json()}\n{request_line}"}


def decode_reply(text: str) -> Response:
    """The reply of a row. Raises ValueError for a text that is no row."""
    return Response.from_json(text.partition("\n")[0])


def decode_replies(rows: Mapping[str, str]) -> dict[str, Response]:
    """The replies of these rows, as far as they can be read."""
    responses = {}
    for key, text in rows.items():
        with suppress(ValueError):
            responses[key] = decode_reply(text)
    return responses


def prompt_keys(rows: Iterable[str]) -> list[str]:
    """The keys of the prompts that these rows of replies name, each once."""
    keys: dict[str, None] = {}
    for text in rows:
        with suppress(ValueError):
            if fields := _request_fields(text):
                keys[PROMPT + str(fields[-1])] = None
    return list(keys)


def is_intact(key: str, text: str) -> bool:
    """Whether a row reads as a reply or, under the key of a prompt, is the text of that digest."""
    if key.startswith(PROMPT):
        return key == PROMPT + _digest(text)
    with suppress(ValueError):
        return bool(decode_reply(text))
    return False


def decode_request(text: str, prompts: Mapping[str, str]) -> Request | None:
    """The request of a row; None if the row does not hold it or its prompt is missing. Raises ValueError."""
    if (fields := _request_fields(text)) is None:
        return None
    endpoint, model, draw, params, digest = fields
    messages = prompts.get(key := f"{PROMPT}{digest}")
    if messages is None or not is_intact(key, messages):
        return None
    return Request(model, tuple(json.loads(messages)), params, draw, endpoint)


def _request_fields(text: str) -> list[Any] | None:
    """The second line of a row; None if there is none. Raises ValueError for a line that judge never wrote."""
    line = text.partition("\n")[2]
    if not line:
        return None
    fields = json.loads(line)
    if not isinstance(fields, list) or len(fields) != 5 or not isinstance(fields[3], dict):
        raise ValueError("not a request")
    return fields


def _json(value: object) -> str:
    """Readable JSON; lone surrogates, which no file can hold otherwise, are escaped."""
    text = _encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def _digest(messages: str) -> str:
    return hashlib.sha256(messages.encode("utf-8", "surrogatepass")).hexdigest()
