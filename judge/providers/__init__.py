"""Where a request goes: one module each; `judge.core.plugins.PROVIDERS` lists them.

A provider answers one `Request` with one `Response`, or raises `Transient` (ask again) or `Refused` (do not).
It neither retries nor caches nor knows what a score is. A registered one is a class that also has
`open(model, plan)`, which makes it from what follows `name/` in `--model` and the run's `config.Plan`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from judge.core.records import Request, Response

if TYPE_CHECKING:
    from judge.providers.openai import BatchApi


@runtime_checkable
class Provider(Protocol):
    """What a run needs of a provider.

    `name` and `model` go into signatures; `endpoint` into the cache key, so that two servers' answers are never
    mixed up. An empty `endpoint` means: do not cache. `notice` is a sentence every report must show, or "". `decides`
    is True for an endpoint of typed questions, which gives probabilities and no text.

    Some have more, which whoever wraps one passes on: `Traits`. A class whose `open` also takes `keep` (a folder that
    outlives the run, None for none) says so by `keeps = True`.
    """

    name: str
    model: str
    endpoint: str
    notice: str
    decides: bool

    @property
    def learned(self) -> dict[str, Any]:
        """What the server turned out to accept, as plain JSON for the run's record; empty where there is nothing."""
        ...

    async def complete(self, request: Request) -> Response:
        """The response to one request. Raises Transient or Refused."""
        ...

    async def aclose(self) -> None:
        """Let go of connections. The provider may be used again afterwards, in another event loop."""
        ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What some providers have besides, as attributes of these names, and what it is of those that have not.

    `caching`: what the server is told of its prompt cache; where it is told anything, requests on one document are
    paced. `batches`: for --engine batch. `splits_merged_criteria`: criteria that are merged into one request are answered as they were
    asked, apart. `full_distribution`: a request that names its `labels` is answered with the `shares` of all of them, and prompts
    that start alike are best asked at once. `gpu`: it computes in its own process, on a GPU where there is one.
    `shared_state`, which can also be set: what was learned of the server until now, as another process may take it over; it
    holds no key.
    """

    caching: object = None
    batches: BatchApi | None = None
    splits_merged_criteria: bool = False
    full_distribution: bool = False
    gpu: bool = False
    shared_state: Any = None

    @classmethod
    def of(cls, provider: Provider) -> Self:
        found: dict[str, Any] = {one.name: getattr(provider, one.name, one.default) for one in fields(cls)}
        return cls(**found)
