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
    slots = asyncio.Semaphore(concurrency)

    async def one(request: Request) -> None:
        try:
            answer: Answer = await ask(request)
        except ProviderError as error:
            if error.stops != "never":
                raise
            answer = error
        finally:
            slots.release()
        done(request, answer)

    try:
        async with asyncio.TaskGroup() as group:
            led = False
            async for request in requests:
                await slots.acquire()
                task = group.create_task(one(request))
                if not led:
                    await asyncio.wait([task])
                    led = True
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
