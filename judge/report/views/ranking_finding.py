"""The finding of a run that compares texts in pairs."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import format_interval, number, percent, plural
from judge.report.format import column_title
from judge.report.views.comparison_finding import split_against
from judge.report.views.system_names import listed, short_name
from judge.results.result import Result
from judge.stats.pairwise import Ranking, Standing
from judge.stats.power import ALPHA, min_items

_NEAR = 1e-6  # two strengths or shares that are closer are equal


def ranking_finding(result: Result) -> list[str]:
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
        f"{listed(winners)} is first on {column_title(each.column)}."
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
        sentences = [
            *split_against(marks, rates, short_name(ranking.against), title, rivals=len(rivals))
        ]
        n, least = max(s.items for s in rivals), min_items(ALPHA / len(rivals))
        few = (
            f"With {plural(n, 'item')}, no win rate can be significant: you need at least {least}."
        )
        return [*sentences, *[few] * (n < least)]
    (text, low, _, interval), (follows, _, high, _) = (_size(ranking, s) for s in (first, second))
    winners = _winners_of(ranking)
    if len(winners) > 1:
        sentences = [f"{listed(winners)} are equal on {title}: {text} over {items}"]
    else:
        verb = "is the strongest" if ranking.by_strength else "wins most comparisons"
        apart = None if low is None or high is None else low > high
        clear = (
            "" if apart is None else f"; the intervals {'do not overlap' if apart else 'overlap'}"
        )
        sentences = [
            f"{short_name(first.system)} {verb} on {title}: {f'{text} {interval}'.rstrip()} over {items}",
            f"{short_name(second.system)} follows with {follows}{clear}.",
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
