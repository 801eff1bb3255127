"""Batching strategies: compute many texts in shared forward passes, or each text by itself.

`differs` tests whether a model gives the same results both ways.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from judge.core.huggingface import batches
from judge.providers.transformers.forward import (
    WIDTH,
    Answer,
    CachedPrefix,
    Follows,
    ForwardPass,
    Masks,
    PrefixCache,
    PrefixForest,
    as_key,
    read,
)

_MIN_KEPT = 64
"""Tokens without whose computing it is worth to keep, and to look for, a beginning."""
_MAX_STEMS = 4  # each costs a copy; the next call goes on where this one ended

Texts = Mapping[int, bytes]


class BatchingStrategy(Protocol):
    """A way to answer. `size` is how many tokens the pass under way takes that could be divided, 0 where none could."""

    size: int

    def answers(self, texts: Texts, follows: Follows, tokens: int, fresh: dict[int, int]) -> Iterator[Answer]:
        """The answers to questions on texts (keys by number), in passes of at most so many tokens where possible.

        `fresh` is told how many tokens are computed for each question and not for one before it.
        """
        ...


@dataclass
class Padded:
    """Each text for itself, those of like length side by side; `alone` where not even that may be."""

    passes: ForwardPass
    alone: bool = False
    size: int = 0

    def answers(self, texts: Texts, follows: Follows, tokens: int, fresh: dict[int, int]) -> Iterator[Answer]:
        forest = PrefixForest(texts)
        fresh |= forest.fresh()
        if not self.passes.selects:
            tokens = min(tokens, self.passes.most_rows)
        rows = max(map(len, forest.asked))
        most = 1 if self.alone else max(1, math.isqrt(self.passes.most_rows // rows))
        for batch in batches([len(leaf) for leaf in forest.leaves], tokens):
            for at in range(0, len(batch), most):
                part = batch[at : at + most]
                self.size = sum(len(forest.leaves[k]) for k in part) if len(part) > 1 else 0
                yield self.passes.padded([forest.leaves[k] for k in part], [forest.asked[k] for k in part], follows)


@dataclass
class TreePacked:
    """What texts have in common is computed once, and kept for later calls where it is long."""

    passes: ForwardPass
    masks: Masks
    kept: PrefixCache
    size: int = 0
    _forest: PrefixForest = field(init=False)
    _follows: Follows = field(init=False)
    _tokens: int = field(init=False)

    def answers(self, texts: Texts, follows: Follows, tokens: int, fresh: dict[int, int]) -> Iterator[Answer]:
        self._follows = follows
        self._tokens = tokens if self.passes.selects else min(tokens, self.passes.most_rows)
        for beginning, part in self._parts(texts):
            self._forest = PrefixForest(part)
            if beginning is None:
                # All that the texts have in common, less the end of the shortest: something is asked after it.
                shortest = min(depth for questions in self._forest.asked for depth, _ in questions)
                common_length = self._forest.trunk(0, len(self._forest))
                beginning = as_key(self._forest.leaves[0][: min(shortest, common_length)])
            trunk = self.kept.take(beginning)
            trunk = trunk if trunk.length >= _MIN_KEPT else CachedPrefix()
            fresh |= self._forest.fresh(trunk.length)
            yield from self._visit(trunk, 0, len(self._forest), trunk.length)

    def _parts(self, texts: Texts) -> list[tuple[bytes | None, dict[int, bytes]]]:
        """Texts of which at least half is kept, by that beginning; all others."""
        parts: dict[bytes | None, dict[int, bytes]] = defaultdict(dict)
        lead, chosen = b"", None
        for number, text in sorted(texts.items(), key=lambda pair: pair[1]):
            if not lead or not text.startswith(lead):  # one that goes on with another goes with it
                length = len(text) // WIDTH
                same = min(self.kept.match(text), length - 1)
                lead, chosen = text, text[: WIDTH * same] if same >= max(_MIN_KEPT, length // 2) else None
            parts[chosen][number] = text
        return list(parts.items())

    def _visit(self, trunk: CachedPrefix, i: int, j: int, held: int) -> Iterator[Answer]:
        """The answers in a tree, on as much of its trunk as there is, of which `held` tokens are kept."""
        forest, most = self._forest, self.passes.most_rows
        if j - i > 1 and forest.size(i, j, trunk.length) <= self._tokens and forest.questions(i, j) <= most:
            yield self._pack(trunk, i, j, held)
            return
        stop = forest.trunk(i, j)
        while trunk.length < stop:
            self.size = min(stop - trunk.length, self._tokens)
            end = trunk.length + self.size
            rows, new = forest.along(i, trunk.length, end), forest.leaves[i][trunk.length : end]
            answer, trunk = self.passes.straight(trunk, new, rows, self._follows)
            yield answer
        keep = stop >= _min_length_to_keep(held)
        if j - i > 1:
            for a, b in forest.groups(i, j, self._tokens, most):
                yield from self._visit(trunk, a, b, stop if keep else held)
        if keep:
            self.kept.keep(trunk)

    def _pack(self, trunk: CachedPrefix, i: int, j: int, held: int) -> Answer:
        forest, start = self._forest, trunk.length
        pack = forest.pack(i, j, start)
        self.size = len(pack.tokens)
        answer, states = self.passes.packed(trunk, pack, self.masks, self._follows)
        stems = forest.stems(i, j, max(start + 1, _min_length_to_keep(held))) if self.kept.most else []
        for k, depth in stems[-_MAX_STEMS:]:
            columns = np.concatenate([np.arange(start), start + forest.columns(i, k, start, depth)])
            self.kept.keep(CachedPrefix(as_key(forest.leaves[k][:depth]), depth, self.passes.pick(states, columns)))
        return answer


def _min_length_to_keep(held: int) -> int:
    """How long a beginning has to be to be kept where so many tokens of it are: a quarter of it has to be new."""
    return held + max(_MIN_KEPT, held // 3)


_COMPARED_TOKENS = 64
_TOLERANCE = {"float32": 1e-3, "float64": 1e-3}
_TOLERANCE_HALF = 0.05
"""The greatest `difference` that is taken for rounding, the second that of numbers of 16 bits (0.01 where all is right,
0.15 where a mask is not heeded)."""
_MODEL_ERRORS = (RuntimeError, TypeError, ValueError, AttributeError, LookupError, AssertionError, MemoryError)
"""What models raise that were not made for what they are given."""


def limits(config: Any) -> list[int]:
    """Lengths beyond which a model may read a text in another way: its windows, its positions before stretching."""
    lengths = {getattr(config, "attention_chunk_size", None), getattr(config, "original_max_position_embeddings", None)}
    lengths.add(_window(config))
    ropes = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    for rope in [ropes, *ropes.values()]:
        if isinstance(rope, dict):
            lengths.add(rope.get("original_max_position_embeddings"))
            if rope.get("rope_type") == "dynamic":
                lengths.add(getattr(config, "max_position_embeddings", None))
    return sorted(int(length) for length in lengths if length)


def forms(passes: ForwardPass, config: Any) -> list[Masks]:
    """The forms of masks that models take, the likeliest for this one first."""
    near, kinds = _window(config), tuple(sorted(set(getattr(config, "layer_types", None) or ())))
    candidates = [(near, kinds), (near, ()), (None, ())] if near else [(None, ()), (None, kinds)]
    return [passes.masks(seen, names) for seen, names in dict.fromkeys(candidates)]


def out_of_memory(error: BaseException) -> bool:
    """Whether this says that there was no room left, on whatever device."""
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or any(phrase in str(error) for phrase in ("out of memory", "DefaultCPUAllocator", "ALLOC_FAILED"))


def differs(
    strategy: BatchingStrategy, passes: ForwardPass, length: int, most: float, tokens: int, *, least: int
) -> bool:
    """Whether a way gives other answers than each text by itself, for texts of about this length, or none at all.

    No text has more than `most` tokens, and no pass more than `tokens` where that can be; where there is no room for
    it, half as many, down to `least`. Raises MemoryError where there is none for that either.
    """
    alike = _TOLERANCE.get(str(passes.dtype).removeprefix("torch."), _TOLERANCE_HALF)
    while True:
        try:
            return not difference(strategy, passes, _texts(passes.vocabulary, length, most), tokens) <= alike
        except _MODEL_ERRORS as error:
            if not out_of_memory(error):
                return True
        tokens //= 2
        if tokens < least:
            raise MemoryError


def difference(strategy: BatchingStrategy, passes: ForwardPass, texts: Sequence[Sequence[int]], tokens: int) -> float:
    """How much the log probabilities that a way gives differ from those of each text by itself.

    It is the root mean square as a share of their standard deviation over the vocabulary, for the worst text.
    """
    keys = dict(enumerate(map(as_key, texts)))
    follows = [np.unique(np.linspace(0, passes.vocabulary - 1, _COMPARED_TOKENS).astype(int)).tolist()] * len(keys)
    together = _log_probabilities(strategy, [keys], follows, tokens)
    alone = _log_probabilities(Padded(passes, alone=True), [{n: key} for n, key in keys.items()], follows, tokens)
    apart = np.sqrt(np.square(together - alone).mean(-1)) / np.maximum(alone.std(-1), 1e-6)
    return float(apart.max())


def _window(config: Any) -> int | None:
    """How many tokens the layers with a sliding window see, None where there are none such."""
    used = getattr(config, "use_sliding_window", True)
    window = getattr(config, "sliding_window", None)
    return int(window) if used and window else None


def _log_probabilities(
    strategy: BatchingStrategy, parts: Sequence[Mapping[int, bytes]], follows: Follows, tokens: int
) -> npt.NDArray[np.float64]:
    results = read([answer for part in parts for answer in strategy.answers(part, follows, tokens, {})], follows)
    return np.array([results[n][0] for n in range(len(follows))])


def _texts(vocabulary: int, length: int, most: float) -> list[list[int]]:
    """Made-up texts that part just before a length, and well beyond it, one of which is the beginning of others."""
    spare = int(min(length // 2 + 8, most - length - 12))
    drawn = np.random.default_rng(0).integers(0, vocabulary, (10, length + 20)).tolist()
    trunk = drawn[0][: length - 8]
    first, long = trunk + drawn[1][:7], trunk + drawn[2][: max(0, spare) + 8]
    ends = [first + drawn[3][:1], first + drawn[4][:9], trunk + drawn[5][:5], first]
    return ends + [long + drawn[n][:size] for n, size in ((6, 3), (7, 12), (8, 6)) if spare > 0]
