"""Anytime-valid tests and intervals: they hold at every number of items, not only at one chosen before."""

from __future__ import annotations

import numpy as np
import pytest

from judge.stats import anytime

ROWS, ITEMS = 600, 150
# A mean of 0 each; the last is skewed, so that its median is not 0.
EQUAL = {
    "votes": ([-4.0, 4.0], [0.5, 0.5]),
    "ties": ([-4.0, -1.0, 0.0, 1.0, 4.0], [0.05, 0.1, 0.7, 0.1, 0.05]),
    "skewed": ([3.0, -1.0], [0.25, 0.75]),
}


def drawn(kind: str, shift: float = 0.0) -> np.ndarray:
    values, chances = EQUAL[kind]
    return np.random.default_rng(1).choice(values, p=chances, size=(ROWS, ITEMS)) + shift


@pytest.mark.parametrize("kind", EQUAL)
def test_looking_after_every_item_decides_falsely_in_at_most_5_per_cent(kind: str) -> None:
    values = drawn(kind)
    p = anytime.p_values(values, -4.0, 4.0, 0.0)
    assert 0 < np.mean(p < 0.05) < 0.05 + 2 * np.sqrt(0.05 * 0.95 / ROWS)
    # The oracle can fail: a t test at the same looks does not hold its level.
    n = np.arange(10, ITEMS + 1)
    means = values.cumsum(axis=1)[:, 9:] / n
    errors = np.sqrt(((values**2).cumsum(axis=1)[:, 9:] / n - means**2) / n)
    assert np.mean((np.abs(means) > 1.96 * errors + 1e-9).any(axis=1)) > 0.15


@pytest.mark.parametrize("kind", EQUAL)
def test_a_confidence_sequence_contains_the_mean_at_all_sizes_together(kind: str) -> None:
    made = anytime.estimates(drawn(kind), -4.0, 4.0, 0.0)
    covered = [e is not None and e.low is not None and e.low <= 0.0 <= (e.high or 0.0) for e in made]
    assert np.mean(covered) > 0.95 - 2 * np.sqrt(0.05 * 0.95 / ROWS)


def test_p_below_5_per_cent_and_an_interval_without_0_are_the_same() -> None:
    made = anytime.estimates(drawn("ties", 0.35), -5.0, 5.0, 0.0)
    decided = {(e.p or 1.0) < 0.05 for e in made if e} | {True}
    assert decided == {True, False}
    assert all(((e.p or 1.0) < 0.05) == (not (e.low or 0.0) <= 0.0 <= (e.high or 0.0)) for e in made if e)


def test_a_difference_is_found_and_its_p_never_rises_with_more_items() -> None:
    values = np.random.default_rng(2).normal(0.6, 1.0, (1, 200)).clip(-4, 4)
    p = [anytime.p_values(values[:, :n], -4.0, 4.0, 0.0)[0] for n in range(1, 201)]
    assert p[0] == 1.0
    assert p[-1] < 1e-6
    assert p == sorted(p, reverse=True)


def test_the_bets_are_those_of_the_definition() -> None:
    values = [0.5, -0.25, 1.0]
    capital, most = [1 / 8, 1 / 8, 1 / 4, 1 / 2], 1.0
    for value in values:
        capital = [kept * (1 + part * value) for kept, part in zip(capital, (0.05, 0.15, 0.4, 0.95), strict=True)]
        most = max(most, sum(capital))
    assert np.exp(anytime.capital(np.array([values]), -1.0, 0.0)[0]) == pytest.approx(most)


def test_missing_values_few_items_and_values_without_a_scale() -> None:
    rows = np.array([[1.0, np.nan, 2.0, 1.0, 2.0, 1.0, np.nan], [np.nan] * 7, [1.0, 2.0, *[np.nan] * 5]])
    full, empty, few = anytime.estimates(rows, -4.0, 4.0, 0.0)
    assert full is not None
    assert full == anytime.estimates(rows[:1, [0, 2, 3, 4, 5]], -4.0, 4.0, 0.0)[0]
    assert empty is None
    assert few is not None
    assert (few.n, few.low, few.high) == (2, None, None)
    (unbounded, *_) = anytime.estimates(rows, None, None, 0.0)
    assert unbounded is not None
    assert (unbounded.p, unbounded.low) == (None, None)
