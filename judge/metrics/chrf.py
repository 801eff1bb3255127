"""Compute chrF (Popović 2015) and chrF++ (Popović 2017) of single texts, by sacrebleu's rules (Post 2018).

sacrebleu counts the n-grams of one pair of texts after another. chrF is a default metric, so those of many texts are
counted together here, in numpy: the same values in a fifth of the time.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import accumulate, chain, groupby
from typing import Any, ClassVar

from judge.core.records import Sample
from judge.metrics import MetricResult
from judge.metrics.base import setting
from judge.metrics.common import (
    ReferenceMetric,
    format_number,
    list_function,
    number,
    references,
    whole_number,
)
from judge.metrics.diversity.ngrams import Ints, corpus, orders, totals

__all__ = ["Chrf", "score"]

Pair = tuple[tuple[str, ...], str]
"""References, and an output that is compared with them."""
_BLOCK = 2**18  # characters counted together, about 100 MB
_PUNCTUATION = frozenset(string.punctuation)


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
        pairs = sorted(
            {(targets, sample.output) for sample in samples if (targets := references(sample))}
        )
        # Group pairs by references, which are then counted once per block.
        sizes = accumulate(
            sum(map(len, targets)) + len(targets) * len(output) for targets, output in pairs
        )
        values: dict[Pair, float] = {}
        for _, sized in groupby(
            zip(sizes, pairs, strict=True), key=lambda sized: sized[0] // _BLOCK
        ):
            block = [pair for _, pair in sized]
            values |= zip(block, self._values(block), strict=True)
        case = "lc" if self.lowercase else "mixed"
        parts = [
            f"case={case}",
            "eff=yes",
            f"nc={self.char_order}",
            f"nw={self.word_order}",
            "space=no",
        ]
        if self.beta != 2:
            parts.append(f"beta={format_number(self.beta)}")
        parts.append(f"sacrebleu {version('sacrebleu')}")
        return self.compare(
            samples,
            lambda targets, used: lambda output: values[targets, output],
            lambda used: parts,
        )

    def _values(self, pairs: Sequence[Pair]) -> list[float]:
        """Return each pair's F with its best reference, from mean precision and recall over the orders that both have.

        The operations are sacrebleu's, in its order, so that every value equals its value.
        """
        import numpy as np

        groups = {targets: place for place, (targets, _) in enumerate(pairs)}
        texts = [*chain.from_iterable(groups), *(output for _, output in pairs)]
        group = np.array(
            [n for targets, n in groups.items() for _ in targets]
            + [groups[pair[0]] for pair in pairs]
        )
        rank = np.array([n for targets in groups for n in range(len(targets))] + [-1] * len(pairs))
        if self.lowercase:
            texts = [text.lower() for text in texts]
        precision, recall, used = (np.zeros((rank.max() + 1, len(pairs))) for _ in range(3))
        for cut, order in (
            (lambda text: "".join(text.split()), self.char_order),
            (_words, self.word_order),
        ):
            for hits, output_total, reference_total in _matches(
                list(map(cut, texts)), group, rank, order
            ):
                both = (output_total > 0) & (reference_total > 0)
                precision += np.divide(hits, output_total, out=np.zeros(hits.shape), where=both)
                recall += np.divide(hits, reference_total, out=np.zeros(hits.shape), where=both)
                used += both
        with np.errstate(invalid="ignore", divide="ignore"):  # nothing in common
            precision, recall, weight = precision / used, recall / used, self.beta**2
            f = 100 * ((1 + weight) * precision * recall / (weight * precision + recall))
        return [
            min(value, 100.0) for value in np.nan_to_num(f).max(axis=0).tolist()
        ]  # rounding may exceed the limit


score = list_function(
    Chrf,
    """chrF, 0–100, of each output against its reference or the best of its references: see `Chrf`.

    Raises DataError where an output has no reference, ConfigError for an option out of range.
    """,
)


def _words(text: str) -> list[str]:
    """Return the words, splitting off one punctuation mark at the end or else at the start, as in chrF++."""
    words: list[str] = []
    for word in text.split():
        at = len(word) - 1 if word[-1] in _PUNCTUATION else int(word[0] in _PUNCTUATION)
        words += filter(None, (word[:at], word[at:]))
    return words


def _matches(texts: Sequence[Sequence[str]], group: Ints, rank: Ints, order: int) -> Iterator[Any]:
    """Yield for each order the matches, and the n-grams of outputs and references: (references, outputs) each.

    Texts are compared within their `group`. `rank` is a reference's index there, and -1 for an output.
    """
    import numpy as np

    read = corpus(texts)
    outputs = np.flatnonzero(rank < 0)
    ranks, lengths = (
        int(rank.max()) + 1,
        np.zeros((int(rank.max()) + 1, int(group.max()) + 1), dtype=np.int64),
    )
    lengths[rank[rank >= 0], group[rank >= 0]] = read.lengths[rank >= 0]
    for n, grams in enumerate(orders(read, order, group), start=1):
        in_reference = rank[grams.text] >= 0
        counts = np.zeros((ranks, int(grams.gram.max(initial=-1)) + 1), dtype=np.int64)
        counts[rank[grams.text[in_reference]], grams.gram[in_reference]] = grams.count[in_reference]
        gram, text, count = (
            column[~in_reference] for column in (grams.gram, grams.text, grams.count)
        )
        shared = np.minimum(counts[:, gram], count)
        hits = np.array([np.bincount(text, row, minlength=len(texts))[outputs] for row in shared])
        yield hits, totals(read.lengths[outputs], n), totals(lengths[:, group[outputs]], n)
