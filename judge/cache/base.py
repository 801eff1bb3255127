"""The base class of caches, the cache that stores nothing, and the text form of a cache's rows.

A reply's row has two lines: the reply as JSON, and its request without the messages. The messages
have a row of their own under their digest, so that all draws share it. Older versions of judge
wrote the first line only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from judge.core.records import Request, Response

_encode = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":")
).encode
PROMPT = "prompt:"
"""The beginning of the key of a row with messages. The key of a reply is that of its request."""


class _RequestLine(NamedTuple):
    """The second line of a reply's row, a JSON list in this order."""

    endpoint: str
    model: str
    draw: int
    params: dict[str, Any]
    digest: str

    @property
    def prompt_key(self) -> str:
        """The key of the row with the messages."""
        return f"{PROMPT}{self.digest}"


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
    line = _RequestLine(request.endpoint, request.model, request.draw, params, digest)
    answer = f"{response.to_json()}\n{_json(line)}"
    return {line.prompt_key: messages, key: answer}


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
            line = _request_line(text)
            if line is not None:
                keys[line.prompt_key] = None
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

    Raises ValueError for a line that judge never wrote.
    """
    line = _request_line(text)
    if line is None:
        return None
    messages = prompts.get(line.prompt_key)
    if messages is None or not is_intact(line.prompt_key, messages):
        return None
    sent_messages = tuple(json.loads(messages))
    return Request(line.model, sent_messages, line.params, line.draw, line.endpoint)


def _request_line(text: str) -> _RequestLine | None:
    """Return the second line of a row, None if there is none.

    Raises ValueError for a line that judge never wrote.
    """
    second_line = text.partition("\n")[2]
    if not second_line:
        return None
    fields = json.loads(second_line)
    if not isinstance(fields, list) or len(fields) != len(_RequestLine._fields):
        raise ValueError("not a request")
    line = _RequestLine(*fields)
    if not isinstance(line.params, dict):
        raise ValueError("not a request")
    return line


def _json(value: object) -> str:
    """Return readable JSON. Only lone surrogates are escaped, because UTF-8 cannot encode them."""
    text = _encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def _digest(messages: str) -> str:
    # A text may hold a lone surrogate, which UTF-8 alone refuses.
    return hashlib.sha256(messages.encode("utf-8", "surrogatepass")).hexdigest()
