"""The finding of a result: a headline, then one or two sentences that the numbers support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from judge.core.format import first_names, format_interval, format_p, number, one_line, plural, signed
from judge.core.records import Column
from judge.report.format import column_title, estimate_text, interval_text, mean_text, share_label
from judge.report.views.columns import (
    change_text,
    compared_columns,
    display_columns,
    in_display_order,
    main_comparison,
    marks_against,
    places,
    shown_pass_rates,
)
from judge.report.views.provenance import build_provenance
from judge.results.result import Result
from judge.stats.pairwise import Ranking, Standing
from judge.stats.power import ALPHA, MIN_ITEMS, min_items
from judge.stats.system_differences import TOO_FEW, Comparison, Difference

REFERENCE_METRICS = ("rougeL", "rouge1", "rougeLsum", "rouge2", "bertscore_f1", "chrf", "bleu")
"""Metrics to show beside the judge, in the order of preference."""
_MAX_NAMED = 3  # systems in a sentence; of more, only their number is given
_MAX_NAME = 60  # characters of a name
_NEAR = 1e-6  # two strengths that are closer are equal
_MAX_ITEMS = 100_000  # a larger number of items is given as "more than"


def finding(result: Result) -> tuple[str, ...]:
    """Return the headline and at most three sentences; nothing if there is nothing to say."""
    judged = [column for column in result.table.columns if column.kind == "criterion"]
    if judged and not any(column.weight for column in judged):
        return ("No judge compared these systems; the columns are those of an offline baseline.",)
    if result.rankings:
        sentences = _ranking_finding(result)
    elif comparison := main_comparison(result):
        sentences = _comparison_finding(result, comparison)
    else:
        sentences = _means(result)
    if not (lost := _all_failed(result, {column.name for column in judged if column.weight})):
        return tuple(sentences)
    headline = f"{lost[0].upper()}{lost[1:]}"
    if not sentences:
        return (f"{headline}: there is nothing to compare",)
    first, *rest = sentences
    return (f"{headline}; only metrics compare the systems", f"{first}.", *rest)


def _all_failed(result: Result, judged: set[str]) -> str:
    """Say that all judgments failed (without a judge: all values) and with which errors; "" if any succeeded."""
    names, noun = (judged, "judgment") if judged else ({c.name for c in result.table.columns}, "value")
    if names & ({score.column for score in result.table.scores} | {column for _, column in result.estimates}):
        return ""
    kinds = Counter[str]()
    for kind in build_provenance(result).failures:
        if names & set(kind.columns):
            kinds[one_line(kind.error, _MAX_NAME)] += kind.count
    if not kinds:
        return ""
    breakdown = ", ".join(f"{n:,} {error}" for error, n in kinds.most_common()) if len(kinds) > 1 else next(iter(kinds))
    return f"{f'all {n:,} {noun}s' if (n := kinds.total()) > 1 else f'the only {noun}'} failed ({breakdown})"


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
    if not sentences:
        return []
    return [sentences[0], *(f"{sentence}." for sentence in sentences[1:])]


Leads = Mapping[tuple[str, str], tuple[float, Difference]]
"""By two systems: the lead of the first over the second on their shared items (negative if behind), and its test."""


def _comparison_finding(result: Result, comparison: Comparison) -> list[str]:
    order = [rank.system for rank in comparison.ranks]
    if len(order) < 2:
        return _means(result)
    if comparison.against:
        return _finding_against(result, comparison)
    if not comparison.best:
        return [f"The systems cannot be compared on {_title(result, comparison)}: {comparison.note}"]
    sign = -1 if _column(result, comparison).better == "lower" else 1
    leads = {
        pair: (lead, d)
        for d in comparison.differences
        for pair, lead in (
            ((d.system, d.other), sign * d.estimate.value),
            ((d.other, d.system), -sign * d.estimate.value),
        )
    }
    leader, *others = comparison.best
    behind = [system for system in order if system not in comparison.best]
    if not behind:
        return [*_no_difference(result, comparison, order, leads), *_metric_disagrees(result, comparison)]
    if not others:
        headline = f"{_name(leader)} beats {_all_others(behind)}"
    else:
        alike = all(_beats(leads, s, r) for s in others for r in behind)
        if alike and not any(_beats(leads, a, b) for a in comparison.best for b in comparison.best):
            between = "between them" if len(others) == 1 else f"among the {len(others) + 1}"
            headline = f"{_names(comparison.best)} beat {_names(behind)}; no significant difference {between}"
        else:
            headline = f"{_name(leader)} beats {_names(behind)}, but not significantly {_names(others, 'or')}"
    _, trails = leads[leader, behind[0]]
    worse = trails.wins if trails.system == leader else trails.losses
    p = f" ({format_p(trails.adjusted)})" if trails.adjusted is not None else ""
    next_ = ", the next best," if len(behind) > 1 else ""
    details = [
        f"{_name(behind[0])}{next_} trails by {_gap(result, comparison, trails)}{p} and is worse on {worse:,} of "
        f"{trails.estimate.n:,} items."
    ]
    ties = [(a, b) for a, b in pairwise(behind) if (a, b) in leads and not leads[a, b][1].apart]
    if len(ties) == 1:
        details.append(f"No significant difference between {_name(ties[0][0])} and {_name(ties[0][1])}.")
    if misleading := _mean_misleads(result, comparison, leads, order):
        details.insert(0, f"{misleading}.")
    return [headline, *details, *_metric_disagrees(result, comparison)]


def _beats(leads: Leads, winner: str, loser: str) -> bool:
    lead, difference = leads.get((winner, loser), (0.0, None))
    return difference is not None and difference.apart and lead > 0


def _finding_against(result: Result, comparison: Comparison) -> list[str]:
    """Say which systems are better than the one that all are compared with, which are worse, and what is undecided."""
    name, title = _name(comparison.against), _title(result, comparison)
    tested = [d for d in comparison.differences if d.adjusted is not None]
    if not tested:
        return [f"The systems cannot be compared with {name} on {title}: {comparison.note}"]
    column, texts = _column(result, comparison), {}
    for d in tested:
        points = (
            f"{signed(100 * d.estimate.value, 0)} points {format_interval(d.estimate.low, d.estimate.high, 0, 100)}"
        )
        size = change_text(d.estimate, min(2, places(result, column)))
        texts[d.system] = points.rstrip() if share_label(column) else size
    marks = marks_against(comparison, column.better)
    headline, *details = _split_against(marks, texts, name, title)
    n = max(d.estimate.n for d in tested)
    (scatter,) = result.power(comparison.column)
    least = max(MIN_ITEMS, scatter.least)
    if n < least:
        details = [
            f"With {plural(n, 'item')}, no difference from {name} can be significant: you need at least {least}."
        ]
    elif closest := closest_pair(result):
        system, _, needed = closest
        items = f"more than {_MAX_ITEMS:,}" if needed > _MAX_ITEMS else f"about {needed:,}"
        if needed > n:
            subject = f"the difference of {_name(system)}" if len(tested) > len(marks) + 1 else "that"
            details.append(f"If {subject} is real, detecting it needs {items} items (80% power).")
    return [headline, *details]


def _split_against(
    marks: Mapping[str, str], texts: Mapping[str, str], name: str, title: str, values: str = "Differences"
) -> Iterator[str]:
    """Yield a headline, and a sentence for the worse systems and for those without a significant difference.

    `marks` are the significant differences from `name`, `texts` all `values` with intervals, by system.
    """
    better, worse = ([s for s in texts if marks.get(s) == mark] for mark in ("better", "worse"))
    undecided = [system for system in texts if system not in marks]

    def with_texts(systems: Sequence[str]) -> str:
        return first_names((f"{_name(s)} ({texts[s]})" for s in systems), _MAX_NAMED)

    if better:
        count = "" if len(texts) == 1 else f"{len(better)} of {len(texts)} systems beat {name} on {title}: "
        yield (
            f"{count}{with_texts(better)}"
            if count
            else f"{_name(better[0])} beats {name} on {title}: {texts[better[0]]}"
        )
    elif worse:
        count = f"{name} beats {_all_others(worse)}" if not undecided else f"No system beats {name}"
        yield f"{count} on {title}"
    else:
        each = "the two systems" if len(texts) == 1 else f"{name} and the other {len(texts)} systems"
        yield f"No significant difference between {each} on {title}"
    if worse:
        yield f"Significantly worse: {with_texts(worse)}."
    if undecided:
        yield f"{'No significant difference' if better or worse else values}: {with_texts(undecided)}."


def _mean_misleads(result: Result, comparison: Comparison, leads: Leads, order: Sequence[str]) -> str:
    """Say that the system with the best mean does not lead another one on the items that both have; "" if it does."""
    first = order[0]
    level = {rank.system for rank in comparison.ranks if rank.rank == 1}
    lead, system = min(
        ((leads[first, s][0], s) for s in order if s not in level and (first, s) in leads), default=(1, "")
    )
    if lead > 0:
        return ""
    difference = leads[first, system][1]
    gap = f"{_gap(result, comparison, difference)} behind" if lead else "level with"
    p = f" ({format_p(difference.adjusted)})" if lead and difference.adjusted is not None else ""
    return (
        f"{_best_mean(result, comparison, first)}, but on the {plural(difference.estimate.n, 'item')} of both it is "
        f"{gap} {_name(system)}{p}"
    )


def _best_mean(result: Result, comparison: Comparison, system: str) -> str:
    end = "lowest" if _column(result, comparison).better == "lower" else "highest"
    return f"{_name(system)} has the {end} mean ({_mean(result, comparison, system)})"


def _no_difference(result: Result, comparison: Comparison, order: Sequence[str], leads: Leads) -> list[str]:
    """Say that no system is significantly best, and how many items it takes."""
    first, second = order[0], order[1]
    each = "the two systems" if len(order) == 2 else f"the {len(order)} systems"
    headline = f"No significant difference between {each} on {_title(result, comparison)}"
    level = [rank.system for rank in comparison.ranks if rank.rank == 1]
    misleading = _mean_misleads(result, comparison, leads, order)
    lead = misleading or _best_mean(result, comparison, first)
    if len(level) > 1:
        lead = f"{_names(level)} have the same mean ({_mean(result, comparison, first)})"
    n = max((d.estimate.n for d in comparison.differences), default=0)
    (scatter,) = result.power(comparison.column)
    if TOO_FEW in comparison.note or n < MIN_ITEMS:
        least = max(MIN_ITEMS, scatter.least)
        return [
            headline,
            f"{lead}.",
            f"With {plural(n, 'item')}, no difference between {len(order)} systems can be significant: "
            f"you need at least {least}.",
        ]
    if (first, second) not in leads or len(level) > 1 or misleading:
        return [headline, f"{lead}."]
    closest = leads[first, second][1]
    *_, needed = closest_pair(result) or (None,)
    side = "below" if _column(result, comparison).better == "lower" else "above"
    shared = f"on {plural(closest.estimate.n, 'item')}"
    difference = f"{lead}, {_gap(result, comparison, closest)} {side} {_name(second)} {shared}"
    if needed is None or needed <= closest.estimate.n:
        return [headline, f"{difference} ({format_p(closest.adjusted)})." if closest.adjusted else f"{difference}."]
    items = f"more than {_MAX_ITEMS:,}" if needed > _MAX_ITEMS else f"about {needed:,}"
    return [headline, f"{difference}. If that is real, detecting it needs {items} items (80% power)."]


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
    """Point out a system that a reference metric puts first and the judge finds significantly worse."""
    if _column(result, comparison).kind != "criterion" or not comparison.best:
        return
    by_column = compared_columns(result)
    places_by_judge = {rank.system: rank.rank for rank in comparison.ranks}
    for name in ("rouge1", *REFERENCE_METRICS):
        metric = by_column.get(name)
        if metric is None or not metric.ranks:
            continue
        top = metric.ranks[0].system
        if top in comparison.best or top not in places_by_judge:
            continue
        worst = _worst_criterion(result, top)
        detail = f" ({worst})" if worst else ""
        rank = places_by_judge[top]
        last = rank == max(places_by_judge.values())
        yield f"{column_title(name)} ranks {_name(top)} first; the judge ranks it {'last' if last else rank}{detail}."
        return


def _worst_criterion(result: Result, system: str) -> str:
    """Return the criterion on which the system falls furthest behind the best one: `consistency 2.10`."""
    gaps = []
    for group in in_display_order(result):
        column = group.columns[0]
        if column.kind != "criterion" or (result.overall and column.name == result.overall.column.name):
            continue
        if column.low is None or column.high is None or (system, column.name) not in result.estimates:
            continue
        values = [e.value for (_, name), e in result.estimates.items() if name == column.name]
        value = result.estimates[system, column.name].value
        best = min(values) if column.better == "lower" else max(values)
        gaps.append((abs(best - value) / ((column.high - column.low) or 1.0), column, value))
    if not gaps:
        return ""
    _, column, value = max(gaps, key=lambda gap: gap[0])
    return f"{column_title(column.name)} {mean_text(column, value, places(result, column))}"


def _ranking_finding(result: Result) -> list[str]:
    """Say who leads on the first criterion by win rate or strength, and on which others."""
    whole = {column.name for column in result.table.columns if not column.judge}
    rankings = [r for r in result.rankings if r.column in whole and len(r.standings) > 1]
    if not rankings:
        return []
    ranking, *others = rankings
    first, second, *_ = ranking.standings
    title, items = column_title(ranking.column), plural(first.items, "item") if first.items else "all items"
    if ranking.against in {s.system for s in ranking.standings}:
        rivals = [s for s in ranking.standings if s.system != ranking.against]
        marks = {s.system: "better" if s.apart > 0 else "worse" for s in rivals if s.apart}
        rates = {s.system: f"{100 * s.win_rate:.0f}% {format_interval(s.low, s.high, 0, 100)}".rstrip() for s in rivals}
        sentences = [*_split_against(marks, rates, _name(ranking.against), title, "Win rates")]
        n, least = max(s.items for s in rivals), min_items(ALPHA / len(rivals))
        few = f"With {plural(n, 'item')}, no win rate can be significant: you need at least {least}."
        return [*sentences, *[few] * (n < least)]
    strong, details = ranking.by_strength, []
    (text, low, _, interval), (follows, _, high, _) = (_size(ranking, s) for s in (first, second))
    if not _winner(ranking):
        level = [s.system for s in ranking.standings if _lead(ranking, first, s) <= _NEAR]
        what = (
            f"are equally strong on {title}: {text}"
            if strong
            else f"win equally often on {title}: {text} of their comparisons"
        )
        headline = f"{_names(level)} {what} over {items}"
    else:
        what = "is the strongest" if strong else "wins most comparisons"
        headline = f"{_name(first.system)} {what} on {title}: {f'{text} {interval}'.rstrip()} over {items}"
        clear = ""
        if low is not None and high is not None:
            clear = f"; the intervals {'do not overlap' if low > high else 'overlap'}"
        details = [f"{_name(second.system)} follows with {follows}{clear}."]
    if strong:
        details.append("Strengths decide, not win rates: the systems met different rivals.")
    elsewhere = {r.column: _winner(r) for r in others}
    same = [name for name, system in elsewhere.items() if system == first.system]
    different = {name: system for name, system in elsewhere.items() if system and system != first.system}
    if same:
        details.append(f"{_name(first.system)} is also first on {_names(same)}.")
    details += [f"{_name(system)} is first on {column_title(name)}." for name, system in list(different.items())[:2]]
    return [headline, *details]


def _size(ranking: Ranking, s: Standing) -> tuple[str, float | None, float | None, str]:
    """Return the strength or win rate that orders the systems, in words, with its ends and its interval."""
    if ranking.by_strength and s.strength is not None:
        ends = s.strength_low, s.strength_high
        return f"strength {number(s.strength, 2)}", *ends, format_interval(*ends, 2)
    return f"{100 * s.win_rate:.0f}%", s.low, s.high, format_interval(s.low, s.high, 0, 100)


def _lead(ranking: Ranking, first: Standing, other: Standing) -> float:
    if ranking.by_strength:
        return (first.strength or 0.0) - (other.strength or 0.0)
    return first.win_rate - other.win_rate


def _winner(ranking: Ranking) -> str:
    """Return the first system, or nothing if several share the place."""
    first, second, *_ = ranking.standings
    return first.system if _lead(ranking, first, second) > _NEAR else ""


def _column(result: Result, comparison: Comparison) -> Column:
    return next(column for column in display_columns(result) if column.name == comparison.column)


def _title(result: Result, comparison: Comparison) -> str:
    overall = result.overall is not None and comparison.column == result.overall.column.name
    return "the overall score" if overall else column_title(comparison.column)


def _mean(result: Result, comparison: Comparison, system: str) -> str:
    column = _column(result, comparison)
    decimals = min(2, places(result, column)) if column.kind == "criterion" else places(result, column)
    return mean_text(column, result.estimates[system, comparison.column].value, decimals)


def _gap(result: Result, comparison: Comparison, difference: Difference) -> str:
    """Return the size of a difference: `0.12`, or `0.005` if two decimals show nothing."""
    column, size = _column(result, comparison), abs(difference.estimate.value)
    decimals = min(2, places(result, column))
    if share_label(column):
        return f"{100 * size:.0f} points"
    text = mean_text(column, size, decimals)
    return text if text.strip("0. %") else mean_text(column, size, 3)


def _name(system: str) -> str:
    return one_line(system, _MAX_NAME)


def _names(names: Sequence[str], word: str = "and") -> str:
    """List the names, or say how many there are."""
    if len(names) > _MAX_NAMED:
        return f"{len(names)} systems"
    *most, last = map(_name, names)
    return f"{', '.join(most)} {word} {last}" if most else last


def _all_others(behind: Sequence[str]) -> str:
    if len(behind) == 1:
        return _name(behind[0])
    return "both other systems" if len(behind) == 2 else f"all {len(behind)} other systems"


def number_of_items(result: Result) -> str:
    """Return `40 items`, or the number of texts of streamed data."""
    if texts := (result.info.get("streamed") or {}).get("texts"):
        return plural(sum(texts.values()), "text")
    return plural(len(result.table.items), "item")
