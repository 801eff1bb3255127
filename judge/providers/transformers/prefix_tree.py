"""Sequences of tokens that begin alike, as a forest: what is common to several is there once.

A sequence that others continue is a part of theirs, so the sequences that are left, the leaves, are the ends of all
branches. They are sorted, so that those that begin alike are neighbours, and a run of leaves (i, j), from the i-th to
before the j-th, is a tree. Depths count tokens from a sequence's beginning.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]
_WORD = np.dtype(">u4")  # big-endian, so that bytes sort as the numbers do
WIDTH = _WORD.itemsize
"""Bytes of a key for each token."""


def as_key(tokens: Sequence[int] | Tokens) -> bytes:
    """A sequence as bytes that sort, and begin alike, as the sequences do."""
    return np.asarray(tokens, dtype=_WORD).tobytes()


def common(one: bytes, other: bytes) -> int:
    """How many tokens two keys have in common at their beginning."""
    n = min(len(one), len(other)) // WIDTH
    differs = np.frombuffer(one, _WORD, n) != np.frombuffer(other, _WORD, n)
    first = int(differs.argmax()) if n else 0
    return first if n and differs[first] else n


@dataclass(frozen=True, slots=True)
class Pack:
    """A tree, written in one row: a token stands after those that come before it, and before those that follow it.

    Token i may see token j where j ≤ i < `ends`[j]. `depths` are their positions in their sequences. `rows` are the
    places of the tokens after which something is asked, and what: (place, number of the question).
    """

    tokens: Tokens
    depths: Tokens
    ends: Tokens
    rows: tuple[tuple[int, int], ...]


class Forest:
    """The forest of these texts, as keys by the numbers of the questions that are asked at their ends."""

    def __init__(self, texts: Mapping[int, bytes]) -> None:
        unique = sorted(set(texts.values()))
        leaves = [one for one, after in zip(unique, [*unique[1:], b""], strict=True) if not after.startswith(one)]
        self.leaves: list[Tokens] = [np.frombuffer(leaf, _WORD).astype(np.int64) for leaf in leaves]
        self.shared = [0, *(common(one, after) for one, after in pairwise(leaves))]
        """How many tokens a leaf has in common with the one before it."""
        self.asked: list[list[tuple[int, int]]] = [[] for _ in leaves]
        """For each leaf the questions of which it is the first to have all tokens: (depth of the last, number)."""
        for number, text in sorted(texts.items(), key=lambda one: len(one[1])):
            self.asked[bisect_left(leaves, text)].append((len(text) // WIDTH - 1, number))
        self._new = [0, *accumulate(len(leaf) - n for leaf, n in zip(self.leaves, self.shared, strict=True))]
        self._questions = [0, *accumulate(map(len, self.asked))]

    def __len__(self) -> int:
        return len(self.leaves)

    def trunk(self, i: int, j: int) -> int:
        """How many tokens all leaves of a run have in common."""
        return min(self.shared[i + 1 : j], default=len(self.leaves[i]))

    def size(self, i: int, j: int, start: int) -> int:
        """How many tokens a tree has beyond a depth that is in the trunk."""
        return len(self.leaves[i]) - start + self._new[j] - self._new[i + 1]

    def questions(self, i: int, j: int) -> int:
        """How many questions a tree has, at most."""
        return self._questions[j] - self._questions[i]

    def along(self, i: int, start: int, stop: int) -> tuple[tuple[int, int], ...]:
        """The questions on a leaf's own tokens from a depth to before another: (tokens after `start`, number)."""
        return tuple((depth - start, one) for depth, one in self.asked[i] if start <= depth < stop)

    def branches(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        """The runs into which a tree parts where its trunk ends."""
        at = self.trunk(i, j)
        starts = [k for k in range(i, j) if k == i or self.shared[k] == at]
        return zip(starts, [*starts[1:], j], strict=True)

    def groups(self, i: int, j: int, tokens: int, questions: int) -> list[tuple[int, int]]:
        """Neighbouring branches joined, as long as they have no more tokens and questions than this beyond the trunk.

        A branch that has more by itself is a group.
        """
        start = self.trunk(i, j)
        made: list[tuple[int, int]] = []
        for a, b in self.branches(i, j):
            joined = (made[-1][0], b) if made else (a, b)
            if made and self.size(*joined, start) <= tokens and self.questions(*joined) <= questions:
                made[-1] = joined
            else:
                made.append((a, b))
        return made

    def pack(self, i: int, j: int, start: int) -> Pack:
        """A tree without the first `start` tokens, which are in its trunk, in one row."""
        begins = self._begins(i, j, start)
        parts = [self.leaves[k][begin:] for k, begin in zip(range(i, j), begins, strict=True)]
        depths = [np.arange(begin, begin + len(part)) for begin, part in zip(begins, parts, strict=True)]
        offsets = [0, *accumulate(map(len, parts))]
        rows = [
            (offset + depth - begin, one)
            for k, offset, begin in zip(range(i, j), offsets, begins, strict=False)
            for depth, one in self.asked[k]
            if depth >= begin
        ]
        ends = self._ends(begins, offsets)
        return Pack(np.concatenate(parts), np.concatenate(depths), ends, tuple(rows))

    def fresh(self, start: int | None = None) -> dict[int, int]:
        """How many tokens are computed for each question beyond those of the questions before it.

        `start` is the depth that all have without computing; None says that each leaf is computed as a whole.
        """
        found: dict[int, int] = {}
        for shared, asked in zip(self.shared, self.asked, strict=True):
            done = 0 if start is None else max(shared, start)
            for depth, number in asked:
                found[number] = max(0, depth + 1 - done)
                done = max(done, depth + 1)
        return found

    def stems(self, i: int, j: int, least: int) -> list[tuple[int, int]]:
        """The stretches from the root that have this many tokens and go on for as long as nothing branches off.

        Each is given as a leaf that it is a part of and the depth at which it ends; those of late questions are last.
        """
        starts = [k for k in range(i, j) if k == i or self.shared[k] < least]
        runs = [(a, b) for a, b in zip(starts, [*starts[1:], j], strict=True) if self.trunk(a, b) >= least]
        runs.sort(key=lambda run: max(number for asked in self.asked[slice(*run)] for _, number in asked))
        return [(a, self.trunk(a, b)) for a, b in runs]

    def columns(self, i: int, k: int, start: int, stop: int) -> Tokens:
        """Where in the pack of a run that begins with leaf i the tokens of its leaf k stand, from `start` to `stop`."""
        begins = self._begins(i, k + 1, start)
        offsets = [0, *accumulate(len(self.leaves[m]) - begin for m, begin in zip(range(i, k), begins, strict=False))]
        found = np.empty(stop - start, dtype=np.int64)
        for begin, offset in zip(reversed(begins), reversed(offsets), strict=True):
            if begin < stop:
                found[begin - start : stop - start] = np.arange(offset, offset + stop - begin)
                stop = begin
        return found

    def _begins(self, i: int, j: int, start: int) -> list[int]:
        """The depths from which on each leaf has tokens of its own."""
        return [start, *self.shared[i + 1 : j]]

    @staticmethod
    def _ends(begins: Sequence[int], offsets: Sequence[int]) -> Tokens:
        ends = np.empty(offsets[-1], dtype=np.int64)
        open_: list[tuple[int, int, int]] = []  # stretches still going on: depths from and to, and place of the first
        for begin, offset, after in zip([*begins, 0], offsets, [*offsets[1:], offsets[-1]], strict=True):
            while open_ and open_[-1][1] > begin:
                low, high, place = open_.pop()
                cut = max(low, begin)
                ends[place + cut - low : place + high - low] = offset
                if low < cut:
                    open_.append((low, cut, place))
            if after > offset:
                open_.append((begin, begin + after - offset, offset))
        return ends
