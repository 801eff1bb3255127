"""The exact p of sign flips on a lattice, against all assignments of signs."""

from __future__ import annotations

import numpy as np
import pytest

from judge.stats import exact_sign_flip
from judge.stats.exact_sign_flip import lattice_p
from judge.stats.paired_differences import sign_flip
from tests.factories import exact_sign_flip_p

# Written scores, means of twenty draws, means of four criteria, of three judges, and dollars
STEPS_PER_POINT = [1, 20, 16, 3, 100]


def _on_lattice(steps_per_point: int, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.rint(random.normal(0.4, 1.0, shape) * steps_per_point) / steps_per_point


@pytest.mark.parametrize("steps_per_point", STEPS_PER_POINT)
def test_p_is_that_of_all_assignments_of_signs(steps_per_point: int) -> None:
    rows = _on_lattice(steps_per_point, (8, 16))
    expected = [exact_sign_flip_p(row) for row in rows]
    assert lattice_p(rows) == pytest.approx(expected, abs=1e-12)


def test_no_difference_has_p_1() -> None:
    assert lattice_p(np.zeros((1, 20))).tolist() == [1.0]


def test_opposite_differences_that_cancel_have_p_1() -> None:
    assert lattice_p(np.array([[1.0, -1.0] * 10])) == pytest.approx([1.0])


@pytest.mark.parametrize("items", [30, 500])
def test_the_smallest_p_is_that_of_two_assignments(items: int) -> None:
    (p_value,) = lattice_p(np.ones((1, items)))
    assert p_value > 0
    assert p_value == pytest.approx(2.0 ** (1 - items), rel=0, abs=1e-12)


def test_values_between_the_steps_have_no_exact_p() -> None:
    assert np.isnan(lattice_p(np.random.default_rng(1).normal(size=(3, 20)))).all()


def test_too_many_steps_and_items_are_left_to_drawn_flips(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _on_lattice(20, (4, 30))
    monkeypatch.setattr(exact_sign_flip, "_MOST_COSINES", 1_000)
    flips = sign_flip(rows)
    assert not flips.exact.any()
    assert not np.isnan(flips.p).any()


def test_scores_on_a_lattice_are_tested_without_a_seed() -> None:
    rows = _on_lattice(20, (4, 60))
    assert sign_flip(rows, seed=1).exact.all()
    assert sign_flip(rows, seed=1).p.tolist() == sign_flip(rows, seed=2).p.tolist()


def test_missing_values_do_not_count() -> None:
    row = _on_lattice(1, (1, 30))
    with_missing = np.concatenate([row, np.full((1, 10), np.nan)], axis=1)
    assert sign_flip(with_missing).p == pytest.approx(sign_flip(row).p)
