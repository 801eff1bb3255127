"""The finding of a result: a headline, then one or two sentences that the numbers support."""

from __future__ import annotations

from collections import Counter

from judge.core.format import one_line, plural
from judge.report.format import column_title, estimate_text, interval_text, mean_text
from judge.report.views.columns import (
    display_columns,
    main_comparison,
    places,
    shown_pass_rates,
)
from judge.report.views.comparison_finding import comparison_finding
from judge.report.views.provenance import build_provenance
from judge.report.views.ranking_finding import ranking_finding
from judge.report.views.system_names import MAX_NAME
from judge.results.result import Result


def finding(result: Result) -> tuple[str, ...]:
    """Return the headline and at most three sentences; nothing if there is nothing to say."""
    judged = [column for column in result.table.columns if column.kind == "criterion"]
    if judged and not any(column.weight for column in judged):
        return ("No judge compared these systems; the columns are those of an offline baseline.",)
    if result.rankings:
        sentences = ranking_finding(result)
    elif (comparison := main_comparison(result)) and len(comparison.ranks) > 1:
        sentences = comparison_finding(result, comparison)
    else:
        sentences = _means(result)
    if not (lost := _all_failed(result, {column.name for column in judged if column.weight})):
        return tuple(sentences)
    first, *rest = sentences or ["There is nothing to compare"]
    return (lost, f"{first}.", *rest)


def _all_failed(result: Result, judged: set[str]) -> str:
    """Say that no judgment succeeded (without a judge: no value) and with which errors; "" if any succeeded."""
    names, noun = (
        (judged, "judgment") if judged else ({c.name for c in result.table.columns}, "value")
    )
    if names & (
        {score.column for score in result.table.scores} | {column for _, column in result.estimates}
    ):
        return ""
    kinds = Counter[str]()
    for kind in build_provenance(result).failures:
        if names & set(kind.columns):
            kinds[one_line(kind.error, MAX_NAME)] += kind.count
    errors = ", ".join(f"{n:,} {error}" for error, n in kinds.most_common())
    return f"No {noun} succeeded ({errors})" if kinds else ""


def _means(result: Result) -> list[str]:
    """State the mean of each criterion, or of the first metric, of a system that has no rival."""
    systems = result.table.systems
    columns = [column for column in display_columns(result) if not column.judge]
    columns = [c for c in columns if c.kind == "criterion"][:4] or columns[:1]
    sentences = []
    for column in columns:
        known = [(s, e) for s in systems if (e := result.estimates.get((s, column.name)))]
        if len(known) != 1:
            continue
        ((system, estimate),) = known
        text = estimate_text(column, estimate, places(result, column))
        if passing := shown_pass_rates(result).get(column.name):
            rate = result.pass_rates[system, column.name]
            interval = interval_text(passing, rate.low, rate.high, 0)
            text += f", {mean_text(passing, rate.value, 0)} pass {interval}".rstrip()
        sentences.append(f"{column_title(column.name)}: {text} over {plural(estimate.n, 'item')}")
    return [*sentences[:1], *(f"{sentence}." for sentence in sentences[1:])]


def number_of_items(result: Result) -> str:
    """Return `40 items`."""
    return plural(len(result.table.items), "item")
