"""The share of parts of items. Oracles: the mean of one part per item, and simulated items."""

from __future__ import annotations

import numpy as np
import pytest

from judge.stats.bootstrap import mean_estimate
from judge.stats.pooled_share import pooled_share


def test_the_share_of_one_part_per_item_is_the_mean() -> None:
    hits = np.array([1.0, 0, 0, 1, 0, 0, 0, 1])
    share = pooled_share(hits, np.ones(8))
    mean = mean_estimate(hits, 0.0, 1.0)
    assert share is not None
    expected = (mean.value, mean.low, mean.high, mean.n)
    assert (share.value, share.low, share.high, share.n) == pytest.approx(expected)


def test_every_part_counts_the_same() -> None:
    share = pooled_share(np.array([3.0, 0, 0]), np.array([3.0, 1, 2]))
    assert share is not None
    assert share.value == pytest.approx(3 / 6)
    assert share.low is None


def test_items_without_parts_do_not_count() -> None:
    assert pooled_share(np.zeros(2), np.zeros(2)) is None
    hits, parts = np.array([1.0, 0, 2, 0, 1, 0]), np.array([2.0, 0, 3, 1, 4, 2])
    with_parts = parts > 0
    assert pooled_share(hits, parts) == pooled_share(hits[with_parts], parts[with_parts])


def test_a_share_of_0_has_an_interval() -> None:
    share = pooled_share(np.zeros(10), np.full(10, 3.0))
    assert share is not None
    assert share.low == 0
    assert share.high is not None
    assert 0.1 < share.high < 0.5


def test_the_interval_holds_the_share_of_items_that_differ() -> None:
    random = np.random.default_rng(0)
    true_share = 0.2
    n_covering = 0
    for _ in range(500):
        parts = random.poisson(4, 20) + 1
        of_items = random.beta(3 * true_share, 3 * (1 - true_share), 20)
        share = pooled_share(random.binomial(parts, of_items).astype(float), parts.astype(float))
        assert share is not None
        assert share.low is not None
        assert share.high is not None
        n_covering += share.low <= true_share <= share.high
    assert 0.91 < n_covering / 500 < 0.99
