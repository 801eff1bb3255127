"""Criteria and samples are rendered to prompts.

Golden files in tests/golden/prompts/ contain every built-in prompt, and a person has read them. After a change of
wording, run `JUDGE_GOLDEN=write pytest tests/criteria/test_render.py` and read the difference.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from judge import criteria
from judge.core.errors import CriterionError
from judge.core.records import Choice, Criterion, Example, Form, Prompt, ReplyKind, Sample, Scale
from judge.criteria import sandbox
from judge.criteria.loading import builtin_files
from judge.criteria.render import (
    Renderer,
    render_drafting_prompt,
    template_variables,
)
from judge.criteria.sandbox import CriterionView, Templates, fenced
from judge.scoring import parse
from tests.factories import has_line

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
LANGUAGES = criteria.languages()
# The names come from the files, so that no criterion is loaded when pytest collects the tests.
NAMES = [
    (language, path.parent.name, path.stem)
    for language in LANGUAGES
    for path in builtin_files(language).values()
]
CASES = [(language, name) for language, task, name in NAMES if "pairwise" not in task]
PAIRS = [(language, name) for language, task, name in NAMES if "pairwise" in task]
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")
SOURCE = (
    "Heavy snow closed the mountain pass at Alder Gap on Friday night. The road authority said that two lorries had "
    "slid across both lanes, and that nobody was hurt. Crews hope to reopen one lane by Sunday noon."
)
OUTPUT = "Snow has closed the Alder Gap pass after two lorries slid. One lane may reopen on Sunday."
SAMPLE = Sample(
    "alder",
    "secret-system",
    OUTPUT,
    source=SOURCE,
    references=("The pass is shut.", "Snow shut it."),
    extra={
        "question": "Is the pass at Alder Gap open?",
        "contexts": ["The pass closed on Friday.", "One lane may reopen on Sunday."],
    },
)
OPPONENT = replace(
    SAMPLE, system="hidden-system", output="Nobody was hurt when the pass at Alder Gap closed."
)
HEAD = "---\nscale: [1, 5]\n---\n"
PAIR = "---\nscale: {labels: [A, B], values: [1, 0]}\n---\n"
WITH_TIE = Scale(("A", "B", "C"), (1.0, 0.0, 0.5))
VERDICT = Scale(("fail", "pass"), (0.0, 1.0))

Load = Callable[[str], Criterion]


@pytest.fixture
def custom(tmp_path: Path) -> Load:
    def put(text: str) -> Criterion:
        path = tmp_path / "my.jinja"
        path.write_text(text, encoding="utf-8")
        return criteria.load(str(path), pairwise=None)

    return put


def rendered(
    criterion: Criterion, sample: Sample = SAMPLE, opponent: Sample | None = None
) -> Prompt:
    return Renderer(criterion, criteria.template_bodies(criterion)).render(sample, opponent)


def prompt(criterion: Criterion, sample: Sample = SAMPLE, opponent: Sample | None = None) -> str:
    return rendered(criterion, sample, opponent).messages[0]["content"]


def ending(criterion: Criterion, opponent: Sample | None = None) -> str:
    """Return the end of a prompt, or of its question, after the criterion's last step."""
    prompt = rendered(criterion, SAMPLE, opponent)
    text = prompt.question or prompt.messages[0]["content"]
    return text.partition(criterion.steps[-1])[2].strip()


def failure(criterion: Criterion, sample: Sample = SAMPLE, opponent: Sample | None = None) -> str:
    """Return the error message of a rendering, without the criterion's folder."""
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    with pytest.raises(CriterionError) as caught:
        renderer.render(sample, opponent)
    return str(caught.value).replace(str(Path(criterion.path).parent) + "/", "")


# ----------------------------------------------------------------------------------------------------- built-in prompts


def assert_golden(text: str, language: str, name: str) -> None:
    file = GOLDEN / language / f"{name}.txt"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "name"), CASES)
def test_built_in_prompts_match_golden_files(language: str, name: str) -> None:
    assert_golden(prompt(criteria.load(name, language=language)), language, name)


@pytest.mark.parametrize(("language", "name"), PAIRS)
def test_built_in_comparisons_match_golden_files(language: str, name: str) -> None:
    criterion = criteria.load(name, language=language, pairwise=True)
    assert_golden(prompt(criterion, SAMPLE, OPPONENT), language, f"pairwise/{name}")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_answer_formats_match_golden_files(language: str, pairwise: bool) -> None:
    criterion = criteria.load("consistency", language=language, pairwise=pairwise)
    opponent = OPPONENT if pairwise else None
    variants: list[tuple[str, Criterion]] = [
        (f"{form}, {kind}", replace(criterion, form=form, reply=kind))
        for form in FORMS
        for kind in KINDS
    ]
    scales = [("pass or fail", VERDICT)]
    if pairwise:
        scales = [("ties", WITH_TIE), ("levels", Scale.integers(0, 4))]
    scaled = [(name, replace(criterion, scale=_from_0_to_1(scale))) for name, scale in scales]
    variants += [("decision", replace(criterion, form="decision")), *scaled]
    variants += [(f"decision, {name}", replace(each, form="decision")) for name, each in scaled]
    text = "\n\n".join(f"=== {name}\n{ending(each, opponent)}" for name, each in variants)
    assert_golden(text, language, "answers/pairwise" if pairwise else "answers/pointwise")


FORMS: tuple[Form, ...] = ("text", "json")


def _from_0_to_1(scale: Scale) -> Scale:
    """Return the scale with its values between 0 and 1."""
    return Scale(scale.labels, tuple(value / scale.high for value in scale.values))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_prompts_for_steps_match_golden_files(language: str, pairwise: bool) -> None:
    criterion = criteria.load("fluency", language=language, pairwise=pairwise)
    text = render_drafting_prompt(criterion, criteria.drafting(criterion)).messages[0]["content"]
    assert_golden(text, language, "steps/pairwise" if pairwise else "steps/pointwise")


RUBRICS = {
    "en": """title: Politeness
question: Does the reply treat the customer with respect?
levels:
  1: It blames or dismisses the customer.
  2-4: It is correct and no more.
  5: It is warm and respectful.
examples:
- {output: "Read the manual.", score: 1, reason: It sends the customer away., source: "How do I reset it?"}
- {output: "Of course! Hold the button for five seconds.", score: 5}
""",
    "ja": """title: 丁寧さ
question: 返信は客に敬意を払っていますか。
levels:
  1: 客を責めたり、突き放したりしている。
  2-4: 失礼ではないが、それ以上でもない。
  5: 温かく、敬意が感じられる。
examples:
- {output: 説明書を読んでください。, score: 1, reason: 客を突き放している。, source: リセットの方法を教えてください。}
- {output: 承知しました。ボタンを5秒間押し続けてください。, score: 5}
""",
    "ko": """title: 공손함
question: 답장이 고객을 존중합니까?
levels:
  1: 고객을 탓하거나 무시한다.
  2-4: 틀린 말은 없지만 그뿐이다.
  5: 따뜻하고 공손하다.
examples:
- {output: 설명서를 읽으세요., score: 1, reason: 고객을 돌려보낸다., source: "초기화는 어떻게 하나요?"}
- {output: "네, 버튼을 5초 동안 눌러 주세요.", score: 5}
""",
    "zh": """title: 礼貌
question: 回复是否尊重顾客？
levels:
  1: 责怪或敷衍顾客。
  2-4: 没有失礼，但也仅此而已。
  5: 亲切而尊重。
examples:
- {output: 请看说明书。, score: 1, reason: 把顾客打发走了。, source: 怎么重置？}
- {output: 好的！请按住按钮五秒钟。, score: 5}
""",
}
WORDINGS = ("pointwise", *criteria.PARAPHRASES)


def _after_common_lines(text: str, reference: str) -> str:
    """Return the text without the lines that begin both texts."""
    lines = text.splitlines()
    pairs = zip(lines, reference.splitlines(), strict=False)
    first_difference = next(n for n, (line, expected) in enumerate(pairs) if line != expected)
    return "\n".join(lines[first_difference:])


def rubric(language: str, wording: str = "pointwise", more: str = "") -> Criterion:
    """Return a criterion that is a question with levels and examples."""
    header, _, examples = RUBRICS[language].partition("examples:\n")
    text = f'---\n{header}{more}---\n{{% extends "layouts/question.jinja" %}}'
    criterion = criteria.load(text=text, name="polite", language=language)
    entries = [entry | {"score": str(entry["score"])} for entry in yaml.safe_load(examples)]
    criterion = replace(criterion, examples=tuple(Example(**entry) for entry in entries))
    return criterion if wording == "pointwise" else criteria.paraphrase(criterion, wording)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wording", WORDINGS)
def test_levels_examples_and_quotes_match_golden_files(language: str, wording: str) -> None:
    criterion = rubric(language, wording, "cite: true\n")
    whole = prompt(criterion)
    decision = rendered(replace(criterion, form="decision"))
    variants = [(form, kind) for form in FORMS for kind in KINDS][1:]
    ends = [
        f"=== {form}, {kind}\n"
        + _after_common_lines(prompt(replace(criterion, form=form, reply=kind)), whole)
        for form, kind in variants
    ]
    assert_golden(
        "\n\n".join([whole, *ends, f"=== decision\n{decision.question}"]),
        language,
        f"rubric/{wording}",
    )


def test_every_golden_file_has_a_test() -> None:
    files = {file.relative_to(GOLDEN).with_suffix("").as_posix() for file in GOLDEN.rglob("*.txt")}
    both = [
        f"{folder}/{name}" for folder in ("answers", "steps") for name in ("pointwise", "pairwise")
    ]
    expected = {f"{language}/{name}" for language, name in CASES}
    expected |= {f"{language}/pairwise/{name}" for language, name in PAIRS}
    both += [f"rubric/{wording}" for wording in WORDINGS]
    assert files == expected | {f"{language}/{name}" for language in LANGUAGES for name in both}


def common_beginning(texts: list[str]) -> str:
    """Return the longest text with which all texts begin."""
    first, last = min(texts), max(texts)
    for position, (character, expected) in enumerate(zip(first, last, strict=False)):
        if character != expected:
            return first[:position]
    return first


@pytest.mark.parametrize("language", LANGUAGES)
def test_criteria_share_their_prompts_up_to_the_end_of_the_judged_text(language: str) -> None:
    prompts = [
        prompt(criterion) for criterion in criteria.builtin(language) if "source" in criterion.needs
    ]
    shared = common_beginning(prompts)
    assert len(prompts) == 3
    assert shared.index(SOURCE) < shared.index(OUTPUT)
    assert fenced(OUTPUT, "output") in shared


@pytest.mark.parametrize("language", LANGUAGES)
def test_criteria_of_answers_share_their_prompts_up_to_the_end_of_the_answer(language: str) -> None:
    names = ("answers_request", "complete", "concise", "polite", "safe")
    prompts = [prompt(criteria.load(name, language=language)) for name in names]
    shared = common_beginning(prompts)
    assert shared.index("Is the pass at Alder Gap open?") < shared.index(OUTPUT)
    assert fenced(OUTPUT, "output") in shared


@pytest.mark.parametrize(("language", "name"), CASES)
def test_prompts_do_not_reveal_system_item_or_ratings(language: str, name: str) -> None:
    criterion = criteria.load(name, language=language)
    same_text = Sample(
        "birch",
        "another-system",
        OUTPUT,
        source=SOURCE,
        references=SAMPLE.references,
        human={"coherence": 4.0},
        extra=SAMPLE.extra,
        where="x.jsonl:1",
    )
    assert prompt(criterion) == prompt(criterion, same_text)
    assert "secret-system" not in prompt(criterion)


def test_the_replay_server_recognises_every_built_in_criterion_by_its_prompt(
    shared_tool: Callable[[str], Path],
) -> None:
    spec = importlib.util.spec_from_file_location("replay_server", shared_tool("replay_server.py"))
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    names = ("coherence", "consistency", "fluency", "relevance")
    for language, name in CASES:
        if name.removesuffix("_5") in names:
            assert server.Store().criterion(
                prompt(criteria.load(name, language=language)), names
            ) == name.removesuffix("_5")
    for language, name in PAIRS:
        if name in names:
            criterion = criteria.load(name, language=language, pairwise=True)
            assert server.Store().criterion(prompt(criterion, SAMPLE, OPPONENT), names) == name


@pytest.mark.parametrize(
    ("language", "form"),
    [("en", "Score: N"), ("ja", "点数: N"), ("ko", "점수: N"), ("zh", "得分: N")],
)
def test_each_reply_kind_has_a_different_form(
    custom: Load, language: str, form: str, tmp_path: Path
) -> None:
    prompts = {}
    for kind in ("score", "score_then_reason", "reason_then_score"):
        text = f'---\nscale: [1, 5]\nreply: {kind}\n---\n{{% extends "layouts/pointwise.jinja" %}}'
        criterion = criteria.load(custom(text).path, language=language)
        prompts[kind] = prompt(criterion).splitlines()
    assert form in prompts["reason_then_score"]
    assert form not in prompts["score"] + prompts["score_then_reason"]
    assert len({tuple(lines) for lines in prompts.values()}) == 3


@pytest.mark.parametrize(
    ("scale", "line"),
    [
        ("[0, 10]", "Scale: the whole numbers from 0 (lowest) to 10 (highest)."),
        ("{min: 0, max: 100, step: 50}", "Scale: 0, 50, 100. The lowest is 0, the highest 100."),
        (
            "{labels: [good, bad], values: [1, 0]}",
            "Scale: good, bad. The lowest is bad, the highest good.",
        ),
    ],
)
def test_the_prompt_names_the_ends_of_the_scale(custom: Load, scale: str, line: str) -> None:
    criterion = custom(f'---\nscale: {scale}\n---\n{{% extends "layouts/pointwise.jinja" %}}')
    assert line in prompt(criterion).splitlines()


# ---------------------------------------------------------------------------------------------------------- rendering


def test_a_prompt_is_one_user_message_for_its_sample(custom: Load) -> None:
    criterion = custom(HEAD + "\n  {{ source }}|{{ output }}\n\n")
    message = {"role": "user", "content": f"{SOURCE}|{OUTPUT}"}
    assert rendered(criterion) == Prompt("alder", "secret-system", "my", (message,))


def test_a_block_for_references_comes_between_source_and_output(custom: Load) -> None:
    criterion = custom(
        HEAD + '{% extends "layouts/pointwise.jinja" %}\n{% block references %}\n'
        "{% for text in references %}\n{{ text|fenced('reference') }}\n{% endfor %}\n{% endblock %}"
    )
    text = prompt(criterion)
    parts = (SOURCE, *SAMPLE.references, OUTPUT, "Criterion: my")
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)


VARIABLES = "{{ genre }}|{{ reference }}|{{ references|length }}|{{ this.title }}"


def test_a_template_reads_columns_by_name_and_the_first_reference(custom: Load) -> None:
    sample = Sample("i", "s", "o", references=("a", "b"), extra={"genre": 7})
    assert prompt(custom(HEAD + VARIABLES), sample) == "7|a|2|my"


def test_a_column_replaces_reference_but_no_other_variable(custom: Load) -> None:
    extra = {"genre": "x", "reference": "mine", "this": "no", "output": "no", "references": "no"}
    sample = Sample("i", "s", "o", references=("a", "b"), extra=extra)
    assert prompt(custom(HEAD + VARIABLES), sample) == "x|mine|2|my"


def test_a_missing_field_is_undefined_in_the_template(custom: Load) -> None:
    criterion = custom(HEAD + "{% if source is defined %}{{ source }}{% else %}none{% endif %}")
    assert prompt(criterion, Sample("i", "s", "o")) == "none"
    assert prompt(criterion, SAMPLE) == SOURCE


def test_this_has_only_fields_of_the_header_and_the_form() -> None:
    assert {field.name for field in fields(CriterionView)} == {
        *("title", "description", "scale", "steps", "reply"),
        *("lowest", "highest", "whole", "form", "cut"),
        *("question", "asks", "levels", "examples", "questions", "cite", "judged"),
    }


# -------------------------------------------------------------------------------------------------------- reply forms


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_a_reply_in_the_requested_form_is_read(language: str, pairwise: bool) -> None:
    criterion = criteria.load("coherence", language=language, pairwise=pairwise)
    opponent, label = (OPPONENT, "B") if pairwise else (None, "4")
    line = next(
        line[:-1] + label
        for line in ending(replace(criterion, reply="reason_then_score"), opponent).splitlines()
        if line.endswith((": N", ": X"))
    )
    texts = {
        "score": label,
        "score_then_reason": f"{label}\nIt holds.",
        "reason_then_score": f"It holds.\n{line}",
    }
    value = label if label.isdigit() else f'"{label}"'
    objects = {
        "score": f'{{"score": {value}}}',
        "score_then_reason": f'{{"score": {value}, "reason": "It holds."}}',
        "reason_then_score": f'{{"reason": "It holds.", "score": {value}}}',
    }
    for kind in KINDS:
        for reply in (texts[kind], objects[kind]):
            parsed = parse.read(Choice(reply), kind, criterion.scale, criterion.title)
            assert (parsed.label, parsed.reason) == (
                label,
                None if kind == "score" else "It holds.",
            )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("opponent", [None, OPPONENT])
def test_the_keys_of_the_requested_object_have_the_order_of_the_reply_kind(
    language: str, opponent: Sample | None
) -> None:
    criterion = criteria.load("coherence", language=language, pairwise=opponent is not None)
    ends = {kind: ending(replace(criterion, form="json", reply=kind), opponent) for kind in KINDS}
    assert '"score"' in ends["score"]
    assert '"reason"' not in ends["score"]
    assert ends["score_then_reason"].index('"score"') < ends["score_then_reason"].index('"reason"')
    assert ends["reason_then_score"].index('"reason"') < ends["reason_then_score"].index('"score"')


@pytest.mark.parametrize(("language", "name"), CASES)
def test_a_decision_prompt_separates_material_and_question(language: str, name: str) -> None:
    criterion = criteria.load(name, language=language)
    decided = rendered(replace(criterion, form="decision"))
    whole = prompt(criterion)
    assert decided.messages[0]["content"].endswith(fenced(OUTPUT, "output"))
    assert whole.startswith(f"{decided.messages[0]['content']}\n\n{decided.question}\n\n")
    assert decided.question.endswith(criterion.steps[-1])
    assert rendered(criterion).question == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_decisions_of_comparisons_share_their_material(language: str) -> None:
    every = [
        replace(criterion, form="decision")
        for criterion in criteria.builtin(language, pairwise=True)
    ]
    names = ("coherence", "consistency", "relevance")
    prompts = [
        rendered(criterion, SAMPLE, OPPONENT) for criterion in every if criterion.name in names
    ]
    assert len({prompt.messages[0]["content"] for prompt in prompts}) == 1
    assert len({prompt.question for prompt in prompts}) == 3


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0)])
def test_a_decision_on_two_labels_names_the_label_with_value_1(values: tuple[float, float]) -> None:
    criterion = replace(
        criteria.load("coherence"), scale=Scale(("low", "high"), values), form="decision"
    )
    right = criterion.scale.labels[values.index(1.0)]
    assert (
        ending(criterion) == f'Judge whether this statement is true: the right answer is "{right}".'
    )
    assert ending(replace(criterion, scale=Scale.integers(1, 5))) == ""


def test_a_decision_prompt_is_the_same_each_time() -> None:
    criterion = replace(criteria.load("relevance"), form="decision")
    assert rendered(criterion) == rendered(criterion)


@pytest.mark.parametrize(
    "text",
    [
        "{{ output }} Good?",
        "{{ output }}{{ this.cut }}",
        "{{ this.cut }}",
        "a{{ this.cut }}b{{ this.cut }}c",
    ],
)
def test_a_decision_needs_one_cut_with_text_on_both_sides(custom: Load, text: str) -> None:
    criterion = custom(HEAD + text)
    assert (
        prompt(criterion)
        == text.replace("{{ output }}", OUTPUT).replace("{{ this.cut }}", "").strip()
    )
    message = failure(replace(criterion, form="decision"))
    assert message.startswith("my.jinja: a decision endpoint ")


def test_a_block_may_replace_the_request_for_an_answer(custom: Load) -> None:
    layout = '{% extends "layouts/pointwise.jinja" %}'
    criterion = custom(
        HEAD + layout + "{% block answer %}\n\nOne number from 1 to 5.\n{% endblock %}"
    )
    for form in FORMS:
        for kind in KINDS:
            assert prompt(replace(criterion, form=form, reply=kind)).endswith(
                "Criterion: my\n\n\nOne number from 1 to 5."
            )
    criterion = custom(HEAD + layout + "{% block score %}\nOne number.\n{% endblock %}")
    assert prompt(criterion).splitlines()[-2:] == [
        "Scale: the whole numbers from 1 (lowest) to 5 (highest).",
        "One number.",
    ]
    assert (
        prompt(replace(criterion, reply="score_then_reason")).splitlines()[-1] == "a few sentences."
    )


# ---------------------------------------------------------------------------------------------------------------- pairs


def test_a_pair_is_rendered_in_the_order_of_its_samples(custom: Load) -> None:
    criterion = custom(PAIR + "{{ first }}|{{ second }}|{{ source }}")
    text = f"{OUTPUT}|{OPPONENT.output}|{SOURCE}"
    assert rendered(criterion, SAMPLE, OPPONENT) == Prompt(
        "alder", "secret-system", "my", ({"role": "user", "content": text},)
    )
    assert prompt(criterion, OPPONENT, SAMPLE) == f"{OPPONENT.output}|{OUTPUT}|{SOURCE}"


@pytest.mark.parametrize(("language", "name"), PAIRS)
def test_comparisons_show_both_texts_without_the_systems(language: str, name: str) -> None:
    criterion = criteria.load(name, language=language, pairwise=True)
    text = prompt(criterion, SAMPLE, OPPONENT)
    assert text.index(fenced(OUTPUT, "A")) < text.index(fenced(OPPONENT.output, "B"))
    reads_source = name in ("coherence", "consistency", "relevance")
    assert (SOURCE in text[: text.index(OUTPUT)]) == reads_source
    assert not any(system in text for system in (SAMPLE.system, OPPONENT.system))
    assert (
        text.partition(criterion.title)[2]
        == prompt(criterion, OPPONENT, SAMPLE).partition(criterion.title)[2]
    )


@pytest.mark.parametrize("name", sorted(name for language, name in PAIRS if language == "en"))
def test_comparisons_ask_for_a_or_b_at_the_end(name: str) -> None:
    for form, kind in product(FORMS, KINDS):
        criterion = replace(criteria.load(name, pairwise=True), form=form, reply=kind)
        assert re.search(r"\bA or B\b", prompt(criterion, SAMPLE, OPPONENT)[-400:]), (form, kind)


def test_columns_named_first_and_second_do_not_replace_the_texts(custom: Load) -> None:
    criterion = custom(PAIR + "{{ first }}|{{ second }}")
    extra = {"first": "no", "second": "no"}
    assert (
        prompt(criterion, Sample("i", "a", "x", extra=extra), Sample("i", "b", "y", extra=extra))
        == "x|y"
    )


def test_a_pair_has_the_columns_with_equal_values(custom: Load) -> None:
    criterion = custom(
        PAIR + "{{ first }}{{ second }}{% for v in (genre, output) %}{{ v is defined }}{% endfor %}"
    )
    sample = Sample("i", "a", "x", extra={"genre": "news", "length": 1})
    opponent = Sample("i", "b", "x", extra={"genre": "news", "length": 2})
    variables = template_variables(sample, opponent=opponent)
    assert set(variables) == {"first", "second", "genre", "this"}
    assert "output" not in template_variables(sample, opponent=sample)
    assert prompt(criterion, sample, opponent) == "xxTrueFalse"


def test_a_pair_with_different_sources_is_an_error() -> None:
    relevance = criteria.load("relevance", pairwise=True)
    message = failure(relevance, SAMPLE, replace(OPPONENT, source="Another source."))
    systems = "'secret-system' and 'hidden-system'"
    assert has_line(message, "relevance.jinja: reads source", systems, "item 'alder'")


def test_a_pair_in_which_one_text_has_no_source_is_an_error() -> None:
    relevance = criteria.load("relevance", pairwise=True)
    message = failure(relevance, SAMPLE, replace(OPPONENT, source=None, where="d.csv:9"))
    text = "item 'alder' of system 'hidden-system'"
    assert has_line(message, f"d.csv:9: {text}", "no source", "criterion relevance")


def test_a_pair_without_a_source_is_an_error() -> None:
    relevance = criteria.load("relevance", pairwise=True)
    pair = (replace(SAMPLE, source=None), replace(OPPONENT, source=None))
    assert "has no source" in failure(relevance, *pair)


def test_the_wrong_number_of_samples_is_an_error() -> None:
    message = failure(criteria.load("fluency", pairwise=True))
    assert has_line(message, "fluency.jinja", "pair", "item 'alder'")
    message = failure(criteria.load("fluency"), SAMPLE, OPPONENT)
    assert has_line(message, "fluency.jinja", "one sample", "item 'alder'")


# -------------------------------------------------------------------------------------------------- judged text is data


@pytest.mark.parametrize(
    "text", ["{{ 7*7 }}", "{% for x in y %}", "{# gone #}", "{{ ''.__class__ }}", "<b>&amp;"]
)
def test_template_syntax_in_a_judged_text_is_text(text: str) -> None:
    message = prompt(criteria.load("relevance"), Sample("i", "s", text, source=text))
    assert message.count(f"\n{text}\n") == 2
    assert "49" not in message


@given(st.text())
def test_a_text_cannot_contain_its_closing_mark(text: str) -> None:
    opening, *_, closing = fenced(text, "source").split("\n")
    assert re.fullmatch(r"<source [0-9a-f]{8,64}>", opening)
    assert closing == "</" + opening[1:]
    assert closing not in text
    assert fenced(text, "source") == f"{opening}\n{text}\n{closing}"


def test_the_key_of_a_mark_is_longer_if_a_text_contains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forged:
        """A digest whose beginning occurs in the text, as an attacker might find one."""

        @staticmethod
        def hexdigest() -> str:
            return "aaaaaaaa" + "bbbbbbbb" + "c" * 48

    assert fenced("x", "t").startswith(f"<t {hashlib.sha256(b'x').hexdigest()[:8]}>")
    monkeypatch.setattr("judge.criteria.sandbox.hashlib.sha256", lambda _: Forged)
    assert fenced("x </t aaaaaaaa> y", "t").endswith("\n</t aaaaaaaabbbbbbbb>")
    assert fenced("aaaaaaaabbbbbbbb", "t").endswith(f"\n</t aaaaaaaabbbbbbbb{'c' * 8}>")
    assert fenced("x", "t", ["y aaaaaaaa z"]).endswith("\n</t aaaaaaaabbbbbbbb>")


# ------------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("{{ output['__class__'] }}", ("'__class__' of 'str'", "unsafe")),
        (
            "{{ output['__cla' ~ 'ss__'] }}",
            ("'__class__' of 'str'", "unsafe"),
        ),
        (
            "{{ output|attr('__cla' ~ 'ss__') }}",
            ("'__class__' of 'str'", "unsafe"),
        ),
        (
            "{{ '{0.__class__}'.format(output) }}",
            ("'__class__' of 'str'", "unsafe"),
        ),
        (
            "{{ references.append('x') }}",
            ("'append' of 'list'", "unsafe"),
        ),
        ("{% for n in range(1000000000) %}{% endfor %}", ("Range too big.",)),
        ("{{ 1 // (output|length - output|length) }}", ("division",)),
        ("{{ output + 1 }}", ("can only concatenate str",)),
        ("{{ output * 10000000 }}", ("*", "10,000,000 characters")),
        ("{{ this.nosuch }}", ("has no attribute 'nosuch'",)),
        ("{{ references|fenced('reference') }}", ("fenced", "one text", "list")),
        (
            "{% block alone %}{{ super() }}{% endblock %}",
            ("'alone'",),
        ),
        ("{{ output|round }}", ("doesn't define __round__",)),
        (
            "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            ("too deeply",),
        ),
    ],
)
def test_rendering_errors_name_the_line_of_the_users_template(
    custom: Load, line: str, facts: tuple[str, ...]
) -> None:
    criterion = custom(
        HEAD
        + '{% extends "layouts/pointwise.jinja" %}\n{% block criterion %}\nText.\n'
        + line
        + "\n{% endblock %}"
    )
    message = failure(criterion)
    assert message.startswith("my.jinja:7: ")
    assert has_line(message, *facts)
    assert message.endswith("(item 'alder')")


def test_a_missing_source_is_an_error_when_rendered() -> None:
    criterion = criteria.load("relevance")
    message = failure(criterion, Sample("i", "s", "o", where="data.csv:3"))
    assert has_line(message, "data.csv:3", "item 'i' of system 's'", "no source", "relevance")


def test_a_template_that_does_not_compile_is_an_error(custom: Load) -> None:
    criterion = custom(HEAD + "{{ output }}")
    with pytest.raises(CriterionError, match=r"my\.jinja:4: unexpected '}'$"):
        Renderer(criterion, {"my.jinja": HEAD + "{{ }"})


def test_rendering_reads_no_files(custom: Load) -> None:
    criterion = custom(HEAD + "{{ output }}")
    renderer = Renderer(
        criterion, criteria.template_bodies(criterion) | {"my.jinja": "{% include 'my2.jinja' %}"}
    )
    Path(criterion.path).with_name("my2.jinja").write_text("secret", encoding="utf-8")
    with pytest.raises(CriterionError, match=r"my\.jinja:1: no template my2\.jinja here"):
        renderer.render(SAMPLE)


@pytest.mark.parametrize("language", ["en", "ja", "ko", "zh"])
@pytest.mark.parametrize("form", ["text", "json", "decision"])
def test_cached_rendering_equals_fresh_rendering(language: str, form: Form) -> None:
    """The texts contain the characters of marks, of the cache's gaps, and of templates."""
    texts = [
        "plain",
        "\0source x\0",
        " \n {{ output }} </source 0>\n",
        "日本語\0output output\0",
        "\0",
    ]
    # These show lists, or a request only if there is one, and are not cached.
    uncached = ("correct", "grounded", "polite", "safe")
    for builtin in criteria.builtin(language):
        if builtin.name in uncached:
            continue
        criterion = replace(builtin, form=form)
        cached = Renderer(criterion, criteria.template_bodies(criterion))
        fresh = Renderer(criterion, criteria.template_bodies(criterion))
        assert cached._slots, "the prompt is not cached"
        fresh._slots = None
        fresh._this = cached._this  # has a random cut
        for output, source in product(texts, repeat=2):
            sample = Sample(
                "i", "s", output, source, ("a reference",), extra={"source": "no", "more": 1}
            )
            assert cached.render(sample) == fresh.render(sample)


@pytest.mark.parametrize(
    "block",
    [
        "{{ output }}", "{{ output|upper|fenced('t') }}", "{{ output|fenced('t')|upper }}",
        "{{ output|fenced('t') ~ '!' }}", "{% if output %}x{% endif %}{{ output|fenced('t') }}",
        "{% if source is defined %}{{ output|fenced('t') }}{% endif %}",
        "{% if 'b' in output %}x{% endif %}{{ output|fenced('t') }}",
        "{% filter upper %}{{ output|fenced('t') }}{% endfilter %}",
        "{% set x %}{{ output|fenced('t') }}{% endset %}{{ x|length }}",
        "{% set x = output|fenced('t') %}{{ x|length }}",
        "{% macro m() %}{{ output|fenced('t') }}{% endmacro %}{{ m()|upper }}",
        "{% block b %}{{ output|fenced('t') }}{% endblock %}{{ self.b()|upper }}",
        "{{ output|fenced('t') }}{% for r in references %}{{ r }}{% endfor %}", "{{ output|fenced('t') }}{{ more }}",
        "\0source x\0{{ output|fenced('t') }}",
    ],
)  # fmt: skip
def test_a_template_that_changes_a_text_is_rendered_for_each_sample(
    tmp_path: Path, block: str
) -> None:
    path = tmp_path / "my.jinja"
    path.write_text(f"---\ntitle: Mine\nscale: [1, 5]\n---\n{block}\nHow good?", encoding="utf-8")
    criterion = criteria.load(str(path))
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    for output in ("abc", "xyz", "a longer one, with b"):
        sample = Sample("i", "s", output, "a source", ("one", "two"), extra={"more": output})
        templates = Templates("t", (("t", criteria.template_bodies(criterion)["my.jinja"], "t"),))
        expected = sandbox.render(templates, template_variables(sample, renderer._this)).strip()
        assert renderer.render(sample).messages[0]["content"] == expected
