"""Agreement of raters. Oracles: published examples, evalica's alpha and textbook sums."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import evalica
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from judge.stats.agreement import MEASURES, Measure, agree
from judge.stats.bootstrap import Bootstrap
from tests.factories import has_line

NAN = np.nan
FEW = Bootstrap(n_resamples=100)

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: 4 observers, 12 units.
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]
# Shrout and Fleiss 1979, table 2: 6 targets, 4 judges.
SHROUT_FLEISS = [
    [9, 2, 5, 8],
    [6, 1, 3, 2],
    [8, 4, 6, 8],
    [7, 1, 2, 6],
    [10, 5, 6, 9],
    [6, 2, 4, 7],
]
# 85 xeromammograms by two radiologists (Altman 1991, p. 403), from the page on `kappa` in Stata's manual.
RADIOLOGISTS = [[21, 12, 0, 0], [4, 17, 1, 0], [3, 9, 15, 2], [0, 0, 0, 1]]


def values(votes: Any, bootstrap: Bootstrap = FEW) -> dict[Measure, float]:
    """Return the measures of raters × units. Each unit is a separate item."""
    agreement = agree(np.array(votes, dtype=float)[:, :, None], bootstrap=bootstrap)
    return {measure: estimate.value for measure, estimate in agreement.estimates.items()}


def test_alpha_of_krippendorffs_example() -> None:
    measures = values(KRIPPENDORFF)
    published = {"alpha_nominal": 0.743, "alpha_ordinal": 0.815, "alpha_interval": 0.849}
    assert {measure: measures[measure] for measure in published} == pytest.approx(
        published, abs=5e-4
    )  # type: ignore[index]


def test_icc_of_shrout_and_fleisss_example() -> None:
    measures = values(np.transpose(SHROUT_FLEISS))
    assert (measures["icc_2_1"], measures["icc_2_k"]) == (
        pytest.approx(0.29, abs=0.005),
        pytest.approx(0.62, abs=0.005),
    )


def test_kappa_of_the_radiologists_example() -> None:
    pairs = [
        (i, j) for i, row in enumerate(RADIOLOGISTS) for j, n in enumerate(row) for _ in range(n)
    ]
    measures = values(np.transpose(pairs))
    assert measures["kappa_linear"] == pytest.approx(0.5684, abs=5e-5)
    assert measures["kappa_quadratic"] == pytest.approx(0.6714, abs=5e-5)


_votes = st.tuples(st.integers(2, 4), st.integers(2, 7)).flatmap(
    lambda shape: arrays.arrays(
        np.float64, shape, elements=st.sampled_from([1.0, 2.0, 2.5, 0.1 + 0.2, 0.3, 4.0, 5.0, NAN])
    )
)


@given(_votes)
def test_alpha_equals_evalica(votes: Any) -> None:
    measures = values(votes, Bootstrap(n_resamples=5))
    frame = pd.DataFrame(np.round(votes, 9))  # values that differ by a rounding error are equal
    paired = frame.loc[:, frame.notna().sum() > 1].to_numpy()
    if paired.shape[1] < 2 or len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert not any(measure.startswith("alpha") for measure in measures)
        return
    for distance in ("interval", "ordinal", "nominal"):
        assert measures[f"alpha_{distance}"] == pytest.approx(
            evalica.alpha(frame, distance).alpha, abs=1e-6
        )  # type: ignore[index]


@pytest.mark.parametrize(("measure", "power"), [("kappa_linear", 1), ("kappa_quadratic", 2)])
def test_kappa_of_several_raters_is_the_mean_over_pairs(measure: Measure, power: int) -> None:
    votes = np.random.default_rng(0).integers(1, 6, size=(3, 40)).astype(float)
    votes[1] = np.clip(votes[0] + np.random.default_rng(1).integers(-1, 2, size=40), 1, 5)
    votes[2, :9] = NAN
    by_pair = []
    for pair in combinations(votes, 2):
        first, second = np.array(pair)[:, ~np.isnan(pair).any(axis=0)]
        observed = (np.abs(first - second) ** power).mean()
        by_chance = (np.abs(first[:, None] - second) ** power).mean()
        by_pair.append(1 - observed / by_chance)
    assert values(votes)[measure] == pytest.approx(np.mean(by_pair))


def test_icc_equals_its_definition_over_fully_rated_texts() -> None:
    random = np.random.default_rng(2)
    votes = (
        random.normal(size=(1, 20)) + random.normal(size=(3, 1)) + random.normal(size=(3, 20)) / 2
    )
    votes[0, 3] = NAN
    whole = np.delete(votes, 3, axis=1).T
    n, k = whole.shape
    grand = whole.mean()
    texts = k * ((whole.mean(axis=1) - grand) ** 2).sum() / (n - 1)
    judges = n * ((whole.mean(axis=0) - grand) ** 2).sum() / (k - 1)
    residual = whole - whole.mean(axis=1, keepdims=True) - whole.mean(axis=0) + grand
    error = (residual**2).sum() / ((n - 1) * (k - 1))
    agreement = agree(votes[:, :, None], bootstrap=FEW)
    single, mean = agreement.estimates["icc_2_1"], agreement.estimates["icc_2_k"]
    assert single.value == pytest.approx(
        (texts - error) / (texts + (k - 1) * error + k * (judges - error) / n)
    )
    assert mean.value == pytest.approx((texts - error) / (texts + (judges - error) / n))
    assert (single.n, agreement.estimates["alpha_interval"].n) == (19, 20)


def test_the_interval_contains_the_percentile_interval_of_resampled_items() -> None:
    random = np.random.default_rng(5)
    votes = np.clip(
        np.round(3 + random.normal(size=(1, 12, 3)) + random.normal(size=(3, 12, 3)) / 2), 1, 5
    )
    estimates = agree(votes, bootstrap=Bootstrap(40, 7, 0.8)).estimates
    drawn = np.random.default_rng(7).integers(12, size=(40, 12))
    for measure in MEASURES:
        resampled = [
            agree(votes[:, rows], [measure], Bootstrap(2)).estimates[measure].value
            for rows in drawn
        ]
        low, high = Bootstrap(confidence=0.8).interval(np.array(resampled), 12).tolist()
        assert estimates[measure].low <= low + 1e-9
        assert high - 1e-9 <= estimates[measure].high <= 1
        method = estimates[measure].method
        assert has_line(method, "80%", "percentile bootstrap over items", "40 resamples", "seed 7")
        assert has_line(method, "2 added texts")


@pytest.mark.slow
def test_intervals_cover_at_their_level_if_80_per_cent_of_ratings_are_5() -> None:
    labels = np.arange(1.0, 6.0)
    cuts = stats.norm.ppf([0.02, 0.05, 0.1, 0.2])

    def ratings(items: int, random: np.random.Generator) -> Any:
        text = random.normal(size=(1, items, 1))
        perceived = 0.6**0.5 * text + 0.4**0.5 * random.normal(size=(2, items, 1))
        return labels[np.searchsorted(cuts, perceived.ravel())].reshape(perceived.shape)

    many = ratings(200_000, np.random.default_rng(9))
    measures: tuple[Measure, ...] = ("alpha_interval", "kappa_quadratic", "icc_2_1")
    truth = {name: e.value for name, e in agree(many, measures, Bootstrap(1)).estimates.items()}
    random = np.random.default_rng(20)
    covers = []
    for _ in range(60):
        estimates = agree(ratings(20, random), measures, Bootstrap(200)).estimates
        covers += [
            estimates[name].low <= truth[name] <= estimates[name].high
            for name in measures
            if name in estimates
        ]
    assert np.mean(covers) > 0.9


def test_equal_raters_have_an_agreement_of_1() -> None:
    votes = np.random.default_rng(0).integers(1, 6, size=(1, 200))
    assert values(np.tile(votes, (3, 1))) == pytest.approx(dict.fromkeys(MEASURES, 1.0))


def test_random_raters_have_an_agreement_of_about_0() -> None:
    measures = values(np.random.default_rng(0).integers(1, 6, size=(3, 3000)))
    assert all(abs(value) < 0.06 for value in measures.values())


@pytest.mark.parametrize(
    ("votes", "lacking"),
    [
        ([[1, 2, 3]], "fewer than two texts have the ratings of two raters"),
        ([[1, NAN, 3], [1, 2, NAN]], "fewer than two texts have the ratings of two raters"),
        ([[3, 3, 3], [3, 3, 3]], "all ratings are equal"),
    ],
)
def test_missing_values_have_a_reason(votes: Any, lacking: str) -> None:
    agreement = agree(np.array(votes, dtype=float)[:, :, None], bootstrap=FEW)
    assert agreement.estimates == {}
    assert agreement.lacking == dict.fromkeys(MEASURES, lacking)


def test_each_measure_is_missing_independently_with_a_reason() -> None:
    crowd = np.array([[1, 2, NAN, 4], [1, NAN, 3, 4], [NAN, 2, 3, 5.0]])[:, :, None]
    agreement = agree(crowd, bootstrap=FEW)
    assert has_line(agreement.lacking["icc_2_1"], "fewer than two texts", "all 3 raters")
    assert agreement.estimates["alpha_interval"].n == 4
    fine = np.random.default_rng(0).normal(size=(2, 90, 1)) + np.arange(90)[:, None]
    agreement = agree(fine, bootstrap=FEW)
    assert has_line(agreement.lacking["kappa_linear"], "180 distinct values", "more than 100")
    assert set(agreement.estimates) == {"alpha_interval", "icc_2_1", "icc_2_k"}


def test_resamples_without_a_rated_text_are_excluded() -> None:
    votes = np.full((2, 24, 3), NAN)
    votes[:, :10] = np.random.default_rng(0).integers(1, 6, size=(2, 10, 3))
    for estimate in agree(votes, bootstrap=Bootstrap(300)).estimates.values():
        assert estimate.low is not None
        assert estimate.n == 30


def test_one_item_has_no_interval() -> None:
    estimates = agree(np.array([[[1, 2, 3.0]], [[1, 2, 4.0]]]), bootstrap=FEW).estimates
    assert set(estimates) == set(MEASURES)
    assert {estimate.low for estimate in estimates.values()} == {None}
