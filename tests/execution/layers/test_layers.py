"""Each layer alone, on top of a layer that the test controls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from judge.cache import DiskCache, NoCache
from judge.core.budget import Budget
from judge.core.errors import (
    BudgetReached,
    DeadlineReached,
    ProviderError,
    Refused,
    StorageError,
    Transient,
)
from judge.core.records import Choice, Request, Response, Usage
from judge.execution.budget import BudgetLedger
from judge.execution.layers import Layer, RunStopped
from judge.execution.layers.alone import FirstAlone
from judge.execution.layers.budgeted import Budgeted
from judge.execution.layers.bundled import Bundled
from judge.execution.layers.cached import Cached, ReplyStore, Stored
from judge.execution.layers.counted import Counted
from judge.execution.layers.deadline import Deadline
from judge.execution.layers.deduplicated import Deduplicated
from judge.execution.layers.draws import as_message, draws_of, replies_of
from judge.execution.layers.leading import Leading
from judge.execution.layers.limited import Limited
from judge.execution.layers.remembered import Remembered
from judge.execution.layers.sending import Sending
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import ReplyClient, gather
from judge.providers.recording import Recorder, RecordingFile
from tests.factories import settle, user_request


def request(text: str = "a", draw: int = 0, **params: Any) -> Request:
    return user_request(text, draw, endpoint="e", **params)


def response(*texts: str, **about: Any) -> Response:
    return Response(tuple(Choice(text) for text in texts), **about)


class Below:
    """The layer below: once `open` is set, it answers with `n` copies of the request's text."""

    def __init__(self, error: Exception | None = None, *, most: int = 100) -> None:
        self.asked: list[Request] = []
        self.open = asyncio.Event()
        self.open.set()
        self.error = error
        self._most = most

    async def ask(self, request: Request) -> Response:
        self.asked.append(request)
        await self.open.wait()
        if self.error is not None:
            raise self.error
        number = min(request.params.get("n", 1), self._most)
        texts = [f"{request.messages[0]['content']}{request.draw + k}" for k in range(number)]
        return response(*texts, usage=Usage(10, number))


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def first_texts(responses: list[Response]) -> list[str]:
    return [one.choices[0].text for one in responses]


def test_equal_requests_at_the_same_time_are_one() -> None:
    async def work() -> None:
        below = Below()
        below.open.clear()
        layer = Deduplicated(below)
        asyncio.get_running_loop().call_later(0.01, below.open.set)
        assert first_texts(await gather(layer.ask(request()) for _ in range(5))) == ["a0"] * 5
        await layer.ask(request())
        assert len(below.asked) == 2, "the first ones had their answer"
        assert not layer.is_in_flight(request())

    run(work())


@pytest.mark.parametrize("error", [Refused("no"), RunStopped()])
def test_equal_requests_share_an_error(error: Exception) -> None:
    async def work() -> None:
        layer = Deduplicated(Below(error))
        ends = await asyncio.gather(
            *(layer.ask(request()) for _ in range(3)), return_exceptions=True
        )
        assert ends == [error] * 3

    run(work())


def test_a_waiting_request_is_sent_if_the_first_is_cancelled() -> None:
    async def work() -> None:
        below = Below()
        below.open.clear()
        layer = Deduplicated(below)
        first = asyncio.ensure_future(layer.ask(request()))
        second = asyncio.ensure_future(layer.ask(request()))
        await settle()
        assert layer.is_in_flight(request())
        first.cancel()
        below.open.set()
        assert (await second).choices[0].text == "a0"
        assert len(below.asked) == 2

    run(work())


def draws(number: int, first: int = 0) -> list[Request]:
    return [request(draw=draw) for draw in range(first, first + number)]


def test_draws_of_one_turn_share_a_message_and_the_first_has_the_usage() -> None:
    async def work() -> None:
        below = Below()
        layer = Bundled(below, largest=100)
        responses = await gather(layer.ask(one) for one in [*draws(4), request("b")])
        assert first_texts(responses) == ["a0", "a1", "a2", "a3", "b0"]
        assert [one.params.get("n") for one in below.asked] == [4, None]
        assert [one.usage.completion_tokens for one in responses] == [4, 0, 0, 0, 1]

    run(work())


def test_only_draws_that_follow_each_other_are_one_message() -> None:
    async def work() -> None:
        below = Below()
        layer = Bundled(below, largest=100)
        responses = await gather(layer.ask(one) for one in [*draws(2), *draws(3, first=5)])
        assert first_texts(responses) == ["a0", "a1", "a5", "a6", "a7"]
        assert [(one.draw, one.params["n"]) for one in below.asked] == [(0, 2), (5, 3)]

    run(work())


def test_missing_choices_are_requested_again_in_smaller_messages() -> None:
    async def work() -> None:
        below = Below(most=3)
        layer = Bundled(below, largest=100)
        responses = await gather(layer.ask(one) for one in draws(8))
        assert first_texts(responses) == [f"a{n}" for n in range(8)]
        assert layer.largest == 3
        assert [one.params.get("n") for one in below.asked] == [8, 3, 2]

    run(work())


def test_a_reply_without_a_choice_answers_every_draw() -> None:
    assert replies_of(as_message(draws(3)), response()) == [response()] * 3


def test_merged_draws_are_split_in_order() -> None:
    assert draws_of(as_message(draws(3, first=2))) == draws(3, first=2)
    assert draws_of(request()) == [request()]


def test_the_first_request_goes_alone() -> None:
    async def work() -> None:
        below = Below()
        below.open.clear()
        layer = FirstAlone(below)
        tasks = [asyncio.ensure_future(layer.ask(request(str(n)))) for n in range(5)]
        await settle()
        assert len(below.asked) == 1
        below.open.set()
        assert len(await asyncio.gather(*tasks)) == 5

    run(work())


def test_only_a_first_error_that_ends_the_run_answers_all_requests() -> None:
    async def work(error: ProviderError, count: int) -> None:
        below = Below(error)
        layer = FirstAlone(below)
        ends = await asyncio.gather(
            *(layer.ask(request(str(n))) for n in range(4)), return_exceptions=True
        )
        assert ends == [error] * 4
        assert len(below.asked) == count

    run(work(Refused("wrong key", stops="always"), 1))
    run(work(Refused("too long"), 4))


def test_first_request_of_a_prefix_is_answered_before_the_others() -> None:
    def long(group: str, text: str) -> Request:
        return Request("m", ({"role": "user", "content": text},), prefix=(group, 5), endpoint="e")

    async def work() -> None:
        below = Below()
        below.open.clear()
        layer = Leading(below)
        requests = [long("x", "1"), long("x", "2"), long("y", "3"), request("4"), request("5")]
        tasks = [asyncio.ensure_future(layer.ask(one)) for one in requests]
        await settle()
        assert [one.messages[0]["content"] for one in below.asked] == ["1", "3", "4", "5"]
        below.open.set()
        await asyncio.gather(*tasks)
        assert len(below.asked) == 5

    run(work())


def test_after_a_failed_first_request_the_next_one_goes_alone() -> None:
    async def work() -> None:
        below = Below(Refused("no"))
        layer = Leading(below)
        requests = [
            Request("m", ({"role": "user", "content": str(n)},), prefix=("x", 1)) for n in range(3)
        ]
        ends = await asyncio.gather(*(layer.ask(one) for one in requests), return_exceptions=True)
        assert ends == [below.error] * 3

    run(work())


def test_stored_replies_are_reused_and_new_replies_are_stored(tmp_path: Path) -> None:
    async def work() -> None:
        below = Below()
        with DiskCache(tmp_path) as cache:
            store = ReplyStore(cache)
            layer = Cached(Stored(below, store), store)
            message = as_message(draws(3))
            await Stored(below, store).ask(message)
            assert first_texts([await layer.ask(one) for one in draws(3)]) == ["a0", "a1", "a2"]
            await layer.ask(request("b"))
            await layer.ask(request("b"))
            assert [one.messages[0]["content"] for one in below.asked] == ["a", "b"]
            assert store.has_new(request("b"))
            reloaded = ReplyStore(cache)
            assert await reloaded.get_all([request("b")]) == [await layer.ask(request("b"))]
            assert await reloaded.get_all([request("b")], only_new=True) == [None]

    run(work())


def test_replies_without_an_endpoint_are_not_stored(tmp_path: Path) -> None:
    async def work() -> None:
        with DiskCache(tmp_path) as cache:
            store = ReplyStore(cache)
            layer = Cached(Stored(below := Below(), store), store)
            for _ in range(2):
                await layer.ask(Request("m", ({"role": "user", "content": "a"},)))
            assert len(below.asked) == 2
            assert cache.stats()["responses"] == 0

    run(work())


def test_a_reply_that_cannot_be_stored_is_used_and_the_next_request_is_not_sent(
    tmp_path: Path,
) -> None:
    class Full(DiskCache):
        def flush(self) -> None:
            raise StorageError("disk full")

    async def work() -> None:
        layer = Stored(below := Below(), ReplyStore(Full(tmp_path)))
        assert (await layer.ask(request("a"))).choices
        with pytest.raises(StorageError, match="disk full"):
            await layer.ask(request("b"))
        assert len(below.asked) == 1

    run(work())


class Ending:
    """Answer after some seconds. Refuse the text "wrong" with an error that ends the run."""

    def __init__(self, seconds: float) -> None:
        self.asked: list[str] = []
        self._seconds = seconds

    async def ask(self, request: Request) -> Response:
        text = request.messages[0]["content"]
        self.asked.append(text)
        if text == "wrong":
            raise Refused("out of money", stops="always")
        await asyncio.sleep(self._seconds)
        return response(text)


@pytest.mark.parametrize(("seconds", "is_stored"), [(5, True), (10_000, False)])
def test_an_error_that_ends_the_run_waits_some_time_for_replies_in_flight(
    tmp_path: Path, in_time: Callable[..., Any], seconds: float, is_stored: bool
) -> None:
    async def work() -> None:
        with DiskCache(tmp_path) as cache:
            store = ReplyStore(cache)
            client = ReplyClient(Stored(Ending(seconds), store), store, JudgeProgress())
            with pytest.raises(Refused, match="out of money"):
                await gather(client.ask(request(text)) for text in ("slow", "wrong"))
            assert (await client.stored([request("slow")]) is not None) == is_stored

    in_time(work())


def test_nothing_is_sent_after_an_error_that_ends_the_run() -> None:
    async def work() -> None:
        store = ReplyStore(NoCache())
        below = Ending(0)
        client = ReplyClient(Stored(below, store), store, JudgeProgress())
        with pytest.raises(Refused):
            await client.ask(request("wrong"))
        with pytest.raises(RunStopped):
            await client.ask(request("later"))
        assert below.asked == ["wrong"]

    run(work())


def test_answers_and_errors_are_counted() -> None:
    async def work() -> None:
        counts = JudgeProgress()
        await Counted(Below(), counts).ask(request(n=3))
        with pytest.raises(Refused):
            await Counted(Below(Refused("no")), counts).ask(request())
        assert (counts.answered, counts.refused, counts.usage) == (1, 1, Usage(10, 3))

    run(work())


def test_at_the_deadline_waiting_ends_and_no_request_is_sent(in_time: Callable[..., Any]) -> None:
    async def work() -> None:
        below = Below()
        below.open.clear()
        layer = Deadline(below, asyncio.get_running_loop().time() + 5.0)
        for _ in range(2):
            with pytest.raises(DeadlineReached, match="--deadline"):
                await layer.ask(request())
        assert len(below.asked) == 1

    in_time(work())


def limited(below: Layer) -> tuple[Limited, RateLimiter, JudgeProgress]:
    limiter, counts = RateLimiter(2), JudgeProgress()
    return Limited(below, limiter, counts), limiter, counts


def test_concurrency_stays_below_the_rate_limit() -> None:
    async def work() -> None:
        below = Below()
        below.open.clear()
        layer, limiter, counts = limited(below)
        tasks = [asyncio.ensure_future(layer.ask(request(str(n)))) for n in range(5)]
        await settle()
        assert (len(below.asked), limiter.flying, counts.blocked) == (2, 2, 3)
        below.open.set()
        await asyncio.gather(*tasks)
        assert (limiter.flying, counts.blocked) == (0, 0)

    run(work())


@pytest.mark.parametrize(
    "error",
    [
        Transient("busy", status=429, retry_after=30.0),
        Transient(
            "busy",
            status=429,
            limits={
                "x-ratelimit-limit-requests": "10",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "30s",
            },
        ),
    ],
)
def test_a_429_pauses_all_requests(in_time: Callable[..., Any], error: Transient) -> None:
    async def work() -> None:
        below = Below(error)
        layer, _, counts = limited(below)
        start = asyncio.get_running_loop().time()
        with pytest.raises(Transient):
            await layer.ask(request())
        assert counts.paused_until > 0
        below.error = None
        await layer.ask(request())
        assert asyncio.get_running_loop().time() - start >= 30.0

    in_time(work())


def test_only_sent_requests_spend_budget() -> None:
    async def work() -> None:
        ledger = BudgetLedger(Budget(3_000, "tokens"))
        with pytest.raises(RunStopped):
            await Budgeted(Below(RunStopped()), ledger).ask(request(max_tokens=10))
        assert ledger.spent == 0
        layer = Budgeted(below := Below(), ledger)
        await layer.ask(request(max_tokens=10))
        assert ledger.spent == 11
        with pytest.raises(BudgetReached):
            await layer.ask(request(max_tokens=5_000))
        assert len(below.asked) == 1

    run(work())


def test_nothing_is_sent_once_the_run_is_stopping() -> None:
    async def work() -> None:
        below, counts = Below(), JudgeProgress()
        layer = Sending(below.ask, counts)
        await layer.ask(request())
        counts.stopping = True
        with pytest.raises(RunStopped):
            await layer.ask(request())
        assert (len(below.asked), counts.sent, counts.in_flight) == (1, 1, 0)

    run(work())


def test_each_reply_is_recorded_if_it_is_new_or_used(tmp_path: Path) -> None:
    file, other = tmp_path / "calls.jsonl", tmp_path / "other.jsonl"

    async def work() -> None:
        with DiskCache(tmp_path) as cache:
            with Recorder(file) as recorder:
                await Stored(Below(), ReplyStore(cache, recorder)).ask(as_message(draws(2)))
            with Recorder(other) as recorder:
                layer = Cached(Below(Refused("no")), ReplyStore(cache, recorder))
                await gather(layer.ask(one) for one in draws(2))

    run(work())
    for path in (file, other):
        with RecordingFile(path) as recorded:
            assert recorded.draws("m") == 2


def test_questions_about_the_same_text_share_a_reply() -> None:
    async def work() -> None:
        layer = Remembered(below := Below())
        for _ in range(2):
            assert (await layer.ask(request())).choices[0].text == "a0"
        assert len(below.asked) == 1

    run(work())


def test_a_disabled_cache_reports_no_new_replies() -> None:
    async def work() -> None:
        store = ReplyStore(NoCache())
        await Stored(Below(), store).ask(request())
        assert not store.has_new(request())

    run(work())
