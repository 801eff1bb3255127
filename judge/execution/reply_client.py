"""The only way to a model: a stack of layers. Each layer asks the next one.

From the outside in, with the reason for the order:

    Remembered     (only for a checklist) its questions share a reply, also without a cache
    Deduplicated   only one of equal simultaneous requests continues
    Cached         a stored reply needs no waiting and no budget
    Bundled        draws that are not stored are sent in one message
    Leading        the first message about a long source is sent before the others
    Counted        a message counts once, however often it is tried
    (an engine)    the Batch API replaces the layers below
    FirstAlone     the first message shows what the server accepts before the others are sent
    Deadline       it ends the waiting in all layers below
    Retried        each try waits for the rate limit and is paid
    Limited        the rate limit of the server and of the user
    Budgeted       a message that waits for the rate limit reserves no budget
    Stored         a reply is stored and recorded before another request is sent in its place
    Sending        the provider

Callers know no layer: judgments, metrics, generated systems, claims and suites call
`ReplyClient.ask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from judge.core.errors import JudgeError, ProviderError
from judge.core.records import Request, Response
from judge.execution.budget import BudgetLedger
from judge.execution.layers import Layer, RunStopped
from judge.execution.layers.alone import FirstAlone
from judge.execution.layers.budgeted import Budgeted
from judge.execution.layers.bundled import Bundled
from judge.execution.layers.cached import Cached, ReplyStore, Stored
from judge.execution.layers.counted import Counted
from judge.execution.layers.deadline import Deadline
from judge.execution.layers.deduplicated import Deduplicated
from judge.execution.layers.leading import Leading
from judge.execution.layers.limited import Limited
from judge.execution.layers.remembered import Remembered
from judge.execution.layers.retried import Policy, Retried
from judge.execution.layers.sending import Complete, Sending
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter

T = TypeVar("T")
Answer = Response | ProviderError
# The most draws of one message. If a server returns fewer, the next messages ask for fewer.
_MOST_DRAWS = 100


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """How requests are sent: rate limit, retries, budget and deadline.

    `deadline` is a time of the event loop's clock. Tests replace `sleep`, so that they do not wait.
    """

    limiter: RateLimiter
    policy: Policy
    ledger: BudgetLedger | None = None
    deadline: float | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def sending_layers(
    complete: Complete,
    options: SendingOptions,
    store: ReplyStore,
    counts: JudgeProgress,
) -> Layer:
    """Return the layers that send a message: all below the engine."""
    layer: Layer = Stored(Sending(complete, counts), store)
    if options.ledger is not None:
        layer = Budgeted(layer, options.ledger)
    limited = Limited(layer, options.limiter, counts)
    layer = Retried(
        limited, options.policy, options.limiter, counts, sleep=options.sleep
    )
    if options.deadline is not None:
        layer = Deadline(layer, options.deadline)
    return FirstAlone(layer)


class ReplyClient:
    """Asks one model, and returns stored replies from the cache.

    `sends` sends a message that no layer above it answers: `sending_layers`, or an engine. `store`
    keeps the replies, `counts` counts messages for the display. One message asks for at most
    `most_draws` draws.
    """

    def __init__(
        self,
        sends: Layer,
        store: ReplyStore,
        counts: JudgeProgress,
        *,
        most_draws: int = _MOST_DRAWS,
    ) -> None:
        self._store = store
        self._counts = counts
        # Each layer asks the one before it.
        counted = Counted(sends, counts)
        leading = Leading(counted)
        self._bundled = Bundled(leading, most_draws)
        self._cached = Cached(self._bundled, store)
        self._deduplicated = Deduplicated(self._cached)
        self._top: Layer = self._deduplicated

    @cached_property
    def asking_again(self) -> ReplyClient:
        """A client that ignores and replaces the replies which were stored before this run."""
        # A shallow copy shares the layers below, with their limits and counts.
        client = copy(self)
        client._cached = Cached(self._bundled, self._store, only_new=True)
        client._deduplicated = Deduplicated(client._cached)
        client._top = client._deduplicated
        return client

    def for_one_text(self) -> ReplyClient:
        """Return a client for the questions about one text, which share replies without a cache."""
        remembering = copy(self)
        remembering._top = Remembered(self._top)
        return remembering

    async def ask(self, request: Request) -> Response:
        """Return the response to a request for one reply.

        Raises ProviderError, Reached at the budget or deadline, and StorageError if replies cannot
        be stored. An error that ends the run is raised after the replies in flight.
        """
        try:
            return await self._top.ask(request)
        except JudgeError as error:
            if not isinstance(error, ProviderError) or error.stops != "never":
                await self._store.drain()
            raise

    async def ask_all(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the response to each request, or why there is none, in order.

        Raises what ends the run: RunStopped after the requests in flight, any other error at once.
        """
        if len(requests) == 1:
            return [await self._answer(requests[0])]
        # The tasks start in the next turn of the loop. Until then, another judgment would not see
        # that these requests are in flight, and would send them, too.
        self._deduplicated.announce(requests)
        answers: list[Answer] = []
        for answer in await gather(map(self._answer_or_stop, requests)):
            if isinstance(answer, RunStopped):
                raise answer
            answers.append(answer)
        return answers

    async def _answer(self, request: Request) -> Answer:
        """Return the response, or the error if it concerns this request only."""
        try:
            return await self.ask(request)
        except ProviderError as error:
            if error.stops != "never":
                raise
            return error

    async def _answer_or_stop(self, request: Request) -> Answer | RunStopped:
        """Return an answer, or RunStopped, so that requests in flight are still waited for."""
        try:
            return await self._answer(request)
        except RunStopped as stopped:
            return stopped

    async def stored(self, requests: Sequence[Request]) -> list[Response] | None:
        """Return the stored replies to requests; None if any is missing."""
        responses: list[Response] = []
        for response in await self._cached.stored(requests):
            if response is None:
                return None
            responses.append(response)
        for request, response in zip(requests, responses, strict=True):
            self._counts.note_server(response)
            self._store.record(request, response)
        return responses

    def shares(self, requests: Sequence[Request]) -> bool:
        """Return whether each request has an equal one in flight, or answered in this run."""
        return all(
            self._deduplicated.is_in_flight(request) or self._store.has_new(request)
            for request in requests
        )


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of coroutines that run at the same time, in their order.

    The first error is raised, and ends the others.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as errors:
        # Callers handle single errors and know no groups.
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
