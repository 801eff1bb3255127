"""Token estimates without any model's vocabulary, and the ledger of what a run may spend.

The constants are measured: least squares, by relative error, on pieces of 1,200 characters of news,
summaries, answers and whole prompts in English, Japanese, Korean and Chinese, against OpenAI's
o200k_base and Mistral's tekken together. With cl100k_base (GPT-4, GPT-3.5) the estimate is as good
for English, and a quarter to two fifths too low for the other three. German, French, Spanish,
Polish, Vietnamese and other scripts were measured on one paragraph each, and are up to two fifths
off. Claude, Gemini, Llama and Qwen were not measured. The tokens that a chat template adds are
folklore. Counts of the server itself take precedence over all of this: see `judge plan`.

One `BudgetLedger` serves all judges of a run and the metrics that ask them. The maximum cost of a
request is reserved before it is sent, and committed or released after its reply, so that the budget
is never exceeded (docs/decisions/0020-a-budget-reserves-the-maximum-cost.md). The maximum is one
token per byte of UTF-8 in the request, what a chat template may add, and the reply's limit.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from dataclasses import dataclass

from judge.core.budget import Budget
from judge.core.errors import BudgetReached, ConfigError, ProviderError, Refused, Transient
from judge.core.messages import option
from judge.core.records import Request, Usage
from judge.providers import Provider
from judge.providers.pricing import TokenPrices, cost, prices_of
from judge.text.languages import HAN, HANGUL, KANA

# Tokens per character: ASCII, and any script without a row below.
_ASCII = 1 / 4.5
_OTHER = 0.36
_ACCENTED_LATIN = "\u00c0-\u024f\u1e00-\u1eff"
_SCRIPTS = (
    (re.compile(f"[{HANGUL}]+"), 0.75),
    (re.compile(f"[{KANA}]+"), 0.85),
    (re.compile(f"[{HAN}]+"), 1.0),
    (re.compile(f"[{_ACCENTED_LATIN}]+"), 0.7),
)
# "é", "日本"
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_PER_MESSAGE = 4
_PER_REQUEST = 3


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, at least 1 unless it is empty."""
    if text.isascii():
        return math.ceil(len(text) * _ASCII)
    not_ascii = "".join(_NOT_ASCII.findall(text))
    total = (len(text) - len(not_ascii)) * _ASCII + len(not_ascii) * _OTHER
    for script, tokens_per_character in _SCRIPTS:
        length = sum(map(len, script.findall(not_ascii)))
        total += length * (tokens_per_character - _OTHER)
    return math.ceil(total)


def max_tokens(text: str) -> int:
    """Return the most tokens of a text: in a byte-level BPE, a token is at least one byte."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimate_request(request: Request) -> int:
    """Return about how many tokens a server reads for a request.

    They are those of its messages, its questions, and the schema of its reply.
    """
    total = _PER_REQUEST
    for message in request.messages:
        total += estimate_tokens(message["content"]) + _PER_MESSAGE
    for question in request.params.get("questions", ()):
        labels = " ".join(question["labels"])
        total += estimate_tokens(question["instructions"]) + estimate_tokens(labels) + _PER_MESSAGE
    response_format = request.params.get("response_format")
    if response_format:
        total += estimate_tokens(json.dumps(response_format, ensure_ascii=False))
    return total


# Tokens that a chat template may add. Most add a handful around a message. Some begin with a system
# text; the longest that we know, of Ministral 3 (2025), has about 600. If a template adds more, the
# first reply shows it, and more is reserved for the requests after it.
_MAX_PER_MESSAGE = 16
_MAX_PER_REQUEST = 1000
# More than any model's context: a reply that states more tokens is not believed.
_MAX_TOKENS_READ = 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A request that waits for budget."""

    request: Request
    share: float
    turn: asyncio.Future[float]


class BudgetLedger:
    """What is spent, and what is reserved for requests in flight, in the budget's unit.

    Used in one event loop at a time; without a budget (None) it is not used. If a reply cost more
    than its request can, because its server ignores `max_tokens`, all of it is spent, and as many
    times more is reserved for the next requests. Impossible counts (below 0, more cached than read,
    ten million tokens) are not believed: such a reply, like one without counts, costs what was
    reserved for it.
    """

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget
        self.spent = 0.0
        self._reserved = 0.0
        self._in_flight = 0
        # By how much the cost of a reply exceeded the maximum of its request.
        self._factor = 1.0
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
                raise ConfigError(
                    f"{option('budget', str(self.budget))}: nobody has published a price for "
                    f"{provider.model} at {provider.endpoint}; give the budget in tokens, for "
                    f"example {option('budget', '2mtokens')}, or the model's price: "
                    "model: {name: ..., price: {input: 0.5, output: 1.5}}"
                )
            self._prices[provider.model, provider.endpoint, provider.decides] = prices
        return True

    async def reserve(self, request: Request, share: float = 1.0) -> float:
        """Reserve the most that a request can cost, and return it. Waits for requests in flight.

        Raises BudgetReached if it does not fit and nothing is in flight. One of the three methods
        below has to return the reservation.
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
        """Reserve like `reserve`, without waiting; None if it does not fit now.

        The request costs this `share` of its price, as in a batch.
        """
        reserved = self._factor * self._max_discounted(request, share)
        if self.budget is not None and reserved > self.budget.amount - self.spent - self._reserved:
            return None
        self._reserved += reserved
        self._in_flight += 1
        return reserved

    def _max_discounted(self, request: Request, share: float) -> float:
        return self.max_cost(request) * self._discounted(share)

    def commit(self, reserved: float, request: Request, used: Usage, share: float = 1.0) -> None:
        """Spend the cost of a reply; without token counts, what was reserved for it."""
        real = reserved
        if _is_possible(request, used):
            if self._in_tokens:
                full_price = float(used.prompt_tokens + used.completion_tokens)
            else:
                full_price = cost(used, self._prices_of(request))
            real = full_price * self._discounted(share)
        if real > reserved > 0:
            # Another reply may have raised the factor since this request was reserved.
            self._factor = max(self._factor, real / self._max_discounted(request, share))
        self.release(reserved, spent=real)

    def commit_unknown(self, reserved: float, error: BaseException) -> None:
        """Spend what a request without a reply may have cost at the provider."""
        self.release(reserved, spent=reserved if _may_be_charged(error) else 0.0)

    def release(self, reserved: float, *, spent: float = 0.0) -> None:
        """Return a reservation, less what was spent."""
        # Exactly 0 without requests in flight, so that rounding errors do not add up.
        self._reserved = self._reserved - reserved if self._in_flight > 1 else 0.0
        self._in_flight -= 1
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
        most = self._factor * self._max_discounted(waiter.request, waiter.share)
        spent = f"{self._format_amount(self.spent)} may have been spent"
        next_cost = f"the next request can cost up to {self._format_amount(most)}"
        if self._factor > 1:
            next_cost += f" (a reply came to {self._factor:,.1f} times the most its request allows)"
        if self.budget and most > self.budget.amount:
            next_cost += f"; {self.budget.lacking(most)}"
        return BudgetReached(f"the budget of {self.budget} is reached: {spent}, and {next_cost}")

    def max_cost(self, request: Request) -> float:
        """Return the most that a request can cost, in the budget's unit."""
        read = _MAX_PER_REQUEST
        for message in request.messages:
            read += max_tokens(message["content"]) + _MAX_PER_MESSAGE
        for name in ("questions", "response_format"):
            if name in request.params:
                read += max_tokens(json.dumps(request.params[name], ensure_ascii=False))
        written = request.params.get("max_tokens", 0) * request.params.get("n", 1)
        if self._in_tokens:
            return float(read + written)
        prices = self._prices_of(request)
        # Some models charge more for a token that is written to their cache.
        input_price = max(prices.uncached, prices.cache_written)
        return float(read * input_price + written * prices.output)

    @property
    def _in_tokens(self) -> bool:
        return self.budget is None or self.budget.unit == "tokens"

    def _discounted(self, share: float) -> float:
        """Return a share of the price in the budget's unit. Tokens have no discount."""
        return 1.0 if self._in_tokens else share

    def _prices_of(self, request: Request) -> TokenPrices:
        return self._prices[request.model, request.endpoint, "questions" in request.params]

    def _format_amount(self, amount: float) -> str:
        return f"{amount:,.0f} tokens" if self._in_tokens else f"${amount:,.4f}"


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
    if not used.cached_tokens + used.cache_write_tokens <= used.prompt_tokens <= _MAX_TOKENS_READ:
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
