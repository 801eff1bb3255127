"""Keys of a criterion that are only for tests of the judge. Oracles: the criterion without them, and its own prompt."""

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
def test_keys_for_tests_of_the_judge_change_no_digest(body: str, lines: tuple[str, ...]) -> None:
    without = criterion("version: 2", body=body)
    with_keys = criterion("version: 2", *lines, body=body)
    assert with_keys != without
    assert with_keys.digest == without.digest
    assert criterion("version: 3", *lines, body=body).digest != without.digest


def test_text_that_looks_like_such_a_key_is_part_of_the_digest() -> None:
    text = "paraphrases: none\n"
    assert criterion(body=text + BODY).digest != criterion(body=BODY).digest


def test_keys_for_tests_are_read() -> None:
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
def test_unsuitable_keys_are_refused_with_their_place(
    lines: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    with pytest.raises(CriterionError, match=r"polite\.jinja") as raised:
        criterion(*lines)
    assert has_line(str(raised.value), *facts)


def test_a_template_whose_question_cannot_be_replaced_has_no_paraphrases() -> None:
    body = BODY.replace("Is it polite?", "Is it {{ this.title }}?")
    with pytest.raises(CriterionError, match="block `criterion` of plain text"):
        criterion(BLOCK, body=body)


def test_a_checklist_and_a_comparison_have_no_paraphrases() -> None:
    with pytest.raises(CriterionError, match=r"paraphrases: .*questions"):
        load({"name": "c", "questions": ["Is it short?"], "paraphrases": WORDINGS})
    with pytest.raises(CriterionError, match=r"paraphrases: .*compares two texts"):
        load({"name": "c", "question": "Which is better?", "paraphrases": WORDINGS}, pairwise=True)


def prompt(asked: Criterion, sample: Sample) -> Any:
    return Renderer(asked, template_bodies(asked)).render(sample).messages


@pytest.mark.parametrize("language", languages())
def test_another_question_changes_nothing_else_in_the_prompt(language: str) -> None:
    sample = Sample(
        "i", "s", "Some words.", "A source.", ("A text.",), extra={"contexts": ["A passage."]}
    )
    for asked in builtin(language):
        (reworded,) = with_questions(asked, ["ANOTHER QUESTION?"])
        assert reworded.name == f"{asked.name}~1"
        assert reworded.digest != asked.digest
        (message,) = prompt(reworded, sample)
        assert message["content"].count("ANOTHER QUESTION?") == 1
        restored = message["content"].replace("ANOTHER QUESTION?", own_question(asked))
        assert restored == prompt(asked, sample)[0]["content"]


def test_only_the_first_paragraph_of_a_block_is_the_question() -> None:
    asked = criterion(body=BODY)
    assert own_question(asked) == "Is it polite?\nRead every word."
    one_paragraph = BODY.replace("\n\n1: No.\n5: Yes.", "")
    assert own_question(criterion(body=one_paragraph)) == "Is it polite?\nRead every word."
    assert own_question(replace(asked, template="", question="Is it kind?")) == "Is it kind?"


@pytest.mark.parametrize("language", languages())
def test_built_in_criteria_have_three_paraphrases_of_about_equal_length(language: str) -> None:
    for asked in builtin(language):
        question = own_question(asked)
        assert len(asked.paraphrases) == 3
        for wording in asked.paraphrases:
            assert detect_language([wording]) == language
            assert 0.8 < len(wording) / len(question) < 1.3
            # The words change; else it would test little.
            assert not wording.startswith(question[:40])


def test_only_support_by_a_source_ignores_the_order_of_sentences() -> None:
    names = {asked.name for asked in builtin() if "sentence order" in asked.ignores}
    assert names == {"consistency", "grounded"}
