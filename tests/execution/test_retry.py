"""Retries, cool-down, deadline and their limits, on a clock that advances only when all tasks sleep."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from judge.core.errors import DeadlineReached, ProviderError, Refused, Transient
from judge.core.records import Request, Response
from judge.execution.layers.retried import Policy
from judge.execution.progress import Progress
from judge.execution.rate_limit import RateLimiter
from tests.senders import Sender

OK = Response(())
REQUEST = Request("m", ({"role": "user", "content": "How good is it?"},))

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Slept(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(seconds)


def script(*outcomes: Response | ProviderError) -> Callable[[], Awaitable[Response]]:
    outcomes_left = list(outcomes)

    async def call() -> Response:
        outcome = outcomes_left.pop(0)
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    return call


@pytest.fixture
def ask(in_time: Run) -> Callable[..., Response]:
    """Return the response of a retrier to a call with these outcomes."""

    def run(retrier: Sender, *outcomes: Response | ProviderError) -> Response:
        response: Response = in_time(retrier(script(*outcomes), REQUEST))
        return response

    return run


def test_a_transient_error_is_retried_and_counted(ask: Callable[..., Response]) -> None:
    slept = Slept()
    retrier = Sender(sleep=slept)
    assert ask(retrier, Transient("a"), Transient("b", billed=True), OK) is OK
    assert (retrier.counts.retried, retrier.counts.timeouts) == (2, 1)


def test_a_refusal_is_not_retried(ask: Callable[..., Response]) -> None:
    retrier = Sender(sleep=Slept())
    with pytest.raises(Refused):
        ask(retrier, Refused("no"), OK)
    assert retrier.counts.retried == 0


def test_attempts_end(ask: Callable[..., Response]) -> None:
    with pytest.raises(Transient, match="third"):
        ask(
            Sender(Policy(attempts=3), sleep=Slept()),
            Transient("1"),
            Transient("2"),
            Transient("third"),
            OK,
        )


def test_waits_are_full_jitter_below_a_growing_bound(ask: Callable[..., Response]) -> None:
    slept = Slept()
    policy = Policy(attempts=10, base=1.0, cap=8.0)
    with pytest.raises(Transient):
        ask(Sender(policy, sleep=slept), *[Transient("x")] * 10)
    bounds = [1, 2, 4, 8, 8, 8, 8, 8, 8]
    assert all(0 <= wait <= bound for wait, bound in zip(slept, bounds, strict=True))
    assert max(slept) > 2


def test_retry_after_is_obeyed(ask: Callable[..., Response]) -> None:
    slept = Slept()
    ask(Sender(sleep=slept), Transient("busy", status=429, retry_after=7.0), OK)
    assert slept[0] >= 7.0


def test_a_rate_limit_pauses_every_request(in_time: Run) -> None:
    went: list[float] = []

    async def call() -> Response:
        went.append(asyncio.get_running_loop().time())
        if len(went) == 1:
            raise Transient("busy", status=429, retry_after=50.0)
        return OK

    async def both() -> None:
        retrier = Sender()
        first = asyncio.create_task(retrier(call, REQUEST))
        await asyncio.sleep(10.0)
        await asyncio.gather(first, retrier(call, REQUEST))

    in_time(both())
    assert all(50.0 <= later - went[0] <= 52.0 for later in went[1:])
    assert len(went) == 3


@pytest.mark.parametrize("status", [429, 503])
def test_no_request_is_sent_during_a_retry_after_pause(status: int, in_time: Run) -> None:
    went: list[float] = []

    async def call() -> Response:
        went.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.05)
        if len(went) == 1:
            raise Transient("busy", status=status, retry_after=1.0)
        return OK

    async def both() -> None:
        retrier = Sender(rate_limiter=RateLimiter(1))
        await asyncio.gather(*(retrier(call, REQUEST) for _ in range(2)))

    in_time(both())
    assert len(went) == 3
    assert min(went[1:]) >= went[0] + 1.05


def test_a_rate_limit_is_retried_beyond_the_attempts_until_patience_ends(
    ask: Callable[..., Response],
) -> None:
    busy = Transient("busy", status=429, retry_after=1.0)
    slept = Slept()
    assert ask(Sender(Policy(attempts=2), sleep=slept), *[busy] * 10, OK) is OK
    with pytest.raises(Transient) as caught:
        ask(Sender(Policy(first_patience=100.0, cap=4.0), sleep=slept), *[busy] * 500)
    assert caught.value.stops == "always"
    assert re.match(r"busy; no reply for (\d+ s|2 min):", str(caught.value))
    assert sum(slept[10:]) == pytest.approx(100.0, abs=15.0)


def test_patience_lasts_while_anything_is_answered(in_time: Run) -> None:
    retrier = Sender(Policy(patience=100.0, cap=4.0))

    async def starve() -> Response:
        starving = asyncio.create_task(
            retrier(script(*[Transient("busy", status=429, retry_after=1.0)] * 90, OK), REQUEST)
        )
        while not starving.done():
            await retrier(script(OK), REQUEST)
            await asyncio.sleep(20.0)
        return starving.result()

    assert in_time(starve()) is OK


@pytest.mark.parametrize(
    ("after", "length"), [(86_400.0, "24.0 h"), (1e9, "more than a year"), (1e300, "more than a")]
)
def test_a_wait_longer_than_patience_stops_the_run_and_the_message_has_its_length(
    after: float, length: str, ask: Callable[..., Response]
) -> None:
    with pytest.raises(Transient, match=f"busy; .*{length}") as caught:
        ask(Sender(), Transient("busy", status=429, retry_after=after), OK)
    assert caught.value.stops == "always"


@pytest.mark.parametrize(("after", "most"), [(None, 150.0), (0.0, 20.0), (1.0, 200.0)])
@pytest.mark.parametrize(
    "refuses", [lambda n: n % 3 == 0, lambda n: n % 2 == 0, lambda n: n * n % 11 < 4]
)
def test_repeated_refusals_do_not_slow_a_run_further(
    after: float | None, most: float, refuses: Callable[[int], bool], in_time: Run
) -> None:
    sent = 0

    async def call() -> Response:
        nonlocal sent
        sent += 1
        refused = refuses(sent)
        await asyncio.sleep(0.05)
        if refused:
            raise Transient("busy", status=429, retry_after=after)
        return OK

    async def send_many() -> float:
        retrier, start = Sender(rate_limiter=RateLimiter(64)), asyncio.get_running_loop().time()
        await retrier(call, REQUEST)
        await asyncio.gather(*(retrier(call, REQUEST) for _ in range(79)))
        return asyncio.get_running_loop().time() - start

    assert in_time(send_many()) <= most


def test_a_wait_is_announced_with_its_length(in_time: Run) -> None:
    retrier = Sender()
    progress = Progress(judges={"m": retrier.counts})

    async def wait() -> str:
        asking = asyncio.create_task(
            retrier(script(Transient("busy", status=429, retry_after=45.0), OK), REQUEST)
        )
        await asyncio.sleep(0.0)
        announced = progress.rate_limit
        await asking
        return announced

    assert re.search(r"rate limit: .* 4[456] s$", in_time(wait()))


def test_the_deadline_cancels_requests_in_flight(
    in_time: Run,
) -> None:
    times: list[float] = []

    async def hangs() -> Response:
        times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1e6)
        return OK

    async def late() -> None:
        retrier = Sender(deadline=asyncio.get_running_loop().time() + 30.0)
        assert await retrier(script(OK), REQUEST) is OK
        for _ in range(2):
            with pytest.raises(DeadlineReached, match="--deadline"):
                await retrier(hangs, REQUEST)
        assert asyncio.get_running_loop().time() == pytest.approx(1030.0)
        assert retrier.options.limiter.flying == 0

    in_time(late())
    assert times == [1000.0]


def test_a_timeout_of_the_call_is_not_the_deadline(in_time: Run) -> None:
    async def call() -> Response:
        raise TimeoutError("its own")

    async def ask_it() -> None:
        await Sender(deadline=asyncio.get_running_loop().time() + 30.0)(call, REQUEST)

    with pytest.raises(TimeoutError, match="its own"):
        in_time(ask_it())


def refused(times: int) -> list[ProviderError]:
    return [Transient("refused", unreachable=True, stops="if_first") for _ in range(times)]


@pytest.mark.parametrize(("attempts", "sent"), [(6, 2), (1, 1)])
def test_an_endpoint_never_reached_stops_the_run_soon(
    attempts: int, sent: int, ask: Callable[..., Response]
) -> None:
    retrier = Sender(Policy(attempts=attempts, first_contact=2), sleep=Slept())
    with pytest.raises(Transient) as caught:
        ask(retrier, *refused(9))
    assert caught.value.stops == "always"
    assert retrier.counts.retried == sent - 1


def test_an_endpoint_that_only_times_out_stops_the_run_after_the_usual_tries(
    ask: Callable[..., Response],
) -> None:
    retrier = Sender(Policy(attempts=4), sleep=Slept())
    with pytest.raises(Transient) as caught:
        ask(retrier, *[Transient("slow", billed=True, stops="if_first") for _ in range(9)])
    assert caught.value.stops == "always"
    assert (retrier.counts.retried, retrier.counts.timeouts) == (3, 3)


def test_requests_resume_at_different_times_after_a_cool_down(in_time: Run) -> None:
    went: list[float] = []

    async def call() -> Response:
        went.append(asyncio.get_running_loop().time())
        return OK

    async def send_many() -> None:
        retrier = Sender(rate_limiter=RateLimiter(64))
        retrier.options.limiter.pause_until(asyncio.get_running_loop().time() + 50.0)
        await asyncio.gather(*(retrier(call, REQUEST) for _ in range(9)))

    in_time(send_many())
    assert len(set(went)) == 9
    assert all(1050.0 <= time <= 1052.0 for time in went)


def test_an_endpoint_lost_later_fails_single_requests(ask: Callable[..., Response]) -> None:
    retrier = Sender(Policy(attempts=4, first_contact=1), sleep=Slept())
    ask(retrier, OK)
    with pytest.raises(Transient) as caught:
        ask(retrier, *refused(4))
    assert caught.value.stops == "never"
    assert retrier.counts.retried == 3


def test_a_suspect_reply_stops_only_an_unproven_endpoint(ask: Callable[..., Response]) -> None:
    retrier = Sender(sleep=Slept())
    with pytest.raises(Refused) as caught:
        ask(retrier, Refused("html", stops="if_first"))
    assert caught.value.stops == "always"
    proven = Sender(sleep=Slept())
    ask(proven, OK)
    with pytest.raises(Refused) as caught:
        ask(proven, Refused("html", stops="if_first"))
    assert caught.value.stops == "never"
