"""BLEU (Papineni et al. 2002) of single texts, through sacrebleu (Post 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from judge import text
from judge.metrics import MetricResult, against_references, reference_count, references
from judge.records import Column, Sample

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

# `char` and not `ja-mecab` or `ko-mecab`, which need dictionaries; 13a leaves a Japanese sentence one single token.
_TOKENIZERS: dict[text.Language, str] = {"en": "13a", "zh": "zh", "ja": "char", "ko": "char"}


class Bleu:
    """Sentence BLEU (0–100) with effective order, exponential smoothing and all references at once.

    The script of the references picks the tokenizer, so that all systems of an item share it: `zh` for Chinese,
    `char` for Japanese and Korean, else `13a`.
    """

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample. A sample without a reference is a `Failure`, an empty output scores 0."""
        used = {_tokenizer(found) for sample in samples if (found := references(sample))}
        scorers = {name: _scorer(name) for name in used}

        def compare(output: str, found: Sequence[str]) -> list[float]:
            score = scorers[_tokenizer(found)].sentence_score(output, found).score
            return [min(score, 100.0)]  # rounding takes equal texts to 100.00000000000004

        rows = against_references(samples, ["bleu"], compare)
        signature = (
            f"bleu|sentence|nrefs={reference_count(samples)}|case=mixed|eff=yes|tok={'+'.join(sorted(used)) or '13a'}"
            f"|smooth=exp|sacrebleu {version('sacrebleu')}"
        )
        return MetricResult((Column("bleu", "metric", signature, low=0.0, high=100.0),), rows)


def _tokenizer(found: Sequence[str]) -> str:
    return _TOKENIZERS[text.language(found)]


def _scorer(tokenizer: str) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    # force: SummEval's tokenized full stops would otherwise be complained of on the user's terminal.
    return BLEU(tokenize=tokenizer, smooth_method="exp", effective_order=True, force=True)
