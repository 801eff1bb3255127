"""Requests wait for their turn under the rate limit, and the server's answers set that limit."""

from __future__ import annotations

import asyncio
import time

from judge.core.errors import Transient
from judge.core.records import Request, Response
from judge.execution.layers import Layer
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter, seconds_until_reset


class Limited:
    """Asks when the rate limiter allows it. Retry-After is honoured here: it holds all requests back.

    A 429 without it holds them until the limits that its headers name are full again.
    """

    def __init__(self, following: Layer, limiter: RateLimiter, counts: JudgeProgress) -> None:
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
            if isinstance(error, Transient):
                self._pause_as_told(error)
            self._limiter.on_failure(permit, error)
            raise
        self._limiter.on_success(permit, request, response)
        return response

    def pause(self, seconds: float) -> None:
        """Send nothing for this many seconds, and tell the display."""
        self._limiter.pause_until(asyncio.get_running_loop().time() + seconds)
        until = time.monotonic() + seconds
        self._counts.paused_until = max(self._counts.paused_until, until)

    def _pause_as_told(self, error: Transient) -> None:
        wait = error.retry_after
        if wait is None and error.status == 429:
            wait = seconds_until_reset(error.limits)
        if wait:
            self.pause(wait)
