"""Calibration. Oracles: bins, error and bias by hand, and intervals by resampling in the test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from judge.core.records import Column
from judge.core.signature import Signature
from judge.stats.bootstrap import Bootstrap
from judge.stats.calibration_curve import calibration, edges, levels
from tests.factories import has_line

NAN = np.nan
FIVE = Column("c", "criterion", Signature("c"), 1.0, 5.0, ("1", "2", "3", "4", "5"))


def column(low: float | None, high: float | None, *labels: str) -> Column:
    return Column("c", "criterion", Signature("c"), low, high, labels)


@pytest.mark.parametrize(
    ("scale", "points", "ends"),
    [
        (FIVE, (1, 2, 3, 4, 5), (1, 1.5, 2.5, 3.5, 4.5, 5)),
        (column(0, 1, "fail", "pass"), (0, 1), (0, 0.5, 1)),
        (column(0, 10, "10", "0"), (0, 10), (0, 5, 10)),
        (column(1, 3, "poor", "fair", "good"), (), tuple(np.linspace(1, 3, 11))),
        (column(0, 100, *map(str, range(101))), tuple(range(101)), tuple(range(0, 101, 10))),
        (column(None, None), (), ()),
        (column(2, 2, "2"), (2,), ()),
    ],
)
def test_bins_follow_the_scale(scale: Column, points: Any, ends: Any) -> None:
    assert levels(scale) == pytest.approx(points)
    assert edges(scale) == pytest.approx(ends)


def test_bins_error_and_bias_by_hand() -> None:
    """Bin 2 has the values 2 and 2.4 and the ratings 1 and 2; bin 4 has the value 4 and the rating 5.

    The error is (2 · |2.2 − 1.5| + 1 · |4 − 5|) / 3 / 4 = 2.4 / 12, and the bias (.7 · 2 − 1) / 3. One text has no
    rating.
    """
    values, ratings = np.array([[2, 2.4], [4, 5.0]]), np.array([[1, 2.0], [5, NAN]])
    result = calibration(values, ratings, edges(FIVE), Bootstrap(50))
    assert result is not None
    second, fourth = result.bins
    assert (second.low, second.high, second.value) == (1.5, 2.5, pytest.approx(2.2))
    assert (second.people.value, second.people.n) == (1.5, 2)
    assert (fourth.low, fourth.high, fourth.value) == (3.5, 4.5, 4.0)
    assert (fourth.people.value, fourth.people.n) == (5.0, 1)
    assert (second.people.low, fourth.people.low) == (None, None)  # each has one item
    assert (result.error.value, result.error.n) == (pytest.approx(0.2), 3)
    assert result.bias.value == pytest.approx(0.4 / 3)
    assert (result.low, result.high) == (1.0, 5.0)
    assert has_line(result.error.method, "expected calibration error", "0–1", "2 items", "too few")


def test_intervals_resample_whole_items() -> None:
    random = np.random.default_rng(0)
    ratings = random.integers(1, 6, size=(25, 4)).astype(float)
    values = np.clip(ratings * 0.5 + 2 + random.normal(size=ratings.shape) / 3, 1, 5)
    result = calibration(values, ratings, edges(FIVE), Bootstrap(60, 3))
    assert result is not None
    drawn = np.random.default_rng(3).integers(25, size=(60, 25))
    resamples = [
        calibration(values[rows], ratings[rows], edges(FIVE), Bootstrap(2)) for rows in drawn
    ]
    for name in ("error", "bias"):
        resampled = np.array([getattr(resample, name).value for resample in resamples])
        ends = Bootstrap().interval(resampled, 25)
        assert (getattr(result, name).low, getattr(result, name).high) == pytest.approx(tuple(ends))
    middle = result.bins[2]
    items_in_middle = int(((values >= middle.low) & (values < middle.high)).any(axis=1).sum())
    resampled_means = []
    for resample in resamples:
        assert resample is not None
        same_bin = [each for each in resample.bins if each.low == middle.low]
        resampled_means += [each.people.value for each in same_bin]
    assert [middle.people.low, middle.people.high] == pytest.approx(
        Bootstrap().interval(np.array(resampled_means), items_in_middle).tolist()
    )


def test_a_judge_equal_to_the_ratings_has_no_calibration_error() -> None:
    ratings = np.random.default_rng(0).integers(1, 6, size=(20, 3)).astype(float)
    result = calibration(ratings, ratings, edges(FIVE))
    assert result is not None
    assert (result.error.value, result.bias.value) == (0.0, 0.0)
    # 20 items without an error do not show that there is none.
    assert (result.error.low, result.error.high) == (None, None)
    assert [each.value for each in result.bins] == [1, 2, 3, 4, 5]


def test_calibration_is_none_without_a_rated_and_judged_text() -> None:
    assert calibration(np.array([[1.0, NAN]]), np.array([[NAN, 2.0]]), edges(FIVE)) is None
