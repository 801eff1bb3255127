"""A line of a recording: a call with its replies, to JSON and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from judge.core.records import Choice, Request, Response, Token, Usage

T = TypeVar("T")
_PARTS = ("\ufffd", "bytes:", "\\x", "<0x")
_TYPE_NAMES: Mapping[type, str] = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


class Call(NamedTuple):
    """What was asked; equal calls differ in the draw alone. `params` is JSON, without `n`."""

    model: str
    messages: str
    params: str


class RecordedCall(NamedTuple):
    """A call, the server it went to where the line says so, and its replies by draw."""

    call: Call
    endpoint: str
    replies: dict[int, Response]


def call_of(request: Request) -> Call:
    """The call that a request is one of, whatever its draws."""
    params = {name: value for name, value in request.params.items() if name != "n"}
    return Call(request.model, _json([dict(m) for m in request.messages]), _json(params))


def request_of(call: Call, draw: int, endpoint: str) -> Request:
    """The request for one draw of a call."""
    return Request(call.model, tuple(json.loads(call.messages)), json.loads(call.params), draw, endpoint)


def server_of(request: Request) -> str:
    """The address of the server that a request goes to; nothing where it goes to none: scripted, or replayed."""
    return request.endpoint if request.endpoint.startswith(("http://", "https://")) else ""


def line_of(request: Request, response: Response) -> RecordedCall:
    """The line of a reply to a request for one draw."""
    return RecordedCall(call_of(request), server_of(request), {request.draw: response})


def digest(call: Call) -> str:
    """That of the messages: the `prompt` of its line."""
    return hashlib.sha256(call.messages.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write(line: RecordedCall) -> bytes:
    """The line with its end."""
    call, endpoint, responses = line
    replies = []
    for draw, response in sorted(responses.items()):
        choice = response.choices[0]
        usage = {name: n for name in Usage.__slots__ if (n := getattr(response.usage, name))}
        tokens = None if choice.tokens is None else [[t.text, t.logprob, t.top] for t in choice.tokens]
        fields = {  # what says nothing is left out
            "finish_reason": choice.finish_reason if choice.finish_reason != "stop" else None, "tokens": tokens,
            "shares": choice.shares, "usage": usage or None, "served_by": response.served_by or None,
            "unmet": response.unmet or None,
        }  # fmt: skip
        known = {name: value for name, value in fields.items() if value is not None}
        replies.append({"draw": draw, "text": choice.text, **known})
    values = {
        "prompt": digest(call), "model": call.model, **({"endpoint": endpoint} if endpoint else {}),
        "params": json.loads(call.params), "messages": json.loads(call.messages), "replies": replies,
    }  # fmt: skip
    return encoded(values)


def encoded(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def read(line: bytes) -> RecordedCall | str:
    """The line that `write` wrote, or a person in the same form; or the note in its place. Raises ValueError."""
    try:
        values = _expect(json.loads(line.decode("utf-8", "surrogatepass")), dict, "it")
        if set(values) == {"note"}:
            return str(values["note"])
        model, params = _expect(values["model"], str, "model"), _expect(values["params"], dict, "params")
        messages = [_expect(message, dict, "a message") for message in _expect(values["messages"], list, "messages")]
        for text in (text for message in messages for text in message.values()):
            _expect(text, str, "a message's text")
        call = Call(model, _json(messages), _json(params))
        replies: dict[int, Response] = {}
        for reply in _expect(values["replies"], list, "replies"):
            replies[_count(_expect(reply, dict, "a reply")["draw"], "draw")] = _response(reply)
        prompt_digest, endpoint = values["prompt"], _expect(values.get("endpoint", ""), str, "endpoint")
    except KeyError as error:
        raise ValueError(f"it has no {error}") from error
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if prompt_digest != digest(call):
        raise ValueError(f"the messages do not match their digest {prompt_digest}: record them again")
    return RecordedCall(call, endpoint, replies)


def contradiction(line: RecordedCall) -> str:
    """What is wrong with a line of which a person edited a text and left its tokens, or the other way round."""
    for draw, reply in line.replies.items():
        for choice in reply.choices:
            # What a reply says, however it is spaced; nothing of tokens that are parts of characters.
            text, token_text = (
                "" if any(mark in part for mark in _PARTS) else "".join(filter(str.isalnum, part.casefold()))
                for part in (choice.text, "".join(t.text for t in choice.tokens or ()))
            )
            if text and token_text and text not in token_text and token_text not in text:
                return f"draw {draw} has the text {choice.text!r:.60}, but its tokens differ: record it again"
    return ""


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _response(reply: Mapping[str, Any]) -> Response:
    tokens, shares = reply.get("tokens"), reply.get("shares")
    text = _expect(reply["text"], str, "text")
    finish_reason = _expect(reply.get("finish_reason", "stop"), str, "finish_reason")
    listed = () if tokens is None else _expect(tokens, list, "tokens")
    triples = (_expect(token, list, "a token") for token in listed)
    read = tuple(Token(*_pair([token, logprob]), tuple(_pairs(top))) for token, logprob, top in triples)
    shared = None if shares is None else tuple(_pairs(shares))
    choice = Choice(text, finish_reason, None if tokens is None else read, shared)
    usage = Usage(**{name: _count(n, name) for name, n in _expect(reply.get("usage", {}), dict, "usage").items()})
    unmet = [_expect(name, str, "unmet") for name in _expect(reply.get("unmet", []), list, "unmet")]
    return Response((choice,), usage, _expect(reply.get("served_by", ""), str, "served_by"), tuple(unmet))


def _pairs(listed: Any) -> Iterator[tuple[str, float]]:
    return map(_pair, _expect(listed, list, "tokens or shares"))


def _pair(listed: Any) -> tuple[str, float]:
    text, number = _expect(listed, list, "a token or share")
    whole = number if isinstance(number, float) else _expect(number, int, f"the number of {text!r}")
    return _expect(text, str, "a token or label"), float(whole)


def _count(value: object, name: str) -> int:
    if (count := _expect(value, int, name)) < 0:
        raise ValueError(f"{name} is {count}")
    return count


def _expect(value: object, kind: type[T], name: str) -> T:
    """The value, which has to be of this kind. Raises TypeError."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is not {_TYPE_NAMES[kind]}: {value!r:.60}")
    return value
