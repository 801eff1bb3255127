"""Pass rates by people's verdicts, from a judge's scores of all texts and ratings of some."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from judge.core.records import Estimate
from judge.core.scale_words import pass_mark
from judge.stats.bootstrap import Floats, item_means, mean_estimate
from judge.stats.calibration import Calibrated, calibrate_column
from judge.stats.correlation import criterion
from judge.stats.derived_columns import pass_columns, pass_table
from judge.stats.pass_agreement import people_passes
from judge.stats.powered_mean import Powered, powered
from judge.table import Table


@dataclass(frozen=True, slots=True)
class SystemPassRate:
    """The share of a system's texts that pass, from 0 to 1.

    `judge` is the share by the judge's scores alone, `people` the estimated share by people's
    ratings.
    """

    system: str
    judge: Estimate
    people: Powered


@dataclass(frozen=True, slots=True)
class CalibratedPassRates:
    """The pass rates of a criterion's column, that of the best system first.

    `mark` names the values that pass, such as `≥ 4` or `≥ good`. `note` explains what could not be
    estimated.
    """

    column: str
    mark: str
    rates: tuple[SystemPassRate, ...]
    note: str = ""


def calibrated_pass_rates(table: Table) -> tuple[CalibratedPassRates, ...]:
    """Return the pass rates of each criterion that has `pass_at` and ratings.

    It is `powered_share` of 1 for pass and 0 for fail, by the judge and by people
    (`people_passes`). A panel is represented by its own column.
    """
    criteria = [column for column in table.columns if column.kind == "criterion"]
    columns = [
        column for column in criteria if not column.judge and column.pass_at is not None
    ]
    passes = pass_table(table)
    raw_rates = item_means(passes)
    rate_columns = pass_columns(columns)
    calibrated: list[CalibratedPassRates] = []
    for column in columns:
        rating_name = criterion(column)
        if not any(rating_name in sample.human for sample in table.samples):
            continue
        rate_column = rate_columns[column.name]
        people = people_passes(table.samples, rating_name, column)
        estimated = Calibrated(rate_column.name, note=people.reason)
        if people.passes:
            estimated = calibrate_column(
                passes,
                rate_column,
                rating_name,
                people.passes,
                estimate_mean=powered_share,
            )
        rates: list[SystemPassRate] = []
        for mean in estimated.means:
            raw_rate = raw_rates[mean.system, rate_column.name]
            rates.append(SystemPassRate(mean.system, raw_rate, mean))
        mark = pass_mark(column)
        of_column = CalibratedPassRates(column.name, mark, tuple(rates), estimated.note)
        calibrated.append(of_column)
    return tuple(calibrated)


_ADDED_RATINGS = np.array([1.0, 0.0, 1.0, 0.0])
_ADDED_SCORES = np.array([1.0, 1.0, 0.0, 0.0])
"""One text of each kind: people and the judge agree on a pass, disagree in both ways, agree."""


def powered_share(ratings: Floats, scores: Floats, others: Floats) -> Powered:
    """Return the share of passes by people's ratings, from rated and judged items.

    All values are 1 or 0 (or means of several generations), and there are at least two ratings. The
    value is that of `powered`, limited to 0–1. Among few ratings the judge may make no error by
    chance, and the interval of `powered` would be far too narrow: with 10 ratings it held its level
    in as few as 66% of simulations. So the interval is that with four added rated texts, one of
    each kind. If it is not narrower than Wilson's of the ratings alone, these are the estimate, and
    the judge has no weight. It holds its level in 94–100%.
    """
    plain = powered(ratings, scores, others)
    # Wilson's interval, which stays within 0–1, instead of the t interval of `powered`.
    people = mean_estimate(ratings, 0.0, 1.0)
    if not plain.weight:
        return replace(plain, estimate=people, people=people)
    all_ratings = np.append(ratings, _ADDED_RATINGS)
    all_scores = np.append(scores, _ADDED_SCORES)
    padded = powered(all_ratings, all_scores, others).estimate
    value = _limited(plain.estimate.value)
    # The value is without the added ratings, so it may lie outside of their interval.
    lower_bound = value if padded.low is None else min(value, _limited(padded.low))
    upper_bound = value if padded.high is None else max(value, _limited(padded.high))
    estimate = replace(
        plain.estimate,
        value=value,
        low=lower_bound,
        high=upper_bound,
        method=f"{padded.method}, with 4 added ratings, limited to 0–1",
    )
    if _width(estimate) >= _width(people):
        return replace(plain, estimate=people, people=people, weight=0.0)
    return replace(plain, estimate=estimate, people=people)


def _limited(share: float) -> float:
    """Return the share, limited to 0–1."""
    return min(1.0, max(0.0, share))


def _width(estimate: Estimate) -> float:
    """Return the width of an interval; that of all shares without one."""
    if estimate.low is None or estimate.high is None:
        return 1.0
    return estimate.high - estimate.low
