"""Rank correlations that are linear in the draws, held to ranking anew and to a derivative by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from judge.stats import coefficients as module
from judge.stats.bootstrap import resample_weights
from judge.stats.coefficients import of_pair


def data(items: int, systems: int, seed: int = 0) -> tuple[Any, Any]:
    """Values without ties and ratings in thirds that go with them, a tenth of each missing."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=(items, 1)) / 2 + random.normal(size=(items, systems))
    x = quality + random.normal(size=quality.shape)
    y = np.round(np.clip(3 + quality + random.normal(size=quality.shape), 1, 5) * 3) / 3
    for side in (x, y):
        side[random.random(side.shape) < 0.1] = np.nan
    return x, y


def whole(statistic: Any, items: int) -> float:
    return float(statistic(np.ones((1, items)))[0])


def test_linear_spearman_has_scipys_value() -> None:
    x, y = data(50, 6)
    both = ~np.isnan(x + y)
    for one, other in ((x, y), (y, x)):
        expected = stats.spearmanr(one[both], other[both]).statistic
        assert whole(of_pair(one, other, "item", "spearman", exact=0), 50) == pytest.approx(expected)


def test_its_interval_is_that_of_ranking_anew() -> None:
    x, y = data(120, 6)
    counts = np.concatenate(list(resample_weights(120, 600, 0)))
    anew, linear = (np.quantile(of_pair(x, y, "item", "spearman", exact=n)(counts), (0.025, 0.975)) for n in (1000, 0))
    assert linear == pytest.approx(anew, abs=0.006)


def test_tau_of_many_different_values_is_exact_and_binned_for_the_interval_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(200, 8))
    y = x + random.normal(size=x.shape)
    counts = np.concatenate(list(resample_weights(200, 400, 0)))
    monkeypatch.setattr(module, "_MAX_CELLS", 10_000_000)
    exact = of_pair(x, y, "item", "kendall")
    monkeypatch.setattr(module, "_MAX_CELLS", 1_000)
    binned = of_pair(x, y, "item", "kendall")
    assert whole(binned, 200) == pytest.approx(stats.kendalltau(x.ravel(), y.ravel()).statistic, abs=1e-12)
    assert whole(exact, 200) == pytest.approx(whole(binned, 200), abs=1e-12)
    ends = [np.quantile(statistic(counts), (0.025, 0.975)) for statistic in (exact, binned)]
    assert ends[1] == pytest.approx(ends[0], abs=0.001)
