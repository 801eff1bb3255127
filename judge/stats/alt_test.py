"""The alternative annotator test: may a judge replace a human rater? (Calderon, Reichart and Dror 2025)

Each rater is left out in turn. On each text, the judge and the rater are compared by how close they are to the other
raters. The judge wins against the rater if it loses significantly less often than ε allows.
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
from judge.stats.bootstrap import Floats
from judge.stats.coefficients import rounded
from judge.stats.power import ALPHA

EPSILON = 0.2
"""The paper's value for expert raters."""
MIN_RATERS, MIN_TEXTS, MIN_ITEMS = 3, 30, 10
"""Raters that the test needs, and the texts and items of each one."""
_PASS = 0.5  # share of the raters


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One rater against the judge, on the `texts` of `items` that both rated and another rater too.

    `judge` is the share of texts on which the judge is at least as close to the other raters as this rater, `person`
    the share on which this rater is at least as close as the judge. `p` tests person ≤ judge + ε, None for too few
    texts. `won` is whether it is significant after Benjamini and Yekutieli's (2001) correction over the raters.
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

    `winning_rate` is the share of raters against whom the judge wins; it passes with at least one half. `advantage` is
    the mean of `LeftOut.judge`. All three are None if there is no test, and `reason` says why.
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
        raise ConfigError(
            f"{option('epsilon', epsilon)}: must be at least 0 and below 1, such as 0.2 for experts"
        )
    return epsilon


def alt_test(
    judge: Floats, votes: Floats, names: Sequence[str], epsilon: float = EPSILON
) -> AltTest:
    """Test a judge's values (items × systems) against raters' votes (raters × items × systems), NaN if missing.

    Both are on one scale. A text's distance is the root mean square of the differences from the other raters; for two
    labels this orders like the paper's accuracy. The paper treats texts as independent and takes Student's t of the
    differences. Here the standard error is clustered by item, and at least that of differences that are all 0 or 1:
    otherwise raters who nearly always agree let bad judges pass (docs/decisions/0082). With one text per item and
    enough variation the p-values are the paper's.
    """
    raters = [
        each
        for place, name in enumerate(names)
        if (each := _left_out(judge, votes, place, name, epsilon))
    ]
    tested = [each for each in raters if each.p is not None]
    if len(tested) < MIN_RATERS:
        rated = sum(not np.isnan(own).all() for own in votes)
        reason = (
            f"it needs {MIN_RATERS} raters, each with {MIN_TEXTS} texts of {MIN_ITEMS} items that the judge and "
            f"another rater scored too; of {plural(rated, 'rater')}, {len(tested) or 'none'} "
            f"{'has' if len(tested) < 2 else 'have'} that"
        )
        return AltTest(epsilon, None, None, None, tuple(raters), reason)
    # Benjamini and Yekutieli (2001, theorem 1.3). Importing scipy.stats would take a second.
    step = ALPHA / len(tested) / sum(1 / k for k in range(1, len(tested) + 1))
    p = sorted(each.p for each in tested if each.p is not None)
    limit = max((value for rank, value in enumerate(p, 1) if value <= rank * step), default=-1.0)
    marked = tuple(replace(each, won=each.p is not None and each.p <= limit) for each in raters)
    rate = sum(each.won for each in marked) / len(tested)
    advantage = sum(each.judge for each in tested) / len(tested)
    return AltTest(epsilon, rate >= _PASS, rate, advantage, marked)


def _left_out(
    judge: Floats, votes: Floats, place: int, name: str, epsilon: float
) -> LeftOut | None:
    """Compare the judge with one rater by the distance from the others; None if they share no text."""
    others = np.delete(votes, place, axis=0)
    shared = ~(np.isnan(judge) | np.isnan(votes[place])) & ~np.isnan(others).all(axis=0)
    if not shared.any():
        return None
    item, _ = np.nonzero(shared)
    apart = [
        rounded(np.nanmean((side[shared] - others[:, shared]) ** 2, axis=0))
        for side in (judge, votes[place])
    ]
    closer, person = apart[0] <= apart[1], apart[1] <= apart[0]
    texts, items = len(item), len(np.unique(item))
    p = None
    if texts >= MIN_TEXTS and items >= MIN_ITEMS:
        # One-sided, of mean ≥ ε, for differences of −1, 0 or 1 that depend on each other within an item.
        differences = person.astype(float) - closer
        mean = float(differences.mean())
        sums = np.bincount(item, differences - mean)
        clustered = items / (items - 1) * float((sums**2).sum()) / texts**2
        # Whole numbers with mean ε vary at least as much as zeros and ones do.
        error = sqrt(max(clustered, epsilon * (1 - epsilon) / texts))
        p = float(stdtr(items - 1, (mean - epsilon) / error)) if error else float(mean >= epsilon)
    return LeftOut(name, texts, items, float(closer.mean()), float(person.mean()), p)
