"""Layers that send requests with a function, and judges over them, as tests of execution need them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any

from judge.cache import Cache, NoCache
from judge.core.records import Criterion, Request, Response
from judge.execution.budget import BudgetLedger
from judge.execution.judging import Judging
from judge.execution.judgments import Judgment, Row
from judge.execution.layers import Layer
from judge.execution.layers.cached import ReplyStore
from judge.execution.layers.retried import Policy
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import ReplyClient, SendingOptions, sending_layers
from judge.providers import Provider
from judge.scoring.strategies import SamplingOptions

MANY = 1_000_000
_CALL: ContextVar[Callable[[], Awaitable[Response]]] = ContextVar("call")


class Sender:
    """Send requests with the layers below an engine: retries, rate limits, budget and deadline."""

    def __init__(
        self,
        policy: Policy | None = None,
        rate_limiter: RateLimiter | None = None,
        ledger: BudgetLedger | None = None,
        *,
        counts: JudgeProgress | None = None,
        deadline: float | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        store: ReplyStore | None = None,
    ) -> None:
        self.counts = counts or JudgeProgress()
        self.ledger = ledger
        self.store = store or ReplyStore(NoCache())
        self.options = SendingOptions(
            rate_limiter or RateLimiter(MANY), policy or Policy(), ledger, deadline, sleep
        )
        self._layer = self.layers(lambda _: _CALL.get()())

    def layers(self, complete: Callable[[Request], Awaitable[Response]]) -> Layer:
        return sending_layers(complete, self.options, self.store, self.counts)

    async def __call__(self, call: Callable[[], Awaitable[Response]], request: Request) -> Response:
        """Return the response to a request that `call` sends."""
        _CALL.set(call)
        return await self._layer.ask(request)


class Gathering:
    """An engine layer that collects requests before it answers. `rounds` has the messages of each round."""

    def __init__(self, following: Layer) -> None:
        self.rounds: list[list[int]] = []
        self._following = following
        self._waiting: list[tuple[Request, asyncio.Future[Response]]] = []

    async def ask(self, request: Request) -> Response:
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(0.05, self._start)
        return await future

    def _start(self) -> None:
        self._task = asyncio.ensure_future(self._answer())

    async def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.rounds.append([len(request.messages) for request, _ in waiting])
        for request, future in waiting:
            future.set_result(await self._following.ask(request))


class Judged:
    """Run judgments with a provider in this process."""

    def __init__(
        self,
        judgments: Sequence[Judgment],
        provider: Provider,
        settings: SamplingOptions | None = None,
        *,
        cache: Cache | None = None,
        sender: Sender | None = None,
        criteria: Sequence[Criterion] = (),
        gathers: bool = False,
        **options: Any,
    ) -> None:
        sender = sender or Sender()
        self.provider = provider
        self.counts = sender.counts
        self.rows: list[Row] = []
        self.store = sender.store if cache is None else ReplyStore(cache)
        sender.store = self.store
        self.judgments = judgments
        layer = sender.layers(provider.complete)
        self.gathering = Gathering(layer)
        layer = self.gathering if gathers else layer
        self.judging = Judging(
            ReplyClient(layer, self.store, self.counts),
            provider,
            settings or SamplingOptions(),
            criteria or list({one.criterion.name: one.criterion for one in judgments}.values()),
            emit=options.pop("emit", self.rows.append),
            counts=self.counts,
            gathers=gathers,
            **options,
        )

    async def __call__(self) -> None:
        try:
            await self.judging.judge_all(self.judgments)
        finally:
            self.store.flush()
