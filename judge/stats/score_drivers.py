"""Correlate a judge's scores with surface features of a text: its length, copying and position in the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from math import log

import numpy as np

from judge.core.records import Estimate, Sample
from judge.metrics.text_features import measured
from judge.stats.bootstrap import DEFAULT, Bootstrap, Floats, Ints, sums_by_item
from judge.stats.correlation import criterion
from judge.table import Table


def looks(samples: Sequence[Sample]) -> dict[Text, TextFeatures]:
    """Return the length, copying and position of every text; a text without a source has only its length."""
    features_by_text = {}
    for sample, features in zip(samples, measured(samples), strict=True):
        length = log(features.words) if features.words else None
        copying = None if features.novel2 is None else 1 - features.novel2
        features_by_text[sample.key] = TextFeatures(length, copying, features.position)
    return features_by_text


FEWEST = 10
"""Fewer texts are not analysed."""
_MIN_ITEMS = 10  # fewer items are too few for a bootstrap
_TOLERANCE = 1e-9  # rounding error of equal values
# Rounding error of a resample without variation, for values with mean square 1.
_ROUNDING = 1e-12

Text = tuple[str, str]
"""An item and a system."""


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """A text's drivers, None if undefined.

    `length` is the log of its number of words, `copying` the share of its bigrams that are in its source (0–1),
    `position` the mean position of its copied words in the source (0 start, 1 end).
    """

    length: float | None
    copying: float | None = None
    position: float | None = None


NAMES = tuple(field.name for field in fields(TextFeatures))


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver of a column's scores: Pearson's r (−1 to 1), and the share that it explains alone (r²)."""

    name: str
    correlation: Estimate
    explained: Estimate


@dataclass(frozen=True, slots=True)
class Drivers:
    """Correlations of surface features with a judge's column or with people's ratings of the criterion `column`.

    `people` is true for ratings. `within`: scores and drivers are centred by item, so that an item's difficulty does
    not count; otherwise pooled over all texts. `together` is the R² (0–1) of the least-squares fit on all drivers in
    `each`, not adjusted. `chance` is the expected R² of as many irrelevant drivers. Without drivers, `each` is empty,
    both are None, and `note` says why; otherwise `note` names excluded drivers.
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
    table: Table, looks: Mapping[Text, TextFeatures], bootstrap: Bootstrap = DEFAULT
) -> tuple[Drivers, ...]:
    """Return the drivers of each judge's column, then those of people's ratings of the same criteria.

    Analyse within items if at least half of the texts share their item with another text, and use only these; otherwise
    pool. A driver needs a value for at least half of the texts; texts need every remaining driver.

    Intervals are percentile intervals over resampled items with all their texts. Resamples without variation are
    excluded, and below 10 items there is none. Repeated texts inflate R² in resamples, so intervals of shares are
    shifted by that bias (as the bootstrap estimates it, Efron and Tibshirani 1993, eq. 10.5).
    """
    columns = [column for column in table.columns if column.kind == "criterion"]
    scored = [
        (c.name, False, {s.key: s.value for s in table.column_scores(c.name)}) for c in columns
    ]
    names = dict.fromkeys(map(criterion, columns))
    scored += [(name, True, rated) for name in names if (rated := table.ratings(name))]
    return tuple(
        _drivers(name, people, values, looks, bootstrap) for name, people, values in scored
    )


def _drivers(
    column: str,
    people: bool,
    values: Mapping[Text, float],
    looks: Mapping[Text, TextFeatures],
    bootstrap: Bootstrap,
) -> Drivers:
    texts = [text for text in values if text in looks]
    rows = [(values[text], *astuple(looks[text])) for text in texts]
    matrix = np.array(rows, dtype=np.float64).reshape(-1, 1 + len(NAMES))  # None becomes NaN
    common = 2 * (~np.isnan(matrix)).sum(axis=0) >= max(1, len(matrix))
    complete = ~np.isnan(matrix[:, common]).any(axis=1)
    places = {item: place for place, item in enumerate(dict.fromkeys(item for item, _ in texts))}
    item, matrix = (
        np.array([places[item] for item, _ in texts], dtype=np.intp)[complete],
        matrix[complete],
    )
    beside = np.bincount(item)[item] > 1
    within = bool(2 * beside.sum() >= max(1, len(item)))
    if within:
        item, matrix = item[beside], matrix[beside]
    items, item = np.unique(item, return_inverse=True)
    nothing = Drivers(column, people, within, len(item), len(items))
    if len(item) < FEWEST:
        return replace(nothing, note=f"fewer than {FEWEST} texts")
    group = item if within else np.zeros_like(item)
    sums = np.stack([np.bincount(group, side) for side in matrix.T], axis=1)
    matrix = matrix - (sums / np.bincount(group)[:, None])[group]
    varied = np.abs(matrix).max(axis=0) > _TOLERANCE
    if not varied[0]:
        return replace(nothing, note=f"all scores equal{' within their items' if within else ''}")
    lacking = {
        "fewer than half of the texts have it": ~common,
        "the same everywhere": common & ~varied,
    }
    names_by_reason = {
        reason: [NAMES[at] for at in np.flatnonzero(out[1:])] for reason, out in lacking.items()
    }
    note = "; ".join(
        f"without {' and '.join(out)}: {reason}" for reason, out in names_by_reason.items() if out
    )
    used = common & varied
    names = [NAMES[at] for at in np.flatnonzero(used[1:])]
    if not names:
        return replace(nothing, note=note)
    matrix = matrix[:, used] / np.sqrt((matrix[:, used] ** 2).mean(axis=0))
    each, explained, together = _estimates(
        item, matrix, names, "within items" if within else "pooled", bootstrap
    )
    free = len(item) - (len(items) if within else 1)
    pulls = tuple(map(Driver, names, each, explained))
    # Irrelevant drivers of normal scores explain drivers / degrees of freedom.
    return replace(
        nothing, each=pulls, together=together, chance=min(1.0, len(names) / free), note=note
    )


def _estimates(
    item: Ints, values: Floats, names: Sequence[str], scope: str, bootstrap: Bootstrap
) -> tuple[list[Estimate], list[Estimate], Estimate]:
    """Return each driver's correlation, the share that each explains, and the share of all.

    `values` are the score and the drivers of every text, each centred with mean square 1.
    """
    # For every item Σ v vᵀ over its texts, where v is 1, the score, the drivers.
    rows = np.column_stack([np.ones(len(item)), values])
    size, n_items = len(names), int(item.max()) + 1
    moments = sums_by_item(item, rows[:, :, None] * rows[:, None, :], n_items)

    def statistics(counts: Floats) -> Floats:
        """Return r with each driver, r², and R² of all; NaN without variation."""
        sums = np.tensordot(counts, moments, 1)
        n = sums[..., :1, :1]
        spread = sums[..., 1:, 1:] / n - sums[..., 1:, :1] * sums[..., :1, 1:] / n**2
        variance = np.diagonal(spread, axis1=-2, axis2=-1)
        scale = np.sqrt(np.where(variance > _ROUNDING, variance, np.nan))
        correlations = spread / (scale[..., :, None] * scale[..., None, :])
        r = correlations[..., 0, 1:]
        # A constant driver explains nothing. Collinear drivers need the pseudo-inverse.
        known = np.nan_to_num(r)
        inverse = np.linalg.pinv(np.nan_to_num(correlations[..., 1:, 1:]), 1e-9, hermitian=True)
        share = np.einsum("...i,...ij,...j->...", known, inverse, known)
        together = np.where(np.isnan(scale[..., 0]), np.nan, np.clip(share, 0, 1))
        return np.concatenate([r, r**2, together[..., None]], axis=-1)

    observed, drawn = bootstrap.observed_and_resampled(statistics, n_items)
    ends, interval = np.full((2, len(observed)), None), f"{n_items} items: too few for an interval"
    if n_items >= _MIN_ITEMS:
        low, high = bootstrap.interval(drawn, n_items)
        bias = np.nanmean(drawn[:, size:], axis=0) - observed[size:]
        low[size:], high[size:] = (
            np.maximum(0.0, low[size:] - bias),
            np.minimum(1.0, high[size:] - bias),
        )
        ends, interval = np.stack([low, high]), str(bootstrap)
    titles = [("r", f"Pearson's r with {name}") for name in names]
    titles += [("R2", f"R² of {name}") for name in (*names, ", ".join(names))]
    estimates = [
        Estimate(name, value, low, high, len(item), f"{title}, {scope}; {interval}")
        for (name, title), value, low, high in zip(
            titles, observed.tolist(), *ends.tolist(), strict=True
        )
    ]
    return estimates[:size], estimates[size:-1], estimates[-1]
