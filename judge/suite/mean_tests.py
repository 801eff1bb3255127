"""Tests of a mean against limits: over several items, or over the draws of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, fsum, log, sqrt
from typing import Literal

import numpy as np

from judge.core.format import (
    format_interval,
    format_p,
    number,
    plural,
    rough_count,
    signed,
)
from judge.core.records import Estimate
from judge.stats.bootstrap import (
    MIN_INTERVAL_ITEMS,
    Floats,
    mean_estimate,
    t_quantile,
    t_test,
    without_interval,
)
from judge.stats.bounded_mean import N_RESAMPLES, chance_beyond
from judge.stats.paired_differences import mean_differences
from judge.stats.power import ALPHA, MIN_ITEMS, Spread
from judge.suite.evidence import NEAR, Parts, item_values, mean_of

_DECIMALS = 9
"""Differences from a limit are rounded, so that rounding errors make no two of them unequal."""
_MANY = 1_000
"""Items from which Student's t is normal."""
_T_STEPS = 5
"""Steps of the iteration for a number of items whose quantile depends on that number."""


@dataclass(frozen=True, slots=True)
class MeanTest:
    """A mean over `items` minus a limit.

    `estimate` has `low` and `high` (None for single replies) and `n` of `unit`s. `deviation` is the
    standard deviation of one unit: an item's value, or a draw. `single`: a single reply is among
    the scores, so that there is no interval. `no_evidence` explains why the items show nothing,
    whatever their mean. `rare_scores` says that a few more low or high scores, which these items
    lack by chance, could move the mean across the limit. `needed` items would decide, if that is
    known.
    """

    estimate: Estimate
    deviation: float | None
    unit: Literal["item", "draw"]
    single: bool = False
    items: int = 1
    no_evidence: str = ""
    rare_scores: str = ""
    needed: int | None = None

    @property
    def too_few_reason(self) -> str:
        """Why the items, or single replies on several items, decide nothing; else empty."""
        if self.no_evidence:
            return self.no_evidence
        if self.single and self.items > 1:
            return f"one reply each: draw more, or test at least {MIN_ITEMS} items"
        return ""

    @property
    def untested_reason(self) -> str:
        """Why exact probabilities of a few items show no lead; else empty."""
        is_exact = (
            self.unit == "draw" and self.estimate.n < 2 and self.estimate.p is None
        )
        if is_exact and self.items > 1:
            return f"no test on fewer than {MIN_ITEMS} items"
        return ""

    @property
    def alike(self) -> str:
        """`5 of 5 draws alike`, `all 12 alike`: the evidence for a value without an interval."""
        n_units = self.estimate.n
        has_interval = self.estimate.low != self.estimate.high
        if self.single or self.no_evidence or has_interval or n_units < 2:
            return ""
        if self.unit == "item":
            return f"all {n_units:,} alike"
        return f"{n_units:,} of {n_units:,} draws alike"

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; of a single reply, its value twice."""
        estimate = self.estimate
        lower_bound = estimate.value if estimate.low is None else estimate.low
        upper_bound = estimate.value if estimate.high is None else estimate.high
        return lower_bound, upper_bound

    @property
    def direction(self) -> int:
        """1 if the whole interval is above the limit, −1 if it is below, else 0.

        A single reply counts by its value.
        """
        lower_bound, upper_bound = self.ends
        if lower_bound > NEAR:
            return 1
        if upper_bound < -NEAR:
            return -1
        return 0

    @property
    def significant_direction(self) -> int:
        """As `direction`, but 0 without evidence or without a significant difference.

        The difference from the limit counts as significant if there is no test.
        """
        p_value = self.estimate.p
        is_insignificant = p_value is not None and p_value >= ALPHA
        if self.no_evidence or self.rare_scores or is_insignificant:
            return 0
        return self.direction

    def moved(self, by: float) -> Estimate:
        """Return the estimate with the limit added again."""
        return _moved(self.estimate, by)

    @property
    def tested(self) -> str:
        """` (p < 0.001)`, or empty without a test."""
        if self.estimate.p is None:
            return ""
        return f" ({format_p(self.estimate.p)})"

    @property
    def items_needed(self) -> str:
        """` (needs about 400 items)`, if the mean is as estimated.

        If no number of items can be given, the p-value or the reason.
        """
        estimate = self.estimate
        if self.needed is not None:
            return needs(self.needed, estimate.n, self.unit) or self.tested
        if self.deviation and estimate.value:
            needed = Spread(estimate.n, estimate.value, self.deviation).needed()
            return needs(needed, estimate.n, self.unit) or self.tested
        # More draws or items would not narrow these bounds.
        if self.unit == "draw" and estimate.p is None and estimate.high != estimate.low:
            return " (unseen probability decides)"
        return self.tested

    @property
    def more_needed(self) -> str:
        """As `items_needed`, but empty instead of a p-value."""
        needed = self.items_needed
        return "" if needed == self.tested else needed


def _moved(estimate: Estimate, by: float) -> Estimate:
    """Return an estimate with its interval moved along the scale."""
    lower_bound = None if estimate.low is None else estimate.low + by
    upper_bound = None if estimate.high is None else estimate.high + by
    return replace(
        estimate,
        value=estimate.value + by,
        low=lower_bound,
        high=upper_bound,
    )


def sum_minus_limit(parts: Parts, limit: float = 0.0, items: int = 1) -> MeanTest:
    """Return Σ c·value − limit, with Student's interval over the draws.

    The interval is widened by what was not seen. The degrees of freedom follow Welch and
    Satterthwaite; `n` is the smallest number of draws.
    """
    weighted_sum = fsum(factor * evidence.value for factor, evidence in parts)
    value = weighted_sum - limit
    numbers_of_draws = [evidence.n for _, evidence in parts if evidence.n > 1]
    n_draws = min(numbers_of_draws, default=1)
    lows: list[float] = []
    highs: list[float] = []
    for factor, evidence in parts:
        if evidence.low is None or evidence.high is None:
            method = "a single reply: no interval"
            estimate = without_interval(
                name="value", value=value, n=n_draws, reason=method
            )
            return MeanTest(estimate, None, "draw", single=True, items=items)
        # A negative factor turns the lower bound into the upper one.
        ends = (factor * evidence.low, factor * evidence.high)
        lows.append(min(ends))
        highs.append(max(ends))
    spread = _spread_of_draws(parts, value)
    lower_bound = fsum(lows) - limit - spread.half_width
    upper_bound = fsum(highs) - limit + spread.half_width
    method = "bounds for any distribution of the unlisted probability"
    deviation = None
    if n_draws > 1:
        method = f"95% interval over {n_draws} draws, Student's t"
        deviation = sqrt(spread.variance * n_draws)
    # A value by token probabilities may lie outside its bounds by a thousandth of the scale.
    lower_bound = min(lower_bound, value)
    upper_bound = max(upper_bound, value)
    estimate = Estimate(
        name="value",
        value=value,
        low=lower_bound,
        high=upper_bound,
        n=n_draws,
        method=method,
        p=spread.p,
    )
    return MeanTest(estimate, deviation, "draw", items=items)


@dataclass(frozen=True, slots=True)
class _DrawSpread:
    """The variance of a sum over draws, half of its interval's width, and the p-value."""

    variance: float
    half_width: float = 0.0
    p: float | None = None


def _spread_of_draws(parts: Parts, value: float) -> _DrawSpread:
    """Return the spread of a sum whose value is `value`."""
    variances: list[float] = []
    numbers_of_draws: list[int] = []
    for factor, evidence in parts:
        if evidence.sd:
            deviation = factor * evidence.sd
            variances.append(deviation**2 / evidence.n)
            numbers_of_draws.append(evidence.n)
    variance = fsum(variances)
    # All draws alike, or exact probabilities: only the bounds are left.
    if variance <= 0:
        return _DrawSpread(variance)
    standard_error = sqrt(variance)
    # Degrees of freedom by Welch and Satterthwaite: V² / Σ (v² / (n − 1)).
    terms: list[float] = []
    for variance_of_term, n_draws in zip(variances, numbers_of_draws, strict=True):
        share = variance_of_term / variance
        terms.append(share**2 / (n_draws - 1))
    degrees_of_freedom = 1 / fsum(terms)
    quantile = t_quantile(ALPHA / 2, degrees_of_freedom)
    return _DrawSpread(
        variance,
        half_width=quantile * standard_error,
        p=t_test(value / standard_error, degrees_of_freedom),
    )


def needs(needed: int | None, available: int, unit: str) -> str:
    """Write ` (needs about 400 items)`; nothing if that is unknown, or if they are available."""
    if needed is None or needed <= available:
        return ""
    return f" (needs {rough_count(needed)} {unit}s)"


def mean(
    items: Sequence[Parts],
    *limits: float,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> list[MeanTest]:
    """Return the mean over items (each a weighted sum of scores) minus each limit.

    From six items on, interval and p are over items (`mean_differences`). With fewer, no test can
    generalize: the result is about these texts alone, and the interval is over their draws.
    """
    if len(items) < MIN_ITEMS:
        # The mean of the items is a weighted sum of all their draws.
        parts = mean_of(items)
        return [sum_minus_limit(parts, limit, len(items)) for limit in limits]
    scores = item_values(items)
    limit_rows = np.array(limits)[:, None]
    differences = np.round(scores[None, :] - limit_rows, _DECIMALS)
    deviation = float(scores.std(ddof=1))
    estimates = mean_differences(differences, n_resamples=n_resamples, seed=seed)
    # None is an estimate without items, and here are at least `MIN_ITEMS`.
    known_estimates = [estimate for estimate in estimates if estimate is not None]
    return [
        MeanTest(estimate, deviation, "item", items=len(items))
        for estimate in known_estimates
    ]


def mean_on_scale(
    items: Sequence[Parts],
    *limits: float,
    low: float | None,
    high: float | None,
    fewest: int = MIN_INTERVAL_ITEMS,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> list[MeanTest]:
    """Return the mean over items on a scale from `low` to `high`, minus each limit.

    Each item is a weighted sum of scores. The interval is the report's (`mean_estimate`). Fewer
    than `fewest` items show nothing. If the interval excludes the limit, rare scores at the end of
    the scale must not be able to make up for it (`chance_beyond`): without this, gates pass too
    often if most scores are alike.
    """
    scores = item_values(items)
    estimate = mean_estimate(scores, low, high, fewest=fewest)
    no_evidence = ""
    if len(items) < fewest:
        n_items = plural(len(items), "item")
        no_evidence = f"{n_items}: at least {fewest} needed"
    elif estimate.low is None:
        no_evidence = estimate.method
    deviation = 0.0
    if len(items) > 1:
        deviation = float(scores.std(ddof=1))
    tests: list[MeanTest] = []
    for limit in limits:
        from_limit = _moved(estimate, -limit)
        mean_test = MeanTest(
            from_limit,
            deviation,
            "item",
            items=len(items),
            no_evidence=no_evidence,
        )
        # Only an end of the scale beyond the limit could pull the mean across it: none is below a
        # limit that is the lowest score.
        end_beyond = low if estimate.value > limit else high
        if no_evidence or end_beyond is None or abs(end_beyond - limit) <= NEAR:
            tests.append(mean_test)
            continue
        needed = None
        if low is not None and high is not None:
            needed = _items_on_scale(scores, limit, end_beyond, high - low)
        rare_scores = _rare_scores(
            scores,
            mean_test,
            limit,
            end_beyond,
            n_resamples=n_resamples,
            seed=seed,
        )
        tests.append(replace(mean_test, rare_scores=rare_scores, needed=needed))
    return tests


def with_bounds_of_equal_items(
    mean_test: MeanTest,
    limit: float,
    low: float,
    high: float,
) -> MeanTest:
    """Return the test of items that all have the same value, with an interval.

    Of n equal items, a share of 1 − (α / 2)^(1 / n) of all items may have any other value from
    `low` to `high` and not have been seen (Clopper and Pearson 1934). The interval reaches as far
    as this share can move the mean.
    """
    estimate = mean_test.estimate
    value = estimate.value + limit
    unseen_share = 1 - (ALPHA / 2) ** (1 / estimate.n)
    bounds = replace(
        estimate,
        low=estimate.value - unseen_share * (value - low),
        high=estimate.value + unseen_share * (high - value),
        method="95% bounds for equal items, Clopper and Pearson",
    )
    end_beyond = low if value > limit else high
    distance = abs(estimate.value)
    needed = None
    if distance > NEAR:
        # 1 − (α / 2)^(1 / n) is about −ln(α / 2) / n.
        distance_of_end = abs(value - end_beyond)
        needed = ceil(-log(ALPHA / 2) * distance_of_end / distance)
    return replace(mean_test, estimate=bounds, needed=needed)


def _rare_scores(
    scores: Floats,
    mean_test: MeanTest,
    limit: float,
    end: float,
    *,
    n_resamples: int,
    seed: int,
) -> str:
    """Say that rare scores at an `end` of the scale could move the mean across the limit, or "".

    The mean is significantly above or below the limit, but too few items show that there are no
    more such scores. The limit follows the text.
    """
    if not mean_test.direction:
        return ""
    chance = chance_beyond(scores, limit, end, n_resamples=n_resamples, seed=seed)
    if chance < ALPHA / 2:
        return ""
    rare = "high"
    side = "above"
    if end < limit:
        rare = "low"
        side = "below"
    items = plural(len(scores), "item")
    # "low" and not the end itself: a pass rate's scores are not those of its criterion's scale.
    return f"{items} may have too few {rare} scores by chance, so the true value may be {side}"


def _items_on_scale(
    scores: Floats, limit: float, end: float, width: float
) -> int | None:
    """Estimate how many items like these would show on which side of the limit the mean is.

    `end` is the end of the scale beyond the limit, `width` its length. None if the mean is at the
    limit.
    """
    mean_score = float(scores.mean())
    distance = abs(mean_score - limit)
    if distance <= NEAR:
        return None
    # A share of 1 − (α / 2)^(1 / n) of the items may have any score unseen; about 3.7 / n.
    distance_of_end = abs(mean_score - end)
    against_rare = -log(ALPHA / 2) * distance_of_end / distance
    variance = 0.0
    if len(scores) > 1:
        variance = float(scores.var(ddof=1))
    # The mean and the limit as shares of the scale, from the end beyond the limit.
    share = distance_of_end / width
    share_at_limit = abs(limit - end) / width
    # Wilson's interval reaches the limit if (share − limit)² = t² · limit · (1 − limit) / tries.
    tries_per_item = 1.0
    if variance > 0:
        largest_variance = share * (1 - share) * width**2
        tries_per_item = largest_variance / variance
    variance_at_limit = share_at_limit * (1 - share_at_limit)
    tries_per_squared_quantile = variance_at_limit / (share - share_at_limit) ** 2
    n_items = float(MIN_INTERVAL_ITEMS)
    for _ in range(_T_STEPS):
        degrees_of_freedom = int(min(n_items, _MANY)) - 1
        quantile = t_quantile(ALPHA / 2, degrees_of_freedom)
        tries = quantile**2 * tries_per_squared_quantile
        n_items = max(MIN_INTERVAL_ITEMS, tries / tries_per_item)
    needed = ceil(max(against_rare, n_items))
    if variance > 0:
        spread = Spread(len(scores), mean_score - limit, sqrt(variance))
        needed = max(needed, spread.needed() or 0)
    return needed


def format_estimate(estimate: Estimate, decimals: int) -> str:
    """Write `4.62 [4.31, 4.93]`; the value alone if both ends read the same."""
    value = number(estimate.value, decimals)
    interval = format_ends(estimate, decimals)
    return f"{value} {interval}".rstrip()


def format_ends(estimate: Estimate, decimals: int) -> str:
    """Write `[4.31, 4.93]`; empty without an interval, or if both ends read the same."""
    if estimate.low is None or estimate.high is None:
        return ""
    if number(estimate.low, decimals) == number(estimate.high, decimals):
        return ""
    return format_interval(estimate.low, estimate.high, decimals)


def format_change(estimate: Estimate, decimals: int) -> str:
    """Write `+1.30 [1.00, 1.60]`."""
    change = signed(estimate.value, decimals)
    interval = format_ends(estimate, decimals)
    return f"{change} {interval}".rstrip()
