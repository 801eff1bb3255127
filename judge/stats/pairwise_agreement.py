"""Measure how often a ranking's judge and people prefer the same text of a pair.

It also measures how often people agree with one another. A preference is +1 for the pair's first
text, −1 for the second and 0 for a tie; the first text is that of the system which comes first in
the data. People's preferences are stated (`judge.data.ratings.PairRating`), or else follow from the
ratings of the two texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from judge.core.records import IDENTICAL, Estimate
from judge.data.ratings import PairRating
from judge.stats.agreement import agree
from judge.stats.bootstrap import Bootstrap, Floats
from judge.stats.compared_pairs import Orders, complete_pairs, tie_label, verdict
from judge.stats.pairwise import mean_over_items
from judge.stats.rated_columns import RatedColumn, judges_of
from judge.stats.raters import named_votes
from judge.table import Table, Text

Pair = tuple[str, str, str]
"""Item and two systems, in the order of the data."""
Preferences = dict[str, dict[Pair, float]]
"""The preferences by rater; the empty name is people's majority, or their mean rating."""
Kind = Literal["people", "rater", "raters"]
_VALUES = {"first": 1.0, "tie": 0.0, "second": -1.0}
_DECIMALS = 9  # of a difference of ratings, whose rounding errors are no preference
_SAME = (
    "share of pairs with the same preference, a tie against a preference counts half"
)


@dataclass(frozen=True, slots=True)
class PreferenceRow:
    """The agreement of two sides on the pairs of texts that both have a preference about.

    `name` is a rater, or empty for all people (kind `people`) and for people among themselves (kind
    `raters`: every two of them). `same` is the share of pairs with the same preference, where a tie
    against a preference counts half; `kappa` corrects it for chance (Cohen's kappa, linear
    weights), None if it is undefined. Their `n` counts pairs, or for `raters` pairs of texts and
    raters.
    """

    kind: Kind
    name: str
    same: Estimate
    kappa: Estimate | None


@dataclass(frozen=True, slots=True)
class PreferenceAgreement:
    """The agreement of one judge's preferences with people's on one criterion.

    `derived` preferences follow from ratings of single texts. `excluded` pairs have a text that was
    used to make the prompt. On `no_majority` pairs that the judge compared no answer has more than
    half of the raters' votes; they count for each rater only.
    """

    criterion: str
    judge: str
    rows: tuple[PreferenceRow, ...]
    derived: bool
    excluded: int = 0
    no_majority: int = 0


def preference_agreement(
    table: Table,
    stated: Sequence[PairRating],
    model: str,
    *,
    orders: Orders,
    bootstrap: Bootstrap,
) -> tuple[PreferenceAgreement, ...]:
    """Compare a ranking's preferences with people's.

    There is a result for every judge's column whose criterion people rated. The judge is compared
    with people's majority and with each rater, and the raters with each other. A pair that lacks an
    answer in one of `orders`, and identical texts, about which no judge was asked, do not count.
    People's majority is the answer (first, second or tie) with more than half of the raters' votes;
    a pair without one has none. For ratings of single texts, people prefer the text with the higher
    mean rating.
    """
    agreements: list[PreferenceAgreement] = []
    for judge in judges_of(table, model):
        ratings = [rating for rating in stated if rating.criterion == judge.criterion]
        preferences, excluded = _stated(table, ratings, judge)
        derived = not (preferences or excluded)
        if derived:
            preferences = _derived(table, judge.criterion)
        judged = _preferences_of_judge(table, judge, orders)
        rows = _rows(judged, preferences, bootstrap)
        compares_judge = any(row.kind != "raters" for row in rows)
        # The judge has no pair in common with people.
        if not compares_judge:
            continue
        no_majority = 0
        if not derived:
            no_majority = _pairs_without_majority(preferences, judged)
        agreement = PreferenceAgreement(
            judge.criterion,
            judge.name,
            tuple(rows),
            derived=derived,
            excluded=excluded,
            no_majority=no_majority,
        )
        agreements.append(agreement)
    return tuple(agreements)


def _preferences_of_judge(
    table: Table, judge: RatedColumn, orders: Orders
) -> dict[Pair, float]:
    """Return the judge's preferences about complete pairs of different texts."""
    column = judge.scale.name if judge.scale else ""
    compared = [score for score in table.column_scores(column) if score.opponent]
    scores = [score for score in compared if score.provenance.method != IDENTICAL]
    # An answer in one order only may be position bias.
    answers_by_pair, _ = complete_pairs(scores, table.systems, orders)
    label_of_tie = tie_label(judge.scale) if judge.scale else None
    preferences: dict[Pair, float] = {}
    for pair, (forward, backward) in answers_by_pair.items():
        preferences[pair] = float(verdict(forward, backward, label_of_tie).winner)
    return preferences


def _rows(
    judged: Mapping[Pair, float],
    preferences: Preferences,
    bootstrap: Bootstrap,
) -> list[PreferenceRow]:
    """Compare the judge with people's majority and each rater, and the raters with each other.

    Comparisons without a common pair are left out.
    """
    raters = [rater for rater in preferences if rater]
    # The majority of one rater is that rater: one row is enough.
    names = list(preferences)
    if len(raters) <= 1:
        names = names[:1]
    rows: list[PreferenceRow | None] = []
    for rater in names:
        kind: Kind = "rater" if rater else "people"
        row = _row(kind, rater, [judged, preferences[rater]], bootstrap)
        rows.append(row)
    if len(raters) > 1:
        preferences_of_raters = [preferences[rater] for rater in raters]
        rows.append(_row("raters", "", preferences_of_raters, bootstrap))
    return [row for row in rows if row is not None]


def _pairs_without_majority(
    preferences: Preferences, judged: Mapping[Pair, float]
) -> int:
    """Return the number of pairs that the judge and raters compared, but without a majority."""
    compared: set[Pair] = set()
    for rater, by_pair in preferences.items():
        if rater:
            compared |= by_pair.keys() & judged.keys()
    with_majority = preferences.get("", {}).keys()
    return len(compared - with_majority)


def _stated(
    table: Table,
    ratings: Sequence[PairRating],
    judge: RatedColumn,
) -> tuple[Preferences, int]:
    """Return people's stated preferences with their majority, and the number of excluded pairs.

    A text of an excluded pair was used to make the prompt. A second rating of a pair by the same
    rater does not count.
    """
    position = {system: index for index, system in enumerate(table.systems)}
    samples = {sample.key: sample for sample in table.samples}
    seen = frozenset(judge.scale.seen if judge.scale else ())
    preferences: Preferences = {}
    used: set[Pair] = set()
    for rating in ratings:
        first_text = samples.get((rating.item, rating.first))
        second_text = samples.get((rating.item, rating.second))
        if rating.repeat or first_text is None or second_text is None:
            continue
        value = _VALUES[rating.value]
        pair = (rating.item, rating.first, rating.second)
        if position[rating.first] > position[rating.second]:
            # A pair's first text is that of the system which comes first in the data.
            pair = (rating.item, rating.second, rating.first)
            value = -value
        if first_text.digests & seen or second_text.digests & seen:
            used.add(pair)
        else:
            preferences.setdefault(rating.rater, {})[pair] = value
    if not preferences:
        return {}, len(used)
    with_majority = {"": _majorities(preferences), **preferences}
    return with_majority, len(used)


def _majorities(preferences: Preferences) -> dict[Pair, float]:
    """Return the label with more than half of the raters' votes, without pairs that have none."""
    votes_by_pair: dict[Pair, list[float]] = {}
    for by_pair in preferences.values():
        for pair, value in by_pair.items():
            votes_by_pair.setdefault(pair, []).append(value)
    majorities: dict[Pair, float] = {}
    for pair, votes in votes_by_pair.items():
        label = majority_label(votes)
        if label is not None:
            majorities[pair] = label
    return majorities


def majority_label(votes: Sequence[float]) -> float | None:
    """Return the label with more than half of the votes, None if there is none."""
    (label, count), *_ = Counter(votes).most_common(1)
    return label if 2 * count > len(votes) else None


def _derived(table: Table, criterion: str) -> Preferences:
    """Return the preferences that follow from the mean rating and from each rater's ratings."""
    rated = [sample for sample in table.samples if criterion in sample.human]
    means = {sample.key: sample.human[criterion] for sample in rated}
    ratings: dict[str, dict[Text, float]] = {"": means}
    for sample in table.samples:
        for rater, vote in named_votes(sample, criterion):
            if vote is not None:
                ratings.setdefault(rater, {})[sample.key] = vote
    return {
        rater: _preferences_from(by_text, table) for rater, by_text in ratings.items()
    }


def _preferences_from(ratings: Mapping[Text, float], table: Table) -> dict[Pair, float]:
    """Return the preferences that follow from these ratings, by item and system."""
    preferences: dict[Pair, float] = {}
    for first_system, second_system in combinations(table.systems, 2):
        for item in table.items:
            if (item, first_system) in ratings and (item, second_system) in ratings:
                gap = ratings[item, first_system] - ratings[item, second_system]
                preference = float(np.sign(round(gap, _DECIMALS)))
                preferences[item, first_system, second_system] = preference
    return preferences


def _row(
    kind: Kind,
    rater: str,
    sides: Sequence[Mapping[Pair, float]],
    bootstrap: Bootstrap,
) -> PreferenceRow | None:
    """Compare every two of these sides' preferences on their common pairs; None without any."""
    item_of_pair: list[str] = []
    distances: list[float] = []
    for first_side, second_side in combinations(sides, 2):
        for pair in first_side:
            if pair in second_side:
                item_of_pair.append(pair[0])
                distances.append(abs(first_side[pair] - second_side[pair]))
    if not distances:
        return None
    # Preferences are −1, 0 and 1: a tie against a preference has the distance 1 and counts ½.
    agreed = np.array([1 - distance / 2 for distance in distances])
    same = mean_over_items(agreed, np.array(item_of_pair))
    method = f"{_SAME}; {same.method}"
    estimate = replace(same, name="same", n=len(distances), method=method)
    votes = _votes(sides)
    kappa = agree(votes, ("kappa_linear",), bootstrap).estimates.get("kappa_linear")
    return PreferenceRow(kind, rater, estimate, kappa)


def _votes(sides: Sequence[Mapping[Pair, float]]) -> Floats:
    """Return the preferences as sides × items × pairs of systems, NaN for missing ones."""
    compared = list(dict.fromkeys(pair for side in sides for pair in side))
    items = list(dict.fromkeys(item for item, _, _ in compared))
    pairs_of_systems = list(dict.fromkeys(pair[1:] for pair in compared))
    votes = np.full((len(sides), len(items), len(pairs_of_systems)), np.nan)
    for index, side in enumerate(sides):
        for row, item in enumerate(items):
            for column, pair_of_systems in enumerate(pairs_of_systems):
                pair = (item, *pair_of_systems)
                votes[index, row, column] = side.get(pair, np.nan)
    return votes
