"""The evidence of single scores: their values, and how uncertain their replies leave them.

`mean_tests` tests the mean of several scores, and `case_scores` looks them up in a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import fsum, sqrt

import numpy as np

from judge.core.failure_kinds import failure_kind
from judge.core.records import IDENTICAL, Column, Failure, Score
from judge.stats.bootstrap import Floats
from judge.table import Text

NEAR = 1e-9
"""How far a value may be from a limit by rounding alone."""
_JUDGED = ("logprobs", "decisions", "samples", "single", "panel", "checklist")
Row = Score | Failure


class Undecidable(Exception):
    """A case that cannot be decided: the reason, and the judge's reply."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ScoreEvidence:
    """A score with its uncertainty.

    `low` and `high` bound the value for any outcome of what was not seen: probability outside the
    labels, or draws that did not parse. Both are None for a single reply. `sd` is the standard
    deviation of the `n` draws (divisor n − 1); None for fewer than two draws, or if the values of
    their labels are unknown.
    """

    value: float
    low: float | None
    high: float | None
    sd: float | None = None
    n: int = 1


Parts = Sequence[tuple[float, ScoreEvidence]]
"""The terms of a weighted sum: each score's factor and its evidence."""


def shares(score: Score) -> dict[str, float]:
    """Return the probability of each label in a single reply, or each label's share of the draws.

    They add up to 1. A single reply's label has 1. Empty for a score that is not made of labels.
    """
    provenance = score.provenance
    distribution = provenance.distribution or {}
    mass = fsum(distribution.values())
    if mass > 0:
        return {label: share / mass for label, share in distribution.items()}
    if provenance.argmax is None:
        return {}
    return {provenance.argmax: 1.0}


def label_values(column: Column) -> dict[str, float]:
    """Return the value of each label; empty if an older judge stored the column."""
    return dict(zip(column.labels, column.values, strict=False))


def evidence_of(score: Score, value_by_label: Mapping[str, float]) -> ScoreEvidence:
    """Return a score as evidence. A score without a judge has no uncertainty."""
    value = score.value
    provenance = score.provenance
    # Metrics, and equal texts that no judge compared, have exact values.
    if provenance.method not in _JUDGED:
        return ScoreEvidence(value, value, value)
    if provenance.method == "samples":
        return _evidence_of_draws(score, value_by_label)
    # One label, or a panel's vote, says nothing about how certain it is.
    is_single = provenance.method in ("single", "panel")
    if is_single or provenance.low is None or provenance.high is None:
        return ScoreEvidence(value, None, None)
    return ScoreEvidence(value, provenance.low, provenance.high)


def _evidence_of_draws(
    score: Score, value_by_label: Mapping[str, float]
) -> ScoreEvidence:
    """Return a mean of draws as evidence, with the standard deviation of the draws."""
    value = score.value
    provenance = score.provenance
    n_draws = provenance.n
    share_by_label = shares(score)
    has_unknown_labels = bool(share_by_label.keys() - value_by_label.keys())
    if n_draws < 2 or has_unknown_labels:
        return ScoreEvidence(value, None, None, n=n_draws)
    weighted_values = []
    for label, share in share_by_label.items():
        weighted_values.append(share * value_by_label[label])
    mean = fsum(weighted_values)
    weighted_squares = []
    for label, share in share_by_label.items():
        distance = value_by_label[label] - mean
        weighted_squares.append(share * distance**2)
    variance = fsum(weighted_squares)
    lower_bound = value if provenance.low is None else provenance.low
    upper_bound = value if provenance.high is None else provenance.high
    # The shares have divisor n; a sample's standard deviation has n − 1.
    deviation = sqrt(variance * n_draws / (n_draws - 1))
    return ScoreEvidence(value, lower_bound, upper_bound, sd=deviation, n=n_draws)


def likeliest(share_by_label: Mapping[str, float]) -> str:
    """Return the likeliest label, "" if there is none. Of several, it is the first of the scale."""
    return max(share_by_label, key=share_by_label.__getitem__, default="")


def label_margin(score: Score, label: str, opponent_label: str) -> ScoreEvidence:
    """Return how much likelier a label is than another one: −1 to 1."""
    share_by_label = shares(score)
    share = share_by_label.get(label, 0.0)
    opponent_share = share_by_label.get(opponent_label, 0.0)
    value = share - opponent_share
    mass = score.provenance.mass
    seen_mass = 1.0 if mass is None else min(mass, 1.0)
    # All of the unseen probability may be on the one label, or on the other.
    unseen_mass = 1 - seen_mass
    seen_value = value * seen_mass
    bounded = replace(
        score.provenance,
        low=seen_value - unseen_mass,
        high=seen_value + unseen_mass,
    )
    value_by_label = dict.fromkeys(share_by_label, 0.0)
    value_by_label[label] = 1.0
    value_by_label[opponent_label] = -1.0
    margin = replace(score, value=value, provenance=bounded)
    return evidence_of(margin, value_by_label)


def flip_probability(
    score: Score,
    is_met: Callable[[float], bool],
    value_by_label: Mapping[str, float],
) -> float | None:
    """Return the share (0–1) of single replies whose label's value does not meet an expectation.

    None for a single reply, and if the value of a label is unknown.
    """
    provenance = score.provenance
    if not provenance.distribution or provenance.method in (IDENTICAL, "panel"):
        return None
    share_by_label = shares(score)
    if share_by_label.keys() - value_by_label.keys():
        return None
    unmet_shares = []
    for label, share in share_by_label.items():
        if not is_met(value_by_label[label]):
            unmet_shares.append(share)
    return fsum(unmet_shares)


def item_means(
    texts: Iterable[Text],
    parts_of: Callable[[str, str], Parts],
    source_items: Mapping[str, str],
) -> list[Parts]:
    """Return each item's mean over its texts, from the terms of each.

    Texts without terms are left out. `source_items` maps the item of a generation to the item of
    the data that it was generated for.
    """
    parts_by_item: dict[str, list[Parts]] = {}
    for item, system in texts:
        parts = parts_of(item, system)
        if parts:
            source_item = source_items.get(item, item)
            parts_by_item.setdefault(source_item, []).append(parts)
    return [mean_of(texts_of_item) for texts_of_item in parts_by_item.values()]


def scaled(parts: Parts, by: float) -> Parts:
    """Return the terms with their factors multiplied."""
    return [(by * factor, evidence) for factor, evidence in parts]


def mean_of(texts: Sequence[Parts]) -> Parts:
    """Return the terms of a mean over texts, each with its terms."""
    n_texts = len(texts)
    all_terms = chain.from_iterable(texts)
    return [(factor / n_texts, evidence) for factor, evidence in all_terms]


def item_values(items: Sequence[Parts]) -> Floats:
    """Return the value of each item."""
    return np.array([_value(item) for item in items])


def _value(parts: Parts) -> float:
    """Return the weighted sum of the scores."""
    return fsum(factor * evidence.value for factor, evidence in parts)


def describe_failure(failure: Failure) -> str:
    """Return a failure's message and the reply, if any."""
    message = f"{failure_kind(failure.error)}: {failure.message}"
    if failure.raw and failure.raw not in failure.message:
        return f"{message}\nreply: {failure.raw}"
    return message
