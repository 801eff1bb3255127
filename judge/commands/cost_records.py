"""What a run is going to ask, cost and take, in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from judge.config import Budget
from judge.core.records import Usage
from judge.scoring.strategies import Rung


@dataclass(slots=True)
class Line:
    """What one judge is to be asked about one criterion.

    Of the `judgments`, `broken` have no prompt, `cached` are answered from the cache, `equal` by an equal request of
    this run, and the others by `requests`: one for each, one for all criteria of a text where they are typed questions
    or merged, and several where replies are drawn that a server does not give at once. `read` and `written` are these
    requests' tokens in and out. Of `read` a provider's cache of prefixes can serve `shared`, as an earlier request of
    the same item began with them, and has to take in `stored` first.
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

    def times(self, factor: float) -> Line:
        """All of it so many times, in whole numbers."""
        given = {name: round(getattr(self, name) * factor) for name in self.__slots__ if name != "criterion"}
        return Line(self.criterion, **given)


@dataclass(frozen=True, slots=True)
class Checked:
    """What the usage of `replies` in the cache says of the estimate of what is read.

    The sum was estimated `bias` too high (below 0: too low; .03 is 3 %), by which it is corrected; what is then left is
    the median absolute error of one request, `error`.
    """

    replies: int
    bias: float
    error: float


@dataclass(slots=True)
class Ahead:
    """What one judge is to be asked, by criterion, and `checked`, where the cache holds replies that were counted.

    `rungs` are the ways in which it is asked, the likeliest first; `draws` are further replies that weighting `auto`
    would have drawn for each request, `each` the requests that this takes, if the model turns out to give no token
    probabilities. `room` is the most that one request can cost, in the budget's unit. `learned` says that the length
    of all replies is the mean of those in the cache, and no guess. `exact` is False where not all was looked at.
    """

    judge: str
    lines: list[Line]
    checked: Checked | None
    rungs: tuple[Rung, ...]
    draws: int
    each: int
    room: float
    learned: bool
    exact: bool

    @property
    def total(self) -> Line:
        """The sum of the lines."""
        names = [name for name in Line.__slots__ if name != "criterion"]
        return Line("all", **{name: sum(getattr(line, name) for line in self.lines) for name in names})


@dataclass(frozen=True, slots=True)
class Money:
    """US dollars, None where there is no known price; `why` then says so, and else where the prices are from.

    `price` is without a provider's cache of prefixes and `cached` with all that it can serve. `more` is what weighting
    `auto` would add, if the first reply shows that the model gives no token probabilities: draws in place of the rest.
    `rate` is what a million tokens in and a million out cost.
    """

    price: float | None
    cached: float | None
    more: float | None
    why: str
    rate: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Single:
    """What weighting `single` would take: about so many requests, and US dollars where the price is known."""

    requests: int
    price: float | None


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds at the limits, None where a batch or no model answers, and in words what sets the pace.

    `in_time` is about how many requests a deadline leaves time for, None without one, or where that is not known.
    """

    seconds: float | None
    why: str
    in_time: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One judge: what it is asked, in which `way`, what that costs and takes, and on what the numbers rest.

    `single` is None where no draws are asked for.
    """

    ahead: Ahead
    model: str
    endpoint: str
    money: Money
    time: Time
    rests: str
    way: str = ""
    single: Single | None = None

    @property
    def usage(self) -> Usage:
        """The tokens, without a provider's cache."""
        total = self.ahead.total
        return Usage(int(total.read), int(total.written))


@dataclass(frozen=True, slots=True)
class Foreseen:
    """All judges of a run. `price` is of all of them, None where one is not known; `notes` say what is not counted.

    `fits` is about how many of the requests a budget is enough for, None without one, or where prices are not known:
    the last of them only goes when the most it can cost is left, `room` in the budget's unit for any of them. `in_time`
    is about how many a deadline leaves time for, None without one, or where that is not known.
    """

    judges: tuple[Asked, ...]
    price: float | None
    seconds: float | None
    budget: Budget | None
    fits: int | None
    room: float
    deadline: float | None
    in_time: int | None
    notes: tuple[str, ...]

    @property
    def requests(self) -> int:
        """Those of all judges."""
        return sum(one.ahead.total.requests for one in self.judges)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        shown = asdict(self) | {"requests": self.requests, "budget": str(self.budget) if self.budget else None}
        for said, one in zip(shown["judges"], self.judges, strict=True):
            said |= {"judge": one.ahead.judge, **said.pop("ahead"), "total": asdict(one.ahead.total)}
            for name in ("draws", "each", "room"):
                said.pop(name)
        return shown
