"""The body of a request in the form that one server accepts. `refusals` finds that form by trying."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from judge.core.records import Request, whole

Caching = Literal["key", "explicit", ""]
"""What a server is told of prompt caching: a group's key, also where to break the prefix off, or nothing."""
_EFFORT = "reasoning_effort"
_CACHE_KEY, _CACHE_OPTIONS, _BREAKPOINT = (
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_breakpoint",
)


@dataclass(frozen=True, slots=True)
class RequestAdapter:
    """Turns what a request wants into a body this server accepts.

    `n` is the most choices to ask for at once, None as many as are wanted. `unthinking` sends a reasoning effort of
    `none` with a wish for log probabilities: OpenAI's later models give them only while they do not reason, and most of
    them do unless told not to. It is tried once, and for nothing less: no model stops reasoning for a temperature.
    An effort that the request names takes precedence.
    Limits of up to `too_short` tokens are not sent, because hidden reasoning has used them up.

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
        dropped = (self.dropped - {_EFFORT}) | (
            {"max_tokens"} if self.limit_name is None or self.too_short else set()
        )
        facts = {
            "n": self.n,
            "top_logprobs": self.top_logprobs
            if self.top_logprobs != RequestAdapter().top_logprobs
            else None,
            "limit": self.limit_name if self.limit_name != RequestAdapter().limit_name else None,
            _EFFORT: "none" if self.unthinking else None,
            "dropped": sorted(dropped),
        }
        return {name: fact for name, fact in facts.items() if fact}

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON body for `POST /chat/completions`."""
        messages: list[dict[str, Any]] = [
            {name: whole(text) for name, text in m.items()} for m in request.messages
        ]
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
            first = next(
                place for place, message in enumerate(messages) if message["role"] != "system"
            )
            text, length = request.messages[first]["content"], request.prefix[1]
            head = {"type": "text", "text": whole(text[:length]), _BREAKPOINT: {"mode": "explicit"}}
            tail = [{"type": "text", "text": whole(text[length:])}] if text[length:] else []
            messages[first]["content"] = [head, *tail]
        params = {
            name: value for name, value in request.params.items() if name != "headers"
        }  # the client sends them
        if (
            (limit := params.pop("max_tokens", None)) is not None
            and self.limit_name
            and limit > self.too_short
        ):
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
        requested = {
            name: value
            for name, value in request.params.items()
            if (name, value) != ("temperature", 1)
        }
        checked_below = ("max_tokens", "top_logprobs", "n", "headers")
        missing = [name for name in requested if name not in body and name not in checked_below]
        if "max_tokens" in requested and not body.keys() & {"max_completion_tokens", "max_tokens"}:
            missing.append("max_tokens")
        if "top_logprobs" in requested and body.get("top_logprobs", 0) < requested["top_logprobs"]:
            missing.append("top_logprobs" if "logprobs" in body else "logprobs")
        if body.get("n", 1) < requested.get("n", 1):
            missing.append("n")
        if (
            _EFFORT in body and _EFFORT not in requested
        ):  # nobody wished for it, so it has to be said
            missing.append("reasoning")
        return tuple(missing)

    def with_max_choices(self, choices: int, body: dict[str, Any]) -> RequestAdapter:
        """The dialect for a server that sent this many choices: it need not be asked for more."""
        return replace(self, n=choices) if choices < body.get("n", 1) else self
