from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judge.stats import paired_differences
from judge.stats.paired_differences import holm, sign_flip


def _scipys(row: list[float]) -> float:
    """The exact p of scipy's own paired permutation test."""
    zeros = np.zeros(len(row))
    found = scipy_stats.permutation_test(
        (np.array(row), zeros), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    return float(found.pvalue)


@pytest.mark.parametrize(
    "row",
    [
        [1.0, 2.0, -1.0, 0.5, 3.0],
        [1.0, 1.0, 1.0, -1.0, -1.0, 2.0, 0.0, 0.0],
        [0.1, 0.2, 0.3, -0.3, 0.7],
        [1.0, -1.0],
        [0.25] * 9,
        list(np.random.default_rng(1).normal(0.4, 1, 12)),
    ],
)
def test_small_samples_are_exact_as_scipys(row: list[float]) -> None:
    p, exact = sign_flip(np.array([row]))
    assert exact.tolist() == [True]
    assert p[0] == pytest.approx(_scipys(row), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_larger_ones_are_the_exact_ones_within_sampling_error(seed: int) -> None:
    row = np.random.default_rng(seed).integers(-3, 5, 16).astype(float)
    row[row == 0] = 1.0
    p, exact = sign_flip(row[None, :], n_flips=20_000, seed=seed)
    theirs = _scipys(list(row))
    assert exact.tolist() == [False]
    assert p[0] == pytest.approx(theirs, abs=4 * math.sqrt(theirs * (1 - theirs) / 20_000) + 1e-4)


def test_no_p_is_zero() -> None:
    p, _ = sign_flip(np.ones((1, 100)), n_flips=999)
    assert p[0] == 1 / 1000


def test_items_without_a_difference_do_not_count_and_missing_ones_neither() -> None:
    row = [2.0, 1.0, -1.0, 1.5]
    long = row + [0.0] * 30 + [math.nan] * 30
    p, exact = sign_flip(np.array([row + [math.nan] * 60, long]))
    assert exact.tolist() == [True, True]
    assert (
        p[0] == p[1] == 6 / 16
    )  # the sum is 3.5; 5.5 with no minus, 3.5 with one at either 1, and their mirror images


def test_no_difference_at_all_is_certain_and_one_item_says_nothing() -> None:
    p, exact = sign_flip(np.array([[0.0, 0.0, 0.0], [5.0, math.nan, math.nan]]))
    assert p[0] == 1.0
    assert math.isnan(p[1])
    assert exact.all()


def test_the_scale_does_not_matter_and_every_row_has_the_same_flips() -> None:
    row = np.random.default_rng(3).normal(0.2, 1, 50)
    p, _ = sign_flip(np.stack([row, 1e6 * row, 1e-6 * row, -row]), n_flips=500)
    assert len(set(p.tolist())) == 1


@pytest.mark.parametrize("rows", [3, 40])
def test_chunks_do_not_change_the_numbers(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    values = np.concatenate([random.integers(-2, 4, (rows, 30)), np.zeros((2, 30))]).astype(float)
    values[0, 8:] = 0
    whole = sign_flip(values, n_flips=700, seed=2)
    monkeypatch.setattr(paired_differences, "_MAX_NUMBERS", 100)
    parts = sign_flip(values, n_flips=700, seed=2)
    np.testing.assert_array_equal(whole[0], parts[0])
    assert 0 < int(whole[1].sum()) < len(values)


def test_the_test_finds_what_is_not_there_as_often_as_it_says() -> None:
    random = np.random.default_rng(8)
    rows = random.normal(size=(2_000, 30))
    p, _ = sign_flip(rows, n_flips=1_000)
    assert float((p < 0.05).mean()) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 2_000))
    assert float((p < 0.5).mean()) == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 2_000))


def test_holm_by_hand() -> None:
    # sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, and no smaller than the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.001, 0.999))
def test_holm_rejects_what_stepping_down_rejects(p: list[float], alpha: float) -> None:
    rejected = set()
    for step, place in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[place] * (len(p) - step) > alpha:
            break
        rejected.add(place)
    assert {place for place, one in enumerate(holm(p)) if one <= alpha} == rejected
