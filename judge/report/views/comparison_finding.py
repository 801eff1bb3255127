"""The finding of a run that scores texts: which systems differ in the column that ranks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations

from judge.core.format import first_names, format_interval, format_p, plural, signed
from judge.core.records import Column
from judge.report.format import column_title, mean_text, share_label, share_of_scale
from judge.report.views.columns import (
    change_text,
    compared_columns,
    display_columns,
    main_comparison,
    marks_against,
    places,
)
from judge.report.views.system_names import (
    MAX_NAMED,
    all_others,
    first_listed,
    listed,
    short_name,
    the_others,
)
from judge.results.result import Result
from judge.stats.power import MIN_ITEMS
from judge.stats.system_differences import TOO_FEW, Comparison, Difference

REFERENCE_METRICS = ("rougeL", "rouge1", "rougeLsum", "rouge2", "bertscore_f1", "chrf", "bleu")
"""Metrics to show beside the judge, in the order of preference."""
_MAX_ITEMS = 100_000  # a larger number of items is given as "more than"


def comparison_finding(result: Result, comparison: Comparison) -> list[str]:
    order = [rank.system for rank in comparison.ranks]
    if comparison.against:
        return _finding_against(result, comparison)
    if not comparison.best:
        return [
            f"The systems cannot be compared on {_title(result, comparison)}: {comparison.note}"
        ]
    behind = [system for system in order if system not in comparison.best]
    sentences = (
        _winners(result, comparison, behind) if behind else _no_difference(result, comparison)
    )
    return [*sentences, *_metric_disagrees(result, comparison)]


def _winners(result: Result, comparison: Comparison, behind: Sequence[str]) -> Iterator[str]:
    """Say which systems are best, and how far the next one trails."""
    leader, *others = comparison.best
    wins = {_in_order(result, comparison, d) for d in comparison.differences if d.apart}
    alike = all((system, loser) in wins for system in others for loser in behind)
    if not others:
        yield f"{short_name(leader)} beats {all_others(behind)}"
    elif alike and not any(pair in wins for pair in permutations(comparison.best, 2)):
        between = "between them" if len(others) == 1 else f"among the {len(others) + 1}"
        beaten = listed(behind) if len(comparison.best) <= MAX_NAMED else the_others(behind)
        yield f"{first_listed(comparison.best)} beat {beaten}; no significant difference {between}"
    else:
        yield f"{short_name(leader)} beats {listed(behind)}, but not significantly {listed(others, 'or')}"
    differences = {frozenset((d.system, d.other)): d for d in comparison.differences}
    trails = differences[frozenset((leader, behind[0]))]
    worse = trails.wins if trails.system == leader else trails.losses
    p = f" ({format_p(trails.adjusted)})" if trails.adjusted is not None else ""
    next_ = ", the next best," if len(behind) > 1 else ""
    yield (
        f"{short_name(behind[0])}{next_} trails by {_gap(result, comparison, trails)}{p} and is worse on {worse:,} of "
        f"{trails.estimate.n:,} items."
    )
    ties = [
        pair for pair in pairwise(behind) if (d := differences.get(frozenset(pair))) and not d.apart
    ]
    if len(ties) == 1:
        yield f"No significant difference between {listed(ties[0])}."


def _no_difference(result: Result, comparison: Comparison) -> Iterator[str]:
    """Say that no system is significantly best, and how many items it takes."""
    first, second, *_ = order = [rank.system for rank in comparison.ranks]
    each = "the two systems" if len(order) == 2 else f"the {len(order)} systems"
    yield f"No significant difference between {each} on {_title(result, comparison)}"
    top = [rank.system for rank in comparison.ranks if rank.rank == 1]
    column = _column(result, comparison)
    decimals, lower = places(result, column), column.better == "lower"
    best = result.estimates[first, column.name].value
    mean = mean_text(column, best, min(2, decimals) if column.kind == "criterion" else decimals)
    lead = f"{listed(top)} {'has' if len(top) == 1 else 'have'} the {'lowest' if lower else 'highest'} mean ({mean})"
    n = max((d.estimate.n for d in comparison.differences), default=0)
    if TOO_FEW in comparison.note or n < MIN_ITEMS:
        yield f"{lead}."
        yield _too_few(result, comparison, n, f"no difference between {len(order)} systems")
        return
    ahead = {
        _in_order(result, comparison, d): d for d in comparison.differences if d.estimate.value
    }
    # On the items of both, the system with the best mean may be behind.
    closest = ahead.get((first, second))
    if closest is None:
        yield f"{lead}."
        return
    gap = (
        f"{_gap(result, comparison, closest)} {'below' if lower else 'above'} {short_name(second)}"
    )
    yield f"{lead}, {gap} on {plural(closest.estimate.n, 'item')}.{_needed(result, closest.estimate.n)}"


def _in_order(result: Result, comparison: Comparison, difference: Difference) -> tuple[str, str]:
    """Return the better system on the items of both, and the other one."""
    sign = -1 if _column(result, comparison).better == "lower" else 1
    pair = difference.system, difference.other
    return pair if sign * difference.estimate.value > 0 else pair[::-1]


def _needed(result: Result, n: int) -> str:
    """Say how many items detect the closest difference if that is more than `n`; else nothing."""
    *_, needed = closest_pair(result) or (0,)
    items = f"more than {_MAX_ITEMS:,}" if needed > _MAX_ITEMS else f"about {needed:,}"
    return f" If that is real, detecting it needs {items} items (80% power)." if needed > n else ""


def _too_few(result: Result, comparison: Comparison, n: int, what: str) -> str:
    (scatter,) = result.power(comparison.column)
    least = max(MIN_ITEMS, scatter.least)
    return f"With {plural(n, 'item')}, {what} can be significant: you need at least {least}."


def _finding_against(result: Result, comparison: Comparison) -> list[str]:
    """Say which systems are better than the one that all are compared with, which are worse, and what is undecided."""
    name, title = short_name(comparison.against), _title(result, comparison)
    tested = [d for d in comparison.differences if d.adjusted is not None]
    if not tested:
        return [f"The systems cannot be compared with {name} on {title}: {comparison.note}"]
    column, texts = _column(result, comparison), {}
    for d in tested:
        e = d.estimate
        points = (
            f"{signed(100 * e.value, 0)} points {format_interval(e.low, e.high, 0, 100)}".rstrip()
        )
        texts[d.system] = (
            points if share_label(column) else change_text(e, min(2, places(result, column)))
        )
    marks = marks_against(comparison, column.better)
    sentences = [*split_against(marks, texts, name, title)]
    n = max(d.estimate.n for d in tested)
    (scatter,) = result.power(comparison.column)
    if n < max(MIN_ITEMS, scatter.least):
        return [sentences[0], _too_few(result, comparison, n, f"no difference from {name}")]
    if len(tested) == len(marks) + 1:
        sentences[-1] += _needed(result, n)
    return sentences


def split_against(
    marks: Mapping[str, str], texts: Mapping[str, str], name: str, title: str
) -> Iterator[str]:
    """Yield a headline, and a sentence each for the better, the worse and the other systems.

    `marks` are the significant differences from `name`, `texts` all of them in numbers, by system.
    """
    better, worse, others = (
        [s for s in texts if marks.get(s, "") == mark] for mark in ("better", "worse", "")
    )
    if better:
        yield f"{first_listed(better)} {'beats' if len(better) == 1 else 'beat'} {name} on {title}"
    elif others:
        yield f"No system beats {name} on {title}"
    else:
        yield f"{name} beats {all_others(worse)} on {title}"
    named = (
        ("Significantly better", better),
        ("Significantly worse", worse),
        ("No significant difference", others),
    )
    for words, systems in named:
        if systems:
            yield f"{words}: {first_names((f'{short_name(s)} ({texts[s]})' for s in systems), MAX_NAMED)}."


def closest_pair(result: Result) -> tuple[str, str, int] | None:
    """Return the best two systems and the items to detect their difference, if it is not significant; else None.

    If all systems are compared with one, return the best of those that do not differ significantly, and that one.
    """
    comparison = main_comparison(result)
    if comparison is not None and comparison.against:
        best = [rank.system for rank in comparison.ranks]
        undecided = [d for d in comparison.differences if d.adjusted is not None and not d.apart]
        if not undecided:
            return None
        closest = min(undecided, key=lambda d: best.index(d.system))
        first, second = closest.system, closest.other
    elif comparison is None or len(comparison.best) < 2 or not comparison.ranks:
        return None
    else:
        first, second = (rank.system for rank in comparison.ranks[:2])
    (scatter,) = result.power(comparison.column, pair=(first, second))
    needed = scatter.pairs[0].needed() if scatter.pairs else None
    return (first, second, needed) if needed else None


def _metric_disagrees(result: Result, comparison: Comparison) -> Iterator[str]:
    """Point out a system that a reference metric puts first and the judge finds significantly worse.

    The sentence ends with the criterion of its lowest mean on the scale: ` (consistency 2.10)`.
    """
    if _column(result, comparison).kind != "criterion":
        return
    by_column = compared_columns(result)
    ranks = {rank.system: rank.rank for rank in comparison.ranks}
    for name in ("rouge1", *REFERENCE_METRICS):
        top = by_column[name].ranks[0].system if name in by_column and by_column[name].ranks else ""
        if top in ranks and top not in comparison.best:
            place = "last" if ranks[top] == max(ranks.values()) else ranks[top]
            means = [
                (share, column, e.value)
                for column in result.table.columns
                if column.kind == "criterion"
                and not column.judge
                and (e := result.estimates.get((top, column.name)))
                if (share := share_of_scale(column, e.value)) is not None
            ]
            lowest = ""
            if means:
                _, column, value = min(means, key=lambda mean: mean[0])
                lowest = f" ({column_title(column.name)} {mean_text(column, value, places(result, column))})"
            yield f"{column_title(name)} ranks {short_name(top)} first; the judge ranks it {place}{lowest}."
            return


def _column(result: Result, comparison: Comparison) -> Column:
    return next(column for column in display_columns(result) if column.name == comparison.column)


def _title(result: Result, comparison: Comparison) -> str:
    overall = result.overall is not None and comparison.column == result.overall.column.name
    return "the overall score" if overall else column_title(comparison.column)


def _gap(result: Result, comparison: Comparison, difference: Difference) -> str:
    """Return the size of a difference: `0.12`, or `0.005` if two decimals show nothing."""
    column, size = _column(result, comparison), abs(difference.estimate.value)
    decimals = min(2, places(result, column))
    if share_label(column):
        return f"{100 * size:.0f} points"
    text = mean_text(column, size, decimals)
    return text if text.strip("0. %") else mean_text(column, size, 3)
