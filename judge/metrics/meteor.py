"""Compute METEOR (Banerjee and Lavie 2005, whose parameters these are) as NLTK does.

F = P·R / (α·P + (1 − α)·R), times 1 − γ · (chunks / matches)^β.

Words are matched in stages: equal words, equal stems, synonyms. Of several equal words the last one
of the output matches the last one of the reference, as in NLTK; the papers minimise crossings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, ClassVar

from judge import text
from judge.core.errors import MissingExtra
from judge.core.records import Sample
from judge.core.version import __version__
from judge.metrics import MetricResult
from judge.metrics.base import bool_option, setting
from judge.metrics.common import (
    CannotScore,
    Rate,
    WordMetric,
    format_number,
    list_function,
    number,
    signed_words,
)

__all__ = ["Meteor", "score"]


def _wordnet_option(option: str, value: Any) -> bool:
    if bool_option(option, value) and not _has_wordnet():
        raise MissingExtra(
            f"{option} needs NLTK and its WordNet: pip install nltk, "
            "then python -m nltk.downloader wordnet"
        )
    return bool(value)


Stage = Callable[[str], Iterable[str]]
"""Maps a word of the output to the forms that it may match."""


@dataclass(frozen=True, kw_only=True)
class Meteor(WordMetric):
    """METEOR (0–1): a mean of precision and recall that favours recall, with a penalty for matches out of order.

    Words come from `text.words`, by `tokenizer` or by script; the best reference counts. `alpha`
    weighs recall, the penalty is `gamma` · (chunks / matches)^`beta`; equal texts are one chunk and
    score slightly below 1. WordNet's synonyms count if NLTK and its data `wordnet` are installed
    (`stages` in the signature); `wordnet` forces or forbids them. Stems and synonyms are of
    English: they count for the tokenizer `en` alone.
    """

    name: ClassVar[str] = "meteor"
    high: ClassVar[float | None] = 1.0
    alpha: float = setting(0.9, number, 0, 1)
    beta: float = setting(3.0, number, 0, 100)
    gamma: float = setting(0.5, number, 0, 1)
    wordnet: bool | None = setting(None, _wordnet_option)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample; an output without a match scores 0.

        A `Failure`: a sample without a reference, or whose references have no words by the
        tokenizer.
        """
        synonyms = _has_wordnet() if self.wordnet is None else self.wordnet

        def prepare(targets: tuple[str, ...], used: set[str]) -> Rate:
            """Return the rating of outputs with these references, and note the tokenizers."""

            @lru_cache(maxsize=4)  # outputs in other scripts may need other tokenizers
            def reference_words(tokenizer: str) -> list[list[str]]:
                tokenize = text.words(tokenizer)
                words_of_targets = [words for words in map(tokenize, targets) if words]
                if words_of_targets:
                    return words_of_targets
                problem = f"its references have no words by the tokenizer {tokenizer}"
                raise CannotScore("NoTokens", problem)

            def rate(output: str) -> float:
                tokenizer = self.tokenizer or text.tokenizer_for([output, *targets])
                used.add(tokenizer)
                words = text.words(tokenizer)(output)
                # Porter's stems and WordNet are of English.
                use_stems = tokenizer in text.ENGLISH
                use_synonyms = use_stems and synonyms
                return max(
                    self._value(words, reference, use_stems, use_synonyms)
                    for reference in reference_words(tokenizer)
                )

            return rate

        def sign(used: set[str]) -> list[str]:
            stages = "exact+stem"
            if synonyms:
                wordnet = _reader().get_version()
                nltk = version("nltk")
                stages += f"+wordnet{wordnet}-nltk{nltk}"
            alpha = format_number(self.alpha)
            beta = format_number(self.beta)
            gamma = format_number(self.gamma)
            return [
                f"stages={stages}",
                f"alpha={alpha}",
                f"beta={beta}",
                f"gamma={gamma}",
                *signed_words(used),
                "refs=best",
                f"judge {__version__}",
            ]

        return self.compare(samples, prepare, sign)

    def _value(
        self, words: list[str], reference: list[str], stems: bool, synonyms: bool
    ) -> float:
        pairs = _align(words, reference, stems, synonyms)
        if not pairs:
            return 0.0
        precision = len(pairs) / len(words)
        recall = len(pairs) / len(reference)
        weighted = self.alpha * precision + (1 - self.alpha) * recall
        mean = precision * recall / weighted
        # A chunk is a run of matches that are next to each other in both texts.
        chunks = 1
        for (output_index, reference_index), following in pairwise(pairs):
            if following != (output_index + 1, reference_index + 1):
                chunks += 1
        fragmentation = chunks / len(pairs)
        penalty = self.gamma * fragmentation**self.beta
        return float((1 - penalty) * mean)


score = list_function(
    Meteor,
    """Return METEOR (0–1) of each output against the best of its references; see `Meteor`.

    Raise DataError if an output has no reference, ConfigError for an option out of range, and
    MissingExtra for missing packages.
    """,
)


def _align(
    words: list[str],
    reference: list[str],
    stems: bool,
    synonyms: bool,
) -> list[tuple[int, int]]:
    """Return sorted pairs of positions in output and reference, each position at most once."""
    # Every stage removes the words that it matches.
    output_words = dict(enumerate(words))
    reference_words = dict(enumerate(reference))
    pairs = _match_stage(output_words, reference_words, lambda word: (word,))
    # The remaining words are stems then, and NLTK looks up synonyms of the stems.
    if stems:
        output_words = _stemmed(output_words)
        reference_words = _stemmed(reference_words)
        pairs += _match_stage(output_words, reference_words, lambda word: (word,))
    if synonyms:
        pairs += _match_stage(output_words, reference_words, _synonyms)
    return sorted(pairs)


def _stemmed(words: Mapping[int, str]) -> dict[int, str]:
    return {index: _stem(word) for index, word in words.items()}


def _match_stage(
    output_words: dict[int, str],
    reference_words: dict[int, str],
    forms: Stage,
) -> list[tuple[int, int]]:
    """Remove matching words from both sides and return their positions.

    The last word gets the last match.
    """
    positions_by_word: dict[str, list[int]] = {}
    for reference_index, word in reference_words.items():
        positions_by_word.setdefault(word, []).append(reference_index)
    pairs: list[tuple[int, int]] = []
    for output_index, word in reversed(list(output_words.items())):
        positions_of_forms = [positions_by_word.get(form) for form in forms(word)]
        candidates = [positions for positions in positions_of_forms if positions]
        if not candidates:
            continue
        latest = max(candidates, key=lambda positions: positions[-1])
        reference_index = latest.pop()
        pairs.append((output_index, reference_index))
        del output_words[output_index]
        del reference_words[reference_index]
    return pairs


# Few words make up most of a text, and the stemmer is pure Python.
_stem = lru_cache(maxsize=2**17)(text.porter.stem)


@lru_cache(maxsize=1)
def _has_wordnet() -> bool:
    if find_spec("nltk") is None:
        return False
    import nltk

    # NLTK reads its data from a folder or from the archive that its downloader leaves.
    for resource_name in ("corpora/wordnet", "corpora/wordnet.zip"):
        try:
            nltk.data.find(resource_name)
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
    forms = {word}
    for synset in _reader().synsets(word):
        for lemma in synset.lemmas():
            lemma_name = lemma.name()
            # WordNet joins the words of a phrase: `give_up` cannot match a word.
            if "_" not in lemma_name:
                forms.add(lemma_name)
    return frozenset(forms)
