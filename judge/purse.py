"""What a run may spend: kept before a request is sent, and settled when it has been answered.

One `Purse` for all judges of a run and for the metrics that ask them. A budget is not crossed: a request only goes
when the most it can cost is left. That is a token for each byte of UTF-8 it sends, and as many as it allows the reply.
"""

from __future__ import annotations

import asyncio
import json

from judge import tokens
from judge.config import Budget
from judge.errors import BudgetReached, ConfigError, ProviderError, Transient
from judge.providers import Provider
from judge.providers.prices import per_token, usd
from judge.records import Request, Usage

_ROUND_A_MESSAGE = 16
"""More tokens than any chat template puts around one message."""


class Purse:
    """What is spent and what is kept for requests in flight, in the budget's unit; in one event loop at a time.

    Without a budget (None) it has no work and is not asked. A reply that cost more than was kept for it, because its
    server does not keep to `max_tokens`, makes the purse keep as much more for all that follow.
    """

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget
        self.spent = 0.0
        self._kept = 0.0
        self._flying = 0
        self._factor = 1.0
        self._waiting: list[asyncio.Future[None]] = []

    def pays_for(self, provider: Provider) -> bool:
        """Whether requests to this judge come out of the purse.

        Raises ConfigError where the budget is in US dollars and the judge has no known price.
        """
        if self.budget is None or (self.budget.unit == "usd" and provider.notice):
            return False
        if self.budget.unit == "usd" and per_token(provider.model, provider.endpoint) is None:
            raise ConfigError(
                f"--budget {self.budget}: nobody has published a price for {provider.model} at {provider.endpoint}; "
                "give the budget in tokens, for example --budget 2mtokens"
            )
        return True

    async def reserve(self, request: Request) -> float:
        """Keep the most that a request can cost, and say how much that is. Waits for what is in flight to be settled.

        Raises BudgetReached where it does not fit and nothing is in flight. What was kept goes back with one of the
        three methods below.
        """
        while (kept := self.keep(request)) is None:
            if not self._flying:
                raise BudgetReached(self._reached(self._factor * self.most(request)))
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return kept

    def keep(self, request: Request, share: float = 1.0) -> float | None:
        """What `reserve` keeps, for a request that costs this share of its price; None where it does not fit now."""
        cost = self._factor * self.most(request) * self._of_price(share)
        if cost > self._left:
            return None
        self._kept += cost
        self._flying += 1
        return cost

    def settle(self, kept: float, request: Request, used: Usage, share: float = 1.0) -> None:
        """A reply has come; one that does not say what it cost is taken to have cost the most."""
        real = self._price(request, used) * self._of_price(share) if used != Usage() else kept
        if real > kept > 0:
            self._factor *= real / kept
        self.give_back(kept, spent=real)

    def lost(self, kept: float, error: BaseException) -> None:
        """No reply has come. What the provider may have done all the same is taken as spent."""
        answered = isinstance(error, ProviderError) and not (
            isinstance(error, Transient) and (error.billed or (error.status is None and not error.unreachable))
        )
        self.give_back(kept, spent=0.0 if answered else kept)

    def give_back(self, kept: float, *, spent: float = 0.0) -> None:
        """Put back what was kept, less what was spent."""
        self._kept = self._kept - kept if self._flying > 1 else 0.0
        self._flying -= 1
        self.spent += spent
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def most(self, request: Request) -> float:
        """The most that a request can cost, in the budget's unit."""
        read = sum(tokens.most(message["content"]) + _ROUND_A_MESSAGE for message in request.messages)
        read += sum(
            tokens.most(json.dumps(wanted, ensure_ascii=False))
            for name, wanted in request.params.items()
            if name in ("questions", "response_format")
        )
        written = request.params.get("max_tokens", 0) * request.params.get("n", 1)
        if self._in_tokens:
            return float(read + written)
        fresh, _, stored, out = per_token(request.model, request.endpoint) or (0.0, 0.0, 0.0, 0.0)
        return float(read * max(fresh, stored) + written * out)

    @property
    def _in_tokens(self) -> bool:
        return self.budget is None or self.budget.unit == "tokens"

    def _of_price(self, share: float) -> float:
        """What a share of the price is in the budget's unit: there is no discount on the number of tokens."""
        return 1.0 if self._in_tokens else share

    @property
    def _left(self) -> float:
        return float("inf") if self.budget is None else self.budget.amount - self.spent - self._kept

    def _price(self, request: Request, used: Usage) -> float:
        if self._in_tokens:
            return float(used.prompt_tokens + used.completion_tokens)
        return usd(request.model, request.endpoint, used) or 0.0

    def _reached(self, cost: float) -> str:
        return (
            f"the budget of {self.budget} is reached: {self._words(self.spent)} may have been spent, "
            f"and the next request can cost up to {self._words(cost)}"
        )

    def _words(self, amount: float) -> str:
        return f"{amount:,.0f} tokens" if self._in_tokens else f"${amount:,.4f}"
