"""Compute chrF (Popović 2015) and chrF++ (Popović 2017) by sacrebleu's rules (Post 2018).

sacrebleu counts the n-grams of one pair of texts after another. chrF is a default metric, so those
of many texts are counted together here, in numpy: the same values in a fifth of the time.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from judge.core.records import Sample
from judge.metrics import MetricResult
from judge.metrics.base import setting
from judge.metrics.common import (
    Rate,
    ReferenceMetric,
    format_number,
    list_function,
    number,
    references,
    whole_number,
)
from judge.metrics.diversity.ngrams import Grams, Ints, corpus, orders, totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]

__all__ = ["Chrf", "score"]

Pair = tuple[tuple[str, ...], str]
"""References, and an output that is compared with them."""
# Characters that are counted together. They take about 100 MB.
_BLOCK = 2**18
_PUNCTUATION = frozenset(string.punctuation)


@dataclass(frozen=True, kw_only=True)
class Chrf(ReferenceMetric):
    """Sentence chrF2 (0–100): F with recall weighted double, over character n-grams up to 6, for any script.

    White space does not count. The reference with the best score counts. `char_order` (1–20) and
    `word_order` (0–10) are the longest n-grams of characters and words: chrF++ is `word_order=2`.
    `beta` weighs recall.
    """

    name: ClassVar[str] = "chrf"
    high: ClassVar[float | None] = 100.0
    char_order: int = setting(6, whole_number, 1, 20)
    word_order: int = setting(0, whole_number, 0, 10)
    beta: float = setting(2, number, 0, 100)
    lowercase: bool = False

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample.

        A sample without a reference is a `Failure`; an empty output scores 0.
        """
        distinct_pairs: set[Pair] = set()
        for sample in samples:
            targets = references(sample)
            if targets:
                distinct_pairs.add((targets, sample.output))
        values: dict[Pair, float] = {}
        for block in _blocks(sorted(distinct_pairs)):
            values |= zip(block, self._values(block), strict=True)

        def prepare(targets: tuple[str, ...], used: set[str]) -> Rate:
            return lambda output: values[targets, output]

        return self.compare(samples, prepare, self._sign)

    def _sign(self, used: set[str]) -> list[str]:
        """Return sacrebleu's signature, which names beta only if it is not the usual 2."""
        case = "lc" if self.lowercase else "mixed"
        parts = [
            f"case={case}",
            "eff=yes",
            f"nc={self.char_order}",
            f"nw={self.word_order}",
            "space=no",
        ]
        if self.beta != 2:
            beta = format_number(self.beta)
            parts.append(f"beta={beta}")
        parts.append(f"sacrebleu {version('sacrebleu')}")
        return parts

    def _values(self, pairs: Sequence[Pair]) -> list[float]:
        """Return each pair's F with its best reference.

        F is of the mean precision and recall over the orders of n-grams that both texts have. The
        operations are sacrebleu's, in its order, so that every value equals its value.
        """
        import numpy as np

        texts, group, rank = _stack(pairs)
        if self.lowercase:
            texts = [text.lower() for text in texts]
        characters = ["".join(text.split()) for text in texts]
        words = [_words(text) for text in texts]
        character_matches = _matches(characters, group, rank, self.char_order)
        word_matches = _matches(words, group, rank, self.word_order)
        # References × outputs, like all arrays here.
        shape = (rank.max() + 1, len(pairs))
        precision = np.zeros(shape)
        recall = np.zeros(shape)
        used_orders = np.zeros(shape)
        for matches in chain(character_matches, word_matches):
            # An order counts if both texts are long enough for it (sacrebleu's effective order).
            is_used = (matches.in_output > 0) & (matches.in_reference > 0)
            precision += _quotient(matches.hits, matches.in_output, is_used)
            recall += _quotient(matches.hits, matches.in_reference, is_used)
            used_orders += is_used
        # Two texts without n-grams of a common order get 0/0, and ones without matches, too.
        with np.errstate(invalid="ignore", divide="ignore"):
            precision /= used_orders
            recall /= used_orders
            weight = self.beta**2
            weighted = weight * precision + recall
            f = 100 * ((1 + weight) * precision * recall / weighted)
        best = np.nan_to_num(f).max(axis=0)
        # Rounding may exceed the limit.
        return [min(value, 100.0) for value in best.tolist()]


score = list_function(
    Chrf,
    """Return chrF (0–100) of each output against its reference or the best of them; see `Chrf`.

    Raise DataError if an output has no reference, ConfigError for an option out of range.
    """,
)


def _words(text: str) -> list[str]:
    """Return the words, splitting off a punctuation mark as chrF++ does.

    It splits off one mark at the end, or else one at the start.
    """
    words: list[str] = []
    for word in text.split():
        if word[-1] in _PUNCTUATION:
            cut = len(word) - 1
        elif word[0] in _PUNCTUATION:
            cut = 1
        else:
            cut = 0
        parts = (word[:cut], word[cut:])
        words += filter(None, parts)
    return words


def _blocks(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Yield the sorted pairs in blocks of about `_BLOCK` characters.

    Pairs with the same references follow each other, so these are counted once per block.
    """
    block: list[Pair] = []
    block_number = 0
    characters = 0
    for targets, output in pairs:
        characters += sum(map(len, targets))
        # The output is compared with every reference.
        characters += len(targets) * len(output)
        if characters // _BLOCK != block_number:
            if block:
                yield block
            block = []
            block_number = characters // _BLOCK
        block.append((targets, output))
    if block:
        yield block


class _Stack(NamedTuple):
    """The texts of pairs: all references, each group of them once, then the outputs.

    A group are the references that an output is compared with. `group` is the number of each text's
    group, from 0. `rank` is a reference's index in its group, and -1 for an output.
    """

    texts: list[str]
    group: Ints
    rank: Ints


def _stack(pairs: Sequence[Pair]) -> _Stack:
    import numpy as np

    group_by_targets: dict[tuple[str, ...], int] = {}
    for targets, _ in pairs:
        group_by_targets.setdefault(targets, len(group_by_targets))
    texts: list[str] = []
    group: list[int] = []
    rank: list[int] = []
    for targets, group_number in group_by_targets.items():
        texts += targets
        group += [group_number] * len(targets)
        rank += range(len(targets))
    for targets, output in pairs:
        texts.append(output)
        group.append(group_by_targets[targets])
        rank.append(-1)
    return _Stack(texts, np.array(group), np.array(rank))


class _Matches(NamedTuple):
    """Numbers of n-grams of one order, references × outputs: shared, and on each side.

    `in_output` is the same for all references and has one row.
    """

    hits: Floats
    in_output: Ints
    in_reference: Ints


def _matches(
    texts: Sequence[Sequence[str]],
    group: Ints,
    rank: Ints,
    max_order: int,
) -> Iterator[_Matches]:
    """Yield the matches of each order. Texts are compared within their `group`; see `_Stack`."""
    import numpy as np

    tokens = corpus(texts)
    is_output = rank < 0
    outputs = np.flatnonzero(is_output)
    output_lengths = tokens.lengths[is_output]
    lengths_by_group = _reference_lengths(tokens.lengths, group, rank)
    reference_lengths = lengths_by_group[:, group[is_output]]
    for order, grams in enumerate(orders(tokens, max_order, group), start=1):
        hits_of_texts = _hits(grams, rank)
        in_output = totals(output_lengths, order)
        in_reference = totals(reference_lengths, order)
        yield _Matches(hits_of_texts[:, outputs], in_output, in_reference)


def _reference_lengths(lengths: Ints, group: Ints, rank: Ints) -> Ints:
    """Return the lengths of the references, ranks × groups; 0 if a group has fewer references."""
    import numpy as np

    rank_count = int(rank.max()) + 1
    group_count = int(group.max()) + 1
    by_group = np.zeros((rank_count, group_count), dtype=np.int64)
    is_reference = rank >= 0
    by_group[rank[is_reference], group[is_reference]] = lengths[is_reference]
    return by_group


def _hits(grams: Grams, rank: Ints) -> Floats:
    """Count the n-grams that each text shares with each of its references, ranks × texts.

    An n-gram counts at most as often as both texts have it. References have 0.
    """
    import numpy as np

    # Grams have one entry for each distinct n-gram of each text.
    rank_of_text = rank[grams.text]
    in_reference = rank_of_text >= 0
    in_output = ~in_reference
    rank_count = int(rank.max()) + 1
    distinct_count = int(grams.gram.max(initial=-1)) + 1
    reference_counts = np.zeros((rank_count, distinct_count), dtype=np.int64)
    reference_ranks = rank_of_text[in_reference]
    reference_grams = grams.gram[in_reference]
    reference_counts[reference_ranks, reference_grams] = grams.count[in_reference]
    # An n-gram belongs to one group, so its counts come from the output's own references.
    output_grams = grams.gram[in_output]
    shared = np.minimum(reference_counts[:, output_grams], grams.count[in_output])
    output_texts = grams.text[in_output]
    hits = [np.bincount(output_texts, counts, minlength=len(rank)) for counts in shared]
    return np.array(hits)


def _quotient(hits: Floats, totals: Ints, is_used: Bools) -> Floats:
    """Return hits / totals where the order is used, else 0; references × outputs."""
    import numpy as np

    quotient = np.zeros(hits.shape)
    np.divide(hits, totals, out=quotient, where=is_used)
    return quotient
