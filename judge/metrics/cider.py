"""Compute CIDEr-D (Vedantam, Zitnick and Parikh 2015).

It counts the n-grams shared with the references, weighted by their rarity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from judge import text
from judge.core.records import Sample
from judge.core.version import __version__
from judge.metrics import MetricResult
from judge.metrics.base import setting
from judge.metrics.common import (
    CannotScore,
    Rate,
    Values,
    WordMetric,
    as_samples,
    format_number,
    number,
    signed_words,
    values,
    whole_number,
)
from judge.metrics.common import references as usable

__all__ = ["Cider", "score"]

Ngram = tuple[str, ...]
Counts = Mapping[Ngram, int]


@dataclass(frozen=True, kw_only=True)
class Cider(WordMetric):
    """CIDEr-D (0–10): the mean cosine of tf-idf n-gram vectors, n = 1–4, clipped and with a length penalty.

    The idf of an n-gram counts the items whose references contain it, each item once for all
    systems, so values belong to one data set. Words come from `text.words`, by `tokenizer` or by
    the script of the item's references. `stem` uses Porter stems of English, as the paper does and
    its authors' code does not. `sigma` is the width of the length penalty, `max_order` the longest
    n-gram (1–9).
    """

    name: ClassVar[str] = "cider"
    rowwise: ClassVar[bool] = False
    high: ClassVar[float | None] = 10.0
    stem: bool = False
    sigma: float = setting(6.0, number, 0.01, 1e6)
    max_order: int = setting(4, whole_number, 1, 9)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample; an output without a matching n-gram scores 0.

        These are `Failure`s: a sample without a reference; all samples if fewer than two items have
        references, because every idf is then 0; and a sample whose references have no n-gram that
        another item's references lack.
        """
        references_by_item = _references_by_item(samples)
        items = len(references_by_item)
        idf = self._idf(references_by_item)

        def prepare(targets: tuple[str, ...], used: set[str]) -> Rate:
            """Return the rating of outputs with these references, and note the tokenizer."""
            if items < 2:
                raise CannotScore(
                    "TooFewItems",
                    "CIDEr-D needs references of at least 2 items: with one, the idf of every "
                    "n-gram is 0; use rouge",
                )
            tokenizer_name = self._tokenizer_for(targets)
            used.add(tokenizer_name)
            target_vectors: list[_Vectors] = []
            for target in targets:
                counts = self._counts(tokenizer_name, target)
                target_vectors.append(self._vectors(counts, idf, items))
            has_weight = any(any(vectors.norms) for vectors in target_vectors)
            if not has_weight:
                raise CannotScore(
                    "NoIdf",
                    "its references have no n-gram that the references of any other item lack: "
                    "CIDEr-D is 0/0",
                )

            def rate(output: str) -> float:
                counts = self._counts(tokenizer_name, output)
                output_vectors = self._vectors(counts, idf, items)
                similarities = [
                    self._similarity(output_vectors, vectors)
                    for vectors in target_vectors
                ]
                mean = sum(similarities) / len(similarities)
                return min(10 * mean, 10.0)  # rounding may exceed the limit

            return rate

        def sign(used: set[str]) -> list[str]:
            sigma = format_number(self.sigma)
            stem = "stem" if self.stem else "nostem"
            return [
                f"items={items}",
                f"n={self.max_order}",
                f"sigma={sigma}",
                stem,
                *signed_words(used),
                "refs=mean",
                f"judge {__version__}",
            ]

        return self.compare(samples, prepare, sign, level="D")

    def _idf(
        self, references_by_item: Mapping[str, Sequence[str]]
    ) -> dict[Ngram, float]:
        """Return log(items / items whose references contain the n-gram), of every n-gram."""
        items_with_ngram: Counter[Ngram] = Counter()
        for item_texts in references_by_item.values():
            tokenizer_name = self._tokenizer_for(item_texts)
            ngrams_of_item: set[Ngram] = set()
            for string in item_texts:
                ngrams_of_item.update(self._counts(tokenizer_name, string))
            items_with_ngram.update(ngrams_of_item)
        items = len(references_by_item)
        idf: dict[Ngram, float] = {}
        for ngram, count in items_with_ngram.items():
            idf[ngram] = math.log(items / count)
        return idf

    def _tokenizer_for(self, texts: Sequence[str]) -> str:
        return self.tokenizer or text.tokenizer_for(texts)

    def _counts(self, tokenizer_name: str, string: str) -> Counts:
        words = text.words(tokenizer_name)(string)
        if self.stem and tokenizer_name in text.ENGLISH:
            words = [text.porter.stem(word) for word in words]
        counts: Counter[Ngram] = Counter()
        for order in range(1, self.max_order + 1):
            shifted = [words[start:] for start in range(order)]
            # The shorter of the lists end the n-grams at the last word.
            counts.update(zip(*shifted, strict=False))
        return counts

    def _vectors(
        self, counts: Counts, idf: Mapping[Ngram, float], items: int
    ) -> _Vectors:
        weights: list[dict[Ngram, float]] = [{} for _ in range(self.max_order)]
        # The authors' code counts an n-gram of no reference as one of a single item.
        highest_idf = math.log(items)
        for ngram, times in counts.items():
            weights_of_order = weights[len(ngram) - 1]
            weights_of_order[ngram] = times * idf.get(ngram, highest_idf)
        norms = [_norm(weights_of_order.values()) for weights_of_order in weights]
        # The authors' code uses the number of bigrams as the length: words minus one, 0 without
        # words.
        words = sum(times for ngram, times in counts.items() if len(ngram) == 1)
        return _Vectors(weights, norms, max(0, words - 1))

    def _similarity(self, output: _Vectors, target: _Vectors) -> float:
        """Return the mean over n of eq. 6.

        It is the clipped cosine times the Gaussian of the difference in length.
        """
        sum_of_cosines = 0.0
        for order in range(self.max_order):
            norm = output.norms[order] * target.norms[order]
            if not norm:
                continue
            output_weights = output.weights[order]
            target_weights = target.weights[order]
            products: list[float] = []
            for ngram in output_weights.keys() & target_weights.keys():
                clipped = min(output_weights[ngram], target_weights[ngram])
                products.append(clipped * target_weights[ngram])
            # fsum, because the order of a set of n-grams differs between processes.
            scalar_product = math.fsum(products)
            sum_of_cosines += scalar_product / norm
        difference = output.length - target.length
        double_variance = 2 * self.sigma**2
        penalty = math.exp(-(difference**2) / double_variance)
        return sum_of_cosines / self.max_order * penalty


def _references_by_item(samples: Iterable[Sample]) -> dict[str, tuple[str, ...]]:
    """Return the distinct references of each item that has any, of all its samples."""
    distinct: dict[str, dict[str, None]] = {}
    for sample in samples:
        targets = usable(sample)
        if targets:
            distinct.setdefault(sample.item, {}).update(dict.fromkeys(targets))
    return {item: tuple(texts) for item, texts in distinct.items()}


def _norm(weights: Iterable[float]) -> float:
    return math.sqrt(sum(weight * weight for weight in weights))


class _Vectors(NamedTuple):
    """tf-idf by n-gram for each n, the vectors' norms, and the text's length."""

    weights: Sequence[Mapping[Ngram, float]]
    norms: Sequence[float]
    length: int


def score(
    outputs: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    items: Sequence[str] | None = None,
    stem: bool = False,
    sigma: float = 6.0,
    max_order: int = 4,
    tokenizer: str | None = None,
) -> Values:
    """Return CIDEr-D, 0–10, of each output against its reference or references; see `Cider`.

    `items` groups outputs of the same item; by default each is its own. Raise DataError if an
    output has no reference, there are fewer than two items, or an item's references have no n-gram
    of their own. Raise ConfigError for an option out of range, MissingExtra for missing packages.
    """
    metric = Cider(stem=stem, sigma=sigma, max_order=max_order, tokenizer=tokenizer)
    return values(metric, as_samples(outputs, references, items))
