"""Replies written down, to be read again offline: one line of JSON for each prompt, sorted, without keys.

A line holds `prompt` (the digest of `messages`), `model`, `params`, `messages` and `replies`, one for each draw. The
first line may be `{"note": "..."}` instead, a sentence that every report of these replies shows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from rapidfuzz import fuzz, process

from judge.errors import DataError, StorageError
from judge.records import Choice, Message, Request, Response, Token, Usage

_SHOWN, _AROUND, _LONGEST = 5, 4, 160
"""Differences that are shown, words around each, and characters of each."""
_KEY = re.compile(r" [0-9a-f]{8}(?=>)")
"""That of a fence around a text: another text has another."""


class Call(NamedTuple):
    """What was asked; equal calls differ in the draw alone. `params` is JSON, without `n`."""

    model: str
    messages: str
    params: str


@dataclass(slots=True)
class Recording:
    """Responses by call and draw."""

    note: str = ""
    replies: dict[Call, dict[int, Response]] = field(default_factory=dict)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were asked, sorted."""
        return tuple(sorted({call.model for call in self.replies}))

    def add(self, request: Request, response: Response) -> None:
        """Take down the reply to a request for one draw."""
        if response.choices:
            self.replies.setdefault(_call(request), {})[request.draw] = response

    def find(self, request: Request) -> list[Response]:
        """The replies to the draws that a request asks for, as many as there are from the first one on."""
        drawn = self.replies.get(_call(request), {})
        wanted = range(request.draw, request.draw + int(request.params.get("n", 1)))
        found = [drawn.get(draw) for draw in wanted]
        return [one for one in found[: found.index(None) if None in found else None] if one is not None]

    @property
    def draws(self) -> int:
        """The most replies that any prompt has."""
        return max(map(len, self.replies.values()), default=0)

    def nearest(self, request: Request) -> Call:
        """The call whose messages are most like a request's. Raises ValueError where there is none."""
        texts = {call: _KEY.sub("", _text(call)) for call in self.replies if call.model == request.model}
        if not texts:
            raise ValueError(f"no call of {request.model}")
        nearest: Call = process.extractOne(_KEY.sub("", _text(_call(request))), texts, scorer=fuzz.ratio)[2]
        return nearest

    def explain(self, request: Request) -> str:
        """Why there is no reply to a request: what differs from the call that is most like it."""
        asked = _call(request)
        near = [call for call in self.replies if call.model == asked.model]
        if not near:
            return f"it holds replies of {', '.join(self.models) or 'no model'}, none of {asked.model}"
        same = [call for call in near if call.messages == asked.messages]
        if same:
            return _otherwise(asked, request, same[0], self.replies[same[0]])
        changes = _changes(_text(self.nearest(request)), _text(asked))
        more = f"\n… {len(changes) - _SHOWN} more places" if len(changes) > _SHOWN else ""
        return "the prompt most like it differs (- recorded, + asked):\n" + "\n".join(changes[:_SHOWN]) + more

    def add_to(self, path: Path) -> None:
        """Write the file with what is in it already, this recording's replies in the place of others to the same call.

        Raises StorageError, and DataError where there is a file that is no recording.
        """
        whole = read(path) if path.exists() else Recording()
        whole.note = " ".join(dict.fromkeys(one for one in (whole.note, self.note) if one))
        for call, drawn in self.replies.items():
            whole.replies.setdefault(call, {}).update(drawn)
        whole.save(path)

    def save(self, path: Path) -> None:
        """Write the file anew, whole or not at all. Raises StorageError."""
        head = [{"note": self.note}] if self.note else []
        lines = [_line(call, self.replies[call]) for call in sorted(self.replies, key=_order)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [*head, *lines])
        part = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(text.encode("utf-8", "surrogatepass"))
            part.replace(path)
        except OSError as error:
            raise StorageError(f"recording {path}: {error.strerror or error}") from error


def read(path: Path) -> Recording:
    """The recording in a file. Raises DataError, with the line, for what is none."""
    try:
        if path.exists() and not path.is_file():
            raise DataError(f"recording {path}: not a file")
        content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise DataError(f"recording {path}: {error.strerror}") from error
    found = Recording()
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line.decode("utf-8", "surrogatepass"))
            if number == 1 and set(values) == {"note"}:
                found.note = str(values["note"])
                continue
            call = Call(str(values["model"]), _json(values["messages"]), _json(values["params"]))
            replies = {int(reply["draw"]): _response(reply) for reply in values["replies"]}
            told = values["prompt"]
        except KeyError as error:
            raise DataError(f"{path}:{number}: not a line of a recording: it has no {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            said = "; a line that was cut off may be deleted" if isinstance(error, ValueError) else ""
            raise DataError(f"{path}:{number}: not a line of a recording: {error}{said}") from error
        if told != _digest(call):
            raise DataError(f"{path}:{number}: the messages are not those that its digest {told} is of: record it anew")
        drawn = found.replies.setdefault(call, {})
        if any(drawn.get(draw, reply) != reply for draw, reply in replies.items()):
            raise DataError(
                f"{path}:{number}: other replies to a prompt that stands further up: delete one of the lines"
            )
        drawn.update(replies)
    return found


def _call(request: Request) -> Call:
    params = {name: value for name, value in request.params.items() if name != "n"}
    return Call(request.model, _json([dict(m) for m in request.messages]), _json(params))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _digest(call: Call) -> str:
    return hashlib.sha256(call.messages.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _order(call: Call) -> tuple[str, ...]:
    return call.model, _digest(call), call.params


def _text(call: Call) -> str:
    messages: list[Message] = json.loads(call.messages)
    return "\n".join(f"{message['role']}: {message['content']}" for message in messages)


def _changes(old: str, new: str) -> list[str]:
    """Where two prompts differ, word by word, with the words around it; the keys of fences say nothing."""
    before, after = (_KEY.sub("", text).split() for text in (old, new))
    found = []
    for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            lead, rest = " ".join(before[max(0, i - _AROUND) : i]), " ".join(before[j : j + _AROUND])
            was, now = (_cut(" ".join(words)) or "(nothing)" for words in (before[i:j], after[k:m]))
            found.append(f"  … {lead} [- {was}] [+ {now}] {rest} …")
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _otherwise(asked: Call, request: Request, call: Call, draws: Mapping[int, Response]) -> str:
    """What differs between two calls with the same messages."""
    recorded, wanted = json.loads(call.params), json.loads(asked.params)
    if recorded == wanted:
        last = request.draw + int(request.params.get("n", 1))
        return f"it holds {len(draws)} draws of this prompt, and draw {last} was asked for (--draws {len(draws)})"
    names = sorted(name for name in {*recorded, *wanted} if recorded.get(name) != wanted.get(name))
    said = [f"{name} {recorded.get(name, 'none')!s:.60}, not {wanted.get(name, 'none')!s:.60}" for name in names]
    return f"this prompt was recorded with {'; '.join(said)} (--weighting, --temperature, --max-tokens)"


def _line(call: Call, draws: Mapping[int, Response]) -> dict[str, Any]:
    return {
        "prompt": _digest(call),
        "model": call.model,
        "params": json.loads(call.params),
        "messages": json.loads(call.messages),
        "replies": [{"draw": draw, **_reply(draws[draw])} for draw in sorted(draws)],
    }


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
