"""The finding of a run whose means were estimated on people's scale."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import decimals, format_interval, format_p, number, plural
from judge.core.format import listed as sentence_list
from judge.report.format import column_title
from judge.report.views.columns import main_comparison
from judge.report.views.system_names import all_others, listed, short_name
from judge.results.result import Result
from judge.stats.calibration import Calibrated
from judge.stats.powered_mean import Powered

_SCALE = "On people's scale"
_PLACES = 2
"""Decimals of a difference."""


def calibrated_finding(result: Result, calibrated: Calibrated) -> list[str]:
    """Return the headline and one or two sentences."""
    tested = [
        difference
        for difference in calibrated.differences
        if difference.adjusted is not None
    ]
    if calibrated.against:
        sentences = [*_against(calibrated)]
    elif not tested:
        sentences = [_highest_mean(result, calibrated)]
    elif len(calibrated.best) == len(calibrated.means):
        sentences = [*_no_difference(result, calibrated)]
    else:
        sentences = [*_winners(result, calibrated)]
    return [*sentences, *_raw_order(result, calibrated)]


def _winners(result: Result, calibrated: Calibrated) -> Iterator[str]:
    """Say whom the leader beats, and how far the best of these trails."""
    leader, *others = calibrated.best
    leader_name = short_name(leader)
    systems = [mean.system for mean in calibrated.means]
    behind = [system for system in systems if system not in calibrated.best]
    on_column = _on_column(result, calibrated)
    if others:
        beaten = listed(behind)
        not_beaten = listed(others, "or")
        beats = f"{leader_name} beats {beaten}{on_column}"
        yield f"{_SCALE}, {beats}, but not significantly {not_beaten}"
    else:
        beaten = all_others(behind)
        yield f"{_SCALE}, {leader_name} beats {beaten}{on_column}"
    difference = _difference(calibrated, leader, behind[0])
    if difference is not None:
        system_name = short_name(behind[0])
        size = _size(calibrated, difference)
        yield f"{system_name} trails {leader_name} by {size}."


def _no_difference(result: Result, calibrated: Calibrated) -> Iterator[str]:
    """Say that the leader beats nobody; other systems may still differ from each other."""
    on_column = _on_column(result, calibrated)
    apart = [difference for difference in calibrated.differences if difference.apart]
    if apart:
        pairs = plural(len(apart), "pair")
        differ = "differs" if len(apart) == 1 else "differ"
        yield f"{_SCALE}, no system is significantly best{on_column}; {pairs} of others {differ}"
    else:
        yield f"{_SCALE}, no system differs significantly{on_column}"
    first_system, second_system = (mean.system for mean in calibrated.means[:2])
    difference = _difference(calibrated, first_system, second_system)
    if difference is not None:
        first_name = short_name(first_system)
        second_name = short_name(second_system)
        size = _size(calibrated, difference)
        yield f"{first_name} and {second_name} differ by {size}."


def _against(calibrated: Calibrated) -> Iterator[str]:
    """Name the systems that differ significantly from the one that all are compared with."""
    apart = [
        difference.system for difference in calibrated.differences if difference.apart
    ]
    opponent = short_name(calibrated.against)
    if not apart:
        yield f"{_SCALE}, no system differs significantly from {opponent}"
        return
    systems = sentence_list([short_name(system) for system in apart])
    verb = "differs" if len(apart) == 1 else "differ"
    yield f"{_SCALE}, {systems} {verb} significantly from {opponent}"


def _highest_mean(result: Result, calibrated: Calibrated) -> str:
    highest = calibrated.means[0]
    places = decimals([mean.estimate.value for mean in calibrated.means])
    estimate = highest.estimate
    value = number(estimate.value, places)
    interval = format_interval(estimate.low, estimate.high, places)
    mean = f"{value} {interval}".rstrip()
    system = short_name(highest.system)
    on_column = _on_column(result, calibrated)
    return f"{_SCALE}, {system} has the highest mean{on_column}: {mean}"


def _raw_order(result: Result, calibrated: Calibrated) -> Iterator[str]:
    """Say which system the judge's own mean puts first, if it is another one."""
    raw_means = {}
    for mean in calibrated.means:
        raw = result.estimates.get((mean.system, calibrated.column))
        if raw is not None:
            raw_means[mean.system] = raw.value
    comparison = main_comparison(result)
    if comparison is None or comparison.column != calibrated.column or not raw_means:
        return
    ranks = [rank for rank in comparison.ranks if rank.system in raw_means]
    best_rank = min(rank.rank for rank in ranks)
    first_systems = [rank.system for rank in ranks if rank.rank == best_rank]
    if calibrated.means[0].system not in first_systems:
        yield f"The judge's own mean puts {listed(first_systems)} first."


def _size(calibrated: Calibrated, difference: Powered) -> str:
    """Return `0.31 [0.10, 0.52] (p = .003), by 30 rated items and 30 more judged ones`."""
    estimate = difference.estimate
    if estimate.value < 0:
        estimate = estimate.times(-1)
    interval = format_interval(estimate.low, estimate.high, _PLACES)
    p_value_text = ""
    if difference.adjusted is not None:
        p_value_text = f" ({format_p(difference.adjusted)})"
    rated = plural(estimate.n, "rated item")
    value = number(estimate.value, _PLACES)
    size = f"{value} {interval}".rstrip()
    judged = f"{difference.judged:,} that only the judge scored"
    return f"{size}{p_value_text}, from {rated} and {judged}"


def _difference(calibrated: Calibrated, system: str, opponent: str) -> Powered | None:
    for difference in calibrated.differences:
        if {difference.system, difference.other} == {system, opponent}:
            return difference
    return None


def _on_column(result: Result, calibrated: Calibrated) -> str:
    """Return ` on fluency`, or nothing for the overall score or the only criterion."""
    if result.overall is not None and calibrated.column == result.overall.column.name:
        return ""
    criteria = [
        column.name
        for column in result.table.columns
        if column.kind == "criterion" and not column.judge
    ]
    if criteria == [calibrated.column]:
        return ""
    return f" on {column_title(calibrated.column)}"
