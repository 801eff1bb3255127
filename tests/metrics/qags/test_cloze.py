"""Gaps and what fills them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import text
from judge.metrics.qags import answer_candidates
from judge.metrics.qags.answer_candidates import Nouns
from judge.metrics.qags.cloze import GAP, Cloze, Lexical
from judge.metrics.qags.pipeline import UNANSWERABLE, ModelError

SOURCE = "Anna Berg sailed to Oslo on Friday. The ferry was three hours late. A storm had closed the harbour of Bergen."
JAPANESE = "いつもの道を歩いていたら、交番の隣に喫茶店を発見した。静かな店で、コーヒーがおいしかった。"


@pytest.fixture(autouse=True, scope="module")
def _rules() -> Iterator[None]:
    """English by rules, whatever models are installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_candidates, "find_spec", lambda name: None)
        yield


def question(theme: str, output: str) -> str | ModelError:
    (found,) = Cloze(Nouns()).questions([(theme, output)])
    return found


def answer(asked: str, source: str) -> str | ModelError:
    (found,) = Lexical(Nouns()).answers([(asked, source)])
    return found


@pytest.mark.parametrize(
    ("theme", "output", "expected"),
    [
        ("ferry", "It rained. The ferry left, and the ferry sank.", "The ____ left, and the ferry sank."),
        ("ferry", "The ferry crew slept. The ferry sank.", "The ____ sank."),  # where it is a phrase by itself
        ("crew", "The ferry crew slept.", "The ferry ____ slept."),
        ("art", "The party liked art.", "The party liked ____."),
        ("par", "The party slept.", "The ____ty slept."),  # inside a word only where it is nowhere else
        ("OSLO", "They saw Oslo.", "They saw ____."),
    ],
)
def test_the_gap_is_where_the_theme_was(theme: str, output: str, expected: str) -> None:
    assert question(theme, output) == expected


@pytest.mark.parametrize("theme", ["harbour", ""])
def test_a_theme_that_is_not_there_has_no_question(theme: str) -> None:
    found = question(theme, "The ferry sank.")
    assert isinstance(found, ModelError)
    assert found.error == "NoQuestion"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("____ sailed to Oslo on Friday.", "Anna Berg"),
        ("Anna Berg sailed to ____ on Friday.", "Oslo"),
        ("She sailed to Oslo on ____.", "Friday"),
        ("The ferry was ____ late.", "three hours"),
        ("A storm closed the ____ of Bergen.", "harbour"),
        ("The train to ____ was cancelled by snow.", UNANSWERABLE),  # no word of content in common
        ("The ____ was there.", UNANSWERABLE),
    ],
)
def test_the_noun_that_fits_the_gap(asked: str, expected: str) -> None:
    assert answer(asked, SOURCE) == expected


@pytest.mark.parametrize(
    ("asked", "source", "expected"),
    [
        # The sentence with most words of the question does not hold the answer.
        (
            "The ferry Alba left Norholm with 212 passengers and its ____ failed in fog.",
            "The ferry Alba left Norholm with 212 passengers. Its engine failed in fog.",
            "engine",
        ),
        ("____ won the race.", "Bergen saw the day on which Oslo won the race.", "Oslo"),  # the nearest
        ("Ships sail from ____.", "Ships sail to Oslo. Ships sail from Bergen.", "Bergen"),  # by a function word
        ("The ____ delays ferries.", "A storm delayed a ferry. A strike closed factories.", "storm"),  # by stems
        ("Anna left ____ on Monday.", "Anna left Norholm at seven on Friday.", "Norholm"),
    ],
)
def test_words_near_the_gap_decide(asked: str, source: str, expected: str) -> None:
    assert answer(asked, source) == expected


def test_an_answer_is_not_what_the_question_says() -> None:
    assert answer("Oslo saw Anna Berg, who sailed to ____ .", "Anna Berg sailed to Oslo.") == UNANSWERABLE


def test_a_sentence_of_any_length_is_read_around_its_phrases() -> None:
    far = "the old ferry and a red boat , " * 600
    assert answer("The captain of the ____ sang.", f"{far} the captain of the Aurora sang , {far}") == "Aurora"


def test_in_japanese() -> None:
    if not text.installed("ja"):
        pytest.skip("needs the packages of ja")
    for theme, output, expected in [
        ("隣", "交番の隣に喫茶店がある", "隣"),
        ("病院", "交番の隣に病院がある", "喫茶店"),
        ("店員", "店員は若い。", UNANSWERABLE),
    ]:
        asked = question(theme, output)
        assert isinstance(asked, str)
        assert asked.count(GAP) == 1
        assert answer(asked, JAPANESE) == expected


def test_without_a_gap_there_is_nothing_to_fill() -> None:
    found = answer("Where did Anna sail?", SOURCE)
    assert isinstance(found, ModelError)
    assert found.error == "NoGap"


def test_signatures() -> None:
    reader = Lexical(Nouns("en"))
    assert (Cloze(Nouns()).signature, reader.signature) == ("cloze", f"lexical-{Nouns('en').signature}")


WORDS = [
    "Anna",
    "Berg",
    "sailed",
    "to",
    "Oslo",
    "on",
    "Friday",
    ".",
    "the",
    "ferry",
    "was",
    "late",
    ",",
    "storm",
    "harbour",
    "of",
    "____",
]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)


@given(SENTENCES, st.one_of(SENTENCES, st.text(max_size=40)))
def test_an_answer_is_a_phrase_of_the_text_and_a_question_of_a_text_is_answered_by_it(asked: str, source: str) -> None:
    found = answer(GAP + asked, source)
    assert isinstance(found, str)
    assert found in source


@pytest.mark.parametrize(
    "source", [SOURCE, "Two men robbed a bank in Leeds. The bank lost £3m, and police found a car."]
)
def test_a_text_gives_back_its_own_themes(source: str) -> None:
    finder = Nouns()
    (themes,) = finder.themes([source])
    assert isinstance(themes, list)
    assert len(themes) > 5
    questions = [str(one) for one in Cloze(finder).questions([(theme, source) for theme in themes])]
    assert Lexical(finder).answers([(one, source) for one in questions]) == themes
