"""Noun phrases of English by rules. The sentences and their phrases were written and read by a person."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.metrics.qags import english_noun_phrases


def phrases(text: str) -> list[str]:
    return [text[start:end] for start, end in english_noun_phrases.spans(text)]


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
        ("A deal of $3.5 billion saved 3 million jobs.", ["deal", "$3.5 billion", "3 million jobs"]),
        ("The 3.5 million jobs went, three hundred in Oslo.", ["3.5 million jobs", "three hundred", "Oslo"]),
        ("At least seven died, and the two met.", ["seven"]),  # "the two" names nobody
        ("US troops left, as the WHO and IT staff said.", ["US troops", "WHO", "IT staff"]),
        ("He did NOT resign, said the minister.", ["minister"]),
        ("Long Beach and Home Office staff went home.", ["Long Beach", "Home Office staff"]),
        ("Yesterday Anna met Shane Long in the Far East .", ["Anna", "Shane Long", "Far East"]),
        ("The 1990s marked change.", ["1990s", "change"]),
        ("The 2020s saw growth after three hidden debts.", ["2020s", "growth", "three hidden debts"]),
        ("iPhone 15 Pro costs $999.", ["iPhone 15 Pro", "$999"]),
        ("On Tuesday Tesla opened a plant.", ["Tuesday", "Tesla", "plant"]),
        ("In 2019 Apple grew, on 4 May Tesla.", ["2019", "Apple", "4 May", "Tesla"]),
        ("The Sunday Times praised Black Friday sales.", ["Sunday Times", "Black Friday sales"]),
        ("She co-founded WorkBar after a long-running dispute.", ["WorkBar", "long-running dispute"]),
    ],
)
def test_phrases(text: str, expected: list[str]) -> None:
    assert phrases(text) == expected


def test_capitals_say_nothing_where_most_words_have_them() -> None:
    assert phrases("Storm Hits Coast And Many Roads Are Closed") == ["Storm", "Coast", "Roads"]
    assert phrases("US Troops Leave Oslo As WHO Warns") == ["US Troops", "Oslo", "WHO"]
    assert phrases("TROOPS LEAVE US BEHIND AS IT RAINS") == ["TROOPS", "RAINS"]


def test_a_phrase_is_of_six_words_at_most() -> None:
    assert phrases("stone " * 30) == ["stone stone stone stone stone stone"]


def test_a_first_word_is_a_name_where_the_text_has_it_as_one() -> None:
    assert phrases("Mark won. The judges praised Mark and his coach.") == ["Mark", "judges", "Mark", "coach"]
    assert phrases("Mark the page. The judges saw a mark.") == ["page", "judges", "mark"]


@pytest.mark.parametrize(
    "text",
    [
        "Die Fähre verließ Oslo am Montag mit zweihundert Passagieren an Bord.",
        "Le ferry a quitté Oslo lundi avec deux cents passagers à bord.",
        "El transbordador salió de Oslo el lunes con doscientos pasajeros a bordo.",
        "De veerboot verliet Oslo op maandag met tweehonderd passagiers aan boord.",
        "Färjan lämnade Oslo på måndagen med tvåhundra passagerare ombord.",
        "Prom opuścił Oslo w poniedziałek z dwustu pasażerami na pokładzie.",
    ],
)
def test_other_languages_in_latin_letters(text: str) -> None:
    assert english_noun_phrases.is_other_language(text)


@pytest.mark.parametrize(
    "text",
    [
        "Storm hits coast: 12 dead, roads closed, schools shut",  # no function word
        "Zoë Ångström of Malmö saw the ferry leave Århus in fog.",
        "Vincent van der Berg plays for Paris, Las Palmas, La Paz, El Paso",
        "Die Fähre verließ Oslo",  # too short to tell
        "",
    ],
)
def test_english_is_not_another_language(text: str) -> None:
    assert not english_noun_phrases.is_other_language(text)


def test_closed_classes_are_function_words() -> None:
    assert [
        word for word in ["the", "harbour", "was", "not", "near", "it"] if not english_noun_phrases.is_function(word)
    ] == ["harbour"]


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
    spans = english_noun_phrases.spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
