"""Percentile intervals, and intervals of means and shares. Oracles: numpy and scipy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.stats import norm
from scipy.stats import t as student

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats import bootstrap as module
from judge.stats.bootstrap import Bootstrap, Resampled, item_means, mean_estimate
from judge.table import Table
from tests.factories import has_line

Make = Callable[..., Table]


def test_interval_ends_are_quantiles_without_nan() -> None:
    drawn = np.random.default_rng(0).normal(size=(40, 3, 2))
    drawn[:7, 1, 1] = np.nan
    drawn[:, 2, 0] = np.nan
    low, high = Bootstrap(confidence=0.8).interval(drawn, 1_000_000)
    assert low[0, 0] == pytest.approx(np.quantile(drawn[:, 0, 0], 0.1), abs=1e-5)
    assert high[1, 1] == pytest.approx(np.quantile(drawn[7:, 1, 1], 0.9), abs=1e-5)
    assert np.isnan([low[2, 0], high[2, 0]]).all()


def test_every_statistic_has_the_same_resamples_cached_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[np.ndarray] = []

    def count_items(counts: np.ndarray) -> np.ndarray:
        calls.append(counts)
        return counts.sum(axis=1)

    bootstrap = Bootstrap(n_resamples=30, seed=4)
    for max_cached in (10_000, 0):
        monkeypatch.setattr(module, "_MAX_CACHED", max_cached)
        value, resampled = bootstrap.observed_and_resampled(count_items, 9)
        assert value == 9
        assert (resampled == 9).all()
    assert (calls[0] == calls[2]).all()


def test_few_items_widen_the_interval_and_fewer_than_five_have_no_interval() -> None:
    drawn = np.random.default_rng(0).normal(size=2_000)
    tail = norm.cdf(-math.sqrt(6 / 5) * student.ppf(0.9, 5))
    ends = Bootstrap(confidence=0.8).interval(drawn, 6)
    assert ends == pytest.approx(np.quantile(drawn, [tail, 1 - tail]))
    for items, reason in (
        (1, "1 item: too few for an interval"),
        (4, "4 items: too few for an interval"),
    ):
        estimate = Bootstrap().estimate("mean", Resampled(2.0, drawn, items), 15, "how")
        assert estimate is not None
        assert (estimate.value, estimate.low, estimate.method) == (2.0, None, f"how; {reason}")
    assert Bootstrap().estimate("mean", Resampled(np.nan, np.array([2.0]), 4), 5, "how") is None


def test_shares_of_two_labels_have_a_wilson_interval_with_students_t() -> None:
    estimate = mean_estimate(np.array([1.0] * 7 + [0.0] * 3), 0.0, 1.0)
    t = scipy_stats.t.ppf(0.975, 9)
    tries = 9  # n − 1, as the variance's divisor is; scipy's level takes the n tries into account
    level = 2 * scipy_stats.norm.cdf(t * math.sqrt(10 / tries)) - 1
    by_scipy = scipy_stats.binomtest(7, 10).proportion_ci(confidence_level=level, method="wilson")
    assert (estimate.value, estimate.n) == (pytest.approx(0.7), 10)
    assert (estimate.low, estimate.high) == (
        pytest.approx(by_scipy.low),
        pytest.approx(by_scipy.high),
    )
    assert has_line(estimate.method, "95% Wilson", "Student's t", "items")


def test_interval_ends_on_a_scale_are_t_standard_errors_from_the_mean() -> None:
    values = np.array([4.0, 5.0, 4.5, 5.0, 3.0, 5.0, 5.0, 2.5])
    estimate = mean_estimate(values, 1.0, 5.0)
    variance = values.var(ddof=1) / 8 / ((estimate.value - 1) * (5 - estimate.value))
    for end in (estimate.low, estimate.high):
        assert end is not None
        error = math.sqrt(variance * (end - 1) * (5 - end))
        assert abs(end - estimate.value) == pytest.approx(scipy_stats.t.ppf(0.975, 7) * error)
    assert mean_estimate(values * 100, 100.0, 500.0).low == pytest.approx(100 * (estimate.low or 0))


def test_an_interval_without_a_scale_is_students_t_corrected_for_skewness() -> None:
    even = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    by_scipy = scipy_stats.ttest_1samp(even, 0).confidence_interval(0.95)
    estimate = mean_estimate(even)
    assert (estimate.low, estimate.high) == (
        pytest.approx(by_scipy.low),
        pytest.approx(by_scipy.high),
    )
    skewed = mean_estimate(np.array([1.0, 1.0, 2.0, 2.0, 3.0, 40.0]))
    assert skewed.low is not None
    assert skewed.high is not None
    assert skewed.high - skewed.value > 2 * (skewed.value - skewed.low)
    assert has_line(skewed.method, "95% t interval", "skewness", "items")


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_fewer_than_five_items_have_no_interval(n: int, metric_table: Make) -> None:
    rows: list[float | None] = [None, 2.5, 4.0, 1.0, 3.5]
    estimate = item_means(metric_table({"m": {"s": rows[: n + 1]}}))["s", "m"]
    assert (estimate.low, estimate.high, estimate.n) == (None, None, n)
    assert has_line(estimate.method, f"{n} item", "too few")


@pytest.mark.parametrize(
    ("value", "low", "high"), [(1.0, 1.0, 1.718), (3.0, 2.152, 3.848), (5.0, 4.282, 5.0)]
)
def test_the_mean_of_equal_scores_has_an_interval_on_a_scale(
    value: float, low: float, high: float
) -> None:
    # t² / (20 + t²) of the scale is 0.180
    estimate = mean_estimate(np.array([value] * 20), 1.0, 5.0)
    assert (estimate.value, estimate.low, estimate.high) == (
        value,
        pytest.approx(low, abs=1e-3),
        pytest.approx(high, abs=1e-3),
    )


def test_the_mean_of_equal_values_without_a_scale_has_no_interval() -> None:
    estimate = mean_estimate(np.array([0.1] * 30))
    assert (estimate.value, estimate.low) == (0.1, None)
    assert has_line(estimate.method, "all values equal", "no interval")


SKEWED = (0.02, 0.05, 0.1, 0.28, 0.55)
"""Shares of the scores 1 to 5. Most scores are high, as usual for judges."""


@pytest.mark.parametrize("n", [5, 10, 20])
def test_intervals_of_skewed_scores_cover_at_their_level_for_few_items(n: int) -> None:
    random = np.random.default_rng(n)
    values = random.choice(np.arange(1.0, 6.0), p=SKEWED, size=(1_500, n))
    truth = float(np.arange(1, 6) @ np.array(SKEWED))
    estimates = [mean_estimate(row, 1.0, 5.0) for row in values]
    assert 0.935 < np.mean([(e.low or 0) <= truth <= (e.high or 0) for e in estimates]) < 0.995


def test_a_column_without_scores_has_no_estimate(metric_table: Make) -> None:
    estimates = item_means(
        metric_table({"m": {"s": [1.0, 2.0], "t": [None, None]}, "k": {"s": [None, None]}})
    )
    assert list(estimates) == [("s", "m")]
    assert item_means(Table((), (), ())) == {}


def test_a_value_of_all_texts_is_an_estimate() -> None:
    samples = tuple(Sample(i, "s", "o") for i in "12")
    provenance = Provenance("metric", low=0.3, high=0.6, n=2, note="95% percentile bootstrap")
    scores = (
        Score("1", "s", "m", 1.0, Provenance("metric")),
        Score("", "s", "all", 0.5, provenance),
    )
    estimates = item_means(
        Table(
            samples,
            (Column("all", "metric", Signature("all")), Column("m", "metric", Signature("m"))),
            scores,
        )
    )
    assert estimates["s", "all"] == Estimate("whole", 0.5, 0.3, 0.6, 2, "95% percentile bootstrap")
    assert estimates["s", "m"].n == 1
