"""Why a recording has no reply to a request: what differs from the call that is most like it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from rapidfuzz import fuzz

from judge.core.records import Message, Request
from judge.providers.recording.format import Call, call_of

_SHOWN, _AROUND, _LONGEST = 5, 4, 160
"""Differences that are shown, words around each, and characters of each."""
_KEY = re.compile(r" [0-9a-f]{8}(?=>)")
"""That of a fence around a text: another text has another."""


def nearest(request: Request, calls: Iterable[Call]) -> Call:
    """The call whose messages are most like a request's. Raises ValueError where there is none of its model."""
    asked = _KEY.sub("", _text(call_of(request)))
    best, found = -1.0, None
    for call in calls:
        if call.model == request.model:
            # What cannot be better than the best so far is left without being looked at to its end, and counts 0.
            score = fuzz.ratio(asked, _KEY.sub("", _text(call)), score_cutoff=max(best, 0.0))
            if score > best:
                best, found = score, call
    if found is None:
        raise ValueError(f"no call of {request.model}")
    return found


def explain(request: Request, models: Sequence[str], near: Call | None, draws: int) -> str:
    """What to tell of a miss. `near` is the nearest call of the request's model, and `draws` its replies."""
    asked = call_of(request)
    if near is None:
        return f"it holds replies of {', '.join(models) or 'no model'}, none of {asked.model}"
    if near.messages == asked.messages:
        return _otherwise(asked, request, near, draws)
    changes = _changes(_text(near), _text(asked))
    more = f"\n… {len(changes) - _SHOWN} more places" if len(changes) > _SHOWN else ""
    return "the prompt most like it differs (- recorded, + asked):\n" + "\n".join(changes[:_SHOWN]) + more


def _otherwise(asked: Call, request: Request, call: Call, draws: int) -> str:
    """What differs between two calls with the same messages."""
    recorded, wanted = json.loads(call.params), json.loads(asked.params)
    if recorded == wanted:
        last = request.draw + int(request.params.get("n", 1))
        return f"it holds {draws} draws of this prompt, and draw {last} was asked for (--draws {draws})"
    names = sorted(name for name in {*recorded, *wanted} if recorded.get(name) != wanted.get(name))
    said = [f"{name} {recorded.get(name, 'none')!s:.60}, not {wanted.get(name, 'none')!s:.60}" for name in names]
    return f"this prompt was recorded with {'; '.join(said)} (--weighting, --temperature, --max-tokens)"


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
