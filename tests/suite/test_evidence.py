"""One text's score as evidence. Oracles: scipy's tests over the draws, and sums by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judge.core.records import Column, Provenance, Score
from judge.core.signature import Signature
from judge.suite.evidence import evidence_of, flip_probability, label_margin, shares
from judge.suite.mean_tests import sum_minus_limit
from judge.suite.thresholds import Range

FIVE = {str(n): float(n) for n in range(1, 6)}
PASS = Column(
    "ok",
    "criterion",
    Signature("ok@1"),
    0.0,
    1.0,
    ("fail", "pass"),
    criterion="ok",
    values=(0.0, 1.0),
)
some_draws = st.dictionaries(st.sampled_from(list(FIVE)), st.integers(1, 12), min_size=2)


def within(**ends: float) -> Callable[[float], bool]:
    return Range(**ends).__contains__


def listed(draws: dict[str, int]) -> list[float]:
    return list(chain.from_iterable(repeat(FIVE[label], n) for label, n in draws.items()))


@given(some_draws, st.floats(0.5, 5.5))
def test_draws_give_the_interval_and_p_of_a_t_test(
    make: Any, draws: dict[str, int], limit: float
) -> None:
    estimate = sum_minus_limit(
        [(1.0, evidence_of(make.drawn(draws, "i", "s"), FIVE))], limit
    ).estimate
    oracle = stats.ttest_1samp(listed(draws), limit)
    ends = oracle.confidence_interval(0.95)
    assert estimate.p == pytest.approx(oracle.pvalue, abs=1e-12)
    assert (estimate.low, estimate.high) == pytest.approx((ends.low - limit, ends.high - limit))
    assert estimate.n == sum(draws.values())


@given(some_draws, some_draws)
def test_two_texts_give_welchs_test(make: Any, one: dict[str, int], other: dict[str, int]) -> None:
    sides = [(1.0, make.drawn(one, "i", "a")), (-1.0, make.drawn(other, "i", "b"))]
    estimate = sum_minus_limit([(c, evidence_of(score, FIVE)) for c, score in sides]).estimate
    oracle = stats.ttest_ind(listed(one), listed(other), equal_var=False)
    assert estimate.p == pytest.approx(oracle.pvalue, abs=1e-12)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(oracle.confidence_interval(0.95)))


def test_the_interval_has_its_nominal_coverage_of_the_judges_mean(make: Any) -> None:
    random = np.random.default_rng(0)
    n_covered = 0
    for drawn in random.choice([2, 3, 4], p=[0.2, 0.3, 0.5], size=(500, 20)):
        labels, n = np.unique(drawn, return_counts=True)
        score = make.drawn(
            {str(label): int(k) for label, k in zip(labels, n, strict=True)}, "i", "s"
        )
        e = sum_minus_limit([(1.0, evidence_of(score, FIVE))]).estimate
        n_covered += e.low <= 3.3 <= e.high
    assert 0.92 < n_covered / 500 < 0.98


def test_unparsed_draws_widen_the_interval(make: Any) -> None:
    whole, torn = (
        sum_minus_limit(
            [(1.0, evidence_of(make.drawn({"4": 19}, "i", "s", requested=n), FIVE))]
        ).estimate
        for n in (19, 20)
    )
    assert (whole.low, whole.high) == (4.0, 4.0)
    assert (torn.low, torn.high) == pytest.approx(((19 * 4 + 1) / 20, (19 * 4 + 5) / 20))


def test_probability_that_was_not_seen_bounds_the_value(make: Any) -> None:
    one = sum_minus_limit([(1.0, evidence_of(make.weighed({"4": 0.6, "5": 0.3}, "i", "s"), FIVE))])
    assert one.estimate.value == pytest.approx(3.9 / 0.9)
    assert (one.estimate.low, one.estimate.high) == pytest.approx((4.0, 4.4))
    assert one.estimate.p is None
    assert not one.single


def test_one_reply_bounds_nothing_also_among_others(make: Any) -> None:
    parts = [
        (0.5, evidence_of(make.single("4", "i", "a"), FIVE)),
        (0.5, evidence_of(make.drawn({"4": 9}, "i", "b"), FIVE)),
    ]
    total = sum_minus_limit(parts)
    assert total.single
    assert (total.estimate.value, total.estimate.low, total.estimate.high, total.estimate.p) == (
        4.0,
        None,
        None,
        None,
    )


def test_a_score_that_no_judge_gave_leaves_nothing_open() -> None:
    evidence = evidence_of(Score("i", "s", "c", -0.7, Provenance("external")), {})
    assert (evidence.low, evidence.high) == (-0.7, -0.7)


def test_unknown_label_values_give_no_interval(make: Any) -> None:
    score = make.drawn({"4": 12, "5": 8}, "i", "s")
    assert sum_minus_limit([(1.0, evidence_of(score, {}))]).single
    assert flip_probability(score, within(min=4.5), {}) is None


def test_chance_is_the_share_of_single_replies_outside(make: Any) -> None:
    score = make.drawn({"3": 7, "4": 12, "5": 1}, "i", "s")
    assert flip_probability(score, within(min=4), FIVE) == pytest.approx(0.35)
    assert flip_probability(score, within(min=4, max=4), FIVE) == pytest.approx(0.4)
    assert flip_probability(score, within(max=3.5), FIVE) == pytest.approx(0.65)
    assert flip_probability(
        make.weighed({"4": 0.6, "5": 0.2}, "i", "s"), within(min=4.5), FIVE
    ) == pytest.approx(0.75)
    assert flip_probability(make.single("4", "i", "s"), within(min=4), FIVE) is None


@given(some_draws)
def test_label_margin_is_the_mean_of_its_draws(make: Any, draws: dict[str, int]) -> None:
    estimate = sum_minus_limit(
        [(1.0, label_margin(make.drawn(draws, "i", "s"), "4", "3"))]
    ).estimate
    votes = [(value == 4) - (value == 3) for value in listed(draws)]
    assert estimate.value == pytest.approx(np.mean(votes))
    if np.std(votes) > 0:
        assert estimate.p == pytest.approx(stats.ttest_1samp(votes, 0).pvalue, abs=1e-12)


def test_label_margin_includes_the_unseen_mass(make: Any) -> None:
    estimate = sum_minus_limit(
        [(1.0, label_margin(make.weighed({"4": 0.5, "3": 0.3}, "i", "s"), "4", "3"))]
    ).estimate
    assert (estimate.low, estimate.high) == pytest.approx((0.0, 0.4))
    assert shares(make.weighed({"4": 0.5, "3": 0.3}, "i", "s")) == pytest.approx(
        {"4": 0.625, "3": 0.375}
    )
    assert shares(make.single("4", "i", "s")) == {"4": 1.0}


@given(st.lists(st.tuples(st.floats(-2, 2), some_draws), min_size=1, max_size=4), st.floats(-5, 5))
def test_an_interval_encloses_its_value(
    make: Any, parts: list[tuple[float, dict[str, int]]], limit: float
) -> None:
    estimate = sum_minus_limit(
        [(c, evidence_of(make.drawn(draws, "i", "s", requested=60), FIVE)) for c, draws in parts],
        limit,
    ).estimate
    assert estimate.low <= estimate.value <= estimate.high
