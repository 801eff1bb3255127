"""Spans, without a model."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from judge.metrics.qags.models import best_spans

LOGITS = st.floats(-50, 50)


@given(st.data())
def test_the_best_span_is_that_of_all_spans(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 12)))
    starts, ends = (data.draw(arrays.arrays(np.float64, shape, elements=LOGITS)) for _ in range(2))
    allowed = data.draw(arrays.arrays(np.bool_, shape))
    longest = data.draw(st.integers(1, 14))
    scores, firsts, lasts = best_spans(starts, ends, allowed, longest)
    for n, score in enumerate(scores):
        spans = {
            (first, last): starts[n, first] + ends[n, last]
            for first in range(shape[1])
            for last in range(first, min(first + longest, shape[1]))
            if allowed[n, first] and allowed[n, last]
        }
        assert score == max(spans.values(), default=-math.inf)
        if spans:
            assert spans[firsts[n], lasts[n]] == score


def test_an_end_before_its_start_is_no_span() -> None:
    starts, ends = np.array([[0.0, 1.0, 2.0, 9.0]]), np.array([[9.0, 3.0, 1.0, 0.0]])
    scores, firsts, lasts = best_spans(starts, ends, np.ones((1, 4), dtype=bool), 30)
    assert (scores[0], firsts[0], lasts[0]) == (9.0, 0, 0)
    scores, firsts, lasts = best_spans(starts, ends, np.array([[False, True, True, True]]), 30)
    assert (scores[0], firsts[0], lasts[0]) == (9.0, 3, 3)


def test_of_equal_spans_the_shortest_is_taken_and_then_the_first() -> None:
    _, firsts, lasts = best_spans(np.zeros((1, 5)), np.zeros((1, 5)), np.array([[False, True, True, True, True]]), 30)
    assert (firsts[0], lasts[0]) == (1, 1)


def test_numbers_that_are_none_are_no_score() -> None:
    nan = np.full((1, 3), np.nan)
    assert best_spans(nan, nan, np.ones((1, 3), dtype=bool), 30)[0][0] == -math.inf
