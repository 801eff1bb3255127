"""The mean over a case's items less a limit, and whether it lies above, below or is not told apart from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Literal

import numpy as np

from judge.core.records import Estimate
from judge.report.format import chance, number, span
from judge.stats.differences import mean_differences
from judge.stats.power import ALPHA, LEAST, needed
from judge.stats.resampling import Floats
from judge.suite.draws import NEAR, Parts, total

_FAR = 100_000  # beyond which no one would go


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over `items` less a limit: `estimate` with `low` and `high` (None for single replies), `n` of `unit`s.

    `sd` is the standard deviation of one unit: of an item's value, or of a draw.
    """

    estimate: Estimate
    sd: float | None
    unit: Literal["item", "draw"]
    single: bool = False
    items: int = 1

    @property
    def few(self) -> str:
        """Why single replies on several items tell nothing of which is higher, or how far; else nothing."""
        lone = not self.single or self.items == 1
        return "" if lone else "too few items for a test, and one reply each: draw more, or add items"

    @property
    def untested(self) -> str:
        """Why whole probabilities of several items, too few for a test, show no lead; else nothing."""
        bare = self.unit == "draw" and self.estimate.n < 2 and self.estimate.p is None
        return f"no test on fewer than {LEAST} items" if bare and self.items > 1 else ""

    @property
    def alike(self) -> str:
        """`5 of 5 draws alike`, `all 12 alike`: what a value without an interval rests on."""
        e = self.estimate
        if self.single or e.low != e.high or e.n < 2:
            return ""
        return f"all {e.n:,} alike" if self.unit == "item" else f"{e.n:,} of {e.n:,} draws alike"

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


def mean(items: Sequence[Parts], *limits: float, seed: int = 0) -> list[Mean]:
    """The mean over items (each a sum of readings) less each limit.

    Six items or more stand for others like them: the interval and p are `mean_differences`'s, over items. Of fewer no
    test can tell anything about others; what is said is of these texts alone, and the interval is over their draws.
    """
    if len(items) < LEAST:
        parts = [(c / len(items), one) for parts in items for c, one in parts]
        sums = [total(parts, limit) for limit in limits]
        return [Mean(one.estimate, one.sd, "draw", one.single, len(items)) for one in sums]
    found = values(items)
    rows = np.round(found[None, :] - np.array(limits)[:, None], 9)
    sd = float(found.std(ddof=1))
    return [Mean(one, sd, "item", items=len(items)) for one in mean_differences(rows, seed=seed) if one is not None]


def values(items: Sequence[Parts]) -> Floats:
    """Of each item."""
    return np.array([fsum(c * one.value for c, one in parts) for parts in items])


def shown(e: Estimate, places: int) -> str:
    """`4.62 [4.31, 4.93]`; the value alone where the interval adds nothing to it as it is written."""
    return f"{number(e.value, places)} {ends(e, places)}".rstrip()


def ends(e: Estimate, places: int) -> str:
    """`[4.31, 4.93]`; nothing where there is no interval, or both ends read the same."""
    if e.low is None or e.high is None or number(e.low, places) == number(e.high, places):
        return ""
    return span(e.low, e.high, places)
