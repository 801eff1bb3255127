from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import rankdata

from judge.stats import ranks as module
from judge.stats.ranks import interval, ranks


def test_ranks_are_scipys_best_ranks_of_what_is_not_equal() -> None:
    means = np.random.default_rng(0).integers(0, 6, size=(200, 8)).astype(np.float32) / 4
    np.testing.assert_array_equal(ranks(means), rankdata(-means, method="min", axis=1))


def test_what_single_precision_tells_apart_is_a_tie() -> None:
    assert ranks(np.array([[0.3, np.nextafter(np.float32(0.3), np.float32(1)), 0.1]], np.float32)).tolist() == [
        [1, 1, 3]
    ]
    assert ranks(np.array([[2.0, 2.0]], np.float32)).tolist() == [[1, 1]]


def test_a_system_without_a_mean_comes_last() -> None:
    found = ranks(np.array([[math.nan, 1.0, 2.0], [math.nan, math.nan, math.nan]], np.float32))
    assert found.tolist() == [[3, 2, 1], [1, 1, 1]]


@pytest.mark.parametrize("held", [1_000_000, 7])
def test_the_interval_is_that_of_the_ranks_counted_one_by_one(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELD", held)
    means = np.random.default_rng(1).normal([0.0, 0.5, 0.6], 0.3, size=(1_000, 3)).astype(np.float32)
    low, high = interval(means)
    for system in range(3):
        placed = sorted(1 + sum(row[other] > row[system] for other in range(3)) for row in means)
        assert (low[system], high[system]) == (placed[24], placed[974])  # the 25th and the 975th of 1,000
