"""Texts with default criteria, and the error message for texts without."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import ConfigError
from judge.core.messages import speaking_to
from judge.core.records import Sample
from judge.criteria import (
    builtin_rated,
    default_criteria,
    no_default_of_unwritten,
    proposed_criteria,
)
from tests.factories import has_line

SUMMARY_CRITERIA = ("relevance", "coherence", "consistency", "fluency")
ARTICLE = "The council met on Monday and voted to mend the old bridge in May, after a long debate."
SUMMARY = "The bridge will be mended."
QUESTION, ANSWER = (
    "Where is my parcel?",
    "Sorry for the delay. It arrives on Friday, with a refund.",
)
ENGLISH = "The match was cancelled because it rained in Tokyo today. It will be played on Sunday."
TRANSLATIONS = {
    "de": "Das Spiel wurde abgesagt, weil es heute in Tokio regnete. Es wird am Sonntag gespielt.",
    "ru": "Матч отменили, потому что сегодня в Токио шёл дождь. Его сыграют в воскресенье.",
    "ja": "今日は東京で雨が降ったため、試合は中止になりました。試合は日曜日に行われます。",
    "ko": "오늘 도쿄에 비가 와서 경기가 취소되었다. 경기는 일요일에 열린다.",
    "zh": "由于今天东京下雨，比赛被取消了。比赛将于星期日举行。",
    "th": "การแข่งขันถูกยกเลิกเพราะวันนี้ฝนตกที่โตเกียว การแข่งขันจะจัดขึ้นในวันอาทิตย์",
}
JAPANESE_ARTICLE = "市議会は月曜日に会合を開き、長い議論の末、古い橋を五月に修理することを決めた。費用は県が負担する。"


def texts(*pairs: tuple[str | None, str]) -> list[Sample]:
    """Return a sample for each pair of a source and an output."""
    return [Sample(str(n), "s", output, source) for n, (source, output) in enumerate(pairs)]


@pytest.mark.parametrize(
    "rows",
    [
        texts((ARTICLE, SUMMARY)),
        texts((ARTICLE, SUMMARY), (ARTICLE, SUMMARY), (None, SUMMARY)),
        texts((ARTICLE, SUMMARY), (ARTICLE, SUMMARY), (QUESTION, ANSWER)),
        texts((ARTICLE, SUMMARY), (ARTICLE, "")),
        texts((JAPANESE_ARTICLE, "古い橋は五月に修理される。")),
        texts(("one two three four", "one two")),
    ],
    ids=["all", "one lacks its source", "one answer", "one is empty", "Japanese", "exactly twice"],
)
def test_texts_with_much_longer_sources_have_the_criteria_of_summaries(rows: list[Sample]) -> None:
    assert default_criteria(rows) == SUMMARY_CRITERIA


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (texts((QUESTION, ANSWER)), "source is 0.36 times"),
        (texts((ARTICLE, ARTICLE)), "source is 1 times"),
        (texts(("one two three", "one two")), "source is 1.5 times"),
        (texts(("a " * 1999, "a " * 1000)), "source is 1.99 times"),
        (texts((ARTICLE, SUMMARY), (QUESTION, ANSWER)), "source is 0.36 times"),
        (texts((None, ANSWER)), "have no source"),
        (texts((" ", ANSWER), ("", ANSWER)), "have no source"),
        (texts((ARTICLE, SUMMARY), (None, SUMMARY), (None, SUMMARY)), "1 of these 3 texts"),
        (texts((ARTICLE, ""), (ARTICLE, "…")), "have no words"),
    ],
)
def test_other_texts_have_no_default_criteria(rows: list[Sample], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        default_criteria(rows)


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_a_translation_is_not_a_summary(language: str) -> None:
    for rows in (
        texts((ENGLISH, TRANSLATIONS[language])),
        texts((TRANSLATIONS[language], ENGLISH)),
    ):
        lines = error_message(rows).splitlines()
        assert has_line(lines, "--criteria relevance,consistency,fluency", "translations")


@given(st.integers(1, 60), st.integers(1, 60))
def test_a_summary_has_at_most_half_the_words_of_its_source(source: int, output: int) -> None:
    rows = texts(("word " * source, "word " * output))
    if source >= 2 * output:
        assert default_criteria(rows) == SUMMARY_CRITERIA
    else:
        with pytest.raises(ConfigError):
            default_criteria(rows)


def error_message(rows: list[Sample], **options: object) -> str:
    with pytest.raises(ConfigError) as caught:
        default_criteria(rows, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_the_message_names_criteria_that_suit_the_texts() -> None:
    with_source = error_message(texts((QUESTION, ANSWER)), metrics=True)
    assert "--criteria answers_request,complete" in with_source
    assert "--criteria relevance,consistency,fluency" in with_source
    assert '--criteria "helpful: Does the answer help?"' in with_source
    assert "--criteria none" in with_source
    without = error_message(texts((None, ANSWER)), metrics=True)
    assert "--criteria fluency (" in without


def test_each_way_to_name_criteria_is_a_short_line() -> None:
    first_line, *choices = error_message(texts((QUESTION, ANSWER)), metrics=True).splitlines()
    assert has_line([first_line], "source is 0.36 times", "at least 2 times")
    assert len(first_line) < 240
    assert len(choices) == 4
    assert max(map(len, choices)) < 110


def test_the_message_suggests_metrics_only_to_commands_with_metrics() -> None:
    assert "--criteria none" not in error_message(texts((QUESTION, ANSWER)))


def test_the_message_suggests_the_rated_criteria() -> None:
    assert "--criteria consistency (" in error_message(
        texts((QUESTION, ANSWER)), rated=["consistency", "helpful"]
    )
    assert '--criteria "solved: QUESTION"' in error_message(
        texts((QUESTION, ANSWER)), rated=["solved"]
    )


def test_the_message_for_pairs_names_the_criteria_that_compare() -> None:
    assert "overall" in error_message(texts((QUESTION, ANSWER)), pairwise=True)


def test_the_message_in_python_has_python_syntax() -> None:
    with speaking_to("python"):
        output = error_message(texts((QUESTION, ANSWER)), metrics=True)
        unwritten = str(no_default_of_unwritten())
    for part in (
        "criteria=['relevance', 'consistency', 'fluency']",
        "criteria='helpful: ",
        "criteria=[]",
    ):
        assert part in output
        assert part in unwritten


def answers(**columns: object) -> list[Sample]:
    """Return two answers to a question, with these columns."""
    extra = {"question": QUESTION, **columns}
    return [Sample("1", system, ANSWER, extra=extra) for system in ("x", "y")]


@pytest.mark.parametrize(
    ("columns", "proposed"),
    [
        ({}, "answers_request,complete"),
        ({"contexts": ["It left on Monday."]}, "answers_request,complete,grounded"),
        ({"documents": "It left on Monday."}, "answers_request,complete,grounded"),
        ({"contexts": []}, "answers_request,complete"),
    ],
)
def test_the_message_proposes_criteria_that_fit_the_columns_of_answers(
    columns: dict[str, object], proposed: str
) -> None:
    assert f"--criteria {proposed} (for answers)" in error_message(answers(**columns))


def test_correct_is_proposed_for_answers_with_references() -> None:
    rows = [replace(row, references=("On Friday.",)) for row in answers()]
    assert "--criteria answers_request,complete,correct (" in error_message(rows)


def test_the_message_suggests_to_map_a_column_that_looks_like_references() -> None:
    message = error_message(answers(expected="On Friday."))
    assert "and correct with --map references=expected" in message


def test_answers_with_a_long_source_are_not_summaries() -> None:
    rows = [replace(row, source=ARTICLE * 10) for row in answers()]
    message = error_message(rows)
    assert "has the column question" in message
    assert "relevance,consistency" not in message


def test_the_message_for_pairs_of_answers_begins_with_overall() -> None:
    rows = texts((QUESTION, ANSWER))
    assert "--criteria overall,complete (" in error_message(rows, pairwise=True)


def test_overall_is_not_proposed_if_the_source_is_not_the_request() -> None:
    rows = [replace(row, source=ARTICLE) for row in answers()]
    assert "--criteria complete,grounded (" in error_message(rows, pairwise=True)


def test_a_draft_of_answers_has_the_proposed_criteria() -> None:
    rows = answers(contexts=["It left on Monday."])
    assert proposed_criteria(rows) == ("answers_request", "complete", "grounded")


def test_a_draft_of_summaries_has_the_default_criteria() -> None:
    assert proposed_criteria(texts((ARTICLE, SUMMARY))) == SUMMARY_CRITERIA


def test_rated_criteria_of_answers_count_only_if_the_texts_have_their_inputs() -> None:
    rated = ["correct", "polite", "relevance", "mine"]
    assert builtin_rated(answers(), rated) == ("relevance", "polite")
