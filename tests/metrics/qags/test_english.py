"""Noun phrases of English by rules. The sentences and their phrases were written and read by a person."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.metrics.qags import english


def phrases(text: str) -> list[str]:
    return [text[start:end] for start, end in english.spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The ferry reached the old harbour three hours late.", ["ferry", "old harbour", "three hours"]),
        ("Anna Berg moved to Oslo in May 2019.", ["Anna Berg", "Oslo", "May 2019"]),
        ("anna berg paid $3.5m for a house near oslo .", ["anna berg", "$3.5m", "house", "oslo"]),
        ("The Bank of England raised its rate by 0.5% on Thursday.", ["Bank of England", "rate", "0.5%", "Thursday"]),
        ("The injured man was taken to hospital by a growing crowd.", ["injured man", "growing crowd"]),
        ("She will visit the museum and they want to help children.", ["museum", "children"]),
        ("Rovers beat city 2-1 after extra time", ["Rovers", "city", "2-1", "extra time"]),
        ("The club hopes to buy it, and his plans surprised fans.", ["club", "plans", "fans"]),
        ("Nobody knows why he is often so very happy.", []),
        ("The team 's captain and the team's doctor don't agree.", ["team", "captain", "team", "doctor"]),
    ],
)
def test_phrases(text: str, expected: list[str]) -> None:
    assert phrases(text) == expected


def test_capitals_say_nothing_where_most_words_have_them() -> None:
    assert phrases("Storm Hits Coast And Many Roads Are Closed") == ["Storm", "Coast", "Roads"]


def test_a_first_word_is_a_name_where_the_text_has_it_as_one() -> None:
    assert phrases("Mark won. The judges praised Mark and his coach.") == ["Mark", "judges", "Mark", "coach"]
    assert phrases("Mark the page. The judges saw a mark.") == ["page", "judges", "mark"]


def test_closed_classes_are_function_words() -> None:
    assert [word for word in ["the", "harbour", "was", "not", "near", "it"] if not english.is_function(word)] == [
        "harbour"
    ]


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from(
                [
                    "The",
                    "the",
                    "'s",
                    "of",
                    "to",
                    "Oslo",
                    "plans",
                    "visit",
                    "3,5",
                    "2-1",
                    "%",
                    "n't",
                    ".",
                    ",",
                    "old",
                    "$7m",
                ]
            )
        ).map(" ".join),
    )
)
def test_phrases_of_any_text_stand_apart_and_begin_and_end_with_a_letter_or_sign(text: str) -> None:
    spans = english.spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
