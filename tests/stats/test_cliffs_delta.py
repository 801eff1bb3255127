from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.stats.paired_differences import cliffs_delta

values = st.lists(st.integers(1, 5), min_size=1, max_size=15)


@given(values, values)
def test_it_is_the_count_over_all_pairs(one: list[int], other: list[int]) -> None:
    counted = sum((x > y) - (x < y) for x in one for y in other) / (len(one) * len(other))
    assert cliffs_delta(np.array(one, float), np.array(other, float)) == pytest.approx(counted)


def test_the_ends_and_the_middle() -> None:
    low, high = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    assert (cliffs_delta(high, low), cliffs_delta(low, high), cliffs_delta(low, low)) == (1.0, -1.0, 0.0)
