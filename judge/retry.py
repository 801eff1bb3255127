"""When to ask again: tenacity with full jitter, Retry-After, and one cool-down for all requests of a run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from judge.errors import ProviderError, Transient
from judge.records import Response


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient to be.

    `attempts` tries for errors, but only `first_contact` of them while the endpoint has never answered and
    cannot be connected to. A rate limit (429) is waited out for up to `patience` seconds instead, and then stops
    the run. Waits grow as `base`·2ⁿ up to `cap` seconds, drawn uniformly from zero (full jitter).
    """

    attempts: int = 6
    first_contact: int = 3
    base: float = 0.5
    cap: float = 30.0
    patience: float = 600.0


class Retrier:
    """Runs calls under a policy; counts what it had to do; one per run.

    `proven` turns true with the first success: from then on an endpoint in trouble fails single requests and
    no longer the run. `sleep` can be replaced, so that tests do not wait.
    """

    def __init__(
        self, policy: Policy | None = None, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep, seed: int = 0
    ) -> None:
        self.policy = policy or Policy()
        self.proven = False
        self.retried = 0
        self.maybe_billed = 0
        self._sleep = sleep
        self._random = random.Random(seed)  # noqa: S311  (spreads load; no secret)
        self._resume_at = 0.0

    async def __call__(self, call: Callable[[], Awaitable[Response]]) -> Response:
        """The call's response. Raises its Refused at once, and its last Transient when patience is at an end."""

        try:
            response = await self._attempt(call)
        except ProviderError as error:
            response = await self._again(call, error)
        self.proven = True
        return response

    async def _attempt(self, call: Callable[[], Awaitable[Response]]) -> Response:
        await self._cool_down()
        return await call()

    async def _again(self, call: Callable[[], Awaitable[Response]], first: ProviderError) -> Response:
        """All that follows a first error. Apart, because tenacity takes time even where nothing fails."""
        failed = [first]

        async def attempt() -> Response:
            if failed:
                raise failed.pop()
            return await self._attempt(call)

        retrying = AsyncRetrying(
            sleep=self._sleep,
            stop=self._stop,
            wait=self._wait,
            retry=retry_if_exception_type(Transient),
            before_sleep=self._count,
            reraise=True,
        )
        try:
            return await retrying(attempt)
        except ProviderError as error:
            if error.stops == "if_first":
                error.stops = "never" if self.proven else "always"
            raise

    async def _cool_down(self) -> None:
        now = asyncio.get_running_loop().time()
        while (left := self._resume_at - now) > 0:
            await self._sleep(left + self._random.uniform(0.0, self.policy.base))
            now = max(asyncio.get_running_loop().time(), now + left)

    def _stop(self, state: RetryCallState) -> bool:
        error = _error(state)
        if error.retry_after is not None and error.retry_after > self.policy.patience:
            error.stops = "always"
            return True
        if error.status == 429:
            error.stops = "always"
            return (state.seconds_since_start or 0.0) > self.policy.patience
        hopeless = error.unreachable and not self.proven
        attempts = self.policy.attempts
        return state.attempt_number >= (min(self.policy.first_contact, attempts) if hopeless else attempts)

    def _wait(self, state: RetryCallState) -> float:
        error = _error(state)
        spread = min(self.policy.cap, self.policy.base * 2 ** min(state.attempt_number - 1, 16))
        wait = (error.retry_after or 0.0) + self._random.uniform(0.0, spread)
        if error.status == 429 or error.retry_after:
            until = asyncio.get_running_loop().time() + (error.retry_after or wait)
            self._resume_at = max(self._resume_at, until)
        return wait

    def _count(self, state: RetryCallState) -> None:
        self.retried += 1
        self.maybe_billed += _error(state).billed


def _error(state: RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Transient):
        raise TypeError(f"asked about {error!r}, which is not retried")
    return error
