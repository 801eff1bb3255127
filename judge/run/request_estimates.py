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
    """The requests of one judge for one line of an estimate.

    A line is one criterion, or all outputs that the model writes. `broken` judgments have no
    prompt, `cached` ones are answered from the cache, and `equal` ones by an equal request of this
    run. The others take `requests`, with `read` input and `written` output tokens. A provider's
    prompt cache can serve `shared` of the tokens read, because an earlier request of the same item
    began with them; `stored` are the tokens it has to store for that.
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

    `strategies` are those used, the most frequent first. If the model turns out to give no token
    probabilities, weighting `auto` draws `draws` more replies for each request, which takes `each`
    requests. `exact` is False if only some judgments were counted. A score from samples takes
    `drawn` replies, up to `size` of them in one request. `unit` is what
    `LineEstimate.judgments` counts. `longest` is the number of tokens of the longest prompt,
    which is about the text `longest_text`.
    """

    judge: str
    lines: list[LineEstimate]
    strategies: tuple[Strategy, ...]
    draws: int
    each: int
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
    """US dollars, None if the price is unknown.

    `why` gives the reason for that, or else the source of the prices. `price` is without the
    provider's prompt cache, `cached` with all that it can serve. `more` is what weighting `auto`
    adds if the first reply shows that the model gives no token probabilities: draws instead of the
    other requests. `rate` is the price of a million input tokens and of a million output tokens.
    """

    price: float | None
    cached: float | None
    more: float | None
    why: str
    rate: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds at the rate limits, None for a batch or without a model.

    `why` names the limit that decides.
    """

    seconds: float | None
    why: str


@dataclass(frozen=True, slots=True)
class JudgeForecast:
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

    judges: tuple[JudgeForecast, ...]
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
    listed = list(prices)
    known_prices = [price for price in listed if price is not None]
    return sum(known_prices) if len(known_prices) == len(listed) else None


def price_text(price: float | None) -> str:
    """Format a price that may be unknown."""
    return "price unknown" if price is None else dollars(price)
