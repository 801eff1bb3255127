"""Retry requests after a transient error."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from judge.core.errors import ProviderError, Transient
from judge.core.format import rough_duration
from judge.core.records import Request, Response
from judge.execution.layers.limited import Limited
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter

_YEAR = 31_536_000.0  # in seconds


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and how long to retry.

    There are `attempts` tries, but only `first_contact` of them if the endpoint has never answered
    and is unreachable. After a rate limit (429) the number is not limited. It stops the run after
    `patience` seconds without any reply, or `first_patience` if there was never one. Waits are
    drawn uniformly from zero to `base`·2ⁿ, at most `cap` seconds (full jitter, as in Amazon's
    "Exponential backoff and jitter").
    """

    attempts: int = 6
    first_contact: int = 3
    base: float = 0.5
    cap: float = 30.0
    patience: float = 600.0
    first_patience: float = 120.0


class Retried:
    """Retries after a transient error; each try waits for the rate limit and is paid.

    The first success proves the endpoint. After that, an endpoint in trouble fails single requests,
    and no longer the run. Tests replace `sleep`, so that they do not wait.

    Raises Refused at once, and the last Transient when the policy ends the retries.
    """

    def __init__(
        self,
        following: Limited,
        policy: Policy,
        limiter: RateLimiter,
        counts: JudgeProgress,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        seed: int = 0,
    ) -> None:
        self._following = following
        self._policy = policy
        self._limiter = limiter
        self._counts = counts
        self._sleep = sleep
        # Seeded, so that the waits can be reproduced.
        self._random = random.Random(seed)  # noqa: S311  (spreads load; no secret)
        self._proven = False
        self._last_success = float("-inf")

    async def ask(self, request: Request) -> Response:
        try:
            response = await self._following.ask(request)
        except ProviderError as error:
            response = await self._ask_again(request, error)
        self._proven = True
        self._last_success = asyncio.get_running_loop().time()
        return response

    async def _ask_again(self, request: Request, first: ProviderError) -> Response:
        """Retry after a first error.

        A separate method, because tenacity takes time even if nothing fails.
        """
        started = asyncio.get_running_loop().time()
        first_errors = [first]

        async def attempt() -> Response:
            # The first attempt has happened already.
            if first_errors:
                raise first_errors.pop()
            return await self._following.ask(request)

        def is_hopeless(state: RetryCallState) -> bool:
            return self._is_hopeless(_error(state), state.attempt_number, started)

        retrying = AsyncRetrying(
            sleep=self._sleep,
            stop=is_hopeless,
            wait=self._seconds_to_wait,
            retry=retry_if_exception_type(Transient),
            before_sleep=self._before_sleep,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except ProviderError as error:
            self._judge_last_error(error, started)
            raise

    def _judge_last_error(self, error: ProviderError, started: float) -> None:
        """Set whether the last error ends the run."""
        if isinstance(error, Transient):
            self._explain(error, started)
        if error.stops == "if_first":
            error.stops = "never" if self._is_proven(error) else "always"

    def _is_proven(self, error: ProviderError) -> bool:
        """Return whether the endpoint has answered, so that it may only dislike this request.

        Replies from the cache prove it if the server itself reports the error. Otherwise a run
        whose last texts fail would end with the failures, and stop if it is repeated.
        """
        if self._proven:
            return True
        status = error.status if isinstance(error, Transient) else None
        return status is not None and status >= 500 and self._counts.cached > 0

    def _is_hopeless(self, error: Transient, attempts: int, started: float) -> bool:
        if self._asks_for_too_long(error):
            return True
        if error.status == 429:
            return self._waited(started) > self._patience
        if error.unreachable and not self._proven:
            return attempts >= min(self._policy.first_contact, self._policy.attempts)
        return attempts >= self._policy.attempts

    def _explain(self, error: Transient, started: float) -> None:
        """Add the waiting time to the last error, if that ends the run."""
        if self._asks_for_too_long(error):
            seconds = error.retry_after or 0.0
            length = "more than a year" if seconds > _YEAR else rough_duration(seconds)
            wait = f"the server asks to wait {length}"
            advice = f"{wait}: start the same command again then"
        elif error.status == 429:
            waited = rough_duration(self._waited(started))
            advice = f"no reply for {waited}: start the same command again later"
        else:
            return
        error.stops = "always"
        error.args = (f"{error}; {advice}",)

    def _asks_for_too_long(self, error: Transient) -> bool:
        return (error.retry_after or 0.0) > self._policy.patience

    @property
    def _patience(self) -> float:
        return self._policy.patience if self._proven else self._policy.first_patience

    def _waited(self, started: float) -> float:
        """Return the seconds without any reply, since this request was first sent."""
        return asyncio.get_running_loop().time() - max(started, self._last_success)

    def _seconds_to_wait(self, state: RetryCallState) -> float:
        error = _error(state)
        failures = state.attempt_number
        if error.status == 429:
            # All requests of a burst are refused together, which counts as one refusal.
            failures = min(failures, self._limiter.refusals)
        # More doublings would only overflow: the cap is far below.
        doublings = min(max(failures, 1) - 1, 16)
        spread = min(self._policy.cap, self._policy.base * 2**doublings)
        return (error.retry_after or 0.0) + self._random.uniform(0.0, spread)

    def _before_sleep(self, state: RetryCallState) -> None:
        error = _error(state)
        self._counts.retried += 1
        self._counts.timeouts += error.billed
        is_rate_limit = error.status == 429 and error.retry_after is None
        if is_rate_limit and state.next_action is not None:
            self._following.pause(state.next_action.sleep)


def _error(state: RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Transient):
        raise TypeError(f"asked about {error!r}, which is not retried")
    return error
