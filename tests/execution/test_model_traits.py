"""What the first replies teach, and who waits for them."""

from __future__ import annotations

import asyncio

import pytest

from judge.execution.model_traits import ModelTraits
from judge.scoring.strategies import Strategy, UnusableReply


def test_a_model_lacks_what_it_never_did() -> None:
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
def test_the_first_judgment_by_a_strategy_goes_alone(waits: bool) -> None:
    """Without waiting, only the very first one."""
    under_way: list[int] = []

    async def judge(traits: ModelTraits, strategy: Strategy, now: list[int]) -> None:
        async with traits.turn(strategy):
            now.append(1)
            under_way.append(len(now))
            await asyncio.sleep(0)
            now.pop()

    async def work() -> None:
        traits = ModelTraits(waits=waits)
        for strategy in ("logprobs", "samples"):
            now: list[int] = []
            under_way.clear()
            await asyncio.gather(*(judge(traits, strategy, now) for _ in range(5)))
            assert under_way[0] == 1
            assert max(under_way) == (4 if waits or strategy == "logprobs" else 5)

    asyncio.run(work())
