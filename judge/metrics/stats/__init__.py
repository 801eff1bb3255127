"""Summary statistics: length, copying, repetition, support and surface defects of a text beside its source."""

from judge.metrics.stats.features import Features, Measure, measured
from judge.metrics.stats.metric import Stats, score

__all__ = ["Features", "Measure", "Stats", "measured", "score"]
