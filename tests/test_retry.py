"""Retries, cool-down and their limits, with a clock that only moves when somebody sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from judge.errors import ProviderError, Refused, Transient
from judge.records import Response
from judge.retry import Policy, Retrier

OK = Response(())


class Slept(list[float]):
    async def __call__(self, seconds: float) -> None:
        self.append(seconds)
        await asyncio.sleep(0)


def script(*outcomes: Response | ProviderError) -> Callable[[], object]:
    left = list(outcomes)

    async def call() -> Response:
        outcome = left.pop(0)
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    return call


def ask(retrier: Retrier, *outcomes: Response | ProviderError) -> Response:
    return asyncio.run(retrier(script(*outcomes)))  # type: ignore[arg-type]


def test_a_transient_error_is_asked_again_and_counted() -> None:
    slept = Slept()
    retrier = Retrier(sleep=slept)
    assert ask(retrier, Transient("a"), Transient("b", billed=True), OK) is OK
    assert (retrier.retried, retrier.maybe_billed, retrier.proven) == (2, 1, True)


def test_a_refusal_is_not_asked_again() -> None:
    retrier = Retrier(sleep=Slept())
    with pytest.raises(Refused):
        ask(retrier, Refused("no"), OK)
    assert retrier.retried == 0


def test_attempts_end() -> None:
    with pytest.raises(Transient, match="third"):
        ask(Retrier(Policy(attempts=3), sleep=Slept()), Transient("1"), Transient("2"), Transient("third"), OK)


def test_waits_are_full_jitter_below_a_growing_bound() -> None:
    slept = Slept()
    policy = Policy(attempts=10, base=1.0, cap=8.0)
    with pytest.raises(Transient):
        ask(Retrier(policy, sleep=slept), *[Transient("x")] * 10)
    bounds = [1, 2, 4, 8, 8, 8, 8, 8, 8]
    assert all(0 <= wait <= bound for wait, bound in zip(slept, bounds, strict=True))
    assert max(slept) > 2


def test_retry_after_is_obeyed() -> None:
    slept = Slept()
    ask(Retrier(sleep=slept), Transient("busy", status=429, retry_after=7.0), OK)
    assert slept[0] >= 7.0


def test_one_rate_limit_cools_every_request_down() -> None:
    slept = Slept()
    retrier = Retrier(sleep=slept)

    async def both() -> None:
        await retrier(script(Transient("busy", status=429, retry_after=50.0), OK))  # type: ignore[arg-type]
        slept.clear()
        await retrier(script(OK))  # type: ignore[arg-type]

    asyncio.run(both())
    assert slept == [pytest.approx(50.0, abs=1.0)]


def test_a_rate_limit_outlasts_the_attempts_until_patience_ends() -> None:
    busy = Transient("busy", status=429, retry_after=0.0)
    assert ask(Retrier(Policy(attempts=2), sleep=Slept()), *[busy] * 20, OK) is OK
    with pytest.raises(Transient) as caught:
        ask(Retrier(Policy(patience=-1.0), sleep=Slept()), busy, OK)
    assert caught.value.stops == "always"


def test_a_wait_longer_than_patience_stops_the_run() -> None:
    with pytest.raises(Transient) as caught:
        ask(Retrier(sleep=Slept()), Transient("come back tomorrow", status=429, retry_after=86_400.0), OK)
    assert caught.value.stops == "always"


def refused(times: int) -> list[ProviderError]:
    return [Transient("refused", unreachable=True, stops="if_first") for _ in range(times)]


@pytest.mark.parametrize(("attempts", "sent"), [(6, 2), (1, 1)])
def test_an_endpoint_never_reached_stops_the_run_soon(attempts: int, sent: int) -> None:
    retrier = Retrier(Policy(attempts=attempts, first_contact=2), sleep=Slept())
    with pytest.raises(Transient) as caught:
        ask(retrier, *refused(9))
    assert caught.value.stops == "always"
    assert retrier.retried == sent - 1


def test_an_endpoint_that_only_times_out_stops_the_run_after_the_usual_tries() -> None:
    retrier = Retrier(Policy(attempts=4), sleep=Slept())
    with pytest.raises(Transient) as caught:
        ask(retrier, *[Transient("slow", billed=True, stops="if_first") for _ in range(9)])
    assert caught.value.stops == "always"
    assert (retrier.retried, retrier.maybe_billed) == (3, 3)


def test_all_do_not_leave_a_cool_down_in_the_same_instant() -> None:
    slept = Slept()
    retrier = Retrier(Policy(base=2.0), sleep=slept)

    async def many() -> None:
        await retrier(script(Transient("busy", status=429, retry_after=50.0), OK))  # type: ignore[arg-type]
        slept.clear()
        await asyncio.gather(*(retrier(script(OK)) for _ in range(9)))  # type: ignore[arg-type]

    asyncio.run(many())
    assert len(set(slept)) == 9
    assert all(49.0 <= wait <= 52.0 for wait in slept)


def test_an_endpoint_lost_later_fails_single_requests() -> None:
    retrier = Retrier(Policy(attempts=4, first_contact=1), sleep=Slept())
    ask(retrier, OK)
    with pytest.raises(Transient) as caught:
        ask(retrier, *refused(4))
    assert caught.value.stops == "never"
    assert retrier.retried == 3


def test_a_suspect_reply_stops_only_an_unproven_endpoint() -> None:
    retrier = Retrier(sleep=Slept())
    with pytest.raises(Refused) as caught:
        ask(retrier, Refused("html", stops="if_first"))
    assert caught.value.stops == "always"
    ask(retrier, OK)
    with pytest.raises(Refused) as caught:
        ask(retrier, Refused("html", stops="if_first"))
    assert caught.value.stops == "never"
