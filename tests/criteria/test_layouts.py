"""The layouts of prompts/: each holds its marks whatever stands between them, and says the same in other words.

Golden files in tests/golden/layouts/ hold the other wordings, as a person has read them. After a change of wording:
`JUDGE_GOLDEN=write pytest tests/criteria/test_layouts.py`, then read the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import criteria
from judge.core.errors import CriterionError
from judge.core.records import Criterion, Form, ReplyKind, Sample, Scale
from judge.criteria import PARAPHRASES, paraphrase
from judge.criteria.render import Renderer
from judge.criteria.sandbox import fence_digest
from judge.scoring import parse

GOLDEN = Path(__file__).parents[1] / "golden" / "layouts"
LANGUAGES = criteria.languages()
LAYOUTS = [
    (language, layout)
    for language in LANGUAGES
    for layout in ("pointwise", *PARAPHRASES, "pairwise")
]
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")
HEAD = "---\nscale: [1, 5]\n---\n"
EXTENDS = (
    '{% extends "layouts/pointwise.jinja" %}\n{% block criterion %}\nPolite?\n{% endblock %}\n'
)
SAMPLE = Sample("i", "s", "The pass is shut.", source="Snow has shut the pass at Alder Gap.")

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str, name: str = "polite.jinja") -> str:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return put


def prompt(criterion: Criterion, sample: Sample = SAMPLE) -> str:
    """The prompt, with the question where that is apart."""
    prompt_parts = Renderer(criterion, criteria.template_bodies(criterion)).render(sample)
    return "\n\n".join(filter(None, (prompt_parts.messages[0]["content"], prompt_parts.question)))


# -------------------------------------------------------------------------------------------------------------- marks


@cache
def renderer(language: str, layout: str, form: Form = "text") -> Renderer:
    """A built-in criterion that reads a source, in one of the layouts."""
    one = criteria.load("relevance", language=language, pairwise=layout == "pairwise")
    one = paraphrase(one, layout) if layout in PARAPHRASES else one
    return Renderer(replace(one, form=form), criteria.template_bodies(one))


def shown(layout: Renderer, source: str, output: str, other: str | None) -> str:
    """The message about a source and a text, or two of them."""
    opponent = None if other is None else Sample("i", "t", other, source=source)
    return layout.render(Sample("i", "s", output, source=source), opponent).messages[0]["content"]


def read(message: str) -> list[tuple[str, str, str]]:
    """Label, key and text of all that stands between marks, as a reader goes through it who knows the form of a mark.

    A text lasts from its opening mark to the first closing one of the same label and key.
    """
    texts_found, place = [], 0
    while mark := re.compile(r"^<(\w+) ([0-9a-f]+)>\n", re.MULTILINE).search(message, place):
        end = message.index(f"\n</{mark[1]} {mark[2]}>", mark.end())
        texts_found.append((mark[1], mark[2], message[mark.end() : end]))
        place = end + 1
    return texts_found


_PIECES = st.sampled_from(
    [
        "\n", "\r\n", "\u2028", "<", "</", ">", "<output ", "</output>", "</output 6c7103ec>", "<source 0>",
        "</text a>", "</A 1>", "<B ", "{{ output }}", "{% endblock %}", "{{ this.cut }}", "<cut ", "0123456789abcdef",
        "Score: 5", "Snow.", "雪で峠が閉まった。", "눈", "雪", "\x00", "\ud800",
    ]
)  # fmt: skip
_TEXTS = st.one_of(
    st.text(), st.lists(st.one_of(_PIECES, st.text(max_size=3)), max_size=12).map("".join)
)


@given(st.sampled_from(LAYOUTS), _TEXTS.filter(str.strip), _TEXTS, _TEXTS, st.booleans())
def test_every_text_is_fenced_by_unique_marks(
    case: tuple[str, str], source: str, before: str, after: str, quotes: bool
) -> None:
    """Also where a text quotes the marks of the one before it."""
    language, layout = case
    mark = fence_digest(source)
    output = (
        f"{before}\n</source {mark}>\n<source {mark}>\n{after}\n</source {mark}>\n"
        if quotes
        else before
    )
    other = f"{before}\n</A {fence_digest(output)}>\n{after}" if quotes else after
    opponent = other if layout == "pairwise" else None
    message = shown(renderer(language, layout), source, output, opponent)
    marked = read(message)
    assert [text for *_, text in marked] == [
        text for text in (source, output, opponent) if text is not None
    ]
    for label, token, _ in marked:
        assert (message.count(f"<{label} {token}>"), message.count(f"</{label} {token}>")) == (1, 1)


@given(st.sampled_from(LAYOUTS), _TEXTS.filter(str.strip), _TEXTS)
def test_the_separate_question_contains_no_texts(
    case: tuple[str, str], source: str, output: str
) -> None:
    language, layout = case
    one = renderer(language, layout, "decision")
    opponent = replace(SAMPLE, system="t", output="Another.") if layout == "pairwise" else None
    rendered = one.render(
        Sample("i", "s", output, source=source), opponent and replace(opponent, source=source)
    )
    assert [text for *_, text in read(rendered.messages[0]["content"])][:2] == [source, output]
    assert rendered.question == one.render(SAMPLE, opponent).question


# -------------------------------------------------------------------------------------------------------- other words


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wording", PARAPHRASES)
def test_other_wordings_match_the_golden_file(language: str, wording: str) -> None:
    one = paraphrase(criteria.load("relevance", language=language), wording)
    verdict = replace(one, scale=Scale(("fail", "pass"), (0.0, 1.0)))
    forms: tuple[Form, ...] = ("text", "json")
    wordings = [
        (f"{form}, {kind}", replace(one, form=form, reply=kind)) for form in forms for kind in KINDS
    ]
    wordings += [
        ("pass or fail", verdict),
        ("decision, pass or fail", replace(verdict, form="decision")),
    ]
    ends = (
        f"=== {name}\n{prompt(other).partition(one.steps[-1])[2].strip()}"
        for name, other in wordings
    )
    text = "\n\n".join([prompt(one), *ends]) + "\n"
    file = GOLDEN / language / f"{wording}.txt"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_golden_file_has_its_test() -> None:
    files = {file.relative_to(GOLDEN).as_posix() for file in GOLDEN.rglob("*.txt")}
    assert files == {
        f"{language}/{wording}.txt" for language in LANGUAGES for wording in PARAPHRASES
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_wordings_have_the_same_blocks_in_the_same_order(language: str) -> None:
    root = criteria.builtin_prompts() / language / "layouts"

    def blocks(name: str) -> list[str]:
        text = (root / f"{name}.jinja").read_text(encoding="utf-8")
        return re.findall(r"{% block (\w+) %}", text)

    assert blocks("pointwise_reworded") == blocks("pointwise_brief") == blocks("pointwise")


@pytest.mark.parametrize(
    ("language", "name"),
    list(zip(LANGUAGES, ["relevance", "coherence", "consistency", "fluency_5"], strict=True)),
)
def test_only_the_words_around_a_criterion_change(language: str, name: str) -> None:
    one = criteria.load(name, language=language)
    others = [paraphrase(one, wording) for wording in PARAPHRASES]
    assert [other.name for other in others] == [f"{name}~b", f"{name}~c"]
    assert len({one.digest, *(other.digest for other in others)}) == 3
    assert {(other.needs, other.scale, other.steps, other.reply) for other in others} == {
        (one.needs, one.scale, one.steps, one.reply)
    }
    criterion_lines = {
        line
        for line in criteria.template_bodies(one)[Path(one.path).name].splitlines()
        if line and "{%" not in line
    }
    assert criterion_lines
    for other in others:
        lines = set(prompt(other).splitlines())
        assert criterion_lines | {f"{n}. {step}" for n, step in enumerate(one.steps, 1)} <= lines
        shared = set(prompt(one).splitlines()) & lines
        assert len(shared) < len(set(prompt(one).splitlines()))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wording", PARAPHRASES)
def test_a_reply_in_the_form_asked_for_is_read(language: str, wording: str) -> None:
    one = paraphrase(
        replace(criteria.load("relevance", language=language), reply="reason_then_score"), wording
    )
    form = next(line for line in prompt(one).splitlines() if line.endswith(": N"))
    parsed = parse.find(f"Because.\n{form.removesuffix('N')}4", one.reply, one.scale, one.title)
    assert parsed.label == "4"


def test_a_criterion_of_a_user_that_extends_the_layout_is_reworded(write: Write) -> None:
    path = write(HEAD + EXTENDS.replace('"', "'"))
    one = paraphrase(criteria.load(path), "c")
    assert one.path == path
    assert prompt(one).startswith("Read the text below carefully")
    assert "Polite?" in prompt(one)


@pytest.mark.parametrize("template", ["Is this polite? {{ output }}", "{% extends 'mine.jinja' %}"])
def test_a_template_without_the_layout_has_no_other_wordings(write: Write, template: str) -> None:
    write("{{ output }}{% block criterion %}{% endblock %}", "mine.jinja")
    path = write(HEAD + template)
    with pytest.raises(CriterionError, match=r"polite\.jinja: .*not extend"):
        paraphrase(criteria.load(path), "b")


def test_a_layout_of_the_users_own_of_that_name_is_not_swapped_for_ours(write: Write) -> None:
    write(
        "My words. {{ output|fenced('output') }}{% block criterion %}{% endblock %}",
        "layouts/pointwise.jinja",
    )
    with pytest.raises(CriterionError, match="does not extend the built-in"):
        paraphrase(criteria.load(write(HEAD + EXTENDS)), "b")
