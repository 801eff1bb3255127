"""What a run learns about a model from its first replies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from judge.scoring.strategies import Strategy, UnusableReply

# Judgments by a strategy that run alone, one after the other, as long as they teach nothing.
_MOST_ALONE = 3


class ModelTraits:
    """The strategies that a model is `lacking`, with the reason, and those `proven` by a score.

    The first judgment by a strategy runs alone, so that its replies teach once what they can. If
    they teach nothing, for example because the request is refused, the next one runs alone, too, up
    to a few. If `waits` is False, only the very first judgment runs alone, because the requests of
    the others are gathered before any is sent.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self.lacking: dict[Strategy, str] = {}
        self.proven: set[Strategy] = set()
        self._waits = waits
        self._tried: Counter[Strategy] = Counter()
        self._alone: dict[Strategy, asyncio.Lock] = {}

    def learn(self, strategy: Strategy, error: UnusableReply) -> None:
        """Record that the model lacks a strategy, unless a score has proven the strategy."""
        if error.lasting and strategy not in self.proven:
            self.lacking[strategy] = str(error)

    @asynccontextmanager
    async def turn(self, strategy: Strategy) -> AsyncIterator[None]:
        """Wait until the model has shown this strategy or not, or a few judgments ran alone."""
        if not self._is_open(strategy):
            async with self._alone.setdefault(strategy, asyncio.Lock()):
                # The judgment before this one may have taught it.
                if not self._is_open(strategy):
                    try:
                        yield
                    finally:
                        self._tried[strategy] += 1
                    return
        yield

    def _is_open(self, strategy: Strategy) -> bool:
        """Return whether judgments by this strategy no longer run alone."""
        if strategy in self.proven or strategy in self.lacking:
            return True
        if not self._waits:
            return bool(self._tried)
        return self._tried[strategy] >= _MOST_ALONE
