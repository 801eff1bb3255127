"""Correlate a judge's scores with surface features of a text.

These are its length, its copying from the source, and the position of copied words there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from math import log

import numpy as np

from judge.core.records import Estimate, Sample
from judge.metrics.text_features import measured
from judge.stats.bootstrap import (
    DEFAULT,
    Bools,
    Bootstrap,
    Floats,
    Ints,
    Statistic,
    sums_by_item,
)
from judge.stats.correlation import criterion
from judge.table import Table, Text


def looks(samples: Sequence[Sample]) -> dict[Text, TextFeatures]:
    """Return the length, copying and position of every text.

    A text without a source has only its length.
    """
    features_by_text: dict[Text, TextFeatures] = {}
    for sample, features in zip(samples, measured(samples), strict=True):
        length = log(features.words) if features.words else None
        copying = None if features.novel2 is None else 1 - features.novel2
        features_by_text[sample.key] = TextFeatures(length, copying, features.position)
    return features_by_text


FEWEST = 10
"""Fewer texts are not analysed."""
_MIN_ITEMS = 10  # fewer items are too few for a bootstrap
_TOLERANCE = 1e-9  # rounding error of equal values
_ROUNDING = 1e-12  # of the variance of a resample, for values with mean square 1


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """A text's drivers, None if undefined.

    `length` is the log of its number of words, `copying` the share of its bigrams that are in its
    source (0–1), `position` the mean position of its copied words in the source (0 start, 1 end).
    """

    length: float | None
    copying: float | None = None
    position: float | None = None


NAMES = tuple(field.name for field in fields(TextFeatures))


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver of a column's scores.

    `correlation` is Pearson's r (−1 to 1), `explained` the share that the driver explains alone
    (r²).
    """

    name: str
    correlation: Estimate
    explained: Estimate


@dataclass(frozen=True, slots=True)
class Drivers:
    """Correlations of surface features with a judge's column or with people's ratings.

    `column` is the judge's column, or the rated criterion. `people` is true for ratings. `within`:
    scores and drivers are centred by item, so that an item's difficulty does not count; otherwise
    pooled over all texts. `together` is the R² (0–1) of the least-squares fit on all drivers in
    `each`, not adjusted. `chance` is the expected R² of as many irrelevant drivers. Without
    drivers, `each` is empty, both are None, and `note` says why; otherwise `note` names excluded
    drivers.
    """

    column: str
    people: bool
    within: bool
    texts: int
    items: int
    each: tuple[Driver, ...] = ()
    together: Estimate | None = None
    chance: float | None = None
    note: str = ""


def drivers(
    table: Table,
    looks: Mapping[Text, TextFeatures],
    bootstrap: Bootstrap = DEFAULT,
) -> tuple[Drivers, ...]:
    """Return the drivers of each judge's column, then the drivers of people's ratings.

    The ratings are of the same criteria. Analyse within items if at least half of the texts share
    their item with another text, and use only these; otherwise pool. A driver needs a value for at
    least half of the texts; texts need every remaining driver.

    Intervals are percentile intervals over resampled items with all their texts. Resamples without
    variation are excluded, and below 10 items there is none. Repeated texts inflate R² in
    resamples, so intervals of shares are shifted by that bias (as the bootstrap estimates it, Efron
    and Tibshirani 1993, eq. 10.5).
    """
    columns = [column for column in table.columns if column.kind == "criterion"]
    analysed: list[Drivers] = []
    for column in columns:
        scores = {score.key: score.value for score in table.column_scores(column.name)}
        analysed.append(_drivers(column.name, False, scores, looks, bootstrap))
    for criterion_name in dict.fromkeys(criterion(column) for column in columns):
        ratings = table.ratings(criterion_name)
        if ratings:
            analysed.append(_drivers(criterion_name, True, ratings, looks, bootstrap))
    return tuple(analysed)


def _drivers(
    column: str,
    people: bool,
    values: Mapping[Text, float],
    looks: Mapping[Text, TextFeatures],
    bootstrap: Bootstrap,
) -> Drivers:
    """Return the drivers of one column's values."""
    texts = _texts_with_drivers(values, looks)
    n_texts = len(texts.item)
    result = Drivers(column, people, texts.within, n_texts, texts.n_items)
    if n_texts < FEWEST:
        return replace(result, note=f"fewer than {FEWEST} texts")
    centred = _centred(texts)
    varied = np.abs(centred).max(axis=0) > _TOLERANCE
    if not varied[0]:
        in_items = " within their items" if texts.within else ""
        return replace(result, note=f"all scores equal{in_items}")
    used = texts.common & varied
    names = _names_of(used)
    note = _note_on_excluded(texts.common, varied)
    if not names:
        return replace(result, note=note)
    selected = centred[:, used]
    scaled = selected / np.sqrt((selected**2).mean(axis=0))
    scope = "within items" if texts.within else "pooled"
    estimates = _estimates(texts.item, scaled, names, scope, bootstrap)
    # Irrelevant drivers of normal scores explain drivers / degrees of freedom.
    n_means = texts.n_items if texts.within else 1
    freedom = n_texts - n_means
    chance = min(1.0, len(names) / freedom)
    return replace(
        result,
        each=estimates.drivers,
        together=estimates.together,
        chance=chance,
        note=note,
    )


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts to analyse: the index of each one's item, and the number of items.

    `values` are texts × (score, drivers), `common` marks the columns of these that most texts have.
    With `within`, each text shares its item with another.
    """

    item: Ints
    n_items: int
    values: Floats
    common: Bools
    within: bool


def _texts_with_drivers(
    values: Mapping[Text, float], looks: Mapping[Text, TextFeatures]
) -> _Texts:
    """Select the texts that have a score and all common drivers."""
    texts = [text for text in values if text in looks]
    rows = [(values[text], *astuple(looks[text])) for text in texts]
    # None becomes NaN. Without any text the matrix still needs its columns.
    n_columns = 1 + len(NAMES)
    matrix = np.array(rows, dtype=np.float64).reshape(-1, n_columns)
    number_known = (~np.isnan(matrix)).sum(axis=0)
    common = 2 * number_known >= max(1, len(matrix))
    lacks_common = np.isnan(matrix[:, common]).any(axis=1)
    complete = ~lacks_common
    item_names = dict.fromkeys(item for item, _ in texts)
    index_of_item = {item: index for index, item in enumerate(item_names)}
    indices = [index_of_item[item] for item, _ in texts]
    item = np.array(indices, dtype=np.intp)[complete]
    matrix = matrix[complete]
    shares_item = np.bincount(item)[item] > 1
    within = bool(2 * shares_item.sum() >= max(1, len(item)))
    # A text alone in its item would be 0 after centring: it says nothing within items.
    if within:
        item = item[shares_item]
        matrix = matrix[shares_item]
    items, item = np.unique(item, return_inverse=True)
    return _Texts(item, len(items), values=matrix, common=common, within=within)


def _centred(texts: _Texts) -> Floats:
    """Return the values minus their means, by item or over all texts."""
    group = texts.item if texts.within else np.zeros_like(texts.item)
    sums_by_column = [np.bincount(group, column) for column in texts.values.T]
    sums = np.stack(sums_by_column, axis=1)
    means = sums / np.bincount(group)[:, None]
    centred: Floats = texts.values - means[group]
    return centred


def _names_of(columns: Bools) -> list[str]:
    """Return the names of the marked drivers; the first column is the score."""
    return [NAMES[index] for index in np.flatnonzero(columns[1:])]


def _note_on_excluded(common: Bools, varied: Bools) -> str:
    """Return which drivers are excluded and why."""
    excluded = {
        "fewer than half of the texts have it": _names_of(~common),
        "the same everywhere": _names_of(common & ~varied),
    }
    notes: list[str] = []
    for reason, names in excluded.items():
        if names:
            notes.append(f"without {' and '.join(names)}: {reason}")
    return "; ".join(notes)


@dataclass(frozen=True, slots=True)
class _DriverEstimates:
    """Each driver alone, and the share that all explain together."""

    drivers: tuple[Driver, ...]
    together: Estimate


def _estimates(
    item: Ints,
    values: Floats,
    names: Sequence[str],
    scope: str,
    bootstrap: Bootstrap,
) -> _DriverEstimates:
    """Return each driver's correlation, the share that each explains, and the share of all.

    `values` are the score and the drivers of every text, each centred with mean square 1.
    """
    # The statistics are r with each driver, then r² of each, then R² of all.
    n_drivers = len(names)
    n_items = int(item.max()) + 1
    statistic = _statistics(item, values, n_items)
    observed, drawn = bootstrap.observed_and_resampled(statistic, n_items)
    lower_bounds: list[float | None] = [None] * len(observed)
    upper_bounds: list[float | None] = [None] * len(observed)
    interval = f"{n_items} items: too few for an interval"
    if n_items >= _MIN_ITEMS:
        ends = bootstrap.interval(drawn, n_items)
        ends_of_shares = ends[:, n_drivers:]
        drawn_shares = drawn[:, n_drivers:]
        unbiased = _unbiased_ends(ends_of_shares, observed[n_drivers:], drawn_shares)
        ends[:, n_drivers:] = unbiased
        lower_bounds, upper_bounds = ends.tolist()
        interval = str(bootstrap)

    def estimate(index: int, name: str, title: str) -> Estimate:
        method = f"{title}, {scope}; {interval}"
        value = float(observed[index])
        return Estimate(
            name=name,
            value=value,
            low=lower_bounds[index],
            high=upper_bounds[index],
            n=len(item),
            method=method,
        )

    drivers: list[Driver] = []
    for index, driver in enumerate(names):
        correlation = estimate(index, "r", f"Pearson's r with {driver}")
        explained = estimate(n_drivers + index, "R2", f"R² of {driver}")
        drivers.append(Driver(driver, correlation, explained))
    together = estimate(2 * n_drivers, "R2", f"R² of {', '.join(names)}")
    return _DriverEstimates(tuple(drivers), together)


def _unbiased_ends(ends: Floats, shares: Floats, drawn: Floats) -> Floats:
    """Return the ends of the shares' intervals (2 × shares) without bias, within 0–1.

    `drawn` are resamples × shares. They are biased upwards (see `drivers`).
    """
    bias = np.nanmean(drawn, axis=0) - shares
    lower_ends, upper_ends = ends - bias
    return np.stack([np.maximum(0.0, lower_ends), np.minimum(1.0, upper_ends)])


def _statistics(item: Ints, values: Floats, n_items: int) -> Statistic:
    """Return r with each driver, r² of each, and R² of all; NaN without variation."""
    # For every item Σ v vᵀ over its texts, where v is 1, the score, the drivers.
    rows = np.column_stack([np.ones(len(item)), values])
    products = rows[:, :, None] * rows[:, None, :]
    moments = sums_by_item(item, products, n_items)

    def statistics(counts: Floats) -> Floats:
        sums = np.tensordot(counts, moments, 1)
        # Resamples × (1, score, drivers) × (1, score, drivers). The 1 in v makes the first row and
        # column the sums, and their first cell the number.
        n = sums[..., :1, :1]
        column_sums = sums[..., 1:, :1]
        row_sums = sums[..., :1, 1:]
        products_of_means = column_sums * row_sums / n**2
        covariance = sums[..., 1:, 1:] / n - products_of_means
        variance = np.diagonal(covariance, axis1=-2, axis2=-1)
        varying = np.where(variance > _ROUNDING, variance, np.nan)
        deviation = np.sqrt(varying)
        products_of_deviations = deviation[..., :, None] * deviation[..., None, :]
        correlations = covariance / products_of_deviations
        r = correlations[..., 0, 1:]
        # A constant driver explains nothing. Collinear drivers need the pseudo-inverse.
        filled_r = np.nan_to_num(r)
        between_drivers = np.nan_to_num(correlations[..., 1:, 1:])
        inverse = np.linalg.pinv(between_drivers, 1e-9, hermitian=True)
        # R² is rᵀ R⁻¹ r, with r the correlations of the drivers with the score.
        share = np.einsum("...i,...ij,...j->...", filled_r, inverse, filled_r)
        score_is_constant = np.isnan(deviation[..., 0])
        together = np.where(score_is_constant, np.nan, np.clip(share, 0, 1))
        columns = [r, r**2, together[..., None]]
        return np.concatenate(columns, axis=-1)

    return statistics
