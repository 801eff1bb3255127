"""Write the numbers of a judge card with their intervals, in the form of their unit."""

from __future__ import annotations

from collections.abc import Sequence

from judge.commands.card.card import BiasFinding
from judge.core.format import decimals, format_interval, number, signed
from judge.core.records import Column, Estimate
from judge.report.views.agreement_finding import places as coefficient_places
from judge.stats.paired_differences import ALL_EQUAL

# In place of an interval if all items have the same value.
ALIKE = "[all alike]"


def places(column: Column | None, values: Sequence[float] = ()) -> int:
    """Return the decimals for points of a scale, or for values if the scale has no ends."""
    if column and column.low is not None and column.high is not None:
        return decimals([column.low, column.high])
    return decimals(values)


def interval(estimate: Estimate, digits: int, factor: float = 1) -> str:
    """Write `[0.10, 0.60]`, or `[all alike]` if the items do not differ.

    Equal items do not mean that there is no uncertainty, so no interval is shown.
    """
    if estimate.low is None or estimate.high is None:
        if ALL_EQUAL in estimate.method:
            return ALIKE
        return ""
    if estimate.low == estimate.high:
        return ALIKE
    return format_interval(estimate.low, estimate.high, digits, factor)


def change(estimate: Estimate, digits: int) -> str:
    """Write `+0.35 [0.10, 0.60]`."""
    size = signed(estimate.value, digits)
    ends = interval(estimate, digits)
    return f"{size} {ends}".rstrip()


def written(finding: BiasFinding, column: Column | None) -> tuple[str, str]:
    """Return a finding's number and interval, such as `12%` and `[6, 21]`."""
    return written_estimate(finding.estimate, finding.unit, column)


_UNSIGNED = ("sd", "kappa", "alpha")
_COEFFICIENTS = ("r", "kappa", "alpha", "Spearman")


def written_estimate(
    estimate: Estimate,
    unit: str,
    column: Column | None,
) -> tuple[str, str]:
    """Return a number and its interval as its unit has them: percent, signed or a coefficient."""
    if unit == "share":
        percentage = number(100 * estimate.value, 0)
        ends_in_percent = interval(estimate, 0, 100)
        return f"{percentage}%", ends_in_percent
    digits = places(column, [estimate.value])
    if unit in _COEFFICIENTS:
        digits = coefficient_places(estimate)
    write = number if unit in _UNSIGNED else signed
    value = write(estimate.value, digits)
    ends = interval(estimate, digits)
    return value, ends
