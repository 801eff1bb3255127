"""Correlations with people's ratings. Oracles: scipy, resampling in the test, and published values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats
from scipy.stats import spearmanr

import judge
from judge.core.records import Sample
from judge.stats import coefficients as module
from judge.stats.bootstrap import Bootstrap, resample_weights
from judge.stats.coefficients import COEFFICIENTS, LEVELS, Coefficient, Level, of_pair, within
from judge.stats.correlation import (
    CorrelationWithRatings,
    change_in_agreement,
    jackknife_interval,
    rater_correlation,
    williams,
)
from tests.factories import has_line

NAN = np.nan
FEW = Bootstrap(n_resamples=200)


def by_scipy(x: Any, y: Any, coefficient: Coefficient) -> float:
    """Return scipy's coefficient over complete pairs, or NaN if it is undefined."""
    x, y = np.ravel(x), np.ravel(y)
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return NAN
    statistic = {
        "spearman": stats.spearmanr,
        "kendall": stats.kendalltau,
        "pearson": stats.pearsonr,
    }[coefficient]
    return float(statistic(x, y)[0])


def data(items: int, systems: int, *, seed: int = 0, missing: float = 0.1) -> tuple[Any, Any]:
    """Return correlated scores and ratings, with some missing. Ratings are thirds with many ties."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=(items, 1)) / 2 + random.normal(size=(items, systems))
    scores = quality + random.normal(size=quality.shape)
    ratings = np.round(np.clip(3 + quality + random.normal(size=quality.shape), 1, 5) * 3) / 3
    for side in (scores, ratings):
        side[random.random(side.shape) < missing] = NAN
    return scores, ratings


few_values = st.sampled_from([0.0, 1.0, 2.0, 0.1 + 0.2, 0.3, NAN])


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@given(arrays.arrays(np.float64, (2, 3, 5), elements=few_values))
def test_each_item_has_scipys_coefficient_with_ties_and_missing_values(
    coefficient: Coefficient, both: Any
) -> None:
    rounded = np.round(both, 9)
    expected = [by_scipy(x, y, coefficient) for x, y in zip(*rounded, strict=True)]
    assert within(*both, coefficient) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_the_coefficient_over_all_texts_equals_scipy(coefficient: Coefficient) -> None:
    x, y = data(30, 7)
    for first, second in ((x, y), (y, x)):
        correlation = of_pair(first, second, "all-texts", coefficient)(np.ones((1, 30)))
        assert correlation == pytest.approx([by_scipy(x, y, coefficient)])


@pytest.mark.parametrize("coefficient", ["spearman", "pearson"])
def test_each_resample_over_all_texts_is_ranked_again(coefficient: Coefficient) -> None:
    x, y = data(30, 7)
    (counts,) = resample_weights(30, 20, 0)
    drawn = [np.repeat(np.arange(30), row.astype(int)) for row in counts]
    expected = [by_scipy(x[rows], y[rows], coefficient) for rows in drawn]
    assert of_pair(x, y, "all-texts", coefficient)(counts) == pytest.approx(expected)


def test_linear_kendall_has_the_interval_of_a_full_bootstrap() -> None:
    x, y = data(60, 6)
    (counts,) = resample_weights(60, 400, 0)
    drawn = [np.repeat(np.arange(60), row.astype(int)) for row in counts]
    whole = np.quantile([by_scipy(x[rows], y[rows], "kendall") for rows in drawn], (0.025, 0.975))
    assert np.quantile(
        of_pair(x, y, "all-texts", "kendall")(counts), (0.025, 0.975)
    ) == pytest.approx(whole, abs=0.006)


def test_linear_spearman_equals_scipy_and_the_resampled_interval() -> None:
    x, y = data(120, 6)
    counts = np.concatenate(list(resample_weights(120, 600, 0)))
    ranked_again, linear = (of_pair(x, y, "all-texts", "spearman", exact=n) for n in (1000, 0))
    assert linear(np.ones((1, 120))) == pytest.approx([by_scipy(x, y, "spearman")])
    ends = [np.quantile(statistic(counts), (0.025, 0.975)) for statistic in (ranked_again, linear)]
    assert ends[1] == pytest.approx(ends[0], abs=0.006)


def test_kendall_of_many_distinct_values_is_binned_only_for_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 200, 8))
    y += x
    counts = np.concatenate(list(resample_weights(200, 400, 0)))
    monkeypatch.setattr(module, "_MAX_CELLS", 10_000_000)
    exact = of_pair(x, y, "all-texts", "kendall")
    monkeypatch.setattr(module, "_MAX_CELLS", 1_000)
    binned = of_pair(x, y, "all-texts", "kendall")
    for statistic in (exact, binned):
        assert statistic(np.ones((1, 200))) == pytest.approx([by_scipy(x, y, "kendall")], abs=1e-12)
    ends = [np.quantile(statistic(counts), (0.025, 0.975)) for statistic in (exact, binned)]
    assert ends[1] == pytest.approx(ends[0], abs=0.001)


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
def test_system_correlation_uses_the_resampled_means(coefficient: Coefficient) -> None:
    x, y = data(12, 6, missing=0.3)
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = np.where(both, x, NAN), np.where(both, y, NAN)
    (counts,) = resample_weights(12, 20, 3)
    drawn = [np.repeat(np.arange(12), row.astype(int)) for row in counts]
    expected = [
        by_scipy(np.nanmean(x[rows], axis=0), np.nanmean(y[rows], axis=0), coefficient)
        for rows in drawn
    ]
    assert of_pair(x, y, "systems", coefficient)(counts) == pytest.approx(expected)


@given(arrays.arrays(np.int64, (5, 6), elements=st.integers(3, 15)))
def test_systems_with_equal_rating_sums_are_tied(thirds: Any) -> None:
    """Ratings are means of three raters: sums of thirds differ in floating point, also after rounding."""
    judged = np.tile(np.arange(6.0), (5, 1))
    expected = by_scipy(judged[0], thirds.sum(axis=0), "spearman")
    assert of_pair(judged, thirds / 3, "systems", "spearman")(np.ones((1, 5))) == pytest.approx(
        [expected], nan_ok=True
    )


def test_estimates_of_all_levels_count_texts_and_items() -> None:
    x, y = data(40, 5, missing=0.05)
    correlation = CorrelationWithRatings(y, FEW).correlate(x)
    assert set(correlation.estimates) == {
        (level, name) for level in LEVELS for name in COEFFICIENTS
    }
    texts = int((~np.isnan(x + y)).sum())
    assert correlation.texts == texts
    by_item = [by_scipy(*pair, "kendall") for pair in zip(x, y, strict=True)]
    tau = correlation.estimates["within-items", "kendall"]
    assert (tau.value, tau.n) == (
        pytest.approx(np.nanmean(by_item)),
        int((~np.isnan(by_item)).sum()),
    )
    assert [correlation.estimates[level, "pearson"].n for level in LEVELS] == [tau.n, texts, 5]
    assert has_line(tau.method, "Kendall's tau-b", "mean over items", "95% Wilson", "Student's t")
    assert tau.method.endswith("over items")
    pooled = correlation.estimates["all-texts", "kendall"].method
    assert has_line(pooled, "95%", "percentile bootstrap over items", "200 resamples", "seed 0")
    for (level, _), estimate in correlation.estimates.items():
        if level != "systems":
            assert estimate.low is not None
            assert estimate.high is not None
            assert estimate.low < estimate.value < estimate.high


def test_constant_items_are_excluded_and_counted() -> None:
    ratings = np.array([[1, 2, 3], [4, 4, 4], [2, NAN, NAN], [1, 3, 2.0], [NAN, NAN, NAN]])
    scores = np.array([[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 3, 2.0], [1, 2, 3]])
    estimate = (
        CorrelationWithRatings(ratings, FEW).correlate(scores).estimates["within-items", "spearman"]
    )
    assert (estimate.value, estimate.n) == (1.0, 2)
    assert has_line(estimate.method, "left out of 4", "1", "not vary", "1 of one text")


def test_the_interval_depends_only_on_the_seed() -> None:
    x, y = data(20, 4)

    def estimates(seed: int) -> Any:
        return CorrelationWithRatings(y, Bootstrap(100, seed)).correlate(x).estimates

    key = ("all-texts", "spearman")
    assert estimates(1) == estimates(1)
    assert estimates(1)[key].low != estimates(2)[key].low


@pytest.mark.parametrize(
    ("scores", "ratings", "reasons"),
    [
        ([[1, 2], [3, 4.0]], [[NAN, NAN]] * 2, ["no text has both a value and a rating"] * 3),
        ([[1, 1], [1, 1.0]], [[1, 2], [3, 4.0]], ["all values are equal"] * 3),
        ([[1, 2], [3, 4.0]], [[2, 2], [2, 2.0]], ["all texts have the same mean rating"] * 3),
        (
            [[1.0], [2], [3]],
            [[1.0], [2], [3]],
            ["there are fewer than 2", None, "there are fewer than 3 s"],
        ),
        (
            [[1, 2.0]],
            [[1, 2.0]],
            [None, "there are fewer than 3 texts", "there are fewer than 3 s"],
        ),
        (
            [[1, 1], [2, 2.0]],
            [[1, 2], [3, 4.0]],
            ["in no item do both", None, "there are fewer than 3 s"],
        ),
        (
            [[1, NAN]],
            [[1, 2.0]],
            ["there are fewer than 2", "there are fewer than 3 texts", "there are fewer than 3 s"],
        ),
    ],
)
def test_missing_estimates_have_a_reason(
    scores: Any, ratings: Any, reasons: list[str | None]
) -> None:
    correlation = CorrelationWithRatings(np.array(ratings), FEW).correlate(np.array(scores))
    for level, reason in zip(LEVELS, reasons, strict=True):
        assert correlation.lacking.get(level, "").startswith(reason or "\0") == (reason is not None)
        assert ((level, "spearman") in correlation.estimates) == (reason is None)


def test_one_item_has_no_interval() -> None:
    estimates = (
        CorrelationWithRatings(np.array([[1, 2, 3.0]]), FEW)
        .correlate(np.array([[1, 3, 2.0]]))
        .estimates
    )
    for estimate in estimates.values():
        assert (estimate.low, estimate.high) == (None, None)
        too_few = has_line(estimate.method, "1 item", "too few")
        assert too_few or has_line(estimate.method, "systems' means", "no interval")
    assert estimates["within-items", "spearman"].value == pytest.approx(0.5)


@pytest.mark.parametrize(("varying", "bounded"), [(4, False), (5, True)])
def test_within_items_an_interval_needs_five_items_that_vary(varying: int, bounded: bool) -> None:
    random = np.random.default_rng(1)
    ratings = np.array([*random.normal(size=(varying, 4)), *np.full((30, 4), 4.0)])
    scores, second_scores = random.normal(size=(2, varying + 30, 4))
    against = CorrelationWithRatings(ratings, FEW)
    within = against.correlate(scores).estimates["within-items", "spearman"]
    assert (within.n, within.low is not None) == (varying, bounded)
    difference = against.difference(scores, second_scores, "within-items")
    assert difference is not None
    assert (difference.n, difference.low is not None) == (varying, bounded)
    if bounded:
        alone = CorrelationWithRatings(ratings[:varying], FEW).correlate(scores[:varying])
        narrow, wide = within, alone.estimates["within-items", "spearman"]
        assert narrow.high - narrow.low == pytest.approx(wide.high - wide.low, rel=0.25)


def test_a_difference_is_over_the_texts_that_both_columns_have() -> None:
    x, y = data(50, 6)
    z = np.where(np.random.default_rng(5).random(x.shape) < 0.2, NAN, x[::-1])
    shared = np.where(np.isnan(x + z), NAN, y)
    by_item = within(x, shared, "spearman") - within(z, shared, "spearman")
    against = CorrelationWithRatings(y, FEW)
    difference = against.difference(x, z, "within-items")
    assert difference is not None
    assert difference.value == pytest.approx(np.nanmean(by_item))
    assert difference.n == int((~np.isnan(by_item)).sum())
    levels: tuple[Level, ...] = ("all-texts", "systems")
    for level in levels:
        difference = against.difference(x, z, level)
        of_x, of_z = (of_pair(side, shared, level, "spearman") for side in (x, z))
        observed = np.ones((1, 50))
        assert difference is not None
        assert difference.value == pytest.approx(of_x(observed)[0] - of_z(observed)[0])
        if level == "systems":
            assert (difference.low, difference.high) == (None, None)
            continue
        resampled = [of_x(counts) - of_z(counts) for counts in resample_weights(50, 200, 0)]
        ends = FEW.interval(np.concatenate(resampled), 50)
        assert (difference.low, difference.high) == pytest.approx(tuple(ends))


def test_texts_of_the_same_items_have_an_interval_and_no_williams_test() -> None:
    """The test assumes independent texts, and contradicted the interval over items."""
    x, y = data(30, 6)
    z = x + np.random.default_rng(5).normal(size=x.shape)
    difference = CorrelationWithRatings(y, FEW).difference(x, z, "all-texts", "pearson")
    assert difference is not None
    assert difference.low is not None
    assert (difference.p, difference.test) == (None, "")


def test_a_difference_of_pearson_has_williams_test_except_within_items() -> None:
    x, y = data(30, 6)
    z = x + np.random.default_rng(5).normal(size=x.shape)
    one_text = [side[:, :1] for side in (x, z, y)]
    differences = [
        CorrelationWithRatings(y, FEW).difference(x, z, "within-items", "pearson"),
        CorrelationWithRatings(one_text[2], FEW).difference(*one_text[:2], "all-texts", "pearson"),
        CorrelationWithRatings(y, FEW).difference(x, z, "systems", "pearson"),
    ]
    both = ~np.isnan(x + y)
    known = both[:, :1]
    texts = np.corrcoef([side[known] for side in one_text])
    means = np.corrcoef([np.where(both, side, NAN).mean(axis=0, where=both) for side in (x, z, y)])
    for estimate, r, n in ((differences[1], texts, int(known.sum())), (differences[2], means, 6)):
        tested = williams(r[0, 2], r[1, 2], r[0, 1], n)
        assert estimate is not None
        assert tested is not None
        assert (estimate.value, estimate.n) == (pytest.approx(r[0, 2] - r[1, 2]), n)
        assert estimate.p == pytest.approx(tested[1])
        assert estimate.test == f"Williams' test, t({n - 3}) = {tested[0]:.2f}"
    assert differences[0] is not None
    assert differences[0].p is None
    assert differences[0].value == pytest.approx(
        np.nanmean(within(x, y, "pearson") - within(z, y, "pearson"))
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_column_differs_from_noise_and_not_from_itself(level: Any) -> None:
    x, y = data(80, 12, missing=0)
    against = CorrelationWithRatings(y, FEW)
    same = against.difference(x, x, level)
    assert same is not None
    assert (same.value, same.low, same.high) == (
        (0, 0, 0) if level == "all-texts" else (0, None, None)
    )
    better = against.difference(y, np.random.default_rng(1).normal(size=x.shape), level)
    assert better is not None
    if level == "systems":
        assert better.value > 0
        return
    assert better.low is not None
    assert better.low > 0


@pytest.mark.parametrize("items", [49, 500])
def test_system_correlation_has_no_interval(items: int) -> None:
    x, y = data(items, 6, missing=0)
    against = CorrelationWithRatings(y, FEW)
    for estimate in (
        against.correlate(x).estimates["systems", "spearman"],
        against.difference(x, x[::-1], "systems"),
    ):
        assert estimate is not None
        assert (estimate.low, estimate.high) == (None, None)
        assert estimate.method.endswith("resamples towards 0")


@pytest.mark.parametrize(("systems", "compared"), [(4, False), (5, True)])
def test_correlations_of_the_means_of_few_systems_are_not_compared(
    systems: int, compared: bool
) -> None:
    x, y = data(40, systems)
    against = CorrelationWithRatings(y, FEW)
    assert against.correlate(x).estimates["systems", "spearman"].n == systems
    for coefficient in COEFFICIENTS:
        assert (against.difference(x, x[::-1], "systems", coefficient) is not None) is compared
    assert against.difference(x, x[::-1], "all-texts") is not None


def test_a_difference_of_an_undefined_correlation_is_none() -> None:
    x, y = data(10, 4)
    against = CorrelationWithRatings(y, FEW)
    for level in LEVELS:
        assert against.difference(x, np.full_like(x, 3.0), level) is None
        assert against.difference(x, np.full_like(x, NAN), level) is None


def test_each_rater_is_correlated_with_the_mean_of_the_others() -> None:
    random = np.random.default_rng(2)
    truth = random.normal(size=(15, 5))
    votes = np.round(3 + truth + random.normal(size=(3, 15, 5)))
    votes[random.random(votes.shape) < 0.15] = NAN
    correlation = rater_correlation(votes, FEW)
    means_of_others = []
    for rater in range(3):
        others = np.delete(votes, rater, axis=0)
        with np.errstate(invalid="ignore"):
            means_of_others.append(np.nansum(others, axis=0) / (~np.isnan(others)).sum(axis=0))
    by_rater_and_item = np.array(
        [
            [by_scipy(*rows, "spearman") for rows in zip(votes[k], means_of_others[k], strict=True)]
            for k in range(3)
        ]
    )
    values = [
        np.mean(item[~np.isnan(item)]) for item in by_rater_and_item.T if not np.isnan(item).all()
    ]
    assert correlation.estimates["within-items", "spearman"].value == pytest.approx(np.mean(values))
    assert correlation.estimates["within-items", "spearman"].n == len(values)
    over_texts = [by_scipy(votes[k], means_of_others[k], "pearson") for k in range(3)]
    assert correlation.estimates["all-texts", "pearson"].value == pytest.approx(np.mean(over_texts))
    method = correlation.estimates["all-texts", "pearson"].method
    assert has_line(
        method, "one of 3 raters", "mean of the others", "Pearson's r", "all texts", "95%"
    )


@pytest.mark.slow
def test_correlations_of_rouge_on_summeval_equal_the_published(
    shared_data: Callable[[str], Path],
) -> None:
    """ROUGE-1.5.5 with stemming, mean over 11 references (Yuan et al. 2021; Liu et al. 2023, table 1), at all levels.

    Correlations by document are within .002 of the script's, because rouge-score's stemmer differs a little.
    """
    with shared_data("summeval.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(text) for text in file]
    gold = json.loads(shared_data("summeval_rouge_correlations.json").read_text("utf-8"))
    items, systems = (list(dict.fromkeys(row[key] for row in rows)) for key in ("doc_id", "system"))
    shape = len(items), len(systems)
    assert [(row["doc_id"], row["system"]) for row in rows] == [
        (i, s) for i in items for s in systems
    ]

    def on_lines(text: str) -> str:
        # The published values have a sentence on each line. The last line, without a word, prevents that a text of
        # one line is split into sentences.
        return text.replace(" . ", " .\n") + "\n."

    outputs = [on_lines(row["summary"]) for row in rows]
    references = [[on_lines(text) for text in row["references"]] for row in rows]
    scored = judge.metrics.rouge.score(
        outputs, references, ["rouge1", "rouge2", "rougeLsum"], multi="mean"
    )
    for criterion in ("coherence", "consistency", "fluency", "relevance"):
        against = CorrelationWithRatings(
            np.array([row["human"][criterion] for row in rows]).reshape(shape), Bootstrap(10)
        )
        constant = {"consistency": 4, "fluency": 2}.get(criterion, 0)
        for name, values in scored.items():
            estimates = against.correlate(
                np.array([value.fmeasure for value in values]).reshape(shape)
            ).estimates
            published = gold[f"{name}_f_perl155_stem_mean11"]
            of_document = [
                published["doc_level"][f"{criterion}_{c}"] for c in ("spearman", "kendall")
            ]
            assert [
                estimates["within-items", c].value for c in ("spearman", "kendall")
            ] == pytest.approx(of_document, abs=0.002)
            assert estimates["within-items", "spearman"].n == 100 - constant
            for level, key in (("all-texts", "sample"), ("systems", "system")):
                gold_values = gold[f"{name}_f_stem_mean11"][
                    f"{key}_level_pearson_spearman_kendall"
                ][criterion]
                coefficients = ("pearson", "spearman", "kendall")
                ours = [estimates[level, name].value for name in coefficients]  # type: ignore[index]
                assert ours == pytest.approx(gold_values, abs=1e-6)


def test_williams_test_of_steigers_example() -> None:
    """Steiger 1980, as computed by R's psych: r.test(103, .4, .5, .1) prints t = -0.89 with probability < 0.37."""
    tested = williams(0.4, 0.5, 0.1, 103)
    assert tested is not None
    assert tested == (pytest.approx(-0.89, abs=0.005), pytest.approx(0.37, abs=0.006))


def test_williams_test_has_its_nominal_error_rate() -> None:
    random, p_values = np.random.default_rng(0), []
    for _ in range(1500):
        z = random.normal(size=(3, 40))
        x, y, people = z[0] + z[2], z[1] + z[2], z[2]
        r = np.corrcoef([x, y, people])
        tested = williams(r[0, 2], r[1, 2], r[0, 1], 40)
        assert tested is not None
        p_values.append(tested[1])
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.015)


def test_williams_test_of_degenerate_correlations() -> None:
    assert williams(0.5, 0.4, 0.3, 3) is None
    assert williams(0.5, 0.5, 1.0, 30) == (0.0, 1.0)
    # These correlations are impossible: two equal columns correlate differently with the ratings.
    assert williams(1.0, 0.5, 1.0, 30) is None


RATINGS = ((1, 2, 3), (3, 1, 2), (2, 3, 1), (1, 3, 2), (3, 2, 1), (2, 1, 3))
RATED = [
    Sample(f"i{n}", system, "Text.", human={"kind": float(grade)})
    for n, row in enumerate(RATINGS)
    for system, grade in zip("xyz", row, strict=True)
]
AFTER = {(s.item, s.system): s.human["kind"] for s in RATED}
BEFORE = {key: value if key[0] in ("i0", "i3", "i4") else -value for key, value in AFTER.items()}


def test_change_in_agreement_by_level_on_common_texts() -> None:
    before = {key: value for key, value in BEFORE.items() if key != ("i0", "x")}
    changes, lacking = change_in_agreement(RATED, "kind", before, AFTER)
    assert (list(changes), lacking) == (["within-items", "all-texts", "systems"], "")
    both = [(before[key], AFTER[key]) for key in before]
    assert changes["all-texts"].before.value == pytest.approx(
        spearmanr(*zip(*both, strict=True)).statistic
    )
    assert (changes["all-texts"].before.n, changes["all-texts"].after.value) == (
        17,
        pytest.approx(1.0),
    )
    document = changes["within-items"]
    assert (document.before.value, document.after.value) == (pytest.approx(0.0), pytest.approx(1.0))
    assert document.change is not None
    assert document.change.value == pytest.approx(1.0)
    # three items changed in the same direction: 2 / 2³
    assert document.change.p == pytest.approx(0.25)
    assert list(change_in_agreement(RATED, "kind", before, AFTER, levels=("all-texts",))[0]) == [
        "all-texts"
    ]


def test_the_interval_of_a_change_depends_only_on_the_seed() -> None:
    # Two copies of each item, because an interval over all texts needs ten.
    rated = [replace(s, item=f"{copy}-{s.item}") for copy in "ab" for s in RATED]

    def twice(values: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
        return {
            (f"{copy}-{item}", system): value
            for copy in "ab"
            for (item, system), value in values.items()
        }

    def change(seed: int) -> Any:
        changes, _ = change_in_agreement(
            rated, "kind", twice(BEFORE), twice(AFTER), levels=("all-texts",), seed=seed
        )
        return changes["all-texts"].change

    assert change(1) == change(1)
    assert change(1) != change(2)


def test_undefined_correlations_have_a_reason() -> None:
    assert change_in_agreement(RATED, "kind", dict.fromkeys(AFTER, 3.0), AFTER) == (
        {},
        "all values are equal",
    )


def test_the_jackknife_of_a_mean_has_its_standard_error() -> None:
    """The jackknife's standard error of a mean is s / √n (Efron 1982, eq. 3.2).

    The degrees of freedom depend on the kurtosis, which is 1 for two values of equal frequency.
    """
    for values in (np.arange(30.0), np.repeat([0.0, 1.0], 15), np.array([*[0.0] * 29, 1.0])):
        n, mean = len(values), values.mean() / 100
        without = (values.sum() - values) / (n - 1) / 100
        low, high, _ = jackknife_interval(mean, without, 0.99)
        kurtosis = stats.kurtosis(values, fisher=False)
        most = n - 1
        freedom = (
            most if kurtosis <= 1 + 1e-9 else max(1, min(most, int(2 * n / (kurtosis - 1)) - 1))
        )
        half = stats.t.ppf(0.995, freedom) * stats.sem(values) / 100
        assert (low, high) == pytest.approx((mean - half, min(2.0, mean + half)))
    assert jackknife_interval(0.1, np.full(19, 0.1), 0.95)[:2] == (None, None)
    assert jackknife_interval(0.1, np.full(20, 0.1), 0.95)[:2] == (0.1, 0.1)
    assert jackknife_interval(0.1, np.array([np.nan] * 20), 0.95)[:2] == (None, None)
