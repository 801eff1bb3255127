"""Half points: scales with steps of 0.5, and half points that a criterion allows on whole numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from judge import criteria
from judge.core.errors import CriterionError, ParseError
from judge.core.records import (
    Choice,
    Criterion,
    Form,
    ReplyKind,
    Request,
    Response,
    Sample,
    Scale,
    Token,
)
from judge.criteria import template_bodies
from judge.criteria.render import Renderer
from judge.scoring import strategies
from judge.scoring.parse import find
from judge.scoring.strategies import SamplingOptions, Strategy, UnusableReply

STRATEGIES: tuple[Strategy, ...] = ("logprobs", "decisions", "single")
FIVE = Scale.integers(1, 5)
SAMPLE = Sample("1", "a", "Text.", source="Source.")
BODY = '{% extends "layouts/pointwise.jinja" %}\n{% block criterion %}Good?{% endblock %}'


def make(scale: str) -> Criterion:
    return criteria.load(text=f"---\nscale: {scale}\n---\n{BODY}", name="good")


STEPS, ALLOWED, WHOLE = map(
    make, ("{min: 1, max: 5, step: 0.5}", "[1, 5]\nallow_half: true", "[1, 5]")
)
HALVES = ("1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5")


def ask(criterion: Criterion, strategy: Strategy = "single") -> Request:
    prompt = Renderer(criterion, template_bodies(criterion)).render(SAMPLE)
    return strategies.requests(prompt, criterion, strategy, SamplingOptions())[0]


def test_allow_half_changes_neither_the_prompt_nor_the_requests() -> None:
    assert STEPS.scale.labels == ALLOWED.scale.labels == HALVES
    content = ask(STEPS).messages[0]["content"]
    assert "Scale: 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5. The lowest is 1, the highest 5." in content
    assert len({STEPS.digest, ALLOWED.digest, WHOLE.digest}) == 3
    changed = replace(WHOLE, scale=ALLOWED.scale)
    assert changed.digest not in (WHOLE.digest, replace(WHOLE, scale=STEPS.scale).digest)
    plain = replace(
        ALLOWED, template=ALLOWED.template.replace("Good?", "{{ this.scale.labels|join(' ') }}")
    )
    assert "1 2 3 4 5" in ask(plain).messages[0]["content"]
    forms: tuple[Form, ...] = ("text", "json", "decision")
    for form in forms:
        for strategy in STRATEGIES:
            requests = (
                ask(replace(criterion, form=form), strategy)
                for criterion in (ALLOWED, WHOLE, STEPS)
            )
            allowed, whole, steps = (
                (r.messages, r.params) if form == "text" else r.params for r in requests
            )
            assert allowed == whole
            assert whole != steps or form == "decision"


def test_structured_output_has_half_points_as_numbers() -> None:
    schema = ask(replace(STEPS, form="json")).params["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["score"] == {
        "type": "number",
        "enum": [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5],
    }


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("4.5", "4.5"), ("4.50", "4.5"), ("4½", "4.5"), ("4,5", "4.5"), ("4.5/5", "4.5"), ("４．５", "4.5"),
        ("4.5점", "4.5"), ("4,5 / 5", "4.5"), ("**4.5**", "4.5"), ("5段階中4.5", "4.5"), ("٤٫٥", "4.5"), ("4.0", "4"),
        ("4", "4"), ("four", "4"), ("4.", "4"), ("1½", "1.5"),
    ],
)  # fmt: skip
def test_half_points_are_read_if_the_criterion_allows_them(text: str, label: str) -> None:
    for criterion in (STEPS, ALLOWED):
        assert criterion.scale.value(label) == float(label)
        for reply in (text, f'{{"score": "{text}"}}'):
            assert find(reply, "score", criterion.scale).label == label
        assert (
            find(f"It has 3.5 of 5.\nScore: {text}", "reason_then_score", criterion.scale).label
            == label
        )
    assert find('{"score": 4.5}', "score", ALLOWED.scale).label == "4.5"
    if label == "4.5" and "," not in text:
        with pytest.raises(ParseError, match=r"half points.*allow_half: true.*step: 0\.5"):
            find(text, "score", FIVE)


@pytest.mark.parametrize(
    "text", ["5.5", "0.5", "½", "5½", "4.25", "4,25", "4, 5", "4，5", "4,500", "4-5", "4.5.5"]
)
@pytest.mark.parametrize("kind", ["score", "score_then_reason", "reason_then_score"])
def test_numbers_other_than_half_points_are_refused(text: str, kind: ReplyKind) -> None:
    for scale in (STEPS.scale, ALLOWED.scale, FIVE):
        with pytest.raises(ParseError) as caught:
            find(f"Score: {text}", kind, scale)
        assert "allow_half" not in str(caught.value)


def weigh(scale: Scale, *reply: tuple[str, dict[str, float]]) -> tuple[float, dict[str, float]]:
    tokens = [
        Token(text, math.log(top[text]), tuple((t, math.log(p)) for t, p in top.items()))
        for text, top in reply
    ]
    answer = Response((Choice("".join(token.text for token in tokens), "stop", tuple(tokens)),))
    value, provenance = strategies.score_reply(
        "logprobs", [answer], replace(WHOLE, scale=scale), SamplingOptions()
    )
    return value, dict(provenance.distribution or {})


def test_a_whole_number_before_a_half_point_is_split_by_the_next_token() -> None:
    value, shares = weigh(
        STEPS.scale, ("4", {"4": 0.8, "5": 0.2}), ("\n", {"\n": 0.7, ".5": 0.2, "½": 0.1})
    )
    assert shares == pytest.approx({"4": 0.56, "4.5": 0.24, "5": 0.2})
    assert value == pytest.approx(4 * 0.56 + 4.5 * 0.24 + 5 * 0.2)
    # "4." may begin 4.5 or end the sentence, and "3" may begin 3.5. They are ambiguous and not part of the value.
    value, shares = weigh(STEPS.scale, ("4", {"4": 0.9, "3": 0.1}), ("\n", {"\n": 0.7, ".": 0.3}))
    assert value == 4.0
    assert shares == pytest.approx({"4": 0.63})
    # By hand, the value is from 0.9 · 4 + 0.1 · 3 to 0.9 · 4 + 0.1 · 3.5, so 4 cannot be right.
    with pytest.raises(UnusableReply, match=r"3\.90 and 3\.95, not exactly 4\.00"):
        weigh(STEPS.scale, ("4", {"4": 0.9, "3": 0.1}))


def test_allowed_half_points_are_weighted_only_if_the_reply_has_one() -> None:
    value, shares = weigh(ALLOWED.scale, ("4", {"4": 0.7, "5": 0.2, "3": 0.1}))
    assert (value, shares) == (pytest.approx(4.1), pytest.approx({"3": 0.1, "4": 0.7, "5": 0.2}))
    value, shares = weigh(ALLOWED.scale, ("4", {"4": 0.8, "5": 0.2}), ("\n", {"\n": 0.7, ".": 0.3}))
    assert shares == pytest.approx({"4": 0.8, "5": 0.2})
    value, shares = weigh(
        ALLOWED.scale, ("4", {"4": 1.0}), (".", {".": 0.9, "\n": 0.1}), ("5", {"5": 1.0})
    )
    assert shares == pytest.approx({"4": 0.1, "4.5": 0.9})
    assert value == pytest.approx(4.45)


def test_a_decimal_comma_is_weighted_as_it_is_parsed() -> None:
    value, shares = weigh(
        STEPS.scale, ("4", {"4": 1.0}), (",", {",": 1.0}), ("5", {"5": 0.8, " but": 0.2})
    )
    assert value == pytest.approx(4.4)
    assert shares == pytest.approx({"4": 0.2, "4.5": 0.8})


@pytest.mark.parametrize(
    "scale",
    [
        "{min: 0, max: 9, step: 3}", "{labels: [a, b], values: [0, 1]}", "{min: 1, max: 2, step: 0.5}", "[1, 501]",
        "{labels: [a, b], values: [0, 1000000000]}",
    ],
)  # fmt: skip
def test_allow_half_needs_a_scale_of_at_most_500_whole_numbers(scale: str) -> None:
    assert len(make("[1, 500]\nallow_half: true").scale.labels) == 999
    with pytest.raises(CriterionError, match=r"good\.jinja:3: allow_half: .*500"):
        make(f"{scale}\nallow_half: true")
