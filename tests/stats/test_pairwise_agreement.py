"""Agreement of a ranking's preferences with people's. Oracles: shares by hand, and a second kappa."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.core.text_digests import seen_digest
from judge.data.ratings import PairRating, Preference
from judge.report.views.preferences import blocks, sentences
from judge.stats.bootstrap import Bootstrap
from judge.stats.pairwise_agreement import (
    PreferenceAgreement,
    PreferenceRow,
    majority_label,
    preference_agreement,
)
from judge.table import Table
from tests.factories import has_line

ITEMS, SYSTEMS = [f"i{n}" for n in range(6)], ("a", "b", "c")
PAIRS = [(item, *pair) for item in ITEMS for pair in combinations(SYSTEMS, 2)]
SIGN = {"first": 1, "tie": 0, "second": -1}
COLUMN = Column("overall", "criterion", Signature("overall", "x"), low=0.0, high=1.0)
sides = st.lists(
    st.sampled_from(["first", "tie", "second"]), min_size=len(PAIRS), max_size=len(PAIRS)
)


def table(
    judged: list[Preference], samples: list[Sample] | None = None, column: Column = COLUMN
) -> Table:
    """Return a judge with these preferences in both orders. For a tie, the answer changes with the order."""
    scores = []
    for (item, first, second), side in zip(PAIRS, judged, strict=True):
        values = {"first": (1.0, 0.0), "tie": (1.0, 1.0), "second": (0.0, 1.0)}[side]
        scores.append(Score(item, first, "overall", values[0], Provenance("single"), second))
        scores.append(Score(item, second, "overall", values[1], Provenance("single"), first))
    texts = samples or [
        Sample(item, system, f"{item} {system}") for item in ITEMS for system in SYSTEMS
    ]
    return Table(tuple(texts), (column,), tuple(scores))


def stated(
    values: list[Preference], rater: str = "anna", *, swapped: bool = False
) -> list[PairRating]:
    mirrored: dict[Preference, Preference] = {"first": "second", "second": "first", "tie": "tie"}
    return [
        PairRating(item, second, first, rater, "overall", mirrored[value])
        if swapped
        else PairRating(item, first, second, rater, "overall", value)
        for (item, first, second), value in zip(PAIRS, values, strict=True)
    ]


def compared(ranked: Table, ratings: list[PairRating]) -> PreferenceAgreement:
    (agreement,) = preference_agreement(ranked, ratings, "m", orders=2, bootstrap=Bootstrap(50))
    return agreement


def kappa(a: list[int], b: list[int]) -> float:
    """Return Cohen's kappa with linear weights from the 3 × 3 table (Cohen 1968)."""
    weights = np.abs(np.subtract.outer([-1, 0, 1], [-1, 0, 1])) / 2
    observed = np.zeros((3, 3))
    np.add.at(observed, (np.array(a) + 1, np.array(b) + 1), 1 / len(a))
    expected = (weights * np.outer(observed.sum(axis=1), observed.sum(axis=0))).sum()
    return float(1 - (weights * observed).sum() / expected) if expected else float("nan")


@given(sides, sides, st.booleans())
def test_agreement_with_one_rater_equals_the_definitions(
    judged: list[Preference], votes: list[Preference], swapped: bool
) -> None:
    agreement = compared(table(judged), stated(votes, swapped=swapped))
    (row,) = agreement.rows
    by_judge, by_rater = [SIGN[side] for side in judged], [SIGN[side] for side in votes]
    same = np.mean([1 - abs(a - b) / 2 for a, b in zip(by_judge, by_rater, strict=True)])
    assert (row.kind, row.same.n, agreement.derived) == ("people", len(PAIRS), False)
    assert row.same.value == pytest.approx(same)
    assert row.same.low is not None
    assert row.same.high is not None
    assert row.same.low <= row.same.value <= row.same.high
    expected = kappa(by_judge, by_rater)
    assert (row.kappa is None) == bool(np.isnan(expected))
    if row.kappa is not None:
        assert row.kappa.value == pytest.approx(expected)


def test_two_orders_that_prefer_different_texts_are_a_tie_whichever_is_stronger() -> None:
    ranked = table(["first"] * len(PAIRS))
    stronger_when_first = {"a": 0.9, "b": 0.6, "c": 0.6}
    scores = tuple(
        replace(score, value=stronger_when_first[score.system]) for score in ranked.scores
    )
    agreement = compared(replace(ranked, scores=scores), stated(["first"] * len(PAIRS)))
    assert agreement.rows[0].same.value == 0.5


def by_kind(agreement: PreferenceAgreement) -> dict[tuple[str, str], PreferenceRow]:
    return {(row.kind, row.name): row for row in agreement.rows}


def test_the_judge_is_compared_with_the_majority_and_each_rater() -> None:
    judged: list[Preference] = ["first"] * len(PAIRS)
    anna = stated(["first"] * len(PAIRS), "anna")
    ben = stated(["first"] * len(PAIRS), "ben")
    cleo = stated(["second"] * len(PAIRS), "cleo")
    repeated = [replace(rating, value="second", repeat=True) for rating in anna]
    rows = by_kind(compared(table(judged), [*anna, *ben, *cleo, *repeated]))
    assert {key: row.same.value for key, row in rows.items()} == {
        ("people", ""): 1.0, ("rater", "anna"): 1.0, ("rater", "ben"): 1.0, ("rater", "cleo"): 0.0,
        ("raters", ""): pytest.approx(1 / 3),
    }  # fmt: skip
    assert rows["raters", ""].same.n == 3 * len(PAIRS)


votes = st.lists(sides, min_size=2, max_size=5)


@given(sides, votes)
@settings(max_examples=15, deadline=None)
def test_the_majority_has_more_than_half_of_the_votes(
    judged: list[Preference], votes: list[list[Preference]]
) -> None:
    """The oracle is pandas: the label of a pair whose share of the votes is above one half."""
    ratings = [each for k, side in enumerate(votes) for each in stated(side, f"r{k}")]
    agreement = compared(table(judged), ratings)
    shares = pd.DataFrame(votes).apply(lambda column: column.value_counts(normalize=True))
    majority = shares.idxmax().where(shares.max() > 0.5)
    assert agreement.no_majority == majority.isna().sum()
    distance = pd.Series(judged).map(SIGN) - majority.map(SIGN)
    same = 1 - distance.abs().dropna() / 2
    row = by_kind(agreement).get(("people", ""))
    first, *_ = sentences([agreement])
    if row is None:
        assert majority.isna().all()
        assert has_line(first, "no majority", f"{len(PAIRS)} pairs", "m compared")
    else:
        assert (row.same.n, row.same.value) == (len(same), pytest.approx(same.mean()))
        assert has_line(first, "m agrees with people", f"{round(100 * same.mean())}%")
        assert first.endswith(f"of {len(same)} {'pair' if len(same) == 1 else 'pairs'}.")


@pytest.mark.parametrize(
    ("votes", "label"),
    [
        (("tie", "tie", "first"), 0.0),
        (("first", "second", "tie"), None),
        (("first", "second"), None),
        (("second", "second", "first", "tie"), None),
        (("second", "second", "second", "first", "tie"), -1.0),
        (("first",), 1.0),
    ],
)
def test_the_majority_label_of_votes(votes: tuple[Preference, ...], label: float | None) -> None:
    assert majority_label([SIGN[each] for each in votes]) == label


def test_pairs_without_a_majority_are_noted() -> None:
    judged: list[Preference] = ["first"] * len(PAIRS)
    split: list[Preference] = ["second", *["first"] * (len(PAIRS) - 1)]
    ratings = [*stated(judged, "anna"), *stated(split, "ben")]
    agreement = compared(table(judged), ratings)
    assert (agreement.no_majority, agreement.rows[0].same.n, agreement.rows[0].same.value) == (
        1,
        len(PAIRS) - 1,
        1.0,
    )
    *_, paragraph = blocks([agreement])
    assert has_line(paragraph.text, "overall: 1 pair", "without a majority")


def test_preferences_follow_from_ratings_of_single_texts() -> None:
    ratings = {"a": (4.0, 2.0), "b": (3.0, 3.0), "c": (3.0, None)}
    texts = [
        Sample(item, s, f"{item} {s}", human={"overall": {"a": 3.0, "b": 3.0, "c": 3.0}[s]},
               ratings={"overall": ratings[s]}, raters={"overall": ("anna", "ben")})
        for item in ITEMS for s in SYSTEMS
    ]  # fmt: skip
    agreement = compared(table(["first"] * len(PAIRS), texts), [])
    rows = by_kind(agreement)
    assert agreement.derived
    # The means are equal: three ties. Anna prefers a to b and c; ben prefers b to a, and did not rate c.
    assert rows["people", ""].same.value == 0.5
    assert (rows["rater", "anna"].same.value, rows["rater", "anna"].same.n) == (
        pytest.approx(2.5 / 3),
        len(PAIRS),
    )
    assert (rows["rater", "ben"].same.value, rows["rater", "ben"].same.n) == (0.0, len(ITEMS))
    assert (rows["raters", ""].same.value, rows["raters", ""].same.n) == (0.0, len(ITEMS))


def test_pairs_with_a_used_text_do_not_count() -> None:
    column = replace(COLUMN, seen=(seen_digest(None, "i0 a"),))
    agreement = compared(
        table(["first"] * len(PAIRS), column=column),
        stated(["second"] * 2 + ["first"] * (len(PAIRS) - 2)),
    )
    assert (agreement.excluded, agreement.rows[0].same.n, agreement.rows[0].same.value) == (
        2,
        len(PAIRS) - 2,
        1.0,
    )


def test_incomplete_and_identical_pairs_do_not_count() -> None:
    whole = table(["first"] * len(PAIRS))
    first, _, *rest = whole.scores
    identical = replace(rest[-1], value=0.5, provenance=Provenance("identical", n=0))
    incomplete = replace(whole, scores=(first, *rest[:-1], identical))
    agreement = compared(incomplete, stated(["first"] * len(PAIRS)))
    assert agreement.rows[0].same.n == len(PAIRS) - 2


def test_agreement_is_empty_without_preferences_on_the_criterion() -> None:
    ranked = table(["first"] * len(PAIRS))
    assert preference_agreement(ranked, [], "m", orders=2, bootstrap=Bootstrap(10)) == ()
    of_tone = [replace(rating, criterion="tone") for rating in stated(["first"] * len(PAIRS))]
    assert preference_agreement(ranked, of_tone, "m", orders=2, bootstrap=Bootstrap(10)) == ()


def test_a_judge_whose_likeliest_label_is_the_tie_ties() -> None:
    column = replace(COLUMN, labels=("A", "B", "C"), values=(1.0, 0.0, 0.5))
    ranked = table(["first"] * len(PAIRS), column=column)
    scores = [
        replace(
            score,
            value=0.5 + (score.value - 0.5) / 50,
            provenance=Provenance("logprobs", argmax="C"),
        )
        for score in ranked.scores
    ]
    people = stated(["tie"] * len(PAIRS))
    agreement = compared(replace(ranked, scores=tuple(scores)), people)
    assert agreement.rows[0].same.value == 1
