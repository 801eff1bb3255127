"""The provider of OpenAI-compatible chat endpoints."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from judge.config import RunConfig
from judge.core.errors import ConfigError, Refused
from judge.core.messages import advice_on_thinking, option
from judge.core.records import Choice, Request, Response, Token
from judge.core.request_options import TokenPrice
from judge.providers.anthropic_batch import AnthropicBatchApi
from judge.providers.batches import BatchApi
from judge.providers.google_batch import GoogleBatchApi
from judge.providers.http_client import MAX_TEXT, HttpClient, Options, options, usage
from judge.providers.http_errors import body_error
from judge.providers.message_text import is_only_thinking, message_text
from judge.providers.pricing import per_token
from judge.providers.refusals import (
    REFUSED_STATUSES,
    RefusalSearch,
    mentions_parameter,
    optional_parameters,
)
from judge.providers.server_capabilities import Caching, RequestAdapter
from judge.providers.vendors import Vendor

_OWN_BATCHES: Mapping[str, type[BatchApi]] = {
    "anthropic": AnthropicBatchApi,
    "gemini": GoogleBatchApi,
}
"""The vendors whose batches are in a format of their own."""
_TEXTS_BEFORE_STOPPING = 3
"""So many texts are refused without any parameter before the run stops: one alone may be too long, or filtered."""


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
        self.name, self.model = name, model
        self._http = HttpClient(**http_options)
        self.endpoint = self._http.url
        # What to tell a server of prompt caching; where to break it off only for a model whose cache costs to write
        # to.
        http = self._http
        prices = per_token(model, http.url) if http.caching == "explicit" else None
        read_afresh, _, written, _ = prices or (0.0, 0.0, 0.0, 0.0)
        self._adapter = replace(
            dialect or RequestAdapter(),
            caching="key"
            if http.caching == "explicit" and written <= read_afresh
            else http.caching,
        )
        self.price: TokenPrice | None = None
        self._answered = False
        self._accepted: dict[str, int] = {}
        """The optional parameters that the server has accepted, with the most of each."""
        self._texts_refused: set[str] = set()
        self._searching = asyncio.Lock()
        batches = _OWN_BATCHES.get(name, BatchApi)
        self.batches = batches(
            batches.client(http, http_options),
            lambda request: self._adapter.body(request),
            lambda request, body, data: _response(
                data, body, self._adapter.unmet(request, body), http.url, {}
            ),
        )

    @classmethod
    def open(cls, model: str, config: RunConfig, vendor: Vendor | None = None) -> OpenAIProvider:
        """The provider of a plan, whose address and key's variable go before a vendor's. Raises ConfigError."""
        http_options = options(config)
        if vendor is None:
            return cls(model, **http_options)
        if not model:
            raise ConfigError(
                f"{option('model', f'{vendor.name}/')}: write the model's name after the slash"
            )
        named = "key_env" in config.model_fields_set
        http_options["base_url"] = config.base_url or vendor.address
        if vendor.url_env and not config.base_url:
            http_options["named_by"] = f"${vendor.url_env}"
        http_options["key_env"] = config.key_env if named else vendor.key_env
        http_options["needs_key"] = named or not (vendor.local or config.base_url)
        http_options["caching"] = vendor.caching
        return cls(model, name=vendor.name, dialect=vendor.dialect, **http_options)

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again in another process. No key is in it."""
        return partial(
            type(self), self.model, name=self.name, dialect=self._adapter, **self._http.options
        ), ()

    @property
    def learned(self) -> dict[str, Any]:
        return self._adapter.known_limits

    @property
    def shared_state(self) -> RequestAdapter:
        """The words that this server takes, as far as they are known."""
        return self._adapter

    @shared_state.setter
    def shared_state(self, dialect: RequestAdapter) -> None:
        self._adapter = dialect

    @property
    def caching(self) -> Caching:
        """What this server is told of prompt caching."""
        return self._adapter.caching

    async def complete(self, request: Request) -> Response:
        """Return one response, whose `unmet` says what this server does not do. Raises Transient or Refused.

        It has a choice for each of the `n` wanted, or fewer. What the server accepts after a refusal is remembered.
        """
        adapter = self._adapter
        try:
            return await self._send(adapter, request)
        except Refused as refused:
            body = adapter.body(request)
            if (
                refused.param in body and refused.status is None
            ):  # hidden reasoning used up the limit
                self._adapter = replace(self._adapter, too_short=body[refused.param])
                return await self._send(self._adapter, request)
            if refused.status not in REFUSED_STATUSES or not self._may_be_a_parameter(
                refused, body
            ):
                raise
            return await self._search(adapter, request, refused)

    def _may_be_a_parameter(self, refused: Refused, body: Mapping[str, Any]) -> bool:
        """Return whether a refusal may be about a parameter: one that was never accepted, or one that it names."""
        present = optional_parameters(body)
        unproven = any(value > self._accepted.get(name, 0) for name, value in present.items())
        return unproven or mentions_parameter(refused, body)

    async def _search(
        self, adapter: RequestAdapter, request: Request, refused: Refused
    ) -> Response:
        """Find out by trying what this server accepts, one request at a time: what one learns, the others use."""
        async with self._searching:
            if adapter != self._adapter:  # another request has learned something meanwhile
                adapter = self._adapter
                try:
                    return await self._send(adapter, request)
                except Refused as again:
                    if again.status not in REFUSED_STATUSES:
                        raise
                    refused = again
            try:
                accepted, response = await RefusalSearch(
                    adapter, request, lambda changed: self._send(changed, request)
                ).run(refused)
            except Refused as error:
                if error is refused and not self._answered:
                    self._texts_refused.add(request.key())
                    if len(self._texts_refused) >= _TEXTS_BEFORE_STOPPING:
                        error.stops = "always"
                raise
            self._adapter = accepted.with_max_choices(len(response.choices), accepted.body(request))
            return response

    async def _send(self, adapter: RequestAdapter, request: Request) -> Response:
        body = adapter.body(request)
        data, limits = await self._http.post("/chat/completions", body)
        unmet = adapter.unmet(request, body)
        response = _response(data, body, unmet, self.endpoint, limits, named_by=self._http.named_by)
        self._answered = True
        for name, value in optional_parameters(body).items():
            self._accepted[name] = max(value, self._accepted.get(name, 0))
        if len(response.choices) < body.get("n", 1):
            self._adapter = self._adapter.with_max_choices(len(response.choices), body)
        return response

    async def aclose(self) -> None:
        self._searching = asyncio.Lock()  # the old one belongs to the event loop that ends
        await self._http.aclose()
        await self.batches.aclose()


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
    requested, used = body.get("n", 1), usage(data.get("usage"), "prompt", "completion")
    if not 1 <= len(choices) <= requested:
        raise Refused(
            f"{url} sent {len(choices)} choices where {requested} were asked for", billed=True
        )
    if any(
        c.finish_reason == "length" and not c.tokens and is_only_thinking(c.text) for c in choices
    ):
        limit = next(
            (name for name in ("max_completion_tokens", "max_tokens") if name in body), None
        )
        raise Refused(
            f"{url}: the model spent its whole token limit on hidden reasoning; {advice_on_thinking()}",
            param=limit,
            billed=True,
        )
    if len(choices) < requested and "n" not in unmet:
        unmet = (*unmet, "n")
    if body.get("logprobs") and (lacking := _lacking_probabilities(choices)):
        unmet = tuple(dict.fromkeys((*unmet, lacking)))
    served_by = "/".join(str(data[k]) for k in ("model", "system_fingerprint") if data.get(k))
    return Response(choices, used, served_by, unmet, limits)


def _lacking_probabilities(choices: Sequence[Choice]) -> str:
    """Return which wish for token probabilities was ignored in silence, "" if both were fulfilled."""
    if any(choice.tokens is None for choice in choices):
        return "logprobs"
    # Some servers give the probability of the chosen token and of no other.
    alone = any(token.lacks_alternatives for choice in choices for token in choice.tokens or ())
    return "top_logprobs" if alone else ""


def _choice(data: Any, url: str) -> Choice:
    message = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict):
        raise Refused(f"{url} sent a choice without a message", billed=True)
    try:
        read = message_text(message)
    except ValueError as error:
        raise Refused(
            f"{url} sent a message whose content is {error}, not text", billed=True
        ) from error
    if len(read.text) > MAX_TEXT:
        raise Refused(
            f"{url} sent a text of more than 1 MB, which no judge's reply has", billed=True
        )
    finish = "refusal" if read.refused else str(data.get("finish_reason") or "stop")
    return Choice(read.text, finish, _tokens(data.get("logprobs")))


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """The tokens with their alternatives; None where there are none, or where any of it is not what it should be."""
    listed = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(listed, list):
        return None
    try:
        return (
            tuple(Token(*_pair(t), tuple(map(_pair, t.get("top_logprobs") or ()))) for t in listed)
            or None
        )
    except (TypeError, AttributeError, LookupError, ValueError, OverflowError):
        return None


def _pair(data: Any) -> tuple[str, float]:
    text, logprob = data["token"], data["logprob"]
    if not isinstance(text, str):
        raise TypeError("a token is text")
    return text, -math.inf if logprob is None else float(logprob)
