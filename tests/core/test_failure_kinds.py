"""Failures have plain names in what people read."""

from __future__ import annotations

import pytest

from judge.core import errors
from judge.core.failure_kinds import failure_kind

ERRORS = [
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.JudgeError)
]


@pytest.mark.parametrize("error", [*ERRORS, "NoScore", "NoReference", "QuestionTooLong"])
def test_no_kind_of_failure_is_the_name_of_a_class(error: str) -> None:
    words = failure_kind(error)
    assert words
    assert words == words.lower()


@pytest.mark.parametrize(
    ("error", "words"),
    [("NoReference", "no reference"), ("HTTPError", "HTTP error"), ("Refused", "refused")],
)
def test_a_class_without_a_name_of_its_own_is_split_into_words(error: str, words: str) -> None:
    assert failure_kind(error) == words


@pytest.mark.parametrize("error", ["", "a plugin's own: words", "no_text", "エラー"])
def test_words_of_plugins_stay(error: str) -> None:
    assert failure_kind(error) == error
