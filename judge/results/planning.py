"""The results of `judge doctor` (the setup), `judge plan` (requests, cost and time, or the power of a run)."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from judge.core import plugins
from judge.core.budget import Budget
from judge.core.format import dollars, plural
from judge.core.messages import speaking_to
from judge.core.records import Unit, Usage
from judge.scoring.strategies import Strategy
from judge.stats.power import ALPHA

State = Literal["ok", "missing", "error"]
"""`missing` is optional: nothing that was asked for needs it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `fix` says how to solve a problem."""

    part: str
    name: str
    state: State
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, in the order of their parts."""

    VIEW: ClassVar[str] = "judge.report.views.planning:view_of_setup"

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.state != "error" for finding in self.findings)

    def parts(self) -> Iterator[tuple[str, tuple[Finding, ...]]]:
        """Yield each part with its findings."""
        for part in dict.fromkeys(finding.part for finding in self.findings):
            yield part, tuple(finding for finding in self.findings if finding.part == part)


@dataclass(slots=True)
class CriterionEstimate:
    """The requests that one judge gets about one criterion.

    `broken` judgments have no prompt, `cached` ones are answered from the cache, and `equal` ones by an equal request
    of this run. The others take `requests`, with `read` input and `written` output tokens. A provider's prompt cache
    can serve `shared` of the tokens read, because an earlier request of the same item began with them; `stored` are
    the tokens it has to store for that.
    """

    criterion: str
    judgments: int = 0
    broken: int = 0
    equal: int = 0
    cached: int = 0
    requests: int = 0
    read: float = 0.0
    written: float = 0.0
    shared: float = 0.0
    stored: float = 0.0

    def times(self, factor: float) -> CriterionEstimate:
        """Multiply all numbers by a factor and round them."""
        scaled = {
            name: round(getattr(self, name) * factor)
            for name in self.__slots__
            if name != "criterion"
        }
        return CriterionEstimate(self.criterion, **scaled)


@dataclass(slots=True)
class JudgeEstimate:
    """The requests that one judge gets, by criterion.

    `strategies` are those used, the most frequent first. If the model turns out to give no token probabilities,
    weighting `auto` draws `draws` more replies for each request, which takes `each` requests. `exact` is False if only
    some judgments were counted. A score from samples takes `drawn` replies, up to `size` of them in one request. `unit`
    is what `CriterionEstimate.judgments` counts.
    """

    judge: str
    lines: list[CriterionEstimate]
    strategies: tuple[Strategy, ...]
    draws: int
    each: int
    exact: bool
    drawn: int
    size: int
    unit: Unit = "judgment"

    @property
    def total(self) -> CriterionEstimate:
        """The sum over the criteria."""
        names = [name for name in CriterionEstimate.__slots__ if name != "criterion"]
        return CriterionEstimate(
            "all", **{name: sum(getattr(line, name) for line in self.lines) for name in names}
        )


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars, None if the price is unknown; `why` gives the reason, or else the source of the prices.

    `price` is without the provider's prompt cache, `cached` with all that it can serve. `more` is what weighting `auto`
    adds if the first reply shows that the model gives no token probabilities: draws instead of the other requests.
    `rate` is the price of a million input tokens and of a million output tokens.
    """

    price: float | None
    cached: float | None
    more: float | None
    why: str
    rate: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds at the rate limits, None for a batch or without a model; `why` names the limit that decides."""

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


@dataclass(frozen=True, repr=False)
class Forecast:
    """Requests, cost and time of a run, estimated by `judge.plan`. Nothing was sent.

    `price` is the sum over the judges, None if one is unknown; `notes` say what the numbers include.

    About `fits` requests fit into the budget; None if there is none, or the price is unknown.
    """

    VIEW: ClassVar[str] = "judge.report.views.planning:view"

    judges: tuple[JudgeForecast, ...]
    price: float | None
    seconds: float | None
    budget: Budget | None
    fits: int | None
    notes: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """The requests of all judges."""
        return sum(judge.estimate.total.requests for judge in self.judges)

    def __repr__(self) -> str:
        return f"<Forecast: {self.requests:,} requests, {price_text(self.price)}>"

    def report(self, format: str = "console") -> str:
        """Return the forecast as console, markdown, html, latex, csv or json. Raises ConfigError for another format."""
        with speaking_to("python"):
            return plugins.write(plugins.document(self), format, full=True)

    def _repr_html_(self) -> str:
        """Return the forecast for notebooks."""
        return f"<pre>{html.escape(self.report())}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        fields = asdict(self) | {
            "requests": self.requests,
            "budget": str(self.budget) if self.budget else None,
        }
        for judge_fields, judge in zip(fields["judges"], self.judges, strict=True):
            estimate = judge_fields.pop("estimate")
            judge_fields |= {
                "judge": judge.estimate.judge,
                **estimate,
                "total": asdict(judge.estimate.total),
            }
            for name in ("draws", "each", "unit"):
                judge_fields.pop(name)
        return fields


def sum_prices(prices: Iterable[float | None]) -> float | None:
    """Add up prices; None if one is unknown."""
    listed = list(prices)
    known = [price for price in listed if price is not None]
    return sum(known) if len(known) == len(listed) else None


def price_text(price: float | None) -> str:
    """Format a price that may be unknown."""
    return "price unknown" if price is None else dollars(price)


@dataclass(frozen=True, slots=True)
class PairPower:
    """The power of the test of two systems on one column.

    `place` is `median` for the pair of the column with the median `sd`, `worst` for the one that needs most items
    (`items` are then the fewest of any pair), and "" for a pair that was asked for. `difference` is the observed mean of
    the first system minus the second, with the standard deviation `sd` item by item. With `items` items the test detects
    `detectable`, None for too few items. The observed difference needs `items_for_observed`, the requested one
    `items_needed`; None if there is no such difference. `p` is that of the run's test with Holm's correction, if it has
    one.
    """

    place: str
    systems: tuple[str, str]
    items: int
    difference: float
    sd: float
    detectable: float | None
    items_for_observed: int | None
    items_needed: int | None
    p: float | None = None

    @property
    def significant(self) -> bool:
        return self.p is not None and self.p < ALPHA


@dataclass(frozen=True, slots=True)
class ColumnPower:
    """The power of one column's tests.

    p must be below `level`, which corrects for the `tests` of all pairs of `systems` systems. That takes `min_items`
    items at least. `note` says which pairs are left out, or why there are none.
    """

    column: str
    systems: int
    tests: int
    level: float
    min_items: int
    pairs: tuple[PairPower, ...]
    note: str = ""


@dataclass(frozen=True, repr=False)
class RunPower(plugins.Reported):
    """The power of a run's tests, by column; `difference`, `items` and `pair` are the request.

    `against` is the system with which the run compares all others, "" if it compares all pairs.
    """

    VIEW: ClassVar[str] = "judge.report.views.planning:view_of_power"

    run: str
    difference: float | None
    items: int | None
    pair: tuple[str, str] | None
    columns: tuple[ColumnPower, ...]
    notes: tuple[str, ...] = ()
    against: str = ""

    def __repr__(self) -> str:
        return f"<RunPower: {plural(len(self.columns), 'column')}>"
