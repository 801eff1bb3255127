"""Limit the rate and the concurrency of requests to what the server and the user allow.

Each judge has one `RateLimiter`. It learns from replies, their `x-ratelimit-*` headers, 429s and
time-outs, respects `--rpm` and `--tpm`, and pauses all requests if the server asks one to wait. See
docs/decisions/0039-additive-increase-multiplicative-decrease-and-the-servers-headers.md.
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
from judge.execution import token_estimates

_MINUTE = 60.0
# Seconds that headers alone may hold requests back. Then one is sent to see whether a 429 follows.
_MAX_HEADER_WAIT = 60.0
# Rate limit, unavailable, and Anthropic's "overloaded".
_BUSY_STATUSES = (429, 503, 529)
# The weight of the newest reply in the mean of tokens per estimated token.
_RATIO_WEIGHT = 0.1
# Seconds after a pause during which requests are spread, so that they are not sent all at once.
_REOPENING = 1.0
# Tokens of a bucket that rounding errors may lack.
_TOLERANCE = 1e-9
_KINDS: tuple[Literal["requests", "tokens"], ...] = ("requests", "tokens")
# Who set a limit, and on what.
_Limit = tuple[Literal["user", "server"], Literal["requests", "tokens"]]
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
# "6m0s", "20ms", "1h2m3.5s" (OpenAI writes durations as Go does)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
# "6m" and "0s" of "6m0s"
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
# Larger numbers in headers are no limits: "inf", or a mistake.
_MAX_NUMBER = 1e12
# Thirty days, in seconds. A larger "reset" is the time since 1970 (GitHub, OpenRouter).
_MAX_RESET = 30 * 86_400.0


class Bucket:
    """A token bucket: `rate` per second, at most `burst` at once. The level may be negative.

    A bucket with a level below 0 has been charged for more than it held: a request of more than a
    burst, or a reply that used more tokens than estimated.
    """

    __slots__ = ("_at", "burst", "level", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self.level = burst
        self._at = float("-inf")

    def wait(self, cost: float, now: float) -> float:
        """Return the seconds until `cost` may be taken.

        If it is more than a burst, these are the seconds until the bucket is full.
        """
        refilled = self.rate * max(0.0, now - self._at)
        self.level = min(self.burst, self.level + refilled)
        self._at = now
        missing = min(cost, self.burst) - self.level
        return missing / self.rate if missing > _TOLERANCE else 0.0

    def set(self, level: float, rate: float, burst: float, now: float) -> None:
        self.level = min(level, burst)
        self.rate = rate
        self.burst = burst
        self._at = now


def per_minute(most: float) -> Bucket:
    """Return a bucket of at most `most` requests in any minute.

    One second's requests may be sent at once. The others are spread evenly.
    """
    burst = max(1.0, most / _MINUTE)
    # A bucket that is full at the start of a minute adds its burst to what is refilled. The request
    # that is refilled exactly at the end belongs to the next minute.
    refilled = most - burst + 1
    return Bucket(refilled / _MINUTE, burst)


class RateLimitHeaders(NamedTuple):
    """A limit in a reply's headers: its size, what remains, and the seconds until it is full."""

    limit: float
    remaining: float
    reset: float


def parse_headers(limits: Mapping[str, str], kind: str) -> RateLimitHeaders | None:
    """Return the headers `x-ratelimit-*` of a kind, None if one is missing or unreadable."""
    limit = _number(limits.get(f"x-ratelimit-limit-{kind}"))
    remaining = _number(limits.get(f"x-ratelimit-remaining-{kind}"))
    reset = seconds(limits.get(f"x-ratelimit-reset-{kind}"))
    if not limit or remaining is None or reset is None or reset > _MAX_RESET:
        return None
    return RateLimitHeaders(limit, min(remaining, limit), reset)


def seconds_until_reset(limits: Mapping[str, str]) -> float:
    """Return the seconds, at most 60, until the exhausted limits are full again."""
    longest = 0.0
    for kind in _KINDS:
        headers = parse_headers(limits, kind)
        if headers and not headers.remaining:
            longest = max(longest, headers.reset)
    return min(longest, _MAX_HEADER_WAIT)


def seconds(text: str | None) -> float | None:
    """Return the seconds of `1s`, `6m0s`, `20ms`, `1h2m3.5s` or `1.5`; None for anything else."""
    text = (text or "").strip()
    if not _DURATION.fullmatch(text):
        return _number(text)
    total = 0.0
    for number, unit in _DURATION_PART.findall(text):
        total += float(number) * _UNITS[unit]
    return total


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number <= _MAX_NUMBER else None


class ConcurrencyLimit:
    """The most requests in flight, `current`: from 1 to `most`.

    It rises quickly at first (slow start) and by additive increase after the first cut. It is cut
    once per burst of overload.
    """

    FIRST = 32.0
    # By how much one reply raises the limit during the slow start.
    FAST = 2.0
    # By what share of `most` one round of replies raises it after that, at least by 1.
    ROUND_SHARE = 1 / 64
    # The factor of one cut; benchmarks/rate_limit.py measures it.
    CUT = 0.7

    def __init__(self, most: int) -> None:
        self.most = float(most)
        self.current = min(self.most, self.FIRST)
        self._slow_start = True
        self._cut_at = float("-inf")

    def answered(self) -> None:
        """Note a reply that came while at least half the limit was in flight."""
        if self._slow_start:
            increase = self.FAST
        else:
            increase_per_round = max(1.0, self.most * self.ROUND_SHARE)
            # A round has as many replies as the limit allows requests.
            increase = increase_per_round / self.current
        self.current = min(self.most, self.current + increase)

    def overloaded(self, sent: float, now: float) -> bool:
        """Cut after an overload of a request `sent` at this time.

        Return False without a cut if one was made since: the request belongs to the same burst.
        """
        if sent <= self._cut_at:
            return False
        self.current = max(1.0, self.current * self.CUT)
        self._slow_start = False
        self._cut_at = now
        return True


class SendRate:
    """The rate for a server with bare 429s: additive increase, multiplicative decrease.

    The first 429 begins the measurement. Each later one sets the rate to `CUT` times the replies
    per second since the one before, pauses excluded. The rate then grows by a constant amount per
    second and is restored after `RECOVERY` seconds. If more than `DROPS` cuts in a row each measure
    a lower rate, the refusals do not depend on the rate, and the limit is removed.
    """

    CUT = 0.8
    RECOVERY = 20.0
    DROPS = 2

    def __init__(self) -> None:
        self.bucket: Bucket | None = None
        # The time of the last 429, and the replies and the seconds of pauses since then.
        self._limited_at = float("-inf")
        self._replies = 0
        self._paused = 0.0
        # The replies per second at the last 429, and the cuts in a row that measured fewer each.
        self._measured = 0.0
        self._drops = 0
        # The rate after the last cut, and its growth per second.
        self._start = 0.0
        self._growth = 0.0

    def answered(self) -> None:
        self._replies += 1

    def paused(self, seconds: float) -> None:
        """Leave out seconds in which nothing is sent."""
        self._paused += seconds

    def limited(self, now: float) -> None:
        """Lower the rate after a 429 to a part of the replies per second since the last one."""
        # Infinite at the first 429, so that the rate is 0: unknown.
        seconds = now - self._limited_at - self._paused
        # Fewer replies do not show a rate: they may be a burst.
        if seconds < 1.0 or self._replies < 2:
            return
        rate = self._replies / seconds
        if 0 < rate < self._measured:
            self._drops += 1
        else:
            self._drops = 0
        self._limited_at = now
        self._replies = 0
        self._paused = 0.0
        self._measured = rate
        if self._drops > self.DROPS:
            self.bucket = None
            self._drops = 0
            self._measured = 0.0
            self._limited_at = float("-inf")
        elif rate:
            self._start = self.CUT * rate
            self._growth = (rate - self._start) / self.RECOVERY
            # The requests of a tenth of a second may be sent at once.
            burst = max(1.0, rate / 10)
            self.bucket = Bucket(self._start, burst)

    def wait(self, now: float) -> float:
        """Return the seconds until a request may be sent."""
        if self.bucket is None:
            return 0.0
        since_cut = now - self._limited_at
        self.bucket.rate = self._start + self._growth * since_cut
        return self.bucket.wait(1.0, now)


class Permit(NamedTuple):
    """Permission to send one request.

    `at` is its time on the loop's clock, `cost` the tokens charged (0 without a limit of tokens),
    and `before` the requests and tokens sent earlier.
    """

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

    `concurrency` is the maximum in flight, `rpm` and `tpm` are the maximum of requests and tokens
    per minute. Tokens are estimated before a request and corrected by its reply. `flying` is the
    number of requests in flight, and `refusals` counts the bursts of 429s since the last reply.
    """

    def __init__(
        self,
        concurrency: int,
        rpm: int | None = None,
        tpm: int | None = None,
    ) -> None:
        self.limit = ConcurrencyLimit(concurrency)
        self.flying = 0
        self.refusals = 0
        self._buckets: dict[_Limit, Bucket] = {}
        if rpm is not None:
            self._buckets["user", "requests"] = per_minute(rpm)
        if tpm is not None:
            self._buckets["user", "tokens"] = Bucket(tpm / _MINUTE, tpm / _MINUTE)
        self._send_rate = SendRate()
        # Tokens that the server counts for each estimated one; 0 until a reply shows it.
        self._ratio = 0.0
        # Requests and tokens sent so far.
        self._sent = (0.0, 0.0)
        # For each kind, the requests sent before the one whose headers were used last.
        self._headers_as_of = [-1.0, -1.0]
        self._queue: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None
        # The end of the last pause, and the time of the last permit.
        self._resume_at = float("-inf")
        self._last = float("-inf")

    async def acquire(self, request: Request) -> Permit:
        """Wait for permission to send. Return every permit with `on_success` or `on_failure`."""
        now = asyncio.get_running_loop().time()
        cost = 0.0
        # Estimating takes time, and is only needed if there is a limit of tokens.
        if any(kind == "tokens" for _, kind in self._buckets):
            cost = token_estimates.estimate_request(request) * (self._ratio or 1.0)
        has_room = not self._queue and self.flying < int(self.limit.current)
        if has_room and self._delay(cost, now) <= 0:
            return self._grant(cost, now)
        waiter = _Waiter(cost)
        self._queue.append(waiter)
        self._release_waiters()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled():
                # The permit was granted, but nobody is there to use it.
                self._release()
            elif waiter in self._queue:
                self._queue.remove(waiter)
                self._release_waiters()
            raise

    def on_success(self, permit: Permit, request: Request, response: Response) -> None:
        """Take a permit back, and learn from the reply."""
        now = asyncio.get_running_loop().time()
        # A reply while the server has little to do does not show that it could do more.
        if self.flying * 2 >= self.limit.current:
            self.limit.answered()
        self._send_rate.answered()
        self.refusals = 0
        used = response.usage.prompt_tokens + response.usage.completion_tokens
        if permit.cost and used:
            ratio = used / token_estimates.estimate_request(request)
            if self._ratio:
                # An exponential moving average.
                self._ratio += _RATIO_WEIGHT * (ratio - self._ratio)
            else:
                self._ratio = ratio
            bucket = self._buckets.get(("user", "tokens"))
            if bucket is not None:
                bucket.level += permit.cost - used
        if response.limits:
            self._update_from_headers(permit, response.limits, now)
        self._release()

    def on_failure(self, permit: Permit, error: BaseException) -> None:
        """Take a permit back, and slow down if the server is overloaded."""
        now = asyncio.get_running_loop().time()
        # A time-out (`billed`) is also a sign of overload.
        status = error.status if isinstance(error, Transient) else None
        is_timeout = isinstance(error, Transient) and error.billed
        if status in _BUSY_STATUSES or is_timeout:
            is_first_of_burst = self.limit.overloaded(permit.at, now)
            if is_first_of_burst and status == 429:
                self.refusals += 1
                self._send_rate.limited(now)
        self._release()

    def pause_until(self, until: float) -> None:
        """Send nothing before this time of the loop's clock."""
        now = asyncio.get_running_loop().time()
        # Pauses may overlap: only the time after the earlier one is new.
        paused_from = max(now, self._resume_at)
        self._send_rate.paused(max(0.0, until - paused_from))
        self._resume_at = max(self._resume_at, until)

    def _grant(self, cost: float, now: float) -> Permit:
        for (_, kind), bucket in self._buckets.items():
            bucket.level -= cost if kind == "tokens" else 1.0
        if self._send_rate.bucket is not None:
            self._send_rate.bucket.level -= 1.0
        permit = Permit(now, cost, self._sent)
        requests_sent, tokens_sent = self._sent
        self._sent = (requests_sent + 1.0, tokens_sent + cost)
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
        while self._queue and self.flying < int(self.limit.current):
            delay = self._delay(self._queue[0].cost, now)
            if delay > 0:
                self._timer = loop.call_at(now + delay, self._release_waiters)
                return
            waiter = self._queue.popleft()
            if not waiter.turn.done():
                waiter.turn.set_result(self._grant(waiter.cost, now))

    def _delay(self, cost: float, now: float) -> float:
        """Return the seconds until a request of `cost` tokens may be sent."""
        delay = self._send_rate.wait(now)
        if now < self._resume_at + _REOPENING:
            next_turn = self._last + _REOPENING / self.limit.current
            delay = max(delay, self._resume_at - now, next_turn - now)
        for (source, kind), bucket in self._buckets.items():
            cost_in_bucket = cost if kind == "tokens" else 1.0
            seconds_to_wait = bucket.wait(cost_in_bucket, now)
            if source == "server":
                longest = self._last + _MAX_HEADER_WAIT - now
                seconds_to_wait = min(seconds_to_wait, longest)
            delay = max(delay, seconds_to_wait)
        return delay

    def _update_from_headers(
        self,
        permit: Permit,
        limits: Mapping[str, str],
        now: float,
    ) -> None:
        """Set the server's buckets by its headers, less what was sent since their request."""
        requests_before, _ = permit.before
        for index, kind in enumerate(_KINDS):
            headers = parse_headers(limits, kind)
            # Replies overtake each other: headers of an earlier request are out of date.
            if headers is None or requests_before < self._headers_as_of[index]:
                continue
            self._headers_as_of[index] = requests_before
            # A full limit does not show how quickly it is refilled.
            if headers.remaining >= headers.limit or not headers.reset:
                continue
            rate = (headers.limit - headers.remaining) / headers.reset
            cost = permit.cost if kind == "tokens" else 1.0
            sent_since = self._sent[index] - permit.before[index] - cost
            refilled = rate * (now - permit.at)
            level = headers.remaining - sent_since + refilled
            full = Bucket(rate, headers.limit)
            bucket = self._buckets.setdefault(("server", kind), full)
            bucket.set(level, rate, headers.limit, now)
