from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from judge.stats import paired_differences
from judge.stats.bootstrap import expanded_tail, resampled_means, t_quantile
from judge.stats.paired_differences import mean_differences


def _scores(n: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    item = random.normal(size=n)
    one, other = (np.clip(np.round(3 + item + random.normal(shift, 1, n)), 1, 5) for shift in (0.3, 0.0))
    return one - other


@pytest.mark.parametrize(("n", "test"), [(20, "exact"), (60, "10000 flips, seed 0")])
def test_intervals_are_scipys_paired_bootstrap_at_the_expanded_level(n: int, test: str) -> None:
    values = _scores(n, 4)
    (ours,) = mean_differences(values[None, :], n_resamples=20_000)
    level = 1 - 2 * scipy_stats.norm.cdf(-math.sqrt(n / (n - 1)) * scipy_stats.t.ppf(0.975, n - 1))
    theirs = scipy_stats.bootstrap(
        (values, np.zeros(n)), lambda x, y, axis=-1: np.mean(x - y, axis=axis), paired=True, method="percentile",
        confidence_level=level, n_resamples=20_000, rng=np.random.default_rng(1),
    )  # fmt: skip
    assert ours is not None
    assert (ours.name, ours.value, ours.n) == ("difference", pytest.approx(values.mean()), n)
    error = 0.15 * theirs.standard_error
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=error)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=error)
    assert ours.method == (
        f"95% expanded percentile bootstrap over items, 20000 resamples, seed 0; p: sign-flip permutation test, {test}"
    )


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 19, 99, 1_000, 25_599])
@pytest.mark.parametrize("tail", [0.0004, 0.025, 0.2])
def test_students_t_is_scipys(tail: float, freedom: int) -> None:
    assert t_quantile(tail, freedom) == pytest.approx(scipy_stats.t.isf(tail, freedom), rel=1e-10)


def test_the_expanded_tail() -> None:
    assert expanded_tail(0.025, 20) == pytest.approx(scipy_stats.norm.cdf(-math.sqrt(20 / 19) * 2.0930), abs=1e-6)
    assert expanded_tail(0.025, 1_000_000) == pytest.approx(0.025, abs=1e-6)
    assert expanded_tail(0.025, 2) == pytest.approx(0, abs=1e-12)


def test_resamples_are_means_over_the_drawn_items_that_are_there() -> None:
    values = np.array([[1.0, 2.0, math.nan, 5.0], [math.nan, math.nan, 4.0, 1.0], [3.0, 1.0, 2.0, 2.0]])
    drawn = np.random.default_rng(3).integers(4, size=(200, 4))
    found = resampled_means(values, 200, 3, np.float32)
    for row in range(3):
        for place, items in enumerate(drawn):
            picked = [v for v in values[row, items] if not math.isnan(v)]
            assert found[place, row] == pytest.approx(np.mean(picked) if picked else math.nan, rel=1e-6, nan_ok=True)


def test_missing_items_do_not_count() -> None:
    values = _scores(40, 7)
    held = np.full((1, 80), math.nan)
    held[0, ::2] = values
    (some,), (alone,) = mean_differences(held), mean_differences(values[None, :])
    assert some is not None
    assert alone is not None
    assert (some.value, some.n) == (alone.value, alone.n)
    assert some.p == pytest.approx(alone.p, abs=0.02)
    assert some.low == pytest.approx(alone.low, abs=0.05)


def test_one_item_none_and_equal_differences() -> None:
    one, none, equal = mean_differences(
        np.array([[0.5, math.nan, math.nan], [math.nan] * 3, [0.1, 0.1, 0.1]]), n_resamples=50
    )
    assert one is not None
    assert (one.value, one.low, one.high, one.n, one.p) == (0.5, None, None, 1, None)
    assert one.method == "one item: too few for an interval and a test"
    assert none is None
    assert equal is not None
    assert (equal.value, equal.low, equal.high, equal.p) == (0.1, 0.1, 0.1, 0.25)
    assert equal.method == "all differences equal; p: sign-flip permutation test, exact"


def test_an_end_at_zero_is_zero_whatever_single_precision_makes_of_it() -> None:
    # many resamples have a mean of 0 exactly, and thirds are no numbers of single precision
    values = np.array([[1 / 3, -1 / 3, 2 / 3, -2 / 3, 1 / 3, -1 / 3, 1 / 3, 2 / 3, 1 / 3, 0, 0, 1 / 3]])
    for seed in range(20):
        (found,) = mean_differences(values, confidence=0.8, n_resamples=500, seed=seed)
        assert found is not None
        assert found.low is not None
        assert found.low == 0 or abs(found.low) > 1e-4


def test_blocks_do_not_change_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.stack([_scores(25, seed) for seed in range(7)])
    whole = mean_differences(values, n_resamples=300)
    monkeypatch.setattr(paired_differences, "_MAX_SINGLES", 600)
    assert mean_differences(values, n_resamples=300) == whole


def test_the_seed_decides() -> None:
    values = _scores(30, 2)[None, :]
    assert mean_differences(values, seed=1) == mean_differences(values, seed=1)
    assert mean_differences(values, seed=1) != mean_differences(values, seed=2)


@pytest.mark.parametrize("n", [20, 50])
def test_intervals_hold_the_truth_about_as_often_as_they_say(n: int) -> None:
    random = np.random.default_rng(n)
    item = random.normal(size=(600, n))
    # the mean of each score is 3 by symmetry, so that the difference is 0
    one, other = (np.clip(np.round(3 + item + random.normal(size=(600, n))), 1, 5) for _ in range(2))
    found = mean_differences(one - other, n_resamples=1_000, n_flips=200)
    held = [e.low <= 0 <= e.high for e in found if e is not None and e.low is not None and e.high is not None]
    assert 0.92 <= float(np.mean(held)) <= 0.98
