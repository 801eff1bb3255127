"""The mean over a case's items less a limit, and whether it lies above, below or is not told apart from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal

import numpy as np

from judge.records import Estimate
from judge.report.words import chance, number, span
from judge.stats.differences import mean_differences
from judge.stats.power import ALPHA, LEAST, needed
from judge.suite.draws import NEAR, Parts, total

_FAR = 100_000  # beyond which no one would go


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean less a limit: `estimate` with `low` and `high` (None for single replies), `n` counting `unit`s.

    `sd` is the standard deviation of one unit: of an item's value, or of a draw.
    """

    estimate: Estimate
    sd: float | None
    unit: Literal["item", "draw"]
    single: bool = False

    @property
    def side(self) -> int:
        """1 where all of the interval is above the limit, −1 where it is below; 0 in between. Of one reply its own."""
        e = self.estimate
        low, high = (e.value if end is None else end for end in (e.low, e.high))
        return 1 if low > NEAR else -1 if high < -NEAR else 0

    @property
    def told(self) -> int:
        """As `side`, but 0 also where a test was made and does not tell the mean apart from the limit."""
        p = self.estimate.p
        return 0 if p is not None and p >= ALPHA else self.side

    def moved(self, by: float) -> Estimate:
        """The estimate with the limit added again."""
        e = self.estimate
        low, high = (None if end is None else end + by for end in (e.low, e.high))
        method = f"{e.method}; p: of {by:g}" if e.p is not None and by else e.method
        return replace(e, value=e.value + by, low=low, high=high, method=method)

    @property
    def tested(self) -> str:
        """` (p < 0.001)`, or nothing where there was no test."""
        return "" if self.estimate.p is None else f" ({chance(self.estimate.p)})"

    @property
    def takes(self) -> str:
        """` (would take n ≈ 400 items)`, if the mean is what it seems; else why it is not told apart."""
        e = self.estimate
        if not self.sd or not e.value:
            unseen = self.unit == "draw" and e.p is None and e.high != e.low
            return " (probability that was not seen decides)" if unseen else self.tested
        return would_take(needed(self.sd, e.value), e.n, self.unit) or self.tested


def would_take(n: int | None, there: int, unit: str) -> str:
    """` (would take n ≈ 400 items)`; nothing where as many are there already, or it is not known."""
    if n is None or n <= there:
        return ""
    return f" (would take n > {_FAR:,} {unit}s)" if n > _FAR else f" (would take n ≈ {_rounded(n):,} {unit}s)"


def _rounded(n: int) -> int:
    """Two digits: it is no more than an estimate."""
    return round(n, -max(0, len(str(n)) - 2))


def mean(items: Sequence[Parts], *limits: float) -> list[Mean]:
    """The mean over items (each a sum of readings) less each limit.

    Six items or more stand for others like them: the interval and p are `mean_differences`'s, over items. Of fewer no
    test can tell anything about others; what is said is of these texts alone, and the interval is over their draws.
    """
    if len(items) < LEAST:
        parts = [(c / len(items), one) for parts in items for c, one in parts]
        sums = [total(parts, limit) for limit in limits]
        return [Mean(one.estimate, one.sd, "draw", one.single) for one in sums]
    values = np.array([fsum(c * one.value for c, one in parts) for parts in items])
    rows = np.round(values[None, :] - np.array(limits)[:, None], 9)
    sd = float(values.std(ddof=1))
    return [Mean(found, sd, "item") for found in mean_differences(rows) if found is not None]


def shown(e: Estimate, places: int) -> str:
    """`4.62 [4.31, 4.93]`; the value alone where the interval adds nothing."""
    if e.low is None or e.high is None:
        return number(e.value, places)
    ends = span(e.low, e.high, places)
    return number(e.value, places) if e.low == e.high else f"{number(e.value, places)} {ends}"
