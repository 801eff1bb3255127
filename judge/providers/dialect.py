"""What one server turned out to accept, found out from its refusals and remembered for the run."""

from __future__ import annotations

import re
from typing import Any

from judge.errors import Refused
from judge.records import Request

_NAMES = ("top_logprobs", "logprobs", "max_completion_tokens", "max_tokens", "temperature", "seed")
_NAMED = re.compile("|".join(_NAMES))
_TOP_STEPS = {20: 5}
"""The largest top_logprobs a server takes is 20 at OpenAI and 5 at several others."""


class Dialect:
    """Turns what a request wants into a body this server accepts.

    Every refusal that names a parameter removes or renames that parameter, so a dialect only ever gets
    shorter: at most one refusal a step, whatever the order in which concurrent requests come back.
    """

    def __init__(self) -> None:
        self.top_logprobs = 20
        self.limit_name: str | None = "max_completion_tokens"
        self.dropped: set[str] = set()

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON body for `POST /chat/completions`."""
        messages = [{name: _sendable(text) for name, text in m.items()} for m in request.messages]
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

    def learn(self, refused: Refused, body: dict[str, Any]) -> bool:
        """Whether there is another way to ask what `body` asked, after this refusal of it."""
        name = _offender(refused, body)
        if name in ("top_logprobs", "logprobs"):
            lower = _TOP_STEPS.get(body["top_logprobs"]) if name == "top_logprobs" else None
            if lower:
                self.top_logprobs = min(self.top_logprobs, lower)
            else:
                self.dropped.add("logprobs")
        elif name == "max_completion_tokens" and refused.status is not None:
            self.limit_name = "max_tokens" if self.limit_name == name else self.limit_name
        elif name in ("max_completion_tokens", "max_tokens"):
            self.limit_name = None
        elif name:
            self.dropped.add(name)
        return name is not None


def _sendable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot carry, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _offender(refused: Refused, body: dict[str, Any]) -> str | None:
    """The parameter of `body` that the server objects to: as it says, else the first one its message names."""
    if refused.param is None and refused.status not in (400, 403, 422):
        return None
    named = [refused.param] if refused.param else _NAMED.findall(str(refused))
    return next((name for name in named if name in body and name in _NAMES), None)
