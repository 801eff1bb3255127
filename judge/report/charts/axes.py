"""Linear axes, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from judge.core.format import number


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`; `ticks` are values and their labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float, length: float) -> float:
        """Return the distance of a value from the start of an axis of this length.

        Values outside are on its ends.
        """
        span = self.high - self.low
        share = (value - self.low) / span
        return length * min(1.0, max(0.0, share))


def scale(lowest: float, highest: float) -> Axis:
    """Return an axis of a whole scale, with a tick per point if there are few."""
    span = (highest - lowest) or 1.0
    is_short = 2 <= span <= 10
    step = 1.0 if is_short and span == int(span) else _round_step(span)
    return even(lowest, lowest + span, step)


def around(values: Iterable[float]) -> Axis:
    """Return an axis that contains 0 and these values and ends at round numbers."""
    finite = [value for value in values if math.isfinite(value)]
    lowest = min([0.0, *finite])
    highest = max([0.0, *finite])
    step = _round_step((highest - lowest) or 1.0)
    # Rounding errors must not add a step: 0.3 / 0.1 is a little less than 3.
    lowest_tick = math.floor(lowest / step + 1e-9) * step
    highest_tick = math.ceil(highest / step - 1e-9) * step
    if highest_tick <= lowest_tick:
        highest_tick = lowest_tick + step
    return even(lowest_tick, highest_tick, step)


def even(lowest: float, highest: float, step: float) -> Axis:
    """Return an axis with a tick at every step."""
    n_decimals = 0
    if step < 1:
        # Rounding errors must not add a decimal: log10(0.001) may be a little less than -3.
        n_decimals = -math.floor(math.log10(step) + 1e-9)
    n_steps = math.floor((highest - lowest) / step + 1e-9)
    ticks = []
    for index in range(n_steps + 1):
        value = lowest + index * step
        ticks.append((value, number(value, n_decimals)))
    return Axis(lowest, highest, tuple(ticks))


def _round_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that about five steps make the span."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    for multiple in (1, 2, 5):
        step = multiple * power
        # A span that is a rounding error too long keeps its step.
        if 5 * step >= 0.999 * span:
            return step
    return 10 * power
