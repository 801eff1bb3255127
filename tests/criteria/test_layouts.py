"""The layouts of prompts/: texts cannot break their marks, and paraphrases change only the words.

Golden files in tests/golden/layouts/ contain the paraphrases, and a person has read them. After a change of wording,
run `JUDGE_GOLDEN=write pytest tests/criteria/test_layouts.py` and read the difference.
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
    """Return the prompt, followed by the question if that is separate."""
    prompt_parts = Renderer(criterion, criteria.template_bodies(criterion)).render(sample)
    return "\n\n".join(filter(None, (prompt_parts.messages[0]["content"], prompt_parts.question)))


# -------------------------------------------------------------------------------------------------------------- marks


@cache
def renderer(language: str, layout: str, form: Form = "text") -> Renderer:
    """Return the renderer of a built-in criterion that reads a source, in one of the layouts."""
    criterion = criteria.load("relevance", language=language, pairwise=layout == "pairwise")
    if layout in PARAPHRASES:
        criterion = paraphrase(criterion, layout)
    return Renderer(replace(criterion, form=form), criteria.template_bodies(criterion))


def message_about(layout: Renderer, source: str, output: str, second_output: str | None) -> str:
    """Return the message about a source and one or two texts."""
    sample = Sample("i", "s", output, source=source)
    opponent = None
    if second_output is not None:
        opponent = Sample("i", "t", second_output, source=source)
    return layout.render(sample, opponent).messages[0]["content"]


def marked_texts(message: str) -> list[tuple[str, str, str]]:
    """Return label, key and text of each marked text, in order.

    A text ends at the first closing mark with the label and the key of its opening mark.
    """
    opening = re.compile(r"^<(\w+) ([0-9a-f]+)>\n", re.MULTILINE)
    texts = []
    position = 0
    while mark := opening.search(message, position):
        end = message.index(f"\n</{mark[1]} {mark[2]}>", mark.end())
        texts.append((mark[1], mark[2], message[mark.end() : end]))
        position = end + 1
    return texts


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
    """If `quotes` is true, each text quotes the marks of the text before it."""
    language, layout = case
    mark = fence_digest(source)
    output = (
        f"{before}\n</source {mark}>\n<source {mark}>\n{after}\n</source {mark}>\n"
        if quotes
        else before
    )
    second_output = None
    if layout == "pairwise":
        second_output = f"{before}\n</A {fence_digest(output)}>\n{after}" if quotes else after
    message = message_about(renderer(language, layout), source, output, second_output)
    marked = marked_texts(message)
    expected = [text for text in (source, output, second_output) if text is not None]
    assert [text for *_, text in marked] == expected
    for label, token, _ in marked:
        assert (message.count(f"<{label} {token}>"), message.count(f"</{label} {token}>")) == (1, 1)


@given(st.sampled_from(LAYOUTS), _TEXTS.filter(str.strip), _TEXTS)
def test_the_separate_question_contains_no_texts(
    case: tuple[str, str], source: str, output: str
) -> None:
    language, layout = case
    layout_renderer = renderer(language, layout, "decision")
    opponent = replace(SAMPLE, system="t", output="Another.") if layout == "pairwise" else None
    rendered = layout_renderer.render(
        Sample("i", "s", output, source=source), opponent and replace(opponent, source=source)
    )
    marked = marked_texts(rendered.messages[0]["content"])
    assert [text for *_, text in marked][:2] == [source, output]
    assert rendered.question == layout_renderer.render(SAMPLE, opponent).question


# -------------------------------------------------------------------------------------------------------- paraphrases


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wording", PARAPHRASES)
def test_paraphrased_prompts_match_golden_files(language: str, wording: str) -> None:
    criterion = paraphrase(criteria.load("relevance", language=language), wording)
    verdict = replace(criterion, scale=Scale(("fail", "pass"), (0.0, 1.0)))
    forms: tuple[Form, ...] = ("text", "json")
    variants = [
        (f"{form}, {kind}", replace(criterion, form=form, reply=kind))
        for form in forms
        for kind in KINDS
    ]
    variants += [
        ("pass or fail", verdict),
        ("decision, pass or fail", replace(verdict, form="decision")),
    ]
    ends = (
        f"=== {name}\n{prompt(variant).partition(criterion.steps[-1])[2].strip()}"
        for name, variant in variants
    )
    text = "\n\n".join([prompt(criterion), *ends]) + "\n"
    file = GOLDEN / language / f"{wording}.txt"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_golden_file_has_a_test() -> None:
    files = {file.relative_to(GOLDEN).as_posix() for file in GOLDEN.rglob("*.txt")}
    assert files == {
        f"{language}/{wording}.txt" for language in LANGUAGES for wording in PARAPHRASES
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_layouts_have_the_same_blocks_in_the_same_order(language: str) -> None:
    root = criteria.builtin_prompts() / language / "layouts"

    def blocks(name: str) -> list[str]:
        text = (root / f"{name}.jinja").read_text(encoding="utf-8")
        return re.findall(r"{% block (\w+) %}", text)

    assert blocks("pointwise_reworded") == blocks("pointwise_brief") == blocks("pointwise")


@pytest.mark.parametrize(
    ("language", "name"),
    list(zip(LANGUAGES, ["relevance", "coherence", "consistency", "fluency_5"], strict=True)),
)
def test_a_paraphrase_changes_only_the_words_around_a_criterion(language: str, name: str) -> None:
    criterion = criteria.load(name, language=language)
    paraphrases = [paraphrase(criterion, wording) for wording in PARAPHRASES]
    assert [each.name for each in paraphrases] == [f"{name}~b", f"{name}~c"]
    assert len({criterion.digest, *(each.digest for each in paraphrases)}) == 3
    for each in paraphrases:
        assert (each.needs, each.scale) == (criterion.needs, criterion.scale)
        assert (each.steps, each.reply) == (criterion.steps, criterion.reply)
    template_lines = criteria.template_bodies(criterion)[Path(criterion.path).name].splitlines()
    criterion_lines = {line for line in template_lines if line and "{%" not in line}
    assert criterion_lines
    step_lines = {f"{n}. {step}" for n, step in enumerate(criterion.steps, 1)}
    original_lines = set(prompt(criterion).splitlines())
    for each in paraphrases:
        lines = set(prompt(each).splitlines())
        assert criterion_lines | step_lines <= lines
        assert len(original_lines & lines) < len(original_lines)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wording", PARAPHRASES)
def test_a_reply_in_the_form_of_a_paraphrase_is_read(language: str, wording: str) -> None:
    relevance = criteria.load("relevance", language=language)
    criterion = paraphrase(replace(relevance, reply="reason_then_score"), wording)
    form = next(line for line in prompt(criterion).splitlines() if line.endswith(": N"))
    reply = f"Because.\n{form.removesuffix('N')}4"
    parsed = parse.find(reply, criterion.reply, criterion.scale, criterion.title)
    assert parsed.label == "4"


def test_a_users_criterion_that_extends_the_layout_is_paraphrased(write: Write) -> None:
    path = write(HEAD + EXTENDS.replace('"', "'"))
    criterion = paraphrase(criteria.load(path), "c")
    assert criterion.path == path
    assert prompt(criterion).startswith("Read the text below carefully")
    assert "Polite?" in prompt(criterion)


@pytest.mark.parametrize("template", ["Is this polite? {{ output }}", "{% extends 'mine.jinja' %}"])
def test_a_template_without_the_layout_has_no_paraphrase(write: Write, template: str) -> None:
    write("{{ output }}{% block criterion %}{% endblock %}", "mine.jinja")
    path = write(HEAD + template)
    with pytest.raises(CriterionError, match=r"polite\.jinja: .*not extend"):
        paraphrase(criteria.load(path), "b")


def test_a_users_layout_of_the_same_name_has_no_paraphrase(write: Write) -> None:
    write(
        "My words. {{ output|fenced('output') }}{% block criterion %}{% endblock %}",
        "layouts/pointwise.jinja",
    )
    with pytest.raises(CriterionError, match="does not extend the built-in"):
        paraphrase(criteria.load(write(HEAD + EXTENDS)), "b")
