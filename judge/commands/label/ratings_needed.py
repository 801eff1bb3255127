"""`judge label --plan`: the number of ratings that intervals of a given width need.

Existing ratings are a pilot study, whose variance and agreement are used. Without them, ratings are
assumed to be spread evenly over the scale, and correlation and agreement to be 0, which gives the
widest intervals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
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
"""The ratings of each rater, by the text's item and system (of a pair, both systems)."""


@dataclass(frozen=True, slots=True)
class Need:
    """How much has to be rated for an interval of the wanted width.

    - `measure`: the measure and the half-width of its interval, such as `mean of a system ±0.4`.
    - `needed`: a number of `unit`: items, or texts or pairs that two raters both rate.
    - `assumes`: what the number assumes about the ratings.
    """

    measure: str
    needed: int
    unit: str
    assumes: str


def plan_labelling(
    labelling: Labelling,
    criterion: Criterion,
    precision: float,
) -> list[Need]:
    """Return what 95% intervals of ± `precision` need for a criterion.

    For a mean, `precision` is a share of the scale's length. Raises ConfigError for a precision
    that is not between 0 and 1.
    """
    if not 0 < precision < 1:
        raise ConfigError(
            f"--precision {precision:g}: half the width of an interval, between 0 and 1, such as "
            "0.1"
        )
    values = _pilot_values(labelling, criterion)
    if labelling.pairwise:
        # The variance of a share is largest at one half.
        need_for_win_rate = Need(
            measure=f"win rate of a pair ±{precision:g}",
            needed=items_for_mean(0.5, precision),
            unit="items",
            assumes="that half of them are won",
        )
        needs = [need_for_win_rate]
    else:
        needs = [
            _need_for_mean(criterion, values, precision),
            _need_for_correlation(labelling, precision),
        ]
    return [*needs, _need_for_agreement(labelling, values, precision)]


def _pilot_values(labelling: Labelling, criterion: Criterion) -> Values:
    """Return the ratings so far, without repetitions.

    A pair is 1 if the first text is better, 0 if the second is, ½ for a tie.
    """
    scale = criterion.scale.asked
    number_by_label = dict(zip(scale.labels, scale.values, strict=True))
    if labelling.pairwise:
        number_by_label = {"a": 1.0, "b": 0.0, "tie": 0.5}
    values: Values = defaultdict(dict)
    for answer_key, (label, _) in labelling.done().items():
        rater, unit_id, criterion_name, is_repeat = answer_key
        if criterion_name != criterion.name or is_repeat:
            continue
        if label not in number_by_label:
            continue
        unit = labelling.units[unit_id]
        # Systems that wrote equal texts share a unit and its rating.
        for systems in unit.systems:
            text = (unit.item, "\n".join(systems))
            values[rater][text] = number_by_label[label]
    return values


def _need_for_mean(criterion: Criterion, values: Values, precision: float) -> Need:
    """Return how many items the mean rating of a system needs."""
    scale = criterion.scale.asked
    votes_by_text: dict[tuple[str, str], list[float]] = defaultdict(list)
    for ratings in values.values():
        for text, rating in ratings.items():
            votes_by_text[text].append(rating)
    means_by_system: dict[str, list[float]] = defaultdict(list)
    for (_, system), votes in votes_by_text.items():
        means_by_system[system].append(fmean(votes))
    pilot_means = [
        means for means in means_by_system.values() if len(means) >= MIN_INTERVAL_ITEMS
    ]
    if pilot_means:
        deviation = _pooled_deviation(pilot_means)
        n_texts = len(votes_by_text)
        assumption = f"SD {deviation:.2f}, as in the {n_texts:,} texts rated so far"
    else:
        deviation = sqrt(pvariance(scale.values))
        assumption = f"ratings spread evenly over the scale (SD {deviation:.2f})"
    half_width = precision * (scale.high - scale.low)
    n_items = items_for_mean(deviation, half_width)
    return Need(
        measure=f"mean of a system ±{half_width:.2g}",
        needed=n_items,
        unit="items",
        assumes=assumption,
    )


def _pooled_deviation(means_by_system: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of texts within systems.

    Differences between systems do not widen the interval of one system's mean.
    """
    sum_of_squares = 0.0
    degrees_of_freedom = 0
    for means in means_by_system:
        freedom = len(means) - 1
        sum_of_squares += variance(means) * freedom
        degrees_of_freedom += freedom
    return sqrt(sum_of_squares / degrees_of_freedom)


def _need_for_correlation(labelling: Labelling, precision: float) -> Need:
    """Return how many items the judge's correlation with people needs."""
    texts_by_item = Counter(unit.item for unit in labelling.units.values())
    texts_per_item = median(texts_by_item.values())
    level = "over items"
    if texts_per_item >= MIN_CORRELATION_ITEMS:
        level = f"within items of {texts_per_item:g} texts"
    items = items_for_correlation(texts_per_item, precision)
    measure = f"Spearman with people ±{precision:g}"
    return Need(
        measure=measure,
        needed=items,
        unit="items",
        assumes=f"no correlation, {level}",
    )


def _need_for_agreement(labelling: Labelling, values: Values, precision: float) -> Need:
    """Return how many texts (or pairs) the agreement of two raters needs."""
    alpha = _pilot_alpha(values)
    counted = "pairs" if labelling.pairwise else "texts"
    assumption = "no agreement"
    if alpha is not None:
        assumption = f"alpha {alpha:.2f}, as in {labelling.output}"
    texts = texts_for_agreement(alpha or 0.0, precision)
    measure = f"alpha of two raters ±{precision:g}"
    return Need(
        measure=measure,
        needed=texts,
        unit=f"{counted} rated by both",
        assumes=assumption,
    )


def _pilot_alpha(values: Values) -> float | None:
    """Return Krippendorff's alpha of the ratings so far, None if they are too few."""
    # Each text once, in the order of the ratings.
    texts: dict[tuple[str, str], None] = {}
    for ratings in values.values():
        texts |= dict.fromkeys(ratings)
    if len(values) < 2 or len(texts) < MIN_INTERVAL_ITEMS:
        return None
    # Raters × items × systems; here each text counts as an item of one system.
    votes = np.full((len(values), len(texts), 1), np.nan)
    for row, ratings in enumerate(values.values()):
        for column, text in enumerate(texts):
            votes[row, column, 0] = ratings.get(text, np.nan)
    agreement = agree(votes, ("alpha_interval",))
    estimate = agreement.estimates.get("alpha_interval")
    return None if estimate is None else estimate.value


def items_for_mean(sd: float, half_width: float) -> int:
    """Return the items with which the t interval of a mean is at most ± `half_width` wide.

    `sd` is the standard deviation of the items' values.
    """
    return _fewest(lambda t: (t * sd / half_width) ** 2)


def items_for_correlation(texts: float, half_width: float) -> int:
    """Return the items for an interval of ± `half_width` of Spearman's correlation with people.

    `texts` is the number per item. No correlation is assumed, which gives the widest interval. With
    three texts per item or more, the statistic is the mean of the correlations within items, and
    the variance of each is 1 / (texts − 1), also with ties (Kendall 1970, ch. 5). With fewer, it is
    one correlation over all items, whose Fisher's z has the standard error 1 / √(n − 3) at 0
    (Bonett and Wright 2000).
    """
    if texts >= MIN_CORRELATION_ITEMS:
        return _fewest(lambda t: (t / half_width) ** 2 / (texts - 1))
    return _fewest(lambda t: 3 + (t / atanh(half_width)) ** 2)


def texts_for_agreement(alpha: float, half_width: float) -> int:
    """Return the texts that two raters must both rate, for alpha (Krippendorff's) ± `half_width`.

    8 t² (1 − ρ)² (1 + (k − 1) ρ)² / (k (k − 1) w²) + 1 for an intraclass correlation ρ of k raters
    and an interval of width w (Bonett 2002), with k = 2. Alpha with squared distances is such a
    correlation.
    """

    def texts_with(t: float) -> float:
        width = 2 * half_width
        # With k = 2, (1 − ρ)² (1 + (k − 1) ρ)² is (1 − ρ²)², and k (k − 1) is 2.
        numerator = 8 * t**2 * (1 - alpha**2) ** 2
        return numerator / (2 * width**2) + 1

    return _fewest(texts_with)


def _fewest(needed: Callable[[float], float]) -> int:
    """Return the fewest items that are enough.

    `needed` returns the number of items for a quantile of Student's t, which depends on that number
    itself, and rises with the quantile.
    """
    tail = (1 - CONFIDENCE) / 2
    normal_quantile = NORMAL.inv_cdf(1 - tail)
    # Student's t needs at least as many items as the normal distribution.
    n_normal = ceil(needed(normal_quantile))
    n_items = max(MIN_INTERVAL_ITEMS, n_normal)
    while True:
        quantile = t_quantile(tail, n_items - 1)
        if n_items >= needed(quantile):
            return n_items
        n_items += 1
