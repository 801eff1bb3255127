"""Where sync meets async."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def in_a_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in a loop of its own: here, or in a thread where this thread's loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def noted() -> T:
        task = asyncio.ensure_future(work())
        started.append((asyncio.get_running_loop(), task))
        return await task

    interrupted = False
    with ThreadPoolExecutor(1, "judge") as thread:
        future = thread.submit(copy_context().run, lambda: asyncio.run(noted()))
        while not future.done():
            try:
                wait([future])
            except KeyboardInterrupt:
                interrupted = True
                for loop, task in started:
                    loop.call_soon_threadsafe(task.cancel)
    if interrupted:
        raise KeyboardInterrupt
    return future.result()
