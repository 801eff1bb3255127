"""Engines: messages are answered from this process, by a Batch API, or by workers.

An engine returns the layer that answers messages. It knows no sample, criterion or score.
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
    """What an engine may need.

    `folder` is that of the cache, None without one. `deadline` is a time of the event loop's clock.
    `workers` is the number of worker processes, by default the engine's own choice. `store` puts
    the reply to a message into the cache, and returns when it is on disk.
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

    If it `gathers`, it answers nothing after the first message until it has all of them, so the
    caller must not wait for answers in between.
    """

    gathers: bool

    @classmethod
    def open(cls, context: EngineContext) -> Engine:
        """Return the engine for one judge, and start nothing.

        Raises ConfigError if it cannot run.
        """
        ...

    def layer(self, sending: MakeLayer) -> Layer:
        """Return the layer that answers messages.

        `sending` makes the layer that sends them from this process.
        """
        ...

    async def aclose(self) -> None:
        """Release all resources; called once, when the judge has no more requests."""
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
    """Return the engine of this name for one judge of one run.

    Raises ConfigError if it cannot run.
    """
    engine: Engine = plugins.load("engines", name).open(context)
    return engine
