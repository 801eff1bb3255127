"""Find the request that a server accepts in place of one that it refused, by trying.

Servers refuse a parameter in words of their own: "Logprobs is not enabled for models/…",
"`temperature` is deprecated for this model", "Cannot request more than 5 logprobs". So the words
decide nothing here. They only suggest which parameter to try without first; the result depends on
what the server then accepts.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from judge.core.errors import ProviderError, Refused, Transient
from judge.core.records import Request, Response
from judge.providers.server_capabilities import RequestAdapter

# The statuses with which servers refuse a parameter in any words. A wrong key or address has
# another one.
_REFUSED_STATUSES = (400, 403, 422)
# A refusal has to name a parameter to be one with these: an error in a 200 reply (MiniMax, Baidu),
# "No endpoints found that support the requested parameters" (404, OpenRouter), and what a server
# behind a gateway raised (500 and 502, vLLM, SGLang, LiteLLM).
_OTHER_STATUSES = (200, 404, 405, 406, 409, 412, 415, 500, 501, 502)

_CACHE_KEY = "prompt_cache_key"
_CACHE_OPTIONS = "prompt_cache_options"
_LOGPROBS = "logprobs"
# The limit on the reply's length, under either of its names.
_LIMIT = "limit"
_EFFORT = "reasoning_effort"
_LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
# How servers name each optional parameter, such as `top_n_tokens` for `logprobs` (TGI). The
# parameters are in the order in which they are tried without: first those that change no score,
# last those that the user set.
_MENTIONS = {
    # "Unknown parameter: prompt_cache_key"
    _CACHE_KEY: r"prompt_cache_key|cache[_ ]key",
    # "prompt_cache_options is not supported", "cache breakpoint"
    _CACHE_OPTIONS: r"prompt_cache_(?:options|breakpoint)|cache[_ ](?:options|breakpoint)",
    # "Logprobs is not enabled", "top_n_tokens"
    _LOGPROBS: r"log[_ ]?prob|top_n_tokens|token probabilit",
    # "n must be 1", "Multiple candidates is not enabled"; not the n of "\\n" or "n_ctx"
    "n": r"(?<![\w\\])n(?!\w)|candidate|choices|best_of|num_return_sequences|samples",
    # "`temperature` is deprecated for this model"
    "temperature": r"temperature|sampling parameter",
    # "response_format", "JSON mode is not supported"
    "response_format": r"response[_ ]?format|json[_ -]?(?:schema|mode|object)|structured output",
    # "max_tokens", "maximum output tokens"
    _LIMIT: r"max(?:imum)?[_ ](?:completion[_ ]|new[_ ]|output[_ ])?tokens",
    # "reasoning_effort", "thinking is always on"
    _EFFORT: r"reasoning|thinking",
    # "Unsupported parameter: seed"
    "seed": r"\bseed\b",
}
_MENTIONED = {
    name: re.compile(words, re.IGNORECASE) for name, words in _MENTIONS.items()
}
# "Unrecognized request argument", "Extra inputs are not permitted"
_UNKNOWN = r"unknown|unrecogni[sz]ed|unexpected|cannot find|extra (?:inputs|fields)"
_NEVER_SUPPORTED = re.compile(_UNKNOWN, re.IGNORECASE)
# "`logprobs` is not supported". A smaller number will hardly be accepted then, so it is tried last.
_UNSUPPORTED = re.compile(
    rf"{_UNKNOWN}|unsupported|not support|not enabled|not available|unavailable|deprecated"
    r"|not allowed|no longer",
    re.IGNORECASE,
)
# What makes a refusal of a message that names a parameter: "n must be 1", "cannot return logprobs"
_REFUSING = re.compile(
    rf"{_UNSUPPORTED.pattern}|invalid|must be|cannot|can't|not implemented|not permitted"
    r"|not accept|no endpoints found|不支持|非法",
    re.IGNORECASE,
)
# "the requested parameters", without their names
_ANY_PARAMETER = re.compile(r"\bparameters?\b|参数", re.IGNORECASE)
# "the maximum context length is 8192 tokens": about the text, although it may name a limit.
# "Content Exists Risk" (DeepSeek), "was flagged" (OpenAI), "敏感内容" (Zhipu): filtered.
_ABOUT_TEXT = re.compile(
    r"context|too (?:long|large|many)|prompt is|policy|content|safety|inputs?`? (?:token|length)"
    r"|\brisk\b|flagged|敏感",
    re.IGNORECASE,
)
# The 5 of "more than 5 logprobs", but no part of "gpt-5.4-mini" or "2.5".
_NUMBER = re.compile(r"(?<![\w.-])\d+(?!\w|\.\d)")
# "8192", "gpt-5.4", "req_01a": words that may differ between two refusals for the same reason.
_WORD_WITH_DIGIT = re.compile(r"\S*\d\S*")
# Several servers list at most 5 probabilities for a token.
_FEWER_PROBABILITIES = (5, 2)
# No known server needs a dozen. The limit ends the search if every refusal is worded differently.
_MOST_TRIALS = 40

Send = Callable[[RequestAdapter], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A change of one parameter. If it `adds` one, it has to help at once."""

    name: str
    adapter: RequestAdapter
    mentioned: bool
    adds: bool = False


def optional_parameters(body: Mapping[str, Any]) -> dict[str, int]:
    """Return the optional parameters of a body, in the order in which they are tried without.

    The numbers of replies and of probabilities are the values of `n` and `logprobs`; all others
    have the value 1.
    """
    present = {parameter: 1 for parameter in _MENTIONS if parameter in body}
    if _LOGPROBS in body:
        present[_LOGPROBS] = body.get("top_logprobs", 1)
    if "n" in body:
        present["n"] = body["n"]
    if any(parameter in body for parameter in _LIMIT_NAMES):
        present[_LIMIT] = 1
    return {
        parameter: present[parameter] for parameter in _MENTIONS if parameter in present
    }


def may_refuse_parameter(
    error: ProviderError,
    body: Mapping[str, Any],
    accepted: Mapping[str, int],
) -> bool:
    """Return whether an error may be the refusal of an optional parameter of a body.

    `accepted` has the largest value of each parameter that the server has accepted. An accepted
    parameter can only be refused if the error names it, and is probably not about the text. No
    parameter is the reason if the error is about the model and names none.
    """
    is_no_such_path = _is_no_such_path(error)
    stops_run = isinstance(error, Refused) and error.stops == "always"
    if stops_run and not is_no_such_path:
        return False
    present = optional_parameters(body)
    new = {name for name, value in present.items() if value > accepted.get(name, 0)}
    named = _mentioned_in(error) & present.keys()
    if _param(error) == "model" and not is_no_such_path:
        return bool(named)
    if _status(error) in _REFUSED_STATUSES:
        return bool(new) or (bool(named) and not is_about_text(error))
    if isinstance(error, Transient):
        # What fails only now and then is no refusal of a parameter.
        named &= new
    if not _refuses_by_words(error):
        return False
    return bool(named) or (bool(new) and _names_any_parameter(error))


def _refuses_by_words(error: ProviderError) -> bool:
    """Return whether the words of an error refuse something, so that its status does not matter."""
    if _status(error) not in _OTHER_STATUSES or is_about_text(error):
        return False
    return _REFUSING.search(_server_message(error)) is not None


def _names_any_parameter(error: ProviderError) -> bool:
    if not _is_no_such_path(error):
        return False
    return _ANY_PARAMETER.search(_server_message(error)) is not None


def _is_no_such_path(error: ProviderError) -> bool:
    """Return whether the status means a wrong address, unless the words say otherwise."""
    return _status(error) in (404, 405)


def _status(error: ProviderError) -> int | None:
    return error.status if isinstance(error, Refused | Transient) else None


def is_about_text(refused: ProviderError) -> bool:
    """Return whether a refusal is probably about the text: it is too long, or filtered."""
    return _ABOUT_TEXT.search(_server_message(refused)) is not None


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

    async def run(self, refused: ProviderError) -> tuple[RequestAdapter, Response]:
        """Return the adapter whose body the server accepts, and its response.

        Parameters are dropped or lowered one at a time. A change stays if the server then accepts
        the request or refuses it for another reason. If no single change helps, the bare request
        is sent. At the end, parameters that the server never mentioned are put back if it accepts
        them. The usage is that of all accepted requests.

        Raises `refused` if the bare request is refused too, as then no parameter is the reason.
        """
        accepted = await self._drop_one_at_a_time(refused)
        if accepted is None:
            accepted = await self._drop_all(refused)
        if accepted is None:
            raise refused
        return await self._put_back(*accepted)

    async def _drop_one_at_a_time(
        self, refused: ProviderError
    ) -> tuple[RequestAdapter, Response] | None:
        steps = _steps(self._before, self._request, refused)
        while (step := next(steps, None)) is not None:
            answer = await self._try(step.adapter)
            if isinstance(answer, Response):
                self._changes.append(step)
                return step.adapter, answer
            if answer is not None and self._is_progress(step, refused, answer):
                # The next steps change what this step left.
                self._changes.append(step)
                refused = answer
                steps = _steps(step.adapter, self._request, refused)
        return None

    def _is_progress(
        self,
        step: _Step,
        before: ProviderError,
        after: ProviderError,
    ) -> bool:
        """Return whether the server now refuses the request for another reason."""
        if step.adds:
            body = step.adapter.body(self._request)
            others = optional_parameters(body).keys() - {_LOGPROBS, _EFFORT}
            return bool(_mentioned_in(after) & others)
        return _reason(before) != _reason(after)

    async def _drop_all(
        self, refused: ProviderError
    ) -> tuple[RequestAdapter, Response] | None:
        present = optional_parameters(self._before.body(self._request))
        if is_about_text(refused):
            # Without a limit this text might fit, but all others would cost more.
            present.pop(_LIMIT, None)
        bare = self._before
        self._changes = []
        for parameter in present:
            bare = _without(parameter, bare)
            self._changes.append(_Step(parameter, bare, mentioned=False))
        answer = await self._try(bare)
        return (bare, answer) if isinstance(answer, Response) else None

    async def _put_back(
        self,
        adapter: RequestAdapter,
        response: Response,
    ) -> tuple[RequestAdapter, Response]:
        if len(self._changes) == 1:
            return adapter, response
        guessed_names = dict.fromkeys(
            step.name for step in self._changes if not step.mentioned
        )
        for parameter in guessed_names:
            for restored in _restored(parameter, adapter, self._before):
                answer = await self._try(restored)
                if isinstance(answer, Response):
                    adapter = restored
                    response = replace(answer, usage=response.usage + answer.usage)
                    break
        return adapter, response

    async def _try(self, adapter: RequestAdapter) -> Response | ProviderError | None:
        """Return the server's answer, None if this was tried before.

        Raises other errors than a refusal of a parameter.
        """
        if adapter in self._tried or len(self._tried) > _MOST_TRIALS:
            return None
        self._tried.add(adapter)
        try:
            return await self._send(adapter)
        except (Refused, Transient) as error:
            if error.status not in _REFUSED_STATUSES and not _refuses_by_words(error):
                raise
            return error


def _steps(
    adapter: RequestAdapter,
    request: Request,
    refused: ProviderError,
) -> Iterator[_Step]:
    """Yield the changes to try after a refusal: first of the parameters that it mentions."""
    body = adapter.body(request)
    message = _server_message(refused)
    mentioned = _mentioned_in(refused)
    present = list(optional_parameters(body))
    present.sort(key=lambda name: name not in mentioned)
    for name in present:
        is_mentioned = name in mentioned
        if name == _LOGPROBS:
            yield from _logprobs_steps(adapter, body, refused, is_mentioned)
        elif name == "n":
            for fewer in _fewer_replies(body["n"], message, is_mentioned):
                yield _Step(name, replace(adapter, n=fewer), is_mentioned)
        elif name == _LIMIT:
            newer_name, older_name = _LIMIT_NAMES
            other_name = older_name if adapter.limit_name == newer_name else newer_name
            yield _Step(name, replace(adapter, limit_name=other_name), is_mentioned)
            if not _ABOUT_TEXT.search(message):
                yield _Step(name, _without(name, adapter), is_mentioned)
        else:
            yield _Step(name, _without(name, adapter), is_mentioned)


def _logprobs_steps(
    adapter: RequestAdapter,
    body: Mapping[str, Any],
    refused: ProviderError,
    mentioned: bool,
) -> Iterator[_Step]:
    """Yield ways without 20 probabilities for a token: fewer, without reasoning, or none."""
    message = _server_message(refused)
    requested = body["top_logprobs"]
    stated = _largest_below(requested, message)
    numbers = [stated] if stated else []
    for n_alternatives in _FEWER_PROBABILITIES:
        if n_alternatives < requested and n_alternatives not in numbers:
            numbers.append(n_alternatives)
    lowered = [
        _Step(_LOGPROBS, replace(adapter, top_logprobs=number), mentioned)
        for number in numbers
    ]
    hopeless = mentioned and not stated and _UNSUPPORTED.search(message)
    if not hopeless:
        yield from lowered
    if mentioned and _may_need_no_reasoning(adapter, body, refused):
        # Models that reason by default give probabilities only with an effort of `none` (OpenAI),
        # and then accept a temperature, too.
        dropped = adapter.dropped - {"temperature"}
        unthinking = replace(adapter, unthinking=True, dropped=dropped)
        yield _Step(_LOGPROBS, unthinking, mentioned, adds=True)
    yield _Step(_LOGPROBS, _without(_LOGPROBS, adapter), mentioned)
    if hopeless:
        yield from lowered


def _may_need_no_reasoning(
    adapter: RequestAdapter,
    body: Mapping[str, Any],
    refused: ProviderError,
) -> bool:
    """Return whether log probabilities may only be refused because the model reasons."""
    if _EFFORT in body or _EFFORT in adapter.dropped or adapter.tried_unthinking:
        return False
    # OpenAI answers 400 then. "Unknown parameter" means that no model here has probabilities.
    if _status(refused) == 403:
        return False
    return _NEVER_SUPPORTED.search(_server_message(refused)) is None


def _fewer_replies(requested: int, message: str, mentioned: bool) -> list[int]:
    """Return the numbers of replies to try: the largest one that the message names, halves, 1."""
    stated = _largest_below(requested, message)
    if not mentioned or (_UNSUPPORTED.search(message) and not stated):
        return [1]
    numbers = [stated] if stated else []
    half = requested // 2
    while half >= 1:
        if half != stated:
            numbers.append(half)
        half //= 2
    return numbers


def _without(parameter: str, adapter: RequestAdapter) -> RequestAdapter:
    if parameter == "n":
        return replace(adapter, n=1)
    if parameter == _LIMIT:
        return replace(adapter, limit_name=None)
    if parameter in (_LOGPROBS, _EFFORT) and adapter.unthinking:
        # The effort was only sent for the sake of the probabilities.
        return replace(
            adapter,
            unthinking=False,
            tried_unthinking=True,
            dropped=adapter.dropped | {_LOGPROBS},
        )
    return replace(adapter, dropped=adapter.dropped | {parameter})


def _restored(
    parameter: str,
    adapter: RequestAdapter,
    before: RequestAdapter,
) -> list[RequestAdapter]:
    """Return the ways to put a parameter back, the best first."""
    if parameter == "n":
        return [replace(adapter, n=before.n)]
    if parameter == _LIMIT:
        parameters = (before.limit_name, *_LIMIT_NAMES)
        limit_names = dict.fromkeys(filter(None, parameters))
        return [replace(adapter, limit_name=limit_name) for limit_name in limit_names]
    dropped = adapter.dropped - {parameter}
    if parameter == _LOGPROBS:
        counts = (before.top_logprobs, *_FEWER_PROBABILITIES)
        return [
            replace(adapter, dropped=dropped, top_logprobs=count) for count in counts
        ]
    return [replace(adapter, dropped=dropped)]


class _Reason(NamedTuple):
    status: int | None
    param: str | None
    words: str


def _reason(refused: ProviderError) -> _Reason:
    """Return what distinguishes the reasons of two refusals.

    Numbers are left out, because they may come from the request.
    """
    words = _WORD_WITH_DIGIT.sub("#", _server_message(refused).lower())
    return _Reason(_status(refused), _param(refused), words)


def _mentioned_in(refused: ProviderError) -> set[str]:
    """Return the parameters that a refusal names: in its field `param`, else in its message."""
    return _names_in(_param(refused) or "") or _names_in(_server_message(refused))


def _param(refused: ProviderError) -> str | None:
    return refused.param if isinstance(refused, Refused) else None


def _names_in(words: str) -> set[str]:
    return {
        parameter for parameter, pattern in _MENTIONED.items() if pattern.search(words)
    }


def _server_message(refused: ProviderError) -> str:
    """Return what the server said, without the address and the status before it."""
    message = str(refused)
    status = _status(refused)
    _, _, server_message = message.partition(f" answered {status}: ")
    return server_message or message


def _largest_below(requested: int, message: str) -> int:
    """Return the largest number in a message that is less than the requested one, else 0."""
    numbers = [int(digits) for digits in _NUMBER.findall(message)]
    return max((number for number in numbers if 0 < number < requested), default=0)
