"""BERTScore (Zhang et al. 2020): bert-score's numbers, right also where bert-score breaks, and kept from run to run."""

from judge.metrics.bertscore.matching import BertScoreValue, fit_rescaling, rescale_linear
from judge.metrics.bertscore.metric import BertScore, score

__all__ = ["BertScore", "BertScoreValue", "fit_rescaling", "rescale_linear", "score"]
