"""render: criterion and sample to prompt.

Golden files in tests/golden/prompts/ hold every built-in prompt, as a person has read it. After a change of wording:
`JUDGE_GOLDEN=write pytest tests/criteria/test_render.py`, then read the difference.
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
# Each of the names is a file's, so that they are known before any criterion is read.
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
RIVAL = replace(
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
    """What a prompt, or its question, says after the criterion's last step."""
    prompt = rendered(criterion, SAMPLE, opponent)
    return (
        (prompt.question or prompt.messages[0]["content"]).partition(criterion.steps[-1])[2].strip()
    )


def failure(criterion: Criterion, sample: Sample = SAMPLE, opponent: Sample | None = None) -> str:
    """The message with which a rendering fails, the folder of the criterion left out."""
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    with pytest.raises(CriterionError) as caught:
        renderer.render(sample, opponent)
    return str(caught.value).replace(str(Path(criterion.path).parent) + "/", "")


# ----------------------------------------------------------------------------------------------------- built-in prompts


def golden(text: str, language: str, name: str) -> None:
    file = GOLDEN / language / f"{name}.txt"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(("language", "name"), CASES)
def test_built_in_prompts_match_golden_files(language: str, name: str) -> None:
    golden(prompt(criteria.load(name, language=language)), language, name)


@pytest.mark.parametrize(("language", "name"), PAIRS)
def test_built_in_comparisons_match_golden_files(language: str, name: str) -> None:
    one = criteria.load(name, language=language, pairwise=True)
    golden(prompt(one, SAMPLE, RIVAL), language, f"pairwise/{name}")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_answer_formats_match_golden_files(language: str, pairwise: bool) -> None:
    one = criteria.load("consistency", language=language, pairwise=pairwise)
    opponent = RIVAL if pairwise else None
    variants: list[tuple[str, Criterion]] = [
        (f"{form}, {kind}", replace(one, form=form, reply=kind)) for form in FORMS for kind in KINDS
    ]
    scales = (
        [("ties", WITH_TIE), ("levels", Scale.integers(0, 4))]
        if pairwise
        else [("pass or fail", VERDICT)]
    )
    scaled = [(name, replace(one, scale=_within(scale))) for name, scale in scales]
    variants += [("decision", replace(one, form="decision")), *scaled]
    variants += [(f"decision, {name}", replace(other, form="decision")) for name, other in scaled]
    text = "\n\n".join(f"=== {name}\n{ending(other, opponent)}" for name, other in variants)
    golden(text, language, "answers/pairwise" if pairwise else "answers/pointwise")


FORMS: tuple[Form, ...] = ("text", "json")


def _within(scale: Scale) -> Scale:
    """The scale with its values between 0 and 1."""
    return Scale(scale.labels, tuple(value / scale.high for value in scale.values))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_step_prompts_match_golden_files(language: str, pairwise: bool) -> None:
    one = criteria.load("fluency", language=language, pairwise=pairwise)
    text = render_drafting_prompt(one, criteria.drafting(one)).messages[0]["content"]
    golden(text, language, "steps/pairwise" if pairwise else "steps/pointwise")


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


def _unlike(text: str, other: str) -> str:
    """The lines of a text that come after those with which both begin."""
    lines = text.splitlines()
    same = next(
        n
        for n, pair in enumerate(zip(lines, other.splitlines(), strict=False))
        if pair[0] != pair[1]
    )
    return "\n".join(lines[same:])


def rubric(language: str, wording: str = "pointwise", more: str = "") -> Criterion:
    """A criterion that is a question, with levels and examples."""
    header, _, examples = RUBRICS[language].partition("examples:\n")
    text = f'---\n{header}{more}---\n{{% extends "layouts/question.jinja" %}}'
    one = criteria.load(text=text, name="polite", language=language)
    shown = [
        Example(**entry | {"score": str(entry["score"])}) for entry in yaml.safe_load(examples)
    ]
    one = replace(one, examples=tuple(shown))
    return one if wording == "pointwise" else criteria.paraphrase(one, wording)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("wording", WORDINGS)
def test_levels_examples_and_quotes_match_golden_files(language: str, wording: str) -> None:
    one = rubric(language, wording, "cite: true\n")
    whole = prompt(one)
    decision = rendered(replace(one, form="decision"))
    variants = [(form, kind) for form in FORMS for kind in KINDS][1:]
    ends = [
        f"=== {form}, {kind}\n{_unlike(prompt(replace(one, form=form, reply=kind)), whole)}"
        for form, kind in variants
    ]
    golden(
        "\n\n".join([whole, *ends, f"=== decision\n{decision.question}"]),
        language,
        f"rubric/{wording}",
    )


def test_every_golden_file_has_its_test() -> None:
    files = {file.relative_to(GOLDEN).with_suffix("").as_posix() for file in GOLDEN.rglob("*.txt")}
    both = [
        f"{folder}/{name}" for folder in ("answers", "steps") for name in ("pointwise", "pairwise")
    ]
    expected = {f"{language}/{name}" for language, name in CASES}
    expected |= {f"{language}/pairwise/{name}" for language, name in PAIRS}
    both += [f"rubric/{wording}" for wording in WORDINGS]
    assert files == expected | {f"{language}/{name}" for language in LANGUAGES for name in both}


@pytest.mark.parametrize("language", LANGUAGES)
def test_criteria_share_their_prompts_up_to_the_end_of_the_judged_text(language: str) -> None:
    first, *_, last = whole = sorted(
        prompt(one) for one in criteria.builtin(language) if "source" in one.needs
    )
    shared = first[: next(n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)]
    assert len(whole) == 3
    assert shared.index(SOURCE) < shared.index(OUTPUT)
    assert fenced(OUTPUT, "output") in shared


@pytest.mark.parametrize("language", LANGUAGES)
def test_criteria_of_answers_share_the_request_and_the_answer(language: str) -> None:
    names = ("answers_request", "complete", "concise", "polite", "safe")
    prompts = [prompt(criteria.load(name, language=language)) for name in names]
    first, *_, last = sorted(prompts)
    different = next(n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    shared = first[:different]
    assert shared.index("Is the pass at Alder Gap open?") < shared.index(OUTPUT)
    assert fenced(OUTPUT, "output") in shared


@pytest.mark.parametrize(("language", "name"), CASES)
def test_prompts_hold_nothing_that_tells_system_item_or_ratings(language: str, name: str) -> None:
    one = criteria.load(name, language=language)
    other = Sample(
        "other",
        "another",
        OUTPUT,
        source=SOURCE,
        references=SAMPLE.references,
        human={"coherence": 4.0},
        extra=SAMPLE.extra,
        where="x.jsonl:1",
    )
    assert prompt(one) == prompt(one, other)
    assert "secret-system" not in prompt(one)


def test_the_replay_server_tells_every_built_in_criterion_from_its_prompt(
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
            one = criteria.load(name, language=language, pairwise=True)
            assert server.Store().criterion(prompt(one, SAMPLE, RIVAL), names) == name


@pytest.mark.parametrize(
    ("language", "form"),
    [("en", "Score: N"), ("ja", "点数: N"), ("ko", "점수: N"), ("zh", "得分: N")],
)
def test_each_reply_kind_asks_for_its_own_form(
    custom: Load, language: str, form: str, tmp_path: Path
) -> None:
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
        (
            "{labels: [good, bad], values: [1, 0]}",
            "Scale: good, bad. The lowest is bad, the highest good.",
        ),
    ],
)
def test_the_scale_is_shown_with_its_ends(custom: Load, scale: str, line: str) -> None:
    one = custom(f'---\nscale: {scale}\n---\n{{% extends "layouts/pointwise.jinja" %}}')
    assert line in prompt(one).splitlines()


# ---------------------------------------------------------------------------------------------------------- rendering


def test_a_prompt_is_one_user_message_for_its_sample(custom: Load) -> None:
    one = custom(HEAD + "\n  {{ source }}|{{ output }}\n\n")
    got = Renderer(one, criteria.template_bodies(one)).render(SAMPLE)
    assert got == Prompt(
        "alder", "secret-system", "my", ({"role": "user", "content": f"{SOURCE}|{OUTPUT}"},)
    )


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
    assert (
        prompt(one, Sample("i", "s", "o", references=("a", "b"), extra={"genre": 7})) == "7|a|2|my"
    )
    extra = {"genre": "x", "reference": "own", "this": "no", "output": "no", "references": "no"}
    assert prompt(one, Sample("i", "s", "o", references=("a", "b"), extra=extra)) == "x|own|2|my"


def test_a_missing_field_is_undefined_in_the_template(custom: Load) -> None:
    one = custom(HEAD + "{% if source is defined %}{{ source }}{% else %}none{% endif %}")
    assert prompt(one, Sample("i", "s", "o")) == "none"
    assert prompt(one, SAMPLE) == SOURCE


def test_this_tells_the_header_and_nothing_of_the_machine() -> None:
    assert {field.name for field in fields(CriterionView)} == {
        *("title", "description", "scale", "steps", "reply"),
        *("lowest", "highest", "whole", "form", "cut"),
        *("question", "asks", "levels", "examples", "questions", "cite", "judged"),
    }


# ------------------------------------------------------------------------------------------------------ ways to answer


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pairwise", [False, True])
def test_an_answer_in_the_form_that_is_asked_for_can_be_read(language: str, pairwise: bool) -> None:
    one = criteria.load("coherence", language=language, pairwise=pairwise)
    opponent, label = (RIVAL, "B") if pairwise else (None, "4")
    line = next(
        line[:-1] + label
        for line in ending(replace(one, reply="reason_then_score"), opponent).splitlines()
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
            parsed = parse.read(Choice(reply), kind, one.scale, one.title)
            assert (parsed.label, parsed.reason) == (
                label,
                None if kind == "score" else "It holds.",
            )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("opponent", [None, RIVAL])
def test_the_object_is_asked_for_with_its_keys_in_the_order_of_the_kind(
    language: str, opponent: Sample | None
) -> None:
    one = criteria.load("coherence", language=language, pairwise=opponent is not None)
    ends = {kind: ending(replace(one, form="json", reply=kind), opponent) for kind in KINDS}
    assert '"score"' in ends["score"]
    assert '"reason"' not in ends["score"]
    assert ends["score_then_reason"].index('"score"') < ends["score_then_reason"].index('"reason"')
    assert ends["reason_then_score"].index('"reason"') < ends["reason_then_score"].index('"score"')


@pytest.mark.parametrize(("language", "name"), CASES)
def test_a_decision_prompt_separates_material_and_question(language: str, name: str) -> None:
    one = criteria.load(name, language=language)
    decided = rendered(replace(one, form="decision"))
    whole = prompt(one)
    assert decided.messages[0]["content"].endswith(fenced(OUTPUT, "output"))
    assert whole.startswith(f"{decided.messages[0]['content']}\n\n{decided.question}\n\n")
    assert decided.question.endswith(one.steps[-1])
    assert rendered(one).question == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_comparisons_are_decided_on_one_material(language: str) -> None:
    every = [replace(one, form="decision") for one in criteria.builtin(language, pairwise=True)]
    names = ("coherence", "consistency", "relevance")
    prompts = [rendered(one, SAMPLE, RIVAL) for one in every if one.name in names]
    assert len({prompt.messages[0]["content"] for prompt in prompts}) == 1
    assert len({prompt.question for prompt in prompts}) == 3


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0)])
def test_a_predicate_names_the_answer_it_is_about(values: tuple[float, float]) -> None:
    one = replace(criteria.load("coherence"), scale=Scale(("low", "high"), values), form="decision")
    right = one.scale.labels[values.index(1.0)]
    assert ending(one) == f'Judge whether this statement is true: the right answer is "{right}".'
    assert ending(replace(one, scale=Scale.integers(1, 5))) == ""


def test_chance_leaves_no_trace_in_a_decision() -> None:
    one = replace(criteria.load("relevance"), form="decision")
    assert rendered(one) == rendered(one)


@pytest.mark.parametrize(
    "text",
    [
        "{{ output }} Good?",
        "{{ output }}{{ this.cut }}",
        "{{ this.cut }}",
        "a{{ this.cut }}b{{ this.cut }}c",
    ],
)
def test_a_decision_needs_one_cut_with_something_on_both_sides(custom: Load, text: str) -> None:
    one = custom(HEAD + text)
    assert prompt(one) == text.replace("{{ output }}", OUTPUT).replace("{{ this.cut }}", "").strip()
    message = failure(replace(one, form="decision"))
    assert message.startswith("my.jinja: a decision endpoint ")


def test_a_criterion_may_word_the_whole_answer_itself(custom: Load) -> None:
    layout = '{% extends "layouts/pointwise.jinja" %}'
    one = custom(HEAD + layout + "{% block answer %}\n\nOne number from 1 to 5.\n{% endblock %}")
    for form in FORMS:
        for kind in KINDS:
            assert prompt(replace(one, form=form, reply=kind)).endswith(
                "Criterion: my\n\n\nOne number from 1 to 5."
            )
    one = custom(HEAD + layout + "{% block score %}\nOne number.\n{% endblock %}")
    assert prompt(one).splitlines()[-2:] == [
        "Scale: the whole numbers from 1 (lowest) to 5 (highest).",
        "One number.",
    ]
    assert prompt(replace(one, reply="score_then_reason")).splitlines()[-1] == "a few sentences."


# ---------------------------------------------------------------------------------------------------------------- pairs


def test_a_pair_is_shown_in_its_order(custom: Load) -> None:
    one = custom(PAIR + "{{ first }}|{{ second }}|{{ source }}")
    text = f"{OUTPUT}|{RIVAL.output}|{SOURCE}"
    assert rendered(one, SAMPLE, RIVAL) == Prompt(
        "alder", "secret-system", "my", ({"role": "user", "content": text},)
    )
    assert prompt(one, RIVAL, SAMPLE) == f"{RIVAL.output}|{OUTPUT}|{SOURCE}"


@pytest.mark.parametrize(("language", "name"), PAIRS)
def test_comparisons_show_both_texts_and_no_names(language: str, name: str) -> None:
    one = criteria.load(name, language=language, pairwise=True)
    text = prompt(one, SAMPLE, RIVAL)
    assert text.index(fenced(OUTPUT, "A")) < text.index(fenced(RIVAL.output, "B"))
    reads_source = name in ("coherence", "consistency", "relevance")
    assert (SOURCE in text[: text.index(OUTPUT)]) == reads_source
    assert not any(system in text for system in (SAMPLE.system, RIVAL.system))
    assert text.partition(one.title)[2] == prompt(one, RIVAL, SAMPLE).partition(one.title)[2]


@pytest.mark.parametrize("name", sorted(name for language, name in PAIRS if language == "en"))
def test_comparisons_ask_for_a_or_b_near_their_end(name: str) -> None:
    for form, kind in product(FORMS, KINDS):
        one = replace(criteria.load(name, pairwise=True), form=form, reply=kind)
        assert re.search(r"\bA or B\b", prompt(one, SAMPLE, RIVAL)[-400:]), (form, kind)


def test_columns_called_first_and_second_never_take_the_place_of_the_texts(custom: Load) -> None:
    one = custom(PAIR + "{{ first }}|{{ second }}")
    extra = {"first": "no", "second": "no"}
    assert (
        prompt(one, Sample("i", "a", "x", extra=extra), Sample("i", "b", "y", extra=extra)) == "x|y"
    )


def test_a_pair_has_the_fields_that_both_samples_share(custom: Load) -> None:
    one = custom(
        PAIR + "{{ first }}{{ second }}{% for v in (genre, output) %}{{ v is defined }}{% endfor %}"
    )
    pair = [
        Sample("i", s, "x", extra={"genre": g, "length": n})
        for s, g, n in (("a", "news", 1), ("b", "news", 2))
    ]
    assert set(template_variables(pair[0], opponent=pair[1])) == {
        "first",
        "second",
        "genre",
        "this",
    }
    assert "output" not in template_variables(pair[0], opponent=pair[0])
    assert prompt(one, *pair) == "xxTrueFalse"


@pytest.mark.parametrize("other", ["Another source.", None])
def test_refuses_a_pair_that_differs_in_a_field(other: str | None) -> None:
    message = failure(
        criteria.load("relevance", pairwise=True),
        SAMPLE,
        replace(RIVAL, source=other, where="d.csv:9"),
    )
    if other is None:
        text = "item 'alder' of system 'hidden-system'"
        assert has_line(message, f"d.csv:9: {text}", "no source", "criterion relevance")
    else:
        systems = "'secret-system' and 'hidden-system'"
        assert has_line(message, "relevance.jinja: reads source", systems, "item 'alder'")
    both = (replace(SAMPLE, source=None), replace(RIVAL, source=None))
    assert "has no source" in failure(criteria.load("relevance", pairwise=True), *both)


def test_a_comparison_takes_two_samples_and_a_judgment_one() -> None:
    message = failure(criteria.load("fluency", pairwise=True))
    assert has_line(message, "fluency.jinja", "pair", "item 'alder'")
    message = failure(criteria.load("fluency"), SAMPLE, RIVAL)
    assert has_line(message, "fluency.jinja", "one sample", "item 'alder'")


# -------------------------------------------------------------------------------------------------- judged text is data


@pytest.mark.parametrize(
    "text", ["{{ 7*7 }}", "{% for x in y %}", "{# gone #}", "{{ ''.__class__ }}", "<b>&amp;"]
)
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
def test_failures_name_the_line_of_the_users_template(
    custom: Load, line: str, facts: tuple[str, ...]
) -> None:
    one = custom(
        HEAD
        + '{% extends "layouts/pointwise.jinja" %}\n{% block criterion %}\nText.\n'
        + line
        + "\n{% endblock %}"
    )
    message = failure(one)
    assert message.startswith("my.jinja:7: ")
    assert has_line(message, *facts)
    assert message.endswith("(item 'alder')")


def test_reading_a_missing_variable_fails() -> None:
    one = criteria.load("relevance")
    message = failure(one, Sample("i", "s", "o", where="data.csv:3"))
    assert has_line(message, "data.csv:3", "item 'i' of system 's'", "no source", "relevance")


def test_texts_that_do_not_compile_are_refused(custom: Load) -> None:
    one = custom(HEAD + "{{ output }}")
    with pytest.raises(CriterionError, match=r"my\.jinja:4: unexpected '}'$"):
        Renderer(one, {"my.jinja": HEAD + "{{ }"})


def test_rendering_reads_no_file(custom: Load) -> None:
    one = custom(HEAD + "{{ output }}")
    renderer = Renderer(
        one, criteria.template_bodies(one) | {"my.jinja": "{% include 'my2.jinja' %}"}
    )
    Path(one.path).with_name("my2.jinja").write_text("secret", encoding="utf-8")
    with pytest.raises(CriterionError, match=r"my\.jinja:1: no template my2\.jinja here"):
        renderer.render(SAMPLE)


@pytest.mark.parametrize("language", ["en", "ja", "ko", "zh"])
@pytest.mark.parametrize("form", ["text", "json", "decision"])
def test_cached_rendering_equals_fresh_rendering(language: str, form: Form) -> None:
    """Every built-in criterion's prompt, with texts that hold what marks, gaps and templates are made of."""
    texts = [
        "plain",
        "\0source x\0",
        " \n {{ output }} </source 0>\n",
        "日本語\0output output\0",
        "\0",
    ]
    # These show lists, or a request only if there is one.
    slow = ("correct", "grounded", "polite", "safe")
    quick = [one for one in criteria.builtin(language) if one.name not in slow]
    for criterion in (replace(one, form=form) for one in quick):
        once, anew = (
            Renderer(criterion, criteria.template_bodies(criterion)),
            Renderer(criterion, criteria.template_bodies(criterion)),
        )
        assert once._slots, "or the quick way is not taken at all"
        anew._slots = None
        anew._this = once._this  # whose cut is of chance
        for output in texts:
            for source in texts:
                sample = Sample(
                    "i", "s", output, source, ("a reference",), extra={"source": "no", "more": 1}
                )
                assert once.render(sample) == anew.render(sample)


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
def test_a_template_that_does_more_with_a_text_is_rendered_for_each(
    tmp_path: Path, block: str
) -> None:
    path = tmp_path / "own.jinja"
    path.write_text(f"---\ntitle: Own\nscale: [1, 5]\n---\n{block}\nHow good?", encoding="utf-8")
    criterion = criteria.load(str(path))
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    for output in ("abc", "xyz", "a longer one, with b"):
        sample = Sample("i", "s", output, "a source", ("one", "two"), extra={"more": output})
        templates = Templates("t", (("t", criteria.template_bodies(criterion)["own.jinja"], "t"),))
        assert (
            renderer.render(sample).messages[0]["content"]
            == sandbox.render(templates, template_variables(sample, renderer._this)).strip()
        )
