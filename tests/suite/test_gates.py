"""When a gate may pass or fail. Oracle: an independent analysis of the scores with pandas and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy import optimize, stats

from judge.core.records import Column
from judge.core.signature import Signature
from judge.stats.bounded_mean import chance_beyond
from judge.suite.case import Verdict
from judge.suite.evaluate import evaluate_case
from judge.suite.expectations import Expectation
from tests.factories import has_line

LABELS = ("1", "2", "3", "4", "5")
RATED = Column(
    "relevance",
    "criterion",
    Signature("r@1"),
    1.0,
    5.0,
    LABELS,
    "relevance",
    values=(1.0, 2.0, 3.0, 4.0, 5.0),
    pass_at=4.0,
)
some_labels = st.lists(st.sampled_from(LABELS), min_size=2, max_size=30)
mostly_fives = st.lists(st.sampled_from(["5", "5", "5", "5", "4", "1"]), min_size=2, max_size=30)


def decide(make: Any, expected: dict[str, Any], labels: list[str]) -> Verdict:
    adapter: TypeAdapter[Any] = TypeAdapter(Expectation)
    case = adapter.validate_python({"name": "a case", "criterion": "relevance", **expected})
    rows = [make.single(label, f"i{k}", "s") for k, label in enumerate(labels)]
    texts = [(f"i{k}", "s") for k in range(len(labels))]
    result = make.result(*rows, columns=(RATED,))
    return evaluate_case(case.located("relevance", 7, {}), texts, result)


def wilson_ends(scores: pd.Series[float], low: float, high: float) -> tuple[float, float]:
    """Return Wilson's interval by its definition: means at a distance of t standard errors from the observed one."""
    n, share = len(scores), (scores.mean() - low) / (high - low)
    variance = scores.var(ddof=1) / (high - low) ** 2
    tries = n if variance < 1e-12 else n * share * (1 - share) / variance
    t = stats.t.ppf(0.975, n - 1)

    def excess(p: float) -> float:
        return (share - p) ** 2 - t**2 * p * (1 - p) / tries

    ends = [
        share
        if excess(end) <= 1e-15
        else optimize.brentq(excess, *sorted((end, share)), xtol=1e-12)
        for end in (0.0, 1.0)
    ]
    return low + (high - low) * min(ends), low + (high - low) * max(ends)


def rare_scores_share(scores: pd.Series[float], limit: float, end: float) -> float:
    """Return how often the mean crosses the limit with an extra score `end` and Dirichlet weights."""
    weights = np.random.default_rng(1).dirichlet(np.ones(len(scores) + 1), 20_000)
    means = weights @ np.append(scores, end)
    return float((means <= limit).mean() if end < limit else (means >= limit).mean())


def test_eight_fives_do_not_show_a_mean_of_4_9(make: Any) -> None:
    verdict = decide(make, {"expect": {"min": 4.9}}, ["5"] * 8)
    assert (verdict.status, verdict.found) == ("undecided", "5.00 [3.35, 5.00]")
    assert has_line(verdict.reason, "the interval reaches below 4.9", "150 items")


def test_three_passes_of_three_have_an_interval(make: Any) -> None:
    verdict = decide(make, {"pass_rate": {"min": 0.8}}, ["5"] * 3)
    assert verdict.status == "undecided"
    assert verdict.estimate is not None
    assert verdict.estimate.low == pytest.approx(3 / (3 + stats.t.ppf(0.975, 2) ** 2))


@settings(max_examples=60)
@given(st.one_of(some_labels, mostly_fives), st.sampled_from([1.5, 2.0, 3.0, 3.5, 4.0, 4.5, 4.9]))
def test_a_minimum_passes_only_if_significant(make: Any, labels: list[str], limit: float) -> None:
    verdict = decide(make, {"expect": {"min": limit}}, labels)
    scores = pd.Series([float(label) for label in labels])
    if len(scores) < 5:
        assert verdict.status == "undecided"
        return
    low, high = wilson_ends(scores, 1.0, 5.0)
    if low < limit - 1e-6 < high - 2e-6:
        assert verdict.status == "undecided"
    elif verdict.status == "passed":
        assert low >= limit - 1e-6
        assert rare_scores_share(scores, limit, 1.0) < 0.03
    elif verdict.status == "failed":
        assert high < limit + 1e-6
        assert rare_scores_share(scores, limit, 5.0) < 0.03
    else:
        beyond = rare_scores_share(scores, limit, 1.0 if scores.mean() > limit else 5.0)
        assert beyond > 0.02 or abs(low - limit) < 1e-6 or abs(high - limit) < 1e-6


@given(st.integers(0, 30), st.integers(2, 30), st.sampled_from([0.2, 0.5, 0.8, 0.9, 0.95]))
def test_a_pass_rate_is_at_least_as_strict_as_the_exact_test(
    make: Any, passing: int, n: int, least: float
) -> None:
    passing = min(passing, n)
    verdict = decide(make, {"pass_rate": {"min": least}}, ["5"] * passing + ["3"] * (n - passing))
    exact = stats.binomtest(passing, n).proportion_ci(0.95, "exact")
    if verdict.status == "passed":
        assert exact.low > least - 0.01
    if verdict.status == "failed":
        assert exact.high < least + 0.01
    assert verdict.estimate is not None
    assert verdict.estimate.low is not None


@given(st.integers(0, 25), st.integers(1, 25), st.floats(0.05, 0.95))
def test_rare_scores_of_two_labels_are_clopper_and_pearsons_test(
    ones: int, zeros: int, limit: float
) -> None:
    values = np.repeat([1.0, 0.0], [ones, zeros])
    chance = stats.binom.sf(ones - 1, ones + zeros, limit)
    assert chance_beyond(values, limit, 0.0) == pytest.approx(chance, abs=0.025)


@given(st.lists(st.floats(1, 5), min_size=1, max_size=20), st.floats(1.5, 4.5), st.data())
def test_a_better_score_never_makes_a_lower_mean_likelier(
    values: list[float], limit: float, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    raised = [*values]
    raised[place] = 5.0
    before = chance_beyond(np.array(values), limit, 1.0)
    assert chance_beyond(np.array(raised), limit, 1.0) <= before


def test_few_similar_scores_do_not_exclude_rare_low_scores(make: Any) -> None:
    # If 4% of scores are 1 and the rest 4 or 5, ten texts often contain no 1.
    verdict = decide(make, {"expect": {"min": 4}}, ["5"] * 5 + ["4"] * 5)
    assert verdict.status == "undecided"
    assert verdict.found == "4.50 [4.01, 4.77]"
    assert has_line(verdict.reason, "10 items", "too few low scores", "below 4", "26 items")
    verdict = decide(make, {"expect": {"max": 2}}, ["1"] * 5 + ["2"] * 5)
    assert verdict.status == "undecided"
    assert verdict.found == "1.50 [1.23, 1.99]"
    assert has_line(verdict.reason, "10 items", "too few high scores", "above 2", "26 items")


@pytest.mark.parametrize(
    ("expect", "labels"),
    [({"max": 1}, ["1"] * 4 + ["2"] * 4), ({"min": 5}, ["5"] * 4 + ["4"] * 4)],
)
def test_no_rare_score_makes_up_for_a_mean_off_the_end_of_the_scale(
    make: Any, expect: dict[str, int], labels: list[str]
) -> None:
    verdict = decide(make, {"expect": expect}, labels)
    assert verdict.status == "failed"
    assert "rare" not in verdict.reason
    assert "too few" not in verdict.reason


@pytest.mark.parametrize("n", [8, 20])
def test_an_order_does_not_pass_a_margin_that_equal_differences_do_not_show(
    make: Any, n: int
) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Expectation)
    case = adapter.validate_python(
        {"criterion": "relevance", "better": "a", "worse": "b", "margin": -0.2}
    )
    texts = [(f"i{k}", system) for k in range(n) for system in ("a", "b")]
    result = make.result(*(make.single("5", *key) for key in texts))
    verdict = evaluate_case(case.located("relevance", 7, {}), texts, result)
    assert verdict.status == "undecided"
