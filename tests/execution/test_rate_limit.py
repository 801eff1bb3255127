"""How fast requests go out, against servers with limits of their own, on a clock that only moves when all wait."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from judge.core.errors import Refused, Transient
from judge.core.records import Request, Response, Usage
from judge.execution.rate_limit import RateLimiter
from judge.execution.retry import Policy, Retrier

REQUEST = Request("m", ({"role": "user", "content": "How good is it?" * 20},))

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def now() -> float:
    return asyncio.get_running_loop().time()


class Server:
    """Answers after `latency` seconds, `slots` at a time, and counts; `limit(self)` may raise for a request."""

    def __init__(
        self,
        latency: float = 0.2,
        slots: int = 1000,
        limit: Callable[[Server], object] = lambda _: None,
        used: int = 0,
    ) -> None:
        self.latency, self.limit, self.usage = latency, limit, Usage(used)
        self.came: list[float] = []
        self.refused = self.flying = self.most = 0
        self._slots = asyncio.Semaphore(slots)

    async def __call__(self) -> Response:
        self.came.append(now())
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            try:
                self.limit(self)
            except Transient:
                self.refused += 1
                await asyncio.sleep(0.01)
                raise
            async with self._slots:
                await asyncio.sleep(self.latency)
        finally:
            self.flying -= 1
        return Response((), self.usage)


async def drive(server: Server, rate_limiter: RateLimiter, count: int, workers: int = 64) -> float:
    """Have so many workers ask so often; the seconds it took."""
    retrier, start, left = Retrier(Policy(), rate_limiter), now(), iter(range(count))
    await retrier(server, REQUEST)

    async def work() -> None:
        for _ in left:
            await retrier(server, REQUEST)

    await asyncio.gather(*(work() for _ in range(workers)))
    assert rate_limiter.flying == 0
    return now() - start


def most_in_a_minute(times: list[float]) -> int:
    return max(bisect_left(times, time + 60.0) - place for place, time in enumerate(times))


@pytest.mark.parametrize("rpm", [1, 7, 60, 61, 90, 600])
def test_no_minute_has_more_requests_than_it_may(rpm: int, in_time: Run) -> None:
    async def run() -> tuple[Server, float]:
        server, rate_limiter = Server(), RateLimiter(64, rpm=rpm)
        took = await drive(server, rate_limiter, 3 * rpm)
        await asyncio.sleep(47.0)  # what was not used meanwhile is not made up for
        return server, took + await drive(server, rate_limiter, rpm)

    server, took = in_time(run())
    assert most_in_a_minute(server.came) <= rpm
    assert took <= 60 * (4 * rpm + 2) / rpm * 1.02


def test_tokens_a_minute_are_what_replies_say_they_were(in_time: Run) -> None:
    async def run() -> tuple[Server, float]:
        server = Server(used=500)
        return server, await drive(server, RateLimiter(64, tpm=60_000), 600)

    server, took = in_time(run())
    assert most_in_a_minute(server.came) * 500 <= 60_000 * 1.05
    assert took == pytest.approx(300.0, rel=0.05)


def test_one_request_above_the_tokens_of_a_minute_goes_and_is_waited_for(in_time: Run) -> None:
    async def run() -> float:
        return await drive(Server(used=300), RateLimiter(64, tpm=100), 2)

    assert in_time(run()) == pytest.approx(2 * 180, rel=0.1)


class Rated:
    """A server's limit on requests, as a token bucket."""

    def __init__(self, per_minute: int, burst: int) -> None:
        self.rate, self.burst = per_minute / 60, float(burst)
        self.level, self.at = self.burst, 0.0

    def __call__(self, _: Server) -> None:
        self.level = min(self.burst, self.level + (now() - self.at) * self.rate)
        self.at = now()
        if self.level < 1:
            raise Transient("busy", status=429, retry_after=1.0)
        self.level -= 1


@pytest.mark.parametrize(("per_minute", "burst", "latency"), [(600, 10, 0.2), (600, 600, 0.2), (600, 10, 2.0)])
def test_the_rate_of_a_server_that_only_says_429_is_found(
    per_minute: int, burst: int, latency: float, in_time: Run
) -> None:
    async def run() -> tuple[Server, float]:
        server = Server(latency, limit=Rated(per_minute, burst))
        return server, await drive(server, RateLimiter(64), 3000)

    server, took = in_time(run())
    assert server.refused <= 0.08 * 3000
    assert took <= 300.0 * 1.15


def test_a_burst_of_refusals_cuts_once(in_time: Run) -> None:
    async def run() -> None:
        rate_limiter = RateLimiter(32)
        permits = [await rate_limiter.acquire(REQUEST) for _ in range(32)]
        assert (rate_limiter.flying, rate_limiter.limit.now) == (32, 32.0)
        await asyncio.sleep(0.2)
        for permit in permits:
            rate_limiter.on_failure(permit, Transient("busy", status=429, retry_after=1.0))
        assert (rate_limiter.flying, rate_limiter.limit.now) == (0, pytest.approx(32 * 0.7))
        await asyncio.sleep(0.1)
        later = await rate_limiter.acquire(REQUEST)
        await asyncio.sleep(0.1)
        rate_limiter.on_failure(later, Transient("busy", status=429, retry_after=1.0))
        assert rate_limiter.limit.now == pytest.approx(32 * 0.7 * 0.7)

    in_time(run())


@pytest.mark.parametrize("error", [Refused("no"), Transient("502", status=502), Transient("dropped"), ValueError()])
def test_what_is_no_overload_does_not_cut(error: Exception, in_time: Run) -> None:
    async def run() -> float:
        rate_limiter = RateLimiter(32)
        rate_limiter.on_failure(await rate_limiter.acquire(REQUEST), error)
        return rate_limiter.limit.now

    assert in_time(run()) == 32.0


def test_there_are_never_more_in_flight_than_wanted_and_soon_as_many(in_time: Run) -> None:
    async def run() -> tuple[Server, float]:
        server = Server(0.2)
        return server, await drive(server, RateLimiter(256), 6400, workers=300)

    server, took = in_time(run())
    assert server.most == 256
    assert took <= (6400 / 256 + 1) * 0.2 * 1.1


def test_a_request_that_no_longer_waits_holds_nobody_up(in_time: Run) -> None:
    large = Request("m", ({"role": "user", "content": "How good is it? " * 10_000},))

    async def run() -> float:
        rate_limiter = RateLimiter(64, tpm=6_000)
        await rate_limiter.acquire(REQUEST)
        heavy = asyncio.create_task(rate_limiter.acquire(large))
        light = asyncio.create_task(rate_limiter.acquire(REQUEST))
        await asyncio.sleep(0.01)
        heavy.cancel()
        start = now()
        await light
        return now() - start

    assert in_time(run()) == pytest.approx(0.48, abs=0.05)


def test_who_no_longer_waits_takes_nothing_along(in_time: Run) -> None:
    async def run() -> None:
        rate_limiter = RateLimiter(1)
        held = await rate_limiter.acquire(REQUEST)
        gone, granted, last = (asyncio.create_task(rate_limiter.acquire(REQUEST)) for _ in range(3))
        await asyncio.sleep(1.0)
        gone.cancel()
        await asyncio.sleep(1.0)
        rate_limiter.on_success(held, REQUEST, Response(()))
        granted.cancel()  # it has its permit already, and has not been told yet
        await asyncio.wait([gone, granted])
        rate_limiter.on_success(await last, REQUEST, Response(()))
        assert rate_limiter.flying == 0

    in_time(run())
