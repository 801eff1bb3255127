"""`judge label --plan`: how many items, and texts with two ratings, intervals of a wanted width need.

Ratings that exist are a pilot, whose variance and agreement count. Without them, ratings are assumed to be spread
evenly over the scale, and correlation and agreement to be 0, where their intervals are widest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import atanh, ceil, sqrt
from statistics import fmean, median, pvariance, variance

import numpy as np

from judge.commands.label.command import Labelling
from judge.core.errors import ConfigError
from judge.core.records import Criterion
from judge.stats.agreement import agree
from judge.stats.bootstrap import CONFIDENCE, MIN_INTERVAL_ITEMS, NORMAL, t_quantile
from judge.stats.correlation import MIN_CORRELATION_ITEMS

Values = dict[str, dict[tuple[str, str], float]]
"""By rater, the rating of an item's and system's text."""


@dataclass(frozen=True, slots=True)
class Need:
    """What the interval of a measure needs: a number of `unit` (items, or texts rated by two), under an assumption."""

    measure: str
    needed: int
    unit: str
    assumes: str


def plan_labelling(labelling: Labelling, criterion: Criterion, precision: float) -> list[Need]:
    """Return what 95% intervals of ± `precision` need for a criterion; of a mean, it is a share of the scale's length.

    Raises ConfigError for a precision that is not between 0 and 1.
    """
    if not 0 < precision < 1:
        raise ConfigError(
            f"--precision {precision:g}: half the width of an interval, between 0 and 1, such as 0.1"
        )
    per_item = median(Counter(unit.item for unit in labelling.units.values()).values())
    # The ratings so far are a pilot; a pair's are 1, 0 and ½ for the first text.
    asked = criterion.scale.asked
    numbers = dict(zip(asked.labels, asked.values, strict=True))
    numbers = {"a": 1.0, "b": 0.0, "tie": 0.5} if labelling.pairwise else numbers
    values: Values = defaultdict(dict)
    for (rater, unit, name, repeat), (label, _) in labelling.done().items():
        if name == criterion.name and not repeat and label in numbers:
            for systems in labelling.units[unit].systems:
                values[rater][labelling.units[unit].item, "\n".join(systems)] = numbers[label]
    needs = []
    if labelling.pairwise:
        wins = items_for_mean(0.5, precision)
        needs.append(
            Need(f"win rate of a pair ±{precision:g}", wins, "items", "that half of them are won")
        )
    else:
        # A system's mean rating. With a pilot, the standard deviation is the one within systems.
        by_text: dict[tuple[str, str], list[float]] = defaultdict(list)
        for ratings in values.values():
            for text, value in ratings.items():
                by_text[text].append(value)
        by_system: dict[str, list[float]] = defaultdict(list)
        for (_, system), votes_on_text in by_text.items():
            by_system[system].append(fmean(votes_on_text))
        several = [means for means in by_system.values() if len(means) >= MIN_INTERVAL_ITEMS]
        if several:
            sd = sqrt(
                sum(variance(means) * (len(means) - 1) for means in several)
                / sum(len(m) - 1 for m in several)
            )
            assumed = f"SD {sd:.2f}, as in the {len(by_text):,} texts rated so far"
        else:
            sd = sqrt(pvariance(asked.values))
            assumed = f"ratings spread evenly over the scale (SD {sd:.2f})"
        half_width = precision * (asked.high - asked.low)
        number = items_for_mean(sd, half_width)
        needs.append(Need(f"mean of a system ±{half_width:.2g}", number, "items", assumed))
        within = (
            f"within items of {per_item:g} texts"
            if per_item >= MIN_CORRELATION_ITEMS
            else "over items"
        )
        number = items_for_correlation(per_item, precision)
        needs.append(
            Need(
                f"Spearman with people ±{precision:g}", number, "items", f"no correlation, {within}"
            )
        )
    texts = list(dict.fromkeys(text for ratings in values.values() for text in ratings))
    if len(values) < 2 or len(texts) < MIN_INTERVAL_ITEMS:
        alpha = None
    else:
        votes = np.array(
            [[[ratings.get(text, np.nan)] for text in texts] for ratings in values.values()]
        )
        estimate = agree(votes, ("alpha_interval",)).estimates.get("alpha_interval")
        alpha = None if estimate is None else estimate.value
    unit = f"{'pairs' if labelling.pairwise else 'texts'} rated by both"
    assumed = "no agreement" if alpha is None else f"alpha {alpha:.2f}, as in {labelling.output}"
    number = texts_for_agreement(alpha or 0.0, precision)
    return [*needs, Need(f"alpha of two raters ±{precision:g}", number, unit, assumed)]


def items_for_mean(sd: float, half_width: float) -> int:
    """Return the items at which Student's t interval of a mean with this standard deviation is ± `half_width` wide."""
    return _fewest(lambda t: (t * sd / half_width) ** 2)


def items_for_correlation(texts: float, half_width: float) -> int:
    """Return the items for Spearman's correlation with people if there is none.

    With three texts per item or more, it is the mean of the correlations within items. Without correlation, the
    variance of each is 1 / (texts − 1), also with ties (Kendall 1970, ch. 5). With fewer, it is one correlation over
    all items, whose Fisher's z has the standard error 1 / √(n − 3) at 0 (Bonett and Wright 2000).
    """
    if texts >= MIN_CORRELATION_ITEMS:
        return _fewest(lambda t: (t / half_width) ** 2 / (texts - 1))
    return _fewest(lambda t: 3 + (t / atanh(half_width)) ** 2)


def texts_for_agreement(alpha: float, half_width: float) -> int:
    """Return the texts that two raters must both rate, for an interval of their Krippendorff's alpha.

    8 t² (1 − ρ)² (1 + (k − 1) ρ)² / (k (k − 1) w²) + 1 for an intraclass correlation ρ of k raters and an interval of
    width w (Bonett 2002), with k = 2. Alpha with squared distances is such a correlation.
    """
    return _fewest(lambda t: 8 * t**2 * (1 - alpha**2) ** 2 / (2 * (2 * half_width) ** 2) + 1)


def _fewest(needed: Callable[[float], float]) -> int:
    """Return the fewest items that are enough with their own quantile of Student's t. `needed` rises with it."""
    tail = (1 - CONFIDENCE) / 2
    n = max(MIN_INTERVAL_ITEMS, ceil(needed(NORMAL.inv_cdf(1 - tail))))
    while n < needed(t_quantile(tail, n - 1)):
        n += 1
    return n
