"""Several criteria in one prompt, and one reply taken apart into theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import CriterionError, ParseError
from judge.core.records import Choice, Criterion, Prompt, Response, Sample, Scale, Token
from judge.criteria import languages, load, template_bodies
from judge.criteria.render import Renderer
from judge.scoring import expectation, parse, strategies
from judge.scoring.multi_criteria import group_criteria, make_renderers, split_reply
from judge.scoring.strategies import SamplingOptions

SAMPLE = Sample("1", "s", "The ferry was late.", "The ferry arrived at noon, four hours late.")
NAMES = ("relevance", "coherence", "consistency", "fluency")
FIVE, ELEVEN = Scale.integers(1, 5), Scale.integers(0, 10)


def merged(*names: str, language: str = "en") -> list[Criterion]:
    return [replace(load(name, language=language), merged=True) for name in names]


def prompts(criteria: list[Criterion], sample: Sample = SAMPLE) -> dict[str, Prompt]:
    return {name: made.render(sample) for name, made in make_renderers(criteria).items()}


def text(prompt: Prompt) -> str:
    (message,) = prompt.messages
    return message["content"]


# The prompt.


@pytest.mark.parametrize("language", languages())
def test_criteria_that_show_the_same_texts_are_in_one_prompt(language: str) -> None:
    criteria = merged("relevance", "coherence", "consistency", language=language)
    made = prompts(criteria)
    assert len({text(prompt) for prompt in made.values()}) == 1
    whole = text(made["relevance"])
    assert whole.count(SAMPLE.output) == whole.count(SAMPLE.source or "") == 1
    for place, criterion in enumerate(criteria, 1):
        assert f"=== {place}. {criterion.name} ===" in whole
        assert criterion.title in whole
    task = {"en": "Judge the text", "ja": "文章を評価", "ko": "글을 평가하십시오", "zh": "评价文本"}[language]
    assert task in whole.partition("=== 1.")[0].rpartition("</output ")[2]  # what is judged is the text
    assert '"relevance"' in whole.rpartition("===")[2]
    assert [name for name, _ in made["coherence"].merged] == ["relevance", "coherence", "consistency"]
    assert {prompt.criterion for prompt in made.values()} == {"relevance", "coherence", "consistency"}


def test_no_answer_but_the_object_is_asked_for() -> None:
    whole = text(prompts(merged("relevance", "coherence"))["relevance"])
    assert whole.count("nothing else") == 1
    assert "several criteria" in whole
    assert whole.count("Scale: the whole numbers from 1") == 2


def test_a_criterion_that_shows_other_texts_is_asked_as_if_nothing_were_merged() -> None:
    """Fluency hides the source: what its author left out is not shown to it in company either."""
    unmerged = load("coherence")
    alone = Renderer(unmerged, template_bodies(unmerged)).render(SAMPLE)
    assert make_renderers([unmerged])["coherence"].render(SAMPLE) == alone
    made = prompts(merged(*NAMES))
    plain = load("fluency")
    assert made["fluency"] == Renderer(plain, template_bodies(plain)).render(SAMPLE)
    assert len(made["relevance"].merged) == 3


def test_groups_are_of_what_shares_a_prompt(tmp_path: Path) -> None:
    def named(*criteria: Criterion, samples: Sequence[Sample] = (SAMPLE,)) -> list[list[str]]:
        return [[c.name for c in group] for group in group_criteria(criteria, samples)]

    assert named(*merged(*NAMES)) == [list(NAMES[:3])]
    assert named(*merged("relevance", "fluency")) == []
    five = merged("relevance", "fluency", "coherence", "fluency_5")
    assert sorted(named(*five)) == [["fluency", "fluency_5"], ["relevance", "coherence"]]
    body = "{% if source is defined %}{{ source }} {% endif %}{{ output }}{{ this.cut }}How good is it?"
    by_field = [custom(tmp_path, "both", body), custom(tmp_path, "bare", "{{ output }}{{ this.cut }}How good?")]
    assert named(*by_field) == []
    assert named(*by_field, samples=[SAMPLE, SAMPLE, replace(SAMPLE, source=None)]) == [["both", "bare"]]


def custom(folder: Path, name: str, body: str) -> Criterion:
    path = folder / f"{name}.jinja"
    path.write_text(f"---\ntitle: {name}\nscale: [1, 5]\n---\n{body}\n", "utf-8")
    return replace(load(str(path)), merged=True)


def test_a_criterion_that_cannot_be_rendered_leaves_the_others_together(tmp_path: Path) -> None:
    bad = custom(tmp_path, "bad", "{{ output }}{{ this.cut }}{{ 1 // (output | length - 19) }}")
    made = make_renderers([*merged("relevance", "coherence"), bad])
    with pytest.raises(CriterionError, match=r"bad\.jinja"):
        made["bad"].render(SAMPLE)
    assert len(made["relevance"].render(SAMPLE).merged) == 2
    assert made["coherence"].render(SAMPLE).messages == made["relevance"].render(SAMPLE).messages


def test_a_template_without_a_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CriterionError, match="--merge-criteria"):
        make_renderers([custom(tmp_path, "bare", "{{ output }} How good?")])["bare"].render(SAMPLE)


def test_templates_in_the_judged_text_stay_text() -> None:
    odd = replace(SAMPLE, output="{{ questions }} {% for x in y %} === 1. relevance ===")
    assert odd.output in text(prompts(merged("relevance", "coherence"), odd)["relevance"])


# The request.


def test_each_criterion_has_a_request_of_its_own_that_knows_the_whole_prompt() -> None:
    three, two = merged("relevance", "coherence", "consistency"), merged("relevance", "coherence")
    keys = set()
    for criteria in (three, two):
        for name, prompt in prompts(criteria).items():
            criterion = next(c for c in criteria if c.name == name)
            (asked,) = strategies.requests(prompt, criterion, "logprobs", SamplingOptions())
            keys.add(asked.key())
            assert asked.params["max_tokens"] == 64 + 32 * len(criteria)
            schema = asked.params["response_format"]["json_schema"]["schema"]
            assert schema["required"] == [c.name for c in criteria]
            assert schema["properties"]["relevance"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    plain = load("relevance")
    (alone,) = strategies.requests(
        Renderer(plain, template_bodies(plain)).render(SAMPLE), plain, "logprobs", SamplingOptions()
    )
    assert len(keys | {alone.key()}) == 6


# The reply.


def tokens(*texts: str, top: dict[str, dict[str, float]] | None = None) -> tuple[Token, ...]:
    listed = top or {}
    return tuple(
        Token(one, 0.0, tuple((t, math.log(p)) for t, p in listed.get(one, {one: 1.0}).items())) for one in texts
    )


def read(choice: Choice, scale: Scale = FIVE) -> tuple[float, float | None]:
    value, how = strategies.score_reply("logprobs", [Response((choice,))], Criterion("c", "", scale), SamplingOptions())
    return value, how.mass


def test_each_value_is_weighed_by_its_own_tokens() -> None:
    made = tokens(
        '{"', "a", '":', " ", "4", ',"', "b", '":', " ", "2", "}", "",
        top={"4": {"4": 0.6, "5": 0.4}, "2": {"2": 0.5, "1": 0.5}},
    )  # fmt: skip
    a, b = split_reply(Choice('{"a": 4,"b": 2}', "stop", made), ["a", "b"])
    assert (a.text, b.text) == ("4", "2")
    assert read(a)[0] == pytest.approx(4.4)
    assert read(b)[0] == pytest.approx(1.5)


VERDICT = Scale(("fail", "pass"), (0.0, 1.0))


@pytest.mark.parametrize(
    ("reply", "texts", "top", "scale", "value"),
    [
        (  # a one is told from a ten by what follows it
            '{"a":1,"b":3}', ['{"a":', "1", ',"b":3}'],
            {"1": {"1": 0.9, "7": 0.1}, ',"b":3}': {',"b":3}': 0.25, "0": 0.75}}, ELEVEN,
            0.9 * (0.25 * 1 + 0.75 * 10) + 0.1 * 7,
        ),
        (  # a token with more than the value counts once
            '{"a":4,"b":2}', ['{"a', '":4,"', 'b":2}'], {'":4,"': {'":4,"': 0.5, '":3,"': 0.5}}, FIVE, 3.5,
        ),
        ('{"a": "pass"}', ['{"a":', ' "', "pass", '"', "}"], {"pass": {"pass": 0.8, "fail": 0.2}}, VERDICT, 0.8),
    ],
)  # fmt: skip
def test_a_value_is_weighed_with_what_its_tokens_carry(
    reply: str, texts: list[str], top: dict[str, dict[str, float]], scale: Scale, value: float
) -> None:
    (a,) = split_reply(Choice(reply, "stop", tokens(*texts, top=top)), ["a"])
    assert read(a, scale) == (pytest.approx(value), pytest.approx(1.0))


def test_tokens_that_do_not_join_to_the_reply() -> None:
    """As llama.cpp sends them: white space before, an empty one at the end."""
    made = tokens(" ", "\n", "{", '"a"', ":", " 4", "}", "")
    (a,) = split_reply(Choice('{"a": 4}', "stop", made), ["a"])
    assert read(a)[0] == 4
    (lost,) = split_reply(Choice('{"a": 4}', "stop", tokens("no", " object")), ["a"])
    assert (lost.text, lost.tokens) == ("4", ())
    with pytest.raises(strategies.UnusableReply):
        read(lost)
    (bare,) = split_reply(Choice('{"a": 4}'), ["a"])
    assert bare.tokens is None


@pytest.mark.parametrize(
    ("reply", "finish", "scores"),
    [
        ('{"a": 4, "b": 2}', "stop", [4.0, 2.0]), ('```json\n{"a": 4, "b": "2"}\n```', "stop", [4.0, 2.0]),
        ('<think>{"a": 1}</think>{"a": 4, "b": 2}', "stop", [4.0, 2.0]), ('{"a": 4}', "stop", [4.0, None]),
        ('{"a": 4, "b": 9}', "stop", [4.0, None]), ('{"a": 4, "b": null}', "stop", [4.0, None]),
        ('{"a": 4, "b": 2, "b": 3}', "stop", [4.0, None]), ('{"a": 4, "c": 2}', "stop", [4.0, None]),
        ("4", "stop", [None, None]), ("[4, 2]", "stop", [None, None]),
        ('{"a": 4, "b": 2} and so on', "stop", [None, None]), ("a: 4, b: 2", "stop", [None, None]),
        ("", "stop", [None, None]), ('{"a": 4, "b"', "length", [None, None]),
        ('{"a": 4, "b": 2}', "length", [None, None]), ("I cannot do that.", "refusal", [None, None]),
    ],
)  # fmt: skip
def test_what_is_not_plainly_a_criterions_score_is_a_failure_of_that_criterion(
    reply: str, finish: str, scores: list[float | None]
) -> None:
    found: list[float | None] = []
    for choice in split_reply(Choice(reply, finish), ["a", "b"]):
        try:
            found.append(FIVE.value(parse.read(choice, "score", FIVE).label))
        except ParseError:
            found.append(None)
    assert found == scores


@given(st.text(max_size=80), st.sampled_from(["stop", "length"]))
def test_any_text_at_all_is_taken_apart(reply: str, finish: str) -> None:
    assert len(split_reply(Choice(reply, finish, tokens(*reply)), ["a", "b"])) == 2


@given(st.lists(st.sampled_from(FIVE.labels), min_size=2, max_size=2), st.sampled_from(["", " ", "\n  "]), st.data())
def test_values_are_found_however_the_reply_is_cut_into_tokens(
    labels: list[str], gap: str, data: st.DataObject
) -> None:
    reply = f'{{{gap}"a":{gap}{labels[0]},{gap}"b":{gap}{labels[1]}{gap}}}'
    cuts = sorted({0, len(reply), *data.draw(st.lists(st.integers(0, len(reply)), max_size=9))})
    made = tuple(Token(reply[i:j], 0.0) for i, j in pairwise(cuts))
    for choice, label in zip(split_reply(Choice(reply, "stop", made), ["a", "b"]), labels, strict=True):
        assert choice.text == label
        assert choice.tokens is not None
        whole = "".join(token.text for token in choice.tokens)
        found = parse.find(whole, "score", FIVE)
        assert expectation.from_logprobs(choice.tokens, found.start, found.label, FIVE).argmax == label
