"""Williams' test: a published example, the same by hand, and its errors under the null."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from judge.stats.correlation import williams


def test_steigers_example() -> None:
    """Steiger 1980, as R's psych has it: r.test(103, .4, .5, .1) prints t = -0.89 with probability < 0.37."""
    found = williams(0.4, 0.5, 0.1, 103)
    assert found is not None
    assert found == (pytest.approx(-0.89, abs=0.005), pytest.approx(0.37, abs=0.006))


def test_an_example_by_hand() -> None:
    """n = 28, r12 = .6, r13 = .3, r23 = .5: |R| = 1 − .36 − .09 − .25 + .18 = .48, and 2 · 27/25 · .48 = 1.0368;
    ((.6 + .3) / 2)² · (1 − .5)³ = .2025 · .125 = .0253125; t = .3 · √(27 · 1.5 / 1.0621125) = 1.852515.
    """
    found = williams(0.6, 0.3, 0.5, 28)
    assert found is not None
    t = 0.3 * math.sqrt(40.5 / 1.0621125)
    assert t == pytest.approx(1.852515, abs=1e-5)
    assert found == (pytest.approx(t), pytest.approx(2 * stats.t.sf(t, 25)))
    assert williams(0.3, 0.6, 0.5, 28) == (pytest.approx(-t), pytest.approx(found[1]))


def test_it_errs_as_often_as_it_says() -> None:
    random, found = np.random.default_rng(0), []
    for _ in range(1500):
        z = random.normal(size=(3, 40))
        x, y, people = z[0] + z[2], z[1] + z[2], z[2]
        r = np.corrcoef([x, y, people])
        tested = williams(r[0, 2], r[1, 2], r[0, 1], 40)
        assert tested is not None
        found.append(tested[1])
    assert np.mean(np.array(found) < 0.05) == pytest.approx(0.05, abs=0.015)


def test_where_there_is_nothing_to_test() -> None:
    assert williams(0.5, 0.4, 0.3, 3) is None
    assert williams(0.5, 0.5, 1.0, 30) == (0.0, 1.0)
    assert williams(1.0, 0.5, 1.0, 30) is None  # impossible: two equal sides with different correlations
