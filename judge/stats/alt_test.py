"""The alternative annotator test: may a judge replace a human rater?

The source is Calderon, Reichart and Dror (2025). Each rater is left out in turn. On each text, the
judge and the rater are compared by how close they are to the other raters. The judge wins against
the rater if it loses significantly less often than ε allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.special import stdtr

from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.messages import option
from judge.stats.bootstrap import Floats, Ints, all_known, sum_of_squares
from judge.stats.coefficients import rounded
from judge.stats.power import ALPHA

EPSILON = 0.2
"""The paper's value for expert raters."""
MIN_RATERS = 3
"""Raters that the test needs."""
MIN_TEXTS = 30
"""Texts that each rater needs."""
MIN_ITEMS = 10
"""Items that each rater needs."""
_PASSING_RATE = 0.5  # the paper: the judge must win against at least half of the raters


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One rater against the judge, on the `texts` of `items` that both rated and another rater too.

    `judge` is the share of texts on which the judge is at least as close to the other raters as
    this rater, `person` the share on which this rater is at least as close as the judge. `p` tests
    the hypothesis person ≥ judge + ε, None for too few texts. `won` is whether it is significant
    after Benjamini and Yekutieli's (2001) correction over the raters.
    """

    rater: str
    texts: int
    items: int
    judge: float
    person: float
    p: float | None
    won: bool = False


@dataclass(frozen=True, slots=True)
class AltTest:
    """The result for one judge and criterion.

    `winning_rate` is the share of raters against whom the judge wins; it passes with at least one
    half. `advantage` is the mean of `LeftOut.judge`. All three are None if there is no test, and
    `reason` says why.
    """

    epsilon: float
    passed: bool | None
    winning_rate: float | None
    advantage: float | None
    raters: tuple[LeftOut, ...]
    reason: str = ""


def check_epsilon(epsilon: float) -> float:
    """Return ε. Raises ConfigError unless 0 ≤ ε < 1."""
    if not 0 <= epsilon < 1:
        setting = option("epsilon", epsilon)
        raise ConfigError(
            f"{setting}: must be at least 0 and below 1, such as 0.2 for experts"
        )
    return epsilon


def alt_test(
    judge: Floats,
    votes: Floats,
    names: Sequence[str],
    epsilon: float = EPSILON,
) -> AltTest:
    """Test a judge's values (items × systems) against raters' votes (raters × items × systems).

    Missing values are NaN. Both are on one scale. A text's distance is the root mean square of the
    differences from the other raters; for two labels this orders like the paper's accuracy. The
    paper treats texts as independent and takes Student's t of the differences. Here the standard
    error is clustered by item, and at least that of differences that are all 0 or 1: otherwise
    raters who nearly always agree let bad judges pass (docs/decisions/0082). With one text per item
    and enough variation the p-values are the paper's.
    """
    raters: list[LeftOut] = []
    for position, rater_name in enumerate(names):
        left_out = _left_out(judge, votes, position, rater_name, epsilon)
        if left_out is not None:
            raters.append(left_out)
    # A rater without a p has too few texts, and is in no share or mean.
    tested = [rater for rater in raters if rater.p is not None]
    if len(tested) < MIN_RATERS:
        return AltTest(
            epsilon,
            passed=None,
            winning_rate=None,
            advantage=None,
            raters=tuple(raters),
            reason=_reason_without_test(votes, len(tested)),
        )
    p_values = [rater.p for rater in tested if rater.p is not None]
    limit = _significance_limit(p_values)
    with_verdicts: list[LeftOut] = []
    for rater in raters:
        won = rater.p is not None and rater.p <= limit
        with_verdicts.append(replace(rater, won=won))
    winning_rate = sum(rater.won for rater in with_verdicts) / len(tested)
    advantage = sum(rater.judge for rater in tested) / len(tested)
    return AltTest(
        epsilon,
        passed=winning_rate >= _PASSING_RATE,
        winning_rate=winning_rate,
        advantage=advantage,
        raters=tuple(with_verdicts),
    )


def _significance_limit(p_values: Sequence[float]) -> float:
    """Return the largest significant p after Benjamini and Yekutieli (2001, theorem 1.3).

    The result is negative if none is significant. This is our own code, because importing
    scipy.stats would take a second.
    """
    n_tests = len(p_values)
    harmonic = sum(1 / k for k in range(1, n_tests + 1))
    step = ALPHA / n_tests / harmonic
    limit = -1.0
    for rank, p_value in enumerate(sorted(p_values), 1):
        if p_value <= rank * step:
            limit = p_value
    return limit


def _reason_without_test(votes: Floats, tested: int) -> str:
    """Say why there is no test: only `tested` raters have enough texts."""
    rated = sum(not np.isnan(votes_of_rater).all() for votes_of_rater in votes)
    if rated < MIN_RATERS:
        # A single rating of a text has no rater's name.
        shortage = "the data have one rating per text"
        if rated:
            shortage = f"the ratings have {rated}"
        return f"the alt-test needs {MIN_RATERS} raters, and {shortage}"
    texts = f"{MIN_TEXTS} texts of {MIN_ITEMS} items that the judge and another rater scored too"
    raters = plural(rated, "rater")
    number = str(tested) if tested else "none"
    verb = "has" if tested < 2 else "have"
    count = f"of {raters}, {number} {verb} that"
    return f"the alt-test needs {MIN_RATERS} raters, each with {texts}; {count}"


def _left_out(
    judge: Floats,
    votes: Floats,
    position: int,
    rater_name: str,
    epsilon: float,
) -> LeftOut | None:
    """Compare the judge with a rater by the distance from the others; None without shared texts."""
    own_votes = votes[position]
    others = np.delete(votes, position, axis=0)
    both_scored = all_known(judge, own_votes)
    shared = both_scored & ~np.isnan(others).all(axis=0)
    if not shared.any():
        return None
    item, _ = np.nonzero(shared)
    judge_distance = _distance(judge[shared], others[:, shared])
    rater_distance = _distance(own_votes[shared], others[:, shared])
    judge_closer = judge_distance <= rater_distance
    rater_closer = rater_distance <= judge_distance
    texts = len(item)
    items = len(np.unique(item))
    p_value = None
    if texts >= MIN_TEXTS and items >= MIN_ITEMS:
        differences = rater_closer.astype(float) - judge_closer
        p_value = _p_of_mean_below(epsilon, differences, item, items)
    return LeftOut(
        rater_name,
        texts=texts,
        items=items,
        judge=float(judge_closer.mean()),
        person=float(rater_closer.mean()),
        p=p_value,
    )


def _distance(values: Floats, others: Floats) -> Floats:
    """Return each text's mean squared difference of `values` from `others` (raters × texts).

    It orders texts as its root does.
    """
    return rounded(np.nanmean((values - others) ** 2, axis=0))


def _p_of_mean_below(
    epsilon: float, differences: Floats, item: Ints, items: int
) -> float:
    """Return the one-sided p of the hypothesis mean ≥ ε, for differences of −1, 0 or 1.

    Differences of the same item depend on each other, so the standard error is clustered by item.
    """
    texts = len(differences)
    mean = float(differences.mean())
    sums = np.bincount(item, differences - mean)
    between_items = items / (items - 1) * sum_of_squares(sums)
    clustered = between_items / texts**2
    # Whole numbers with the mean ε have at least the variance of zeros and ones with that mean.
    least = epsilon * (1 - epsilon) / texts
    error = sqrt(max(clustered, least))
    if error == 0:  # ε is 0, and all differences are equal
        return float(mean >= epsilon)
    return float(stdtr(items - 1, (mean - epsilon) / error))
