"""Linear axes with ticks at round numbers."""

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
        """Return the distance of a value from the start of an axis of this length. Values outside are on its ends."""
        return length * min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def scale(low: float, high: float) -> Axis:
    """Return an axis of a whole scale, with a tick per point if there are few."""
    span = (high - low) or 1.0
    step = 1.0 if 2 <= span <= 10 and span == int(span) else _round_step(span)
    return even(low, low + span, step)


def around(values: Iterable[float]) -> Axis:
    """Return an axis that contains 0 and these values and ends at round numbers."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    step = _round_step((high - low) or 1.0)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return even(low, high if high > low else low + step, step)


def even(low: float, high: float, step: float) -> Axis:
    """Return an axis with a tick at every step."""
    places = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    at = [low + k * step for k in range(math.floor((high - low) / step + 1e-9) + 1)]
    return Axis(low, high, tuple((value, number(value, places)) for value in at))


def _round_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that about five steps make the span."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    return next(m * power for m in (1, 2, 5, 10) if m * power * 5 >= span * 0.999)
