"""A line of a recording: a call with its replies, to JSON and back."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, StrictInt, StrictStr, ValidationError

from judge.core.invalid_values import first_invalid_value
from judge.core.records import Choice, Request, Response, Token, Usage

# Tokens that are parts of a character: its replacement mark, and how servers write lone bytes
# ("bytes:\xe2\x80", "\xe2", "<0xE2>").
_PARTIAL_CHARACTER = ("\ufffd", "bytes:", "\\x", "<0x")


class Call(NamedTuple):
    """A request without its draw: equal calls differ in the draw alone. `params` has no `n`."""

    model: str
    messages: str
    params: str


class RecordedCall(NamedTuple):
    """A call, the server it went to if the line names one, and its replies by draw."""

    call: Call
    endpoint: str
    replies: dict[int, Response]


def call_of(request: Request) -> Call:
    """Return the call of a request, without its draws."""
    params = dict(request.params)
    params.pop("n", None)
    messages = [dict(message) for message in request.messages]
    return Call(request.model, _json(messages), _json(params))


def request_of(call: Call, draw: int, endpoint: str) -> Request:
    """Return the request for one draw of a call."""
    messages = tuple(json.loads(call.messages))
    params = json.loads(call.params)
    return Request(call.model, messages, params, draw, endpoint)


def server_of(request: Request) -> str:
    """Return the address of the server of a request, "" if it has none: scripted, or replayed."""
    if request.endpoint.startswith(("http://", "https://")):
        return request.endpoint
    return ""


def line_of(request: Request, response: Response) -> RecordedCall:
    """Return the line for the reply to a request for one draw."""
    return RecordedCall(
        call=call_of(request),
        endpoint=server_of(request),
        replies={request.draw: response},
    )


def digest(call: Call) -> str:
    """Return the digest of the messages, which a line has as its `prompt`."""
    # A text may hold a lone surrogate, which UTF-8 alone refuses.
    content = call.messages.encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:16]


def write(line: RecordedCall) -> bytes:
    """Return a line with its line end."""
    replies = []
    for draw, response in sorted(line.replies.items()):
        reply_values = _reply_values(response)
        replies.append({"draw": draw, **reply_values})
    values: dict[str, Any] = {
        "prompt": digest(line.call),
        "model": line.call.model,
    }
    if line.endpoint:
        values["endpoint"] = line.endpoint
    values["params"] = json.loads(line.call.params)
    values["messages"] = json.loads(line.call.messages)
    values["replies"] = replies
    return encoded(values)


def _reply_values(response: Response) -> dict[str, Any]:
    """Return the JSON of a reply, without the fields that have their default."""
    choice = response.choices[0]
    tokens = None
    if choice.tokens is not None:
        tokens = [[token.text, token.logprob, token.top] for token in choice.tokens]
    usage = {}
    for counter in Usage.__slots__:
        count = getattr(response.usage, counter)
        if count:
            usage[counter] = count
    values: dict[str, Any] = {"text": choice.text}
    if choice.finish_reason != "stop":
        values["finish_reason"] = choice.finish_reason
    if tokens is not None:
        values["tokens"] = tokens
    # None belongs to a reply in words, and an empty tuple to a typed question.
    if choice.shares is not None:
        values["shares"] = choice.shares
    if usage:
        values["usage"] = usage
    if response.served_by:
        values["served_by"] = response.served_by
    if response.unmet:
        values["unmet"] = response.unmet
    return values


def encoded(values: Mapping[str, Any]) -> bytes:
    """Return a line of JSON. A text may hold half of a surrogate pair, which UTF-8 cannot hold."""
    line = json.dumps(values, ensure_ascii=False)
    return f"{line}\n".encode("utf-8", "surrogatepass")


# A token or a label, and its log probability or its probability.
_TextAndNumber = tuple[StrictStr, float]
# A token, its log probability, and the likeliest tokens in its place.
_StoredToken = tuple[StrictStr, float, list[_TextAndNumber]]


class _Reply(BaseModel):
    draw: StrictInt = Field(ge=0)
    text: StrictStr
    finish_reason: StrictStr = "stop"
    tokens: list[_StoredToken] | None = None
    shares: list[_TextAndNumber] | None = None
    usage: dict[str, Annotated[StrictInt, Field(ge=0)]] = {}
    served_by: StrictStr = ""
    unmet: list[StrictStr] = []

    def response(self) -> Response:
        shares = None if self.shares is None else tuple(self.shares)
        choice = Choice(self.text, self.finish_reason, self._tokens(), shares)
        return Response(
            choices=(choice,),
            usage=Usage(**self.usage),
            served_by=self.served_by,
            unmet=tuple(self.unmet),
        )

    def _tokens(self) -> tuple[Token, ...] | None:
        if self.tokens is None:
            return None
        tokens = []
        for text, logprob, alternatives in self.tokens:
            tokens.append(Token(text, logprob, tuple(alternatives)))
        return tuple(tokens)


class _Line(BaseModel):
    prompt: StrictStr
    model: StrictStr
    endpoint: StrictStr = ""
    params: dict[str, Any]
    messages: list[dict[str, StrictStr]]
    replies: list[_Reply] = Field(min_length=1)


def read(line: bytes) -> RecordedCall | str:
    """Return a line that `write` wrote, or a person in the same form; or the text of a note.

    Raises ValueError.
    """
    try:
        # Editors on Windows add a byte order mark to the first line.
        text = line.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogatepass")
        values = json.loads(text)
        if isinstance(values, dict) and set(values) == {"note"}:
            return str(values["note"])
        model = _Line.model_validate(values)
        replies = {reply.draw: reply.response() for reply in model.replies}
    except ValidationError as error:
        problem = first_invalid_value(error)
        raise ValueError(str(problem)) from error
    except (TypeError, RecursionError) as error:
        # A `usage` with unknown names is a TypeError, JSON of extreme depth a RecursionError.
        raise ValueError(str(error)) from error
    messages = _json(model.messages)
    params = _json(model.params)
    call = Call(model.model, messages, params)
    if model.prompt != digest(call):
        raise ValueError(
            f"the messages do not match their digest {model.prompt}: record them again"
        )
    return RecordedCall(call, model.endpoint, replies)


def contradiction(line: RecordedCall) -> str:
    """Return what is wrong with a line whose text and tokens differ, "" if nothing is.

    That happens if a person edits the text and not the tokens, or the tokens and not the text.
    """
    for draw, reply in line.replies.items():
        for choice in reply.choices:
            text = _letters(choice.text)
            joined_tokens = "".join(token.text for token in choice.tokens or ())
            token_text = _letters(joined_tokens)
            if not text or not token_text:
                continue
            # Servers leave an end token or a code fence out of one of the two.
            if text not in token_text and token_text not in text:
                excerpt = f"{choice.text!r:.60}"
                return f"draw {draw} has the text {excerpt}, but its tokens differ: record it again"
    return ""


def _letters(text: str) -> str:
    """Return the letters and digits of a text, "" if it has parts of characters."""
    if any(partial_character in text for partial_character in _PARTIAL_CHARACTER):
        return ""
    return "".join(character for character in text.casefold() if character.isalnum())


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
