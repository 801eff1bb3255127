"""Combine the calls of many coroutines into one, such as reads of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class PerTurn(Generic[Argument, Result]):
    """Calls `work` once for all arguments of one turn of the event loop.

    With `seconds`, the call has the arguments of that time after the first one. `work` returns a
    result for each argument, in their order. Its exceptions are raised to each caller. For one
    event loop at a time.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Argument]], Sequence[Result]],
        seconds: float = 0.0,
    ) -> None:
        self._work = work
        self._seconds = seconds
        self._waiting: list[tuple[Argument, asyncio.Future[Result]]] = []

    async def __call__(self, argument: Argument) -> Result:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((argument, future))
        # The first argument of a turn schedules the call for all of them.
        if len(self._waiting) == 1:
            if self._seconds:
                loop.call_later(self._seconds, self.work_off)
            else:
                loop.call_soon(self.work_off)
        return await future

    def work_off(self) -> None:
        """Call `work` now for all waiting arguments."""
        waiting = self._waiting
        self._waiting = []
        if not waiting:
            return
        try:
            results = self._work([argument for argument, _ in waiting])
        except Exception as error:  # noqa: BLE001  (raised where each result is awaited)
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(waiting, results, strict=True):
            if not future.done():
                future.set_result(result)
