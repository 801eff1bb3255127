"""Where messages are answered: in this process, at a batch API, or by workers.

An engine gives the layer that answers messages. It knows no sample, criterion or score.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from judge.core import plugins
from judge.core.records import Request, Response
from judge.execution.budget import BudgetLedger
from judge.execution.layers import Layer
from judge.execution.layers.sending import Complete
from judge.execution.progress import JudgeProgress
from judge.providers import Provider

MakeLayer = Callable[[Complete], Layer]
"""Makes the layers that send a message with a function, such as a provider's `complete`."""


async def _store_nothing(message: Request, response: Response) -> None:
    return


@dataclass(frozen=True, slots=True)
class EngineContext:
    """What an engine may need: who answers, what counts, what pays, when to stop.

    `folder` is one that outlives the process, None where nothing is to be kept; `deadline` is a time of the event
    loop's clock, `workers` how many processes are to ask, None as many as the engine finds right. `store` puts the
    reply to a message into the cache; it is there once that returns.
    """

    provider: Provider
    folder: Path | None
    counts: JudgeProgress
    ledger: BudgetLedger | None = None
    deadline: float | None = None
    workers: int | None = None
    store: Callable[[Request, Response], Awaitable[None]] = _store_nothing


class Engine(Protocol):
    """Answers the messages of one judge of one run.

    With `gathers`, it answers only the first message before it has all of them, so that the caller must not wait for
    answers before it makes the others.
    """

    gathers: bool

    @classmethod
    def open(cls, context: EngineContext) -> Engine:
        """Return the engine for one judge. It starts nothing. Raises ConfigError if it cannot run there."""
        ...

    def layer(self, sending: MakeLayer) -> Layer:
        """Return the layer that answers messages; `sending` makes the one that sends them from this process."""
        ...

    async def aclose(self) -> None:
        """Let go of everything; called once, when the judge has no more requests."""
        ...


class LocalEngine:
    """One process, one event loop: every message is sent from here."""

    gathers = False

    def __init__(self, context: EngineContext) -> None:
        self._provider = context.provider

    @classmethod
    def open(cls, context: EngineContext) -> LocalEngine:
        return cls(context)

    def layer(self, sending: MakeLayer) -> Layer:
        return sending(self._provider.complete)

    async def aclose(self) -> None:
        return


def create_engine(name: str, context: EngineContext) -> Engine:
    """Return the engine of this name for one judge of one run. Raises ConfigError where it cannot run there."""
    engine: Engine = plugins.load("engines", name).open(context)
    return engine
