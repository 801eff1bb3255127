"""Criteria are loaded from files. Oracles: files written by hand with known faults, and Jinja's rendering."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge import criteria
from judge.core.errors import CriterionError, DataError
from judge.core.records import Criterion, Sample, Scale
from judge.criteria import sandbox, variables
from judge.criteria import template as templates
from judge.criteria.header import template_body
from judge.criteria.render import Renderer
from tests.factories import has_line

LANGUAGES = ("en", "ja", "ko", "zh")
SUMMARIES = ("coherence", "consistency", "fluency", "fluency_5", "relevance")
NAMES = (
    *("answers_request", "complete", "concise", "correct", "grounded", "polite", "safe"),
    *SUMMARIES,
)
PAIRWISE = (
    *("coherence", "consistency", "fluency", "relevance"),
    *("complete", "correct", "grounded", "overall"),
)
OTHER_NEEDS = {
    "answers_request": {"request"},
    "complete": {"request"},
    "concise": {"request"},
    "correct": {"request", "references"},
    "fluency": set(),
    "fluency_5": set(),
    "overall": {"request"},
    "grounded": {"passages"},
    "polite": set(),
    "safe": set(),
}
"""The inputs of criteria that do not read a source, beside the texts to judge."""
TITLES = {
    "en": {
        "coherence": "Coherence",
        "consistency": "Consistency",
        "fluency": "Fluency",
        "relevance": "Relevance",
    },
    "ja": {
        "coherence": "首尾一貫性",
        "consistency": "整合性",
        "fluency": "流暢性",
        "relevance": "関連性",
    },
    "ko": {
        "coherence": "응집성",
        "consistency": "사실 일치성",
        "fluency": "유창성",
        "relevance": "관련성",
    },
    "zh": {
        "coherence": "连贯性",
        "consistency": "一致性",
        "fluency": "流畅性",
        "relevance": "相关性",
    },
}
HEAD = "---\nscale: [1, 5]\n---\n"
EXTENDS = '{% extends "layouts/pointwise.jinja" %}\n'
PAIR = "---\nscale: {labels: [A, B], values: [1, 0]}\n---\n"
PAIR_EXTENDS = '{% extends "layouts/pairwise.jinja" %}\n'

Write = Callable[..., str]


def error_message(path: str, language: str = "en", pairwise: bool = False) -> str:
    """Return the error message of a file, without its folder."""
    with pytest.raises(CriterionError) as caught:
        criteria.load(path, language=language, pairwise=pairwise)
    return str(caught.value).replace(str(Path(path).parent) + "/", "")


def sample(item: str = "a", system: str = "s", **fields: object) -> Sample:
    return Sample(item, system, "The pass is shut.", **fields)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------- built-in criteria


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_built_in_criteria_have_the_known_titles_scales_and_needs(
    language: str, pairwise: bool
) -> None:
    by_name = {c.name: c for c in criteria.builtin(language, pairwise=pairwise)}
    assert tuple(by_name) == (PAIRWISE if pairwise else NAMES)
    for name, criterion in by_name.items():
        if name.removesuffix("_5") in TITLES[language]:
            assert criterion.title == TITLES[language][name.removesuffix("_5")]
        whole = Scale.integers(1, 3 if name == "fluency" else 5)
        assert criterion.scale == (Scale(("A", "B"), (1.0, 0.0)) if pairwise else whole)
        texts = {"first", "second"} if pairwise else {"output"}
        assert criterion.needs == texts | OTHER_NEEDS.get(name, {"source"})
        assert (criterion.language, criterion.reply, criterion.weight, criterion.version) == (
            language,
            "score",
            1.0,
            1,
        )
        assert criterion.pairwise == pairwise
        assert criterion.description
        assert 3 <= len(criterion.steps) <= 5
        fields = {
            "source": "s",
            "references": ("r",),
            "extra": {"question": "q", "contexts": ["c"]},
        }
        criteria.check_samples(criterion, [sample(**fields)])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_criteria_do_not_mention_each_other(language: str, pairwise: bool) -> None:
    stems = {
        "coherence": ("coheren", "首尾一貫", "응집", "连贯"), "consistency": ("consisten", "整合", "일치", "一致"),
        "fluency": ("fluen", "流暢", "유창", "流畅"), "relevance": ("relevan", "関連", "관련", "相关"),
    }  # fmt: skip
    for criterion in criteria.builtin(language, pairwise=pairwise):
        bodies = criteria.template_bodies(criterion).values()
        text = " ".join([*bodies, criterion.title, criterion.description, *criterion.steps]).lower()
        for name, words in stems.items():
            count = sum(text.count(word) for word in words)
            assert (count > 0) == criterion.name.startswith(name), (criterion.name, name)


def test_fluency_5_has_the_question_of_fluency() -> None:
    for language in LANGUAGES:
        fluency = criteria.load("fluency", language=language)
        fluency_5 = criteria.load("fluency_5", language=language)
        assert fluency_5.title == fluency.title
        assert fluency_5.description == fluency.description
        assert fluency_5.steps == fluency.steps
        assert criteria.template_texts(fluency_5)["summarization/fluency.jinja"] == fluency.template


def test_pairwise_selects_among_built_in_criteria_of_the_same_name() -> None:
    pointwise = criteria.load("relevance")
    pairwise = criteria.load("relevance", pairwise=True)
    assert (pointwise.pairwise, pairwise.pairwise) == (False, True)
    assert criteria.load("summarization/relevance") == pointwise
    assert criteria.load("pairwise/relevance", pairwise=True) == pairwise
    assert criteria.load("relevance", pairwise=None) == pointwise
    assert criteria.load("overall", pairwise=None) == criteria.load("overall", pairwise=True)


def test_a_criterion_for_the_wrong_number_of_texts_is_an_error(write: Write) -> None:
    pair = write(PAIR + PAIR_EXTENDS, "pair.jinja")
    single = write(HEAD + EXTENDS, "single.jinja")
    for name in ("overall", "pairwise/relevance", pair):
        assert "compares two texts; judge rank does that" in error_message(name)
    for name in ("fluency_5", "summarization/relevance", single):
        message = error_message(name, pairwise=True)
        assert "judges one text; judge rank takes a criterion that" in message
    assert criteria.load(pair, pairwise=True).pairwise
    assert has_line(error_message("relevanse", pairwise=True), "'relevanse'", "'relevance'")


def test_an_unknown_name_or_language_suggests_the_nearest() -> None:
    message = error_message("coherance")
    assert has_line(message, "'coherance'", "'coherence'")
    assert has_line(message, "a sentence", "'coherance: QUESTION'")
    assert has_line(error_message("relevance", language="de"), "language 'de'", "en, ja, ko, zh")
    assert criteria.languages() == list(LANGUAGES)


def test_prompts_inside_the_package_take_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "judge" / "criteria" / "template.py"
    monkeypatch.setattr(templates, "__file__", str(module))
    assert criteria.builtin_prompts() == tmp_path / "prompts"
    (tmp_path / "judge" / "prompts").mkdir(parents=True)
    assert criteria.builtin_prompts() == tmp_path / "judge" / "prompts"


# --------------------------------------------------------------------------------------------------------- user files


def test_every_key_of_a_header_is_read(write: Write) -> None:
    text = (
        "---\ntitle: Tone\ndescription: How it sounds.\nscale: {labels: [rude, polite], values: [-1, 0.5]}\n"
        "reply: reason_then_score\nweight: 2\nversion: 3\nsteps: [Read it., Hear it.]\n---\n{{ output }} {{ tone }}\n"
    )
    path = write(text)
    criterion = criteria.load(path)
    assert (criterion.name, criterion.path) == ("my", path)
    assert (criterion.title, criterion.description) == ("Tone", "How it sounds.")
    assert criterion.scale == Scale(("rude", "polite"), (-1.0, 0.5))
    assert (criterion.reply, criterion.weight, criterion.version) == ("reason_then_score", 2.0, 3)
    assert criterion.steps == ("Read it.", "Hear it.")
    assert criterion.needs == {"output", "tone"}
    assert criterion.template == text


def test_the_title_defaults_to_the_file_name(write: Write) -> None:
    assert criteria.load(write(HEAD + "{{ output }}", "brevity.jinja")).title == "brevity"


def test_any_line_endings_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "win.jinja"
    path.write_bytes(
        b"\xef\xbb\xbf---\r\nscale: [1, 5]\r\n---\r\n{{ output }}\r\n{{ nosuch.__class__ }}"
    )
    assert error_message(str(path)).startswith("win.jinja:5: __class__")


@pytest.mark.parametrize(
    ("scale", "labels", "values"),
    [
        ("[0, 3]", ("0", "1", "2", "3"), (0, 1, 2, 3)), ("[-1, 1]", ("-1", "0", "1"), (-1, 0, 1)),
        ("{min: 0, max: 100, step: 50}", ("0", "50", "100"), (0, 50, 100)), ("{min: 1, max: 2}", ("1", "2"), (1, 2)),
        ("{min: -0.5, max: 1, step: 0.5}", ("-0.5", "0", "0.5", "1"), (-0.5, 0, 0.5, 1)),
        ("{min: 0, max: 0.3, step: 0.1}", ("0", "0.1", "0.2", "0.3"), (0, 0.1, 0.2, 0.3)),
        ("{labels: [1, two ], values: [0.5, 2]}", ("1", "two"), (0.5, 2)),
        ('{labels: ["no", "yes"], values: [0, 1]}', ("no", "yes"), (0, 1)),
    ],
)  # fmt: skip
def test_scales_are_ranges_or_labels_with_values(
    write: Write, scale: str, labels: tuple[str, ...], values: tuple[float, ...]
) -> None:
    assert criteria.load(write(f"---\nscale: {scale}\n---\n{{{{ output }}}}")).scale == Scale(
        labels, values
    )


@pytest.mark.parametrize(
    ("scale", "facts"),
    [
        (
            "5",
            (
                "5 is not a scale",
                "{min: 0, max: 100, step: 10}",
                "{labels: [fail, pass], values: [0, 1]}",
            ),
        ),
        ("{labels: [a, b]}", ("is not a scale",)),
        ("{labels: [yes, no]}", ("yes and no", "quote them", "value")),
        ("[1, 2, 3]", ("is not a scale",)),
        ("[1, 2.5]", ("steps of 1 from 1", "2.5")),
        ("[false, true]", ("between numbers",)),
        ("[0, .inf]", ("between numbers",)),
        ("{min: 0, max: 1, step: 0.0001}", ("of at most 3 decimals",)),
        ("[5, 1]", ("5 is not below 1",)),
        ("[3, 3]", ("3 is not below 3",)),
        ("{min: 0, max: 10, step: 3}", ("steps of 3 from 0", "10")),
        ("{min: 0, max: 10, step: 0}", ("steps of 0",)),
        ("[1, 1000000000]", ("1,000,000,000 labels", "1,000")),
        ("{labels: [yes, no], values: [1, 0]}", ("yes, no, on and off", "quotes")),
        ("{labels: ab, values: [1, 0]}", ("labels", "words")),
        ("{labels: [a, b], values: [1, x]}", ("values", "numbers")),
        ("{labels: [a, b], values: [1, .nan]}", ("values", "numbers")),
        ("{labels: [a, b], values: [1]}", ("2 labels", "1 values")),
        ("{labels: [a], values: [1]}", ("two labels",)),
        ("{labels: [a, b], values: [1, 1]}", ("two labels", "two different values")),
        (
            "{labels: [good, bad, good], values: [1, 0, 1]}",
            ("'good' and 'good'", "same answer"),
        ),
        (
            "{labels: [Pass, ' pass'], values: [1, 0]}",
            ("'Pass' and 'pass'", "same answer"),
        ),
        ("{labels: [4, '４'], values: [1, 0]}", ("'4' and '４'", "same answer")),
        ("{labels: [a, ' '], values: [1, 0]}", ("label", "one line")),
        ('{labels: [a, "b\\nc"], values: [1, 0]}', ("label", "one line")),
    ],
)
def test_bad_scales_are_errors_with_line_and_reason(
    write: Write, scale: str, facts: tuple[str, ...]
) -> None:
    message = error_message(write(f"---\ntitle: T\nscale: {scale}\n---\n{{{{ output }}}}"))
    assert message.startswith("my.jinja:3: scale: ")
    assert has_line(message, *facts)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("{{ output }}", ("my.jinja:1: no header", "start")),
        ("", ("my.jinja:1: no header",)),
        (
            "---\nscale: [1, 5]\n{{ output }}",
            ("my.jinja:1:", "header", "not closed"),
        ),
        ("---\n---\n", ("my.jinja:1:", "not made of lines")),
        ("---\n- a\n---\n", ("my.jinja:1:", "not made of lines")),
        ("---\n!!set {a, b}\n---\n", ("my.jinja:1:", "not made of lines")),
        (
            "---\ntitle: a\n---\n",
            ("my.jinja:1:", "no scale", "[1, 5]"),
        ),
        (
            "---\nscale: [1, 5]\ntitel: a\n---\n",
            ("my.jinja:3:", "'titel'", "'title'"),
        ),
        ("---\nscale: [1, 5]\n3: a\n---\n", ("my.jinja:3:", "'3'")),
        (
            "---\nscale: [1, 5]\ntitle: a\nscale: [1, 3]\n---\n",
            ("my.jinja:4: scale", "second time"),
        ),
        (
            "---\nscale: [1, 5]\nreply: json\n---\n",
            ("my.jinja:3: reply:", "'score', 'score_then_reason'"),
        ),
        (
            "---\nscale: [1, 5]\nweight: 0\n---\n",
            ("my.jinja:3: weight:", "greater than 0", "not 0"),
        ),
        ("---\nscale: [1, 5]\nversion: '1'\n---\n", ("my.jinja:3: version: ",)),
        (
            "---\nscale: [1, 5]\nsteps:\n  - Read: it\n---\n",
            ("my.jinja:3: steps:", "string"),
        ),
        (
            "---\nscale: [1, 5]\nquestion: Is {{ output }} good?\n---\n",
            ("my.jinja:3: question:", ".jinja"),
        ),
        ("---\nscale: [1, 5\n---\n", ("my.jinja:3:", "not YAML", "',' or ']'")),
        (
            "---\nscale: [1, 5]\ntitle: a: b\n---\n",
            ("my.jinja:3:", "not YAML"),
        ),
        (
            "---\nscale: [1, 5]\ntitle: 2020-13-45\n---\n",
            ("my.jinja:3:", "not YAML", "month"),
        ),
        (f"---\nscale: {'[' * 700}\n---\n", ("my.jinja:1:", "too deeply")),
        ("---\nscale: !!timestamp x\n---\n", ("my.jinja:2:", "not YAML")),
    ],
)
def test_bad_headers_are_errors_with_line_and_reason(
    write: Write, text: str, facts: tuple[str, ...]
) -> None:
    message = error_message(write(text))
    assert message.startswith(facts[0])
    assert has_line(message, *facts)


def test_a_question_may_contain_placeholders(write: Write) -> None:
    text = HEAD + "Does it leave a placeholder such as {{name}}?\n"
    assert "{{name}}" in criteria.load(write(text, "filled.md")).question
    assert "only a template" in error_message(write(HEAD + "Is it good?\n{{ output }}\n", "my.md"))


def test_a_step_with_a_colon_suggests_quotes(write: Write) -> None:
    message = error_message(write("---\nscale: [1, 5]\nsteps: [Read: it]\n---\n"))
    assert has_line(message, "colon", "quotes")


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    assert error_message(str(tmp_path / "my.jinja")) == "my.jinja: no such file"
    assert error_message(str(tmp_path / "my")) == "my: no such file"
    (tmp_path / "folder.jinja").mkdir()
    assert error_message(str(tmp_path / "folder.jinja")).startswith(
        "folder.jinja: cannot be read: "
    )
    (tmp_path / "latin.jinja").write_bytes("---\ntitle: Güte\n---\n".encode("latin-1"))
    assert has_line(error_message(str(tmp_path / "latin.jinja")), "latin.jinja", "UTF-8")


@given(st.text(alphabet="-:{}[]%#'\"!&*,|> \nabcscale15_é", max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_any_header_is_a_criterion_or_an_error_with_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.jinja"
    path.write_text(f"---\nscale: [1, 5]\n{text}", encoding="utf-8")
    try:
        criteria.load(str(path))
    except CriterionError as error:
        assert str(error).startswith(f"{path}:")  # noqa: PT017 (either outcome is right)


# ---------------------------------------------------------------------------------------------------------- templates


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("{{ ''.__class__ }}", ("__class__ is out of bounds",)),
        ("{{ output.__class__.__mro__ }}", ("__mro__ is out of bounds",)),
        (
            "{{ self._TemplateReference__context }}",
            ("_TemplateReference__context is out of bounds",),
        ),
        ("{{ output", ("unexpected end of template",)),
        ("{% if output %}", ("Unexpected end of template",)),
        ("{{ output|fence }}", ("No filter named 'fence'",)),
        ("{{ output|random }}", ("No filter named 'random'",)),
        ("{{ output is blue }}", ("No test named 'blue'",)),
        ("{% include '/etc/passwd' %}", ("'/etc/passwd' lies outside",)),
        ("{% include '../secret.jinja' %}", ("'../secret.jinja' lies outside",)),
        ("{% include 'a/../../secret.jinja' %}", ("'a/../../secret.jinja' lies outside",)),
        ("{% include '..\\\\secret.jinja' %}", ("lies outside",)),
        ("{% include 'C:/secret.jinja' %}", ("lies outside",)),
        ("{% import '../macros.jinja' as m %}", ("'../macros.jinja' lies outside",)),
        ("{% from '/macros.jinja' import m %}", ("'/macros.jinja' lies outside",)),
        ("{% include '.env' %}", ("'.env' is not a template",)),
        ("{% include output %}", ("written out", "quotes")),
        ("{% include ['a.jinja', 'b.jinja'] %}", ("written out", "quotes")),
        ("{% include 'nosuch.jinja' %}", ("no template 'nosuch.jinja'", "looked in")),
        (
            "{% extends 'layouts/nosuch.jinja' %}",
            ("no template 'layouts/nosuch.jinja'", "looked in"),
        ),
        (
            "{% if output %}{% extends 'layouts/pointwise.jinja' %}{% endif %}",
            ("not inside if or for",),
        ),
        ("{{ system }}", ("system is never shown", "which system")),
        ("{{ human.coherence }}", ("human is never shown",)),
        (
            "{% if item is defined %}{{ item }}{% endif %}",
            ("item is never shown",),
        ),
    ],
)
def test_bad_templates_are_errors_with_file_and_line(
    write: Write, line: str, facts: tuple[str, ...]
) -> None:
    message = error_message(write(HEAD + "{{ output }}\n\n" + line + "\n"))
    assert has_line(message, "my.jinja:6: ", *facts)


def test_a_template_that_includes_itself_is_an_error(write: Write) -> None:
    criterion = criteria.load(write(HEAD + "{{ output }}{% include 'my.jinja' %}"))
    assert criterion.needs == {"output"}
    with pytest.raises(CriterionError, match="too deeply"):
        prompt_of(criterion, sample())
    write("{% extends 'my.jinja' %}", "a.jinja")
    assert error_message(write(HEAD + "{% extends 'a.jinja' %}")).endswith(
        "itself: my.jinja > a.jinja > my.jinja"
    )


def test_errors_of_a_layout_name_the_layout(write: Write) -> None:
    write("{{ output }}\n{{ x.__class__ }}", "parts/base.jinja")
    assert error_message(write(HEAD + "{% extends 'parts/base.jinja' %}")).startswith(
        "parts/base.jinja:2: __class__"
    )


def test_a_layout_is_searched_in_the_folder_then_the_language_then_english(write: Write) -> None:
    path = write(HEAD + EXTENDS)
    prompts = criteria.builtin_prompts()
    key = "layouts/pointwise.jinja"
    for language in ("en", "ko"):
        layout = criteria.template_texts(criteria.load(path, language=language))[key]
        assert layout == (prompts / language / key).read_text(encoding="utf-8")
    write("mine {{ output }}", key)
    assert criteria.template_texts(criteria.load(path, language="ko"))[key] == "mine {{ output }}"


def test_the_digest_covers_the_name_and_text_of_every_template_in_order(write: Write) -> None:
    write("{% include 'c.jinja' %}{{ output }}", "b.jinja")
    write("see", "c.jinja")
    criterion = criteria.load(write(HEAD + "{% extends 'b.jinja' %}"))
    texts = [
        ["my.jinja", criterion.template],
        ["b.jinja", "{% include 'c.jinja' %}{{ output }}"],
        ["c.jinja", "see"],
    ]
    assert list(criteria.template_texts(criterion).items()) == [tuple(pair) for pair in texts]
    assert criterion.digest == hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    write("sea", "c.jinja")
    assert criteria.load(criterion.path).digest != criterion.digest


# -------------------------------------------------------------------------------------------------------------- needs


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("{{ output }}{{ genre }}", {"output", "genre"}),
        (EXTENDS, {"output", "source"}),
        (EXTENDS + "{% block source %}{% endblock %}", {"output"}),
        (
            EXTENDS + "{% block source %}{{ super() }}{{ genre }}{% endblock %}",
            {"output", "source", "genre"},
        ),
        (EXTENDS + "{% block nowhere %}{{ genre }}{% endblock %}", {"output", "source"}),
        (EXTENDS + "{{ genre }}", {"output", "source"}),
        (
            EXTENDS + "{% set tone = genre %}{% block output %}{{ tone }}{% endblock %}",
            {"source", "genre"},
        ),
        (
            "{% extends 'summarization/fluency.jinja' %}{% block scores %}{{ genre }}{% endblock %}",
            {"output", "genre"},
        ),
        (
            "{% extends 'summarization/fluency.jinja' %}{% block criterion %}{{ genre }}{% endblock %}",
            {"output", "genre"},
        ),
        ("{% for item in references %}{{ item }}{{ loop.index }}{% endfor %}", {"references"}),
        (
            "{% for r in references %}{% block one scoped %}{{ r }}{% endblock %}{% endfor %}",
            {"references"},
        ),
        ("{% if genre is defined %}{{ genre }}{% endif %}{{ output }}", {"output"}),
        ("{{ genre|default('news') }}{{ d['x'] is defined }}", {"d"}),
        (
            "{{ this.title }}{% for n in range(3) %}{{ n }}{% endfor %}{{ dict(a=output) }}",
            {"output"},
        ),
        ("{% macro m(x) %}{{ x }}{{ genre }}{% endmacro %}{{ m(output) }}", {"output", "genre"}),
        ("{% include 'part.jinja' %}", {"genre", "output"}),
        ("{% include 'part.jinja' without context %}", set()),
        ("{% include 'nosuch.jinja' ignore missing %}{{ output }}", {"output"}),
        ("{% import 'part.jinja' as p %}{{ p.x }}", set()),
        ("{% import 'part.jinja' as p with context %}{{ p.x }}", {"genre", "output"}),
        ("{% from 'part.jinja' import x with context %}{{ x }}", {"genre", "output"}),
    ],
)
def test_needs_are_the_variables_that_a_template_reads(
    write: Write, text: str, needs: set[str]
) -> None:
    write("{% block p %}{{ genre }}{% endblock %}{% set x = output %}", "part.jinja")
    assert criteria.load(write(HEAD + text)).needs == needs


def test_a_template_nested_too_deeply_is_an_error(write: Write) -> None:
    with pytest.raises(CriterionError, match="nested too deeply"):
        criteria.load(write(HEAD + "{{ " + "(" * 20_000 + "output" + ")" * 20_000 + " }}"))


def test_layouts_are_read_once(write: Write) -> None:
    layout = Path(write("mine {{ output }}", "base.jinja"))
    criterion = criteria.load(write(HEAD + "{% extends 'base.jinja' %}"))
    layout.unlink()
    assert criteria.template_texts(criterion)["base.jinja"] == "mine {{ output }}"


@pytest.mark.parametrize("name", sorted(criteria.HIDDEN))
def test_a_comparison_cannot_show_hidden_fields(write: Write, name: str) -> None:
    path = write(f"{PAIR}{{{{ first }}}}{{{{ second }}}}{{{{ {name} }}}}")
    assert has_line(error_message(path, pairwise=True), name, "never shown")


def test_a_scale_has_up_to_1_000_labels() -> None:
    def load(labels: int) -> int:
        values = {"labels": [f"l{n}" for n in range(labels)], "values": list(range(labels))}
        text = f"---\nscale: {json.dumps(values)}\n---\n{{{{ output }}}}"
        return len(criteria.load(text=text, name="many").scale.labels)

    assert load(1_000) == 1_000
    with pytest.raises(CriterionError, match="at most 1,000"):
        load(1_001)


# --------------------------------------------------------------------------------------- questions without a template

QUESTION = "Is the {{ reply }} polite, {% raw %} and kind: or not?"


def prompt_of(criterion: Criterion, text: Sample) -> str:
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    return str(renderer.render(text).messages[0]["content"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_equivalent_entries_have_the_same_prompt(write: Write, language: str) -> None:
    quoted = json.dumps(QUESTION)
    texts = {
        "a.txt": QUESTION + "\n", "b.md": f"---\nscale: [1, 5]\n---\n\n{QUESTION}", "c.yaml": f"question: {quoted}",
        "d.yml": f"# mine\n---\nquestion: {quoted}\n...\n", "e.jinja": f"---\nquestion: {quoted}\n---\n",
    }  # fmt: skip
    variants = [criteria.load(write(text, name), language=language) for name, text in texts.items()]
    variants.append(criteria.load(f"f: {QUESTION}", language=language))
    variants.append(criteria.load({"name": "g", "question": QUESTION}, language=language))
    in_python = criteria.finalize(Criterion("h", question=QUESTION, scale=(1, 5)))  # type: ignore[arg-type]
    variants.append(criteria.in_language(in_python, language))
    assert [criterion.name for criterion in variants] == list("abcdefgh")
    prompts = {
        prompt_of(replace(criterion, title="T"), sample(source="Where?")) for criterion in variants
    }
    (prompt,) = prompts
    assert QUESTION in prompt
    assert "<source " in prompt
    assert "<source " not in prompt_of(variants[0], sample())
    assert all(
        criterion.scale == Scale.integers(1, 5) and criterion.needs == {"output"}
        for criterion in variants
    )
    assert all(
        templates.is_packaged(criterion.path, template_body(criterion.template))
        for criterion in variants
    )


def test_the_columns_of_show_are_shown_in_order_with_their_names(write: Write) -> None:
    criterion = criteria.load(
        write("question: Is it?\nshow: [customer, input, expected_output, tags]\n", "a.yaml")
    )
    assert criterion.needs == {"output", "customer", "source", "references", "tags"}
    text = sample(
        source="Where?",
        references=("R1", "R2"),
        extra={"customer": "Ann", "tags": 3, "secret": "no"},
    )
    marks = re.findall(r"^<(\w+) \w+>\n(.*)$", prompt_of(criterion, text), re.MULTILINE)
    assert marks == [
        ("customer", "Ann"),
        ("source", "Where?"),
        ("references", "R1"),
        ("references", "R2"),
        ("tags", "3"),
        ("output", text.output),
    ]
    without_source = sample(extra={"customer": "Ann", "tags": 3}, references=("R",))
    with pytest.raises(DataError, match=r"a\.yaml: show: .*reads source"):
        criteria.check_samples(criterion, [without_source])


@pytest.mark.parametrize(
    ("name", "text", "facts"),
    [
        ("a.yaml", "question: Q?\nscal: [1, 3]\n", ("a.yaml:2:", "'scal'", "'scale'")),
        ("a.yaml", "# c\n---\nquestion: Q?\nscale: [3, 1]\n", ("a.yaml:4: scale:", "3")),
        ("a.yaml", "question: Is it: or not\n", ("a.yaml:1:", "not YAML")),
        ("a.yaml", "\nquestion:\n", ("a.yaml:2: question:", "empty")),
        ("a.yaml", "# c\nname: b\nquestion: Q?\n", ("a.yaml:2: name:", "b")),
        ("a.yaml", "", ("a.yaml:1:", "question:")),
        ("a.yaml", "# nothing\n", ("a.yaml:", "question:")),
        ("a.yaml", "scale: [1, 5]\n", ("a.yaml: has no question", "question:")),
        ("a.yaml", "question: Q?\n---\n{{ output }}\n", ("a.yaml:2: text after",)),
        ("run.yaml", "data: d.csv\ncriteria: [a]\n", ("run.yaml:1: data", "of a run")),
        ("a.yaml", "question: Q?\nshow: [system]\n", ("a.yaml: show: system", "never shown")),
        ("a.yaml", "question: Q?\nshow: [my text]\n", ("a.yaml:2: show: 'my text'", "one word")),
        ("a.yaml", "question: Q?\nshow: [actual_output]\n", ("a.yaml:2: show: actual_output: the text",)),
        ("a.md", "---\nscal: [1, 5]\n---\nQ?\n", ("a.md:2: unknown key 'scal'",)),
        ("a.md", "---\nscale: [1, 5]\nquestion: Q?\n---\nQ?\n", ("a.md:4: question", "second time")),
        ("a.txt", " \n", ("a.txt: has no question",)),
        ("a.jinja", "---\ntitle: T\n---\n{{ output }}", ("a.jinja:1:", "no scale")),
        ("a.jinja", "---\nquestion: Q?\n---\n{{ output }}", ("a.jinja: question:", "never prints")),
        ("a.jinja", HEAD.replace("---\ns", "---\nshow: [x]\ns") + "{{ output }}", ("a.jinja: show: is for",)),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_names_its_line(
    write: Write, name: str, text: str, facts: tuple[str, ...]
) -> None:
    message = error_message(write(text, name))
    assert message.startswith(facts[0])
    assert has_line(message, *facts)


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        ("Is the reply polite?", ("'Is the reply polite?':", "'NAME: QUESTION'")),
        ({"name": "a", "question": "Q?", "scale": [5, 1]}, ("a: scale: 5 ",)),
        ({"name": "a", "questoin": "Q?"}, ("a:", "'questoin'", "'question'")),
        ({"question": "Q?"}, ("criteria: question:", "no name")),
    ],
)  # fmt: skip
def test_a_mistake_in_an_entry_without_a_file_names_the_criterion(
    entry: object, facts: tuple[str, ...]
) -> None:
    with pytest.raises(CriterionError) as caught:
        criteria.load(entry)  # type: ignore[arg-type]
    assert str(caught.value).startswith(facts[0])
    assert has_line(str(caught.value), *facts)
    with pytest.raises(CriterionError, match="a: a Criterion has"):
        criteria.finalize(Criterion("a"))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("polite.yaml", "name: NAME\nquestion: Is it polite?\n"),
        ("polite.improved.yaml", "{name: NAME, question: Is it polite?}\n"),
        ("polite.md", "---\nname: NAME\n---\nIs it polite?\n"),
        ("polite.txt", "---\nname: NAME\n---\nIs it polite?\n"),
        ("polite.jinja", "---\nname: NAME\nscale: [1, 5]\n---\n{{ output }}\n"),
    ],
)
def test_the_name_in_a_file_must_be_the_file_name(tmp_path: Path, file: str, text: str) -> None:
    path = tmp_path / file
    path.write_text(text.replace("NAME", "polite"), encoding="utf-8")
    assert criteria.load(path).name == "polite"
    for wrong_name in ("kind", "../kind", "a/b", "."):
        path.write_text(text.replace("NAME", f"'{wrong_name}'"), encoding="utf-8")
        with pytest.raises(CriterionError, match=rf"name: is {re.escape(wrong_name)}, .*polite"):
            criteria.load(path)


@pytest.mark.parametrize(
    ("parent", "cycle"),
    [("my.jinja", "my.jinja > my.jinja"), ("base.jinja", "my.jinja > base.jinja > my.jinja")],
)
def test_a_template_that_extends_itself_is_an_error(
    tmp_path: Path, parent: str, cycle: str
) -> None:
    path = tmp_path / "my.jinja"
    path.write_text(f"---\nscale: [1, 5]\n---\n{{% extends {parent!r} %}}", encoding="utf-8")
    (tmp_path / "base.jinja").write_text("{% extends 'my.jinja' %}", encoding="utf-8")
    with pytest.raises(CriterionError, match=f"extends itself: {cycle}"):
        criteria.load(path)


def test_criteria_that_extend_one_layout_have_separate_variables(tmp_path: Path) -> None:
    (tmp_path / "base.jinja").write_text(
        "{{ output }}{% for _ in [1] %}{% block more %}{{ source }}{% endblock %}{% endfor %}",
        encoding="utf-8",
    )
    blocks = {
        "first": "{% block more %}{{ topic }}{% endblock %}",
        "second": "{% block more %}{{ super() }}{{ audience }}{% endblock %}",
        "third": "",
    }
    needs = {}
    for name, block in blocks.items():
        file = tmp_path / f"{name}.jinja"
        file.write_text(
            f"---\nscale: [1, 5]\n---\n{{% extends 'base.jinja' %}}{block}", encoding="utf-8"
        )
        needs[name] = criteria.load(file).needs
    assert needs == {
        "first": {"output", "topic"},
        "second": {"output", "source", "audience"},
        "third": {"output", "source"},
    }


def test_questions_share_the_variables_of_their_layouts() -> None:
    criteria.load({"name": "polite", "question": "Is it polite?"})
    before = variables._variables_of_texts.cache_info().misses
    criteria.load({"name": "kind", "question": "Is it kind?", "scale": [1, 7]})
    assert variables._variables_of_texts.cache_info().misses == before


@pytest.mark.slow
def test_each_template_is_compiled_once() -> None:
    entries = [
        {"name": f"aspect{number}", "question": f"Is aspect {number} fine?"} for number in range(70)
    ]
    rows = [sample(f"text {number}", source="s") for number in range(4)]
    caches = [
        sandbox._compiled,
        templates.parse_cached,
        templates.is_packaged,
        variables._variables_of_texts,
    ]
    loaded = [criteria.load(entry) for entry in entries]
    renderers = [Renderer(criterion, criteria.template_bodies(criterion)) for criterion in loaded]
    for criterion, renderer in zip(loaded, renderers, strict=True):
        criteria.reads(criterion, "source")
        renderer.render(rows[0])
    before = [cache.cache_info().misses for cache in caches]
    for row in rows:
        for criterion, renderer in zip(loaded, renderers, strict=True):
            criteria.reads(criterion, "source")
            Renderer(criterion, criteria.template_bodies(criterion)).render(row)
            renderer.render(row)
    assert [cache.cache_info().misses for cache in caches] == before
