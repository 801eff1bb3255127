"""A notice beside the finding if judgments failed more often for one system than for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from judge.core.format import first_names, plural
from judge.core.format import listed as sentence_list
from judge.report.format import column_title
from judge.report.views.columns import main_comparison
from judge.report.views.finding import finding
from judge.report.views.system_names import short_name
from judge.results.failures import failures_as_worst
from judge.results.result import Result

_LARGE_DIFFERENCE = 0.1
"""If the shares of failed items of two systems differ by this, there is always a notice."""
_MAX_NAMED = 3


def failure_notice(result: Result) -> str:
    """Say how the headline would change if each failure were the worst score.

    Return "" if failures do not depend on systems, or change little. Judgments seldom fail at
    random: they fail on a system's longest or oddest texts, and its mean is then over the easier
    items.
    """
    comparison = main_comparison(result)
    if comparison is None:
        return ""
    failed = _failed_items(result)
    # Without any score, a system has no rank.
    ranked = [rank.system for rank in comparison.ranks]
    systems = list(dict.fromkeys([*ranked, *failed]))
    if len(systems) < 2 or not ranked:
        return ""
    n_items = len(result.table.items)
    shares = [failed[system] / n_items for system in systems]
    spread = max(shares) - min(shares)
    if not spread:
        return ""
    headline = _headline(result)
    worst_headline = _headline(failures_as_worst(result))
    if worst_headline == headline and spread < _LARGE_DIFFERENCE:
        return ""
    outcome = "the headline stays"
    if worst_headline != headline:
        outcome = f"the headline is: {worst_headline}"
    counts = _counts(failed, systems, n_items)
    return f"Failures differ between systems: {counts}. With the worst score for each, {outcome}."


def _headline(result: Result) -> str:
    sentences = finding(result)
    return sentences[0] if sentences else ""


def failed_criteria_notice(result: Result) -> str:
    """Name the criteria without a score, if others have scores.

    The finding is then about the others, and without the overall score.
    """
    criteria = [
        column.name
        for column in result.table.columns
        if column.kind == "criterion" and not column.judge
    ]
    scored = {score.column for score in result.table.scores}
    with_failures = {row.column for row in result.failures}
    without_scores = with_failures - scored
    failed = [name for name in criteria if name in without_scores]
    if not failed or len(failed) == len(criteria):
        return ""
    names = first_names(map(column_title, failed), _MAX_NAMED)
    return f"No text has a score of {names}, because judgments failed."


def _failed_items(result: Result) -> Counter[str]:
    """Return on how many items at least one judgment of a criterion failed, by system."""
    criteria = {
        column.name for column in result.table.columns if column.kind == "criterion"
    }
    # An item counts once for a system, however many of its judgments failed.
    failed_texts = set()
    for failure in result.failures:
        if failure.column in criteria:
            failed_texts.add((failure.system, failure.item))
    return Counter(system for system, _ in failed_texts)


def _counts(failed: Mapping[str, int], systems: list[str], n_items: int) -> str:
    """Say on how many items judgments failed, for the system with the most failures first.

    Example: `judgments failed for a on 4 of 12 items, for b on 1 and for the others on none`.
    """
    with_failures = [system for system in systems if failed[system]]
    with_failures.sort(key=lambda system: -failed[system])
    first_system, *others = with_failures[:_MAX_NAMED]
    n_failed = failed[first_system]
    items = plural(n_items, "item")
    first_name = short_name(first_system)
    phrases = [f"judgments failed for {first_name} on {n_failed:,} of {items}"]
    for system in others:
        n_failed = failed[system]
        system_name = short_name(system)
        phrases.append(f"for {system_name} on {n_failed:,}")
    n_more = len(with_failures) - _MAX_NAMED
    if n_more > 0:
        more_systems = plural(n_more, "more system")
        phrases.append(f"for {more_systems}")
    without = [system for system in systems if not failed[system]]
    if without:
        system_name = "the others"
        if len(without) == 1:
            system_name = short_name(without[0])
        phrases.append(f"for {system_name} on none")
    return sentence_list(phrases)
