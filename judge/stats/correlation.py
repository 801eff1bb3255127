"""Correlate columns with people's ratings.

`CorrelationWithRatings` correlates columns with ratings and compares two columns.
`rater_correlation` does this for a rater, `change_in_agreement` for two runs. All have three
levels: within items, over texts, between system means; the first has intervals of a mean over
items, the others bootstrap intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

from judge.core.records import Column, Estimate, Sample
from judge.stats.bootstrap import (
    MIN_INTERVAL_ITEMS,
    Bools,
    Bootstrap,
    Floats,
    Interval,
    Resampled,
    Statistic,
    all_known,
    mean_estimate,
    sum_of_squares,
    t_quantile,
    t_test,
    too_few,
    without_interval,
    without_nan,
)
from judge.stats.coefficients import (
    COEFFICIENTS,
    LEVELS,
    Coefficient,
    Key,
    Level,
    Pair,
    average,
    of_pair,
    paired,
    rounded,
    within,
)
from judge.stats.paired_differences import mean_difference, mean_differences
from judge.table import Text, matrix

Values = Mapping[Text, float]
"""By item and system."""
UNITS: Mapping[Level, str] = {
    "within-items": "item",
    "all-texts": "text",
    "systems": "system",
}
"""The unit of an estimate's `n`."""
NAMES = {
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "pearson": "Pearson's r",
}
OVER = {
    "within-items": "between the systems of an item, mean over items",
    "all-texts": "over all texts",
    "systems": "between the systems' means",
}
OVER_IN_SENTENCES: Mapping[Level, str] = {
    "within-items": "within items",
    "all-texts": "over all texts",
    "systems": "between the systems' means",
}
"""The same in few words, for the sentence above a table that has the others."""
MIN_CORRELATION_ITEMS = 3  # texts or systems: with two, every coefficient is 1 or −1
CONCLUSIVE = 5
"""Fewer systems are not compared by their means.

Four match the order of their ratings, or its reverse, by chance in one of twelve cases.
"""
FEWEST_ITEMS: Mapping[Level, int] = {
    "within-items": MIN_INTERVAL_ITEMS,
    "all-texts": MIN_INTERVAL_ITEMS,
    "systems": 50,
}
"""Fewer items choose no candidate (`selection`)."""
INTERVAL_ITEMS: Mapping[Level, int] = {
    "within-items": MIN_INTERVAL_ITEMS,
    "all-texts": 10,
}
"""Fewer items have no interval.

Over all texts, one of 5 items held its level in 68–89% (`benchmarks/claims.py`). Systems' means
have none.
"""
INTERVAL_ITEMS_OF_DIFFERENCES: Mapping[Level, int] = {**INTERVAL_ITEMS, "all-texts": 20}
"""The same for the difference of two columns that are compared together with others.

With fewer items, equally good judges differ too often over all texts, if most ratings are the best
one (`benchmarks/equal_judges.py`).
"""
NO_SYSTEM_INTERVAL = (
    "no interval: noise in the systems' means pulls resamples towards 0"
)
"""The reason for a missing interval between systems.

Percentile and BCa intervals held the true coefficient of 12 systems in 0–31% of simulations
(`benchmarks/claims.py`).
"""
_MAX_WEIGHTS = 4_000_000  # in memory
METHOD_WITHIN_ITEMS = "95% Wilson interval with Student's t over items"
_MAX_SYSTEMS = 200  # all pairs are compared in every resample

# With people's ratings


@dataclass(frozen=True, slots=True)
class Correlation:
    """The correlations of a column with people's ratings, and the reason for each missing level.

    `texts` have a value and a rating. The `n` of an estimate counts its items, texts or systems.
    """

    texts: int
    estimates: Mapping[Key, Estimate]
    lacking: Mapping[Level, str]


def usual_level(rated: Iterable[Sample]) -> Level:
    """Return `within-items` if most items have at least three texts, else `all-texts`.

    With two texts, every coefficient within an item is 1 or −1.
    """
    texts_by_item = Counter(sample.item for sample in rated)
    if not texts_by_item:
        return "all-texts"
    enough_texts = median(texts_by_item.values()) >= MIN_CORRELATION_ITEMS
    return "within-items" if enough_texts else "all-texts"


def usual_level_of(scored: Iterable[Values], rated: Sequence[Sample]) -> Level:
    """Return the level at which every judge has enough of the rated texts.

    `scored` has the judges' values. If a judge failed on all texts of a system, its correlations
    are between fewer texts than people rated.
    """
    for values in scored:
        texts = [sample for sample in rated if sample.key in values]
        if texts and usual_level(texts) == "all-texts":
            return "all-texts"
    return usual_level(rated)


def criterion(column: Column) -> str:
    """Return the name of a column's criterion."""
    return column.criterion or column.name


class CorrelationWithRatings:
    """Correlate columns with the same ratings, on the same resamples.

    Values and ratings are items × systems with NaN for missing values; a text counts if it has
    both. At level `within-items` intervals are for a mean over items. At level `all-texts` they are
    percentile intervals over resampled items with all their texts (for tau-b, see `pooled`),
    without resamples that have no value. Below INTERVAL_ITEMS and at level `systems` there is none.
    Each statistic is computed once.
    """

    def __init__(self, ratings: Floats, bootstrap: Bootstrap) -> None:
        self._ratings = rounded(ratings)
        self._bootstrap = bootstrap
        self._resampled: dict[tuple[bytes, bytes, Key], Resampled] = {}

    def correlate(self, values: Floats) -> Correlation:
        """Correlate one column with the ratings.

        `within-items` is the mean over items with at least two texts in which both sides vary;
        `method` counts the others. `all-texts` needs three texts, `systems` three systems.
        """
        pair = paired(values, self._ratings)
        is_known = ~np.isnan(pair[0])

        def drawn(key: Key) -> Resampled:
            return self._drawn(values, is_known, key)

        return _correlation([pair], drawn, "", self._bootstrap)

    def difference(
        self,
        values: Floats,
        other_values: Floats,
        level: Level,
        coefficient: Coefficient = "spearman",
        n_intervals: int | None = None,
    ) -> Estimate | None:
        """Return the coefficient of `values` minus that of `other_values`.

        Texts count if they have both and a rating. None if undefined, and between the means of
        fewer than five systems. At level `within-items` it is the mean over items in which both are
        defined. Pearson's has the p of Williams' test between systems, and over all texts if each
        item has one: the test assumes independent texts.

        `n_intervals` is for columns that are compared together: the number of intervals that hold
        together with the confidence (Bonferroni's correction; p is not corrected). The interval
        over texts is then Student's t with the jackknife's standard error over items, because
        percentiles are too narrow so far from the middle. It needs INTERVAL_ITEMS_OF_DIFFERENCES.
        """
        # Bonferroni: each interval has its part of the error.
        error_of_each = (1 - self._bootstrap.confidence) / max(1, n_intervals or 1)
        bootstrap = replace(self._bootstrap, confidence=1 - error_of_each)
        compared = self._on_shared_texts(values, other_values)
        n = compared.size(level)
        if not n:
            return None
        method = f"difference of {NAMES[coefficient]} {OVER[level]}"
        if level == "within-items":
            by_item = compared.differences_within_items(coefficient)
            return _difference_within_items(by_item, method, bootstrap.confidence)
        key = (level, coefficient)
        first = self._drawn(values, compared.known, key)
        second = self._drawn(other_values, compared.known, key)
        value = first.value - second.value
        drawn_differences = first.resampled - second.resampled
        difference = Resampled(value, drawn_differences, first.items)
        if np.isnan(value):
            return None
        estimate: Estimate | None
        if level == "all-texts" and n_intervals is not None:
            without_each = compared.without_each_item(key)
            interval = jackknife_interval(value, without_each, bootstrap.confidence)
            estimate = Estimate(
                name="difference",
                value=value,
                low=interval.low,
                high=interval.high,
                n=n,
                method=f"{method}; {interval.method}",
            )
        else:
            estimate = _resampled_estimate(
                "difference",
                difference,
                n,
                method,
                level=level,
                bootstrap=bootstrap,
            )
        if estimate is None or coefficient != "pearson":
            return estimate
        # Williams' test assumes independent texts: with 4 systems per item, it finds a difference
        # of equally good judges in 9% to 17% of simulations.
        if level == "all-texts" and n > difference.items:
            return estimate
        # It also needs the correlation of the two columns with each other.
        r_between = compared.correlation_of_columns(key)
        return _with_williams_test(estimate, first.value, second.value, r_between)

    def _on_shared_texts(
        self, values: Floats, other_values: Floats
    ) -> _ComparedColumns:
        """Return two columns with the ratings, on the texts that have both values and a rating."""
        has_both = all_known(values, other_values)
        is_known = has_both & ~np.isnan(self._ratings)
        ratings = np.where(is_known, self._ratings, np.nan)
        pair = paired(values, ratings)
        other_pair = paired(other_values, ratings)
        return _ComparedColumns(is_known, pair, other_pair)

    def change(self, before: Floats, after: Floats, level: Level) -> Estimate | None:
        """Return Spearman after minus before, of one column in two runs, or None if undefined.

        `within-items` has the p of a sign-flip test over the items' coefficients; the other levels
        use the interval.
        """
        if level != "within-items":
            return self.difference(after, before, level)
        coefficients_after = within(after, self._ratings, "spearman")
        coefficients_before = within(before, self._ratings, "spearman")
        changes = coefficients_after - coefficients_before
        return mean_differences(changes[None, :], seed=self._bootstrap.seed)[0]

    def _drawn(self, values: Floats, is_known: Bools, key: Key) -> Resampled:
        """Return the coefficient of these values with the ratings, on the known texts."""
        # Columns that differ by rounding only share their resamples.
        cell = (rounded(values).tobytes(), is_known.tobytes(), key)
        if cell not in self._resampled:
            ratings = np.where(is_known, self._ratings, np.nan)
            statistic = of_pair(values, ratings, *key)
            self._resampled[cell] = _draw(statistic, is_known, key, self._bootstrap)
        return self._resampled[cell]


class _ComparedColumns(NamedTuple):
    """Two columns, each with people's ratings, on the `known` texts that have all three."""

    known: Bools
    pair: Pair
    other_pair: Pair

    def size(self, level: Level) -> int:
        """Return the number of items, texts or systems to compare.

        It is 0 if a coefficient is undefined, and for the means of fewer than five systems.
        """
        pairs = [self.pair, self.other_pair]
        if any(_reason_undefined([pair], level) for pair in pairs):
            return 0
        n = _sample_size(pairs, level)
        if level == "systems" and n < CONCLUSIVE:
            return 0
        return n

    def differences_within_items(self, coefficient: Coefficient) -> Floats:
        """Return the difference of the two coefficients in each item, NaN if undefined."""
        coefficients = within(*self.pair, coefficient)
        other_coefficients = within(*self.other_pair, coefficient)
        return coefficients - other_coefficients

    def without_each_item(self, key: Key) -> Floats:
        """Return the difference of the two coefficients without each of the items."""
        used_items = self.known.any(axis=1)
        values, ratings = self.pair
        other_values, _ = self.other_pair
        without = _without_each(values[used_items], ratings[used_items], key)
        other_without = _without_each(
            other_values[used_items], ratings[used_items], key
        )
        return without - other_without

    def correlation_of_columns(self, key: Key) -> float:
        """Return the correlation of the two columns with each other."""
        values, _ = self.pair
        other_values, _ = self.other_pair
        statistic = of_pair(values, other_values, *key)
        all_once = np.ones((1, len(self.known)))
        return float(statistic(all_once)[0])


def _with_williams_test(
    estimate: Estimate,
    first_value: float,
    second_value: float,
    r_between: float,
) -> Estimate:
    """Return the estimate with the p of Williams' test, unchanged if that is undefined."""
    n = estimate.n
    test = williams(first_value, second_value, r_between, n)
    if test is None:
        return estimate
    test_name = f"Williams' test, t({n - 3}) = {test.t:.2f}"
    return replace(estimate, p=test.p, test=test_name)


def _draw(
    statistic: Statistic, is_known: Bools, key: Key, bootstrap: Bootstrap
) -> Resampled:
    """Return a statistic of the known texts, with resamples if its level has intervals."""
    level, _ = key
    n_items = int(is_known.any(axis=1).sum())
    if level == "systems":
        # Without an interval (NO_SYSTEM_INTERVAL), nobody reads the resamples.
        return bootstrap.observed(statistic, len(is_known), n_items)
    return bootstrap.resampled(statistic, len(is_known), n_items)


def _difference_within_items(
    by_item: Floats, method: str, confidence: float
) -> Estimate | None:
    """Return the mean of the items' differences, NaN if undefined; None if all are NaN."""
    known_differences = without_nan(by_item)
    if not len(known_differences):
        return None
    # Judges and baselines are compared by the interval, without a sign-flip test.
    estimate = mean_difference(known_differences, confidence)
    if estimate.value and not np.ptp(known_differences):
        # Student's t has no interval for equal differences; that on a scale has one.
        estimate = mean_estimate(known_differences, -2.0, 2.0, confidence=confidence)
    note = f"{method}; {estimate.method}"
    return replace(estimate, name="difference", method=note)


def jackknife_interval(value: float, without: Floats, confidence: float) -> Interval:
    """Return Student's t interval of a difference of two coefficients.

    `without` are its values without each item. Its standard error is the jackknife's (Efron 1982,
    ch. 3). The degrees of freedom belong to a variance with the kurtosis of the items, 2 n /
    (kurtosis − 1) − 1 and at most n − 1 (Satterthwaite 1946): few items may decide a difference.
    None below INTERVAL_ITEMS_OF_DIFFERENCES, and if the difference is undefined without one of the
    items.
    """
    n = len(without)
    if n < INTERVAL_ITEMS_OF_DIFFERENCES["all-texts"] or np.isnan(without).any():
        return Interval(None, None, too_few(n))
    deviations = without - without.mean()
    # Deviations of equal values can be 1e-17 instead of 0, which would give them a kurtosis.
    varies = np.ptp(without) > 0
    squares = sum_of_squares(deviations) if varies else 0.0
    freedom = n - 1
    if squares:
        fourth_powers = float((deviations**4).sum())
        kurtosis = n * fourth_powers / squares**2
        freedom = _freedom_of_variance(n, kurtosis)
    # The jackknife's variance: (n − 1) / n times the sum of squares, as each value leaves out one.
    error = sqrt((n - 1) / n * squares)
    half = t_quantile((1 - confidence) / 2, freedom) * error
    method = f"{100 * confidence:.6g}% t interval, jackknife over items"
    # Two coefficients differ by 2 at most.
    lower_bound = max(-2.0, value - half)
    upper_bound = min(2.0, value + half)
    return Interval(lower_bound, upper_bound, method)


def _freedom_of_variance(n: int, kurtosis: float) -> int:
    """Return the degrees of freedom of a variance of n values (see `jackknife_interval`)."""
    # 1 is the smallest kurtosis: two values, equally often. Their variance does not vary.
    if kurtosis <= 1:
        return n - 1
    freedom = int(2 * n / (kurtosis - 1)) - 1
    return max(1, min(n - 1, freedom))


def _without_each(values: Floats, ratings: Floats, key: Key) -> Floats:
    """Return a coefficient of values and ratings without each of the items."""
    statistic = of_pair(values, ratings, *key)
    n_items = len(values)
    # A part of the n × n weights at a time, so that many items fit into memory.
    rows_of_part = max(1, _MAX_WEIGHTS // n_items)
    chunks: list[Floats] = []
    for first_item in range(0, n_items, rows_of_part):
        size = min(rows_of_part, n_items - first_item)
        all_but_one = 1.0 - np.eye(size, n_items, first_item)
        chunks.append(statistic(all_but_one))
    return np.concatenate(chunks)


class WilliamsTest(NamedTuple):
    """t with n − 3 degrees of freedom, and its two-sided p."""

    t: float
    p: float


def williams(
    r_one: float, r_other: float, between: float, n: int
) -> WilliamsTest | None:
    """Test r_one = r_other (Williams 1959; Steiger 1980, eq. 7).

    Two variables correlate with a third by r_one and r_other, and with each other by `between`,
    over n independent cases. Return None for fewer than four cases or if the variables determine
    each other.
    """
    if n < 4:
        return None
    if r_one == r_other:
        return WilliamsTest(0.0, 1.0)
    # |R| in the paper: the determinant of the three variables' correlation matrix.
    without_product = 1 - r_one**2 - r_other**2 - between**2
    determinant = without_product + 2 * r_one * r_other * between
    mean_r = (r_one + r_other) / 2
    scale = 2 * (n - 1) / (n - 3)
    # Rounding can make the determinant of nearly dependent variables slightly negative.
    determined = scale * max(determinant, 0.0)
    spread = determined + mean_r**2 * (1 - between) ** 3
    if not spread > 0:
        return None
    inverse_variance = (n - 1) * (1 + between) / spread
    t = (r_one - r_other) * sqrt(inverse_variance)
    return WilliamsTest(t, t_test(t, n - 3))


class Shift(NamedTuple):
    """Spearman with people's ratings before and after, and the difference; None if undefined."""

    before: Estimate
    after: Estimate
    change: Estimate | None


def change_in_agreement(
    rated: Sequence[Sample],
    rating: str,
    before: Values,
    after: Values,
    *,
    levels: Sequence[Level] = LEVELS,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[dict[Level, Shift], str]:
    """Compare how well two runs correlate with people's ratings.

    `rating` is the name of the ratings. Texts count if they have a value in both runs. Return the
    shift of each level at which both have a coefficient, and why one is missing. `seed` sets
    resamples and tests, `confidence` is that of resampled intervals.
    """
    old = matrix(rated, before)
    new = matrix(rated, after)
    values = {sample.key: sample.human[rating] for sample in rated}
    ratings = matrix(rated, values)
    missing = np.isnan(old) | np.isnan(new)
    shared = np.where(missing, np.nan, ratings)
    against = CorrelationWithRatings(
        shared, Bootstrap(seed=seed, confidence=confidence)
    )
    old_correlation = against.correlate(old)
    new_correlation = against.correlate(new)
    shifts: dict[Level, Shift] = {}
    for level in levels:
        old_estimate = old_correlation.estimates.get((level, "spearman"))
        new_estimate = new_correlation.estimates.get((level, "spearman"))
        if old_estimate is not None and new_estimate is not None:
            change = against.change(old, new, level)
            shifts[level] = Shift(old_estimate, new_estimate, change)
    reasons = [*old_correlation.lacking.values(), *new_correlation.lacking.values()]
    first_reason = reasons[0] if reasons else ""
    return shifts, first_reason


def rater_correlation(votes: Floats, bootstrap: Bootstrap) -> Correlation:
    """Correlate each rater with the mean of the others, and average over raters.

    At level `within-items` the average is within items. `votes` are raters × items × systems, NaN
    for missing ratings. See `CorrelationWithRatings` for the rest.
    """
    voted = ~np.isnan(votes)
    filled_votes = np.where(voted, votes, 0.0)
    sum_of_others = filled_votes.sum(axis=0) - filled_votes
    number_of_others = voted.sum(axis=0) - voted
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_of_others = sum_of_others / number_of_others
    raters_and_means = zip(votes, mean_of_others, strict=True)
    pairs = [paired(rater, mean) for rater, mean in raters_and_means]

    def drawn(key: Key) -> Resampled:
        statistics = [of_pair(*pair, *key) for pair in pairs]

        def mean_over_raters(counts: Floats) -> Floats:
            return average([statistic(counts) for statistic in statistics])

        n_items = int(_complete_texts(pairs).any(axis=1).sum())
        return bootstrap.resampled(mean_over_raters, votes.shape[1], n_items)

    subject = f"one of {len(votes)} raters against the mean of the others, averaged: "
    return _correlation(pairs, drawn, subject, bootstrap)


def minus_one_rater(
    values: Floats,
    votes: Floats,
    bootstrap: Bootstrap,
    level: Level = "within-items",
) -> Estimate | None:
    """Return a judge's Spearman with the mean of the other raters, minus a rater's own.

    Each rater is left out in turn, and the difference is averaged over raters. `values` are items ×
    systems, `votes` raters × items × systems, NaN if missing; a text counts for a rater if it has
    the judge's value, the rater's and another rater's. At the level `within-items` it is the mean
    over items with at least two texts in which all three vary; else, or if there is no such item,
    over all texts. None if neither is defined.
    """
    pairs: list[_JudgeAndRater] = []
    for index, rater in enumerate(votes):
        others = average(np.delete(votes, index, axis=0))
        is_known = all_known(values, rater, others)
        others = np.where(is_known, others, np.nan)
        pairs.append(_JudgeAndRater(paired(values, others), paired(rater, others)))
    if not pairs:
        return None
    subject = f"judge minus one of {len(votes)} raters, against the mean of the others: Spearman"
    if level == "within-items":
        by_rater = [pair.differences_within_items() for pair in pairs]
        method = f"{subject} {OVER['within-items']}"
        estimate = _difference_within_items(
            average(by_rater), method, bootstrap.confidence
        )
        if estimate is not None:
            return estimate
    return _minus_one_rater_over_texts(pairs, subject, bootstrap)


class _JudgeAndRater(NamedTuple):
    """A judge's values and one rater's, each with the mean of the other raters."""

    judge: Pair
    rater: Pair

    def differences_within_items(self) -> Floats:
        """Return the judge's Spearman minus the rater's in each item, NaN if undefined."""
        of_judge = within(*self.judge, "spearman")
        of_rater = within(*self.rater, "spearman")
        return of_judge - of_rater

    def difference_over_texts(self) -> Statistic:
        """Return the judge's Spearman minus the rater's over all texts."""
        of_judge = of_pair(*self.judge, "all-texts", "spearman")
        of_rater = of_pair(*self.rater, "all-texts", "spearman")
        return lambda counts: of_judge(counts) - of_rater(counts)


def _minus_one_rater_over_texts(
    pairs: Sequence[_JudgeAndRater],
    subject: str,
    bootstrap: Bootstrap,
) -> Estimate | None:
    """Return the difference of `minus_one_rater` over all texts, None if it is undefined."""
    usable = [pair for pair in pairs if not _reason_undefined(pair, "all-texts")]
    if not usable:
        return None
    statistics = [pair.difference_over_texts() for pair in usable]

    def mean_over_raters(counts: Floats) -> Floats:
        return average([difference(counts) for difference in statistics])

    known_texts = _complete_texts([pair.judge for pair in usable])
    n_items = int(known_texts.any(axis=1).sum())
    drawn = bootstrap.resampled(mean_over_raters, len(known_texts), n_items)
    return _resampled_estimate(
        "difference",
        drawn,
        int(known_texts.sum()),
        f"{subject} {OVER['all-texts']}",
        level="all-texts",
        bootstrap=bootstrap,
    )


def _correlation(
    pairs: Sequence[Pair],
    drawn: Callable[[Key], Resampled],
    subject: str,
    bootstrap: Bootstrap,
) -> Correlation:
    """Average the coefficients of these pairs of sides at every level; `drawn` resamples them."""
    lacking: dict[Level, str] = {}
    for level in LEVELS:
        reason = _reason_undefined(pairs, level)
        if reason:
            lacking[level] = reason
    sizes = {level: _sample_size(pairs, level) for level in LEVELS}
    left_out = _items_left_out(pairs, sizes["within-items"])
    estimates: dict[Key, Estimate] = {}
    for level, coefficient in product(LEVELS, COEFFICIENTS):
        if level in lacking:
            continue
        method = f"{subject}{NAMES[coefficient]} {OVER[level]}"
        estimate: Estimate | None
        if level == "within-items":
            by_item = average([within(*pair, coefficient) for pair in pairs])
            estimate = mean_over_items(
                coefficient,
                by_item,
                method + left_out,
                bootstrap.confidence,
            )
        else:
            resampled = drawn((level, coefficient))
            estimate = _resampled_estimate(
                coefficient,
                resampled,
                sizes[level],
                method,
                level=level,
                bootstrap=bootstrap,
            )
        if estimate is not None:
            estimates[level, coefficient] = estimate
    return Correlation(sizes["all-texts"], estimates, lacking)


def _items_left_out(pairs: Sequence[Pair], n_used: int) -> str:
    """Describe the items without a coefficient within them, if there are any; `n_used` have one."""
    texts_of_item = _complete_texts(pairs).sum(axis=1)
    n_items = int((texts_of_item > 0).sum())
    n_single = int((texts_of_item == 1).sum())
    n_constant = n_items - n_used - n_single
    reasons: list[str] = []
    if n_constant:
        reasons.append(f"{n_constant} in which values or ratings do not vary")
    if n_single:
        reasons.append(f"{n_single} of one text")
    if not reasons:
        return ""
    return f"; left out of {n_items}: {' and '.join(reasons)}"


def _resampled_estimate(
    name: str,
    drawn: Resampled,
    n: int,
    method: str,
    *,
    level: Level,
    bootstrap: Bootstrap,
) -> Estimate | None:
    """Return a bootstrap estimate over texts; None if it is undefined.

    Between systems it is the value alone.
    """
    if level != "systems":
        return bootstrap.estimate(name, drawn, n, method, INTERVAL_ITEMS[level])
    if np.isnan(drawn.value):
        return None
    return without_interval(
        name=name, value=drawn.value, n=n, reason=f"{method}; {NO_SYSTEM_INTERVAL}"
    )


def mean_over_items(
    name: str, by_item: Floats, method: str, confidence: float
) -> Estimate | None:
    """Return the mean of the items' coefficients, NaN if undefined; None if all are NaN."""
    known_coefficients = without_nan(by_item)
    if not len(known_coefficients):
        return None
    estimate = mean_estimate(known_coefficients, -1.0, 1.0, confidence=confidence)
    return replace(estimate, name=name, method=f"{method}; {estimate.method}")


def _sample_size(pairs: Sequence[Pair], level: Level) -> int:
    """Return the number of items, texts or systems that a level compares."""
    if level == "within-items":
        by_item = average([within(*pair, "spearman") for pair in pairs])
        return int((~np.isnan(by_item)).sum())
    is_complete = _complete_texts(pairs)
    if level == "all-texts":
        return int(is_complete.sum())
    in_system = is_complete.any(axis=0)
    return int(in_system.sum())


def _complete_texts(pairs: Sequence[Pair]) -> Bools:
    """Return which texts have both sides of a pair, items × systems."""
    missing = np.isnan([first_side for first_side, _ in pairs])
    return np.asarray(~missing.all(axis=0))


def _reason_undefined(pairs: Sequence[Pair], level: Level) -> str:
    """Return why a level has no coefficient, or nothing if it has one."""
    is_complete = _complete_texts(pairs)
    texts = int(is_complete.sum())
    if not texts:
        return "no text has both a value and a rating"
    if texts > 1 and all(_is_constant(values) for values, _ in pairs):
        return "all values are equal"
    if texts > 1 and all(_is_constant(ratings) for _, ratings in pairs):
        # Several raters can disagree on every text and still have equal means.
        return "all texts have the same mean rating"
    reason = too_few_for_level(is_complete, level)
    if reason:
        return reason
    if level == "systems" and is_complete.any(axis=0).sum() > _MAX_SYSTEMS:
        return f"there are more than {_MAX_SYSTEMS} systems"
    if level == "within-items" and not _sample_size(pairs, level):
        return "in no item do both the values and the ratings differ between texts"
    return ""


def _is_constant(side: Floats) -> bool:
    """Return whether all known values of a side are equal, also if there is none."""
    known_values = without_nan(side)
    return not len(known_values) or bool(known_values.min() == known_values.max())


def too_few_for_level(is_known: Bools, level: Level) -> str:
    """Return why a level has no coefficient between these texts (items × systems).

    Return nothing if they are enough.
    """
    if level == "all-texts":
        n_known = is_known.sum()
        units = "texts"
    else:
        n_known = is_known.any(axis=0).sum()
        units = "systems"
    least = 2 if level == "within-items" else MIN_CORRELATION_ITEMS
    if n_known >= least:
        return ""
    return f"there are fewer than {least} {units}"
