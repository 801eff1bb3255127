"""Estimate the requests of a run by judge and criterion, with their price and time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from judge.core.budget import Budget
from judge.core.format import dollars
from judge.core.records import Unit, Usage
from judge.scoring.strategies import Strategy


@dataclass(slots=True)
class LineEstimate:
    """The requests of one judge for one line of an estimate: a criterion, or the outputs to write.

    - `judgments`: all of them. Of these, `broken` ones have no prompt, `cached` ones are answered
      from the cache, and `equal` ones by an equal request of this run.
    - `requests`: what the others take, with `read` input and `written` output tokens.
    - `shared`: the tokens read that a provider's prompt cache can serve, because an earlier request
      of the same item began with them. `stored`: the tokens that it has to store for that.

    Tokens are fractions while they are counted, and whole numbers after `times`.
    """

    name: str
    judgments: int = 0
    broken: int = 0
    equal: int = 0
    cached: int = 0
    requests: int = 0
    read: float = 0.0
    written: float = 0.0
    shared: float = 0.0
    stored: float = 0.0

    def times(self, factor: float) -> LineEstimate:
        """Multiply all numbers by a factor and round them."""
        scaled = {}
        for field_name in self.numbers():
            scaled[field_name] = round(getattr(self, field_name) * factor)
        return LineEstimate(self.name, **scaled)

    @classmethod
    def numbers(cls) -> list[str]:
        """Return the names of all fields that hold a number."""
        return [field_name for field_name in cls.__slots__ if field_name != "name"]


@dataclass(slots=True)
class JudgeEstimate:
    """The requests that one judge gets, by criterion.

    - `strategies`: the strategies used, the most frequent first.
    - `fallback_draws`: the draws per judgment that weighting `auto` falls back to if the model
      turns out to give no token probabilities, and `fallback_requests` the requests that they take;
      0 if it cannot come to that.
    - `exact`: False if only a sample of the judgments was counted and scaled up.
    - `drawn`: the draws of a score from samples, up to `size` of them in one request.
    - `unit`: what `LineEstimate.judgments` counts.
    - `longest`: the tokens of the longest prompt, which is about the text `longest_text`.
    """

    judge: str
    lines: list[LineEstimate]
    strategies: tuple[Strategy, ...]
    fallback_draws: int
    fallback_requests: int
    exact: bool
    drawn: int
    size: int
    unit: Unit = "judgment"
    longest: int = 0
    longest_text: str = ""

    @property
    def total(self) -> LineEstimate:
        """The sum over the lines."""
        sums = {}
        for field_name in LineEstimate.numbers():
            numbers = [getattr(line, field_name) for line in self.lines]
            sums[field_name] = sum(numbers)
        return LineEstimate("all", **sums)


@dataclass(frozen=True, slots=True)
class Price:
    """What requests cost in US dollars; None if the price is unknown.

    - `price`: without the provider's prompt cache.
    - `cached`: if the prompt cache serves all that it can.
    - `more`: what the draws cost in addition to `price` if weighting `auto` falls back to them.
    - `why`: the source of the prices, or the reason why they are unknown.
    - `rate`: the price of a million input tokens and of a million output tokens.
    """

    price: float | None
    cached: float | None
    more: float | None
    why: str
    rate: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds at the rate limits; None for a batch, without a model or without requests.

    `why` names the limit that decides, or the reason why there is none.
    """

    seconds: float | None
    why: str


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """One judge: its requests, their cost and time; `method` says how the judge is asked."""

    estimate: JudgeEstimate
    model: str
    endpoint: str
    money: Price
    time: Duration
    method: str = ""

    @property
    def usage(self) -> Usage:
        """Input and output tokens, without a provider's prompt cache."""
        total = self.estimate.total
        return Usage(int(total.read), int(total.written))


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Requests, price and time of a run that has not started.

    `price` is the sum over the judges, None if one is unknown. About `fits` requests fit into the
    budget; None if there is none, if the price is unknown, or for batches.
    """

    judges: tuple[JudgePlan, ...]
    price: float | None
    seconds: float | None
    budget: Budget | None
    fits: int | None

    @property
    def requests(self) -> int:
        """The requests of all judges."""
        return sum(judge.estimate.total.requests for judge in self.judges)


def sum_prices(prices: Iterable[float | None]) -> float | None:
    """Add up prices; None if one is unknown."""
    total = 0.0
    for price in prices:
        if price is None:
            return None
        total += price
    return total


def price_text(price: float | None) -> str:
    """Format a price that may be unknown."""
    return "price unknown" if price is None else dollars(price)
