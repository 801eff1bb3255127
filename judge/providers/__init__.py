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
    every report must show, or "". `decides` is True for an endpoint of typed questions, which
    returns probabilities and no text.

    Optional attributes are in `Capabilities`; a wrapper must pass them on.
    """

    name: str
    model: str
    endpoint: str
    notice: str
    decides: bool

    @property
    def learned(self) -> dict[str, Any]:
        """What the run learned about the server, as plain JSON for the run's record."""
        return {}

    async def complete(self, request: Request) -> Response:
        """Return the response to one request. Raises Transient or Refused."""
        ...

    async def aclose(self) -> None:
        """Close connections. The provider may be used again afterwards, in another event loop."""
        return


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Optional attributes of a provider, and their values if it lacks them.

    `caching`: what the server is told about prompt caching; if anything, requests on one document
    are paced.
    `batches`: the Batch API, for --engine batch.
    `splits_merged_criteria`: a request with several questions of a checklist gets one reply for
    each of them.
    `reasons`: the model is known to reason before it answers.
    `price`: the price of its tokens according to the user. It can also be set.
    `price_list`: who publishes its prices, "" if genai-prices does, and `published_price`: the
    model's price there.
    `shared_state`: what was learned about the server so far, without any key. It can also be set,
    so that another process continues with it.
    """

    caching: object = None
    batches: BatchApi | None = None
    splits_merged_criteria: bool = False
    reasons: bool = False
    price: TokenPrice | None = None
    price_list: str = ""
    published_price: TokenPrice | None = None
    shared_state: Any = None

    @classmethod
    def of(cls, provider: Provider) -> Self:
        values: dict[str, Any] = {
            field.name: getattr(provider, field.name, field.default) for field in fields(cls)
        }
        return cls(**values)


def require_text(provider: Provider, named_by: str) -> None:
    """Raise ConfigError for an endpoint of typed questions.

    `named_by` is the option that names its model.
    """
    if provider.decides:
        raise ConfigError(f"{named_by}: a decision endpoint writes no text; name a chat model")
