"""The finding of a result: a headline, then the sentences that the numbers support."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from judge.core.failure_kinds import failure_kind
from judge.core.format import one_line, plural
from judge.core.records import Column, Estimate
from judge.report.format import column_title, estimate_text, interval_text, mean_text
from judge.report.views.calibrated_finding import calibrated_finding
from judge.report.views.columns import (
    display_columns,
    main_order,
    places,
    shown_pass_rates,
)
from judge.report.views.comparison_finding import comparison_finding
from judge.report.views.provenance import build_provenance
from judge.report.views.ranking_finding import ranking_finding
from judge.report.views.system_names import MAX_NAME, short_name
from judge.results.result import Result
from judge.stats.calibration import Calibrated
from judge.stats.derived_columns import pass_columns

_MAX_CRITERIA = 4  # means in a finding; the table has the others
_ENDS_WITH_ITEMS = re.compile(r" over [\d,]+ items?$")  # "… 76% [52, 90] over 5 items"


def finding(result: Result) -> tuple[str, ...]:
    """Return the headline and the sentences below it; nothing if there is nothing to say.

    The headline has no full stop, the sentences have one.
    """
    judged = [column for column in result.table.columns if column.kind == "criterion"]
    if judged and not any(column.weight for column in judged):
        return (
            "No judge compared these systems; the columns are those of an offline baseline.",
        )
    if result.rankings:
        sentences = ranking_finding(result)
    else:
        order = main_order(result)
        if isinstance(order, Calibrated):
            sentences = calibrated_finding(result, order)
        elif order is not None and len(order.ranks) > 1:
            sentences = comparison_finding(result, order)
        else:
            sentences = _means(result)
    weighted = {column.name for column in judged if column.weight}
    all_failed = _all_failed(result, weighted)
    if not all_failed:
        return tuple(sentences)
    # The failure is the headline now, so the former headline gets its full stop.
    headline, *others = sentences or ["There is nothing to compare"]
    with_failure = [all_failed, f"{headline}.", *others]
    return tuple(with_failure)


def _all_failed(result: Result, judged: set[str]) -> str:
    """Say that no judgment succeeded, or without a judge no value, and with which errors.

    `judged` are the columns of the judges that count, none in a run of metrics alone. Return "" if
    any succeeded.
    """
    noun = "judgment" if judged else "value"
    names = judged or {column.name for column in result.table.columns}
    with_values = {score.column for score in result.table.scores}
    with_values |= {column for _, column in result.estimates}
    if names & with_values:
        return ""
    counts = Counter[str]()
    for kind in build_provenance(result).failures:
        if names & set(kind.columns):
            error = one_line(failure_kind(kind.error), MAX_NAME)
            counts[error] += kind.count
    if not counts:
        return ""
    counts_in_words = [f"{count:,} {error}" for error, count in counts.most_common()]
    errors = ", ".join(counts_in_words)
    return f"No {noun} succeeded ({errors})"


def _means(result: Result) -> list[str]:
    """State the means of the only system with values: of the criteria, or else the first metric."""
    columns = [column for column in display_columns(result) if not column.judge]
    judged = [column for column in columns if column.kind == "criterion"]
    shown_rates = shown_pass_rates(result)
    sentences: list[str] = []
    for column in judged[:_MAX_CRITERIA] or columns[:1]:
        mean_by_system: dict[str, Estimate] = {}
        for system in result.table.systems:
            mean = result.estimates.get((system, column.name))
            if mean:
                mean_by_system[system] = mean
        # Several systems without an order: the table shows their means.
        if len(mean_by_system) != 1:
            continue
        ((system, estimate),) = mean_by_system.items()
        text = estimate_text(column, estimate, places(result, column))
        rate = result.pass_rates.get((system, column.name))
        if rate is not None:
            share = _passing_share(column, rate)
            # A column without a pass rate of its own says only pass or fail: its mean is the rate.
            text = f"{text}, {share}" if column.name in shown_rates else share
        subject = column_title(column.name)
        if len(result.table.systems) > 1:  # the others have no value
            subject = f"{subject} of {short_name(system)}"
        items = plural(estimate.n, "item")
        sentences.append(f"{subject}: {text} over {items}")
    # The headline has no full stop.
    for index in range(1, len(sentences)):
        sentences[index] += "."
    return sentences


def _passing_share(column: Column, rate: Estimate) -> str:
    """Return `85% pass [70, 94]`, without an interval if there is none."""
    passing = pass_columns([column])[column.name]
    interval = interval_text(passing, rate.low, rate.high, 0)
    mean = mean_text(passing, rate.value, 0)
    return f"{mean} pass {interval}".rstrip()


def scope_of(result: Result, sentences: Sequence[str]) -> str:
    """Return `40 items`, or nothing if the headline ends with the items that its number is about.

    The scope would repeat or contradict it.
    """
    if sentences and _ENDS_WITH_ITEMS.search(sentences[0]):
        return ""
    return number_of_items(result)


def number_of_items(result: Result) -> str:
    """Return the number of a run's items as text: `40 items`."""
    return plural(len(result.table.items), "item")
