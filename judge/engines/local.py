"""The default engine: one process, one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from judge.errors import ProviderError
from judge.records import Request, Response

Answer = Response | ProviderError


async def run(
    requests: AsyncIterator[Request],
    ask: Callable[[Request], Awaitable[Response]],
    done: Callable[[Request, Answer], None],
    *,
    concurrency: int,
) -> None:
    """Ask every request, at most `concurrency` at a time, and call `done` with each answer as it comes.

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
        try:
            answer: Answer = await ask(request)
        except ProviderError as error:
            if error.stops != "never":
                raise
            answer = error
        done(request, answer)
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
