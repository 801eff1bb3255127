"""What the first replies of a model teach about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from judge.scoring.strategies import Strategy, UnusableReply


class ModelTraits:
    """The strategies that a model is `lacking`, and why, and those that are `proven` by a score.

    The first judgment by a strategy goes alone: what its replies teach is learned once. If `waits` is False, that
    holds for the first judgment of all, because the requests of the others are gathered before any is sent.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self.lacking: dict[Strategy, str] = {}
        self.proven: set[Strategy] = set()
        self._waits = waits
        self._first: dict[Strategy, asyncio.Event] = {}

    def learn(self, strategy: Strategy, error: UnusableReply) -> None:
        """Record that the model lacks a strategy, unless a score has already proven the strategy."""
        if error.lasting and strategy not in self.proven:
            self.lacking[strategy] = str(error)

    @asynccontextmanager
    async def turn(self, strategy: Strategy) -> AsyncIterator[None]:
        """Wait until the first judgment by this strategy has its score, or has failed."""
        first = self._first.get(strategy)
        if first is not None:
            await first.wait()
        if first is not None or strategy in self.proven or (self._first and not self._waits):
            yield
            return
        first = self._first[strategy] = asyncio.Event()
        try:
            yield
        finally:
            first.set()
