"""The systems' means by people and judges, held to numpy and scipy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from judge.core.records import Column, Sample
from judge.core.signature import Signature
from judge.stats.rated_columns import RatedColumn
from judge.stats.system_ratings import rated_above, system_ratings

SYSTEMS = ("a", "b", "c")
RANDOM = np.random.default_rng(1)
PEOPLE = np.column_stack([RANDOM.normal(mean, 0.6, 12) for mean in (4.0, 3.2, 2.0)])


def texts(ratings: np.ndarray = PEOPLE) -> list[Sample]:
    return [
        Sample(f"i{item}", system, "text", human={"tone": float(row[place])})
        for item, row in enumerate(ratings)
        for place, system in enumerate(SYSTEMS)
        if not np.isnan(row[place])
    ]


def judged(means: Sequence[float], better: str = "higher") -> RatedColumn:
    """Return a judge that gives all texts of a system the same score."""
    values = {(f"i{item}", s): m for item in range(12) for s, m in zip(SYSTEMS, means, strict=True)}
    scale = Column("tone", "criterion", Signature("tone"), 1.0, 5.0, better=better)
    return RatedColumn("m", Signature("tone"), values, "tone", scale)


def test_means_are_over_the_texts_that_all_judges_scored() -> None:
    judge = judged((3.0, 4.0, 2.0))
    del judge.values["i0", "a"]  # type: ignore[attr-defined]
    first, second, third = system_ratings(texts(), "tone", [judge], SYSTEMS)
    assert (first.texts, second.texts, third.texts) == (11, 12, 12)
    assert first.people == pytest.approx(PEOPLE[1:, 0].mean())
    assert second.judges == {"m": 4.0}


def test_systems_without_ratings_have_no_table() -> None:
    without_c = PEOPLE.copy()
    without_c[:, 2] = np.nan
    assert system_ratings(texts(without_c), "tone", [judged((3.0, 4.0, 2.0))], SYSTEMS) == ()
    assert system_ratings(texts(), "tone", [], SYSTEMS) == ()


def test_a_system_that_people_rate_above_the_judges_best_is_tested() -> None:
    judge = judged((3.0, 4.0, 2.0))
    means = system_ratings(texts(), "tone", [judge], SYSTEMS)
    (above,) = rated_above(texts(), "tone", [judge], means, lower_is_better=False)
    assert (above.system, above.judges_best) == ("a", "b")
    differences = PEOPLE[:, 0] - PEOPLE[:, 1]
    assert above.difference == pytest.approx(differences.mean())
    flipped = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    # Holm's correction for the two other systems: c is further from b than a is.
    assert flipped.pvalue <= above.p <= 2 * flipped.pvalue + 1e-9


@pytest.mark.parametrize(
    ("means", "better"), [((4.0, 3.0, 2.0), "higher"), ((2.0, 3.0, 1.0), "lower")]
)
def test_no_system_is_above_if_people_and_the_judge_agree(
    means: tuple[float, ...], better: str
) -> None:
    judge = judged(means, better)
    rows = system_ratings(texts(), "tone", [judge], SYSTEMS)
    is_lower = better == "lower"
    assert rated_above(texts(), "tone", [judge], rows, lower_is_better=is_lower) == ()


def test_an_insignificant_difference_between_people_and_the_judge_is_not_named() -> None:
    noisy = PEOPLE.copy()
    noisy[:, 1] = noisy[:, 0] + 0.1 * (-1.0) ** np.arange(12) - 0.01
    judge = judged((3.0, 4.0, 2.0))
    rows = system_ratings(texts(noisy), "tone", [judge], SYSTEMS)
    assert rows[0].people > rows[1].people
    assert rated_above(texts(noisy), "tone", [judge], rows, lower_is_better=False) == ()
