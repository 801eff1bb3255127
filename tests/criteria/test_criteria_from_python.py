"""Criteria, scales and samples that a program makes are checked like files."""

from __future__ import annotations

from typing import Any

import pytest

from judge import criteria
from judge.core.errors import CriterionError, DataError
from judge.core.records import Criterion, Sample, Scale
from judge.data import samples


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scale", Scale(("1", "2", "3"), (1, 2))),
        ("scale", Scale((), ())),
        ("scale", Scale(("3", "3"), (3, 4))),
        ("scale", Scale(("bad", "good"), (float("nan"), 1))),
        ("scale", Scale(("bad", "good"), ("0", "1"))),  # type: ignore[arg-type]
        ("scale", Scale("345", (3, 4, 5))),  # type: ignore[arg-type]
        ("question", 3),
        ("template", 3),
        ("reply", "scores"),
        ("ask", "each"),
        ("judged", "all"),
        ("show", "source"),
        ("levels", ("bad", "good")),
        ("levels", 3),
        ("steps", "Read it."),
        ("steps", (1, 2)),
        ("weight", "2"),
        ("weight", -1),
        ("seen", frozenset({"a"})),
    ],
)
def test_wrong_fields_of_a_criterion_are_named(field: str, value: Any) -> None:
    fields: dict[str, Any] = {"question": "Is it polite?", field: value}
    with pytest.raises(CriterionError, match=rf"^polite\.jinja: {field}: "):
        criteria.finalize(Criterion("polite", **fields))


@pytest.mark.parametrize("name", [None, 3, ""])
def test_a_criterion_needs_a_name(name: Any) -> None:
    with pytest.raises(CriterionError, match="name"):
        criteria.finalize(Criterion(name, question="Is it polite?"))


@pytest.mark.parametrize(
    "scale",
    [
        Scale((1, 2, 3), (1, 2, 3)),  # type: ignore[arg-type]
        Scale(["1", "2", "3"], [1, 2, 3]),  # type: ignore[arg-type]
    ],
)
def test_a_scale_of_lists_or_numbers_is_read_like_a_header(scale: Scale) -> None:
    criterion = criteria.finalize(Criterion("polite", question="Is it?", scale=scale))
    assert criterion.scale == Scale.integers(1, 3)


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ((5, 1), "no labels"),
        ((1, 5, 0), "steps of 0"),
        ((5, 9, -1), "steps of -1"),
        ((0, 1, 0.5), "not 0, 1 and 0.5"),
        (("1", "5"), "not '1', '5' and 1"),
        ((0, 10**12), "at most 1,000"),
    ],
)
def test_a_scale_of_integers_that_nobody_can_use_is_refused(
    arguments: tuple[Any, ...], fact: str
) -> None:
    with pytest.raises(CriterionError, match=fact):
        Scale.integers(*arguments)


def test_a_scale_has_at_most_a_thousand_labels() -> None:
    numbers = range(1_001)
    scale = Scale(tuple(map(str, numbers)), tuple(map(float, numbers)))
    with pytest.raises(CriterionError, match="1,001 labels"):
        criteria.finalize(Criterion("polite", question="Is it?", scale=scale))


@pytest.mark.parametrize("rating", ["good", None, [1, 2]])
def test_a_rating_of_a_sample_is_a_number(rating: Any) -> None:
    sample = Sample("mail-1", "small", "Dear all", human={"polite": rating})
    with pytest.raises(DataError, match=r"mail-1.*polite"):
        samples.load([sample])
