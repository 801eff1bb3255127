"""Run asynchronous work from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run work in a new event loop and return its result.

    If this thread has a running loop, as in a notebook, another thread is used.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def run_and_note() -> T:
        task = asyncio.ensure_future(work())
        tasks.append((asyncio.get_running_loop(), task))
        return await task

    interrupted = False
    with ThreadPoolExecutor(1, "judge") as thread:
        future = thread.submit(copy_context().run, lambda: asyncio.run(run_and_note()))
        while not future.done():
            try:
                wait([future])
            except KeyboardInterrupt:
                # Only the main thread gets Ctrl-C, so it is passed on as a cancellation.
                interrupted = True
                for loop, task in tasks:
                    loop.call_soon_threadsafe(task.cancel)
    if interrupted:
        raise KeyboardInterrupt
    return future.result()
