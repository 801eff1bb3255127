"""The finding of a run that scores texts: which systems differ in the column that ranks them.

Each sentence is a function, with the condition under which it is true beside it. All of them read
the tests of one `Comparison`, so that they make no claim that a test does not support.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise, product

from judge.core.format import (
    first_names,
    format_interval,
    format_p,
    plural,
    rough_count,
    signed,
)
from judge.core.format import listed as sentence_list
from judge.core.records import Column
from judge.report.format import column_title, mean_text, share_label
from judge.report.views.columns import (
    change_text,
    compared_columns,
    display_columns,
    main_comparison,
    marks_against,
    places,
)
from judge.report.views.printed_ranks import printed_ranks
from judge.report.views.system_names import (
    MAX_NAMED,
    all_others,
    first_listed,
    listed,
    short_name,
    the_others,
)
from judge.results.result import Result
from judge.stats.paired_differences import MOST
from judge.stats.power import MIN_ITEMS
from judge.stats.system_differences import TOO_FEW, Comparison, Difference

REFERENCE_METRICS = (
    "rougeL",
    "rouge1",
    "rougeLsum",
    "rouge2",
    "bertscore_f1",
    "chrf",
    "bleu",
)
"""Metrics to show beside the judge, in the order of preference."""
_MAX_ITEMS = 100_000  # a larger number of items is given as "more than"
_MAX_CONTRADICTING = 2  # criteria that are named because they contradict the finding

Win = tuple[str, str]
"""The better and the worse system of a significant difference."""


@dataclass(frozen=True, slots=True)
class _Tests:
    """What the tests of a comparison say.

    `order` are all systems by their means, the best first. `wins` are the significant differences.
    `behind` are the systems that the `leader` beats, and `others` those that may be as good.
    """

    order: tuple[str, ...]
    wins: frozenset[Win]
    leader: str
    others: tuple[str, ...]
    behind: tuple[str, ...]

    @property
    def leader_is_beaten(self) -> bool:
        """Return whether the significant differences form a cycle."""
        return any(loser == self.leader for _, loser in self.wins)

    @property
    def best_beat_the_rest(self) -> bool:
        """Return whether the leader and the others beat all systems behind, but not each other.

        The headline can then say that all of them `beat` the rest.
        """
        best = {self.leader, *self.others}
        wins_over_the_rest = set(product(best, self.behind))
        wins_among_best = [win for win in self.wins if best.issuperset(win)]
        return wins_over_the_rest <= self.wins and not wins_among_best


def comparison_finding(result: Result, comparison: Comparison) -> list[str]:
    """Return the headline and the sentences about a comparison of two systems or more."""
    if comparison.against:
        return _finding_against(result, comparison)
    if not comparison.best:
        title = _title(result, comparison)
        return [f"The systems cannot be compared on {title}: {comparison.note}"]
    tests = _read(result, comparison)
    if not tests.wins:
        sentences = list(_no_difference(result, comparison, tests))
    elif not tests.behind or tests.leader_is_beaten:
        sentences = list(_some_differences(result, comparison, tests))
    else:
        sentences = list(_winners(result, comparison, tests))
    return [
        *sentences,
        *_contradictions(result, tests),
        *_metric_disagrees(result, comparison),
    ]


def _read(result: Result, comparison: Comparison) -> _Tests:
    order = tuple(rank.system for rank in comparison.ranks)
    leader, *others = comparison.best
    column = _column(result, comparison)
    behind = [system for system in order if system not in comparison.best]
    return _Tests(
        order=order,
        wins=_wins(column, comparison),
        leader=leader,
        others=tuple(others),
        behind=tuple(behind),
    )


def _wins(column: Column, comparison: Comparison) -> frozenset[Win]:
    significant = [
        difference for difference in comparison.differences if difference.apart
    ]
    return frozenset(_in_order(column, difference) for difference in significant)


# The headline, if the leader beats some systems.


def _winners(result: Result, comparison: Comparison, tests: _Tests) -> Iterator[str]:
    """Say whom the leader beats, and how far the best of these trails."""
    leader = short_name(tests.leader)
    behind = tests.behind
    on = _on_column(result, comparison)
    if not tests.others:
        beaten = all_others(behind)
        yield f"{leader} beats {beaten}{on}"
    elif tests.best_beat_the_rest:
        # "Between them" could also be the beaten systems.
        between = f"among the best {len(comparison.best)}"
        if len(comparison.best) <= MAX_NAMED:
            between = f"between {listed(comparison.best)}"
        beaten = the_others(behind)
        if max(len(comparison.best), len(behind)) <= MAX_NAMED:
            beaten = listed(behind)
        best = first_listed(comparison.best)
        yield f"{best} beat {beaten}{on}; no significant difference {between}"
    else:
        beaten = listed(behind)
        not_beaten = listed(tests.others, "or")
        yield f"{leader} beats {beaten}{on}, but not significantly {not_beaten}"
    yield _trailing(result, comparison, tests)
    yield from _tie_behind(comparison, tests)
    yield from _leader_by_mean(result, comparison, tests)
    if tests.leader in comparison.partly_scored:
        coverage = _coverage(result, comparison, tests.leader)
        yield f"{leader} has {coverage}."


def _trailing(result: Result, comparison: Comparison, tests: _Tests) -> str:
    """Say how far the first of the beaten systems is behind the leader, on the items of both."""
    first_system = tests.behind[0]
    difference = _difference(comparison, tests.leader, first_system)
    leader_is_first = difference.system == tests.leader
    worse = difference.wins if leader_is_first else difference.losses
    p_value_text = ""
    if difference.adjusted is not None:
        p_value_text = f" ({format_p(difference.adjusted)})"
    leader = f" {short_name(tests.leader)}" if tests.others else ""
    subject = short_name(first_system) + _apposition(comparison, tests)
    gap = _gap(result, comparison, difference)
    n_items = difference.estimate.n
    mean_of_leader = result.estimates[tests.leader, comparison.column]
    mean_of_first = result.estimates[first_system, comparison.column]
    noun = "items"
    if n_items < max(mean_of_leader.n, mean_of_first.n):
        # The means of the table are over more items, so their difference is another one.
        noun = "shared items"
    items = f"{worse:,} of {n_items:,} {noun}"
    return f"{subject} trails{leader} by {gap}{p_value_text} and is worse on {items}."


def _apposition(comparison: Comparison, tests: _Tests) -> str:
    """Say whether the first of the beaten systems is the next by rank, or only the best of them."""
    if len(tests.behind) == 1:
        return ""
    ranks = {rank.system: rank.rank for rank in comparison.ranks}
    first_system, second_system = tests.behind[:2]
    if ranks[first_system] == ranks[second_system]:
        return ""
    n_sharing = sum(rank == ranks[first_system] for rank in ranks.values())
    is_second = tests.order[:2] == (tests.leader, first_system)
    follows = is_second and ranks[tests.leader] < ranks[first_system]
    if follows and n_sharing == 1:
        return ", the next best,"
    return ", the best of those beaten,"


def _tie_behind(comparison: Comparison, tests: _Tests) -> Iterator[str]:
    """Name two neighbours among the beaten systems, if only these do not differ significantly."""
    neighbours = []
    for pair in pairwise(tests.behind):
        difference = _find_difference(comparison, *pair)
        if difference is not None and not difference.apart:
            neighbours.append(pair)
    if len(neighbours) == 1:
        yield f"No significant difference between {listed(neighbours[0])}."


def _leader_by_mean(
    result: Result, comparison: Comparison, tests: _Tests
) -> Iterator[str]:
    """Say why the system with the best mean is not the leader."""
    top = _first_by_mean(comparison)
    if len(top) > 1 or top[0] == tests.leader:
        return
    mean = _highest_mean(result, comparison, top)
    if top[0] in comparison.partly_scored:
        coverage = _coverage(result, comparison, top[0])
        yield f"{mean}, but {coverage}."
    elif (tests.leader, top[0]) in tests.wins:
        yield f"{mean}, but is worse on the items that both have."


# The headline, if the leader beats none.


def _some_differences(
    result: Result,
    comparison: Comparison,
    tests: _Tests,
) -> Iterator[str]:
    """Name the significant differences, if none of them makes the leader the best."""
    title = _title(result, comparison)
    index_of = tests.order.index

    def position(win: Win) -> tuple[int, int]:
        winner, loser = win
        return index_of(winner), index_of(loser)

    pairs = sorted(tests.wins, key=position)
    if len(pairs) > MAX_NAMED:
        n_tested = len(_tested_differences(comparison))
        yield f"{len(pairs)} of {n_tested:,} pairs of systems differ significantly on {title}"
    else:
        clauses = []
        for winner, loser in pairs:
            winner_name = short_name(winner)
            loser_name = short_name(loser)
            clauses.append(f"{winner_name} beats {loser_name}")
        wins = sentence_list(clauses)
        yield f"{wins} on {title}"
    yield _untested_lead(result, comparison, tests)
    if tests.leader_is_beaten:
        yield "These differences form a cycle: no system is the best."


def _untested_lead(result: Result, comparison: Comparison, tests: _Tests) -> str:
    """Say who has the best mean, and why that is no finding."""
    top = _first_by_mean(comparison)
    sentence = _highest_mean(result, comparison, top)
    scored_items, items = _items(result, comparison, top[0])
    if len(top) == 1 and scored_items < items:
        sentence += f" over {scored_items:,} of {items:,} items"
    systems_that_differ = {system for win in tests.wins for system in win}
    if systems_that_differ.isdisjoint(top):
        differs = "differs" if len(top) == 1 else "differ"
        sentence += f", but {differs} significantly from no system"
    return f"{sentence}."


def _first_by_mean(comparison: Comparison) -> list[str]:
    """Return the systems that share the best mean."""
    return [rank.system for rank in comparison.ranks if rank.rank == 1]


def _no_difference(
    result: Result, comparison: Comparison, tests: _Tests
) -> Iterator[str]:
    """Say that no two systems differ significantly, and how many items it takes."""
    order = tests.order
    yield _no_difference_headline(result, comparison, tests)
    top = _first_by_mean(comparison)
    lead = _highest_mean(result, comparison, top)
    if len(top) == 1 and top[0] in comparison.partly_scored:
        coverage = _coverage(result, comparison, top[0])
        lead += f", but {coverage}"
    sizes = [difference.estimate.n for difference in comparison.differences]
    most_items = max(sizes, default=0)
    if TOO_FEW in comparison.note or most_items < MIN_ITEMS:
        yield f"{lead}."
        claim = f"no difference between {len(order)} systems"
        yield _too_few(result, comparison, most_items, claim)
        return
    first_system, second_system, *_ = order
    closest = _find_difference(comparison, first_system, second_system)
    column = _column(result, comparison)
    # On the items of both, the system with the best mean may be behind.
    is_ahead = (
        closest is not None
        and first_system == tests.leader
        and closest.estimate.value != 0
        and _in_order(column, closest) == (first_system, second_system)
    )
    if closest is None or not is_ahead:
        yield f"{lead}."
        return
    side = "below" if column.better == "lower" else "above"
    size = _gap(result, comparison, closest)
    gap = f"{size} {side} {short_name(second_system)}"
    n_items = closest.estimate.n
    items = plural(n_items, "item")
    comparison_with_next = f"{lead}, {gap} on {items}."
    scored_items, _ = _items(result, comparison, first_system)
    if n_items < scored_items:
        # The mean is over more items than the difference.
        comparison_with_next = f"{lead}. On the {items} that both have, it is {gap}."
    yield f"{comparison_with_next}{_needed(result, n_items)}"


def _no_difference_headline(
    result: Result, comparison: Comparison, tests: _Tests
) -> str:
    title = _title(result, comparison)
    n_systems = len(tests.order)
    if n_systems > MOST:  # only the leader was tested
        n_others = n_systems - 1
        others = f"any of the {n_others} other systems"
        leader = short_name(tests.leader)
        return f"{leader} does not differ significantly from {others} on {title}"
    systems = "the two systems" if n_systems == 2 else f"the {n_systems} systems"
    return f"No significant difference between {systems} on {title}"


def _highest_mean(
    result: Result, comparison: Comparison, systems: Sequence[str]
) -> str:
    """Say who has the best mean: `a has the highest mean (3.50)`, or that it is everybody's."""
    column = _column(result, comparison)
    decimals = places(result, column)
    if column.kind == "criterion":
        decimals = min(2, decimals)
    estimate = result.estimates[systems[0], column.name]
    best = estimate.value
    mean = mean_text(column, best, decimals)
    names = listed(systems)
    if len(systems) == len(comparison.ranks) > 1:
        return f"{names} have the same mean ({mean})"
    has = "has" if len(systems) == 1 else "have"
    extreme = "lowest" if column.better == "lower" else "highest"
    return f"{names} {has} the {extreme} mean ({mean})"


def _items(result: Result, comparison: Comparison, system: str) -> tuple[int, int]:
    """Return on how many items a system has a value, and on how many any system has one."""
    estimate = result.estimates[system, comparison.column]
    return estimate.n, comparison.items


def _coverage(result: Result, comparison: Comparison, system: str) -> str:
    scored_items, items = _items(result, comparison, system)
    noun = "scores" if _column(result, comparison).kind == "criterion" else "values"
    return f"{noun} for {scored_items:,} of {items:,} items"


# Other columns.


def _contradictions(result: Result, tests: _Tests) -> Iterator[str]:
    """Name criteria on which a system beats one that the headline puts before it, and by how much.

    If the headline names no difference, name criteria that contradict each other.
    """
    contradicting = _contradicting(result, tests) if tests.wins else _opposed(result)
    clauses = []
    for further, reversed_wins in contradicting:
        title = column_title(further.column)
        wins = _won(result, further, reversed_wins)
        clauses.append(f"on {title}, {wins}")
    if clauses:
        named = clauses[:_MAX_CONTRADICTING]
        n_more = len(clauses) - len(named)
        if n_more:
            named.append(f"{n_more} more criteria do so, too")
        examples = "; ".join(named)
        yield f"The criteria contradict each other: {examples}."


def criteria_contradict(result: Result, comparison: Comparison) -> bool:
    """Return whether a criterion contradicts the headline.

    On such a criterion, a system that the headline puts first is significantly worse.
    """
    if comparison.against or not comparison.best:
        return False
    tests = _read(result, comparison)
    return bool(_contradicting(result, tests))


def _contradicting(result: Result, tests: _Tests) -> list[tuple[Comparison, list[Win]]]:
    """Return the comparisons of criteria that contradict the headline, with their reversed wins."""
    best = {tests.leader, *tests.others}
    if not tests.behind:
        # The headline claims no win of its own: any win counts.
        best = set(tests.order)
    claimed = {(winner, loser) for winner, loser in tests.wins if winner in best}
    return _with_reversed_wins(_wins_by_criterion(result), claimed)


def _opposed(result: Result) -> list[tuple[Comparison, list[Win]]]:
    """Return the criteria on which a system beats one that beats it on another criterion."""
    by_criterion = _wins_by_criterion(result)
    all_wins = {win for _, wins in by_criterion for win in wins}
    return _with_reversed_wins(by_criterion, all_wins)


def _with_reversed_wins(
    by_criterion: Sequence[tuple[Comparison, frozenset[Win]]],
    claimed: Set[Win],
) -> list[tuple[Comparison, list[Win]]]:
    """Return the comparisons in which the loser of a `claimed` win beats its winner."""
    contradicting = []
    for further, wins in by_criterion:
        reversed_wins = [
            (winner, loser) for winner, loser in wins if (loser, winner) in claimed
        ]
        if reversed_wins:
            contradicting.append((further, reversed_wins))
    return contradicting


def _wins_by_criterion(result: Result) -> list[tuple[Comparison, frozenset[Win]]]:
    """Return each criterion's comparison of every two systems, with its significant differences."""
    by_criterion = []
    for column in display_columns(result):
        further = compared_columns(result).get(column.name)
        if column.kind != "criterion" or column.judge:
            continue
        if further is not None and not further.against:
            by_criterion.append((further, _wins(column, further)))
    return by_criterion


def _won(result: Result, comparison: Comparison, wins: Sequence[Win]) -> str:
    """Say who beats whom by how much, or how many do and the largest difference."""

    def size(win: Win) -> float:
        return abs(_difference(comparison, *win).estimate.value)

    def sentence(win: Win) -> str:
        winner, loser = win
        difference = _difference(comparison, winner, loser)
        gap = _gap(result, comparison, difference)
        return f"{short_name(winner)} beats {short_name(loser)} by {gap}"

    if len(wins) > MAX_NAMED:
        count = f"{len(wins)} of these differences are the other way round"
        largest = max(wins, key=size)
        return f"{count}, the largest: {sentence(largest)}"
    return sentence_list([sentence(win) for win in sorted(wins)])


def _metric_disagrees(result: Result, comparison: Comparison) -> Iterator[str]:
    """Point out a system that a metric puts first and the judge finds significantly worse.

    The first systems of the metric and of the judge have to be different ones, and each first
    system significantly better than the other in its column. The sentence ends with the criterion
    of the system's lowest mean on the scale: ` (consistency 2.10)`.
    """
    if _column(result, comparison).kind != "criterion":
        return
    by_column = compared_columns(result)
    ranks_in_table = printed_ranks(comparison)
    for metric_name in REFERENCE_METRICS:
        metric = by_column.get(metric_name)
        if metric is None or not metric.best:
            continue
        shared_best = set(metric.best).intersection(comparison.best)
        if shared_best:
            continue
        top = metric.best[0]
        is_alone = _first_by_mean(metric) == [top]
        if is_alone and top in ranks_in_table:
            rank = _rank_in_words(top, ranks_in_table)
            weakness = _lowest_criterion(result, top)
            title = column_title(metric_name)
            yield f"{title} ranks {short_name(top)} first; the judge ranks it {rank}{weakness}."
            return


def _rank_in_words(system: str, ranks_in_table: Mapping[str, int]) -> str:
    """Return a printed rank in words: `last`, `2`, or `2=` if others share it."""
    rank = ranks_in_table[system]
    all_ranks = list(ranks_in_table.values())
    if all_ranks.count(rank) > 1:
        return f"{rank}="
    return "last" if rank == max(all_ranks) else str(rank)


def _lowest_criterion(result: Result, system: str) -> str:
    """Return the criterion with the system's lowest mean on its scale: ` (consistency 2.10)`."""
    means = []
    for column in result.table.columns:
        estimate = result.estimates.get((system, column.name))
        if column.kind != "criterion" or column.judge or not estimate:
            continue
        share = column.share(estimate.value)
        if share is not None:
            means.append((share, column, estimate.value))
    if not means:
        return ""
    _, column, value = min(means, key=lambda mean: mean[0])
    mean = mean_text(column, value, places(result, column))
    return f" ({column_title(column.name)} {mean})"


# All systems compared with one.


def _difference_text(column: Column, difference: Difference, decimals: int) -> str:
    """Return `+0.31 [0.10, 0.52]`, or in percentage points if the column is a probability."""
    estimate = difference.estimate
    if not share_label(column):
        return change_text(estimate, decimals)
    points = signed(100 * estimate.value, 0)
    interval = format_interval(estimate.low, estimate.high, 0, 100)
    return f"{points} points {interval}".rstrip()


def _finding_against(result: Result, comparison: Comparison) -> list[str]:
    """Say which systems are better than the one that all are compared with, and which are worse."""
    opponent_name = short_name(comparison.against)
    title = _title(result, comparison)
    tested = _tested_differences(comparison)
    if not tested:
        subject = f"The systems cannot be compared with {opponent_name} on {title}"
        return [f"{subject}: {comparison.note}"]
    column = _column(result, comparison)
    decimals = min(2, places(result, column))
    texts = {}
    for difference in tested:
        texts[difference.system] = _difference_text(column, difference, decimals)
    marks = marks_against(comparison, column.better)
    n_opponents = len(comparison.ranks) - 1
    split = split_against(marks, texts, opponent_name, title, opponents=n_opponents)
    sentences = list(split)
    n_items = max(difference.estimate.n for difference in tested)
    (scatter,) = result.scatters(comparison.column)
    if n_items < max(MIN_ITEMS, scatter.least):
        claim = f"no difference from {opponent_name}"
        return [sentences[0], _too_few(result, comparison, n_items, claim)]
    # One system is undecided: more items may decide it.
    if len(tested) == len(marks) + 1:
        sentences[-1] += _needed(result, n_items)
    return sentences


def split_against(
    marks: Mapping[str, str],
    texts: Mapping[str, str],
    opponent_name: str,
    title: str,
    *,
    opponents: int,
) -> Iterator[str]:
    """Yield a headline, and a sentence each for the better, the worse and the other systems.

    `marks` are the significant differences from `opponent_name`, `texts` all that were tested in
    numbers, by system. `opponents` counts the other systems, tested or not.
    """
    better = [system for system in texts if marks.get(system) == "better"]
    worse = [system for system in texts if marks.get(system) == "worse"]
    others = [system for system in texts if not marks.get(system)]
    if better:
        winners = first_listed(better)
        verb = "beats" if len(better) == 1 else "beat"
        yield f"{winners} {verb} {opponent_name} on {title}"
    elif others:
        yield f"No system beats {opponent_name} on {title}"
    else:
        beaten = all_others(worse) if len(worse) == opponents else listed(worse)
        yield f"{opponent_name} beats {beaten} on {title}"
    named = (
        ("Significantly better", better),
        ("Significantly worse", worse),
        ("No significant difference", others),
    )
    for words, systems in named:
        in_numbers = []
        for system in systems:
            difference_text = texts[system]
            in_numbers.append(f"{short_name(system)} ({difference_text})")
        if in_numbers:
            yield f"{words}: {first_names(in_numbers, MAX_NAMED)}."


# What the sentences share.


def closest_pair(result: Result) -> tuple[str, str, int] | None:
    """Return the best two systems and the items to detect their difference, if not significant.

    If all systems are compared with one, return the best of those that do not differ significantly,
    and that one.
    """
    comparison = main_comparison(result)
    if comparison is not None and comparison.against:
        tested = _tested_differences(comparison)
        undecided = [difference for difference in tested if not difference.apart]
        if not undecided:
            return None
        order = [rank.system for rank in comparison.ranks]
        closest = min(undecided, key=lambda difference: order.index(difference.system))
        first_system = closest.system
        second_system = closest.other
    elif comparison is None or len(comparison.best) < 2:
        return None
    else:
        first_system, second_system = comparison.best[:2]
    (scatter,) = result.scatters(comparison.column, pair=(first_system, second_system))
    if not scatter.pairs:
        return None
    needed = scatter.pairs[0].needed()
    return (first_system, second_system, needed) if needed else None


def _needed(result: Result, n_items: int) -> str:
    """Say how many items detect the closest difference, if more than `n_items`; else nothing."""
    closest = closest_pair(result)
    if closest is None:
        return ""
    _, _, needed = closest
    if needed <= n_items:
        return ""
    items = rough_count(needed)
    if needed > _MAX_ITEMS:
        items = f"more than {_MAX_ITEMS:,}"
    return f" If that is real, detecting it needs {items} items (80% power)."


def _too_few(
    result: Result,
    comparison: Comparison,
    n_items: int,
    subject: str,
) -> str:
    """Say how many items the `subject` needs: `no difference between 4 systems`."""
    (scatter,) = result.scatters(comparison.column)
    least = max(MIN_ITEMS, scatter.least)
    items = plural(n_items, "item")
    return f"With {items}, {subject} can be significant: you need at least {least}."


def _tested_differences(comparison: Comparison) -> list[Difference]:
    return [
        difference
        for difference in comparison.differences
        if difference.adjusted is not None
    ]


def _in_order(column: Column, difference: Difference) -> Win:
    """Return the better system on the items of both, and the other one."""
    sign = -1 if column.better == "lower" else 1
    is_ahead = sign * difference.estimate.value > 0
    if is_ahead:
        return difference.system, difference.other
    return difference.other, difference.system


def _find_difference(
    comparison: Comparison,
    first_system: str,
    second_system: str,
) -> Difference | None:
    """Return the difference between two systems in either order; None if they share no item."""
    for difference in comparison.differences:
        if {difference.system, difference.other} == {first_system, second_system}:
            return difference
    return None


def _difference(
    comparison: Comparison,
    first_system: str,
    second_system: str,
) -> Difference:
    """Return the difference between two systems that share items."""
    difference = _find_difference(comparison, first_system, second_system)
    if difference is None:
        raise LookupError(f"{first_system} and {second_system} share no item")
    return difference


def _column(result: Result, comparison: Comparison) -> Column:
    columns = display_columns(result)
    return next(column for column in columns if column.name == comparison.column)


def _title(result: Result, comparison: Comparison) -> str:
    if _is_overall(result, comparison):
        return "the overall score"
    return column_title(comparison.column)


def _is_overall(result: Result, comparison: Comparison) -> bool:
    if result.overall is None:
        return False
    return comparison.column == result.overall.column.name


def _on_column(result: Result, comparison: Comparison) -> str:
    """Return ` on fluency`, or nothing for the overall score or the only criterion."""
    if _is_overall(result, comparison):
        return ""
    columns = [column for column in display_columns(result) if not column.judge]
    criteria = [column for column in columns if column.kind == "criterion"]
    only = [column.name for column in criteria or columns] == [comparison.column]
    return "" if only else f" on {_title(result, comparison)}"


def _gap(result: Result, comparison: Comparison, difference: Difference) -> str:
    """Return the size of a difference: `0.12`, or `0.005` if two decimals show nothing."""
    column = _column(result, comparison)
    size = abs(difference.estimate.value)
    decimals = min(2, places(result, column))
    if share_label(column):
        return f"{100 * size:.0f} points"
    text = mean_text(column, size, decimals)
    is_zero = not text.strip("0. %")
    return mean_text(column, size, 3) if is_zero else text
