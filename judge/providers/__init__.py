"""Model providers, one module each; `judge.core.plugins.PROVIDERS` lists them.

A provider answers one `Request` with one `Response`, or raises `Transient` (retry it) or `Refused`
(do not). It neither retries nor caches, and does not know what a score is. A registered provider is
a class that also has `open(model, config)`, which makes it from the text after `name/` in `--model`
and the run's `config.RunConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from judge.core.errors import ConfigError
from judge.core.records import Request, Response
from judge.core.request_options import TokenPrice

if TYPE_CHECKING:
    from judge.providers.batches import BatchApi


@runtime_checkable
class Provider(Protocol):
    """The interface of a provider.

    `name` and `model` appear in signatures. `endpoint` is part of the cache key, so that replies of
    two servers are never mixed; if it is empty, nothing is cached. `notice` is a sentence that
    every report must show, or "". If `decides` is true, the endpoint answers typed questions with
    probabilities, and writes no text.

    Optional attributes are in `Capabilities`; a wrapper must pass them on.
    """

    name: str
    model: str
    endpoint: str
    notice: str
    decides: bool

    @property
    def learned(self) -> dict[str, Any]:
        """Facts that the replies revealed about the server, as plain JSON for the run's record."""
        return {}

    async def complete(self, request: Request) -> Response:
        """Return the response to one request. Raises Transient or Refused."""
        ...

    async def aclose(self) -> None:
        """Close connections. The provider may be used again afterwards, in another event loop."""
        return


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Optional attributes of a provider, with the values for a provider that lacks them.

    - `caching`: the prompt-cache fields of its requests, as `server_capabilities.Caching`.
    - `batches`: the Batch API, for --engine batch.
    - `reasons`: whether the model is known to reason before it answers.
    - `price`: the price of its tokens that the user stated. It can be set.
    - `price_list` and `published_price`: who publishes the model's price, and the price. "" and
      None leave the price to the package genai-prices.
    - `shared_state`: what the provider has learned about the server, without any key. It can be
      set, so that another process continues with it.
    """

    caching: object = None
    batches: BatchApi | None = None
    reasons: bool = False
    price: TokenPrice | None = None
    price_list: str = ""
    published_price: TokenPrice | None = None
    shared_state: Any = None

    @classmethod
    def of(cls, provider: Provider) -> Self:
        """Return the optional attributes of a provider."""
        values: dict[str, Any] = {
            field.name: getattr(provider, field.name, field.default)
            for field in fields(cls)
        }
        return cls(**values)


def require_text(provider: Provider, named_by: str) -> None:
    """Raise ConfigError for an endpoint of typed questions, which cannot do what a caller needs.

    `named_by` is the option that names its model.
    """
    if provider.decides:
        problem = "a decision endpoint writes no text; name a chat model"
        raise ConfigError(f"{named_by}: {problem}")
