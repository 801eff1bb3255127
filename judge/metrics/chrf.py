"""chrF (Popović 2015) and chrF++ (Popović 2017) of single texts, through sacrebleu (Post 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import ClassVar, cast

from judge.core.records import Column, Sample
from judge.metrics import MetricResult
from judge.metrics.common import (
    Rate,
    as_samples,
    bool_option,
    by_references,
    format_number,
    number,
    reference_count,
    values,
    whole_number,
)

__all__ = ["Chrf", "score"]


class Chrf:
    """Sentence chrF2 (0–100): F of recall weighted double, over character n-grams up to 6, for any script.

    White space does not count. Of several references the one with the best score counts. `char_order` (1–20) and
    `word_order` (0–10) are the longest n-grams of characters and words: chrF++ is `word_order=2`. `beta` weighs recall.
    """

    rowwise: ClassVar[bool] = True

    def __init__(self, *, char_order: int = 6, word_order: int = 0, beta: float = 2, lowercase: bool = False) -> None:
        self._char = whole_number("chrf.char_order", char_order, 1, 20)
        self._word = whole_number("chrf.word_order", word_order, 0, 10)
        self._beta = number("chrf.beta", beta, 0, 100)
        self._lower = bool_option("chrf.lowercase", lowercase)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample. A sample without a reference is a `Failure`, an empty output scores 0."""
        from sacrebleu.metrics.chrf import CHRF

        def prepare(targets: tuple[str, ...]) -> Rate:
            scorer = CHRF(
                char_order=self._char,
                word_order=self._word,
                beta=cast("int", self._beta),  # any number is right
                lowercase=self._lower,
                references=[[reference] for reference in targets],
            )
            return lambda output: min(scorer.corpus_score([output], None).score, 100.0)  # rounding may go beyond

        rows = by_references(samples, "chrf", prepare)
        parts = [
            f"chrf|sentence|nrefs={reference_count(samples)}|case={'lc' if self._lower else 'mixed'}|eff=yes",
            f"nc={self._char}|nw={self._word}|space=no",
            *([] if self._beta == 2 else [f"beta={format_number(self._beta)}"]),
            f"sacrebleu {version('sacrebleu')}",
        ]
        return MetricResult((Column("chrf", "metric", "|".join(parts), low=0.0, high=100.0),), rows)


def score(
    outputs: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: float = 2,
    lowercase: bool = False,
) -> list[float]:
    """chrF, 0–100, of each output against its reference or the best of its references: see `Chrf`.

    Raises DataError where an output has no reference, ConfigError for an option out of range.
    """
    metric = Chrf(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase)
    return values(metric, as_samples(outputs, references))
