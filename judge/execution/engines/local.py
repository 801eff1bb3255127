"""The default engine: one process, one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from judge.core.errors import ProviderError
from judge.core.records import Request
from judge.execution.engines import Answer, Ask, Done


async def run(requests: AsyncIterator[Request], ask: Ask, done: Done, *, concurrency: int) -> None:
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
        answer = await _answer(ask, request)
        if (kept := done(request, answer)) is not None:
            await kept
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


async def _answer(ask: Ask, request: Request) -> Answer:
    """What came back, be it an error of this one request. Raises those that end the run."""
    try:
        return await ask(request)
    except ProviderError as error:
        if error.stops != "never":
            raise
        return error
