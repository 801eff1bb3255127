"""The body of a request in the form that one server accepts, which `refusals` finds by trying."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from judge.core.normalization import whole
from judge.core.records import Message, Request

Caching = Literal["key", "explicit", ""]
"""The prompt-cache fields of a request: a group's key, also its prefix's end, or none."""
_EFFORT = "reasoning_effort"
_CACHE_KEY = "prompt_cache_key"
_CACHE_OPTIONS = "prompt_cache_options"
_BREAKPOINT = "prompt_cache_breakpoint"
_LIMIT_NAMES = {"max_completion_tokens", "max_tokens"}
# OpenAI gives at most 20 probabilities for a token.
_MOST_PROBABILITIES = 20
_DEFAULT_LIMIT_NAME = "max_completion_tokens"


@dataclass(frozen=True, slots=True)
class RequestAdapter:
    """Turns what a request asks for into a body that this server accepts.

    - `top_logprobs`: the most probabilities of a token to ask for.
    - `limit_name`: the server's name of the parameter `max_tokens`, None if it accepts none.
    - `n`: the most choices to ask for at once, None for any number.
    - `unthinking`: sends a reasoning effort of `none` with a request for log probabilities.
      OpenAI's later models give them only while they do not reason, and most of them do by default.
      It is tried once, and only for log probabilities: no model stops reasoning for a temperature.
      An effort in the request takes precedence.
    - `tried_unthinking`: whether that effort was tried in vain.
    - `dropped`: parameters that are not sent, because the server refuses them.
    - `caching`: "key" names a request's group, so that the server routes requests about one
      document to one machine. "explicit" is for models that charge for writing to the cache: judge
      writes only text that it will read again.
    - `too_short`: limits of up to so many tokens are not sent, because hidden reasoning has used
      them up.
    """

    top_logprobs: int = _MOST_PROBABILITIES
    limit_name: str | None = _DEFAULT_LIMIT_NAME
    n: int | None = None
    unthinking: bool = False
    dropped: frozenset[str] = frozenset()
    caching: Caching = ""
    too_short: int = 0
    tried_unthinking: bool = False

    @property
    def known_limits(self) -> dict[str, Any]:
        """What this server does not accept, as plain JSON."""
        dropped = set(self.dropped)
        if self.limit_name is None or self.too_short:
            dropped.add("max_tokens")
        facts: dict[str, Any] = {}
        if self.n:
            facts["n"] = self.n
        if self.top_logprobs and self.top_logprobs != _MOST_PROBABILITIES:
            facts["top_logprobs"] = self.top_logprobs
        if self.limit_name and self.limit_name != _DEFAULT_LIMIT_NAME:
            facts["limit"] = self.limit_name
        if self.unthinking:
            facts[_EFFORT] = "none"
        if dropped:
            facts["dropped"] = sorted(dropped)
        return facts

    def body(self, request: Request) -> dict[str, Any]:
        """Return the JSON body for `POST /chat/completions`."""
        body: dict[str, Any] = {
            "model": request.model,
            "messages": _messages(request),
        }
        body |= self._cache_parameters(request)
        if _CACHE_OPTIONS in body and request.prefix[1]:
            _mark_prefix(body["messages"], request)
        params = dict(request.params)
        # The HTTP client sends the headers.
        params.pop("headers", None)
        max_tokens = params.pop("max_tokens", None)
        if max_tokens is not None and self.limit_name and max_tokens > self.too_short:
            body[self.limit_name] = max_tokens
        n_alternatives = params.pop("top_logprobs", None)
        if n_alternatives is not None and "logprobs" not in self.dropped:
            body["logprobs"] = True
            body["top_logprobs"] = min(n_alternatives, self.top_logprobs)
        n_choices = params.pop("n", 1)
        if self.n:
            n_choices = min(n_choices, self.n)
        # One choice is the default, and some servers refuse the parameter altogether.
        if n_choices > 1:
            body["n"] = n_choices
        body |= self._accepted(params)
        if self.unthinking and "logprobs" in body:
            # An effort in the request stays.
            body.setdefault(_EFFORT, "none")
        return body

    def _accepted(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that are not dropped."""
        return {
            parameter: value
            for parameter, value in parameters.items()
            if parameter not in self.dropped
        }

    def _cache_parameters(self, request: Request) -> dict[str, Any]:
        """Return the parameters about the provider's prompt cache."""
        prefix_group, _ = request.prefix
        parameters: dict[str, Any] = {}
        if self.caching and prefix_group:
            parameters[_CACHE_KEY] = prefix_group
        if self.caching == "explicit":
            # Without a breakpoint in the messages, this turns writing to the cache off.
            parameters[_CACHE_OPTIONS] = {"mode": "explicit"}
        return self._accepted(parameters)

    def unmet(self, request: Request, body: dict[str, Any]) -> tuple[str, ...]:
        """Return the parameters of the request that a body lacks, or has with a smaller value.

        "reasoning" is among them if the body turns it off.
        """
        requested = dict(request.params)
        if requested.get("temperature") == 1:
            # A server that takes no temperature samples at 1.
            del requested["temperature"]
        # The first three have other names or values in a body, so they are compared below. Headers
        # are no part of it.
        not_by_name = ("max_tokens", "top_logprobs", "n", "headers")
        missing = [
            parameter
            for parameter in requested
            if parameter not in body and parameter not in not_by_name
        ]
        if "max_tokens" in requested and not body.keys() & _LIMIT_NAMES:
            missing.append("max_tokens")
        if body.get("top_logprobs", 0) < requested.get("top_logprobs", 0):
            parameter = "top_logprobs" if "logprobs" in body else "logprobs"
            missing.append(parameter)
        if body.get("n", 1) < requested.get("n", 1):
            missing.append("n")
        if _EFFORT in body and _EFFORT not in requested:
            # The user did not request that, so the report has to say it.
            missing.append("reasoning")
        return tuple(missing)

    def with_max_choices(self, choices: int, body: dict[str, Any]) -> RequestAdapter:
        """Return the adapter for a server that answered the body with this many choices.

        If they are fewer than requested, no more are asked for at once.
        """
        requested = body.get("n", 1)
        if choices >= requested:
            return self
        return replace(self, n=choices)


def _messages(request: Request) -> list[dict[str, Any]]:
    """Return the messages in valid UTF-8."""
    return [_valid_message(message) for message in request.messages]


def _valid_message(message: Message) -> dict[str, Any]:
    """Return a message without lone surrogates, which UTF-8 cannot encode."""
    return {name: whole(text) for name, text in message.items()}


def _mark_prefix(messages: list[dict[str, Any]], request: Request) -> None:
    """Put a breakpoint after the prefix that other requests will read from the cache.

    The prefix is the beginning of the first message after the system messages.
    """
    position = 0
    while messages[position]["role"] == "system":
        position += 1
    text = request.messages[position]["content"]
    _, length = request.prefix
    # Only a part of a message can have a breakpoint, so the message becomes a list of parts.
    prefix = whole(text[:length])
    rest = whole(text[length:])
    prefix_part = {
        "type": "text",
        "text": prefix,
        _BREAKPOINT: {"mode": "explicit"},
    }
    parts: list[dict[str, Any]] = [prefix_part]
    if rest:
        parts.append({"type": "text", "text": rest})
    messages[position]["content"] = parts
