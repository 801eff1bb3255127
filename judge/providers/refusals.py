"""Find the request that a server accepts in place of one that it refused, by trying.

Servers refuse a parameter in words of their own: "Logprobs is not enabled for models/…", "`temperature` is deprecated
for this model", "Cannot request more than 5 logprobs". So the words decide nothing here. They only say which parameter
to try without first. What the server then accepts is what counts.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from judge.core.errors import Refused
from judge.core.records import Request, Response
from judge.providers.server_capabilities import RequestAdapter

REFUSED_STATUSES = (400, 403, 422)
"""The statuses with which servers refuse a parameter. A wrong key or address has another one."""

# The optional parameters in the order in which they are tried without: first what changes no score,
# last what the user asked for. `limit` is the limit on the reply's length, under either of its names.
_CACHE_KEY = "prompt_cache_key"
_CACHE_OPTIONS = "prompt_cache_options"
_LOGPROBS = "logprobs"
_LIMIT = "limit"
_EFFORT = "reasoning_effort"
_LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
_MENTIONS = {
    _CACHE_KEY: r"prompt_cache_key|cache[_ ]key",
    _CACHE_OPTIONS: r"prompt_cache_(?:options|breakpoint)|cache[_ ](?:options|breakpoint)",
    _LOGPROBS: r"log[_ ]?prob|top_n_tokens|token probabilit",
    "n": r"(?<![\w\\])n(?!\w)|candidate|choices|best_of|num_return_sequences|samples",
    "temperature": r"temperature|sampling parameter",
    "response_format": r"response[_ ]?format|json[_ -]?(?:schema|mode|object)|structured output",
    _LIMIT: r"max(?:imum)?[_ ](?:completion[_ ]|new[_ ]|output[_ ])?tokens",
    _EFFORT: r"reasoning|thinking",
    "seed": r"\bseed\b",
}
"""How servers name each parameter, such as `top_n_tokens` for `logprobs` (TGI) or `candidates` for `n` (Gemini)."""
_MENTIONED = {name: re.compile(words, re.IGNORECASE) for name, words in _MENTIONS.items()}
_UNKNOWN = r"unknown|unrecogni[sz]ed|unexpected|cannot find|extra (?:inputs|fields)"
_NEVER_SUPPORTED = re.compile(_UNKNOWN, re.IGNORECASE)
_UNSUPPORTED = re.compile(
    rf"{_UNKNOWN}|unsupported|not support|not enabled|not available|unavailable|deprecated|not allowed|no longer",
    re.IGNORECASE,
)
"""In these words there is little hope that the server accepts a smaller number, so that is tried last."""
_ABOUT_TEXT = re.compile(
    r"context|too (?:long|large|many)|prompt is|policy|content|safety", re.IGNORECASE
)
"""Such a message is about the text, such as "the maximum context length is 8192 tokens", though it may name a limit."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(?!\w|\.\d)")
_FEWER_PROBABILITIES = (5, 2)
"""Several servers list at most 5 probabilities for a token."""
_MOST_TRIALS = 40
"""No known server needs a dozen. This ends the search where every refusal is worded differently."""

Send = Callable[[RequestAdapter], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of one parameter. `adds` says that it adds one, which has to help at once."""

    name: str
    adapter: RequestAdapter
    mentioned: bool
    adds: bool = False


def optional_parameters(body: Mapping[str, Any]) -> dict[str, int]:
    """Return the optional parameters of a body, in the order in which they are tried without.

    The number of replies and of probabilities come with their value, everything else with 1.
    """
    present = {name: 1 for name in _MENTIONS if name in body}
    if _LOGPROBS in body:
        present[_LOGPROBS] = body.get("top_logprobs", 1)
    if "n" in body:
        present["n"] = body["n"]
    if any(name in body for name in _LIMIT_NAMES):
        present[_LIMIT] = 1
    return {name: present[name] for name in _MENTIONS if name in present}


def mentions_parameter(refused: Refused, body: Mapping[str, Any]) -> bool:
    """Return whether a refusal names an optional parameter of the body and does not seem to be about the text."""
    named = _mentioned_in(refused) & optional_parameters(body).keys()
    return bool(named) and not _ABOUT_TEXT.search(_server_message(refused))


class RefusalSearch:
    """The search for what a server accepts, after it refused the request as `before` writes it.

    `send` sends the request as an adapter writes it.
    """

    def __init__(self, before: RequestAdapter, request: Request, send: Send) -> None:
        self._before = before
        self._request = request
        self._send = send
        self._tried = {before}
        self._changes: list[_Step] = []

    async def run(self, refused: Refused) -> tuple[RequestAdapter, Response]:
        """Return the adapter whose body the server accepts, and its response.

        Parameters are dropped or lowered one at a time. A change stays if the server then accepts the request or
        refuses it for another reason. If no single change helps, the bare request is sent. At the end, what was dropped
        without a word of the server is put back as far as it is accepted. The usage is that of all accepted requests.

        Raises `refused` if the bare request is refused too, as then no parameter is the reason.
        """
        accepted = await self._drop_one_at_a_time(refused) or await self._drop_all(refused)
        if accepted is None:
            raise refused
        return await self._put_back(*accepted)

    async def _drop_one_at_a_time(self, refused: Refused) -> tuple[RequestAdapter, Response] | None:
        steps = _steps(self._before, self._request, refused)
        while (step := next(steps, None)) is not None:
            answer = await self._try(step.adapter)
            if isinstance(answer, Response):
                self._changes.append(step)
                return step.adapter, answer
            if answer is not None and self._is_progress(step, refused, answer):
                self._changes.append(step)
                refused = answer
                steps = _steps(step.adapter, self._request, refused)
        return None

    def _is_progress(self, step: _Step, before: Refused, after: Refused) -> bool:
        """Return whether the server now refuses the request for another reason."""
        if step.adds:
            body = step.adapter.body(self._request)
            others = optional_parameters(body).keys() - {_LOGPROBS, _EFFORT}
            return bool(_mentioned_in(after) & others)
        return _reason(before) != _reason(after)

    async def _drop_all(self, refused: Refused) -> tuple[RequestAdapter, Response] | None:
        present = optional_parameters(self._before.body(self._request))
        if _ABOUT_TEXT.search(_server_message(refused)):
            present.pop(
                _LIMIT, None
            )  # a shorter limit would help one text, and none at all costs all others
        bare = self._before
        self._changes = []
        for name in present:
            bare = _without(name, bare)
            self._changes.append(_Step(name, bare, mentioned=False))
        answer = await self._try(bare)
        return (bare, answer) if isinstance(answer, Response) else None

    async def _put_back(
        self, adapter: RequestAdapter, response: Response
    ) -> tuple[RequestAdapter, Response]:
        if len(self._changes) == 1:
            return adapter, response
        guessed = dict.fromkeys(step.name for step in self._changes if not step.mentioned)
        for name in guessed:
            for restored in _restored(name, adapter, self._before):
                answer = await self._try(restored)
                if isinstance(answer, Response):
                    adapter = restored
                    response = replace(answer, usage=response.usage + answer.usage)
                    break
        return adapter, response

    async def _try(self, adapter: RequestAdapter) -> Response | Refused | None:
        """Return the server's answer, None if this was tried before. Raises what is no refusal of a parameter."""
        if adapter in self._tried or len(self._tried) > _MOST_TRIALS:
            return None
        self._tried.add(adapter)
        try:
            return await self._send(adapter)
        except Refused as refused:
            if refused.status not in REFUSED_STATUSES:
                raise
            return refused


def _steps(adapter: RequestAdapter, request: Request, refused: Refused) -> Iterator[_Step]:
    """Yield the changes to try after a refusal: first of the parameters that it mentions."""
    body = adapter.body(request)
    message = _server_message(refused)
    mentioned = _mentioned_in(refused)
    present = list(optional_parameters(body))
    for name in sorted(present, key=lambda name: name not in mentioned):
        is_mentioned = name in mentioned
        if name == _LOGPROBS:
            yield from _logprobs_steps(adapter, body, refused, is_mentioned)
        elif name == "n":
            for fewer in _fewer_replies(body["n"], message, is_mentioned):
                yield _Step(name, replace(adapter, n=fewer), is_mentioned)
        elif name == _LIMIT:
            other = _LIMIT_NAMES[adapter.limit_name == _LIMIT_NAMES[0]]
            yield _Step(name, replace(adapter, limit_name=other), is_mentioned)
            if not _ABOUT_TEXT.search(message):
                yield _Step(name, _without(name, adapter), is_mentioned)
        else:
            yield _Step(name, _without(name, adapter), is_mentioned)


def _logprobs_steps(
    adapter: RequestAdapter, body: Mapping[str, Any], refused: Refused, mentioned: bool
) -> Iterator[_Step]:
    """Yield ways to go on without 20 probabilities for a token: fewer, without reasoning, or none."""
    message = _server_message(refused)
    without = _Step(_LOGPROBS, _without(_LOGPROBS, adapter), mentioned)
    asked = body["top_logprobs"]
    named = _largest_below(asked, message)
    numbers = [named] if named else []
    numbers += [fewer for fewer in _FEWER_PROBABILITIES if fewer < asked and fewer != named]
    lowered = [
        _Step(_LOGPROBS, replace(adapter, top_logprobs=fewer), mentioned) for fewer in numbers
    ]
    hopeless = mentioned and not named and _UNSUPPORTED.search(message)
    if not hopeless:
        yield from lowered
    # Models that reason by default give probabilities only with an effort of `none` (OpenAI), and a temperature, too.
    untold = _EFFORT not in body and _EFFORT not in adapter.dropped
    if mentioned and untold and refused.status != 403 and not _NEVER_SUPPORTED.search(message):
        unthinking = replace(adapter, unthinking=True, dropped=adapter.dropped - {"temperature"})
        yield _Step(_LOGPROBS, unthinking, mentioned, adds=True)
    yield without
    if hopeless:
        yield from lowered


def _fewer_replies(asked: int, message: str, mentioned: bool) -> list[int]:
    """Return the numbers of replies to try: the largest one that the message names, halves, and 1."""
    if not mentioned or (_UNSUPPORTED.search(message) and not _largest_below(asked, message)):
        return [1]
    numbers = [_largest_below(asked, message)]
    half = asked // 2
    while half >= 1:
        numbers.append(half)
        half //= 2
    return [number for number in dict.fromkeys(numbers) if number]


def _without(name: str, adapter: RequestAdapter) -> RequestAdapter:
    if name == "n":
        return replace(adapter, n=1)
    if name == _LIMIT:
        return replace(adapter, limit_name=None)
    if name == _LOGPROBS or (
        name == _EFFORT and adapter.unthinking
    ):  # the effort was for the probabilities
        own_effort = {_EFFORT} if adapter.unthinking else set()
        return replace(
            adapter, unthinking=False, dropped=adapter.dropped | {_LOGPROBS} | own_effort
        )
    return replace(adapter, dropped=adapter.dropped | {name})


def _restored(name: str, adapter: RequestAdapter, before: RequestAdapter) -> list[RequestAdapter]:
    """Return the ways to put a parameter back, the best first."""
    if name == "n":
        return [replace(adapter, n=before.n)]
    if name == _LIMIT:
        names = (before.limit_name, *_LIMIT_NAMES)
        return [replace(adapter, limit_name=limit) for limit in dict.fromkeys(names) if limit]
    dropped = adapter.dropped - {name}
    if name == _LOGPROBS:
        counts = (before.top_logprobs, *_FEWER_PROBABILITIES)
        return [replace(adapter, dropped=dropped, top_logprobs=count) for count in counts]
    return [replace(adapter, dropped=dropped)]


def _reason(refused: Refused) -> tuple[int | None, str | None, str]:
    """Return what tells two refusals apart: not the numbers in their messages, which may be those of the request."""
    return refused.status, refused.param, re.sub(r"\S*\d\S*", "#", _server_message(refused).lower())


def _mentioned_in(refused: Refused) -> set[str]:
    """Return the parameters that a refusal names: in its field `param`, else in its message."""
    named = _names_in(refused.param or "")
    return named or _names_in(_server_message(refused))


def _names_in(words: str) -> set[str]:
    return {name for name, pattern in _MENTIONED.items() if pattern.search(words)}


def _server_message(refused: Refused) -> str:
    """Return what the server said, without the address and the status before it."""
    message = str(refused)
    return message.partition(f" answered {refused.status}: ")[2] or message


def _largest_below(asked: int, message: str) -> int:
    """Return the largest number in a message that is less than what was asked for; 0 if there is none."""
    numbers = [int(number) for number in _NUMBER.findall(message)]
    return max((number for number in numbers if 0 < number < asked), default=0)
