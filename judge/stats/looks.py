"""What the texts of a run look like, for the report's view of what moves the judge."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from judge.core.records import Sample
from judge.metrics.text_features import Features, measured
from judge.stats.score_drivers import Looks, Text


def looks(samples: Sequence[Sample]) -> dict[Text, Looks]:
    """The length, copying and position of every text; a text without a source has its length alone."""
    return {(s.item, s.system): _looks(found) for s, found in zip(samples, measured(samples), strict=True)}


def _looks(found: Features) -> Looks:
    length = log(found.words) if found.words else None
    return Looks(length, None if found.novel2 is None else 1 - found.novel2, found.position)
