"""Token estimates without any model's vocabulary, and the ledger of what a run may spend.

Measured: the constants are least squares, by relative error, on pieces of 1,200 characters of news, summaries, answers
and whole prompts in English, Japanese, Korean and Chinese, against two vocabularies, OpenAI's o200k_base and Mistral's
tekken, together. With cl100k_base (GPT-4, GPT-3.5) the estimate is as good on
English and a quarter to two fifths too low on the other three. Measured on one paragraph each, and up to two fifths
off: German, French, Spanish, Polish, Vietnamese, and other scripts. Not measured: Claude, Gemini, Llama, Qwen.
Folklore: what a chat adds around its messages. What a server has counted itself goes before any of this: see
`judge plan`.

One `BudgetLedger` serves all judges of a run and the metrics that ask them. The maximum cost of a request is reserved
before it is sent, and committed or released when it has been answered, so that the budget is never exceeded. The
maximum is a token for each byte of UTF-8 it sends, what a chat template may add, and as many as it allows the reply.
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

_ASCII = 1 / 4.5
_OTHER = 0.36
_SCRIPTS = tuple(
    (re.compile(f"[{letters}]+"), tokens)
    for letters, tokens in (
        (HANGUL, 0.75),
        (KANA, 0.85),
        (HAN, 1.0),
        ("\u00c0-\u024f\u1e00-\u1eff", 0.7),
    )
)
"""Tokens for a character: ASCII, any script that is not named, and Korean, Japanese, Chinese, accented Latin."""
_WIDE = re.compile("[^\x00-\x7f]+")
_ROUND_A_MESSAGE, _ROUND_A_REQUEST = 4, 3


def estimate_tokens(text: str) -> int:
    """About the tokens of a text, at least 1 unless it is empty."""
    if text.isascii():
        return math.ceil(len(text) * _ASCII)
    wide = "".join(_WIDE.findall(text))
    total = (len(text) - len(wide)) * _ASCII + len(wide) * _OTHER
    for script, tokens in _SCRIPTS:
        total += sum(map(len, script.findall(wide))) * (tokens - _OTHER)
    return math.ceil(total)


def max_tokens(text: str) -> int:
    """The most tokens that a text can have: a token of a byte-level BPE stands for one byte of UTF-8 or more."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimate_request(request: Request) -> int:
    """About the tokens that a server reads for a request: its messages, its questions, the schema of its reply."""
    total = _ROUND_A_REQUEST + sum(
        estimate_tokens(m["content"]) + _ROUND_A_MESSAGE for m in request.messages
    )
    for question in request.params.get("questions", ()):
        total += (
            estimate_tokens(question["instructions"])
            + estimate_tokens(" ".join(question["labels"]))
            + _ROUND_A_MESSAGE
        )
    if form := request.params.get("response_format"):
        total += estimate_tokens(json.dumps(form, ensure_ascii=False))
    return total


_MAX_ROUND_A_MESSAGE, _MAX_ROUND_A_REQUEST = 16, 1000
"""Tokens that a chat template may add. Most put a handful around a message; some put a system text before all, of
which the longest we know, Ministral 3's of 2025, has about 600. One that adds more is kept for from the first reply on.
"""
_MAX_TOKENS_READ = 10_000_000
"""Tokens, more than any model's context: no reply has used as many."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A request that waits for its share of the price to be there."""

    request: Request
    share: float
    turn: asyncio.Future[float]


class BudgetLedger:
    """What is spent and what is kept for requests in flight, in the budget's unit; in one event loop at a time.

    Without a budget (None) it has no work and is not asked. A reply that cost more than its request can, because its
    server does not keep to `max_tokens`, is believed: all of it is spent, and as many times more is kept for those that
    follow. What no reply can have used (less than nothing, more cached than read, ten million tokens) is no count: such
    a reply, like one that does not say, is taken to have cost what was kept for it.
    """

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget
        self.spent = 0.0
        self._reserved = 0.0
        self._in_flight = 0
        self._factor = 1.0
        self._waiting: list[_Waiter] = []
        self._prices: dict[tuple[str, str, bool], TokenPrices] = {}

    def covers(self, provider: Provider) -> bool:
        """Whether this ledger pays for requests to this judge; from then on it knows their price.

        Raises ConfigError where the budget is in US dollars and the judge has no known price.
        """
        if self.budget is None or (self.budget.unit == "usd" and provider.notice):
            return False
        if self.budget.unit == "usd":
            prices = prices_of(provider)
            if prices is None:
                raise ConfigError(
                    f"{option('budget', str(self.budget))}: nobody has published a price for {provider.model} at "
                    f"{provider.endpoint}; give the budget in tokens, for example {option('budget', '2mtokens')}, "
                    "or the model's price: model: {name: ..., price: {input: 0.5, output: 1.5}}"
                )
            self._prices[provider.model, provider.endpoint, provider.decides] = prices
        return True

    async def reserve(self, request: Request, share: float = 1.0) -> float:
        """Keep the most that a request can cost, and say how much that is. Waits for what is in flight to be settled.

        Raises BudgetReached where it does not fit and nothing is in flight. What was kept goes back with one of the
        three methods below.
        """
        if (reserved := self.try_reserve(request, share)) is not None:
            return reserved
        waiter = _Waiter(request, share, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._wake_waiters()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if not waiter.turn.cancelled() and waiter.turn.exception() is None:
                self.release(waiter.turn.result())
            raise

    def try_reserve(self, request: Request, share: float = 1.0) -> float | None:
        """What `reserve` keeps, for a request that costs this share of its price; None where it does not fit now."""
        reserved = self._factor * self.max_cost(request) * self._discounted(share)
        if self.budget is not None and reserved > self.budget.amount - self.spent - self._reserved:
            return None
        self._reserved += reserved
        self._in_flight += 1
        return reserved

    def commit(self, reserved: float, request: Request, used: Usage, share: float = 1.0) -> None:
        """A reply has come; one that does not say what it cost is taken to have cost the most."""
        read, written, cached, stored = (
            used.prompt_tokens, used.completion_tokens, used.cached_tokens, used.cache_write_tokens,
        )  # fmt: skip
        most_written = _MAX_TOKENS_READ * request.params.get("n", 1)
        possible = (
            min(read, written, cached, stored) >= 0 and cached + stored <= read <= _MAX_TOKENS_READ
        )
        real = reserved
        if used != Usage() and possible and written <= most_written:
            full_price = (
                float(read + written) if self._in_tokens else cost(used, self._prices_of(request))
            )
            real = full_price * self._discounted(share)
        if (
            real > reserved > 0
        ):  # kept at the factor of that time, while others in flight may have raised it
            self._factor = max(
                self._factor, real / (self.max_cost(request) * self._discounted(share))
            )
        self.release(reserved, spent=real)

    def commit_unknown(self, reserved: float, error: BaseException) -> None:
        """No reply has come. What the provider may have done all the same is taken as spent."""
        charged = not isinstance(error, ProviderError) or (
            isinstance(error, Transient | Refused) and error.billed
        )
        unknown = isinstance(error, Transient) and error.status is None and not error.unreachable
        self.release(reserved, spent=reserved if charged or unknown else 0.0)

    def release(self, reserved: float, *, spent: float = 0.0) -> None:
        """Put back what was kept, less what was spent."""
        self._reserved = self._reserved - reserved if self._in_flight > 1 else 0.0
        self._in_flight -= 1
        self.spent += spent
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        """Have those go on for whom there is enough; none where nothing is in flight and it is enough for nobody."""
        self._waiting = [waiter for waiter in self._waiting if not waiter.turn.done()]
        for waiter in list(self._waiting):
            if (reserved := self.try_reserve(waiter.request, waiter.share)) is not None:
                self._waiting.remove(waiter)
                waiter.turn.set_result(reserved)
        if not self._in_flight:
            waiting, self._waiting = self._waiting, []
            for waiter in waiting:
                most = self._factor * self.max_cost(waiter.request) * self._discounted(waiter.share)
                times = f" (a reply came to {self._factor:,.1f} times the most its request allows)"
                over = times if self._factor > 1 else ""
                less = (
                    f"; {self.budget.lacking(most)}"
                    if self.budget and most > self.budget.amount
                    else ""
                )
                spent = f"the budget of {self.budget} is reached: {self._format_amount(self.spent)} may have been spent"
                next_cost = (
                    f"the next request can cost up to {self._format_amount(most)}{over}{less}"
                )
                waiter.turn.set_exception(BudgetReached(f"{spent}, and {next_cost}"))

    def max_cost(self, request: Request) -> float:
        """The most that a request can cost, in the budget's unit."""
        read = sum(
            max_tokens(message["content"]) + _MAX_ROUND_A_MESSAGE for message in request.messages
        )
        read += _MAX_ROUND_A_REQUEST + sum(
            max_tokens(json.dumps(value, ensure_ascii=False))
            for name, value in request.params.items()
            if name in ("questions", "response_format")
        )
        written = request.params.get("max_tokens", 0) * request.params.get("n", 1)
        if self._in_tokens:
            return float(read + written)
        fresh, _, stored, out = self._prices_of(request)
        return float(read * max(fresh, stored) + written * out)

    @property
    def _in_tokens(self) -> bool:
        return self.budget is None or self.budget.unit == "tokens"

    def _discounted(self, share: float) -> float:
        """What a share of the price is in the budget's unit: there is no discount on the number of tokens."""
        return 1.0 if self._in_tokens else share

    def _prices_of(self, request: Request) -> TokenPrices:
        return self._prices[request.model, request.endpoint, "questions" in request.params]

    def _format_amount(self, amount: float) -> str:
        return f"{amount:,.0f} tokens" if self._in_tokens else f"${amount:,.4f}"
