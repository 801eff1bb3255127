"""Agreement of judge and people on pass and fail. Oracles: counting, Cohen's kappa (1960), and Wilson's equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.bootstrap import Bootstrap
from judge.stats.pass_agreement import (
    PassAgreement,
    PeoplesVerdicts,
    pass_agreement,
    people_passes,
    share_over_items,
)
from judge.stats.pass_rates import calibrated_pass_rates, powered_share
from judge.stats.powered_mean import powered
from judge.table import Table
from tests.factories import has_line

POLITE = Column(
    "polite", "criterion", Signature("polite@1"), 1.0, 5.0, criterion="polite", pass_at=4.0
)
FEW = Bootstrap(n_resamples=50)


def rated(*ratings: float | Sequence[float], texts_of_item: int = 1) -> list[Sample]:
    """Return texts with these ratings by one rater or by several."""
    samples = []
    for number, votes in enumerate(ratings):
        each = (votes,) if isinstance(votes, float | int) else tuple(votes)
        sample = Sample(
            f"i{number // texts_of_item}",
            f"s{number % texts_of_item}",
            "",
            human={"polite": sum(each) / len(each)},
            ratings={"polite": each},
        )
        samples.append(sample)
    return samples


def compared(
    scores: Sequence[float], ratings: Sequence[float], texts_of_item: int = 1
) -> PassAgreement:
    samples = rated(*ratings, texts_of_item=texts_of_item)
    by_text = {sample.key: score for sample, score in zip(samples, scores, strict=True)}
    people = people_passes(samples, "polite", POLITE)
    agreement = pass_agreement(samples, by_text, people, POLITE, FEW)
    assert agreement is not None
    return agreement


def counts(agreement: PassAgreement) -> tuple[int, int, int, int]:
    return agreement.both, agreement.judge_only, agreement.people_only, agreement.neither


@given(st.lists(st.tuples(st.sampled_from([2, 3.9, 4, 5]), st.integers(1, 5)), min_size=1))
def test_rates_and_kappa_follow_from_the_four_counts(pairs: list[tuple[float, int]]) -> None:
    scores, ratings = zip(*pairs, strict=True)
    agreement = compared(scores, ratings)
    both = sum(score >= 4 and rating >= 4 for score, rating in pairs)
    judge_only = sum(score >= 4 and rating < 4 for score, rating in pairs)
    people_only = sum(score < 4 and rating >= 4 for score, rating in pairs)
    neither = sum(score < 4 and rating < 4 for score, rating in pairs)
    assert counts(agreement) == (both, judge_only, people_only, neither)
    n = len(pairs)
    values = {name: estimate.value for name, estimate in agreement.estimates.items()}
    expected = {"accuracy": (both + neither) / n}
    if both + people_only:
        expected["true_positive_rate"] = both / (both + people_only)
    if judge_only + neither:
        expected["true_negative_rate"] = neither / (judge_only + neither)
    by_chance = (both + judge_only) * (both + people_only) + (people_only + neither) * (
        judge_only + neither
    )
    if n > 1 and by_chance < n * n:
        agreed = (both + neither) / n
        expected["kappa"] = (agreed - by_chance / n**2) / (1 - by_chance / n**2)
    assert values == pytest.approx(expected)
    measures = {"accuracy", "true_positive_rate", "true_negative_rate", "kappa"}
    assert set(agreement.lacking) == measures - set(expected)


@pytest.mark.parametrize(
    ("rating", "measure", "reason"),
    [
        (1, "true_positive_rate", "people pass no text"),
        (5, "true_negative_rate", "people pass every text"),
    ],
)
def test_a_rate_over_no_texts_is_missing_with_a_reason(
    rating: int, measure: str, reason: str
) -> None:
    agreement = compared([1, 5, 5, 2, 4, 4], [rating] * 6)
    assert agreement.lacking[measure] == reason
    assert measure not in agreement.estimates


@pytest.mark.parametrize(("grade", "texts"), [(5, "every text"), (1, "no text")])
def test_kappa_is_missing_if_all_verdicts_are_equal(grade: int, texts: str) -> None:
    agreement = compared([grade] * 8, [grade] * 8)
    assert agreement.kappa is None
    assert has_line(agreement.lacking["kappa"], "judge and people", texts)


def test_full_agreement_has_an_interval_below_1() -> None:
    agreement = compared([5, 1] * 10, [5, 1] * 10)
    for estimate in agreement.estimates.values():
        assert estimate.value == 1
        assert estimate.low is not None
        assert estimate.low < 0.95


def test_few_items_have_no_interval() -> None:
    agreement = compared([5, 1, 5, 1], [5, 1, 1, 5])
    assert agreement.accuracy is not None
    assert (agreement.accuracy.value, agreement.accuracy.low) == (0.5, None)
    assert "too few" in agreement.accuracy.method


@given(st.lists(st.booleans(), min_size=5, max_size=30))
def test_a_share_with_one_text_per_item_has_wilsons_interval(hits: list[bool]) -> None:
    share = share_over_items("accuracy", np.array([hits]).T, np.ones((len(hits), 1), dtype=bool))
    assert share is not None
    assert share.low is not None
    assert share.high is not None
    n = len(hits)
    t = scipy_stats.t.ppf(0.975, n - 1)
    tries = n - 1 if 0 < sum(hits) < n else n
    for end in (share.low, share.high):
        assert (share.value - end) ** 2 * tries == pytest.approx(t**2 * end * (1 - end), abs=1e-9)


def test_copies_of_a_text_do_not_narrow_the_interval() -> None:
    hits = np.array([[True], [True], [False], [True], [True], [False], [True], [True]])
    once = share_over_items("accuracy", hits, np.ones_like(hits))
    four_times = share_over_items(
        "accuracy", np.repeat(hits, 4, axis=1), np.ones((8, 4), dtype=bool)
    )
    assert once is not None
    assert four_times is not None
    assert four_times.n == 4 * once.n
    assert (four_times.low, four_times.high) == pytest.approx((once.low, once.high))


def test_a_text_counts_as_at_most_one_trial() -> None:
    """Nearly every item has one hit and one miss, so that the shares of items vary much less than the texts."""
    hits = np.array([[True, False]] * 5 + [[True, True]])
    share = share_over_items("accuracy", hits, np.ones_like(hits))
    assert share is not None
    assert share.low is not None
    n = hits.size
    t = scipy_stats.t.ppf(0.975, len(hits) - 1)
    assert (share.value - share.low) ** 2 * n == pytest.approx(t**2 * share.low * (1 - share.low))


def test_people_pass_by_their_mean_rating() -> None:
    samples = rated([4, 5, 3], [4, 4, 3], 4)
    assert [*people_passes(samples, "polite", POLITE).passes.values()] == [1, 0, 1]


@pytest.mark.parametrize("column", [POLITE, replace(POLITE, low=0.0, high=1.0, pass_at=1.0)])
def test_a_text_passes_if_half_of_the_verdicts_are_1(column: Column) -> None:
    people = people_passes(rated([1, 1, 0], [0, 1], [0, 0, 1], 0), "polite", column)
    assert people.are_verdicts
    assert [*people.passes.values()] == [1, 1, 0, 0]


@pytest.mark.parametrize("high", [1.0, 5.0])
def test_a_text_passes_if_half_of_the_verdicts_are_0_and_lower_is_better(high: float) -> None:
    low = 0.0 if high == 1.0 else 1.0
    toxic = replace(POLITE, low=low, high=high, pass_at=(low + high) / 2, better="lower")
    people = people_passes(rated([1, 1, 0], [0, 1], [0, 0, 1], 0), "polite", toxic)
    assert [*people.passes.values()] == [0, 1, 1, 1]


def test_ratings_on_another_scale_have_no_verdicts_and_a_reason() -> None:
    people = people_passes(rated(*[7, 9, 10, 6] * 5), "polite", POLITE)
    assert people == PeoplesVerdicts({}, reason=people.reason)
    assert has_line(people.reason, "6 to 10", "1 to 5")


def test_generations_of_an_item_are_texts_of_one_cluster() -> None:
    samples = [replace(sample, cluster="i") for sample in rated(5, 1, 5, 1, 5, 1)]
    people = people_passes(samples, "polite", POLITE)
    agreement = pass_agreement(samples, {s.key: 5.0 for s in samples}, people, POLITE, FEW)
    assert agreement is not None
    assert agreement.accuracy is not None
    assert agreement.texts == 6
    assert has_line(agreement.accuracy.method, "1 item", "too few")


# Pass rates corrected by people's ratings


def test_a_corrected_pass_rate_is_ppi_of_zeros_and_ones() -> None:
    ratings = np.array([1.0, 0, 1, 1, 0, 1, 0, 1, 0, 1] * 3)
    scores = np.array([1.0, 0, 1, 1, 0, 1, 0, 1, 0, 1] * 2 + [1.0, 0, 1, 1, 1, 1, 0, 0, 0, 1])
    others = np.array([1.0, 1, 0] * 30)
    share = powered_share(ratings, scores, others)
    assert share.estimate.value == powered(ratings, scores, others).estimate.value
    assert share.people.value == pytest.approx(0.6)
    assert share.weight > 0.5


def test_a_judge_without_errors_has_an_interval() -> None:
    """By `powered` alone, a judge without an error on 10 texts would have an error of exactly 0."""
    ratings = np.array([1.0] * 8 + [0.0] * 2)
    share = powered_share(ratings, ratings, np.array([1.0, 1, 1, 0] * 100))
    assert share.estimate.low is not None
    assert share.estimate.high is not None
    assert share.estimate.high - share.estimate.low > 0.2
    assert 0 <= share.estimate.low <= share.estimate.value <= share.estimate.high <= 1


def test_a_useless_judge_does_not_change_the_rate_by_people() -> None:
    ratings = np.array([1.0] * 14 + [0.0])
    scores = np.array([1.0, 0.0, 0.0] * 5)
    share = powered_share(ratings, scores, np.array([1.0, 0.0] * 20))
    assert share.weight == 0
    assert share.estimate == share.people


def _table(n_rated: int) -> Table:
    """Return 20 items of one system. The judge passes all, and people pass every second rated item."""
    samples = [
        Sample(f"i{n}", "s", "", human={"polite": 5.0 if n % 2 else 1.0} if n < n_rated else {})
        for n in range(20)
    ]
    scores = [
        Score(sample.item, "s", "polite", 4.0 + n % 2, Provenance("single"))
        for n, sample in enumerate(samples)
    ]
    return Table(tuple(samples), (POLITE,), tuple(scores))


def test_a_pass_rate_has_the_judges_and_the_corrected_value() -> None:
    (rates,) = calibrated_pass_rates(_table(12))
    (rate,) = rates.rates
    assert (rate.judge.value, rate.people.estimate.value) == (1.0, 0.5)
    assert rate.people.estimate.n == 12


def test_too_few_rated_items_have_no_corrected_rate_and_a_note() -> None:
    (rates,) = calibrated_pass_rates(_table(5))
    assert rates.rates == ()
    assert has_line(rates.note, "fewer than 10 rated items", "s")


def test_criteria_without_a_mark_or_ratings_have_no_corrected_rate() -> None:
    table = _table(12)
    assert not calibrated_pass_rates(replace(table, columns=(replace(POLITE, pass_at=None),)))
    assert not calibrated_pass_rates(_table(0))
