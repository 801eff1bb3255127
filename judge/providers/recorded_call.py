"""A line of a recording: a call with its replies, to JSON and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, StrictInt, StrictStr, ValidationError

from judge.core.invalid_values import first_invalid_value
from judge.core.records import Choice, Request, Response, Token, Usage

_PARTS = ("\ufffd", "bytes:", "\\x", "<0x")


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
    return Request(
        call.model, tuple(json.loads(call.messages)), json.loads(call.params), draw, endpoint
    )


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
        tokens = (
            None if choice.tokens is None else [[t.text, t.logprob, t.top] for t in choice.tokens]
        )
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


class _Reply(BaseModel):
    draw: StrictInt = Field(ge=0)
    text: StrictStr
    finish_reason: StrictStr = "stop"
    tokens: list[tuple[StrictStr, float, list[tuple[StrictStr, float]]]] | None = None
    shares: list[tuple[StrictStr, float]] | None = None
    usage: dict[str, Annotated[StrictInt, Field(ge=0)]] = {}
    served_by: StrictStr = ""
    unmet: list[StrictStr] = []

    def response(self) -> Response:
        tokens = (
            None
            if self.tokens is None
            else tuple(Token(text, p, tuple(top)) for text, p, top in self.tokens)
        )
        choice = Choice(
            self.text,
            self.finish_reason,
            tokens,
            None if self.shares is None else tuple(self.shares),
        )
        return Response((choice,), Usage(**self.usage), self.served_by, tuple(self.unmet))


class _Line(BaseModel):
    prompt: StrictStr
    model: StrictStr
    endpoint: StrictStr = ""
    params: dict[str, Any]
    messages: list[dict[str, StrictStr]]
    replies: list[_Reply] = Field(min_length=1)


def read(line: bytes) -> RecordedCall | str:
    """The line that `write` wrote, or a person in the same form; or the note in its place. Raises ValueError."""
    try:
        values = json.loads(line.decode("utf-8", "surrogatepass"))
        if isinstance(values, dict) and set(values) == {"note"}:
            return str(values["note"])
        read = _Line.model_validate(values)
        replies = {reply.draw: reply.response() for reply in read.replies}
    except ValidationError as error:
        raise ValueError(str(first_invalid_value(error))) from error
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    call = Call(read.model, _json(read.messages), _json(read.params))
    if read.prompt != digest(call):
        raise ValueError(f"the messages do not match their digest {read.prompt}: record them again")
    return RecordedCall(call, read.endpoint, replies)


def contradiction(line: RecordedCall) -> str:
    """What is wrong with a line of which a person edited a text and left its tokens, or the other way round."""
    for draw, reply in line.replies.items():
        for choice in reply.choices:
            # What a reply says, however it is spaced; nothing of tokens that are parts of characters.
            text, token_text = (
                ""
                if any(mark in part for mark in _PARTS)
                else "".join(filter(str.isalnum, part.casefold()))
                for part in (choice.text, "".join(t.text for t in choice.tokens or ()))
            )
            if text and token_text and text not in token_text and token_text not in text:
                return f"draw {draw} has the text {choice.text!r:.60}, but its tokens differ: record it again"
    return ""


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
