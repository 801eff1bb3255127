"""Adapt requests to what a server accepts, learned from its refusals."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from judge.core.errors import Refused
from judge.core.records import Request, whole

Caching = Literal["key", "explicit", ""]
"""What a server is told of prompt caching: a group's key, also where to break the prefix off, or nothing."""
_EFFORT = "reasoning_effort"
_CACHE_KEY, _CACHE_OPTIONS, _BREAKPOINT = "prompt_cache_key", "prompt_cache_options", "prompt_cache_breakpoint"
_NAMES = (
    "top_logprobs", "logprobs", "max_completion_tokens", "max_tokens", "temperature", "seed", "response_format",
    _EFFORT, _CACHE_KEY, _CACHE_OPTIONS, _BREAKPOINT,
)  # fmt: skip
_PARAMETER_NAME = re.compile("|".join((*_NAMES, r"json[_ ]schema", r"(?<![\w\\])n(?!\w)")), re.I)
_ALIASES = {"json_schema": "response_format", "json schema": "response_format", _BREAKPOINT: _CACHE_OPTIONS}
_LOWER_TOP = {20: 5}
"""The largest top_logprobs a server takes is 20 at OpenAI and 5 at several others."""

# A refusal may name a parameter and still be about one text: too long for the model, against a policy.
_ABOUT_PARAMETER = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not allowed|not permitted|extra (?:inputs|fields)|must be|at most",
    re.I,
)
_ABOUT_TEXT = re.compile(r"context|policy|too (?:large|long|many)", re.I)
_UNKNOWN = re.compile(r"unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)", re.I)
_UNSUPPORTED = re.compile(rf"{_UNKNOWN.pattern}|unsupported|not support", re.I)
_NUMBER = re.compile(r"(?<![\w.-])\d+(?!\w|\.\d)")


@dataclass(frozen=True, slots=True)
class RequestAdapter:
    """Turns what a request wants into a body this server accepts.

    `n` is the most choices to ask for at once, None as many as are wanted. `unthinking` sends a reasoning effort of
    `none` with a wish for log probabilities: OpenAI's later models give them only while they do not reason, and most of
    them do unless told not to. It is tried once, and for nothing less: no model stops reasoning for a temperature.
    An effort that the request names stays.
    Limits of up to `too_short` tokens are not sent: hidden reasoning has used them up. Every other step of
    `after_refusal` takes one more thing away, so that asking again comes to an end.

    `caching` "key" names a request's group, so that those of one document meet at one machine; "explicit" is for models
    that charge for what is written to the cache: nothing is, but what will be read again.
    """

    top_logprobs: int = 20
    limit_name: str | None = "max_completion_tokens"
    n: int | None = None
    unthinking: bool = False
    dropped: frozenset[str] = frozenset()
    caching: Caching = ""
    too_short: int = 0

    @property
    def known_limits(self) -> dict[str, Any]:
        """What differs from the words for a server that takes everything, as plain JSON."""
        dropped = (self.dropped - {_EFFORT}) | ({"max_tokens"} if self.limit_name is None or self.too_short else set())
        facts = {
            "n": self.n,
            "top_logprobs": self.top_logprobs if self.top_logprobs != RequestAdapter().top_logprobs else None,
            "limit": self.limit_name if self.limit_name != RequestAdapter().limit_name else None,
            _EFFORT: "none" if self.unthinking else None,
            "dropped": sorted(dropped),
        }
        return {name: fact for name, fact in facts.items() if fact}

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON body for `POST /chat/completions`."""
        messages: list[dict[str, Any]] = [{name: whole(text) for name, text in m.items()} for m in request.messages]
        # What there is to say about the prompt cache.
        group, _ = request.prefix
        key = {_CACHE_KEY: group} if self.caching and group else {}
        explicit = {_CACHE_OPTIONS: {"mode": "explicit"}} if self.caching == "explicit" else {}
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            **{name: value for name, value in (key | explicit).items() if name not in self.dropped},
        }
        if _CACHE_OPTIONS in body and request.prefix[1]:
            first = next(place for place, message in enumerate(messages) if message["role"] != "system")
            text, length = request.messages[first]["content"], request.prefix[1]
            head = {"type": "text", "text": whole(text[:length]), _BREAKPOINT: {"mode": "explicit"}}
            tail = [{"type": "text", "text": whole(text[length:])}] if text[length:] else []
            messages[first]["content"] = [head, *tail]
        params = {name: value for name, value in request.params.items() if name != "headers"}  # the client sends them
        if (limit := params.pop("max_tokens", None)) is not None and self.limit_name and limit > self.too_short:
            body[self.limit_name] = limit
        if (top := params.pop("top_logprobs", None)) is not None and "logprobs" not in self.dropped:
            body |= {"logprobs": True, "top_logprobs": min(top, self.top_logprobs)}
        choices = params.pop("n", 1)
        if (n := min(choices, self.n or choices)) > 1:
            body["n"] = n
        body |= {name: value for name, value in params.items() if name not in self.dropped}
        return {_EFFORT: "none"} | body if self.unthinking and "logprobs" in body else body

    def unmet(self, request: Request, body: dict[str, Any]) -> tuple[str, ...]:
        """The wanted parameters which that body does not ask for, or asks less of; and reasoning, where it is given up.

        A temperature of 1 needs no asking: a server that takes none samples so.
        """
        requested = {name: value for name, value in request.params.items() if (name, value) != ("temperature", 1)}
        checked_below = ("max_tokens", "top_logprobs", "n", "headers")
        missing = [name for name in requested if name not in body and name not in checked_below]
        if "max_tokens" in requested and not body.keys() & {"max_completion_tokens", "max_tokens"}:
            missing.append("max_tokens")
        if "top_logprobs" in requested and body.get("top_logprobs", 0) < requested["top_logprobs"]:
            missing.append("top_logprobs" if "logprobs" in body else "logprobs")
        if body.get("n", 1) < requested.get("n", 1):
            missing.append("n")
        if _EFFORT in body and _EFFORT not in requested:  # nobody wished for it, so it has to be said
            missing.append("reasoning")
        return tuple(missing)

    def with_max_choices(self, choices: int, body: dict[str, Any]) -> RequestAdapter:
        """The dialect for a server that sent this many choices: it need not be asked for more."""
        return replace(self, n=choices) if choices < body.get("n", 1) else self

    def after_refusal(self, refused: Refused, body: dict[str, Any]) -> RequestAdapter | None:
        """The dialect to try next when `body` was refused, None where no other words would help."""
        message, name = _server_message(refused), _rejected_parameter(refused, body)
        if name is None and refused.status in (400, 422) and self.unthinking and _EFFORT in body:
            name = _EFFORT  # the one thing in this body that not even the request asked for
        if name == _EFFORT and not self.unthinking:  # the user's: without it, a reply may cost much more
            name = "logprobs" if "logprobs" in body and "logprobs" in message else None
        if name == "n":
            # As many as the message allows, else one if the server knows no `n`, else half of them.
            fewer = _largest_below(body["n"], message) or (1 if _UNSUPPORTED.search(message) else body["n"] // 2)
            return replace(self, n=fewer)
        if name == "top_logprobs":
            # A message that names no smaller number may say that the server takes none at all.
            takes_some = _largest_below(body[name], message) or not _UNSUPPORTED.search(message)
            if takes_some and (lower := _LOWER_TOP.get(body[name])):
                return replace(self, top_logprobs=lower)
        if name == "max_completion_tokens" and refused.status is not None:
            return replace(self, limit_name="max_tokens")
        if name in ("max_completion_tokens", "max_tokens") and refused.status is None:
            return replace(self, too_short=body[name])
        if name in ("max_completion_tokens", "max_tokens"):
            return replace(self, limit_name=None)
        name = "logprobs" if name == "top_logprobs" else name
        known = refused.status in (400, 422) and not _UNKNOWN.search(message)
        tried = _EFFORT in body or _EFFORT in self.dropped
        if name == "logprobs" and known and not tried:  # they may come without reasoning
            return replace(self, unthinking=True, dropped=self.dropped - {"temperature"})
        if name == "logprobs" and not self.unthinking and _EFFORT in body:
            return replace(self, dropped=self.dropped | {"logprobs"})
        if name in (_EFFORT, "logprobs"):
            return replace(self, unthinking=False, dropped=self.dropped | {_EFFORT, "logprobs"})
        return replace(self, dropped=self.dropped | {name}) if name else None


def _server_message(refused: Refused) -> str:
    """What the server said, without the address and the status that stand before it."""
    message = str(refused)
    return message.partition(f" answered {refused.status}: ")[2] or message


def _rejected_parameter(refused: Refused, body: dict[str, Any]) -> str | None:
    """The parameter of `body` that the server objects to: as it says, else the first one its message names."""
    message = _server_message(refused)
    if refused.status is None:
        return refused.param if refused.param in body else None
    if refused.status not in (400, 403, 422):
        return None
    path = (refused.param or "").split(".")
    named = [path[0], path[-1]] if refused.param else [word.lower() for word in _PARAMETER_NAME.findall(message)]
    meant = [_ALIASES.get(word, word) for word in named]
    first = next((name for name in meant if name in body and name in (*_NAMES, "n")), None)
    if first in ("n", "response_format"):  # no text is refused in these words
        return first
    return first if _ABOUT_PARAMETER.search(message) and not _ABOUT_TEXT.search(message) else None


def _largest_below(requested: int, message: str) -> int:
    """The largest number in a message that is less than what was asked for; 0 where there is none."""
    return max((number for number in map(int, _NUMBER.findall(message)) if number < requested), default=0)
