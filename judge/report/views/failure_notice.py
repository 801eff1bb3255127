"""A notice beside the finding if judgments failed more often for one system than for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from judge.core.format import listed as sentence_list
from judge.core.format import plural
from judge.report.views.columns import main_comparison
from judge.report.views.finding import finding
from judge.report.views.system_names import short_name
from judge.results.failures import failures_as_worst
from judge.results.result import Result

_MUCH = 0.1
"""From this difference of two systems' shares of failed items on, failures are a notice in any
case."""
_MAX_NAMED = 3


def failure_notice(result: Result) -> str:
    """Say how the finding changes if each failure were the worst score; nothing if failures do not
    depend on systems.

    A system is unlikely to fail at random: judgments of its longest or oddest texts do. Its mean is
    then that of the easier items.
    """
    comparison = main_comparison(result)
    if comparison is None or len(comparison.ranks) < 2:
        return ""
    failed = _failed_items(result)
    known = [rank.system for rank in comparison.ranks]
    items = len(result.table.items)
    shares = [failed[system] / items for system in known]
    if max(shares) == min(shares):
        return ""
    headline = next(iter(finding(result)), "")
    other = next(iter(finding(failures_as_worst(result))), "")
    if other == headline and max(shares) - min(shares) < _MUCH:
        return ""
    outcome = "the finding stays" if other == headline else f"the finding is: {other}"
    counts = _counts(failed, known, items)
    return f"Failures differ between systems: {counts}. With the worst score for each, {outcome}."


def _failed_items(result: Result) -> Counter[str]:
    """Return on how many items at least one judgment of a criterion failed, by system."""
    criteria = {column.name for column in result.table.columns if column.kind == "criterion"}
    failed = {(row.system, row.item) for row in result.failures if row.column in criteria}
    return Counter(system for system, _ in failed)


def _counts(failed: Mapping[str, int], systems: list[str], items: int) -> str:
    """Return `a failed on 4 of 12 items and b on 1`, those with the most failures first."""
    order = sorted((s for s in systems if failed[s]), key=lambda system: -failed[system])
    first, *others = order[:_MAX_NAMED]
    parts = [
        f"judgments failed for {short_name(first)} on {failed[first]:,} of {plural(items, 'item')}"
    ]
    parts += [f"for {short_name(system)} on {failed[system]:,}" for system in others]
    if len(order) > _MAX_NAMED:
        parts.append(f"for {plural(len(order) - _MAX_NAMED, 'more system')}")
    if len(order) < len(systems):
        rest = [short_name(system) for system in systems if not failed[system]]
        parts.append(f"for {rest[0] if len(rest) == 1 else 'the others'} on none")
    return sentence_list(parts)
