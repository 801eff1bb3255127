"""What one server turned out to accept, learned from its refusals."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from judge.errors import Refused
from judge.records import Request, whole

_NAMES = ("top_logprobs", "logprobs", "max_completion_tokens", "max_tokens", "temperature", "seed")
_NAMED = re.compile("|".join(_NAMES))
_LOWER_TOP = {20: 5}
"""The largest top_logprobs a server takes is 20 at OpenAI and 5 at several others."""

# A refusal may name a parameter and still be about one text: too long for the model, against a policy.
_OF_THE_PARAMETER = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not allowed|not permitted|extra (?:inputs|fields)|must be|at most",
    re.I,
)
_OF_THE_TEXT = re.compile(r"context|policy|too (?:large|long|many)", re.I)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Turns what a request wants into a body this server accepts.

    Every step of `after` takes one more thing away, so that asking again comes to an end.
    """

    top_logprobs: int = 20
    limit_name: str | None = "max_completion_tokens"
    dropped: frozenset[str] = frozenset()

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON body for `POST /chat/completions`."""
        messages = [{name: whole(text) for name, text in m.items()} for m in request.messages]
        body: dict[str, Any] = {"model": request.model, "messages": messages}
        params = dict(request.params)
        if (limit := params.pop("max_tokens", None)) is not None and self.limit_name:
            body[self.limit_name] = limit
        if (top := params.pop("top_logprobs", None)) is not None and "logprobs" not in self.dropped:
            body |= {"logprobs": True, "top_logprobs": min(top, self.top_logprobs)}
        return body | {name: value for name, value in params.items() if name not in self.dropped}

    def unmet(self, request: Request, body: dict[str, Any]) -> tuple[str, ...]:
        """The wanted parameters which that body does not ask for, or asks less of."""
        wanted = request.params
        missing = [name for name in wanted if name not in body and name not in ("max_tokens", "top_logprobs")]
        if "max_tokens" in wanted and not body.keys() & {"max_completion_tokens", "max_tokens"}:
            missing.append("max_tokens")
        if "top_logprobs" in wanted and body.get("top_logprobs", 0) < wanted["top_logprobs"]:
            missing.append("top_logprobs" if "logprobs" in body else "logprobs")
        return tuple(missing)

    def after(self, refused: Refused, body: dict[str, Any]) -> Dialect | None:
        """The dialect to try next when `body` was refused, None where no other words would help."""
        name = _offender(refused, body)
        if name == "top_logprobs" and (lower := _LOWER_TOP.get(body[name])):
            return replace(self, top_logprobs=lower)
        if name in ("top_logprobs", "logprobs"):
            return replace(self, dropped=self.dropped | {"logprobs"})
        if name == "max_completion_tokens" and refused.status is not None:
            return replace(self, limit_name="max_tokens")
        if name in ("max_completion_tokens", "max_tokens"):
            return replace(self, limit_name=None)
        return replace(self, dropped=self.dropped | {name}) if name else None


def _offender(refused: Refused, body: dict[str, Any]) -> str | None:
    """The parameter of `body` that the server objects to: as it says, else the first one its message names."""
    message = str(refused)
    if refused.status is None:
        return refused.param if refused.param in body else None
    if refused.status not in (400, 403, 422) or _OF_THE_TEXT.search(message) or not _OF_THE_PARAMETER.search(message):
        return None
    named = [refused.param] if refused.param else _NAMED.findall(message)
    return next((name for name in named if name in body and name in _NAMES), None)
