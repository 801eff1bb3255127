"""The local engine: all asked, never too many at once, one leader, a clean stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from judge.core.errors import Refused, StorageError, Transient
from judge.core.records import Choice, Request, Response
from judge.execution.engines import Answer, run_local


async def requests(count: int) -> AsyncIterator[Request]:
    for i in range(count):
        yield Request(str(i), ())


class Watcher:
    """Answers with the request's own name, after letting others run; fails where told to."""

    def __init__(self, errors: dict[str, Exception] | None = None) -> None:
        self.errors = errors or {}
        self.now = self.most = 0
        self.started: list[str] = []
        self.in_flight_after_first = -1
        self.answers: dict[str, Answer] = {}

    async def ask(self, request: Request) -> Response:
        self.started.append(request.model)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            if error := self.errors.get(request.model):
                raise error
            return Response((Choice(request.model),))
        finally:
            self.now -= 1

    def done(self, request: Request, answer: Answer) -> None:
        if not self.answers:
            self.in_flight_after_first = len(self.started) - 1
        self.answers[request.model] = answer


def go(watcher: Watcher, count: int, concurrency: int) -> None:
    asyncio.run(run_local(requests(count), watcher.ask, watcher.done, concurrency=concurrency))


def test_everything_is_asked_at_the_concurrency_given() -> None:
    watcher = Watcher()
    go(watcher, 50, 7)
    assert {
        k: a.choices[0].text for k, a in watcher.answers.items() if isinstance(a, Response)
    } == {str(i): str(i) for i in range(50)}
    assert watcher.most == 7


def test_the_first_request_goes_alone() -> None:
    watcher = Watcher()
    go(watcher, 10, 10)
    assert watcher.in_flight_after_first == 0


def test_a_failed_request_is_an_answer() -> None:
    watcher = Watcher({"3": Transient("x"), "4": Refused("y")})
    go(watcher, 6, 2)
    assert isinstance(watcher.answers["3"], Transient)
    assert isinstance(watcher.answers["4"], Refused)
    assert len(watcher.answers) == 6


@pytest.mark.parametrize("error", [Refused("wrong key", stops="always"), StorageError("full")])
def test_an_error_that_stops_the_run_cancels_the_rest(error: Exception) -> None:
    watcher = Watcher({"5": error})
    with pytest.raises(type(error)):
        go(watcher, 1000, 4)
    assert len(watcher.started) < 20
    assert watcher.now == 0


def test_a_wrong_key_is_tried_once() -> None:
    watcher = Watcher({"0": Refused("wrong key", stops="always")})
    with pytest.raises(Refused):
        go(watcher, 100, 50)
    assert watcher.started == ["0"]


def test_nothing_to_ask_is_fine() -> None:
    watcher = Watcher()
    go(watcher, 0, 4)
    assert watcher.answers == {}
