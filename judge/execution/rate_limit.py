"""Limit the rate of requests: as many at once as the server bears, no more a minute than it or the user allows.

Each judge has one `RateLimiter`. It learns from replies, their `x-ratelimit-*` headers, 429s and time-outs,
keeps to `--rpm` and `--tpm`, and holds everything while one request has been told to wait.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from judge.core.errors import Transient
from judge.core.records import Request, Response
from judge.execution import budget

_MINUTE = 60.0
_MAX_HEADER_WAIT = 60.0
"""Seconds that headers alone may hold requests back: then one is sent to see. The server's own 429 says more."""
_BUSY = (429, 503, 529)
_REOPENING = 1.0
_TOLERANCE = 1e-9
_KINDS: tuple[Literal["requests", "tokens"], ...] = ("requests", "tokens")
_Limit = tuple[Literal["user", "server"], Literal["requests", "tokens"]]
"""Who set a limit, and on what."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_MAX_NUMBER = 1e12


class Bucket:
    """A token bucket: `rate` per second, at most `burst` at once. The level may be negative."""

    __slots__ = ("_at", "burst", "level", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.level, self._at = rate, burst, burst, float("-inf")

    def wait(self, cost: float, now: float) -> float:
        """Return the seconds until `cost` may be taken; for more than a burst, until the bucket is full."""
        self.level = min(self.burst, self.level + max(0.0, now - self._at) * self.rate)
        self._at = now
        lack = min(cost, self.burst) - self.level
        return lack / self.rate if lack > _TOLERANCE else 0.0

    def set(self, level: float, rate: float, burst: float, now: float) -> None:
        self.level, self.rate, self.burst, self._at = min(level, burst), rate, burst, now


def per_minute(most: float) -> Bucket:
    """Return a bucket of at most `most` requests in any minute: a second's worth at once, the rest evenly."""
    burst = max(1.0, most / _MINUTE)
    return Bucket((most - burst + 1) / _MINUTE, burst)


class RateLimitHeaders(NamedTuple):
    """One limit by a reply's headers: its size, the rest, and the seconds until it is full again."""

    limit: float
    remaining: float
    reset: float


def parse_headers(limits: Mapping[str, str], kind: str) -> RateLimitHeaders | None:
    """Return what `x-ratelimit-{limit,remaining,reset}-{kind}` say; None if any is missing or unreadable."""
    limit, remaining = (
        _number(limits.get(f"x-ratelimit-{name}-{kind}")) for name in ("limit", "remaining")
    )
    reset = seconds(limits.get(f"x-ratelimit-reset-{kind}"))
    if not limit or remaining is None or reset is None:
        return None
    return RateLimitHeaders(limit, min(remaining, limit), reset)


def seconds_until_reset(limits: Mapping[str, str]) -> float:
    """Return the seconds, at most 60, until the exhausted limits are full again."""
    headers = [parse_headers(limits, kind) for kind in _KINDS]
    reset = max(
        (header.reset for header in headers if header and not header.remaining), default=0.0
    )
    return min(reset, _MAX_HEADER_WAIT)


def seconds(text: str | None) -> float | None:
    """`1s`, `6m0s`, `20ms`, `1h2m3.5s` or bare seconds as seconds; None for anything else."""
    text = (text or "").strip()
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return _number(text)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number <= _MAX_NUMBER else None


class ConcurrencyLimit:
    """The number of requests in flight: slow start, then additive increase; at least 1, at most `most`.

    It is cut once per burst of overload.
    """

    FIRST, FAST, CUT = 32.0, 2.0, 0.7

    def __init__(self, most: int) -> None:
        self.most = float(most)
        self.now = min(self.most, self.FIRST)
        self._slow_start = True
        self._cut_at = float("-inf")

    def answered(self) -> None:
        """Note a reply that came while at least half the limit was in flight."""
        step = self.FAST if self._slow_start else max(1.0, self.most / 64) / self.now
        self.now = min(self.most, self.now + step)

    def overloaded(self, sent: float, now: float) -> bool:
        """Cut for an overload of a request sent at `sent`; return False if an earlier cut covers it."""
        if sent <= self._cut_at:
            return False
        self.now, self._slow_start, self._cut_at = max(1.0, self.now * self.CUT), False, now
        return True


class SendRate:
    """The rate for a server that refuses with a bare 429: additive increase, multiplicative decrease.

    A 429 sets it to `CUT` times the replies per second since the last one, pauses excluded. It then grows by a constant
    amount per second and is back after `SECONDS`. If more than `DROPS` cuts in a row each find a lower rate, the
    refusals do not depend on the rate: the limit is lifted.
    """

    CUT, SECONDS, DROPS = 0.8, 20.0, 2

    def __init__(self) -> None:
        self.bucket: Bucket | None = None
        self._replies = self._cuts = 0
        self._limited_at = float("-inf")
        self._start = self._step = self._paused = self._rate = 0.0

    def answered(self) -> None:
        self._replies += 1

    def paused(self, seconds: float) -> None:
        """Leave out seconds in which nothing is sent."""
        self._paused += seconds

    def limited(self, now: float) -> None:
        """Lower the rate after a refusal to a part of the replies per second since the last one."""
        seconds, replies = now - self._limited_at - self._paused, self._replies
        if seconds < 1.0 or replies < 2:  # too little to tell a rate from a burst
            return
        rate = replies / seconds
        self._cuts = self._cuts + 1 if 0 < rate < self._rate else 0
        self._limited_at, self._replies, self._paused, self._rate = now, 0, 0.0, rate
        if self._cuts > self.DROPS:
            self.bucket, self._cuts, self._rate, self._limited_at = None, 0, 0.0, float("-inf")
        elif rate:
            self._start, self._step = self.CUT * rate, (1 - self.CUT) * rate / self.SECONDS
            self.bucket = Bucket(self._start, max(1.0, rate / 10))

    def wait(self, now: float) -> float:
        if self.bucket is None:
            return 0.0
        self.bucket.rate = self._start + self._step * (now - self._limited_at)
        return self.bucket.wait(1.0, now)


class Permit(NamedTuple):
    """Permission to send one request: its time, the tokens charged, and the requests and tokens sent before."""

    at: float
    cost: float
    before: tuple[float, float]


@dataclass(slots=True, eq=False)
class _Waiter:
    cost: float
    turn: asyncio.Future[Permit] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class RateLimiter:
    """Decides when the next request of one judge is sent, in one event loop at a time.

    `concurrency` is the maximum in flight, `rpm` and `tpm` the maximum of requests and tokens per minute. Tokens are
    estimated before a request and corrected by its reply. `refusals` counts the bursts of 429s since the last reply.
    """

    def __init__(self, concurrency: int, rpm: int | None = None, tpm: int | None = None) -> None:
        self.limit = ConcurrencyLimit(concurrency)
        self.flying = self.refusals = 0
        self._buckets: dict[_Limit, Bucket] = {}
        if rpm is not None:
            self._buckets["user", "requests"] = per_minute(rpm)
        if tpm is not None:
            self._buckets["user", "tokens"] = Bucket(tpm / _MINUTE, tpm / _MINUTE)
        self._rate = SendRate()
        self._ratio = 0.0
        self._sent = (0.0, 0.0)
        self._headers_as_of = [-1.0, -1.0]
        self._queue: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._resume_at = self._last = float("-inf")

    async def acquire(self, request: Request) -> Permit:
        """Wait for permission to send. Return every permit with `on_success` or `on_failure`."""
        cost, now = 0.0, asyncio.get_running_loop().time()
        if any(kind == "tokens" for _, kind in self._buckets):  # else nobody limits tokens
            cost = budget.estimate_request(request) * (self._ratio or 1.0)
        if not self._queue and self.flying < int(self.limit.now) and self._delay(cost, now) <= 0:
            return self._grant(cost, now)
        waiter = _Waiter(cost)
        self._queue.append(waiter)
        self._release_waiters()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                self._release()
            elif waiter in self._queue:
                self._queue.remove(waiter)
                self._release_waiters()
            raise

    def on_success(self, permit: Permit, request: Request, response: Response) -> None:
        """Take a permit back, and learn from the reply."""
        now = asyncio.get_running_loop().time()
        if self.flying * 2 >= self.limit.now:
            self.limit.answered()
        self._rate.answered()
        self.refusals = 0
        used = response.usage.prompt_tokens + response.usage.completion_tokens
        if permit.cost and used:
            ratio = used / budget.estimate_request(request)
            self._ratio = self._ratio + 0.1 * (ratio - self._ratio) if self._ratio else ratio
            if (bucket := self._buckets.get(("user", "tokens"))) is not None:
                bucket.level += permit.cost - used
        if response.limits:
            self._update_from_headers(permit, response.limits, now)
        self._release()

    def on_failure(self, permit: Permit, error: BaseException) -> None:
        """Take a permit back, and slow down if the server is overloaded."""
        now = asyncio.get_running_loop().time()
        overload = (
            error
            if isinstance(error, Transient) and (error.status in _BUSY or error.billed)
            else None
        )
        if (
            overload is not None
            and self.limit.overloaded(permit.at, now)
            and overload.status == 429
        ):
            self.refusals += 1
            self._rate.limited(now)
        self._release()

    def pause_until(self, until: float) -> None:
        """Send nothing before this time of the loop's clock."""
        now = asyncio.get_running_loop().time()
        self._rate.paused(max(0.0, until - max(now, self._resume_at)))
        self._resume_at = max(self._resume_at, until)

    def _grant(self, cost: float, now: float) -> Permit:
        for (_, kind), bucket in self._buckets.items():
            bucket.level -= cost if kind == "tokens" else 1.0
        if self._rate.bucket is not None:
            self._rate.bucket.level -= 1.0
        permit = Permit(now, cost, self._sent)
        self._sent = self._sent[0] + 1.0, self._sent[1] + cost
        self.flying += 1
        self._last = now
        return permit

    def _release(self) -> None:
        self.flying -= 1
        if self._queue:
            self._release_waiters()

    def _release_waiters(self) -> None:
        """Grant permits to waiting requests, or set a timer for the next one."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and self.flying < int(self.limit.now):
            if (delay := self._delay(self._queue[0].cost, now)) > 0:
                self._timer = loop.call_at(now + delay, self._release_waiters)
                return
            waiter = self._queue.popleft()
            if not waiter.turn.done():
                waiter.turn.set_result(self._grant(waiter.cost, now))

    def _delay(self, cost: float, now: float) -> float:
        """Return the seconds until a request of `cost` tokens may be sent."""
        delay = self._rate.wait(now)
        if now < self._resume_at + _REOPENING:  # not all at once, when it goes on
            delay = max(
                delay, self._resume_at - now, self._last + _REOPENING / self.limit.now - now
            )
        for (source, kind), bucket in self._buckets.items():
            wait = bucket.wait(cost if kind == "tokens" else 1.0, now)
            delay = max(
                delay, wait if source == "user" else min(wait, self._last + _MAX_HEADER_WAIT - now)
            )
        return delay

    def _update_from_headers(self, permit: Permit, limits: Mapping[str, str], now: float) -> None:
        """Set the server's buckets by its headers, less what was sent since their request."""
        for place, kind in enumerate(_KINDS):
            news = parse_headers(limits, kind)
            if news is None or permit.before[0] < self._headers_as_of[place]:
                continue
            self._headers_as_of[place] = permit.before[0]
            if news.remaining >= news.limit or not news.reset:
                continue
            rate = (news.limit - news.remaining) / news.reset
            cost = permit.cost if place else 1.0
            level = (
                news.remaining
                - (self._sent[place] - permit.before[place] - cost)
                + rate * (now - permit.at)
            )
            bucket = self._buckets.setdefault(("server", kind), Bucket(rate, news.limit))
            bucket.set(level, rate, news.limit, now)
