"""A row of the cache: a reply, and below it what was asked, without the messages.

These are kept once for all their draws, by their digest. Rows of the versions before have the reply alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from judge.core.records import Request, Response


def write(response: Response, request: Request | None) -> tuple[str, tuple[str, str] | None]:
    """The text of a row, and the messages with their digest before them."""
    if request is None:
        return response.to_json(), None
    messages = _json([dict(message) for message in request.messages])
    digest = hashlib.sha256(messages.encode()).hexdigest()
    asked = _json([request.endpoint, request.model, request.draw, dict(request.params), digest])
    return f"{response.to_json()}\n{asked}", (digest, messages)


def reply(text: str) -> Response:
    """The reply of a row. Raises ValueError for a text that is no row."""
    return Response.from_json(text.partition("\n")[0])


def request(text: str, messages: str | None) -> Request | None:
    """What was asked; None for a row that does not say, or without its messages. Raises ValueError as `reply`."""
    asked = _asked(text)
    if asked is None or messages is None:
        return None
    endpoint, model, draw, params, _ = asked
    return Request(model, tuple(json.loads(messages)), params, draw, endpoint)


def digest_of(text: str) -> str:
    """The digest of the messages; empty for a row that does not say what was asked. Raises ValueError as `reply`."""
    asked = _asked(text)
    return str(asked[-1]) if asked is not None else ""


def _asked(text: str) -> list[Any] | None:
    """The second line; None where there is none. Raises ValueError for one that nobody here wrote."""
    line = text.partition("\n")[2]
    if not line:
        return None
    asked = json.loads(line)
    if not isinstance(asked, list) or len(asked) != 5 or not isinstance(asked[3], dict):
        raise ValueError("not what was asked")
    return asked


def _json(value: object) -> str:
    """As people would read it, but for lone surrogates, which no file holds otherwise."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def fits(digest: str, messages: str) -> bool:
    """Whether a digest is that of these messages."""
    return hashlib.sha256(messages.encode()).hexdigest() == digest
