"""Let requests wait for the rate limit, which the server's answers set."""

from __future__ import annotations

import asyncio
import time

from judge.core.errors import Transient
from judge.core.records import Request, Response
from judge.execution.layers import Layer
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter, seconds_until_reset


class Limited:
    """Asks when the rate limiter allows it. Retry-After pauses all requests.

    A 429 without it pauses them until the limits in its headers are full again.
    """

    def __init__(
        self,
        following: Layer,
        limiter: RateLimiter,
        counts: JudgeProgress,
    ) -> None:
        self._following = following
        self._limiter = limiter
        self._counts = counts

    async def ask(self, request: Request) -> Response:
        self._counts.blocked += 1
        try:
            permit = await self._limiter.acquire(request)
        finally:
            self._counts.blocked -= 1
        try:
            response = await self._following.ask(request)
        except BaseException as error:
            # Every permit has to be returned, also after a cancellation.
            if isinstance(error, Transient):
                self._pause_as_requested(error)
            self._limiter.on_failure(permit, error)
            raise
        self._limiter.on_success(permit, request, response)
        return response

    def pause(self, seconds: float) -> None:
        """Send nothing for this many seconds, and let the display show that."""
        self._limiter.pause_until(asyncio.get_running_loop().time() + seconds)
        until = time.monotonic() + seconds
        self._counts.paused_until = max(self._counts.paused_until, until)

    def _pause_as_requested(self, error: Transient) -> None:
        wait = error.retry_after
        if wait is None and error.status == 429:
            wait = seconds_until_reset(error.limits)
        if wait:
            self.pause(wait)
