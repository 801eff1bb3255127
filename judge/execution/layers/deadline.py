"""Send nothing after the deadline, and cancel the requests in flight."""

from __future__ import annotations

import asyncio

from judge.core.errors import DeadlineReached
from judge.core.messages import option
from judge.core.records import Request, Response
from judge.execution.layers import Layer


class Deadline:
    """Raises DeadlineReached from `at` on, a time of the event loop's clock."""

    def __init__(self, following: Layer, at: float) -> None:
        self._following = following
        self._at = at

    async def ask(self, request: Request) -> Response:
        if asyncio.get_running_loop().time() >= self._at:
            raise DeadlineReached(_time_is_up())
        clock = asyncio.timeout_at(self._at)
        try:
            async with clock:
                return await self._following.ask(request)
        except TimeoutError:
            # The time-out of a single request is another error.
            if clock.expired():
                raise DeadlineReached(_time_is_up()) from None
            raise


def _time_is_up() -> str:
    return f"the time for judging ({option('deadline')}) is over"
