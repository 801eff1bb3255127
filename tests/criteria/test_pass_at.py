"""The pass mark in a criterion's header: a value, a label, or a share of the scale."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge.core.errors import CriterionError
from judge.core.records import Column
from judge.core.signature import Signature
from judge.criteria import finalize, load
from tests.factories import has_line

NUMBERS, WORDS = "scale: [1, 5]", "scale: {labels: [bad, fair, good], values: [0, 1, 2]}"
SOLVED = "scale: {labels: [fail, pass], values: [0, 1]}"


def text(*lines: str) -> str:
    return "\n".join(
        ["---", "question: Is it polite?", *lines, "---", '{% extends "layouts/question.jinja" %}']
    )


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ((NUMBERS,), None),
        ((NUMBERS, "pass_at: 4"), 4.0),
        ((NUMBERS, "pass_at: '4'"), 4.0),
        ((NUMBERS, "pass_at: 3.5", "allow_half: true"), 3.5),
        ((NUMBERS, "threshold: 0.7"), 3.8),
        ((NUMBERS, "threshold: 1"), 5.0),
        (("scale: {min: 0, max: 100, step: 10}", "threshold: 0.55"), 55.0),
        (("scale: {min: -2, max: 2}", "threshold: 0.25"), -1.0),
        ((WORDS, "pass_at: good"), 1.5),  # values from 1.5 are nearest to good
        ((WORDS, "pass_at: fair"), 0.5),
        ((WORDS, "pass_at: bad"), 0.0),
        ((WORDS, "pass_at: 2"), 2.0),
        ((SOLVED, "pass_at: pass"), 0.5),
        ((SOLVED, "threshold: 0.9"), 0.9),
        (("scale: {labels: [rude, ok, fine], values: [0, 1, 1]}", "pass_at: fine"), 0.5),
        # If lower is better, the worse end is the higher one.
        ((NUMBERS, "better: lower", "pass_at: 2"), 2.0),
        ((NUMBERS, "better: lower", "threshold: 0.75"), 2.0),
        ((WORDS, "better: lower", "pass_at: fair"), 1.5),
        ((WORDS, "better: lower", "pass_at: good"), 2.0),
    ],
)
def test_the_pass_mark_is_a_value_a_label_or_a_share_of_the_scale(
    lines: tuple[str, ...], value: float | None
) -> None:
    assert load(text=text(*lines), name="polite").pass_at == value


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ((SOLVED,), 0.5),
        (("scale: {labels: [pass, fail], values: [1, 0]}",), 0.5),
        (("scale: {labels: [不合格, 合格], values: [0, 1]}",), 0.5),
        (("scale: {labels: [pass, fail], values: [0, 1]}", "better: lower"), 0.5),
        ((SOLVED, "pass_at: 1"), 1.0),
        (("scale: {labels: ['no', 'yes'], values: [0, 1]}",), None),
        (("scale: {labels: [fail, pass], values: [1, 0]}",), None),  # pass is the worse end
        ((WORDS,), None),
    ],
)
def test_a_scale_from_fail_to_pass_has_a_pass_mark_without_the_key(
    lines: tuple[str, ...], value: float | None
) -> None:
    assert load(text=text(*lines), name="solved").pass_at == value


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        ((NUMBERS, "pass_at: 6"), ("4: pass_at: 6", "1 to 5")),
        (
            (NUMBERS, "pass_at: 0.7"),
            ("4: pass_at: 0.7", "1 to 5", "threshold: 0.7"),
        ),
        ((NUMBERS, "pass_at: .nan"), ("4: pass_at: nan", "1 to 5")),
        (
            (WORDS, "pass_at: god"),
            ("4: pass_at:", "'god'", "'good'", "bad, fair, good"),
        ),
        ((NUMBERS, "pass_at: yes"), ("4: pass_at:", "number", "True")),
        (
            (NUMBERS, "threshold: 4"),
            ("4: threshold: 4", "share", "pass_at:"),
        ),
        ((NUMBERS, "threshold: .nan"), ("4: threshold: nan", "share")),
        (
            (NUMBERS, "threshold: 0.7", "pass_at: 4"),
            ("5: pass_at:", "threshold"),
        ),
    ],
)
def test_bad_pass_at_is_an_error_with_its_line(
    lines: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    with pytest.raises(CriterionError) as caught:
        load(text=text(*lines), name="polite")
    assert has_line(str(caught.value), f"polite.jinja:{facts[0]}", *facts[1:])


def test_the_pass_mark_of_a_criterion_in_python_is_checked() -> None:
    criterion = load(text=text(NUMBERS), name="polite")
    assert finalize(replace(criterion, pass_at=4.5)).pass_at == 4.5
    with pytest.raises(CriterionError, match=r"polite.jinja: pass_at: 7 .*1 to 5"):
        finalize(replace(criterion, pass_at=7))


def test_a_pass_mark_of_a_comparison_is_an_error() -> None:
    template = load("pairwise/relevance", pairwise=True).template.replace(
        "---\n", "---\npass_at: 1\n", 1
    )
    with pytest.raises(
        CriterionError,
        match=r"better.jinja:2: pass_at: .*compares two texts",
    ):
        load(text=template, name="better", pairwise=True)


def test_the_pass_mark_does_not_change_the_digest() -> None:
    plain = load(text=text(NUMBERS), name="polite")
    assert replace(plain, pass_at=4.0).digest == plain.digest


@pytest.mark.parametrize(
    ("pass_at", "value", "passes"),
    [
        (None, 5.0, None),
        (4.0, 4.0, True),
        (4.0, 3.999, False),
        (3.8, 1 + 4 * 0.7, True),
        (3.8000000000000003, 3.8, True),  # a sum in another order
        (0.3, 0.1 + 0.2, True),
        (0.1 + 0.2, 0.3, True),
        (700000000.1, 700000000.1 - 1e-7, True),
        (4.0, 4.0 - 1e-6, False),
    ],
)
def test_a_rounding_error_does_not_fail_a_value(
    pass_at: float | None, value: float, passes: bool | None
) -> None:
    column = Column("polite", "criterion", Signature("polite@1"), 1.0, 5.0, pass_at=pass_at)
    assert column.passes(value) is passes


@pytest.mark.parametrize("scale", ["(5-1)", "(3 to 3)"])
def test_a_sentence_with_a_descending_scale_is_an_error(scale: str) -> None:
    with pytest.raises(CriterionError, match="the lowest score comes first"):
        load(f"polite: Is it polite? {scale}")
