"""Compute METEOR (Banerjee and Lavie 2005, whose parameters these are) as NLTK does.

F = P·R / (α·P + (1 − α)·R), times 1 − γ · (chunks / matches)^β.

Words are matched in stages: equal words, equal stems, synonyms. Of several equal words the last one of the output
matches the last one of the reference, as in NLTK; the papers minimise crossings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, ClassVar

from judge import text
from judge.core.errors import MissingExtra
from judge.core.records import Column, Sample
from judge.core.version import __version__
from judge.metrics import MetricResult
from judge.metrics.common import (
    CannotScore,
    Rate,
    bool_option,
    by_references,
    format_number,
    joined,
    list_function,
    number,
    reference_count,
    tokenizer_loss,
)
from judge.metrics.common import references as usable
from judge.metrics.common import tokenizer as tokenizer_option

__all__ = ["Meteor", "score"]

Stage = Callable[[str], Iterable[str]]
"""Maps a word of the output to the forms that it may match."""


class Meteor:
    """METEOR (0–1): a mean of precision and recall that favours recall, with a penalty for matches out of order.

    Words come from `text.words`, by `tokenizer` or by script; the best reference counts. `alpha` weighs recall, the
    penalty is `gamma` · (chunks / matches)^`beta`; equal texts are one chunk and score slightly below 1. WordNet's
    synonyms count if NLTK and its data `wordnet` are installed (`stages` in the signature); `wordnet` forces or forbids
    them.
    """

    rowwise: ClassVar[bool] = True

    def __init__(
        self,
        *,
        alpha: float = 0.9,
        beta: float = 3.0,
        gamma: float = 0.5,
        tokenizer: str | None = None,
        wordnet: bool | None = None,
    ) -> None:
        self._alpha = number("meteor.alpha", alpha, 0, 1)
        self._beta = number("meteor.beta", beta, 0, 100)
        self._gamma = number("meteor.gamma", gamma, 0, 1)
        self._tokenizer = tokenizer_option("meteor.tokenizer", tokenizer)
        self._wordnet = None if wordnet is None else bool_option("meteor.wordnet", wordnet)
        if self._wordnet and not _has_wordnet():
            raise MissingExtra(
                "meteor.wordnet needs NLTK and its WordNet: pip install nltk, then python -m nltk.downloader wordnet"
            )

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample; an output without a match scores 0.

        A `Failure`: a sample without a reference, or whose references have no words by the tokenizer.
        """
        synonyms = _has_wordnet() if self._wordnet is None else self._wordnet
        used: set[str] = set()

        def prepare(targets: tuple[str, ...]) -> Rate:
            @lru_cache(maxsize=4)
            def reference_words(tokenizer: str) -> list[list[str]]:
                if words := [cut for target in targets if (cut := text.words(tokenizer)(target))]:
                    return words
                raise CannotScore("NoTokens", f"its references have no words by the tokenizer {tokenizer}")

            def rate(output: str) -> float:
                name = self._tokenizer or text.tokenizer_for([output, *targets])
                used.add(name)
                words = text.words(name)(output)
                return max(self._value(words, reference, synonyms) for reference in reference_words(name))

            return rate

        rows = by_references(samples, "meteor", prepare)
        tok = joined(map(text.signature, used))
        signature = (
            f"meteor|sentence|nrefs={reference_count(samples)}|stages=exact+stem{_wordnet() if synonyms else ''}"
            f"|alpha={format_number(self._alpha)}|beta={format_number(self._beta)}|gamma={format_number(self._gamma)}|tok={tok}|refs=best"
            f"|judge {__version__}"
        )
        all_texts = (string for sample in samples for string in (sample.output, *usable(sample)))
        notes = (tokenizer_loss("meteor", self._tokenizer, all_texts),) if self._tokenizer else ()
        return MetricResult((Column("meteor", "metric", signature, low=0.0, high=1.0),), rows, notes)

    def _value(self, words: list[str], reference: list[str], synonyms: bool) -> float:
        # Pairs of positions in output and reference; each position occurs at most once.
        output_words, reference_words = dict(enumerate(words)), dict(enumerate(reference))
        pairs = _match_stage(output_words, reference_words, lambda word: (word,))
        # The remaining words are stems now, and NLTK looks up synonyms of the stems.
        output_words, reference_words = (
            {at: _stem(word) for at, word in side.items()} for side in (output_words, reference_words)
        )
        pairs += _match_stage(output_words, reference_words, lambda word: (word,))
        if synonyms:
            pairs += _match_stage(output_words, reference_words, _synonyms)
        pairs.sort()
        if not pairs:
            return 0.0
        precision, recall = len(pairs) / len(words), len(pairs) / len(reference)
        mean = precision * recall / (self._alpha * precision + (1 - self._alpha) * recall)
        chunks = 1 + sum((at + 1, there + 1) != following for (at, there), following in pairwise(pairs))
        return float((1 - self._gamma * (chunks / len(pairs)) ** self._beta) * mean)


score = list_function(
    Meteor,
    """METEOR, 0–1, of each output against its reference or the best of its references: see `Meteor`.

    Raises DataError where an output has no reference, ConfigError for an option out of range and MissingExtra where
    packages are missing.
    """,
)


def _wordnet() -> str:
    return f"+wordnet{_reader().get_version()}-nltk{version('nltk')}"


def _match_stage(output_words: dict[int, str], reference_words: dict[int, str], forms: Stage) -> list[tuple[int, int]]:
    """Remove matching words from both sides and return their positions; the last word gets the last match."""
    places: dict[str, list[int]] = {}
    for at, word in reference_words.items():
        places.setdefault(word, []).append(at)
    pairs = []
    for at, word in reversed(list(output_words.items())):
        open_places = [places[form] for form in forms(word) if places.get(form)]
        if open_places:
            pairs.append((at, max(open_places, key=lambda each: each[-1]).pop()))
            del output_words[at], reference_words[pairs[-1][1]]
    return pairs


_stem = lru_cache(maxsize=2**17)(text.porter.stem)


@lru_cache(maxsize=1)
def _has_wordnet() -> bool:
    if find_spec("nltk") is None:
        return False
    import nltk

    for name in ("corpora/wordnet", "corpora/wordnet.zip"):
        try:
            nltk.data.find(name)
        except (LookupError, OSError):
            continue
        return True
    return False


def _reader() -> Any:
    from nltk.corpus import wordnet

    return wordnet


@lru_cache(maxsize=2**17)
def _synonyms(word: str) -> frozenset[str]:
    """Return the word and the one-word lemmas of all its synsets."""
    names = (lemma.name() for synset in _reader().synsets(word) for lemma in synset.lemmas())
    return frozenset({word} | {name for name in names if "_" not in name})
