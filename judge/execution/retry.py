"""Send requests under the rate limit and the budget, and retry transient errors until the deadline.

Retry-After is honoured here and nowhere else: it pauses all requests of its judge. `providers.http_client` parses it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from judge.core.errors import DeadlineReached, ProviderError, Transient
from judge.core.format import duration
from judge.core.records import Request, Response
from judge.execution.budget import BudgetLedger
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter, seconds_until_reset

_UNLIMITED = 1_000_000
_YEAR = 31_536_000.0
_TIME_IS_UP = "the time for judging (--deadline) is up"


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient to be.

    `attempts` tries for errors, but only `first_contact` of them while the endpoint has never answered and
    cannot be connected to. A rate limit (429) is waited out instead. It stops the run after `patience` seconds without
    any reply, or `first_patience` if there has never been one. Waits grow as `base`·2ⁿ up to `cap` seconds, drawn
    uniformly from zero (full jitter).
    """

    attempts: int = 6
    first_contact: int = 3
    base: float = 0.5
    cap: float = 30.0
    patience: float = 600.0
    first_patience: float = 120.0


@dataclass(eq=False)
class Retrier:
    """Runs calls under a policy; one for each judge of a run.

    Every try waits for `rate_limiter` and is paid from `ledger`; what had to be done again is counted in `counts`. From
    `deadline`, a time of the event loop's clock, nothing is asked any more, and what is under way is let go.
    `proven` turns true with the first success: from then on an endpoint in trouble fails single requests and
    no longer the run. `sleep` can be replaced, so that tests do not wait.
    """

    policy: Policy = Policy()
    rate_limiter: RateLimiter = field(default_factory=lambda: RateLimiter(_UNLIMITED))
    ledger: BudgetLedger | None = None
    _: KW_ONLY
    counts: JudgeProgress = field(default_factory=JudgeProgress)
    deadline: float | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    seed: int = 0

    def __post_init__(self) -> None:
        self.proven = False
        self._random = random.Random(self.seed)  # noqa: S311  (spreads load; no secret)
        self._last_success = float("-inf")

    async def __call__(self, call: Callable[[], Awaitable[Response]], request: Request) -> Response:
        """The response to a request, which `call` sends once.

        Raises its Refused at once, its last Transient when patience is at an end, BudgetReached and DeadlineReached.
        """
        if self.deadline is None:
            return await self._send(call, request)
        clock = asyncio.timeout_at(self.deadline)
        if asyncio.get_running_loop().time() >= self.deadline:
            raise DeadlineReached(_TIME_IS_UP)
        try:
            async with clock:
                return await self._send(call, request)
        except TimeoutError:
            if clock.expired():
                raise DeadlineReached(_TIME_IS_UP) from None
            raise

    async def _send(self, call: Callable[[], Awaitable[Response]], request: Request) -> Response:
        try:
            response = await self._attempt(call, request)
        except ProviderError as error:
            response = await self._retry(call, request, error)
        self.proven = True
        self._last_success = asyncio.get_running_loop().time()
        return response

    async def _attempt(self, call: Callable[[], Awaitable[Response]], request: Request) -> Response:
        """One try, when rate_limiter and ledger allow it."""
        rate_limiter, ledger = self.rate_limiter, self.ledger
        reserved = await ledger.reserve(request) if ledger else 0.0
        try:
            permit = await rate_limiter.acquire(request)
        except BaseException:
            if ledger:
                ledger.release(reserved)
            raise
        try:
            response = await call()
        except BaseException as error:
            if isinstance(
                error, Transient
            ):  # Retry-After or, in a 429 without it, the limits' reset
                reset = seconds_until_reset(error.limits) if error.status == 429 else 0.0
                if wait := reset if error.retry_after is None else error.retry_after:
                    self._pause(wait)
            rate_limiter.on_failure(permit, error)
            if ledger:
                ledger.commit_unknown(reserved, error)
            raise
        rate_limiter.on_success(permit, request, response)
        if ledger:
            ledger.commit(reserved, request, response.usage)
        return response

    async def _retry(
        self, call: Callable[[], Awaitable[Response]], request: Request, first: ProviderError
    ) -> Response:
        """All that follows a first error. Apart, because tenacity takes time even where nothing fails."""
        failed, started = [first], asyncio.get_running_loop().time()

        async def attempt() -> Response:
            if failed:
                raise failed.pop()
            return await self._attempt(call, request)

        def count(state: RetryCallState) -> None:
            self.counts.retried += 1
            self.counts.timeouts += _error(state).billed

        retrying = AsyncRetrying(
            sleep=self.sleep, stop=lambda state: self._stop(state, started), wait=self._wait,
            retry=retry_if_exception_type(Transient), before_sleep=count, reraise=True,
        )  # fmt: skip
        try:
            return await retrying(attempt)
        except ProviderError as error:
            if error.stops == "if_first":
                error.stops = "never" if self.proven else "always"
            raise

    def _stop(self, state: RetryCallState, started: float) -> bool:
        error = _error(state)
        if error.retry_after is not None and error.retry_after > self.policy.patience:
            error.stops = "always"
            length = (
                "more than a year" if error.retry_after > _YEAR else duration(error.retry_after)
            )
            error.args = (
                f"{error}; the server asks to wait {length}: start the same command again then",
            )
            return True
        if error.status == 429:
            waited = asyncio.get_running_loop().time() - max(started, self._last_success)
            if waited <= (self.policy.patience if self.proven else self.policy.first_patience):
                return False
            error.stops = "always"
            error.args = (
                f"{error}; no reply for {duration(waited)}: start the same command again later",
            )
            return True
        hopeless = error.unreachable and not self.proven
        attempts = self.policy.attempts
        return state.attempt_number >= (
            min(self.policy.first_contact, attempts) if hopeless else attempts
        )

    def _wait(self, state: RetryCallState) -> float:
        error = _error(state)
        failures = state.attempt_number
        if error.status == 429:
            failures = min(failures, self.rate_limiter.refusals)
        spread = min(self.policy.cap, self.policy.base * 2 ** min(max(failures, 1) - 1, 16))
        wait = (error.retry_after or 0.0) + self._random.uniform(0.0, spread)
        if error.status == 429 and error.retry_after is None:
            self._pause(wait)
        return wait

    def _pause(self, seconds: float) -> None:
        """Send nothing for this many seconds, and tell the display."""
        self.rate_limiter.pause_until(asyncio.get_running_loop().time() + seconds)
        self.counts.paused_until = max(self.counts.paused_until, time.monotonic() + seconds)


def _error(state: RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Transient):
        raise TypeError(f"asked about {error!r}, which is not retried")
    return error
