"""Measure how often a ranking's judge and people prefer the same text of a pair, and how often people do.

A preference is +1 for the pair's first text, −1 for the second and 0 for a tie; the first text is that of the system
which comes first in the data. People's preferences are stated (`judge.data.ratings.PairRating`), or else follow from
the ratings of the two texts.
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
from judge.stats.bootstrap import Bootstrap
from judge.stats.human_agreement import RatedColumn, judges_of
from judge.stats.pairwise import TIE, Orders, complete_pairs, mean_over_items, verdict
from judge.stats.raters import named_votes
from judge.table import Table

Pair = tuple[str, str, str]
"""Item and two systems, in the order of the data."""
Preferences = dict[str, dict[Pair, float]]
"""By rater; the empty name is people's majority, or their mean rating."""
_VALUES = {"first": 1.0, "tie": 0.0, "second": -1.0}
_DECIMALS = 9  # of a difference of means, whose rounding errors are no preference
_SAME = "share of pairs with the same preference, a tie against a preference counts half"


@dataclass(frozen=True, slots=True)
class PreferenceRow:
    """The agreement of two sides on the pairs of texts that both have a preference about.

    `name` is a rater, or empty for all people (kind `people`) and for people among themselves (kind `raters`: every two
    of them). `same` is the share of pairs with the same preference, where a tie against a preference counts
    half; `kappa` corrects it for chance (Cohen's kappa, linear weights), None if it is undefined. Their `n` counts
    pairs, or for `raters` pairs of texts and raters.
    """

    kind: Literal["people", "rater", "raters"]
    name: str
    same: Estimate
    kappa: Estimate | None


@dataclass(frozen=True, slots=True)
class PreferenceAgreement:
    """The agreement of one judge's preferences with people's on one criterion.

    `derived` preferences follow from ratings of single texts. `excluded` pairs have a text that was used to make the
    prompt. On `no_majority` pairs that the judge compared no answer has more than half of the raters' votes; they count
    for each rater only.
    """

    criterion: str
    judge: str
    rows: tuple[PreferenceRow, ...]
    derived: bool
    excluded: int = 0
    no_majority: int = 0


def preference_agreement(
    table: Table, stated: Sequence[PairRating], model: str, *, orders: Orders, bootstrap: Bootstrap
) -> tuple[PreferenceAgreement, ...]:
    """Compare a ranking's preferences with people's, for every judge's column whose criterion people rated.

    The judge is compared with people's majority and with each rater, and the raters with each other.
    A pair that lacks an answer in one of `orders`, and identical texts, about which no judge was asked, do not count.
    People's majority is the answer (first, second or tie) with more than half of the raters' votes; a pair without one
    has none. For ratings of single texts, people prefer the text with the higher mean rating.
    """
    agreements = []
    for judge in judges_of(table, model):
        people, excluded = _stated(
            table, [rating for rating in stated if rating.criterion == judge.criterion], judge
        )
        if derived := not (people or excluded):
            people = _derived(table, judge.criterion)
        column = judge.scale.name if judge.scale else ""
        scores = [
            s for s in table.column_scores(column) if s.rival and s.provenance.method != IDENTICAL
        ]
        answers, _ = complete_pairs(scores, table.systems, orders)
        judged = {
            pair: float(np.sign(verdict(*both).preference - TIE)) for pair, both in answers.items()
        }
        raters = [name for name in people if name]
        names = list(people) if len(raters) > 1 else [*people][:1]
        rows = [
            _row("rater" if name else "people", name, [judged, people[name]], bootstrap)
            for name in names
        ]
        if len(raters) > 1:
            rows.append(_row("raters", "", [people[name] for name in raters], bootstrap))
        shared = tuple(row for row in rows if row is not None)
        compared = {pair for name in raters for pair in people[name] if pair in judged}
        no_majority = 0 if derived else len(compared - people.get("", {}).keys())
        if any(row.kind != "raters" for row in shared):
            agreements.append(
                PreferenceAgreement(
                    judge.criterion, judge.name, shared, derived, excluded, no_majority
                )
            )
    return tuple(agreements)


def _stated(
    table: Table, ratings: Sequence[PairRating], judge: RatedColumn
) -> tuple[Preferences, int]:
    """Return people's stated preferences, and the number of pairs whose texts the prompt has used."""
    place = {system: at for at, system in enumerate(table.systems)}
    samples = {sample.key: sample for sample in table.samples}
    seen = frozenset(judge.scale.seen if judge.scale else ())
    preferences: Preferences = {}
    used: set[Pair] = set()
    for rating in ratings:
        texts = [samples.get((rating.item, system)) for system in (rating.first, rating.second)]
        if rating.repeat or None in texts:
            continue
        swapped = place[rating.first] > place[rating.second]
        first, second = (rating.second, rating.first) if swapped else (rating.first, rating.second)
        pair = rating.item, first, second
        if any(text and text.digests & seen for text in texts):
            used.add(pair)
        else:
            value = -_VALUES[rating.value] if swapped else _VALUES[rating.value]
            preferences.setdefault(rating.rater, {})[pair] = value
    votes: dict[Pair, list[float]] = {}
    for by_pair in preferences.values():
        for pair, value in by_pair.items():
            votes.setdefault(pair, []).append(value)
    majority = {
        pair: label
        for pair, values in votes.items()
        if (label := majority_label(values)) is not None
    }
    return ({"": majority} | preferences if preferences else {}), len(used)


def majority_label(votes: Sequence[float]) -> float | None:
    """Return the label with more than half of the votes, None if there is none."""
    (label, count), *_ = Counter(votes).most_common(1)
    return label if 2 * count > len(votes) else None


def _derived(table: Table, criterion: str) -> Preferences:
    """Return the preferences that follow from ratings of single texts."""
    means = {
        sample.key: sample.human[criterion] for sample in table.samples if criterion in sample.human
    }
    ratings: dict[str, dict[tuple[str, str], float]] = {"": means}
    for sample in table.samples:
        for name, vote in named_votes(sample, criterion):
            if vote is not None:
                ratings.setdefault(name, {})[sample.key] = vote
    return {
        name: {
            (item, first, second): float(
                np.sign(round(given[item, first] - given[item, second], _DECIMALS))
            )
            for first, second in combinations(table.systems, 2)
            for item in table.items
            if (item, first) in given and (item, second) in given
        }
        for name, given in ratings.items()
    }


def _row(
    kind: Literal["people", "rater", "raters"],
    name: str,
    sides: Sequence[Mapping[Pair, float]],
    bootstrap: Bootstrap,
) -> PreferenceRow | None:
    """Compare every two of these sides on the pairs of texts that both have; None if there are none."""
    shared = [
        (pair, abs(a[pair] - b[pair])) for a, b in combinations(sides, 2) for pair in a if pair in b
    ]
    if not shared:
        return None
    items = list(dict.fromkeys(item for side in sides for item, *_ in side))
    systems = list(dict.fromkeys(tuple(two) for side in sides for _, *two in side))
    cells = [
        side.get((item, first, second), np.nan)
        for side in sides
        for item in items
        for first, second in systems
    ]
    votes = np.array(cells).reshape(len(sides), len(items), len(systems))
    agreed = np.array([1 - distance / 2 for _, distance in shared])
    same = mean_over_items(agreed, np.array([item for (item, *_), _ in shared]))
    estimate = replace(same, name="same", n=len(shared), method=f"{_SAME}; {same.method}")
    kappa = agree(votes, ("kappa_linear",), bootstrap).estimates.get("kappa_linear")
    return PreferenceRow(kind, name, estimate, kappa)
