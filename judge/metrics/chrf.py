"""chrF (Popović 2015) of single texts, through sacrebleu (Post 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from judge.metrics import MetricResult, against_references, reference_count
from judge.records import Column, Sample


class Chrf:
    """Sentence chrF2 (0–100): F of recall weighted double, over character n-grams up to 6, for any script.

    White space does not count. Of several references the one with the best score counts.
    """

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample. A sample without a reference is a `Failure`, an empty output scores 0."""
        from sacrebleu.metrics.chrf import CHRF

        scorer = CHRF(char_order=6, word_order=0, beta=2)

        def compare(output: str, found: Sequence[str]) -> list[float]:
            return [min(scorer.sentence_score(output, found).score, 100.0)]  # rounding may go beyond

        rows = against_references(samples, ["chrf"], compare)
        signature = (
            f"chrf|sentence|nrefs={reference_count(samples)}|case=mixed|eff=yes|nc=6|nw=0|space=no"
            f"|sacrebleu {version('sacrebleu')}"
        )
        return MetricResult((Column("chrf", "metric", signature, low=0.0, high=100.0),), rows)
