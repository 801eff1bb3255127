"""Comparisons of two texts as a sentence, a mapping, a file and an object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge import criteria
from judge.core.errors import CriterionError
from judge.core.records import Criterion, Sample, Scale
from judge.criteria.render import Renderer
from tests.factories import has_line

SENTENCE = "clearer: Which answer is clearer?"
A_OR_B = Scale(("A", "B"), (1.0, 0.0))
FIRST = Sample("1", "x", "On Friday.", extra={"question": "When does it arrive?"})
SECOND = replace(FIRST, system="y", output="Read your mails.")


def prompt(criterion: Criterion) -> str:
    """Return the prompt that compares the two texts."""
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    return renderer.render(FIRST, SECOND).messages[0]["content"]


def test_a_sentence_may_compare_two_texts() -> None:
    criterion = criteria.load(SENTENCE, pairwise=True)
    assert (criterion.pairwise, criterion.scale) == (True, A_OR_B)


def test_a_sentence_judges_one_text_by_default() -> None:
    assert not criteria.load(SENTENCE).pairwise
    assert not criteria.load(SENTENCE, pairwise=None).pairwise


def test_keys_may_allow_ties() -> None:
    scale = {"labels": ["A", "B", "tie"], "values": [1, 0, 0.5]}
    keys = {"name": "clearer", "question": "Which answer is clearer?", "scale": scale}
    assert "tie: The two texts are equally good." in prompt(criteria.load(keys, pairwise=True))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("clearer.yaml", "question: Which answer is clearer?\n"),
        ("clearer.txt", "Which answer is clearer?\n"),
        ("clearer.jinja", "---\nquestion: Which answer is clearer?\n---\n"),
    ],
)
def test_a_file_without_a_template_may_compare(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    criterion = criteria.load(path, pairwise=True)
    assert (criterion.pairwise, criterion.scale) == (True, A_OR_B)


def test_an_object_with_a_question_may_compare() -> None:
    criterion = Criterion("clearer", question="Which answer is clearer?")
    assert criteria.finalize(criterion, pairwise=True).scale == A_OR_B


def test_an_object_that_compares_may_be_in_another_language() -> None:
    criterion = criteria.load(SENTENCE, pairwise=True)
    assert "文章A" in prompt(criteria.in_language(criterion, "ja"))


@pytest.mark.parametrize("language", ["en", "ja", "ko", "zh"])
def test_the_prompt_shows_the_request_before_both_texts(language: str) -> None:
    text = prompt(criteria.load(SENTENCE, pairwise=True, language=language))
    parts = ["When does it arrive?", "On Friday.", "Read your mails.", "Which answer is clearer?"]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)


def test_the_prompt_names_the_columns_of_show() -> None:
    keys = {"name": "clearer", "question": "Which is clearer?", "show": ["question"]}
    assert "Information about both texts (question):" in prompt(criteria.load(keys, pairwise=True))


@pytest.mark.parametrize(
    ("keys", "facts"),
    [
        ({"levels": {1: "bad", 5: "good"}}, ("levels:", "two texts")),
        ({"pass_at": 1}, ("pass_at:", "two texts")),
        ({"better": "lower"}, ("better:", "a win counts 1")),
    ],
)
def test_keys_about_one_text_are_errors_in_a_comparison(
    keys: dict[str, object], facts: tuple[str, ...]
) -> None:
    with pytest.raises(CriterionError) as caught:
        criteria.load({"name": "clearer", "question": "Which?", **keys}, pairwise=True)
    assert has_line(str(caught.value), *facts)


def test_a_scale_for_one_text_is_an_error_in_a_comparison() -> None:
    keys = {"name": "clearer", "question": "Which is clearer?", "scale": [1, 5]}
    criterion = criteria.load(keys, pairwise=True)
    with pytest.raises(CriterionError, match=r"write \{labels:"):
        criteria.check_samples(criterion, [FIRST, SECOND])


def test_a_checklist_cannot_compare_two_texts() -> None:
    with pytest.raises(CriterionError, match="judges one text"):
        criteria.load({"name": "clear", "questions": ["Is it clear?"]}, pairwise=True)


def test_a_question_about_one_text_shows_the_request_if_there_is_no_source() -> None:
    criterion = criteria.load("helpful: Does the answer help?")
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    assert "When does it arrive?" in renderer.render(FIRST).messages[0]["content"]


def test_a_question_about_one_text_shows_the_source_instead_of_the_request() -> None:
    criterion = criteria.load("helpful: Does the answer help?")
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    message = renderer.render(replace(FIRST, source="The source.")).messages[0]["content"]
    assert "The source." in message
    assert "When does it arrive?" not in message
