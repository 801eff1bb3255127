"""Traits that judge learns from the first replies, and the requests that wait for them."""

from __future__ import annotations

import asyncio

import pytest

from judge.core.errors import ParseError, Refused
from judge.execution.model_traits import ModelTraits
from judge.scoring.strategies import Strategy, UnusableReply
from tests.factories import settle


def test_a_capability_without_a_reply_that_shows_it_is_missing() -> None:
    traits = ModelTraits()
    traits.proven.add("samples")
    tried: list[tuple[Strategy, bool]] = [
        ("samples", True),
        ("logprobs", True),
        ("single", False),
    ]
    for strategy, lasting in tried:
        traits.learn(strategy, UnusableReply("why", lasting=lasting))
    assert traits.lacking == {"logprobs": "why"}


@pytest.mark.parametrize("waits", [True, False])
def test_the_first_judgment_of_each_strategy_goes_alone(waits: bool) -> None:
    """If traits need no waiting, only the first judgment of the run goes alone."""
    under_way: list[int] = []

    async def judge(traits: ModelTraits, strategy: Strategy, now: list[int]) -> None:
        async with traits.turn(strategy):
            now.append(1)
            under_way.append(len(now))
            await settle()
            now.pop()
            traits.proven.add(strategy)

    async def work() -> None:
        traits = ModelTraits(waits=waits)
        for strategy in ("logprobs", "samples"):
            now: list[int] = []
            under_way.clear()
            await asyncio.gather(*(judge(traits, strategy, now) for _ in range(5)))
            assert under_way[0] == 1
            assert max(under_way) == (4 if waits or strategy == "logprobs" else 5)

    asyncio.run(work())


@pytest.mark.parametrize("error", [None, ParseError("no score"), Refused("no")])
def test_first_requests_go_alone_until_a_trait_is_learned(error: Exception | None) -> None:
    at_once: list[int] = []

    async def judge(traits: ModelTraits, now: list[int]) -> None:
        async with traits.turn("logprobs"):
            now.append(1)
            at_once.append(len(now))
            await settle()
            now.pop()
            if error is not None:
                raise error

    async def work() -> None:
        traits, now = ModelTraits(), list[int]()
        await asyncio.gather(*(judge(traits, now) for _ in range(6)), return_exceptions=True)

    asyncio.run(work())
    assert at_once == [1, 1, 1, 1, 2, 3]


def test_requests_run_together_once_a_strategy_is_known_to_be_missing() -> None:
    async def work() -> None:
        traits, most, now = ModelTraits(), 0, 0

        async def judge() -> None:
            nonlocal most, now
            async with traits.turn("logprobs"):
                now += 1
                most = max(most, now)
                await settle()
                now -= 1
                traits.learn("logprobs", UnusableReply("why", lasting=True))

        await asyncio.gather(*(judge() for _ in range(6)))
        assert most == 5

    asyncio.run(work())
