"""criteria.draft: the prompt that asks for steps, and the parsing of its reply. Oracle: `render`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from judge import criteria
from judge.core.errors import CriterionError, ParseError
from judge.core.records import Criterion, Prompt, Sample
from judge.criteria.render import Renderer, render_drafting_prompt
from tests.factories import has_line

HEAD = "---\nscale: [1, 5]\n---\n"
EXTENDS = '{% extends "layouts/pointwise.jinja" %}\n'


def drafting_prompt(criterion: Criterion) -> Prompt:
    return render_drafting_prompt(criterion, criteria.drafting(criterion))


Write = Callable[[str], str]


# ----------------------------------------------------------------------------------------------------------- the prompt


def test_the_prompt_for_steps_has_the_text_of_the_criterion_and_no_sample(write: Write) -> None:
    text = (
        "---\ntitle: Tone\ndescription: How it sounds.\nscale: {labels: [rude, polite], values: [0, 1]}\n"
        f"steps: [Old one.]\n---\n{EXTENDS}{{% block criterion %}}\nFit for {{{{ genre|fenced('x') }}}}"
        "{% for r in references %}{{ r }}{% endfor %}{% if genre %}?{% endif %}, "
        "up to {{ this.highest }}.\n{% endblock %}"
    )
    request = drafting_prompt(criteria.load(write(text)))
    prompt = request.messages[0]["content"]
    assert (request.item, request.system, request.criterion, request.question) == ("", "", "my", "")
    for part in (
        "Criterion: Tone",
        "How it sounds.",
        "Fit for [genre], up to polite.",
        "Scale: rude, polite.",
    ):
        assert part in prompt
    assert "Old one." not in prompt
    assert "judging one text" in prompt


def test_the_prompt_for_steps_of_a_comparison_asks_for_the_better_text() -> None:
    prompt = drafting_prompt(criteria.load("fluency", pairwise=True)).messages[0]["content"]
    assert "comparing two texts" in prompt
    assert "Which of the two texts is better by this criterion, A or B?" in prompt


def test_a_draft_does_not_change_the_layouts_of_prompts(write: Write) -> None:
    block = "{% block criterion %}\nPolite to {{ output|fenced('to') }}?\n{% endblock %}"
    criterion = criteria.load(write(f"{HEAD}{EXTENDS}{block}"))
    drafting_prompt(criterion)
    prompt = Renderer(criterion, criteria.template_bodies(criterion)).render(
        Sample("i", "s", "Good morning.", "It dawns.")
    )
    assert "Good morning." in prompt.messages[0]["content"]


@pytest.mark.parametrize("language", criteria.languages())
@pytest.mark.parametrize("pairwise", [False, True])
def test_the_prompt_for_steps_contains_the_text_of_the_criterions_prompt(
    language: str, pairwise: bool
) -> None:
    """Both contain the text that `render` puts between the title and the steps."""
    for criterion in criteria.builtin(language, pairwise=pairwise)[:2]:
        sample = Sample("i", "s", "o", source="x")
        opponent = replace(sample, system="t") if pairwise else None
        renderer = Renderer(criterion, criteria.template_bodies(criterion))
        whole = renderer.render(sample, opponent).messages[0]["content"]
        text = re.sub(
            r"\A.*?\n\n(.*?)\n\n[^\n]+\n1\. .*\Z",
            r"\1",
            whole.partition(criterion.title)[2],
            flags=re.DOTALL,
        )
        assert len(text) > 100
        assert text in drafting_prompt(criterion).messages[0]["content"]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("{{ output }}", ("no text", "extend a layout")),
        (EXTENDS, ("no text", "draft")),
        (
            EXTENDS + "{% block criterion %}{{ genre + 1 }}{% endblock %}",
            ("without a sample", "'genre'"),
        ),
        (
            EXTENDS + "{% block criterion %}{{ 'x' * 10 ** 10 }}{% endblock %}",
            ("more than",),
        ),
    ],
)
def test_a_draft_of_a_criterion_without_a_plain_text_is_an_error(
    write: Write, text: str, facts: tuple[str, ...]
) -> None:
    with pytest.raises(CriterionError) as caught:
        drafting_prompt(criteria.load(write(HEAD + text)))
    assert has_line(str(caught.value), *facts)


# ---------------------------------------------------------------------------------------------------------- the reading


@pytest.mark.parametrize(
    ("reply", "steps"),
    [
        ("1. Read it.\n2. Score it.", ("Read it.", "Score it.")),
        ("\n 1) Read it: all.  \n\n 2) Score it.\n", ("Read it: all.", "Score it.")),
        ("- Read it.\n- Score it, 1. to 5.", ("Read it.", "Score it, 1. to 5.")),
        ("１．原文を読む。\n２．点数を選ぶ。", ("原文を読む。", "点数を選ぶ。")),
        ("1、阅读原文。\n2、选定分数。", ("阅读原文。", "选定分数。")),
        ("１）읽는다.\r\n２）고른다.", ("읽는다.", "고른다.")),
        (
            "\n".join(f"{n}. Step {n}" for n in range(1, 13)),
            tuple(f"Step {n}" for n in range(1, 13)),
        ),
    ],
)
def test_a_list_of_steps_is_read_in_any_form(reply: str, steps: tuple[str, ...]) -> None:
    assert criteria.read_steps(reply) == steps


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ("", ("0 steps", "2 to 12")),
        ("1. Alone.", ("1 steps", "2 to 12")),
        ("\n".join(f"- {n}" for n in range(13)), ("13 steps", "2 to 12")),
        (
            "Here are the steps:\n1. Read.\n2. Score.",
            ("not a step", "'Here are the steps:'"),
        ),
        ("1. Read\nthe text.\n2. Score.", ("not a step", "'the text.'")),
        ("1. Read.\n- Look.\n2. Score.", ("not a step", "'- Look.'")),
        ("1. Read.\n3. Score.", ("step 2", "number 3")),
        ("2. Read.\n1. Score.", ("step 1", "number 2")),
        ("1. Read.\n1.5 Look.", ("not a step", "'1.5 Look.'")),
        ("1. Read.\n2.", ("not a step", "'2.'")),
        ("1. Read.\n2. " + "x" * 401, ("step 2", "401 characters", "400")),
        ("1. Read {{ output }}.\n2. Score.", ("step 1", "template syntax")),
        ("- Read.\n- {% raw %}", ("step 2", "template syntax")),
        ("- Read.\n- Score. {# so #}", ("step 2", "template syntax")),
        ("I cannot help with that.", ("not a step",)),
        ("```\n1. Read.\n2. Score.\n```", ("not a step", "'```'")),
    ],
)
def test_a_reply_that_is_no_list_of_steps_is_an_error_with_the_reply(
    reply: str, facts: tuple[str, ...]
) -> None:
    with pytest.raises(ParseError) as caught:
        criteria.read_steps(reply)
    assert has_line(str(caught.value), *facts)
    assert caught.value.raw == reply
