"""A command's work until it is done, or until Ctrl-C or a cancelled job stops it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from judge.cli.terminal import say

if TYPE_CHECKING:
    from judge.execution.progress import Progress

T = TypeVar("T")
_PATIENCE = 10.0
"""Seconds that a stopped run waits for replies."""


def carried_out(work: Coroutine[Any, Any, T], progress: Progress, stopped: Callable[[], str]) -> T:
    """What comes of it; where Ctrl-C stops it, say so as `stopped` does and leave with 130."""
    import asyncio

    try:
        return asyncio.run(until_stopped(work, progress))
    except (KeyboardInterrupt, asyncio.CancelledError):
        say(stopped())
        raise typer.Exit(130) from None


def interrupted(*, cached: bool) -> str:
    """How to go on with what keeps nothing but its replies in the cache."""
    if not cached:
        return "interrupted: without a cache the same command asks and pays for all of it again"
    return "interrupted: start the same command again to go on. What is in the cache is not asked or paid again."


async def until_stopped(run: Coroutine[Any, Any, T], progress: Progress) -> T:
    """Have Ctrl-C, and a CI job that is cancelled, wait for the replies under way, which are paid for.

    A second one does not wait. Raises CancelledError where the run was stopped, and KeyboardInterrupt for a third one.
    """
    import asyncio

    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(run)
    cancelled = False

    def cancel() -> None:
        nonlocal cancelled
        cancelled = True
        loop.call_soon_threadsafe(task.cancel)

    def stop(*_: object) -> None:
        """Let what is under way come back, then stop; at once where there is nothing to wait for."""
        if cancelled:
            raise KeyboardInterrupt
        if progress.stopping or not progress.flying:
            cancel()
            return
        progress.stop()
        say(f"stopping: {progress.flying:,} replies are under way and waited for; Ctrl-C stops at once")
        loop.call_soon_threadsafe(loop.call_later, _PATIENCE, cancel)

    for which in (signal.SIGINT, signal.SIGTERM):  # a shell's `&` has the first one ignored
        signal.signal(which, stop)
    try:
        return await task
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
