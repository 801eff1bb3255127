"""What a statistic makes of items that are drawn anew, and the interval that follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from judge.core.records import Estimate
from judge.stats.resampling import Floats, draws

Statistic = Callable[[Floats], Floats]
"""How often each item was drawn, resamples × items, to a value of each resample, NaN where it has none."""

_HELD = 4_000_000  # counts that are kept for the next statistic, 32 MB


@lru_cache(maxsize=1)
def _held(n_items: int, n_resamples: int, seed: int) -> tuple[Floats, ...]:
    return tuple(draws(n_items, n_resamples, seed))


class Drawn(NamedTuple):
    """A value, and that of each resample of so many items; NaN where there is none."""

    value: float
    resampled: Floats
    items: int


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Resamples of items. Those of equal ones are the same, so that what is asked of them is paired."""

    n_resamples: int = 1000
    seed: int = 0
    confidence: float = 0.95

    def __str__(self) -> str:
        how = f"{self.n_resamples} resamples, seed {self.seed}"
        return f"{100 * self.confidence:g}% percentile bootstrap over items, {how}"

    def both(self, statistic: Statistic, n_items: int) -> tuple[Floats, Floats]:
        """A statistic (of one or more numbers) of all the items, and of the resamples."""
        made = _held if n_items * self.n_resamples <= _HELD else draws
        drawn = [statistic(counts) for counts in made(n_items, self.n_resamples, self.seed)]
        return statistic(np.ones((1, n_items)))[0], np.concatenate(drawn)

    def resampled(self, statistic: Statistic, n_items: int, used: int) -> Drawn:
        """A statistic of one number, in which `used` of the items play a part."""
        value, drawn = self.both(statistic, n_items)
        return Drawn(float(value), drawn, used)

    def estimate(self, name: str, found: Drawn, n: int, how: str) -> Estimate | None:
        """The estimate with its interval; None where the value is undefined."""
        drawn = found.resampled[~np.isnan(found.resampled)]
        if np.isnan(found.value):
            return None
        if min(found.items, n) < 2 or not len(drawn):
            return Estimate(name, found.value, None, None, n, f"{how}; one item: too few for an interval")
        low, high = self.ends(drawn)
        return Estimate(name, found.value, float(low), float(high), n, f"{how}; {self}")

    def ends(self, drawn: Floats) -> Floats:
        """Both ends of the interval, first axis: the lower, the upper one; NaN where no resample has a value."""
        tails = np.array([(1 - self.confidence) / 2, (1 + self.confidence) / 2])
        rows = drawn.reshape(len(drawn), -1)
        known = ~np.isnan(rows)
        found = np.full((2, rows.shape[1]), np.nan)
        whole, some = known.all(axis=0), known.any(axis=0)
        found[:, whole] = np.quantile(rows[:, whole], tails, axis=0)
        found[:, some & ~whole] = np.nanquantile(rows[:, some & ~whole], tails, axis=0)
        return found.reshape(2, *drawn.shape[1:])


DEFAULT = Bootstrap()
