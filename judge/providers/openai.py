"""The provider of OpenAI-compatible chat endpoints."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from judge.config import RunConfig
from judge.core.errors import ConfigError, ProviderError, Refused, Transient
from judge.core.messages import advice_on_thinking, option
from judge.core.records import Choice, Request, Response, Token
from judge.core.request_options import TokenPrice
from judge.providers.anthropic_batch import AnthropicBatchApi
from judge.providers.batches import BatchApi
from judge.providers.google_batch import GoogleBatchApi
from judge.providers.http_client import MAX_TEXT, HttpClient, Options, options
from judge.providers.http_errors import body_error, redact_and_truncate
from judge.providers.message_text import is_only_thinking, message_text
from judge.providers.pricing import per_token
from judge.providers.refusals import (
    RefusalSearch,
    is_about_text,
    may_refuse_parameter,
    optional_parameters,
)
from judge.providers.server_capabilities import Caching, RequestAdapter
from judge.providers.token_usage import usage
from judge.providers.vendors import Vendor

# The vendors whose batches are in a format of their own.
_OWN_BATCHES: Mapping[str, type[BatchApi]] = {
    "anthropic": AnthropicBatchApi,
    "gemini": GoogleBatchApi,
}
# The names of other servers for reasons of OpenAI's API, in lower case.
_FINISH_REASONS = {
    "max_tokens": "length",  # Gemini, Bedrock
    "model_length": "length",  # Mistral
    "model_context_window_exceeded": "length",  # Anthropic, Zhipu
    "sensitive": "content_filter",  # Zhipu
    "safety": "content_filter",  # Gemini, like the next three
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
}
# A reply that ended like this may be whole next time (OpenRouter, Mistral; Zhipu; DeepSeek).
_BROKEN_OFF = ("error", "network_error", "insufficient_system_resource")
# The run stops if this many texts are refused without any parameter. One alone may be too long, or
# filtered.
_TEXTS_BEFORE_STOPPING = 3
_LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
# What judge itself puts into the parameters of a request. All others are the user's.
_PARAMETERS = {
    "headers",
    "max_tokens",
    "n",
    "reasoning_effort",
    "response_format",
    "seed",
    "temperature",
    "top_logprobs",
}


class OpenAIProvider:
    """A provider for `POST {base_url}/chat/completions`, in one event loop at a time."""

    notice = ""
    decides = False

    def __init__(
        self,
        model: str,
        *,
        name: str = "openai",
        dialect: RequestAdapter | None = None,
        **http_options: Unpack[Options],
    ) -> None:
        self.name = name
        self.model = model
        self._http = HttpClient(**http_options)
        self.endpoint = self._http.url
        caching = _caching_of(model, self._http)
        self._adapter = replace(dialect or RequestAdapter(), caching=caching)
        self.price: TokenPrice | None = None
        self._answered = False
        # The optional parameters that the server has accepted, with the largest value of each.
        self._accepted: dict[str, int] = {}
        self._texts_refused: set[str] = set()
        self._searching = asyncio.Lock()
        batch_api = _OWN_BATCHES.get(name, BatchApi)
        self.batches = batch_api(
            batch_api.client(self._http, http_options),
            body=self._batch_body,
            read=self._batch_response,
        )

    def _batch_body(self, request: Request) -> dict[str, Any]:
        return self._adapter.body(request)

    def _batch_response(
        self,
        request: Request,
        body: dict[str, Any],
        data: Any,
    ) -> Response:
        unmet = self._adapter.unmet(request, body)
        return _response(data, body, unmet, self._http.url, {})

    @classmethod
    def open(
        cls,
        model: str,
        config: RunConfig,
        vendor: Vendor | None = None,
    ) -> OpenAIProvider:
        """Return the provider of a run configuration. Raises ConfigError.

        The configuration's address and key variable take precedence over the vendor's.
        """
        http_options = options(config)
        if vendor is None:
            return cls(model, **http_options)
        if not model:
            raise ConfigError(
                f"{option('model', f'{vendor.name}/')}: write the model's name after the slash"
            )
        names_key = "key_env" in config.model_fields_set
        http_options["base_url"] = config.base_url or vendor.address
        if vendor.url_env and not config.base_url:
            http_options["named_by"] = f"${vendor.url_env}"
        http_options["key_env"] = config.key_env if names_key else vendor.key_env
        http_options["needs_key"] = names_key or not (vendor.local or config.base_url)
        http_options["caching"] = vendor.caching
        return cls(model, name=vendor.name, dialect=vendor.dialect, **http_options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes the provider in another process, which does not include a key."""
        factory = partial(
            type(self),
            self.model,
            name=self.name,
            dialect=self._adapter,
            **self._http.options,
        )
        return factory, ()

    @property
    def learned(self) -> dict[str, Any]:
        return self._adapter.known_limits

    @property
    def shared_state(self) -> RequestAdapter:
        """What judge knows so far about the requests that this server accepts."""
        return self._adapter

    @shared_state.setter
    def shared_state(self, dialect: RequestAdapter) -> None:
        self._adapter = dialect

    @property
    def caching(self) -> Caching:
        """The prompt-cache fields of requests to this server."""
        return self._adapter.caching

    async def complete(self, request: Request) -> Response:
        """Return one response. Raises Transient or Refused.

        Its `unmet` names what this server does not do. It has `n` choices or fewer. What the
        server accepts after a refusal is remembered.
        """
        adapter = self._adapter
        try:
            return await self._send(adapter, request)
        except (Refused, Transient) as error:
            body = adapter.body(request)
            too_short = _too_short_limit(error, body)
            if too_short is not None:
                self._adapter = replace(self._adapter, too_short=too_short)
                return await self._send(self._adapter, request)
            if may_refuse_parameter(error, body, self._accepted):
                return await self._search(adapter, request, error)
            if isinstance(error, Refused) and error.status is not None:
                self._note_refused_text(request, error)
            raise

    async def _search(
        self,
        adapter: RequestAdapter,
        request: Request,
        refused: ProviderError,
    ) -> Response:
        """Find out by trying what this server accepts.

        Only one request searches at a time, and the others use what it learned.
        """
        async with self._searching:
            if adapter != self._adapter:
                # Another request learned something while this one waited.
                adapter = self._adapter
                try:
                    return await self._send(adapter, request)
                except (Refused, Transient) as still_refused:
                    body = adapter.body(request)
                    if not may_refuse_parameter(still_refused, body, self._accepted):
                        raise
                    refused = still_refused

            def send_changed(changed: RequestAdapter) -> Awaitable[Response]:
                return self._send(changed, request)

            search = RefusalSearch(adapter, request, send_changed)
            try:
                accepted, response = await search.run(refused)
            except Refused as error:
                if error is refused:
                    self._note_refused_text(request, error)
                    _name_extra_keys(request, error)
                raise
            body = accepted.body(request)
            self._adapter = accepted.with_max_choices(len(response.choices), body)
            return response

    def _note_refused_text(self, request: Request, error: Refused) -> None:
        """Let the error stop the run if several texts were refused and none was ever answered.

        Texts that are too long or filtered do not count: the others may be answered.
        """
        if self._answered or is_about_text(error):
            return
        self._texts_refused.add(request.key())
        if len(self._texts_refused) >= _TEXTS_BEFORE_STOPPING:
            error.stops = "always"

    async def _send(self, adapter: RequestAdapter, request: Request) -> Response:
        body = adapter.body(request)
        reply = await self._http.post("/chat/completions", body)
        unmet = adapter.unmet(request, body)
        named_by = self._http.named_by
        response = _response(
            reply.data,
            body,
            unmet,
            self.endpoint,
            reply.limits,
            named_by=named_by,
        )
        self._answered = True
        for name, value in optional_parameters(body).items():
            self._accepted[name] = max(value, self._accepted.get(name, 0))
        if len(response.choices) < body.get("n", 1):
            self._adapter = self._adapter.with_max_choices(len(response.choices), body)
        return response

    async def aclose(self) -> None:
        # The old lock belongs to the event loop that ends.
        self._searching = asyncio.Lock()
        await self._http.aclose()
        await self.batches.aclose()


def _too_short_limit(error: ProviderError, body: Mapping[str, Any]) -> int | None:
    """Return the limit of tokens of a body that hidden reasoning used up, None for other errors."""
    # Without a status the refusal is ours.
    if not isinstance(error, Refused) or error.status is not None:
        return None
    if error.param is None:
        return None
    limit: int | None = body.get(error.param)
    return limit


def _name_extra_keys(request: Request, error: Refused) -> None:
    """Name the keys that the user added to the request in a refusal that nothing else explains."""
    extra_keys = [name for name in request.params if name not in _PARAMETERS]
    if extra_keys and not is_about_text(error):
        names = ", ".join(f"`{name}`" for name in extra_keys)
        advice = f"if it does not accept {names}, change {option('extra_body')}"
        problem = str(error).rstrip(".")
        error.args = (f"{problem}; {advice}",)


def _caching_of(model: str, http: HttpClient) -> Caching:
    """Return what to tell a server about prompt caching.

    Breakpoints are only for a model whose cache costs to write to (OpenAI from gpt-5.6 on: 1.25 of
    the price of an uncached token). Older models refuse them.
    """
    if http.caching != "explicit":
        return http.caching
    prices = per_token(model, http.url)
    if prices is None or prices.cache_written <= prices.uncached:
        return "key"
    return http.caching


def _response(
    data: Any,
    body: dict[str, Any],
    unmet: tuple[str, ...],
    url: str,
    limits: Mapping[str, str],
    *,
    named_by: str = "",
) -> Response:
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise body_error(data, url, "chat completion", named_by)
    choices = tuple(_choice(choice, url) for choice in data["choices"])
    n_requested = body.get("n", 1)
    if not 1 <= len(choices) <= n_requested:
        problem = f"{len(choices)} choices instead of {n_requested}"
        if not choices:
            # Gemini's endpoint answers like this.
            problem += "; a content filter may have blocked the prompt"
        raise Refused(f"{url} sent {problem}", billed=True)
    if any(_is_used_up(choice) for choice in choices):
        limit_names = [name for name in _LIMIT_NAMES if name in body]
        limit_name = limit_names[0] if limit_names else None
        advice = advice_on_thinking()
        raise Refused(
            f"{url}: the model spent its whole token limit on hidden reasoning; {advice}",
            param=limit_name,
            billed=True,
        )
    # Several servers ignore `n` or the log probabilities in silence.
    if len(choices) < n_requested and "n" not in unmet:
        unmet = (*unmet, "n")
    ignored = _ignored_probabilities(choices) if body.get("logprobs") else ""
    if ignored and ignored not in unmet:
        unmet = (*unmet, ignored)
    # The fingerprint changes with the server's software, the model's name does not.
    names = (data.get("model"), data.get("system_fingerprint"))
    served_by = "/".join(str(name) for name in names if name)
    token_usage = usage(data.get("usage"), "prompt", "completion")
    return Response(choices, token_usage, served_by, unmet, limits)


def _is_used_up(choice: Choice) -> bool:
    """Return whether the limit was reached before the model wrote any text."""
    ended_by_limit = choice.finish_reason == "length" and not choice.tokens
    return ended_by_limit and is_only_thinking(choice.text)


def _ignored_probabilities(choices: Sequence[Choice]) -> str:
    """Return which parameter for token probabilities the server ignored in silence, else ""."""
    if any(choice.tokens is None for choice in choices):
        return "logprobs"
    # Some servers give the probability of the chosen token and of no other.
    for choice in choices:
        if any(token.lacks_alternatives for token in choice.tokens or ()):
            return "top_logprobs"
    return ""


def _choice(data: Any, url: str) -> Choice:
    fields = data if isinstance(data, dict) else {}
    finish_reason = str(fields.get("finish_reason") or "stop").lower()
    finish_reason = _FINISH_REASONS.get(finish_reason, finish_reason)
    if finish_reason in _BROKEN_OFF:
        raise _broken_off(fields, finish_reason, url)
    message = fields.get("message")
    if message is None and finish_reason == "content_filter":
        message = {}
    if not isinstance(message, dict):
        raise Refused(f"{url} sent a choice without a message", billed=True)
    try:
        content = message_text(message)
    except ValueError as error:
        problem = f"sent a message whose content is {error}, not text"
        raise Refused(f"{url} {problem}", billed=True) from error
    if len(content.text) > MAX_TEXT:
        problem = "sent a text of more than 1 MB, which no judge's reply has"
        raise Refused(f"{url} {problem}", billed=True)
    if content.refused:
        finish_reason = "refusal"
    tokens = _tokens(fields.get("logprobs"))
    return Choice(content.text, finish_reason, tokens)


def _broken_off(choice: Mapping[str, Any], finish_reason: str, url: str) -> Transient:
    """Return the error of a choice that the server did not finish, with the server's words."""
    error = choice.get("error")
    words = error.get("message") if isinstance(error, dict) else None
    reason = redact_and_truncate(words or finish_reason)
    return Transient(f"{url} broke its reply off: {reason}")


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """Return the tokens with their alternatives, None if there are none or any is malformed."""
    entries = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(entries, list):
        return None
    try:
        return tuple(map(_token, entries)) or None
    except (TypeError, AttributeError, LookupError, ValueError, OverflowError):
        return None


def _token(entry: Any) -> Token:
    text, logprob = _pair(entry)
    entries_of_alternatives = entry.get("top_logprobs") or ()
    alternatives = tuple(map(_pair, entries_of_alternatives))
    return Token(text, logprob, alternatives)


def _pair(data: Any) -> tuple[str, float]:
    text = data["token"]
    logprob = data["logprob"]
    if not isinstance(text, str):
        raise TypeError("a token is text")
    # JSON has no infinity: some servers write null for a probability of 0.
    return text, -math.inf if logprob is None else float(logprob)
