"""ROUGE (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries") through the rouge-score package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from judge import text
from judge.metrics import MetricResult, against_references, references
from judge.records import Column, Sample

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")


class Rouge:
    """F1 (0–1) of unigrams, bigrams and the longest common subsequence, over whole texts and sentence by sentence.

    Of several references each type takes the one with the best F. Words are cut and stemmed (Porter) by
    rouge-score's English rules, `tok=en`; these drop every letter but a-z, so that a row where they would lose
    most letters of the output or of a reference is cut by `text.tokens` instead, `tok=char`: Chinese, Japanese
    and Korean by character, other scripts by word. rougeLsum reads the sentences that `text.sentences` finds.
    """

    def __init__(self, *, stemmer: bool = True) -> None:
        self.stemmer = stemmer

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample and type. A sample without a reference is a `Failure`, an empty output scores 0."""
        used = {_rules(sample.output, found) for sample in samples if (found := references(sample))}
        scorers = {rules: _scorer(rules, self.stemmer) for rules in used}

        def compare(output: str, found: Sequence[str]) -> list[float]:
            prediction, *targets = ("\n".join(text.sentences(part)) for part in (output, *found))
            best = scorers[_rules(output, found)].score_multi(targets, prediction)
            return [best[name].fmeasure for name in _TYPES]

        rows = against_references(samples, _TYPES, compare)
        return MetricResult(tuple(self._column(name, used) for name in _TYPES), rows)

    def _column(self, name: str, used: set[str]) -> Column:
        tok = "+".join(rules for rules in ("en", "char") if rules in used) or "en"
        parts = [name, "f", "stem" if self.stemmer else "nostem", f"tok={tok}"]
        if name == "rougeLsum":
            parts.append("sent=lines-or-stops")
        parts += ["refs=best", f"rouge-score {version('rouge-score')}"]
        return Column(name, "metric", "|".join(parts), low=0.0, high=1.0)


def _rules(output: str, found: Sequence[str]) -> str:
    return "char" if any(text.is_cjk(part) for part in (output, *found)) else "en"


def _scorer(rules: str, stemmer: bool) -> RougeScorer:
    from rouge_score.rouge_scorer import RougeScorer  # brings nltk, which takes over a second
    from rouge_score.tokenizers import DefaultTokenizer

    tokenize = text.tokens if rules == "char" else DefaultTokenizer(use_stemmer=stemmer).tokenize
    return RougeScorer(list(_TYPES), tokenizer=_Remembering(tokenize))


class _Remembering:
    """The tokenizer that rouge-score asks for; cuts each text once, as a reference returns with every system."""

    def __init__(self, tokenize: Callable[[str], list[str]]) -> None:
        self.tokenize = lru_cache(maxsize=2**16)(tokenize)
