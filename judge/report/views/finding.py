"""The finding of a result: a headline, then one or two sentences that the numbers support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations

from judge.core.format import (
    first_names,
    format_interval,
    format_p,
    number,
    one_line,
    percent,
    plural,
    signed,
)
from judge.core.records import Column
from judge.report.format import (
    column_title,
    estimate_text,
    interval_text,
    mean_text,
    share_label,
    share_of_scale,
)
from judge.report.views.columns import (
    change_text,
    compared_columns,
    display_columns,
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
_NEAR = 1e-6  # two strengths or shares that are closer are equal
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
            kinds[one_line(kind.error, _MAX_NAME)] += kind.count
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


def _comparison_finding(result: Result, comparison: Comparison) -> list[str]:
    order = [rank.system for rank in comparison.ranks]
    if len(order) < 2:
        return _means(result)
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
        yield f"{_name(leader)} beats {_all_others(behind)}"
    elif alike and not any(pair in wins for pair in permutations(comparison.best, 2)):
        between = "between them" if len(others) == 1 else f"among the {len(others) + 1}"
        beaten = _names(behind) if len(comparison.best) <= _MAX_NAMED else _other_systems(behind)
        yield f"{_first_names(comparison.best)} beat {beaten}; no significant difference {between}"
    else:
        yield f"{_name(leader)} beats {_names(behind)}, but not significantly {_names(others, 'or')}"
    differences = {frozenset((d.system, d.other)): d for d in comparison.differences}
    trails = differences[frozenset((leader, behind[0]))]
    worse = trails.wins if trails.system == leader else trails.losses
    p = f" ({format_p(trails.adjusted)})" if trails.adjusted is not None else ""
    next_ = ", the next best," if len(behind) > 1 else ""
    yield (
        f"{_name(behind[0])}{next_} trails by {_gap(result, comparison, trails)}{p} and is worse on {worse:,} of "
        f"{trails.estimate.n:,} items."
    )
    ties = [
        pair for pair in pairwise(behind) if (d := differences.get(frozenset(pair))) and not d.apart
    ]
    if len(ties) == 1:
        yield f"No significant difference between {_names(ties[0])}."


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
    lead = f"{_names(top)} {'has' if len(top) == 1 else 'have'} the {'lowest' if lower else 'highest'} mean ({mean})"
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
    gap = f"{_gap(result, comparison, closest)} {'below' if lower else 'above'} {_name(second)}"
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
    name, title = _name(comparison.against), _title(result, comparison)
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
    sentences = [*_split_against(marks, texts, name, title)]
    n = max(d.estimate.n for d in tested)
    (scatter,) = result.power(comparison.column)
    if n < max(MIN_ITEMS, scatter.least):
        return [sentences[0], _too_few(result, comparison, n, f"no difference from {name}")]
    if len(tested) == len(marks) + 1:
        sentences[-1] += _needed(result, n)
    return sentences


def _split_against(
    marks: Mapping[str, str], texts: Mapping[str, str], name: str, title: str
) -> Iterator[str]:
    """Yield a headline, and a sentence each for the better, the worse and the other systems.

    `marks` are the significant differences from `name`, `texts` all of them in numbers, by system.
    """
    better, worse, others = (
        [s for s in texts if marks.get(s, "") == mark] for mark in ("better", "worse", "")
    )
    if better:
        yield f"{_first_names(better)} {'beats' if len(better) == 1 else 'beat'} {name} on {title}"
    elif others:
        yield f"No system beats {name} on {title}"
    else:
        yield f"{name} beats {_all_others(worse)} on {title}"
    named = (
        ("Significantly better", better),
        ("Significantly worse", worse),
        ("No significant difference", others),
    )
    for words, systems in named:
        if systems:
            yield f"{words}: {first_names((f'{_name(s)} ({texts[s]})' for s in systems), _MAX_NAMED)}."


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
            yield f"{column_title(name)} ranks {_name(top)} first; the judge ranks it {place}{lowest}."
            return


def _ranking_finding(result: Result) -> list[str]:
    """Say who leads on the first criterion by win rate or strength, and who on others."""
    whole = {column.name for column in result.table.columns if not column.judge}
    rankings = [r for r in result.rankings if r.column in whole and len(r.standings) > 1]
    if not rankings:
        return []
    ranking, *others = rankings
    first, second, *_ = ranking.standings
    title, items = (
        column_title(ranking.column),
        plural(first.items, "item") if first.items else "all items",
    )
    elsewhere = [
        f"{_names(winners)} is first on {column_title(each.column)}."
        for each in others
        if not _is_void(each) and len(winners := _winners_of(each)) == 1
    ][:2]
    if _is_void(ranking):
        return [*_void_finding(ranking, title), *elsewhere]
    if ranking.against in {s.system for s in ranking.standings}:
        rivals = [s for s in ranking.standings if s.system != ranking.against]
        marks = {s.system: "better" if s.apart > 0 else "worse" for s in rivals if s.apart}
        rates = {
            s.system: f"{100 * s.win_rate:.0f}% {format_interval(s.low, s.high, 0, 100)}".rstrip()
            for s in rivals
        }
        sentences = [*_split_against(marks, rates, _name(ranking.against), title)]
        n, least = max(s.items for s in rivals), min_items(ALPHA / len(rivals))
        few = (
            f"With {plural(n, 'item')}, no win rate can be significant: you need at least {least}."
        )
        return [*sentences, *[few] * (n < least)]
    (text, low, _, interval), (follows, _, high, _) = (_size(ranking, s) for s in (first, second))
    winners = _winners_of(ranking)
    if len(winners) > 1:
        sentences = [f"{_names(winners)} are equal on {title}: {text} over {items}"]
    else:
        verb = "is the strongest" if ranking.by_strength else "wins most comparisons"
        apart = None if low is None or high is None else low > high
        clear = (
            "" if apart is None else f"; the intervals {'do not overlap' if apart else 'overlap'}"
        )
        sentences = [
            f"{_name(first.system)} {verb} on {title}: {f'{text} {interval}'.rstrip()} over {items}",
            f"{_name(second.system)} follows with {follows}{clear}.",
        ]
    if ranking.by_strength:
        sentences.append("Strengths decide, not win rates: the systems met different rivals.")
    return [*sentences, *elsewhere]


def _is_void(ranking: Ranking) -> bool:
    """Return whether every verdict changed with the order of the texts, so that none is about the texts."""
    return ranking.flip_rate == 1


def _void_finding(ranking: Ranking, title: str) -> Iterator[str]:
    """Say that the verdicts on a criterion are no evidence, and which place the judge prefers."""
    yield f"Every verdict on {title} changed with the order of the texts: they say nothing about the systems"
    if ranking.position_bias is not None and abs(ranking.position_bias) > _NEAR:
        place = "first" if ranking.position_bias > 0 else "second"
        share = percent(0.5 + abs(ranking.position_bias))
        yield f"The text shown {place} got {share} of the preference. Try another judge."


def _size(ranking: Ranking, s: Standing) -> tuple[str, float | None, float | None, str]:
    """Return the strength or win rate that orders the systems, in words, with its ends and its interval."""
    if ranking.by_strength and s.strength is not None:
        ends = s.strength_low, s.strength_high
        return f"strength {number(s.strength, 2)}", *ends, format_interval(*ends, 2)
    return f"{100 * s.win_rate:.0f}%", s.low, s.high, format_interval(s.low, s.high, 0, 100)


def _winners_of(ranking: Ranking) -> list[str]:
    """Return the systems that share the first place."""
    sizes = [(s.strength or 0.0) if ranking.by_strength else s.win_rate for s in ranking.standings]
    return [
        s.system
        for s, size in zip(ranking.standings, sizes, strict=True)
        if sizes[0] - size <= _NEAR
    ]


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


def _name(system: str) -> str:
    return one_line(system, _MAX_NAME)


def _names(names: Sequence[str], word: str = "and") -> str:
    """List the names, or say how many there are."""
    if len(names) > _MAX_NAMED:
        return f"{len(names)} systems"
    *most, last = map(_name, names)
    return f"{', '.join(most)} {word} {last}" if most else last


def _first_names(names: Sequence[str]) -> str:
    """List the names, or the first ones and how many more there are: of the best, some are always named."""
    if len(names) <= _MAX_NAMED:
        return _names(names)
    shown = ", ".join(map(_name, names[: _MAX_NAMED - 1]))
    return f"{shown} and {len(names) - _MAX_NAMED + 1} more"


def _other_systems(names: Sequence[str]) -> str:
    return _name(names[0]) if len(names) == 1 else f"the other {len(names)} systems"


def _all_others(behind: Sequence[str]) -> str:
    if len(behind) == 1:
        return _name(behind[0])
    return "both other systems" if len(behind) == 2 else f"all {len(behind)} other systems"


def number_of_items(result: Result) -> str:
    """Return `40 items`."""
    return plural(len(result.table.items), "item")
