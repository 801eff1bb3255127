"""The percentile interval: its ends are numpy's, of one number and of many, with gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from judge.stats import bootstrap as module
from judge.stats.bootstrap import Bootstrap, Resampled


def test_ends_are_the_quantiles_of_what_is_known() -> None:
    drawn = np.random.default_rng(0).normal(size=(40, 3, 2))
    drawn[:7, 1, 1] = np.nan
    drawn[:, 2, 0] = np.nan
    low, high = Bootstrap(confidence=0.8).interval(drawn, 1_000_000)
    assert low[0, 0] == pytest.approx(np.quantile(drawn[:, 0, 0], 0.1), abs=1e-5)
    assert high[1, 1] == pytest.approx(np.quantile(drawn[7:, 1, 1], 0.9), abs=1e-5)
    assert np.isnan([low[2, 0], high[2, 0]]).all()


def test_the_same_draws_serve_every_statistic_held_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    made = Bootstrap(n_resamples=30, seed=4)
    for held in (10_000, 0):
        monkeypatch.setattr(module, "_MAX_CACHED", held)
        value, drawn = made.observed_and_resampled(lambda counts: (seen.append(counts), counts.sum(axis=1))[1], 9)
        assert value == 9
        assert (drawn == 9).all()
    assert (seen[0] == seen[2]).all()


def test_few_items_widen_the_interval_and_fewer_than_five_have_none() -> None:
    drawn = np.random.default_rng(0).normal(size=2_000)
    tail = norm.cdf(-math.sqrt(6 / 5) * student.ppf(0.9, 5))
    ends = Bootstrap(confidence=0.8).interval(drawn, 6)
    assert ends == pytest.approx(np.quantile(drawn, [tail, 1 - tail]))
    for items, reason in ((1, "1 item: too few for an interval"), (4, "4 items: too few for an interval")):
        estimate = Bootstrap().estimate("mean", Resampled(2.0, drawn, items), 15, "how")
        assert estimate is not None
        assert (estimate.value, estimate.low, estimate.method) == (2.0, None, f"how; {reason}")
    assert Bootstrap().estimate("mean", Resampled(np.nan, np.array([2.0]), 4), 5, "how") is None
