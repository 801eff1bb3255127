"""Compute chrF (Popović 2015) and chrF++ (Popović 2017) of single texts as sacrebleu does (Post 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar

from judge.core.records import Sample
from judge.metrics import MetricResult
from judge.metrics.common import ReferenceMetric, format_number, list_function, number, setting, whole_number

__all__ = ["Chrf", "score"]


@dataclass(frozen=True, kw_only=True)
class Chrf(ReferenceMetric):
    """Sentence chrF2 (0–100): F with recall weighted double, over character n-grams up to 6, for any script.

    White space does not count. The reference with the best score counts. `char_order` (1–20) and `word_order` (0–10)
    are the longest n-grams of characters and words: chrF++ is `word_order=2`. `beta` weighs recall.
    """

    name: ClassVar[str] = "chrf"
    high: ClassVar[float | None] = 100.0
    char_order: int = setting(6, whole_number, 1, 20)
    word_order: int = setting(0, whole_number, 0, 10)
    beta: float = setting(2, number, 0, 100)
    lowercase: bool = False

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample. A sample without a reference is a `Failure`; an empty output scores 0."""
        from sacrebleu.metrics.chrf import CHRF

        scorer = CHRF(self.char_order, self.word_order, self.beta, self.lowercase)  # type: ignore[arg-type]
        parts = [
            f"case={'lc' if self.lowercase else 'mixed'}|eff=yes|nc={self.char_order}|nw={self.word_order}|space=no",
            *([] if self.beta == 2 else [f"beta={format_number(self.beta)}"]),
            f"sacrebleu {version('sacrebleu')}",
        ]
        return self.compare(
            samples,
            lambda targets, used: lambda output: min(scorer.sentence_score(output, targets).score, 100.0),
            lambda used: "|".join(parts),
        )


score = list_function(
    Chrf,
    """chrF, 0–100, of each output against its reference or the best of its references: see `Chrf`.

    Raises DataError where an output has no reference, ConfigError for an option out of range.
    """,
)
