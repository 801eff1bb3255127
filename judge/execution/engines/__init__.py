"""The engine protocols and the default engine (one process, one event loop).

An engine knows requests and answers. It knows no sample, criterion or score.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from judge.core import plugins
from judge.core.errors import ProviderError
from judge.core.records import Request, Response
from judge.execution.budget import BudgetLedger
from judge.execution.progress import JudgeProgress
from judge.providers import Provider

Answer = Response | ProviderError
Ask = Callable[[Request], Awaitable[Response]]
Done = Callable[[Request, Answer], Awaitable[None] | None]
"""Takes an answer. What it returns, if anything, is done once the answer is on disk."""


class Engine(Protocol):
    """Calls `ask` for the requests and `done` with each answer, and waits for what that returns.

    It may have `gathers`: whether it answers only the first request before it has taken all of them, so that the caller
    must not wait for answers before it makes the others. It may have a coroutine `complete(request)`, which `ask` calls
    instead of the provider's: its requests are answered outside this process. See also `ClosableEngine`.

    A registered engine with a method `open(context)` is made by it for each judge of a run, or it raises ConfigError if
    it cannot run there; any other is used as it is.
    """

    async def __call__(
        self, requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int
    ) -> None:
        """Raises an error whose `stops` is not `never`, after letting go of everything in flight."""
        ...


@runtime_checkable
class ClosableEngine(Protocol):
    """An engine that holds resources between rounds. `aclose` is called once, when its judge has no more requests."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineContext:
    """What an engine may need besides: who answers, what counts, what pays, when to stop.

    `folder` is one that outlives the process, None where nothing is to be kept; `deadline` is a time of the event
    loop's clock, `workers` how many processes are to ask, None as many as the engine finds right.
    """

    provider: Provider
    folder: Path | None
    counts: JudgeProgress
    ledger: BudgetLedger | None = None
    deadline: float | None = None
    workers: int | None = None


def create_engine(name: str, context: EngineContext) -> Engine:
    """The engine of this name for one judge of one run. Raises ConfigError where it cannot run there."""
    plugin = plugins.load("engines", name)
    engine: Engine = plugin.open(context) if hasattr(plugin, "open") else plugin
    return engine


async def run_local(
    requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int
) -> None:
    """Ask every request, at most `concurrency` at a time, and call `done` with each answer as it comes.

    What `done` returns, if anything, is waited for before the request's place is taken by another: a reply that is
    not on disk yet counts as one that is still to come.

    The first request goes alone: what it teaches (a wrong key, a parameter the server refuses) is learned
    once and not `concurrency` times. An error that stops the run is raised after the others were cancelled.
    """
    turn = asyncio.Lock()

    async def step() -> bool:
        """Take one request and see it through; False when there is none left."""
        async with turn:
            request = await anext(requests, None)
        if request is None:
            return False
        answer: Answer
        try:
            answer = await ask(request)
        except ProviderError as error:  # of this one request, unless it ends the run
            if error.stops != "never":
                raise
            answer = error
        if (stored := done(request, answer)) is not None:
            await stored
        return True

    async def work() -> None:
        while await step():
            pass

    if not await step():
        return
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
