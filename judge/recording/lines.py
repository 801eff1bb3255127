"""A line of a recording: a call with its replies, to JSON and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from judge.records import Choice, Request, Response, Token, Usage


class Call(NamedTuple):
    """What was asked; equal calls differ in the draw alone. `params` is JSON, without `n`."""

    model: str
    messages: str
    params: str


class Line(NamedTuple):
    """A call, the server it went to where the line says so, and its replies by draw."""

    call: Call
    endpoint: str
    replies: dict[int, Response]


class Strange(ValueError):
    """A text that is no line of a recording; `cut` where it may be the beginning of one."""

    def __init__(self, message: str, *, cut: bool = False) -> None:
        super().__init__(message)
        self.cut = cut


def call_of(request: Request) -> Call:
    """The call that a request is one of, whatever its draws."""
    params = {name: value for name, value in request.params.items() if name != "n"}
    return Call(request.model, _json([dict(m) for m in request.messages]), _json(params))


def request_of(call: Call, draw: int, endpoint: str) -> Request:
    """The request for one draw of a call."""
    return Request(call.model, tuple(json.loads(call.messages)), json.loads(call.params), draw, endpoint)


def digest(call: Call) -> str:
    """That of the messages: the `prompt` of its line."""
    return hashlib.sha256(call.messages.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write(line: Line) -> bytes:
    """The line with its end."""
    call, endpoint, replies = line
    values = {
        "prompt": digest(call),
        "model": call.model,
        **({"endpoint": endpoint} if endpoint else {}),
        "params": json.loads(call.params),
        "messages": json.loads(call.messages),
        "replies": [{"draw": draw, **_reply(replies[draw])} for draw in sorted(replies)],
    }
    return encoded(values)


def encoded(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def note_in(line: bytes) -> str | None:
    """The sentence that a first line holds in place of a call."""
    if not line.lstrip().startswith(b'{"note"'):
        return None
    try:
        values = json.loads(line.decode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return str(values["note"]) if set(values) == {"note"} else None


def read(line: bytes) -> Line:
    """The line that `write` wrote, or a person in the same form. Raises Strange, with the reason."""
    try:
        values = json.loads(line.decode("utf-8", "surrogatepass"))
        call = Call(str(values["model"]), _json(values["messages"]), _json(values["params"]))
        replies = {int(reply["draw"]): _response(reply) for reply in values["replies"]}
        told, endpoint = values["prompt"], str(values.get("endpoint", ""))
    except KeyError as error:
        raise Strange(f"not a line of a recording: it has no {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        said = "; a line that was cut off may be deleted" if isinstance(error, ValueError) else ""
        raise Strange(f"not a line of a recording: {error}{said}", cut=bool(said)) from error
    if told != digest(call):
        raise Strange(f"the messages are not those that its digest {told} is of: record it anew")
    return Line(call, endpoint, replies)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _reply(response: Response) -> dict[str, Any]:
    """A response of one choice, without what says nothing."""
    choice = response.choices[0]
    usage = {name: n for name in Usage.__slots__ if (n := getattr(response.usage, name))}
    tokens = None if choice.tokens is None else [[t.text, t.logprob, t.top] for t in choice.tokens]
    told = {
        "finish_reason": choice.finish_reason if choice.finish_reason != "stop" else None,
        "tokens": tokens,
        "shares": choice.shares,
        "usage": usage or None,
        "served_by": response.served_by or None,
        "unmet": response.unmet or None,
    }
    return {"text": choice.text} | {name: value for name, value in told.items() if value is not None}


def _response(reply: Mapping[str, Any]) -> Response:
    tokens, shares = reply.get("tokens"), reply.get("shares")
    choice = Choice(
        str(reply["text"]),
        str(reply.get("finish_reason", "stop")),
        None if tokens is None else tuple(Token(str(t), float(p), tuple(_pairs(top))) for t, p, top in tokens),
        None if shares is None else tuple(_pairs(shares)),
    )
    usage = Usage(**{name: int(n) for name, n in reply.get("usage", {}).items()})
    return Response((choice,), usage, str(reply.get("served_by", "")), tuple(reply.get("unmet", ())))


def _pairs(listed: Any) -> Iterator[tuple[str, float]]:
    return ((str(text), float(number)) for text, number in listed)
