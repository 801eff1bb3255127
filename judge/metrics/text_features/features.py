"""What can be counted about a text and its source: length, copying, repetition, support, surface defects.

No feature says whether a text is good. None stands where there is nothing to count: no source, no words, no numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Any

from judge import text
from judge.core.records import Sample
from judge.metrics.text_features import surface
from judge.metrics.text_features.source import Prepared, Sentences, content, ngrams

_COMPARED = (
    "coverage",
    "density",
    "compression",
    "novel1",
    "novel2",
    "novel3",
    "js_divergence",
    "position",
    "best_sentence",
)
OF_SOURCE = (*_COMPARED, "number_support", "entity_support")
"""The features that need a source with words."""


@dataclass(frozen=True, slots=True)
class Features:
    """The features of one output; those of `OF_SOURCE` need a source with words, else they are None.

    Words are those of `judge.text`, lower-cased, without punctuation; sentences those of `text.sentences`, line by
    line. n-grams run on from one sentence to the next. Shares are 0–1, and None where they are shares of nothing.

    - `words`, `sentences`, `characters`: how many; characters without white space at the ends.
    - `repeated2`, `repeated3`: the share of the n-grams' occurrences that are not the first of their kind.
    - `adjacent_duplicates`: how many words of a sentence stand directly after themselves, punctuation or not.
    - `coverage`: words in copied fragments / words; `density`: Σ (words of a fragment)² / words, from 0;
      `compression`: words of the source / words (Grusky et al. 2018). Fragments are those of their figure 3.
    - `novel1`, `novel2`, `novel3`: the share of the n-grams' occurrences that the source does not have (See et al.
      2017, section 6.2).
    - `js_divergence`: Jensen–Shannon divergence of the words' distributions, English function words left out, in bits,
      0 (equal) to 1 (Lin 1991, with equal weights; for summaries Louis and Nenkova 2013).
    - `position`: the mean place in the source of the words of the copied fragments, 0 its start, 1 its end; None
      where nothing is copied.
    - `best_sentence`: the mean over the sentences of the best F1 of different words with a sentence of the source.
    - `number_support`: the share of the runs of digits (`1,250` is two) that the source has; `entity_support`: the
      share of the words with a capital, the first of each sentence left out, that the source has in any case. In
      Japanese, Korean and Chinese, runs of katakana and Latin words are looked for instead.
    - `no_end`: 1 where the text does not end as a sentence does, else 0; `fragments`: the share of the sentences that
      are none (see `surface.is_fragment`); `doubled_words`: how many are written twice in a row ("the the");
      `defects`: `no_end` + the number of fragments + `doubled_words`.
    """

    words: int
    sentences: int
    characters: int
    repeated2: float | None
    repeated3: float | None
    adjacent_duplicates: int
    coverage: float | None
    density: float | None
    compression: float | None
    novel1: float | None
    novel2: float | None
    novel3: float | None
    js_divergence: float | None
    position: float | None
    best_sentence: float | None
    number_support: float | None
    entity_support: float | None
    no_end: int
    fragments: float | None
    doubled_words: int
    defects: int


class Measure:
    """Measures any number of outputs of one source, which is prepared once for each tokenizer that is needed.

    The tokenizer is the one given, else the source's by its script, else (of an English or no source) the output's.
    `used` are the names of those that were. Time is linear in the words of source and output where phrases and words
    of sentences seldom come back; it is quadratic in how often they do.
    """

    def __init__(self, source: str | None = None, *, tokenizer: str | None = None) -> None:
        self._source = source if source and source.strip() else None
        self._tokenizer = tokenizer
        self._prepared: dict[str, Prepared] = {}
        self.used: set[str] = set()
        if tokenizer is None and self._source is not None and (name := text.tokenizer_for([self._source])) != "en":
            self._tokenizer = name

    def __call__(self, output: str) -> Features:
        """The features of an output. Raises MissingExtra where the tokenizer's packages are missing."""
        name = self._tokenizer or text.tokenizer_for([output])
        self.used.add(name)
        cut = Sentences.of(output, name)
        look = surface.Look.of(output, cut)
        against = self._against(name)
        words, number = cut.words, len(cut.each)
        numbers, entities = look.support(against.surface) if against else (None, None)
        return Features(
            words=len(words),
            sentences=number,
            characters=len(output.strip()),
            repeated2=_repeated(ngrams(words, 2)),
            repeated3=_repeated(ngrams(words, 3)),
            adjacent_duplicates=sum(first == second for each in cut.each for first, second in pairwise(each)),
            **(_compared(cut, against) if against and words else dict.fromkeys(_COMPARED)),
            number_support=numbers,
            entity_support=entities,
            no_end=look.no_end,
            fragments=look.fragments / number if number else None,
            doubled_words=look.doubled_words,
            defects=look.no_end + look.fragments + look.doubled_words,
        )

    def _against(self, name: str) -> Prepared | None:
        if self._source is None:
            return None
        if name not in self._prepared:
            self._prepared[name] = Prepared.of(self._source, name)
        found = self._prepared[name]
        return found if found.words else None


def measured(
    samples: Sequence[Sample], *, tokenizer: str | None = None, used: set[str] | None = None
) -> list[Features]:
    """The features of every sample's output, in order; samples with one source share its preparation.

    The names of the tokenizers that cut them are added to `used`. Raises MissingExtra as `Measure` does.
    """
    sources: dict[str | None, list[int]] = {}
    for index, sample in enumerate(samples):
        sources.setdefault(sample.source, []).append(index)
    found: dict[int, Features] = {}
    for source, indices in sources.items():  # one prepared source at a time
        measure = Measure(source, tokenizer=tokenizer)
        found |= {index: measure(samples[index].output) for index in indices}
        if used is not None:
            used |= measure.used
    return [found[index] for index in range(len(samples))]


def _compared(cut: Sentences, source: Prepared) -> dict[str, float | None]:
    """The features `_COMPARED`, of an output with words."""
    words, count = cut.words, len(cut.words)
    copied = source.fragments(words)
    length = sum(size for _, size in copied)
    # A fragment's words stand at start, …, start + size - 1.
    places = sum(size * (2 * start + size - 1) / 2 for start, size in copied)
    return {
        "coverage": length / count,
        "density": sum(size * size for _, size in copied) / count,
        "compression": len(source.words) / count,
        "novel1": _novel(words, source.counts),
        "novel2": _novel(ngrams(words, 2), source.pairs),
        "novel3": _novel(ngrams(words, 3), source.triples),
        "js_divergence": _divergence(content(words), source.content),
        "position": places / length / max(len(source.words) - 1, 1) if length else None,
        "best_sentence": sum(map(source.nearest, cut.each)) / len(cut.each),
    }


def _repeated(grams: Sequence[object]) -> float | None:
    return 1 - len(set(grams)) / len(grams) if grams else None


def _novel(grams: Sequence[object], known: Container[Any]) -> float | None:
    return sum(gram not in known for gram in grams) / len(grams) if grams else None


def _divergence(mine: Counter[str], theirs: Counter[str]) -> float | None:
    """½ Σ p·log2(p/m) + ½ Σ q·log2(q/m), m = (p + q) / 2; a word that one side alone has adds half its share."""
    if not mine or not theirs:
        return None
    total, whole = mine.total(), theirs.total()
    found, shared = 0.0, 0.0
    for word, number in mine.items():
        p, q = number / total, theirs.get(word, 0) / whole
        found += p * log2(2 * p / (p + q)) + (q * log2(2 * q / (p + q)) if q else 0)
        shared += q
    return min(max((found + 1 - shared) / 2, 0.0), 1.0)
