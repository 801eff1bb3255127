"""Diversity: how much a system repeats itself (distinct-N, Self-BLEU, Pairwise-BLEU) or its source (source-BLEU)."""

from judge.metrics.diversity.against_all import SelfBleu, self_bleu, self_bleu_each
from judge.metrics.diversity.against_source import SourceBleu, source_bleu
from judge.metrics.diversity.distinct_n import Distinct, distinct
from judge.metrics.diversity.pairwise import PairwiseBleu, pairwise_bleu

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
