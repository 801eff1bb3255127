"""The ways in which questions about what follows many texts become forward passes: shared, or each for itself."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from judge.core.huggingface import batches
from judge.providers.transformers.forward import Answer, Follows, Kept, Masks, Passes, Trunk
from judge.providers.transformers.prefix_tree import WIDTH, Forest, as_key

_WORTH = 64
"""Tokens without whose computing it is worth to keep, and to look for, a beginning."""
_MOST_STEMS = 4  # each costs a copy; the next call goes on where this one ended

Texts = Mapping[int, bytes]


class Way(Protocol):
    """A way to answer. `size` is how many tokens the pass under way takes that could be divided, 0 where none could."""

    size: int

    def answers(self, texts: Texts, follows: Follows, tokens: int, fresh: dict[int, int]) -> Iterator[Answer]:
        """The answers to questions on texts (keys by number), in passes of at most so many tokens where possible.

        `fresh` is told how many tokens are computed for each question and not for one before it.
        """
        ...


@dataclass
class Plain:
    """Each text for itself, those of like length side by side; `alone` where not even that may be."""

    passes: Passes
    alone: bool = False
    size: int = 0

    def answers(self, texts: Texts, follows: Follows, tokens: int, fresh: dict[int, int]) -> Iterator[Answer]:
        forest = Forest(texts)
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
class Shared:
    """What texts have in common is computed once, and kept for later calls where it is long."""

    passes: Passes
    masks: Masks
    kept: Kept
    size: int = 0
    _forest: Forest = field(init=False)
    _follows: Follows = field(init=False)
    _tokens: int = field(init=False)

    def answers(self, texts: Texts, follows: Follows, tokens: int, fresh: dict[int, int]) -> Iterator[Answer]:
        self._follows = follows
        self._tokens = tokens if self.passes.selects else min(tokens, self.passes.most_rows)
        for beginning, part in self._parts(texts):
            self._forest = Forest(part)
            trunk = self.kept.take(beginning if beginning is not None else self._beginning())
            trunk = trunk if trunk.length >= _WORTH else Trunk()
            fresh |= self._forest.fresh(trunk.length)
            yield from self._visit(trunk, 0, len(self._forest), trunk.length)

    def _parts(self, texts: Texts) -> list[tuple[bytes | None, dict[int, bytes]]]:
        """Texts of which at least half is kept, by that beginning; all others."""
        parts: dict[bytes | None, dict[int, bytes]] = defaultdict(dict)
        lead, chosen = b"", None
        for number, text in sorted(texts.items(), key=lambda one: one[1]):
            if not lead or not text.startswith(lead):  # one that goes on with another goes with it
                length = len(text) // WIDTH
                same = min(self.kept.match(text), length - 1)
                lead, chosen = text, text[: WIDTH * same] if same >= max(_WORTH, length // 2) else None
            parts[chosen][number] = text
        return list(parts.items())

    def _beginning(self) -> bytes:
        """What all texts have in common, less the end of the shortest, after which something is asked."""
        forest = self._forest
        shortest = min(depth for asked in forest.asked for depth, _ in asked)
        return as_key(forest.leaves[0][: min(shortest, forest.trunk(0, len(forest)))])

    def _visit(self, trunk: Trunk, i: int, j: int, held: int) -> Iterator[Answer]:
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
        keep = stop >= _least(held)
        if j - i > 1:
            for a, b in forest.groups(i, j, self._tokens, most):
                yield from self._visit(trunk, a, b, stop if keep else held)
        if keep:
            self.kept.keep(trunk)

    def _pack(self, trunk: Trunk, i: int, j: int, held: int) -> Answer:
        forest, start = self._forest, trunk.length
        pack = forest.pack(i, j, start)
        self.size = len(pack.tokens)
        answer, states = self.passes.packed(trunk, pack, self.masks, self._follows)
        stems = forest.stems(i, j, max(start + 1, _least(held))) if self.kept.most else []
        for k, stop in stems[-_MOST_STEMS:]:
            columns = np.concatenate([np.arange(start), start + forest.columns(i, k, start, stop)])
            self.kept.keep(Trunk(as_key(forest.leaves[k][:stop]), stop, self.passes.pick(states, columns)))
        return answer


def _least(held: int) -> int:
    """How long a beginning has to be to be kept where so many tokens of it are: a quarter of it has to be new."""
    return held + max(_WORTH, held // 3)
