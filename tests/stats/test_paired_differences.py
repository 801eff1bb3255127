from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judge.stats import paired_differences
from judge.stats.bootstrap import t_quantile
from judge.stats.paired_differences import cliffs_delta, holm, mean_differences, sign_flip
from tests.factories import exact_sign_flip_p, has_line


def _differences(n: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    item = random.normal(size=n)
    better = np.clip(np.round(3 + item + random.normal(0.3, 1, n)), 1, 5)
    worse = np.clip(np.round(3 + item + random.normal(0.0, 1, n)), 1, 5)
    return better - worse


@pytest.mark.parametrize(("n", "test"), [(5, "exact"), (60, "exact")])
def test_intervals_equal_scipys_t_intervals(n: int, test: str) -> None:
    values = _differences(n, 4)
    (ours,) = mean_differences(values[None, :])
    expected = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert ours is not None
    assert (ours.name, ours.value, ours.n) == ("difference", pytest.approx(values.mean()), n)
    assert (ours.low, ours.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert has_line(ours.described, "95% t interval", "items", "sign-flip permutation test", test)


def test_a_small_p_is_drawn_with_enough_flips_for_its_digits() -> None:
    """Regression: .004 after Holm's correction was .0023 with ten times the flips."""
    random = np.random.default_rng(2)
    rows = random.normal(1.0, 1.0, (6, 16))
    flips = sign_flip(rows)
    small = 0
    for row, p_value, n_flips in zip(rows, flips.p, flips.n_flips, strict=True):
        exact = exact_sign_flip_p(row)
        if exact < 0.009:
            small += 1
            assert n_flips == 100_000
            # Four standard errors of that many flips.
            assert abs(p_value - exact) < 4 * math.sqrt(exact / n_flips) + 2 / n_flips
    assert small >= 3
    (large,) = sign_flip(random.normal(0.0, 1.0, (1, 16))).n_flips
    assert large == 10_000


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 19, 99, 1_000, 25_599])
@pytest.mark.parametrize("tail", [0.0004, 0.025, 0.2])
def test_students_t_has_the_tail_of_its_finite_series(tail: float, freedom: int) -> None:
    assert _upper_tail(t_quantile(tail, freedom), freedom) == pytest.approx(tail, rel=1e-8)


@pytest.mark.parametrize(
    ("tail", "freedom", "published"),
    [
        (0.025, 1, 12.706),
        (0.025, 10, 2.228),
        (0.05, 5, 2.015),
        (0.005, 30, 2.750),
        (0.0005, 3, 12.924),
    ],
)
def test_students_t_matches_printed_tables(tail: float, freedom: int, published: float) -> None:
    assert t_quantile(tail, freedom) == pytest.approx(published, abs=5e-4)


def _upper_tail(t: float, freedom: int) -> float:
    """Return the probability beyond t by Abramowitz and Stegun (1964, 26.7.3 and 26.7.4)."""
    odd = freedom % 2
    angle = math.atan(t / math.sqrt(freedom))
    j = np.arange(1, (freedom - odd) // 2)
    ratios = (2 * j - 1 + odd) / (2 * j + odd)
    inside = math.sin(angle) * (1 + float(np.cumprod(ratios * math.cos(angle) ** 2).sum()))
    if odd:
        more = inside * math.cos(angle) if freedom > 1 else 0.0
        inside = 2 / math.pi * (angle + more)
    return (1 - inside) / 2


def test_missing_items_do_not_count() -> None:
    values = _differences(40, 7)
    every_second = np.full((1, 80), math.nan)
    every_second[0, ::2] = values
    (with_missing,) = mean_differences(every_second)
    (complete,) = mean_differences(values[None, :])
    assert with_missing is not None
    assert complete is not None
    assert (with_missing.value, with_missing.n) == (complete.value, complete.n)
    assert with_missing.p == pytest.approx(complete.p, abs=0.02)
    assert with_missing.low == pytest.approx(complete.low)


def test_few_items_and_equal_differences_have_no_interval() -> None:
    nan = math.nan
    single, missing, four, equal = mean_differences(
        np.array([[0.5, *[nan] * 5], [nan] * 6, [0.1, 0.2, 0.3, 0.4, nan, nan], [0.1] * 6])
    )
    assert single is not None
    assert (single.value, single.low, single.high, single.n) == (0.5, None, None, 1)
    assert single.p is None
    assert has_line(single.method, "1 item", "too few")
    assert missing is None
    assert four is not None
    assert (four.low, four.high, four.n, four.p) == (None, None, 4, 0.125)
    assert has_line(four.described, "4 items", "too few", "sign-flip permutation test", "exact")
    assert equal is not None
    assert (equal.value, equal.low, equal.high, equal.p) == (0.1, None, None, 2 / 2**6)
    assert has_line(equal.described, "all differences equal", "no interval", "sign-flip", "exact")


def test_the_p_value_of_flips_depends_only_on_the_seed() -> None:
    values = np.random.default_rng(2).normal(size=(1, 30))
    assert mean_differences(values, seed=1) == mean_differences(values, seed=1)
    assert mean_differences(values, seed=1) != mean_differences(values, seed=2)


def test_the_test_says_how_many_flips_it_drew() -> None:
    (drawn,) = mean_differences(np.random.default_rng(2).normal(size=(1, 60)))
    assert drawn is not None
    assert has_line(drawn.described, "sign-flip permutation test", "10000 flips, seed 0")


@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_intervals_of_differences_cover_at_their_level_from_five_items(n: int) -> None:
    random = np.random.default_rng(n)
    item = random.normal(size=(1_000, n))
    # the mean of each score is 3 by symmetry, so that the difference is 0
    first, second = (
        np.clip(np.round(3 + item + random.normal(size=item.shape)), 1, 5) for _ in range(2)
    )
    estimates = mean_differences(first - second, n_resamples=100)
    covers = [
        e.low <= 0 <= e.high
        for e in estimates
        if e is not None and e.low is not None and e.high is not None
    ]
    if n < 5:
        assert covers == []
    else:
        assert 0.935 <= float(np.mean(covers)) <= 0.98


def _p_by_scipy(row: list[float]) -> float:
    """Return the exact p of scipy's paired permutation test."""
    zeros = np.zeros(len(row))
    result = scipy_stats.permutation_test(
        (np.array(row), zeros),
        lambda x, y: np.mean(x - y),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    return float(result.pvalue)


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
def test_p_of_few_items_is_exact_and_equals_scipy(row: list[float]) -> None:
    p, exact, _ = sign_flip(np.array([row]))
    assert exact.tolist() == [True]
    assert p[0] == pytest.approx(_p_by_scipy(row), abs=1e-12)


@pytest.mark.slow
def test_p_of_many_items_equals_the_exact_p_within_sampling_error() -> None:
    row = np.random.default_rng(0).normal(0.7, 2.0, 16)
    p, exact, _ = sign_flip(row[None, :], n_resamples=20_000, seed=0)
    expected = _p_by_scipy(list(row))
    error = 4 * math.sqrt(expected * (1 - expected) / 20_000) + 1e-4
    assert exact.tolist() == [False]
    assert p[0] == pytest.approx(expected, abs=error)


def test_p_is_never_zero() -> None:
    flips = sign_flip(np.linspace(1.0, 2.0, 100)[None] ** 2, n_resamples=999)
    assert flips.p[0] == 1 / (flips.n_flips[0] + 1)


def test_zero_and_missing_differences_do_not_count() -> None:
    row = [2.0, 1.0, -1.0, 1.5]
    with_zeros = row + [0.0] * 30 + [math.nan] * 30
    p, exact, _ = sign_flip(np.array([row + [math.nan] * 60, with_zeros]))
    assert exact.tolist() == [True, True]
    # The sum is 3.5. Without a minus it is 5.5, with a minus at either 1 it is 3.5; each has a mirror image.
    assert p[0] == p[1] == 6 / 16


def test_equal_scores_have_p_1_and_one_item_has_no_test() -> None:
    p, exact, _ = sign_flip(np.array([[0.0, 0.0, 0.0], [5.0, math.nan, math.nan]]))
    assert p[0] == 1.0
    assert math.isnan(p[1])
    assert exact.all()


def test_p_does_not_depend_on_the_scale_as_all_rows_have_the_same_flips() -> None:
    row = np.random.default_rng(3).normal(0.2, 1, 50)
    p, *_ = sign_flip(np.stack([row, 1e6 * row, 1e-6 * row, -row]), n_resamples=500)
    assert len(set(p.tolist())) == 1


@pytest.mark.parametrize("rows", [3, 40])
def test_chunks_do_not_change_p(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    values = np.concatenate([random.normal(0.5, 1.0, (rows, 30)), np.zeros((2, 30))])
    values[0, 8:] = 0
    whole = sign_flip(values, n_resamples=700, seed=2)
    monkeypatch.setattr(paired_differences, "_MAX_NUMBERS", 100)
    parts = sign_flip(values, n_resamples=700, seed=2)
    np.testing.assert_array_equal(whole[0], parts[0])
    assert 0 < int(whole[1].sum()) < len(values)


def test_the_sign_flip_test_has_its_nominal_false_positive_rate() -> None:
    random = np.random.default_rng(8)
    rows = random.normal(size=(2_000, 30))
    p, *_ = sign_flip(rows, n_resamples=1_000)
    assert float((p < 0.05).mean()) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 2_000))
    assert float((p < 0.5).mean()) == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 2_000))


def test_holm_by_hand() -> None:
    # sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, and no smaller than the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.001, 0.999))
def test_holm_equals_the_step_down_procedure(p: list[float], alpha: float) -> None:
    rejected = set()
    for step, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[index] * (len(p) - step) > alpha:
            break
        rejected.add(index)
    assert {index for index, adjusted in enumerate(holm(p)) if adjusted <= alpha} == rejected


values = st.lists(st.integers(1, 5), min_size=1, max_size=15)


@given(values, values)
def test_cliffs_delta_is_the_count_over_all_pairs(first: list[int], second: list[int]) -> None:
    counted = sum((x > y) - (x < y) for x in first for y in second) / (len(first) * len(second))
    delta = cliffs_delta(np.array(first, float), np.array(second, float))
    assert delta == pytest.approx(counted)


def test_cliffs_delta_is_from_minus_1_to_1() -> None:
    low, high = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    assert cliffs_delta(high, low) == 1.0
    assert cliffs_delta(low, high) == -1.0
    assert cliffs_delta(low, low) == 0.0
