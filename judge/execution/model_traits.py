"""What the first replies of a model teach about it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from judge.scoring.strategies import Strategy, UnusableReply

_MOST_ALONE = 3
"""Judgments by a strategy that go alone, one after the other, as long as they teach nothing."""


class ModelTraits:
    """The strategies that a model is `lacking`, and why, and those that are `proven` by a score.

    The first judgment by a strategy goes alone: what its replies teach is learned once. If they teach nothing, as a
    refused request does, the next one goes alone, too, up to a few. If `waits` is False, only the first judgment of
    all goes alone, because the requests of the others are gathered before any is sent.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self.lacking: dict[Strategy, str] = {}
        self.proven: set[Strategy] = set()
        self._waits = waits
        self._tried: Counter[Strategy] = Counter()
        self._alone: dict[Strategy, asyncio.Lock] = {}

    def learn(self, strategy: Strategy, error: UnusableReply) -> None:
        """Record that the model lacks a strategy, unless a score has already proven the strategy."""
        if error.lasting and strategy not in self.proven:
            self.lacking[strategy] = str(error)

    @asynccontextmanager
    async def turn(self, strategy: Strategy) -> AsyncIterator[None]:
        """Wait until it is known whether the model has this strategy, or a few judgments have not shown it."""
        if not self._is_open(strategy):
            async with self._alone.setdefault(strategy, asyncio.Lock()):
                if not self._is_open(strategy):
                    try:
                        yield
                    finally:
                        self._tried[strategy] += 1
                    return
        yield

    def _is_open(self, strategy: Strategy) -> bool:
        """Whether judgments by this strategy no longer go alone."""
        if strategy in self.proven or strategy in self.lacking:
            return True
        if not self._waits:
            return bool(self._tried)
        return self._tried[strategy] >= _MOST_ALONE
