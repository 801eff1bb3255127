"""Diversity: how much a system repeats itself (distinct-N, Self-BLEU, Pairwise-BLEU) or its source (source-BLEU)."""

from judge.metrics.diversity.distinct_n import Distinct, distinct
from judge.metrics.diversity.pairwise import PairwiseBleu, pairwise_bleu
from judge.metrics.diversity.self_and_source_bleu import SelfBleu, SourceBleu, self_bleu, self_bleu_each, source_bleu

__all__ = [
    "Distinct",
    "PairwiseBleu",
    "SelfBleu",
    "SourceBleu",
    "distinct",
    "pairwise_bleu",
    "self_bleu",
    "self_bleu_each",
    "source_bleu",
]
