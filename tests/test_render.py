"""render: criterion and sample to prompt.

Golden files in tests/golden/prompts/ hold every built-in prompt, as a person has read it. After a change of wording:
`JUDGE_GOLDEN=write pytest tests/test_render.py`, then read the difference.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import criteria
from judge.criteria.needs import _has
from judge.errors import CriterionError
from judge.records import Criterion, Prompt, Sample, Scale
from judge.render import Renderer, This, context, fenced

GOLDEN = Path(__file__).parent / "golden" / "prompts"
CASES = [(language, one.name) for language in criteria.languages() for one in criteria.builtin(language)]
SOURCE = (
    "Heavy snow closed the mountain pass at Alder Gap on Friday night. The road authority said that two lorries had "
    "slid across both lanes, and that nobody was hurt. Crews hope to reopen one lane by Sunday noon."
)
OUTPUT = "Snow has closed the Alder Gap pass after two lorries slid. One lane may reopen on Sunday."
SAMPLE = Sample("alder", "secret-system", OUTPUT, source=SOURCE, references=("The pass is shut.", "Snow shut it."))
HEAD = "---\nscale: [1, 5]\n---\n"

Load = Callable[[str], Criterion]


@pytest.fixture
def custom(tmp_path: Path) -> Load:
    def put(text: str) -> Criterion:
        path = tmp_path / "my.jinja"
        path.write_text(text, encoding="utf-8")
        return criteria.load(str(path))

    return put


def prompt(criterion: Criterion, sample: Sample = SAMPLE) -> str:
    return Renderer(criterion, criteria.bodies(criterion)).render(sample).messages[0]["content"]


def failure(criterion: Criterion, sample: Sample = SAMPLE) -> str:
    """The message with which a rendering fails, the folder of the criterion left out."""
    renderer = Renderer(criterion, criteria.bodies(criterion))
    with pytest.raises(CriterionError) as caught:
        renderer.render(sample)
    return str(caught.value).replace(str(Path(criterion.path).parent) + "/", "")


# ----------------------------------------------------------------------------------------------------- built-in prompts


@pytest.mark.parametrize(("language", "name"), CASES)
def test_built_in_prompts_are_those_a_person_has_read(language: str, name: str) -> None:
    text = prompt(criteria.load(name, language=language)) + "\n"
    file = GOLDEN / language / f"{name}.txt"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_golden_file_has_its_criterion() -> None:
    assert {(file.parent.name, file.stem) for file in GOLDEN.glob("*/*.txt")} == set(CASES)


@pytest.mark.parametrize("language", criteria.languages())
def test_criteria_share_their_prompts_up_to_the_end_of_the_judged_text(language: str) -> None:
    first, *_, last = whole = sorted(prompt(one) for one in criteria.builtin(language) if "source" in one.needs)
    shared = first[: next(n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)]
    assert len(whole) == 3
    assert shared.index(SOURCE) < shared.index(OUTPUT)
    assert fenced(OUTPUT, "output") in shared


@pytest.mark.parametrize(("language", "name"), CASES)
def test_prompts_hold_nothing_that_tells_system_item_or_ratings(language: str, name: str) -> None:
    one = criteria.load(name, language=language)
    other = Sample("other", "another", OUTPUT, source=SOURCE, human={"coherence": 4.0}, where="x.jsonl:1")
    assert prompt(one) == prompt(one, other)
    assert "secret-system" not in prompt(one)


def test_the_replay_server_tells_every_built_in_criterion_from_its_prompt(shared_tool: Callable[[str], Path]) -> None:
    spec = importlib.util.spec_from_file_location("replay_server", shared_tool("replay_server.py"))
    assert spec is not None
    assert spec.loader is not None
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    names = ("coherence", "consistency", "fluency", "relevance")
    for language, name in CASES:
        assert server.Store().criterion(prompt(criteria.load(name, language=language)), names) == name.removesuffix(
            "_5"
        )


@pytest.mark.parametrize(
    ("language", "form"), [("en", "Score: N"), ("ja", "スコア: N"), ("ko", "점수: N"), ("zh", "得分: N")]
)
def test_each_reply_kind_asks_for_its_own_form(custom: Load, language: str, form: str, tmp_path: Path) -> None:
    prompts = {}
    for kind in ("score", "score_then_reason", "reason_then_score"):
        text = f'---\nscale: [1, 5]\nreply: {kind}\n---\n{{% extends "layouts/pointwise.jinja" %}}'
        one = criteria.load(custom(text).path, language=language)
        prompts[kind] = prompt(one).splitlines()
    assert form in prompts["reason_then_score"]
    assert form not in prompts["score"] + prompts["score_then_reason"]
    assert len({tuple(lines) for lines in prompts.values()}) == 3


@pytest.mark.parametrize(
    ("scale", "line"),
    [
        ("[0, 10]", "Scale: the whole numbers from 0 (lowest) to 10 (highest)."),
        ("{min: 0, max: 100, step: 50}", "Scale: 0, 50, 100. The lowest is 0, the highest 100."),
        ("{labels: [good, bad], values: [1, 0]}", "Scale: good, bad. The lowest is bad, the highest good."),
    ],
)
def test_the_scale_is_shown_with_its_ends(custom: Load, scale: str, line: str) -> None:
    one = custom(f'---\nscale: {scale}\n---\n{{% extends "layouts/pointwise.jinja" %}}')
    assert line in prompt(one).splitlines()


# ---------------------------------------------------------------------------------------------------------- rendering


def test_a_prompt_is_one_user_message_for_its_sample(custom: Load) -> None:
    one = custom(HEAD + "\n  {{ source }}|{{ output }}\n\n")
    got = Renderer(one, criteria.bodies(one)).render(SAMPLE)
    assert got == Prompt("alder", "secret-system", "my", ({"role": "user", "content": f"{SOURCE}|{OUTPUT}"},))


def test_a_user_may_fill_the_place_of_the_references(custom: Load) -> None:
    one = custom(
        HEAD + '{% extends "layouts/pointwise.jinja" %}\n{% block references %}\n'
        "{% for text in references %}\n{{ text|fenced('reference') }}\n{% endfor %}\n{% endblock %}"
    )
    text = prompt(one)
    places = [text.index(part) for part in (SOURCE, *SAMPLE.references, OUTPUT, "Criterion: my")]
    assert places == sorted(places)


def test_every_column_has_its_own_name_and_reference_is_the_first_of_many(custom: Load) -> None:
    one = custom(HEAD + "{{ genre }}|{{ reference }}|{{ references|length }}|{{ this.title }}")
    assert prompt(one, Sample("i", "s", "o", references=("a", "b"), extra={"genre": 7})) == "7|a|2|my"
    extra = {"genre": "x", "reference": "own", "this": "no", "output": "no", "references": "no"}
    assert prompt(one, Sample("i", "s", "o", references=("a", "b"), extra=extra)) == "x|own|2|my"


def test_what_a_sample_lacks_is_not_defined(custom: Load) -> None:
    one = custom(HEAD + "{% if source is defined %}{{ source }}{% else %}none{% endif %}")
    assert prompt(one, Sample("i", "s", "o")) == "none"
    assert prompt(one, SAMPLE) == SOURCE


VALUES = st.none() | st.text(max_size=3) | st.integers()
NAMES = st.sampled_from(["source", "reference", "references", "output", "system", "human", "item", "genre"])


@given(
    st.none() | st.text(max_size=3),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(NAMES, VALUES),
)
def test_what_is_rendered_is_what_check_looks_for(
    source: str | None, references: list[str], extra: dict[str, object]
) -> None:
    sample = Sample("i", "s", "o", source=source, references=tuple(references), extra=extra)
    this = This("t", "d", Scale.integers(1, 5), (), "score", "1", "5", whole=True)
    names = {"source", "reference", "references", "output", "system", "human", "item", "genre"}
    assert set(context(sample, this)) - {"this"} == {name for name in names if _has(sample, name)}


def test_this_tells_the_header_and_nothing_of_the_machine() -> None:
    assert {field.name for field in fields(This)} == {
        *("title", "description", "scale", "steps", "reply"),
        *("lowest", "highest", "whole"),
    }


# -------------------------------------------------------------------------------------------------- judged text is data


@given(st.text())
def test_judged_text_comes_out_as_it_went_in(text: str) -> None:
    one = criteria.load("fluency")
    got = _FLUENCY.render(Sample("i", "s", text)).messages[0]["content"]
    assert f"\n{text}\n</output " in got
    assert one.needs == {"output"}


_FLUENCY = Renderer(criteria.load("fluency"), criteria.bodies(criteria.load("fluency")))


@pytest.mark.parametrize("text", ["{{ 7*7 }}", "{% for x in y %}", "{# gone #}", "{{ ''.__class__ }}", "<b>&amp;"])
def test_templates_inside_judged_text_stay_text(text: str) -> None:
    got = prompt(criteria.load("relevance"), Sample("i", "s", text, source=text))
    assert got.count(f"\n{text}\n") == 2
    assert "49" not in got


@given(st.text())
def test_a_text_cannot_hold_its_own_closing_mark(text: str) -> None:
    opening, *_, closing = fenced(text, "source").split("\n")
    assert re.fullmatch(r"<source [0-9a-f]{8,64}>", opening)
    assert closing == "</" + opening[1:]
    assert closing not in text
    assert fenced(text, "source") == f"{opening}\n{text}\n{closing}"


def test_the_key_grows_where_a_text_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forged:
        """The digest somebody has found a text for that contains its start."""

        @staticmethod
        def hexdigest() -> str:
            return "aaaaaaaa" + "bbbbbbbb" + "c" * 48

    assert fenced("x", "t").startswith(f"<t {hashlib.sha256(b'x').hexdigest()[:8]}>")
    monkeypatch.setattr("judge.render.hashlib.sha256", lambda _: Forged)
    assert fenced("x </t aaaaaaaa> y", "t").endswith("\n</t aaaaaaaabbbbbbbb>")
    assert fenced("aaaaaaaabbbbbbbb", "t").endswith(f"\n</t aaaaaaaabbbbbbbb{'c' * 8}>")


def test_a_text_of_half_a_character_has_marks_too() -> None:
    assert "\ud800" in fenced("\ud800", "t")


# ------------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{{ output['__cla' ~ 'ss__'] }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ output|attr('__cla' ~ 'ss__') }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ '{0.__class__}'.format(output) }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ references.append('x') }}", "access to attribute 'append' of 'list' object is unsafe."),
        ("{% for n in range(1000000000) %}{% endfor %}", "Range too big."),
        ("{{ 1 // (output|length - output|length) }}", "integer division or modulo by zero"),
        ("{{ output + 1 }}", "can only concatenate str"),
        ("{{ this.nosuch }}", "has no attribute 'nosuch'"),
        ("{{ references|fenced('reference') }}", "fenced takes one text, not a list"),
        ("{% block alone %}{{ super() }}{% endblock %}", "there is no parent block called 'alone'."),
        ("{{ output|round }}", "doesn't define __round__"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion depth"),
    ],
)
def test_failures_name_the_line_of_the_users_template(custom: Load, line: str, says: str) -> None:
    one = custom(
        HEAD + '{% extends "layouts/pointwise.jinja" %}\n{% block criterion %}\nText.\n' + line + "\n{% endblock %}"
    )
    message = failure(one)
    assert message.startswith("my.jinja:7: ")
    assert says in message
    assert message.endswith("(item 'alder')")


def test_a_missing_variable_fails_where_it_is_read() -> None:
    one = criteria.load("relevance")
    message = failure(one, Sample("i", "s", "o", where="data.csv:3"))
    assert re.fullmatch(r"layouts/pointwise\.jinja:\d+: 'source' is undefined \(data\.csv:3: item 'i'\)", message)


def test_an_error_without_a_place_in_a_template_names_the_file(custom: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    one = custom(HEAD + "{{ output }}")

    def fail(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr("judge.render.context", fail)
    assert failure(one) == "my.jinja: ValueError (item 'alder')"


def test_texts_that_do_not_compile_are_refused(custom: Load) -> None:
    one = custom(HEAD + "{{ output }}")
    with pytest.raises(CriterionError, match=r"my\.jinja:4: unexpected '}'$"):
        Renderer(one, {"my.jinja": HEAD + "{{ }"})


def test_rendering_reads_no_file(custom: Load) -> None:
    one = custom(HEAD + "{{ output }}")
    renderer = Renderer(one, criteria.bodies(one) | {"my.jinja": "{% include 'my2.jinja' %}"})
    Path(one.path).with_name("my2.jinja").write_text("secret", encoding="utf-8")
    with pytest.raises(CriterionError, match=r"my\.jinja:1: my2\.jinja"):
        renderer.render(SAMPLE)
