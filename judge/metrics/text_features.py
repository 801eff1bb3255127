"""Count features of a text and its source: length, copying, repetition, support, surface defects.

No feature rates a text. A feature is None if it is undefined: no source, no words, no numbers. The
module reads a text's surface and sentences, indexes the source, computes the features (`Measure`)
and makes columns (`Stats`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain, pairwise
from math import log2
from typing import Any, ClassVar, Literal

from judge import text
from judge.core.errors import DataError
from judge.core.normalization import fold
from judge.core.records import (
    ABSTAINED,
    Column,
    Failure,
    Provenance,
    Sample,
    Score,
)
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.metrics import MetricResult
from judge.metrics.base import BaseMetric, setting
from judge.metrics.common import (
    as_source_samples,
    choices_option,
    entries,
    failure,
    lacks_source,
    missing_tokenizer_notes,
    signed_words,
    texts,
    tokenizer_note,
)
from judge.metrics.common import tokenizer as tokenizer_option
from judge.text.languages import HAN, HANGUL, KANA

__all__ = ["Features", "Measure", "Stats", "measured", "score"]

# Runs of digits, not whole numbers, because tokenized texts have `1 , 250` and `3 . 5`.
_DIGITS = re.compile(r"\d+").findall
# Runs of letters: `well` and `known` of `well-known`.
_WORD = re.compile(r"[^\W\d_]+").findall
# Names in Chinese, Japanese and Korean texts: `トヨタ`, `IBM`, `Zürich`.
_FOREIGN = re.compile("[\u30a1-\u30fa\u30fc]{2,}|[A-Za-z\u00c0-\u024f]{2,}").findall
_CLOSERS = " \t\r\n\"'`”’»›)]}）］｝〉》〕】"
_ENDS = frozenset(".!?…。！？｡．؟۔।॥።」』")
# `the` of `the the cat`
_TWICE = re.compile(r"\b([^\W\d_]+)\s+(?=\1\b)", re.IGNORECASE).findall
# `ですが` of `ですがですが`
_RUN_TWICE = re.compile(rf"([{HAN}{KANA}{HANGUL}]{{3,20}})(?=\1)").findall
# Correct English: `she had had enough`, `I know that that is true`.
_MAY_DOUBLE = frozenset(("had", "that"))
_NEVER_LAST = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "but",
        "nor",
        "than",
        "because",
        "while",
        "if",
        "whose",
        "every",
    ]
)
_FEWEST_WORDS = 3
_FEWEST_LETTERS = 4


def numbers(string: str) -> list[str]:
    """Return the runs of digits."""
    return _DIGITS(fold(string))


def names(output: str, sentences: Sentences) -> list[str]:
    """Return each occurrence of a name in an output with these sentences, casefolded."""
    if _is_cjk(output):
        return [name.casefold() for name in _FOREIGN(fold(output))]
    capitalised: list[str] = []
    for sentence in sentences.raw:
        # The first word of a sentence is capitalised anyway, and "I" is no name.
        later_words = _WORD(fold(sentence))[1:]
        capitalised += [
            word for word in later_words if word[0].isupper() and len(word) > 1
        ]
    return [name.casefold() for name in capitalised]


def no_end(output: str, sentences: Sentences) -> int:
    """Return 1 if a text with words does not end as a sentence does."""
    if not sentences.words:
        return 0
    last_character = output.rstrip(_CLOSERS)[-1:]
    return int(last_character not in _ENDS)


def doubled_words(output: str) -> int:
    """Count the words that are written twice in a row.

    In scripts without white space, count the runs of three letters or more.
    """
    repeated = [word.lower() for word in _TWICE(output)]
    doubled = sum(word not in _MAY_DOUBLE for word in repeated)
    if output.isascii():
        return doubled
    return doubled + len(_RUN_TWICE(output))


def is_fragment(raw: str, words: Sequence[str], cjk: bool) -> bool:
    """Return whether a sentence is incomplete: too short, or cut off.

    Fewer than three words, or a last word that ends no sentence ("the", "and", "because"); in
    Japanese, Korean and Chinese fewer than four letters or digits.
    """
    if cjk:
        return sum(map(str.isalnum, raw)) < _FEWEST_LETTERS
    return len(words) < _FEWEST_WORDS or words[-1] in _NEVER_LAST


def _is_cjk(string: str) -> bool:
    return not string.isascii() and text.detect_language([string]) != "en"


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return sum(values) / len(values)


_FUNCTION_WORDS = (
    "a an the this that these those some any no each every both all such and or but nor so if "
    "than as because while although though unless until of to in on at by for with from into "
    "onto about over under after before between through during against without within up down "
    "out off i me my mine myself you your yours he him his himself she her hers herself it its "
    "itself we us our ours they them their theirs who whom whose which what when where why how "
    "there here then also just not is am are was were be been being do does did have has had "
    "will would shall should can could may might must s t n d m ll re ve"
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Frequent English words, and the letters that a tokenizer leaves of contractions."""


def content(words: Iterable[str]) -> Counter[str]:
    """Return word counts without English function words."""
    return Counter(word for word in words if word not in FUNCTION_WORDS)


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return all occurrences of n-grams, in order."""
    shifted = [words[start:] for start in range(n)]
    # The shorter of the lists end the n-grams at the last word.
    return list(zip(*shifted, strict=False))


@dataclass(frozen=True, slots=True)
class Sentences:
    """A text's sentences that contain words, as written (`raw`) and as `word_lists`.

    `words` are those of all sentences.
    """

    raw: tuple[str, ...]
    word_lists: tuple[list[str], ...]
    words: list[str]

    @classmethod
    def from_text(cls, string: str, tokenizer: str) -> Sentences:
        """Split the text into lines, and each line into sentences."""
        words_of = text.words(tokenizer)
        raw_sentences: list[str] = []
        word_lists: list[list[str]] = []
        for line in string.split("\n"):
            for raw in text.sentences(line):
                words = words_of(raw)
                # A line of dashes has no words and is no sentence.
                if words:
                    raw_sentences.append(raw)
                    word_lists.append(words)
        all_words = list(chain.from_iterable(word_lists))
        return cls(tuple(raw_sentences), tuple(word_lists), all_words)


class IndexedSource:
    """A source's words, split by a tokenizer, counted and indexed.

    `pairs` has the positions of each pair of words, and `first` the first one of each word.
    `sentences_with` has the numbers of the sentences that contain a word.
    """

    def __init__(self, source: str, tokenizer: str) -> None:
        sentences = Sentences.from_text(source, tokenizer)
        self.words = sentences.words
        self.content = content(sentences.words)
        self.triples = frozenset(ngrams(sentences.words, 3))
        self.pairs: dict[tuple[str, ...], list[int]] = {}
        for position, pair in enumerate(ngrams(sentences.words, 2)):
            self.pairs.setdefault(pair, []).append(position)
        self.first: dict[str, int] = {}
        for position, word in enumerate(sentences.words):
            self.first.setdefault(word, position)
        self.sentences = tuple(dict.fromkeys(map(frozenset, sentences.word_lists)))
        self.sentences_with: dict[str, list[int]] = {}
        for number, sentence in enumerate(self.sentences):
            for word in sentence:
                self.sentences_with.setdefault(word, []).append(number)
        self.numbers = frozenset(numbers(source))
        folded = fold(source)
        possible_names = _WORD(folded)
        if _is_cjk(source):
            possible_names += _FOREIGN(folded)
        self.names = frozenset(name.casefold() for name in possible_names)

    def fragments(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Return the fragments F(A, S) of Grusky et al. 2018, figure 3.

        Each is its start in the source, and its number of words. From left to right, take the
        longest run of the source that begins with this word of the text, the first of equally long
        ones. As in the figure, a run within another one that was considered for the same word is
        skipped.
        """
        fragments: list[tuple[int, int]] = []
        position = 0
        while position < len(words):
            fragment = self._longest_run(words, position)
            if fragment is None:
                position += 1
                continue
            fragments.append(fragment)
            position += fragment[1]
        return fragments

    def _longest_run(
        self, words: Sequence[str], position: int
    ) -> tuple[int, int] | None:
        """Return the start and size of the source's longest run that `words` have at `position`."""
        end = len(words)
        starts: Sequence[int] | None = None
        if position + 1 < end:
            starts = self.pairs.get((words[position], words[position + 1]))
        if not starts:
            single = self.first.get(words[position])
            return None if single is None else (single, 1)
        source_words = self.words
        source_length = len(source_words)
        best_start = 0
        best_size = 0
        seen_end = 0
        for start in starts:
            if start < seen_end:
                continue
            longest = min(end - position, source_length - start)
            size = 2
            while size < longest:
                if words[position + size] != source_words[start + size]:
                    break
                size += 1
            seen_end = start + size
            if size > best_size:
                best_size = size
                best_start = start
        return best_start, best_size

    def nearest(self, sentence: Sequence[str]) -> float:
        """Return the best F1 (0–1) of a sentence with one of the source's, by distinct words.

        F1 is 2·shared / both.
        """
        words = frozenset(sentence)
        numbers_by_word = (self.sentences_with.get(word, ()) for word in words)
        shared_counts = Counter(chain.from_iterable(numbers_by_word))
        size = len(words)
        scores: list[float] = []
        for number, shared in shared_counts.items():
            both_sizes = size + len(self.sentences[number])
            scores.append(2 * shared / both_sizes)
        return max(scores, default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of one output. The features in `OF_SOURCE` are None without a source with words.

    Words come from `judge.text`, in lower case and without punctuation; sentences from
    `text.sentences`, line by line. n-grams cross sentences. Shares are 0–1, None if undefined.

    - `words`, `sentences`, `characters`: counts; characters without white space at the ends.
    - `repeated2`, `repeated3`: the share of n-gram occurrences after the first of their kind.
    - `adjacent_duplicates`: words of a sentence directly after themselves, ignoring punctuation.
    - `coverage`: words in copied fragments / words; `density`: Σ (words of a fragment)² / words,
      from 0; `compression`: words of the source / words (Grusky et al. 2018). Their figure 3
      defines fragments.
    - `novel1`, `novel2`, `novel3`: the share of n-gram occurrences that the source does not contain
      (See et al. 2017, section 6.2).
    - `js_divergence`: Jensen–Shannon divergence of the word distributions without English function
      words, in bits, 0 (equal) to 1 (Lin 1991, with equal weights; for summaries Louis and Nenkova
      2013).
    - `position`: the mean position in the source of the copied words, 0 its start, 1 its end; None
      if nothing is copied.
    - `best_sentence`: the mean over sentences of the best F1 of distinct words with a sentence of
      the source.
    - `number_support`: the share of digit runs (`1,250` is two) that the source has; numbers in
      letters or kanji (`five`, 五) are not compared;
      `entity_support`: the share of capitalised words, except the first of each sentence, that the
      source has in any case. In Japanese, Korean and Chinese it uses runs of katakana and Latin
      words.
    - `no_end`: 1 if the text does not end as a sentence does, else 0; `fragments`: the share of
      incomplete sentences (see `is_fragment`); `doubled_words`: words written twice in a row ("the
      the"); `defects`: `no_end` + the number of fragments + `doubled_words`.
    """

    words: int
    sentences: int
    characters: int
    repeated2: float | None
    repeated3: float | None
    adjacent_duplicates: int
    coverage: float | None = None
    density: float | None = None
    compression: float | None = None
    novel1: float | None = None
    novel2: float | None = None
    novel3: float | None = None
    js_divergence: float | None = None
    position: float | None = None
    best_sentence: float | None = None
    number_support: float | None = None
    entity_support: float | None = None
    no_end: int
    fragments: float | None
    doubled_words: int
    defects: int


NAMES = tuple(field.name for field in fields(Features))
OF_SOURCE = tuple(field.name for field in fields(Features) if field.default is None)
"""The features that need a source with words."""


class Measure:
    """Measure outputs of one source, which is prepared once per tokenizer.

    The tokenizer is the given one, else the source's by its script, else (for an English or no
    source) the output's. `used` collects their names. Time is linear in the words of source and
    output if phrases and words seldom repeat, and quadratic in their repetitions.
    """

    def __init__(
        self, source: str | None = None, *, tokenizer: str | None = None
    ) -> None:
        self._source: str | None = None
        if source and source.strip():
            self._source = text.normal(source)
        self._tokenizer = tokenizer
        self._prepared: dict[str, IndexedSource] = {}
        self.used: set[str] = set()
        if tokenizer is None and self._source is not None:
            tokenizer_name = text.tokenizer_for([self._source])
            if tokenizer_name != "en":
                self._tokenizer = tokenizer_name

    def __call__(self, output: str) -> Features:
        """Return the features of an output.

        Raise MissingExtra if the tokenizer's packages are missing.
        """
        output = text.normal(output)
        tokenizer = self._tokenizer or text.tokenizer_for([output])
        self.used.add(tokenizer)
        sentences = Sentences.from_text(output, tokenizer)
        source = self._indexed_source(tokenizer)
        words = sentences.words
        pairs = ngrams(words, 2)
        triples = ngrams(words, 3)
        is_unfinished = no_end(output, sentences)
        doubled = doubled_words(output)
        cjk = _is_cjk(output)
        fragments: list[bool] = []
        for raw, raw_words in zip(sentences.raw, sentences.word_lists, strict=True):
            fragments.append(is_fragment(raw, raw_words, cjk))
        compared: dict[str, float | None] = {}
        if source:
            compared = _support(output, sentences, source)
            if words:
                compared |= _source_features(sentences, source)
        n_defects = is_unfinished + sum(fragments) + doubled
        return Features(
            words=len(words),
            sentences=len(sentences.word_lists),
            characters=len(output.strip()),
            repeated2=_repeated(pairs),
            repeated3=_repeated(triples),
            adjacent_duplicates=_adjacent_duplicates(sentences),
            **compared,
            no_end=is_unfinished,
            fragments=_mean(fragments),
            doubled_words=doubled,
            defects=n_defects,
        )

    def _indexed_source(self, tokenizer: str) -> IndexedSource | None:
        """Return the source's index for a tokenizer, or None without a source that has words."""
        if self._source is None:
            return None
        if tokenizer not in self._prepared:
            self._prepared[tokenizer] = IndexedSource(self._source, tokenizer)
        source = self._prepared[tokenizer]
        return source if source.words else None


def measured(
    samples: Sequence[Sample],
    *,
    tokenizer: str | None = None,
    used: set[str] | None = None,
) -> list[Features]:
    """Return the features of every sample's output, in order.

    Samples with one source share its preparation. `used` collects the names of the tokenizers.
    Raise MissingExtra as `Measure` does.
    """
    indices_by_source: dict[str | None, list[int]] = {}
    for index, sample in enumerate(samples):
        indices_by_source.setdefault(sample.source, []).append(index)
    features: dict[int, Features] = {}
    # One source after the other, so that only one index is in memory.
    for source, indices in indices_by_source.items():
        measure = Measure(source, tokenizer=tokenizer)
        for index in indices:
            features[index] = measure(samples[index].output)
        if used is not None:
            used |= measure.used
    return [features[index] for index in range(len(samples))]


def _adjacent_duplicates(sentences: Sentences) -> int:
    """Count the words that directly follow themselves in a sentence."""
    duplicates = 0
    for words in sentences.word_lists:
        for word, following in pairwise(words):
            if word == following:
                duplicates += 1
    return duplicates


def _support(
    output: str, sentences: Sentences, source: IndexedSource
) -> dict[str, float | None]:
    """Return the shares of an output's numbers and names that the source has."""
    known_numbers = [number in source.numbers for number in numbers(output)]
    known_names = [name in source.names for name in names(output, sentences)]
    return {
        "number_support": _mean(known_numbers),
        "entity_support": _mean(known_names),
    }


def _source_features(
    sentences: Sentences, source: IndexedSource
) -> dict[str, float | None]:
    """Return the features that compare an output with its source; the output must have words."""
    words = sentences.words
    count = len(words)
    fragments = source.fragments(words)
    copied_words = sum(size for _, size in fragments)
    squared_sizes = sum(size * size for _, size in fragments)
    pairs = ngrams(words, 2)
    triples = ngrams(words, 3)
    similarities = [source.nearest(sentence) for sentence in sentences.word_lists]
    return {
        "coverage": copied_words / count,
        "density": squared_sizes / count,
        "compression": len(source.words) / count,
        "novel1": _novel(words, source.first),
        "novel2": _novel(pairs, source.pairs),
        "novel3": _novel(triples, source.triples),
        "js_divergence": _divergence(content(words), source.content),
        "position": _mean_position(fragments, source),
        "best_sentence": _mean(similarities),
    }


def _mean_position(
    fragments: Sequence[tuple[int, int]], source: IndexedSource
) -> float | None:
    """Return the mean position (0–1) in the source of the words in fragments; None without any."""
    copied_words = sum(size for _, size in fragments)
    if not copied_words:
        return None
    # A fragment's words are at start, …, start + size - 1.
    sums_of_positions = [size * (2 * start + size - 1) / 2 for start, size in fragments]
    sum_of_positions = sum(sums_of_positions)
    last_position = max(len(source.words) - 1, 1)
    return sum_of_positions / copied_words / last_position


def _repeated(grams: Sequence[object]) -> float | None:
    """Return the share of occurrences after the first of their kind; None without any."""
    if not grams:
        return None
    return 1 - len(set(grams)) / len(grams)


def _novel(grams: Sequence[object], known_grams: Container[Any]) -> float | None:
    """Return the share of occurrences that are not known; None without any."""
    return _mean([gram not in known_grams for gram in grams])


def _divergence(first: Counter[str], second: Counter[str]) -> float | None:
    """Return ½ Σ p·log2(p/m) + ½ Σ q·log2(q/m), where m = (p + q) / 2 (Lin 1991).

    A word of one side only adds half its share.
    """
    if not first or not second:
        return None
    first_total = first.total()
    second_total = second.total()
    divergence = 0.0
    shared = 0.0  # of the second text's words, the share that the first one has, too
    for word, count in first.items():
        p = count / first_total
        q = second.get(word, 0) / second_total
        p_term = p * log2(2 * p / (p + q))
        q_term = q * log2(2 * q / (p + q)) if q else 0
        divergence += p_term + q_term
        shared += q
    # Words of the second text only: q·log2(q/m) = q, because m = q / 2.
    divergence += 1
    divergence -= shared
    # Rounding may leave the range.
    return min(max(divergence / 2, 0.0), 1.0)


DEFAULT = (
    "words",
    "sentences",
    "coverage",
    "density",
    "compression",
    "novel2",
    "repeated3",
    "js_divergence",
    "number_support",
    "entity_support",
    "defects",
)
_UNBOUNDED = (
    "words",
    "sentences",
    "characters",
    "adjacent_duplicates",
    "density",
    "compression",
    "doubled_words",
    "defects",
)
_LOWER = ("adjacent_duplicates", "no_end", "fragments", "doubled_words", "defects")
_HIGHER = ("number_support", "entity_support")
_MISSING = {
    "position": (
        ABSTAINED,
        "copies no word of its source, so its position is undefined",
    ),
    "js_divergence": (
        ABSTAINED,
        "has no content word, or its source has none: there is nothing to compare",
    ),
}


def _columns_option(option: str, value: Any) -> tuple[str, ...]:
    expected = f"{option} must be `all` or a list of distinct names"
    return NAMES if value == "all" else choices_option(option, value, NAMES, expected)


@dataclass(frozen=True, kw_only=True)
class Stats(BaseMetric):
    """Summary statistics of each output: length, copying from the source, novelty, repetition, surface defects.

    They describe and do not rate. `columns` names them without `stats_` (see `Features`), or is
    `all`. Words come from `text.words`, by `tokenizer` or by the script of the source.
    """

    name: ClassVar[str] = "stats"
    rowwise: ClassVar[bool] = True
    columns: str | Sequence[str] = setting(DEFAULT, _columns_option)
    tokenizer: str | None = setting(None, tokenizer_option)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return a row per sample and column. Without words in the output, all are `Failure`s.

        Columns that need a source fail without one. An undefined share is 1 for support (nothing
        lacks support), otherwise 0.
        """
        used: set[str] = set()
        features = measured(samples, tokenizer=self.tokenizer, used=used)
        rows: list[Score | Failure] = []
        for sample, sample_features in zip(samples, features, strict=True):
            rows += [_row(sample, feature, sample_features) for feature in self.columns]
        parts = ["text", *signed_words(used), f"judge {__version__}"]
        columns = tuple(_column(feature, parts) for feature in self.columns)
        all_texts: list[str] = []
        for sample in samples:
            all_texts += [sample.output, sample.source or ""]
        note = tokenizer_note("stats", self.tokenizer, all_texts)
        missing = [] if self.tokenizer else missing_tokenizer_notes(used, all_texts)
        return MetricResult(columns, tuple(rows), (note, *missing))


def _row(sample: Sample, feature_name: str, features: Features) -> Score | Failure:
    """Return a sample's row in the column of a feature."""
    column = f"stats_{feature_name}"
    if not features.words:
        problem = "has no words in its output: there is nothing to count"
        return failure(sample, column, "EmptyOutput", problem)
    # Coverage is defined for every output with words, if its source has some.
    if feature_name in OF_SOURCE and features.coverage is None:
        problem = lacks_source(sample, "a source without words")
        return failure(sample, column, "NoSource", problem)
    value = getattr(features, feature_name)
    if value is None and feature_name in _MISSING:
        return failure(sample, column, *_MISSING[feature_name])
    if value is None:
        # A share of nothing. If support is counted, nothing lacks it.
        value = 1 if feature_name in _HIGHER else 0
    return Score(
        item=sample.item,
        system=sample.system,
        column=column,
        value=float(value),
        provenance=Provenance("metric"),
    )


def _column(feature_name: str, signature_parts: Sequence[str]) -> Column:
    """Return the column of a feature."""
    better: Literal["higher", "lower", ""] = ""
    if feature_name in _HIGHER:
        better = "higher"
    elif feature_name in _LOWER:
        better = "lower"
    high = None if feature_name in _UNBOUNDED else 1.0
    column = f"stats_{feature_name}"
    signature = Signature(column, *signature_parts)
    return Column(column, "metric", signature, low=0.0, high=high, better=better)


def score(
    outputs: Sequence[str],
    sources: Sequence[str | None] | None = None,
    *,
    tokenizer: str | None = None,
) -> list[Features]:
    """Return the features of each output, compared with its source if given.

    Raise DataError for lists that do not match, ConfigError for an unknown tokenizer, MissingExtra
    for missing packages.
    """
    output_texts = texts("outputs", outputs)
    source_texts: list[str | None] | None = [None] * len(output_texts)
    if sources is not None:
        source_texts = entries(sources)
    if source_texts is None or len(source_texts) != len(output_texts):
        raise DataError(
            "outputs and sources must be lists of equal length; use None for an unknown source"
        )
    if not all(source is None or isinstance(source, str) for source in source_texts):
        raise DataError("sources must be a list of texts, with None for unknown ones")
    samples = as_source_samples(output_texts, source_texts)
    tokenizer_name = tokenizer_option("stats.tokenizer", tokenizer)
    return measured(samples, tokenizer=tokenizer_name)
