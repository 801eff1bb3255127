"""Disagreements of a judge and people. Oracles: gaps by hand, pandas for the confusion, scipy for each rater."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.data.ratings import read_ratings
from judge.stats.bootstrap import Bootstrap
from judge.stats.disagreements import Disagreements, disagreements
from judge.stats.rated_columns import RatedColumn, column_from_metric
from tests.factories import write_jsonl

FEW = Bootstrap(n_resamples=50)
COLUMN = Column(
    "polite",
    "criterion",
    Signature("s"),
    1.0,
    5.0,
    ("1", "2", "3", "4", "5"),
    "polite",
    values=(1, 2, 3, 4, 5),
)


def text(n: int, votes: Sequence[float | None], **fields: Any) -> Sample:
    known_votes = [vote for vote in votes if vote is not None]
    mean = {"polite": sum(known_votes) / len(known_votes)} if known_votes else {}
    ratings = {"polite": tuple(votes)} if len(votes) > 1 else {}
    return Sample(f"i{n}", "x", f"text {n}", human=mean, ratings=ratings, **fields)


def judged(scores: Mapping[int, float], column: Column = COLUMN, **known: Any) -> RatedColumn:
    rows = [
        Score(f"i{n}", "x", column.name, value, Provenance("single", **known))
        for n, value in scores.items()
    ]
    return replace(column_from_metric(column, rows, "small-judge"), criterion="polite")


def compared(samples: Sequence[Sample], judge: RatedColumn) -> Disagreements:
    (result,) = disagreements(samples, [judge], FEW)
    return result


def test_the_largest_gaps_come_first_and_ties_have_the_order_of_the_data() -> None:
    people = [2, 5, 1, 3, 4, 4, 3, 3, 3, 3]
    judge = judged(
        dict(enumerate([4, 2, 3, 3, 2, 5, 3.1, 3.2, 3.3, 3.4])), reason="short", quote="text"
    )
    result = compared([text(n, [vote]) for n, vote in enumerate(people)], judge)
    assert [(gap.item, gap.size) for gap in result.lower] == [("i1", -3), ("i4", -2)]
    # i3 agrees, and only five gaps are listed, so i7 and i6 are not.
    assert [gap.item for gap in result.higher] == ["i0", "i2", "i5", "i9", "i8"]
    first = result.higher[0]
    assert (first.judge, first.people, first.ratings) == (4.0, 2.0, ())
    assert (first.reason, first.quote, first.output) == ("short", "text", "text 0")


def test_rounding_errors_do_not_change_the_order() -> None:
    result = compared(
        [text(0, [1.2]), text(1, [1.1])], judged({0: 1.3, 1: 1.1 + (1.3 - 1.2) + 1e-12})
    )
    assert [gap.item for gap in result.higher] == ["i0", "i1"]


def test_raters_have_their_names_or_numbers() -> None:
    samples = [
        text(0, [2, None, 3], raters={"polite": ("anna", "ben", "eve")}),
        text(1, [None, 1, 2]),
    ]
    result = compared(samples, judged({0: 5, 1: 5}))
    assert [gap.ratings for gap in result.higher] == [
        (("rater 2", 1), ("rater 3", 2)),
        (("anna", 2), ("eve", 3)),
    ]
    assert result.named


def test_comments_come_from_the_file_of_the_ratings(tmp_path: Path) -> None:
    sheet = tmp_path / "ratings.jsonl"
    row = {"item": "i0", "system": "x", "criterion": "polite", "value": 2}
    comments = [{"rater": "anna", "comment": "curt"}, {"rater": "ben"}]
    comments += [
        {"rater": "anna", "comment": "again", "repeat": True},
        {"rater": "anna", "criterion": "fluent"},
    ]
    write_jsonl(sheet, [{**row, **comment} for comment in comments])
    for name in ("polite", "polite_5"):
        sample = replace(
            text(0, []),
            human={name: 2.0},
            ratings={name: (2, 2)},
            raters={name: ("anna", "ben")},
        )
        judge = replace(judged({0: 5}), criterion=name)
        (result,) = disagreements([sample], [judge], FEW, read_ratings(sheet))
        assert result.higher[0].comments == {"anna": "curt"}


@given(
    st.lists(
        st.tuples(
            st.floats(1, 5),
            st.lists(st.one_of(st.none(), st.integers(1, 5)), min_size=2, max_size=2),
        ),
        min_size=1,
        max_size=12,
    ).filter(lambda rows: any(vote is not None for _, votes in rows for vote in votes))
)
def test_the_confusion_counts_each_rating(rows: list[tuple[float, list[int | None]]]) -> None:
    samples = [text(n, votes) for n, (_, votes) in enumerate(rows)]
    confusion = compared(samples, judged({n: value for n, (value, _) in enumerate(rows)})).confusion
    assert confusion is not None
    pairs = [
        (vote, int(np.floor(value + 0.5)))
        for value, votes in rows
        for vote in votes
        if vote is not None
    ]
    people, judge = (pd.Categorical(side, range(1, 6)) for side in zip(*pairs, strict=True))
    assert [*map(list, confusion.counts)] == pd.crosstab(
        people, judge, dropna=False
    ).to_numpy().tolist()
    apart = np.array([abs(p - j) for p, j in pairs])
    assert confusion.n == len(pairs)
    assert [confusion.share(distance) for distance in (0, 1)] == pytest.approx(
        [(apart == 0).mean(), (apart <= 1).mean()]
    )


def test_the_most_probable_level_is_counted_against_the_mean_rating() -> None:
    confusion = compared([text(0, [3.5])], judged({0: 3.4}, argmax="5")).confusion
    assert confusion is not None
    assert confusion.counts[3] == (0, 0, 0, 0, 1)


def test_labels_of_words_are_ordered_by_their_values() -> None:
    column = replace(COLUMN, low=0.0, high=1.0, labels=("pass", "fail"), values=(1.0, 0.0))
    confusion = compared([text(0, [1, 0])], judged({0: 0.8}, column)).confusion
    assert confusion is not None
    assert (confusion.labels, confusion.counts) == (("fail", "pass"), ((0, 1), (0, 1)))


@pytest.mark.parametrize("labels", [(), tuple(map(str, range(1, 13)))])
def test_a_scale_of_many_levels_has_no_confusion(labels: tuple[str, ...]) -> None:
    column = replace(COLUMN, high=12.0, labels=labels, values=tuple(map(float, labels)))
    result = compared([text(0, [3])], judged({0: 4}, column))
    assert result.confusion is None
    assert [gap.size for gap in result.higher] == [1]


def test_ratings_on_another_scale_have_no_gaps() -> None:
    samples = [text(n, [10 * n + 10, 10 * n + 20]) for n in range(4)]
    result = compared(samples, judged({0: 1, 1: 2, 2: 3, 3: 5}))
    assert (result.higher, result.lower, result.confusion) == ((), (), None)
    assert [rater.difference for rater in result.raters] == [None, None]
    assert [rater.spearman["all-texts"].value for rater in result.raters] == [1, 1]


def test_each_rater_is_compared_with_the_judge() -> None:
    rng = np.random.default_rng(3)
    votes = rng.integers(1, 6, (30, 2)).tolist()
    scores = rng.integers(1, 6, 30).tolist()
    samples = [text(n, row, raters={"polite": ("anna", "ben")}) for n, row in enumerate(votes)]
    samples[0] = text(0, [None, 3], raters={"polite": ("anna", "ben")})
    raters = compared(samples, judged(dict(enumerate(scores)))).raters
    assert [(rater.rater, rater.texts) for rater in raters] == [("ben", 30), ("anna", 29)]
    ratings = [row[0] for row in votes[1:]]
    assert raters[1].spearman["all-texts"].value == pytest.approx(
        spearmanr(scores[1:], ratings).statistic
    )
    difference = raters[1].difference
    assert difference is not None
    assert difference.value == pytest.approx(np.mean(scores[1:]) - np.mean(ratings))
    assert difference.low < difference.value < difference.high  # type: ignore[operator]


def test_texts_without_a_score_or_a_rating_do_not_count() -> None:
    samples = [text(0, [1]), text(1, []), text(2, [2])]
    assert [gap.item for gap in compared(samples, judged({1: 5, 2: 5})).higher] == ["i2"]
    assert disagreements(samples, [judged({1: 5})], FEW) == ()


def test_a_single_rater_is_not_compared() -> None:
    assert compared([text(0, [1, None]), text(1, [2, None])], judged({0: 5, 1: 4})).raters == ()
