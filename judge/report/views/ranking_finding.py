"""The finding of a run that compares texts in pairs.

Each sentence is a function, with the condition under which it is true beside it. A system leads
only if the interval of its win rate is above 50%, or the interval of its strength is above 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from judge.core.format import format_interval, number, percent, plural, whole_percent
from judge.core.format import listed as sentence_list
from judge.core.records import IDENTICAL
from judge.report.format import column_title
from judge.report.views.comparison_finding import split_against
from judge.report.views.system_names import MAX_NAMED, listed, short_name
from judge.results.result import Result
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS
from judge.stats.compared_pairs import TIE
from judge.stats.pairwise import Ranking, Standing
from judge.stats.power import ALPHA, min_items

_NEAR = 1e-6  # two strengths or shares that are closer are equal
_MAX_ELSEWHERE = 2  # further criteria that are named


def ranking_finding(result: Result) -> list[str]:
    """Say who leads on the first criterion by win rate or strength, and who on others."""
    whole = {column.name for column in result.table.columns if not column.judge}
    all_rankings = [ranking for ranking in result.rankings if ranking.column in whole]
    rankings = [ranking for ranking in all_rankings if len(ranking.standings) > 1]
    if not rankings:
        return list(_no_whole_pair(result, all_rankings))
    ranking, *others = rankings
    if is_void(result, ranking):
        sentences = list(_void_finding(ranking))
    elif not _has_wins(ranking):
        sentences = list(_nothing_won(ranking))
    elif ranking.against in {standing.system for standing in ranking.standings}:
        return list(_finding_against(ranking))
    elif len(ranking.groups) > 1:
        sentences = list(_groups_apart(ranking))
    else:
        sentences = [
            *_lead(ranking),
            *_circle(ranking),
            *_why_strengths(ranking),
        ]
    return [*sentences, *_elsewhere(result, others)]


# No evidence.


def _no_whole_pair(result: Result, rankings: Sequence[Ranking]) -> Iterator[str]:
    """Say that no pair has a verdict in both orders, although some have one."""
    with_verdicts = {score.column for score in result.table.scores}
    for ranking in rankings[:1]:
        if ranking.column in with_verdicts:
            title = column_title(ranking.column)
            yield f"No pair can be compared on {title}: each failed in one of its two orders"


def is_void(result: Result, ranking: Ranking) -> bool:
    """Return whether the order reversed every verdict, so that none is about the texts.

    A verdict that changes from a tie to a win still favours a text.
    """
    if ranking.flip_rate != 1:
        return False
    for score in result.table.column_scores(ranking.column):
        is_tie = abs(score.value - TIE) <= _NEAR
        # Equal texts are a tie without a judgment.
        if is_tie and score.provenance.method != IDENTICAL:
            return False
    return True


def _void_finding(ranking: Ranking) -> Iterator[str]:
    """Say that the verdicts on a criterion are no evidence, and name the preferred position."""
    title = column_title(ranking.column)
    yield (
        f"Every verdict on {title} changed with the order of the texts: "
        "they say nothing about the systems"
    )
    if ranking.position_bias is not None and abs(ranking.position_bias) > _NEAR:
        position = "first" if ranking.position_bias > 0 else "second"
        share = percent(0.5 + abs(ranking.position_bias))
        yield f"The text shown {position} got {share} of the preference. Try another judge."


def _has_wins(ranking: Ranking) -> bool:
    return any(standing.wins for standing in ranking.standings)


def _nothing_won(ranking: Ranking) -> Iterator[str]:
    """Say that no system won a pair, whatever the mean preferences are."""
    # Each pair is in the records of two systems.
    ties = sum(standing.ties for standing in ranking.standings) // 2
    undecided = sum(standing.undecided for standing in ranking.standings) // 2
    title = column_title(ranking.column)
    if not undecided:
        tied_pairs = plural(ties, "pair")
        yield f"No system won on {title}: {tied_pairs} tied"
        return
    pairs = plural(ranking.pairs, "pair")
    tied = f"{ties:,} tied, and " if ties else ""
    differ = f"the two orders prefer different texts in {undecided:,}"
    yield f"No system won on {title}: of {pairs}, {tied}{differ}"


# All systems compared with one.


def _finding_against(ranking: Ranking) -> Iterator[str]:
    """Say which systems win against the one that all met, which lose, and what is undecided."""
    opponents = [
        standing for standing in ranking.standings if standing.system != ranking.against
    ]
    marks = {}
    rates = {}
    for opponent in opponents:
        if opponent.apart:
            marks[opponent.system] = "better" if opponent.apart > 0 else "worse"
        percentage = whole_percent(opponent.win_rate)
        interval = format_interval(opponent.low, opponent.high, 0, 100)
        rates[opponent.system] = f"{percentage} {interval}".rstrip()
    title = column_title(ranking.column)
    opponent_of_all = short_name(ranking.against)
    n_opponents = len(opponents)
    yield from split_against(
        marks, rates, opponent_of_all, title, opponents=n_opponents
    )
    n_items = max(opponent.items for opponent in opponents)
    least = min_items(ALPHA / len(opponents))
    if n_items < least:
        items = plural(n_items, "item")
        yield f"With {items}, no win rate can be significant: you need at least {least}."


# Systems that met each other, directly or through others.


def _lead(ranking: Ranking) -> Iterator[str]:
    """Say who has the highest win rate or strength, and whether its interval supports a lead."""
    first_standing, second_standing = ranking.standings[:2]
    title = column_title(ranking.column)
    over = _over_items(first_standing)
    noun = "strength" if _has_strengths(ranking) else "win rate"
    winners = _winners_of(ranking.standings, ranking)
    if len(winners) > 1:
        size = _size(ranking, first_standing)
        yield f"{listed(winners)} have the same {noun} on {title}: {size}{over}"
        return
    leader_name = short_name(first_standing.system)
    size = _size_with_interval(ranking, first_standing)
    is_lead = leads(ranking, first_standing)
    wins_most = 2 * first_standing.wins > first_standing.n
    if is_lead and wins_most and not _has_strengths(ranking):
        yield f"{leader_name} wins most comparisons on {title}: {size}{over}"
    elif is_lead:
        yield f"{leader_name} is the strongest on {title}: {size}{over}"
    else:
        value = size.removeprefix("strength ")  # the noun says it
        highest = f"{leader_name} has the highest {noun}, {value}{over}"
        yield f"No system clearly leads on {title}: {highest}"
        yield from _too_few_items(first_standing)
        yield from _record_against_win_rate(ranking, first_standing)
    second_name = short_name(second_standing.system)
    size_of_second = _size(ranking, second_standing)
    overlap = _overlap(ranking)
    yield f"{second_name} follows with {size_of_second}{overlap}."


def leads(ranking: Ranking, standing: Standing) -> bool:
    """Return whether the interval of a strength lies above 0, or that of a win rate above 50%.

    With a win rate, a leader also wins more pairs than it loses: slight preferences in many ties
    may have a narrow interval above 50%.
    """
    if _has_strengths(ranking):
        return standing.strength_low is not None and standing.strength_low > _NEAR
    return _is_above_even(standing) and standing.wins > standing.losses


def _is_above_even(standing: Standing) -> bool:
    return standing.low is not None and standing.low > TIE + _NEAR


def _too_few_items(standing: Standing) -> Iterator[str]:
    """Say that a system without an interval has too few items."""
    if standing.low is None:
        items = plural(standing.items, "item")
        yield f"With {items}, no system can lead: you need at least {MIN_INTERVAL_ITEMS}."


def _record_against_win_rate(ranking: Ranking, standing: Standing) -> Iterator[str]:
    """Say why a win rate whose interval is above 50% is no lead."""
    if not _has_strengths(ranking) and _is_above_even(standing):
        system = short_name(standing.system)
        wins = plural(standing.wins, "pair")
        yield f"But {system} won {wins} and lost {standing.losses:,}."


def _overlap(ranking: Ranking) -> str:
    """Say whether the intervals of the first two systems overlap; nothing if one has none."""
    first_standing, second_standing = ranking.standings[:2]
    lower_bound, _ = _ends(ranking, first_standing)
    _, upper_bound = _ends(ranking, second_standing)
    if lower_bound is None or upper_bound is None:
        return ""
    if lower_bound > upper_bound:
        return "; the intervals do not overlap"
    return "; the intervals overlap, so it may be as good"


def _circle(ranking: Ranking) -> Iterator[str]:
    """Name a circle: a system wins against the next one, and the last one against the first."""
    circle = _shortest_circle(ranking)
    if not circle:
        return
    if len(circle) > MAX_NAMED + 1:
        yield f"The wins between {len(circle)} systems form a cycle."
        return
    index_of = {system: index for index, system in enumerate(ranking.systems)}
    wins = []
    # The last system wins against the first.
    opponents = [*circle[1:], circle[0]]
    for system, opponent in zip(circle, opponents, strict=True):
        rates = ranking.win_rate[index_of[system]]
        percentage = whole_percent(rates[index_of[opponent]] or 0.0)
        system_name = short_name(system)
        opponent_name = short_name(opponent)
        wins.append(f"{system_name} against {opponent_name} ({percentage})")
    yield f"The wins form a cycle: {sentence_list(wins)}."


def _shortest_circle(ranking: Ranking) -> list[str]:
    """Return the systems of a shortest circle through the first one, in order; [] without any.

    It is found by a breadth-first search.
    """
    index_of = {system: index for index, system in enumerate(ranking.systems)}
    names = [standing.system for standing in ranking.standings]

    def beaten_by(system: str) -> list[str]:
        rates = ranking.win_rate[index_of[system]]
        beaten = []
        for opponent in names:
            rate = rates[index_of[opponent]]
            if rate is not None and rate > TIE + _NEAR:
                beaten.append(opponent)
        return beaten

    first_system = names[0]
    previous_system: dict[str, str] = {}
    waiting = deque([first_system])
    while waiting:
        system = waiting.popleft()
        for opponent in beaten_by(system):
            if opponent == first_system:
                circle = [system]
                while circle[-1] != first_system:
                    circle.append(previous_system[circle[-1]])
                return circle[::-1]
            if opponent not in previous_system:
                previous_system[opponent] = system
                waiting.append(opponent)
    return []


def _why_strengths(ranking: Ranking) -> Iterator[str]:
    if ranking.by_strength:
        yield "Strengths decide, not win rates: the systems met different opponents."


# Systems that never met.


def _groups_apart(ranking: Ranking) -> Iterator[str]:
    """Say which groups of systems never met, and who has the highest win rate within each."""
    title = column_title(ranking.column)
    first_group, *others = ranking.groups
    if len(others) == 1:
        first_systems = listed(first_group)
        other_systems = listed(others[0])
        yield f"{other_systems} were never compared with {first_systems} on {title}"
    else:
        groups = f"{len(ranking.groups)} groups on {title}"
        yield f"The systems form {groups} that were never compared with each other"
    by_name = {standing.system: standing for standing in ranking.standings}
    for group in ranking.groups[:MAX_NAMED]:
        standings = [by_name[system] for system in group]
        winners = _winners_of(standings, ranking)
        size = _size_with_interval(ranking, standings[0]) + _over_items(standings[0])
        among = f"Among {listed(group)}"
        names = listed(winners)
        if len(winners) == 1:
            yield f"{among}, {names} has the highest win rate: {size}."
        else:
            yield f"{among}, {names} have the same win rate: {size}."


# Further criteria.


def _elsewhere(result: Result, others: Sequence[Ranking]) -> Iterator[str]:
    """Name the system with the highest win rate or strength on further criteria."""
    clear = []
    for ranking in others:
        if is_void(result, ranking) or not _has_wins(ranking):
            continue
        if len(ranking.groups) != 1:
            continue
        winners = _winners_of(ranking.standings, ranking)
        if len(winners) == 1:
            clear.append((ranking, winners[0]))
    for ranking, winner in clear[:_MAX_ELSEWHERE]:
        noun = "strength" if _has_strengths(ranking) else "win rate"
        title = column_title(ranking.column)
        yield f"{short_name(winner)} has the highest {noun} on {title}."


# What the sentences share.


def _has_strengths(ranking: Ranking) -> bool:
    """Return whether strengths order the systems."""
    return ranking.by_strength and ranking.standings[0].strength is not None


def _over_items(standing: Standing) -> str:
    if not standing.items:
        return " over all items"
    items = plural(standing.items, "item")
    return f" over {items}"


def _ends(ranking: Ranking, standing: Standing) -> tuple[float | None, float | None]:
    """Return the ends of the interval of what orders the systems."""
    if _has_strengths(ranking):
        return standing.strength_low, standing.strength_high
    return standing.low, standing.high


def _size(ranking: Ranking, standing: Standing) -> str:
    """Return the strength or win rate that orders the systems, in words."""
    if _has_strengths(ranking):
        strength = number(standing.strength or 0.0, 2)
        return f"strength {strength}"
    return whole_percent(standing.win_rate)


def _size_with_interval(ranking: Ranking, standing: Standing) -> str:
    lower_bound, upper_bound = _ends(ranking, standing)
    interval = format_interval(lower_bound, upper_bound, 0, 100)
    if _has_strengths(ranking):
        interval = format_interval(lower_bound, upper_bound, 2)
    return f"{_size(ranking, standing)} {interval}".rstrip()


def _winners_of(standings: Sequence[Standing], ranking: Ranking) -> list[str]:
    """Return the systems that share the first place among these."""
    by_strength = _has_strengths(ranking)
    sizes = {}
    for standing in standings:
        strength = standing.strength or 0.0
        sizes[standing.system] = strength if by_strength else standing.win_rate
    best = sizes[standings[0].system]
    return [system for system, size in sizes.items() if best - size <= _NEAR]
