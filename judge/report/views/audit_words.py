"""Numbers of an audit in words, in its sentences and in its tables."""

from __future__ import annotations

from collections.abc import Sequence

from judge.core.records import Column, Estimate
from judge.report import format
from judge.report.format import decimals, number, signed, span

ALIKE = "[all alike]"


def places(column: Column | None, values: Sequence[float] = ()) -> int:
    """Decimals for points of a column's scale, or, where it has no ends, for these values."""
    if column and column.low is not None and column.high is not None:
        return decimals([column.low, column.high])
    return decimals(values)


def percent(found: Estimate) -> str:
    """`12% [6, 21]`, without the brackets where there is no interval."""
    return f"{number(100 * found.value, 0)}% {percents(found)}".rstrip()


def percents(found: Estimate) -> str:
    """The interval of a share in per cent, `[6, 21]`."""
    return interval(found, 0, 100)


def interval(found: Estimate, digits: int, times: float = 1) -> str:
    """`[0.10, 0.60]`; `[all alike]` where the items do not differ, so that drawing them anew says nothing."""
    if found.low is None or found.high is None:
        return ""
    return ALIKE if found.low == found.high else span(times * found.low, times * found.high, digits)


def of(found: Estimate, what: str = "") -> str:
    """`12% [6, 21] of 60`, or `… of 60 texts`."""
    return f"{percent(found)} of {found.n:,} {what}".rstrip()


def change(found: Estimate, digits: int) -> str:
    """`+0.35 [0.10, 0.60]`."""
    return f"{signed(found.value, digits)} {interval(found, digits)}".rstrip()


def chance(p: float | None) -> str:
    """`p = 0.012`, `p < 0.001`; nothing where there was no test."""
    return "" if p is None else format.chance(p)


def brackets(*parts: str) -> str:
    """What there is of the parts as ` (one, two)`; nothing where there is none."""
    said = ", ".join(filter(None, parts))
    return f" ({said})" if said else ""


def listed(parts: Sequence[str]) -> str:
    """`one`, `one and two`, `one, two and three`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
