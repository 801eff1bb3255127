"""Compare which texts pass by a judge and by people, on a criterion with `pass_at`.

`people_passes` turns ratings into pass and fail, and `pass_agreement` compares them with a judge's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from judge.core.records import Column, Estimate, Sample
from judge.core.scale_words import pass_mark
from judge.stats.agreement import agree
from judge.stats.bootstrap import (
    DEFAULT,
    Bools,
    Bootstrap,
    Floats,
    mean_interval,
    sum_of_squares,
)
from judge.stats.rating_scales import are_verdicts, on_scale, votes_on
from judge.table import Text

PassMeasure = Literal["accuracy", "true_positive_rate", "true_negative_rate", "kappa"]

_HALF = 0.5  # a tie of the verdicts passes, as `pass_at` itself does
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PeoplesVerdicts:
    """Which texts pass by people's ratings: 1 or 0 by text.

    With `are_verdicts`, the ratings are verdicts, 0 or 1, not points of a scale. If `passes` is
    empty, `reason` says why.
    """

    passes: Mapping[Text, float]
    are_verdicts: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PassAgreement:
    """Texts by whether they pass by the judge and by people, and measures of their agreement.

    A text passes by the judge if its score reaches `pass_at` (`mark` is its text, such as `≥ 4`),
    and by people if their mean rating does. With `verdicts`, the ratings are 1 (pass) or 0 (fail),
    or the other way round if lower values are better, and a text passes if half of them say so. The
    four counts are of texts: passed by both, by the judge only, by people only, and by neither.

    `accuracy` is the share of texts on which both agree, from 0 to 1. `true_positive_rate` is the
    share of people's passes that the judge passes, `true_negative_rate` the share of people's fails
    that it fails. The false positive rate is 1 minus the latter. `kappa` is Cohen's (1960): 1 is
    perfect agreement, 0 is chance. `lacking` says why a measure has no value.
    """

    pass_at: float
    mark: str
    verdicts: bool
    both: int
    judge_only: int
    people_only: int
    neither: int
    accuracy: Estimate | None = None
    true_positive_rate: Estimate | None = None
    true_negative_rate: Estimate | None = None
    kappa: Estimate | None = None
    lacking: Mapping[PassMeasure, str] = field(default_factory=dict)

    @property
    def texts(self) -> int:
        return self.both + self.judge_only + self.people_only + self.neither

    @property
    def estimates(self) -> dict[PassMeasure, Estimate]:
        """The measures that have a value."""
        measures: dict[PassMeasure, Estimate | None] = {
            "accuracy": self.accuracy,
            "true_positive_rate": self.true_positive_rate,
            "true_negative_rate": self.true_negative_rate,
            "kappa": self.kappa,
        }
        return {
            measure: estimate
            for measure, estimate in measures.items()
            if estimate is not None
        }


def people_passes(
    samples: Sequence[Sample],
    criterion_name: str,
    column: Column,
) -> PeoplesVerdicts:
    """Return which of the rated texts pass by people's ratings of this criterion.

    If the ratings are on the column's scale, their mean has to reach its `pass_at`. Of verdicts
    (`are_verdicts`), half have to be 1, wherever `pass_at` is, or 0 if lower values are better.
    """
    rated = [sample for sample in samples if criterion_name in sample.human]
    if column.low is None or column.high is None or column.pass_at is None:
        return PeoplesVerdicts({}, reason="its column has no scale")
    votes = {vote for sample in rated for vote in votes_on(sample, criterion_name)}
    if are_verdicts(votes, column.low, column.high):
        verdicts = _majority_verdicts(rated, criterion_name, column)
        return PeoplesVerdicts(verdicts, are_verdicts=True)
    passes: dict[Text, float] = {}
    for sample in on_scale(rated, criterion_name, column.low, column.high):
        if criterion_name in sample.human:
            is_pass = bool(column.passes(sample.human[criterion_name]))
            passes[sample.key] = float(is_pass)
    if not passes:
        means = [sample.human[criterion_name] for sample in rated]
        people = "no ratings"
        if means:
            people = f"people rated from {min(means):g} to {max(means):g}"
        scale = f"the judge on a scale of {column.low:g} to {column.high:g}"
        return PeoplesVerdicts({}, reason=f"{people}, {scale}")
    return PeoplesVerdicts(passes)


def _majority_verdicts(
    rated: Sequence[Sample],
    criterion_name: str,
    column: Column,
) -> dict[Text, float]:
    """Return 1 for each text that at least half of the verdicts let pass, else 0."""
    # As on the scale itself, 1 is the upper end, which may be the worse one.
    is_reversed = column.better == "lower"
    verdicts: dict[Text, float] = {}
    for sample in rated:
        mean = sample.human[criterion_name]
        is_pass = mean <= _HALF if is_reversed else mean >= _HALF
        verdicts[sample.key] = float(is_pass)
    return verdicts


def pass_agreement(
    samples: Sequence[Sample],
    scores: Mapping[Text, float],
    people: PeoplesVerdicts,
    column: Column,
    bootstrap: Bootstrap = DEFAULT,
) -> PassAgreement | None:
    """Compare a judge's passes with people's; None if no text has both.

    `scores` are the judge's by text, `people` the verdicts of `people_passes`. A share has the
    interval of `share_over_items`. Kappa has that of `judge.stats.agreement`, which resamples items
    with all their texts.
    """
    if column.pass_at is None:
        return None
    passes: dict[Text, float] = {}
    for text, score in scores.items():
        passes[text] = 1.0 if column.passes(score) else 0.0
    judged = [sample for sample in samples if sample.key in passes]
    texts = [sample for sample in judged if sample.key in people.passes]
    if not texts:
        return None
    judge = _texts_by_item(texts, passes)
    both_known = ~np.isnan(judge)
    judge_passes = judge == 1
    people_pass = _texts_by_item(texts, people.passes) == 1
    same = both_known & (judge_passes == people_pass)
    both_pass = judge_passes & people_pass
    people_fail = both_known & ~people_pass
    both_fail = people_fail & ~judge_passes
    accuracy = share_over_items("accuracy", same, both_known)
    true_positive_rate = share_over_items("true_positive_rate", both_pass, people_pass)
    true_negative_rate = share_over_items("true_negative_rate", both_fail, people_fail)
    lacking: dict[PassMeasure, str] = {}
    if true_positive_rate is None:
        lacking["true_positive_rate"] = "people pass no text"
    if true_negative_rate is None:
        lacking["true_negative_rate"] = "people pass every text"
    kappa, no_kappa = _kappa(judge_passes, people_pass, both_known, bootstrap)
    if no_kappa:
        lacking["kappa"] = no_kappa
    n_judge_only = int((judge_passes & ~people_pass).sum())
    n_people_only = int((people_pass & ~judge_passes).sum())
    return PassAgreement(
        column.pass_at,
        pass_mark(column),
        people.are_verdicts,
        both=int(both_pass.sum()),
        judge_only=n_judge_only,
        people_only=n_people_only,
        neither=int(both_fail.sum()),
        accuracy=accuracy,
        true_positive_rate=true_positive_rate,
        true_negative_rate=true_negative_rate,
        kappa=kappa,
        lacking=lacking,
    )


def _texts_by_item(samples: Sequence[Sample], passes: Mapping[Text, float]) -> Floats:
    """Return a value for each text, items × texts of the item; NaN fills the row."""
    values_of_item: dict[str, list[float]] = {}
    for sample in samples:
        own_values = values_of_item.setdefault(sample.source_item, [])
        own_values.append(passes[sample.key])
    most = max(len(values) for values in values_of_item.values())
    rows = np.full((len(values_of_item), most), np.nan)
    for row, values in zip(rows, values_of_item.values(), strict=True):
        row[: len(values)] = values
    return rows


def share_over_items(
    share_name: str, hits: Bools | Floats, counted: Bools
) -> Estimate | None:
    """Return the share of the `counted` texts that are `hits`; None without any.

    Both are items × texts; a text may be a hit in part (0–1). The interval is Wilson's (1927) with
    Student's t over items. Its number of tries is the one that gives the variance of a ratio of
    sums over items (Cochran 1977, section 9A.3; Franco et al. 2019), but at most the number of
    texts. If all items have the same share, each item is one try.
    """
    hits_of_item = hits.sum(axis=1).astype(np.float64)
    texts_of_item = counted.sum(axis=1).astype(np.float64)
    has_texts = texts_of_item > 0
    items = int(has_texts.sum())
    texts = int(texts_of_item.sum())
    if not texts:
        return None
    share = float(hits_of_item.sum()) / texts
    residuals = (hits_of_item - share * texts_of_item)[has_texts]
    mean_texts = texts / items
    # Of one item, as `mean_interval` takes it: its mean over items is the share.
    squares = sum_of_squares(residuals)
    variance = squares / max(1, items - 1) / mean_texts**2
    if variance > _ROUNDING:
        # The variance of independent texts is the least: no more tries than texts.
        binomial = items * share * (1 - share) / texts
        variance = max(variance, binomial)
    ends = mean_interval(share, variance, items, 0.0, 1.0)
    return Estimate(
        name=share_name,
        value=share,
        low=ends.low,
        high=ends.high,
        n=texts,
        method=ends.method,
    )


def _kappa(
    judge_passes: Bools,
    people_pass: Bools,
    is_known: Bools,
    bootstrap: Bootstrap,
) -> tuple[Estimate | None, str]:
    """Return Cohen's kappa of the two, or why it is undefined."""
    if is_known.sum() < 2:
        return None, "only one text is rated and scored"
    sides = np.stack([judge_passes, people_pass]).astype(np.float64)
    both_sides = np.where(is_known, sides, np.nan)
    agreement = agree(both_sides, ("kappa_quadratic",), bootstrap)
    estimate = agreement.estimates.get("kappa_quadratic")
    if estimate is None:
        if judge_passes[is_known].all() and people_pass[is_known].all():
            return None, "judge and people pass every text"
        if not judge_passes.any() and not people_pass.any():
            return None, "judge and people pass no text"
        return None, agreement.lacking["kappa_quadratic"]
    # Of two labels, quadratic weights are those of the unweighted coefficient.
    method = estimate.method.replace(
        "Cohen's kappa, quadratic weights, 2 raters", "Cohen's kappa"
    )
    return replace(estimate, name="kappa", method=method), ""
