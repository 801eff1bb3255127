"""BERTScore (Zhang et al. 2020): bert-score's numbers, right also where bert-score breaks, and kept from run to run."""

from judge.metrics.bertscore.metric import BertScore, score
from judge.metrics.bertscore.values import BertScoreValue, corrected, fit

__all__ = ["BertScore", "BertScoreValue", "corrected", "fit", "score"]
