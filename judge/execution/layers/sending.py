"""The last layer: send a request once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from judge.core.records import Request, Response
from judge.execution.layers import RunStopped
from judge.execution.progress import JudgeProgress

Complete = Callable[[Request], Awaitable[Response]]


class Sending:
    """Asks the provider with `complete`. Raises RunStopped once the run is stopping."""

    def __init__(self, complete: Complete, counts: JudgeProgress) -> None:
        self._complete = complete
        self._counts = counts

    async def ask(self, request: Request) -> Response:
        if self._counts.stopping:
            raise RunStopped
        self._counts.sent += 1
        self._counts.in_flight += 1
        try:
            return await self._complete(request)
        finally:
            self._counts.in_flight -= 1
