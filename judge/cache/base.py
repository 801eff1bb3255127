"""The base class of caches, the cache that stores nothing, and the text form of a cache's rows.

The row of a reply is the reply as JSON, then a line with the request without its messages. The
messages have a row of their own by their digest, once for all draws. Rows of older versions have
only the reply.
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
"""The beginning of the key of a row with messages. The key of a reply is that of its request."""
_N_REQUEST_FIELDS = 5


class Cache:
    """The interface of a cache. `keeps` is whether a stored reply can be read again."""

    keeps: ClassVar[bool] = False

    def get_many(self, keys: Sequence[str]) -> dict[str, Response]:
        """Return the stored responses with these keys; one that cannot be read counts as absent."""
        return {}

    def put(self, key: str, response: Response, request: Request | None = None) -> None:
        """Store a response and its request; both survive this process after the next `flush`."""

    def flush(self) -> None:
        """Write what was put. Raises StorageError; the next call then tries to write it again."""

    def close(self) -> None:
        """Flush and close the files."""


class NoCache(Cache):
    """Stores nothing (`--no-cache`)."""


def encode(key: str, response: Response, request: Request | None) -> dict[str, str]:
    """Return the rows of a response and its prompt by their keys."""
    if request is None:
        return {key: response.to_json()}
    messages = _json([dict(message) for message in request.messages])
    digest = _digest(messages)
    params = dict(request.params)
    request_line = _json([request.endpoint, request.model, request.draw, params, digest])
    return {PROMPT + digest: messages, key: f"{response.to_json()}\n{request_line}"}


def decode_reply(text: str) -> Response:
    """Return the reply of a row. Raises ValueError for a text that is no row."""
    reply_line = text.partition("\n")[0]
    return Response.from_json(reply_line)


def decode_replies(rows: Mapping[str, str]) -> dict[str, Response]:
    """Return the replies of these rows; rows that cannot be read are left out."""
    responses = {}
    for key, text in rows.items():
        with suppress(ValueError):
            responses[key] = decode_reply(text)
    return responses


def prompt_keys(rows: Iterable[str]) -> list[str]:
    """Return the keys of the prompts of these rows of replies, each key once."""
    keys: dict[str, None] = {}
    for text in rows:
        with suppress(ValueError):
            fields = _request_fields(text)
            if fields:
                digest = fields[-1]
                keys[f"{PROMPT}{digest}"] = None
    return list(keys)


def is_intact(key: str, text: str) -> bool:
    """Return whether a row can be read as a reply, or is the text of its prompt key's digest."""
    if key.startswith(PROMPT):
        return key == PROMPT + _digest(text)
    with suppress(ValueError):
        return bool(decode_reply(text))
    return False


def decode_request(text: str, prompts: Mapping[str, str]) -> Request | None:
    """Return the request of a row, None if the row has none or its prompt is missing.

    Raises ValueError.
    """
    fields = _request_fields(text)
    if fields is None:
        return None
    endpoint, model, draw, params, digest = fields
    key = f"{PROMPT}{digest}"
    messages = prompts.get(key)
    if messages is None or not is_intact(key, messages):
        return None
    return Request(model, tuple(json.loads(messages)), params, draw, endpoint)


def _request_fields(text: str) -> list[Any] | None:
    """Return the second line of a row, None if there is none.

    Raises ValueError for a line that judge never wrote.
    """
    request_line = text.partition("\n")[2]
    if not request_line:
        return None
    fields = json.loads(request_line)
    if not isinstance(fields, list) or len(fields) != _N_REQUEST_FIELDS:
        raise ValueError("not a request")
    if not isinstance(fields[3], dict):
        raise ValueError("not a request")
    return fields


def _json(value: object) -> str:
    """Return readable JSON. Only lone surrogates are escaped, because UTF-8 cannot encode them."""
    text = _encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def _digest(messages: str) -> str:
    return hashlib.sha256(messages.encode("utf-8", "surrogatepass")).hexdigest()
