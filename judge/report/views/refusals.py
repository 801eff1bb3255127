"""What a judge's server refused or ignored, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.report.format import count, line

_WORDS = {
    "logprobs": "gives no token probabilities",
    "top_logprobs": "lists fewer probabilities than asked for",
    "max_tokens": "limit on the reply's length not taken",
    "response_format": "JSON schema not taken",
    "reasoning": "told not to reason, the price of its token probabilities",
    "n": "sends fewer replies at a time than asked for",
}
# Fewer replies at a time are asked for again: the scores are none the worse for it.
_HARMLESS = "n"


def refusals(judge: Mapping[str, Any]) -> tuple[str, ...]:
    """What one judge of `info["judges"]` did not do, or not as asked: a phrase for each parameter."""
    unmet, learned = dict(judge.get("unmet") or {}), dict(judge.get("learned") or {})
    learned.pop("reasoning_effort", None)  # said by "reasoning"
    dropped = learned.pop("dropped", None) or ()
    found = [_phrase(name, n, learned) for name, n in unmet.items()]
    found += [_phrase(name, 0, learned) for name in dropped if name not in unmet]
    found += [_fact(name, value) for name, value in learned.items() if name not in unmet]
    return tuple(line(text) for text in found)


def warnings(info: Mapping[str, Any]) -> tuple[str, ...]:
    """A sentence for each judge that did not honour what its scores were to be made with."""
    found = []
    for name, judge in (info.get("judges") or {}).items():
        unmet = {what: n for what, n in (judge.get("unmet") or {}).items() if what != _HARMLESS}
        learned = {what: value for what, value in (judge.get("learned") or {}).items() if what in unmet}
        if unmet:
            phrases = refusals({"unmet": unmet, "learned": learned})
            found.append(f"{line(str(name))}: {'; '.join(phrases)}.")
    return tuple(found)


def _phrase(name: str, answers: int, learned: Mapping[str, Any]) -> str:
    known = learned.get(name)
    text = _fact(name, known) if known is not None else _WORDS.get(name, f"{name} not taken")
    return f"{text} ({count(answers, 'answer')})" if answers else text


def _fact(name: str, value: Any) -> str:
    """What the server turned out to accept."""
    if name == "n":
        return "takes one reply a request" if value == 1 else f"takes n ≤ {value}"
    if name == "top_logprobs":
        return f"lists at most {value} probabilities for a token"
    if name == "limit":
        return f"takes the limit on the reply's length as {value}"
    if name == "path":
        return f"asked at {value}"
    return f"{name}: {value}"
