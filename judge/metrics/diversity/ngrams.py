"""Texts as numbers: tokens interned, and their n-grams counted, all texts at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The tokens of n texts, one after the other, as ids 0 … kinds - 1; `lengths` are the n texts' token counts."""

    ids: Ints
    lengths: Ints
    kinds: int


@dataclass(frozen=True, slots=True)
class Grams:
    """The n-grams of one order: text `text[k]` has n-gram `gram[k]` `count[k]` times.

    Sorted by n-gram, then text. The n-grams' ids are 0 … their number - 1, each of them there.
    """

    gram: Ints
    text: Ints
    count: Ints


def corpus(texts: Sequence[Sequence[str]]) -> Corpus:
    """The tokenized texts with each token as a number."""
    import numpy as np

    ids: defaultdict[str, int] = defaultdict()
    ids.default_factory = ids.__len__
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    flat = np.fromiter(map(ids.__getitem__, chain.from_iterable(texts)), dtype=np.int64, count=int(lengths.sum()))
    return Corpus(flat, lengths, len(ids))


def orders(texts: Corpus, max_order: int, group: Ints | None = None) -> Iterator[Grams]:
    """The n-grams of order 1, 2 … max_order; none of them reaches from one text into the next.

    With `group`, one number from 0 for each text, n-grams of texts of different groups are different n-grams. Memory
    and (but for sorting) time are linear in the number of tokens, for any order.
    """
    import numpy as np

    number = len(texts.lengths)
    owner = np.repeat(np.arange(number), texts.lengths)
    ends = np.cumsum(texts.lengths)[owner]
    at = np.arange(len(texts.ids))  # where the n-grams start
    gram = texts.ids
    if group is not None:
        gram = _dense(group[owner] * texts.kinds + gram)
    for order in range(1, max_order + 1):
        if order > 1:
            stays = at + order <= ends[at]
            at = at[stays]
            # An n-gram is its first n - 1 tokens and one more: one number, however long it is.
            gram = _dense(gram[stays] * texts.kinds + texts.ids[at + order - 1])
        pairs, count = np.unique(gram * number + owner[at], return_counts=True)
        yield Grams(pairs // number, pairs % number, count)


def totals(lengths: Ints, order: int) -> Ints:
    """How many n-grams of an order texts of these lengths have."""
    import numpy as np

    return np.maximum(lengths - order + 1, 0)


def _dense(keys: Ints) -> Ints:
    import numpy as np

    return np.unique(keys, return_inverse=True)[1].astype(np.int64, copy=False)
