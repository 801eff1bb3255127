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

    A thread runs one loop at a time. If this thread has a running loop, as in a notebook, the work
    runs in another thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    return _run_in_thread(work)


def _run_in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run work in another thread and return its result. Ctrl-C cancels the work."""
    # Filled by the other thread; empty until its loop runs.
    started_tasks: list[asyncio.Task[T]] = []

    async def run_as_task() -> T:
        task = asyncio.ensure_future(work())
        started_tasks.append(task)
        return await task

    def run_in_new_loop() -> T:
        return asyncio.run(run_as_task())

    # The work sees the context variables of the caller.
    context = copy_context()
    interrupted = False
    with ThreadPoolExecutor(1, "judge") as thread:
        future = thread.submit(context.run, run_in_new_loop)
        while not future.done():
            try:
                wait([future])
            except KeyboardInterrupt:
                # Only the main thread gets Ctrl-C, so it is passed on as a cancellation. The work
                # may still save something, so this thread waits for its end.
                interrupted = True
                for task in started_tasks:
                    task.get_loop().call_soon_threadsafe(task.cancel)
    if interrupted:
        raise KeyboardInterrupt
    return future.result()
