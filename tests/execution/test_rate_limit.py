"""Request rates against servers with rate limits, on a clock that advances only when all tasks wait."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from judge.core.errors import Refused, Transient
from judge.core.records import Request, Response, Usage
from judge.execution.layers.retried import Policy
from judge.execution.rate_limit import RateLimiter, parse_headers, seconds
from tests.senders import Sender

REQUEST = Request("m", ({"role": "user", "content": "How good is it?" * 20},))

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def now() -> float:
    return asyncio.get_running_loop().time()


class Server:
    """Answer `slots` requests at a time, each after `latency` seconds. `limit(self)` may raise for a request."""

    def __init__(
        self,
        latency: float = 0.2,
        slots: int = 1000,
        limit: Callable[[Server], Mapping[str, str]] = lambda _: {},
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
                limits = self.limit(self)
            except Transient:
                self.refused += 1
                await asyncio.sleep(0.01)
                raise
            async with self._slots:
                await asyncio.sleep(self.latency)
        finally:
            self.flying -= 1
        return Response((), self.usage, limits=limits)


async def drive(server: Server, rate_limiter: RateLimiter, count: int, workers: int = 64) -> float:
    """Send `count` requests with `workers` tasks and return the duration in seconds."""
    retrier, start, calls = Sender(Policy(), rate_limiter), now(), iter(range(count))
    await retrier(server, REQUEST)

    async def work() -> None:
        for _ in calls:
            await retrier(server, REQUEST)

    await asyncio.gather(*(work() for _ in range(workers)))
    assert rate_limiter.flying == 0
    return now() - start


def most_in_a_minute(times: list[float]) -> int:
    return max(bisect_left(times, time + 60.0) - index for index, time in enumerate(times))


@pytest.mark.parametrize("rpm", [1, 7, 60, 61, 90, 600])
def test_requests_per_minute_stay_below_the_limit(rpm: int, in_time: Run) -> None:
    async def run() -> tuple[Server, float]:
        server, rate_limiter = Server(), RateLimiter(64, rpm=rpm)
        duration = await drive(server, rate_limiter, 3 * rpm)
        await asyncio.sleep(47.0)  # unused requests of earlier minutes are not added to the limit
        return server, duration + await drive(server, rate_limiter, rpm)

    server, duration = in_time(run())
    assert most_in_a_minute(server.came) <= rpm
    assert duration <= 60 * (4 * rpm + 2) / rpm * 1.02


def test_token_limit_counts_the_usage_of_replies(in_time: Run) -> None:
    async def run() -> tuple[Server, float]:
        server = Server(used=500)
        return server, await drive(server, RateLimiter(64, tpm=60_000), 600)

    server, took = in_time(run())
    assert most_in_a_minute(server.came) * 500 <= 60_000 * 1.05
    assert took == pytest.approx(300.0, rel=0.05)


def test_a_request_above_the_tokens_per_minute_is_sent_and_delays_the_next(in_time: Run) -> None:
    async def run() -> float:
        return await drive(Server(used=300), RateLimiter(64, tpm=100), 2)

    assert in_time(run()) == pytest.approx(2 * 180, rel=0.1)


class Rated:
    """A rate limit as a token bucket. With `headers`, replies report its state in OpenAI's format.

    Each request uses `cost` units of the limit's `kind`.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        headers: bool,
        burst: int | None = None,
        kind: str = "requests",
        cost: int = 1,
    ) -> None:
        self.rate, self.burst, self.headers = per_minute / 60, float(burst or per_minute), headers
        self.level, self.at, self.kind, self.cost = self.burst, 0.0, kind, cost

    def __call__(self, _: Server) -> dict[str, str]:
        self.level = min(self.burst, self.level + (now() - self.at) * self.rate)
        self.at = now()
        if self.level < self.cost:
            raise Transient("busy", status=429, retry_after=1.0)
        self.level -= self.cost
        if not self.headers:
            return {}
        remaining, reset = int(self.level), (self.burst - self.level) / self.rate
        return {
            f"x-ratelimit-limit-{self.kind}": f"{self.burst:g}",
            f"x-ratelimit-remaining-{self.kind}": f"{remaining}",
            f"x-ratelimit-reset-{self.kind}": f"{int(reset // 60)}m{reset % 60:.3f}s",
        }


@pytest.mark.parametrize(("kind", "cost"), [("requests", 1), ("tokens", 500)])
@pytest.mark.parametrize("latency", [0.1, 1.0, 5.0])
def test_a_limit_in_the_headers_prevents_every_429(
    latency: float, kind: str, cost: int, in_time: Run
) -> None:
    async def run() -> tuple[Server, float]:
        server = Server(
            latency, limit=Rated(300 * cost, headers=True, kind=kind, cost=cost), used=500
        )
        return server, await drive(server, RateLimiter(64), 1500)

    server, took = in_time(run())
    assert server.refused <= 5
    assert took <= (1500 - 300) / 5 * 1.1 + 10 * latency


@pytest.mark.parametrize(
    ("per_minute", "burst", "latency"), [(600, 10, 0.2), (600, 600, 0.2), (600, 10, 2.0)]
)
def test_the_rate_of_a_server_without_headers_is_learned_from_429s(
    per_minute: int, burst: int, latency: float, in_time: Run
) -> None:
    async def run() -> tuple[Server, float]:
        server = Server(latency, limit=Rated(per_minute, headers=False, burst=burst))
        return server, await drive(server, RateLimiter(64), 3000)

    server, took = in_time(run())
    assert server.refused <= 0.08 * 3000
    assert took <= 300.0 * 1.15


def test_a_burst_of_refusals_lowers_the_concurrency_once(in_time: Run) -> None:
    async def run() -> None:
        rate_limiter = RateLimiter(32)
        permits = [await rate_limiter.acquire(REQUEST) for _ in range(32)]
        assert (rate_limiter.flying, rate_limiter.limit.current) == (32, 32.0)
        await asyncio.sleep(0.2)
        for permit in permits:
            rate_limiter.on_failure(permit, Transient("busy", status=429, retry_after=1.0))
        assert (rate_limiter.flying, rate_limiter.limit.current) == (0, pytest.approx(32 * 0.7))
        await asyncio.sleep(0.1)
        later = await rate_limiter.acquire(REQUEST)
        await asyncio.sleep(0.1)
        rate_limiter.on_failure(later, Transient("busy", status=429, retry_after=1.0))
        assert rate_limiter.limit.current == pytest.approx(32 * 0.7 * 0.7)

    in_time(run())


@pytest.mark.parametrize(
    "error", [Refused("no"), Transient("502", status=502), Transient("dropped"), ValueError()]
)
def test_errors_other_than_overload_keep_the_concurrency(error: Exception, in_time: Run) -> None:
    async def run() -> float:
        rate_limiter = RateLimiter(32)
        rate_limiter.on_failure(await rate_limiter.acquire(REQUEST), error)
        return rate_limiter.limit.current

    assert in_time(run()) == 32.0


def test_concurrency_reaches_the_wanted_number_and_never_exceeds_it(in_time: Run) -> None:
    async def run() -> tuple[Server, float]:
        server = Server(0.2)
        return server, await drive(server, RateLimiter(256), 6400, workers=300)

    server, took = in_time(run())
    assert server.most == 256
    assert took <= (6400 / 256 + 1) * 0.2 * 1.1


@pytest.mark.parametrize(
    ("limit", "remaining", "reset"),
    [
        ("10000", "0", "8h0m0s"),
        ("10", "0", "1000000000"),
        ("-1", "-1", "-1"),
        ("many", "few", "soon"),
        ("nan", "inf", "1e400"),
        ("0", "0", "0"),
        ("5", "0", ""),
        ("5", "0", "0s"),
        ("5", "5", "10s"),
    ],
)
def test_unusual_rate_limit_headers_never_block_a_run(
    limit: str, remaining: str, reset: str, in_time: Run
) -> None:
    headers = {
        f"x-ratelimit-{name}-{kind}": value
        for kind in ("requests", "tokens")
        for name, value in (("limit", limit), ("remaining", remaining), ("reset", reset))
    }

    async def run() -> float:
        return await drive(Server(limit=lambda _: headers), RateLimiter(64), 5)

    assert in_time(run()) <= 5 * 61


def test_a_429_without_retry_after_waits_for_the_reset_in_its_headers(in_time: Run) -> None:
    headers = {
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "20s",
    }

    async def run() -> list[float]:
        def once(server: Server) -> dict[str, str]:
            if len(server.came) == 1:
                raise Transient("busy", status=429, limits=headers)
            return {}

        server = Server(limit=once)
        await drive(server, RateLimiter(64), 1)
        return server.came

    first, second, *_ = in_time(run())
    assert second - first >= 20.0


def test_a_cancelled_request_does_not_block_the_others(in_time: Run) -> None:
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


def test_a_cancelled_request_holds_no_permit(in_time: Run) -> None:
    async def run() -> None:
        rate_limiter = RateLimiter(1)
        first = await rate_limiter.acquire(REQUEST)
        cancelled, granted, last = (
            asyncio.create_task(rate_limiter.acquire(REQUEST)) for _ in range(3)
        )
        await asyncio.sleep(1.0)
        cancelled.cancel()
        await asyncio.sleep(1.0)
        rate_limiter.on_success(first, REQUEST, Response(()))
        granted.cancel()  # its permit is granted, but the task has not run yet
        await asyncio.wait([cancelled, granted])
        rate_limiter.on_success(await last, REQUEST, Response(()))
        assert rate_limiter.flying == 0

    in_time(run())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("1d", 86_400.0),
        ("7", 7.0),
        ("0.5", 0.5),
        *[
            (odd, None)
            for odd in (
                None,
                "",
                "soon",
                "-1s",
                "-1",
                "1s later",
                "5 minutes",
                "nan",
                "inf",
                "1e300",
            )
        ],
    ],
)
def test_times_in_headers(text: str | None, value: float | None) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("missing", ["limit", "remaining", "reset"])
def test_incomplete_rate_limit_headers_are_ignored(missing: str) -> None:
    headers = {
        "x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "12", "x-ratelimit-reset-requests": "30s",
    }  # fmt: skip
    assert parse_headers(headers, "requests") == (60.0, 12.0, 30.0)
    headers.pop(f"x-ratelimit-{missing}-requests")
    assert parse_headers(headers, "requests") is None


def test_a_reset_in_seconds_since_1970_is_ignored() -> None:
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "12",
        "x-ratelimit-reset-requests": "1796083200",
    }
    assert parse_headers(headers, "requests") is None
