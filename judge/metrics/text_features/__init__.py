"""Summary statistics: length, copying, repetition, support and surface defects of a text beside its source."""

from judge.metrics.text_features.features import Features, Measure, measured
from judge.metrics.text_features.metric import Stats, score

__all__ = ["Features", "Measure", "Stats", "measured", "score"]
