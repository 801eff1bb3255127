"""The keys paraphrases and ignores, which only tests of the judge use. Oracle: the criterion without the keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judge.core.errors import CriterionError
from judge.core.records import Criterion, Sample
from judge.criteria import (
    builtin,
    finalize,
    languages,
    load,
    own_question,
    template_bodies,
    with_questions,
)
from judge.criteria.render import Renderer
from judge.text import detect_language
from tests.factories import has_line

WORDINGS = ["Is it kind?", "Does it treat people well?", "Is its tone respectful?"]
FLOW = f"paraphrases: {WORDINGS}"
BLOCK = "paraphrases:\n" + "\n".join(f"- {wording}" for wording in WORDINGS)
INDENTED = "paraphrases:\n\n" + "\n\n".join(f"  - >-\n    {wording}" for wording in WORDINGS)
IGNORES = "ignores: [sentence order]"
QUESTION = '{% extends "layouts/question.jinja" %}'
BODY = """{% extends "layouts/pointwise.jinja" %}
{% block criterion %}
Is it polite?
Read every word.

1: No.
5: Yes.
{% endblock %}"""


def criterion(*lines: str, body: str = QUESTION) -> Criterion:
    question = ["question: Is it polite?"] if body == QUESTION else []
    header = ["---", "scale: [1, 5]", *lines, *question, "---"]
    return load(text="\n".join([*header, body]), name="polite")


@pytest.mark.parametrize("body", [QUESTION, BODY])
@pytest.mark.parametrize("lines", [(FLOW,), (BLOCK,), (INDENTED,), (IGNORES,), (INDENTED, IGNORES)])
def test_keys_for_tests_of_the_judge_do_not_change_the_digest(
    body: str, lines: tuple[str, ...]
) -> None:
    without = criterion("version: 2", body=body)
    with_keys = criterion("version: 2", *lines, body=body)
    assert with_keys != without
    assert with_keys.digest == without.digest
    assert criterion("version: 3", *lines, body=body).digest != without.digest


def test_a_template_that_looks_like_a_key_is_part_of_the_digest() -> None:
    text = "paraphrases: none\n"
    assert criterion(body=text + BODY).digest != criterion(body=BODY).digest


def test_keys_for_tests_of_the_judge_are_read() -> None:
    with_keys = criterion(INDENTED, IGNORES)
    assert with_keys.paraphrases == tuple(WORDINGS)
    assert with_keys.ignores == ("sentence order",)
    assert finalize(Criterion("polite", question="Is it polite?", paraphrases=tuple(WORDINGS)))


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        (("paraphrases: [Is it kind?]",), ("polite.jinja:3: paraphrases:", "3 wordings")),
        (("paraphrases: [a, b, a]",), ("paraphrases:", "1 and 3", "same")),
        (("paraphrases: [a, b, '{{ output }}']",), ("paraphrases: wording 3", "template syntax")),
        (("paraphrases: [a, b, ' ']",), ("paraphrases: wording 3", "empty")),
        (("paraphrases: [a, b, Is it  polite?]",), ("paraphrases: wording 3", "question itself")),
        (("ignores: [length]",), ("ignores",)),
    ],
)
def test_bad_keys_are_errors_with_the_file_and_reason(
    lines: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    with pytest.raises(CriterionError, match=r"polite\.jinja") as raised:
        criterion(*lines)
    assert has_line(str(raised.value), *facts)


def test_paraphrases_of_a_template_without_a_plain_question_are_an_error() -> None:
    body = BODY.replace("Is it polite?", "Is it {{ this.title }}?")
    with pytest.raises(CriterionError, match="block `criterion` of plain text"):
        criterion(BLOCK, body=body)


def test_paraphrases_of_a_checklist_or_a_comparison_are_an_error() -> None:
    with pytest.raises(CriterionError, match=r"paraphrases: .*questions"):
        load({"name": "c", "questions": ["Is it short?"], "paraphrases": WORDINGS})
    with pytest.raises(CriterionError, match=r"paraphrases: .*compares two texts"):
        load({"name": "c", "question": "Which is better?", "paraphrases": WORDINGS}, pairwise=True)


def prompt(original: Criterion, sample: Sample) -> Any:
    return Renderer(original, template_bodies(original)).render(sample).messages


@pytest.mark.parametrize("language", languages())
def test_a_replaced_question_is_the_only_change_in_the_prompt(language: str) -> None:
    sample = Sample(
        "i", "s", "Some words.", "A source.", ("A text.",), extra={"contexts": ["A passage."]}
    )
    for original in builtin(language):
        (reworded,) = with_questions(original, ["ANOTHER QUESTION?"])
        assert reworded.name == f"{original.name}~1"
        assert reworded.digest != original.digest
        (message,) = prompt(reworded, sample)
        assert message["content"].count("ANOTHER QUESTION?") == 1
        restored = message["content"].replace("ANOTHER QUESTION?", own_question(original))
        assert restored == prompt(original, sample)[0]["content"]


def test_only_the_first_paragraph_of_a_block_is_the_question() -> None:
    original = criterion(body=BODY)
    assert own_question(original) == "Is it polite?\nRead every word."
    single_paragraph = BODY.replace("\n\n1: No.\n5: Yes.", "")
    assert own_question(criterion(body=single_paragraph)) == "Is it polite?\nRead every word."


def test_the_question_of_a_criterion_without_a_template_is_its_key() -> None:
    without_template = replace(criterion(body=BODY), template="", question="Is it kind?")
    assert own_question(without_template) == "Is it kind?"


@pytest.mark.parametrize("language", languages())
def test_built_in_criteria_have_three_paraphrases_of_about_equal_length(language: str) -> None:
    for original in builtin(language):
        question = own_question(original)
        assert len(original.paraphrases) == 3
        for wording in original.paraphrases:
            assert detect_language([wording]) == language
            assert 0.8 < len(wording) / len(question) < 1.3
            # A paraphrase that begins with the same words would test little.
            assert not wording.startswith(question[:40])


def test_only_criteria_of_support_by_a_source_ignore_the_order_of_sentences() -> None:
    names = {original.name for original in builtin() if "sentence order" in original.ignores}
    assert names == {"consistency", "grounded"}
