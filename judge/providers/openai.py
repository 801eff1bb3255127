"""Any OpenAI-compatible chat endpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from judge.config import Plan
from judge.core.errors import Refused
from judge.core.records import Choice, Request, Response, Token
from judge.providers.batch_api import BatchApi
from judge.providers.http_client import HttpClient, Options, body_error, options, usage
from judge.providers.pricing import per_token
from judge.providers.server_capabilities import Caching, RequestAdapter


class OpenAIProvider:
    """A provider for `POST {base_url}/chat/completions`, in one event loop at a time."""

    notice = ""
    decides = False

    def __init__(
        self, model: str, *, name: str = "openai", dialect: RequestAdapter | None = None, **how: Unpack[Options]
    ) -> None:
        self.name, self.model = name, model
        self._http = HttpClient(**how)
        self.endpoint = self._http.url
        self._dialect = replace(dialect or RequestAdapter(), caching=_caching(self._http, model))
        self.batches = BatchApi(self._http, self._body, self._read)

    @classmethod
    def open(cls, model: str, plan: Plan) -> OpenAIProvider:
        """The provider of a plan. Raises ConfigError."""
        return cls(model, **options(plan))

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again in another process. No key is in it."""
        return partial(type(self), self.model, name=self.name, dialect=self._dialect, **self._http.options), ()

    @property
    def learned(self) -> dict[str, Any]:
        return self._dialect.known_limits

    @property
    def taught(self) -> RequestAdapter:
        """The words that this server takes, as far as they are known."""
        return self._dialect

    @taught.setter
    def taught(self, dialect: RequestAdapter) -> None:
        self._dialect = dialect

    @property
    def caching(self) -> Caching:
        """What this server is told of prompt caching."""
        return self._dialect.caching

    async def complete(self, request: Request) -> Response:
        """One response, whose `unmet` says what this server would not do. Raises Transient or Refused.

        It has a choice for each of the `n` wanted, or fewer. Words that helped once are used from then on; what did
        not help is forgotten.
        """
        before = dialect = self._dialect
        while True:
            body = dialect.body(request)
            try:
                data, limits = await self._http.post("/chat/completions", body)
                response = _response(data, body, dialect.unmet(request, body), self.endpoint, limits)
            except Refused as refused:
                tried, dialect = dialect, dialect.after_refusal(refused, body) or dialect
                if dialect == tried:
                    raise
            else:
                dialect = dialect.with_max_choices(len(response.choices), body)
                if dialect != before:  # what another request has learned meanwhile is not unlearned by this one
                    self._dialect = dialect
                return response

    async def aclose(self) -> None:
        await self._http.aclose()

    def _body(self, request: Request) -> dict[str, Any]:
        return self._dialect.body(request)

    def _read(self, request: Request, body: dict[str, Any], data: Any) -> Response:
        """The response that a reply to this body means."""
        return _response(data, body, self._dialect.unmet(request, body), self.endpoint, {})


def _caching(http: HttpClient, model: str) -> Caching:
    """What to tell a server of prompt caching; where to break it off only for a model whose cache costs to write to."""
    prices = per_token(model, http.url) if http.caching == "explicit" else None
    read_afresh, _, written, _ = prices or (0.0, 0.0, 0.0, 0.0)
    return "key" if http.caching == "explicit" and written <= read_afresh else http.caching


def _response(data: Any, body: dict[str, Any], unmet: tuple[str, ...], url: str, limits: Mapping[str, str]) -> Response:
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise body_error(data, url, "chat completion")
    choices = tuple(_choice(choice, url) for choice in data["choices"])
    asked, used = body.get("n", 1), usage(data.get("usage"), "prompt", "completion")
    if not 1 <= len(choices) <= asked:
        raise Refused(f"{url} sent {len(choices)} choices where {asked} were asked for", billed=True)
    if any(c.finish_reason == "length" and not c.text and not c.tokens for c in choices):
        limit = next((name for name in ("max_completion_tokens", "max_tokens") if name in body), None)
        raise Refused(f"{url}: the model spent its whole token limit on hidden reasoning", param=limit, billed=True)
    if len(choices) < asked and "n" not in unmet:
        unmet = (*unmet, "n")
    if body.get("logprobs") and any(c.tokens is None for c in choices):
        unmet = (*unmet, "logprobs")
    served_by = "/".join(str(data[k]) for k in ("model", "system_fingerprint") if data.get(k))
    return Response(choices, used, served_by, unmet, limits)


def _choice(data: Any, url: str) -> Choice:
    message = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict):
        raise Refused(f"{url} sent a choice without a message", billed=True)
    text, refusal = message.get("content"), message.get("refusal")
    finish = str(data.get("finish_reason") or "stop")
    if text is None and isinstance(refusal, str):
        text, finish = refusal, "refusal"
    if not isinstance(text, str | None):
        raise Refused(f"{url} sent a message whose content is {type(text).__name__}, not text", billed=True)
    return Choice(text or "", finish, _tokens(data.get("logprobs")))


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """The tokens with their alternatives; None where there are none, or where any of it is not what it should be."""
    listed = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(listed, list):
        return None
    try:
        return tuple(Token(*_pair(t), tuple(map(_pair, t.get("top_logprobs") or ()))) for t in listed) or None
    except (TypeError, AttributeError, LookupError, ValueError):
        return None


def _pair(data: Any) -> tuple[str, float]:
    text, logprob = data["token"], data["logprob"]
    if not isinstance(text, str):
        raise TypeError("a token is text")
    return text, -math.inf if logprob is None else float(logprob)
