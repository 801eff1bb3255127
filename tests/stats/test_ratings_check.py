"""Checks of people's ratings: values outside the scale, and criteria that were not judged."""

from __future__ import annotations

from typing import Any

import pytest

from judge.core.errors import DataError
from judge.core.records import Sample
from judge.stats.human_agreement import rated_names, unknown_criteria
from judge.stats.rating_scales import on_scale, out_of_scale, require_samples_on_scale
from tests.factories import has_line, lines_hold

FIVE = {"relevance": (1.0, 5.0)}


def rated(*ratings: float, where: bool = True) -> list[Sample]:
    samples = []
    for n, value in enumerate(ratings):
        location = f"d.csv:{n + 2}" if where else ""
        samples.append(Sample(f"d{n}", "a", "x", human={"relevance": value}, where=location))
    return samples


def test_a_rating_outside_the_scale_is_noted_with_its_row() -> None:
    facts = ("relevance", "outside its scale, 1 to 5", "7 at d.csv:4", "Only correlations")
    assert lines_hold(out_of_scale(rated(1, 5, 7, 3), FIVE), [facts])
    facts = ("relevance", "outside its scale, 1 to 5", "0.5 at d0, a", "Only correlations")
    assert lines_hold(out_of_scale(rated(0.5, where=False), FIVE), [facts])
    assert not [*out_of_scale(rated(1, 5), FIVE)]


@pytest.mark.parametrize("ratings", [(1, 5), [0.0, 1.0] * 10, [*[1.0] * 30, 0.0], ()])
def test_ratings_on_the_scale_and_on_another_one_are_accepted(ratings: Any) -> None:
    require_samples_on_scale(rated(*ratings), FIVE)


def test_a_few_ratings_outside_the_scale_are_refused_with_their_row() -> None:
    with pytest.raises(DataError) as refused:
        require_samples_on_scale(rated(1, 44, 3, 7), FIVE)
    assert has_line(str(refused.value), "d.csv:3:", "relevance is 44", "1 to 5", "1 more")


def test_the_rating_of_each_rater_is_checked() -> None:
    sample = Sample(
        "d",
        "a",
        "x",
        human={"relevance": 4.0},
        ratings={"relevance": (6.0, None, 2.0)},
        where="d.csv:2",
    )
    assert "6 at d.csv:2" in next(out_of_scale([sample], FIVE))


def test_ratings_of_0_and_1_with_a_pass_mark_are_verdicts() -> None:
    (note,) = out_of_scale(rated(*[1.0] * 30, 0.0), FIVE, marked=["relevance"])
    assert has_line(note, "relevance with 0 and 1", "fail and pass")


def test_ratings_on_another_scale_are_noted_once() -> None:
    (note,) = out_of_scale(rated(*[0.0, 1.0] * 10), FIVE)
    assert has_line(note, "relevance from 0 to 1", "1 to 5", "correlations hold")


def test_a_note_lists_three_ratings_outside_the_scale() -> None:
    notes = [*out_of_scale(rated(*[3.0] * 60, 6, 7, 8, 9), FIVE)]
    assert has_line(notes[0], "6 at d.csv:62, 7 at d.csv:63, 8 at d.csv:64", "1 more")


@pytest.mark.parametrize(("criteria", "hint"), [(["relevance"], True), (["fluency"], False)])
def test_ratings_of_unknown_criteria_suggest_the_nearest_name(
    criteria: list[str], hint: bool
) -> None:
    typo = [Sample("d", "a", "x", human={"relevence": 4.0})]
    message = unknown_criteria(rated_names(typo), criteria)
    assert has_line(message, "rated relevence", f"judged {criteria[0]}")
    assert has_line(message, "relevance for relevence?") == hint
    assert not unknown_criteria(rated_names(rated(3)), ["relevance", "fluency"])
    assert not unknown_criteria([], criteria)
    assert "Rename them in a.csv." in unknown_criteria(rated_names(typo), criteria, "a.csv")


def test_a_rating_outside_the_scale_counts_only_in_correlations() -> None:
    votes: dict[str, tuple[float | None, ...]] = {"relevance": (9, 1)}
    two_raters = Sample("d", "a", "x", human={"relevance": 5.0}, ratings=votes)
    first, second = on_scale([two_raters, *rated(9)], "relevance", 1, 5)
    assert first.human == {"relevance": 1.0}
    assert first.ratings == {"relevance": (None, 1)}
    assert second.human == {}
    assert not any(sample.human for sample in on_scale(rated(*[0.0, 1.0] * 10), "relevance", 1, 5))
