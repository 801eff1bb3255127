"""The ledger of what a run may spend.

One `BudgetLedger` serves all judges of a run and the metrics that ask them. The maximum cost of a
request is reserved before it is sent, and committed or released after its reply, so that the budget
is never exceeded (docs/decisions/0020-a-budget-reserves-the-maximum-cost.md). The maximum is one
token per byte of UTF-8 in the request, what a chat template may add, and the reply's limit.
Replies show how little a template adds.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from judge.core.budget import Budget
from judge.core.errors import (
    BudgetReached,
    ConfigError,
    ProviderError,
    Refused,
    Transient,
)
from judge.core.messages import option
from judge.core.records import Request, Usage
from judge.execution.token_estimates import max_tokens
from judge.providers import Provider
from judge.providers.pricing import TokenPrices, cost, prices_of

# Tokens that a chat template may add. Most add a handful around a message. Some begin with a system
# text; the longest that we know, of Ministral 3 (2025), has about 600. If a template adds more, the
# first reply shows it, and more is reserved for the requests after it. A template cannot add more
# than the tokens that a whole prompt had, so the first reply usually lowers this.
_MAX_TOKENS_PER_MESSAGE = 16
_MAX_TOKENS_PER_REQUEST = 1000
# How much dearer than the first ones the other judgments of a run may be.
_MARGIN = 1.5
# More than any model's context, so a reply that states more tokens is not believed.
_MAX_TOKENS_READ = 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A request that waits for budget.

    `turn` gets the reservation, or BudgetReached.
    """

    request: Request
    share: float
    turn: asyncio.Future[float]


class BudgetLedger:
    """What is spent, and what is reserved for requests in flight, in the budget's unit.

    Used in one event loop at a time; without a budget (None) it is not used.

    A server that ignores `max_tokens` may send a reply that costs more than the maximum of its
    request. All of it is spent. If it cost twice the maximum, twice the maximum is reserved for
    each request from then on.

    Impossible counts (below 0, more cached than read, above ten million tokens) are not believed.
    A reply with such counts or none costs what was reserved for it.
    """

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget
        self.spent = 0.0
        self._reserved = 0.0
        self._in_flight = 0
        # The largest ratio of a reply's cost to the maximum of its request, if above 1.
        self._overrun = 1.0
        # The fewest tokens that a prompt had, for each kind of request.
        self._shortest_prompts: dict[tuple[Hashable, ...], int] = {}
        # The most that a refused request can cost.
        self._refused = 0.0
        # The most that the requests can cost for which batches had no budget.
        self._unsent = 0.0
        self._waiting: list[_Waiter] = []
        self._prices: dict[tuple[str, str, bool], TokenPrices] = {}

    def covers(self, provider: Provider) -> bool:
        """Return whether requests to this judge count, and look up their price.

        Raises ConfigError if the budget is in US dollars and the judge has no known price.
        """
        # Providers with a notice, such as recordings, ask no model at a known price.
        if self.budget is None or (self.budget.unit == "usd" and provider.notice):
            return False
        if self.budget.unit == "usd":
            prices = prices_of(provider)
            if prices is None:
                budget_option = option("budget", str(self.budget))
                budget_in_tokens = option("budget", "2mtokens")
                raise ConfigError(
                    f"{budget_option}: nobody has published a price for {provider.model} at "
                    f"{provider.endpoint}; give the budget in tokens, for example "
                    f"{budget_in_tokens}, or the model's price: "
                    "model: {name: ..., price: {input: 0.5, output: 1.5}}"
                )
            self._prices[provider.model, provider.endpoint, provider.decides] = prices
        return True

    async def reserve(self, request: Request, share: float = 1.0) -> float:
        """Reserve the most that a request can cost, and return that amount.

        Waits for requests in flight if it does not fit now. Raises BudgetReached if nothing is in
        flight. The caller ends the reservation with `commit`, `commit_unknown` or `release`. The
        request costs this `share` of its price, as in a batch.
        """
        reserved = self.try_reserve(request, share)
        if reserved is not None:
            return reserved
        waiter = _Waiter(request, share, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._wake_waiters()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            # It may have been reserved in the same turn of the event loop as the cancellation.
            if not waiter.turn.cancelled() and waiter.turn.exception() is None:
                self.release(waiter.turn.result())
            raise

    def try_reserve(self, request: Request, share: float = 1.0) -> float | None:
        """Reserve like `reserve`, without waiting; return None if it does not fit now."""
        reserved = self._reservation(request, share)
        if reserved > self._available:
            return None
        self._reserved += reserved
        self._in_flight += 1
        return reserved

    @property
    def _available(self) -> float:
        if self.budget is None:
            return math.inf
        return self.budget.amount - self.spent - self._reserved

    def covers_all(self, requests: Iterable[Request], share: float) -> bool:
        """Return whether the maximum cost of all these requests fits now."""
        return self._sum(requests, share) <= self._available

    @property
    def is_idle(self) -> bool:
        """Whether no request is in flight, so that no more budget becomes available."""
        return not self._in_flight

    def short_of(self, requests: Sequence[Request], share: float) -> BudgetReached:
        """Return the error for requests that are not sent because not all of them fit."""
        maximum = self._sum(requests, share)
        self._unsent += maximum
        self._refused = max(self._reservation(request, share) for request in requests)
        spent = self._format_amount(self.spent)
        maximum_of_batch = self._format_amount(maximum)
        return BudgetReached(
            f"the budget of {self.budget} was enough for a part of the requests: {spent} may have "
            f"been spent, and the batch of the other {len(requests):,} can cost up to "
            f"{maximum_of_batch}"
        )

    def _sum(self, requests: Iterable[Request], share: float) -> float:
        return sum(self._reservation(request, share) for request in requests)

    def _reservation(self, request: Request, share: float) -> float:
        """Return what a request can cost if it overruns its maximum as the worst reply so far."""
        return self._overrun * self._max_discounted(request, share)

    def _max_discounted(self, request: Request, share: float) -> float:
        return self.max_cost(request) * self._discount(share)

    def commit(
        self,
        reserved: float,
        request: Request,
        used: Usage,
        share: float = 1.0,
    ) -> None:
        """Spend the cost of a reply; without token counts, what was reserved for it."""
        real_cost = reserved
        if _is_possible(request, used):
            real_cost = self._full_cost(request, used) * self._discount(share)
        if real_cost > reserved > 0:
            # Another reply may have raised the overrun since this request was reserved.
            overrun = real_cost / self._max_discounted(request, share)
            self._overrun = max(self._overrun, overrun)
        elif _is_possible(request, used) and used.prompt_tokens > 0:
            kind = _kind(request)
            shortest = self._shortest_prompts.get(kind, used.prompt_tokens)
            self._shortest_prompts[kind] = min(shortest, used.prompt_tokens)
        self.release(reserved, spent=real_cost)

    def _full_cost(self, request: Request, used: Usage) -> float:
        """Return the cost of a reply without a discount, in the budget's unit."""
        if self._in_tokens:
            return float(used.prompt_tokens + used.completion_tokens)
        return cost(used, self._prices_of(request))

    def commit_unknown(self, reserved: float, error: BaseException) -> None:
        """Spend what was reserved if the provider may charge for a request without a reply."""
        spent = reserved if _may_be_charged(error) else 0.0
        self.release(reserved, spent=spent)

    def release(self, reserved: float, *, spent: float = 0.0) -> None:
        """End a reservation. `spent` of it is spent, and the rest is available again."""
        self._in_flight -= 1
        if self._in_flight > 0:
            self._reserved -= reserved
        else:
            # Exactly 0 without requests in flight, so that rounding errors do not add up.
            self._reserved = 0.0
        self.spent += spent
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        """Release the waiting requests that now fit.

        If nothing is in flight, the rest fail with BudgetReached.
        """
        self._waiting = [waiter for waiter in self._waiting if not waiter.turn.done()]
        for waiter in list(self._waiting):
            reserved = self.try_reserve(waiter.request, waiter.share)
            if reserved is not None:
                self._waiting.remove(waiter)
                waiter.turn.set_result(reserved)
        if self._in_flight:
            return
        waiting = self._waiting
        self._waiting = []
        for waiter in waiting:
            waiter.turn.set_exception(self._budget_reached(waiter))

    def _budget_reached(self, waiter: _Waiter) -> BudgetReached:
        reservation = self._reservation(waiter.request, waiter.share)
        self._refused = max(self._refused, reservation)
        spent = f"{self._format_amount(self.spent)} may have been spent"
        most = self._format_amount(reservation)
        next_cost = f"the next request can cost up to {most}"
        if self._overrun > 1:
            overrun = f"{self._overrun:,.1f} times the maximum that its request allows"
            next_cost += f" (a reply cost {overrun})"
        reached = f"the budget of {self.budget} is reached"
        return BudgetReached(f"{reached}: {spent}, and {next_cost}")

    def enough_for(self, remaining: int, paid: int) -> Budget:
        """Return a budget that should be enough for the `remaining` judgments of a stopped run.

        The estimate is from what the `paid` ones have cost, and a request that was refused has to
        fit beside the others. A batch needs the maximum cost of all its requests at once.
        """
        unit = "tokens" if self.budget is None else self.budget.unit
        cost_of_one = self._refused
        if paid:
            cost_of_one = _MARGIN * self.spent / paid
        cost_of_rest = max(remaining * cost_of_one, self._unsent)
        return Budget(cost_of_rest + self._refused, unit).rounded_up()

    def max_cost(self, request: Request) -> float:
        """Return the most that a request can cost, in the budget's unit."""
        read = self._template_tokens(request)
        for message in request.messages:
            read += max_tokens(message["content"]) + _MAX_TOKENS_PER_MESSAGE
        for parameter in ("questions", "response_format"):
            if parameter in request.params:
                value = json.dumps(request.params[parameter], ensure_ascii=False)
                read += max_tokens(value)
        written = request.params.get("max_tokens", 0) * request.params.get("n", 1)
        if self._in_tokens:
            return float(read + written)
        prices = self._prices_of(request)
        # Some models charge more for a token that is written to their cache.
        input_price = max(prices.uncached, prices.cache_written)
        return float(read * input_price + written * prices.output)

    def _template_tokens(self, request: Request) -> int:
        """Return the most tokens that a chat template can add to a request."""
        # A server that exceeds limits is not trusted to keep this one.
        if self._overrun > 1:
            return _MAX_TOKENS_PER_REQUEST
        shortest = self._shortest_prompts.get(_kind(request), _MAX_TOKENS_PER_REQUEST)
        return min(shortest, _MAX_TOKENS_PER_REQUEST)

    @property
    def _in_tokens(self) -> bool:
        return self.budget is None or self.budget.unit == "tokens"

    def _discount(self, share: float) -> float:
        """Return the factor of a discounted price: this share, but 1 for a budget in tokens."""
        return 1.0 if self._in_tokens else share

    def _prices_of(self, request: Request) -> TokenPrices:
        is_decision = "questions" in request.params
        return self._prices[request.model, request.endpoint, is_decision]

    def _format_amount(self, amount: float) -> str:
        return f"{amount:,.0f} tokens" if self._in_tokens else f"${amount:,.4f}"


def _kind(request: Request) -> tuple[Hashable, ...]:
    """Return what requests to which a template adds the same text have in common."""
    roles = tuple(message["role"] for message in request.messages)
    return (request.model, request.endpoint, roles, frozenset(request.params))


def _is_possible(request: Request, used: Usage) -> bool:
    """Return whether a server counted tokens, and a reply can have used as many."""
    if used == Usage():
        return False
    counts = (
        used.prompt_tokens,
        used.completion_tokens,
        used.cached_tokens,
        used.cache_write_tokens,
    )
    if min(counts) < 0:
        return False
    if used.prompt_tokens > _MAX_TOKENS_READ:
        return False
    if used.cached_tokens + used.cache_write_tokens > used.prompt_tokens:
        return False
    most_written: int = _MAX_TOKENS_READ * request.params.get("n", 1)
    return used.completion_tokens <= most_written


def _may_be_charged(error: BaseException) -> bool:
    """Return whether a provider may charge for a request that ended with this error."""
    if not isinstance(error, ProviderError):
        return True
    if isinstance(error, Transient) and error.status is None and not error.unreachable:
        # The connection broke after the request was sent.
        return True
    return isinstance(error, Transient | Refused) and error.billed
