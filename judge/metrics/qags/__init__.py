"""QAGS (Wang, Cho and Lewis 2020): whether a source and an output give the same answers to questions on the output."""

from judge.metrics.qags.metric import Qags, QagsValue, score
from judge.metrics.qags.similarity import similarities

__all__ = ["Qags", "QagsValue", "score", "similarities"]
