"""check_samples: the samples have the inputs that a template reads. Oracle: Jinja's rendering of the same texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from judge import criteria
from judge.core.errors import CriterionError, DataError
from judge.core.records import Criterion, Sample
from judge.criteria.render import MissingInput, Renderer
from tests.factories import has_line

HEAD = "---\nscale: [1, 5]\n---\n"
EXTENDS = '{% extends "layouts/pointwise.jinja" %}\n'
PAIR = "---\nscale: {labels: [A, B], values: [1, 0]}\n---\n"
PAIR_EXTENDS = '{% extends "layouts/pairwise.jinja" %}\n'
Write = Callable[..., str]


def sample(item: str = "a", system: str = "s", **fields: object) -> Sample:
    return Sample(item, system, "The pass is shut.", **fields)  # type: ignore[arg-type]


def test_samples_with_all_inputs_pass_the_check(write: Write) -> None:
    text = HEAD + "{{ source }}{{ references }}{{ reference }}{{ genre }}{{ output }}"
    criterion = criteria.load(write(text))
    criteria.check_samples(criterion, [sample(source="s", references=("r",), extra={"genre": 0})])
    criteria.check_samples(
        criteria.load(write(HEAD + "{{ reference }}{{ output }}")),
        [sample(extra={"reference": "r"})],
    )
    criteria.check_samples(criterion, [])


@pytest.mark.parametrize(
    "text",
    ["", "{{ source }}", "{% extends 'layouts/pointwise.jinja' %}{% block output %}{% endblock %}"],
)
def test_a_template_that_never_shows_the_judged_text_is_an_error(write: Write, text: str) -> None:
    with pytest.raises(CriterionError, match="never shows the judged text"):
        criteria.check_samples(criteria.load(write(HEAD + text)), [sample(source="s")])


def test_an_unknown_variable_is_a_template_error(write: Write) -> None:
    criterion = criteria.load(
        write(HEAD + EXTENDS + "{% block criterion %}\n{{ sumary }}\n{% endblock %}")
    )
    rows = [sample(source="x", extra={"summary": "y", "system": "z"}), sample("b", source="x")]
    with pytest.raises(CriterionError) as caught:
        criteria.check_samples(criterion, rows)
    facts = ("'sumary'", "'summary'", "output, source, summary")
    assert has_line(str(caught.value), f"{criterion.path}:6: ", *facts)
    with pytest.raises(CriterionError, match=r"'sumary'.*output, source$"):
        criteria.check_samples(criterion, [sample(source="x")])


def test_an_unknown_variable_of_a_layout_names_the_layout(write: Write) -> None:
    write("{{ output }}\n{% for genre in references %}{% endfor %}", "aside.jinja")
    write("{% include 'aside.jinja' %}\n\n{{ genre }}", "base.jinja")
    criterion = criteria.load(write(HEAD + "{% extends 'base.jinja' %}"))
    with pytest.raises(CriterionError, match=r"^base\.jinja:3: unknown variable 'genre'"):
        criteria.check_samples(criterion, [sample(references=("r",))])


@pytest.mark.parametrize("blank", [None, ""])
def test_data_without_any_source_is_a_data_error(blank: str | None) -> None:
    with pytest.raises(DataError) as caught:
        criteria.check_samples(
            criteria.load("relevance"), [sample(source=blank), sample("b", source=blank)]
        )
    facts = ("relevance reads source", "no sample", "--map source=COLUMN", "output")
    line = 1 + criteria.template_texts(criteria.load("relevance"))[
        "layouts/pointwise.jinja"
    ].splitlines().index('{{ source|fenced("source") }}')
    assert has_line(str(caught.value), f"layouts/pointwise.jinja:{line}: ", *facts)


@pytest.mark.parametrize(
    ("template", "fields", "name"),
    [
        ("{{ source }}", {"source": "x"}, "source"),
        ("{{ reference }}", {"references": ("r",)}, "reference"),
        ("{{ references }}", {"references": ("r",)}, "references"),
        ("{{ genre }}", {"extra": {"genre": "news"}}, "genre"),
    ],
)
def test_only_a_text_without_an_input_cannot_be_rendered(
    write: Write, template: str, fields: dict[str, Any], name: str
) -> None:
    criterion = criteria.load(write(HEAD + template + "{{ output }}"))
    without = sample("b", where="data.jsonl:17")
    criteria.check_samples(criterion, [sample(**fields), without])
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    assert renderer.render(sample(**fields)).messages
    with pytest.raises(MissingInput) as caught:
        renderer.render(without)
    facts = ("item 'b' of system 's'", f"no {name}", "criterion my")
    assert has_line(str(caught.value), "data.jsonl:17: ", *facts)


@pytest.mark.parametrize("empty", ["", " \n", (), [], {}])
@pytest.mark.parametrize("name", ["source", "reference", "references", "question", "contexts"])
def test_empty_inputs_count_as_missing(write: Write, name: str, empty: Any) -> None:
    criterion = criteria.load(write(HEAD + f"{{{{ {name} }}}}{{{{ output }}}}"))
    if name == "source":
        without = sample(source=empty if isinstance(empty, str) else None)
    elif name == "reference":
        without = sample(references=(empty,) if isinstance(empty, str) else ())
    elif name == "references":
        without = sample(references=tuple(empty))
    else:
        without = sample(extra={name: empty})
    with pytest.raises(MissingInput, match=f"no {name}, .*criterion my"):
        Renderer(criterion, criteria.template_bodies(criterion)).render(without)
    with pytest.raises((CriterionError, DataError), match=name):
        criteria.check_samples(criterion, [without, without])


@pytest.mark.parametrize("value", [0, False, 0.0])
def test_zero_does_not_count_as_missing(write: Write, value: Any) -> None:
    criterion = criteria.load(write(HEAD + "Turn {{ turn }}: {{ output }}"))
    prompt = Renderer(criterion, criteria.template_bodies(criterion)).render(
        sample(extra={"turn": value})
    )
    assert f"Turn {value}: " in prompt.messages[0]["content"]


@pytest.mark.parametrize(
    "template",
    [
        "{% if question %}Q: {{ question }}{% endif %}",
        "{% if not question %}{% else %}Q: {{ question }}{% endif %}",
        "{% if output and question %}Q: {{ question }}{% endif %}",
        "{{ 'Q: ' + question if question else '' }}",
        "{% if question is defined %}Q: {{ question }}{% endif %}",
    ],
)
@pytest.mark.parametrize("extra", [{}, {"question": ""}, {"question": " "}])
def test_an_input_that_the_template_tests_for_is_optional(
    write: Write, template: str, extra: dict[str, Any]
) -> None:
    criterion = criteria.load(write(HEAD + template + "{{ output }}"))
    with_question = sample(extra={"question": "Where?"})
    without = sample("b", extra=extra)
    criteria.check_samples(criterion, [with_question, without])
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    assert "Q: Where?" in renderer.render(with_question).messages[0]["content"]
    assert "Q:" not in renderer.render(without).messages[0]["content"]


def test_an_optional_input_that_no_text_has_suggests_the_nearest_column(write: Write) -> None:
    criterion = criteria.load(write(HEAD + "{% if questoin %}Q{% endif %}{{ output }}"))
    with pytest.raises(CriterionError, match=r"'questoin'.*'question'"):
        criteria.check_samples(criterion, [sample(extra={"question": "Where?"})])


def test_texts_that_each_lack_an_input_are_an_error(write: Write) -> None:
    criterion = criteria.load(write(HEAD + "{{ source }}{{ reference }}{{ output }}"))
    rows = [sample(source="x"), sample("b", references=("r",))]
    with pytest.raises(DataError, match="1 of 2 texts"):
        criteria.check_samples(criterion, rows)


def test_a_comparison_reads_both_texts_and_no_output(write: Write) -> None:
    criterion = criteria.load(
        write(PAIR + PAIR_EXTENDS + "{% block source %}{% endblock %}"), pairwise=True
    )
    criteria.check_samples(criterion, [sample(), sample("b")])
    path = write(PAIR + PAIR_EXTENDS + "{% block source %}\n{{ output }}{% endblock %}")
    with pytest.raises(
        CriterionError,
        match=r"my\.jinja:6: .*no output",
    ):
        criteria.check_samples(criteria.load(path, pairwise=True), [sample()])
    criterion = criteria.load(
        write(PAIR + PAIR_EXTENDS + "{% block source %}{{ firts }}{% endblock %}"), pairwise=True
    )
    with pytest.raises(CriterionError, match=r"'first'.*first, second$"):
        criteria.check_samples(criterion, [sample()])
    with pytest.raises(DataError, match="relevance reads source"):
        criteria.check_samples(criteria.load("relevance", pairwise=True), [sample()])


def comparison(write: Write, scale: str) -> Criterion:
    """Return a criterion that compares two texts on a scale."""
    path = write(f"---\nscale: {scale}\n---\n{{{{ first }}}}{{{{ second }}}}")
    return criteria.load(path, pairwise=True)


@pytest.mark.parametrize(
    "scale",
    ["[0, 1]", "{labels: [A, B, C], values: [1, 0, 0.5]}", "{labels: [x, y], values: [0, 1]}"],
)
def test_the_values_of_a_comparison_are_0_and_1(write: Write, scale: str) -> None:
    criteria.check_samples(comparison(write, scale), [sample()])


@pytest.mark.parametrize(
    ("scale", "facts"),
    [
        ("[1, 5]", ("better", "{labels: [A, B], values: [1, 0]}")),
        ("{labels: [A, B], values: [1, -1]}", ("scale: a value", "text shown first")),
        ("{labels: [A, B], values: [1, 0.5]}", ("scale: a value", "text shown first")),
        ("{labels: [A, B], values: [0, 1]}", ("a is the text shown first", "1", "b counts 0")),
    ],
)
def test_other_values_of_a_comparison_are_an_error(
    write: Write, scale: str, facts: tuple[str, ...]
) -> None:
    with pytest.raises(CriterionError) as caught:
        criteria.check_samples(comparison(write, scale), [sample()])
    assert has_line(str(caught.value), *facts)


@pytest.mark.parametrize("column", ["参照訳", "참조 번역", "参考译文"])
def test_a_column_of_reference_translations_is_suggested(write: Write, column: str) -> None:
    criterion = criteria.load(write(HEAD + "{{ references }}{{ output }}"))
    with pytest.raises((CriterionError, DataError)) as refused:
        criteria.check_samples(criterion, [sample(extra={column: "A translation."})])
    assert has_line(str(refused.value), f"references={column}")
