"""Forward passes of a causal language model over token sequences that share prefixes.

The sequences form a forest in which a shared prefix exists once. A sequence that another one continues is part of that
one, so the leaves are the ends of all branches. Leaves are sorted, so that sequences with a common prefix are
neighbours, and a run of leaves (i, j), from the i-th to before the j-th, is a tree. Depths count tokens from the start
of a sequence.
"""

from __future__ import annotations

import inspect
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from judge.core.huggingface import import_optional

Tokens = npt.NDArray[np.int64]
_WORD = np.dtype(">u4")  # big-endian, so that bytes sort as the numbers do
WIDTH = _WORD.itemsize
"""Bytes of a key for each token."""


def as_key(tokens: Sequence[int] | Tokens) -> bytes:
    """A sequence as bytes that sort, and begin alike, as the sequences do."""
    return np.asarray(tokens, dtype=_WORD).tobytes()


def common(first_key: bytes, second_key: bytes) -> int:
    """How many tokens two keys have in common at their beginning."""
    n = min(len(first_key), len(second_key)) // WIDTH
    differs = np.frombuffer(first_key, _WORD, n) != np.frombuffer(second_key, _WORD, n)
    first = int(differs.argmax()) if n else 0
    return first if n and differs[first] else n


@dataclass(frozen=True, slots=True)
class PackedTree:
    """A tree, written in one row: a token stands after those that come before it, and before those that follow it.

    Token i may see token j where j ≤ i < `ends`[j]. `depths` are their positions in their sequences. `rows` are the
    places of the tokens after which something is asked, and what: (place, number of the question).
    """

    tokens: Tokens
    depths: Tokens
    ends: Tokens
    rows: tuple[tuple[int, int], ...]


class PrefixForest:
    """The forest of these texts, as keys by the numbers of the questions that are asked at their ends."""

    def __init__(self, texts: Mapping[int, bytes]) -> None:
        unique = sorted(set(texts.values()))
        leaves = [
            sequence
            for sequence, after in zip(unique, [*unique[1:], b""], strict=True)
            if not after.startswith(sequence)
        ]
        self.leaves: list[Tokens] = [np.frombuffer(leaf, _WORD).astype(np.int64) for leaf in leaves]
        self.shared = [0, *(common(previous, after) for previous, after in pairwise(leaves))]
        """How many tokens a leaf has in common with the one before it."""
        self.asked: list[list[tuple[int, int]]] = [[] for _ in leaves]
        """For each leaf the questions of which it is the first to have all tokens: (depth of the last, number)."""
        for number, text in sorted(texts.items(), key=lambda entry: len(entry[1])):
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
        return tuple((depth - start, number) for depth, number in self.asked[i] if start <= depth < stop)

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
        groups: list[tuple[int, int]] = []
        for a, b in self.branches(i, j):
            joined = (groups[-1][0], b) if groups else (a, b)
            if groups and self.size(*joined, start) <= tokens and self.questions(*joined) <= questions:
                groups[-1] = joined
            else:
                groups.append((a, b))
        return groups

    def pack(self, i: int, j: int, start: int) -> PackedTree:
        """A tree without the first `start` tokens, which are in its trunk, in one row."""
        begins = self._begins(i, j, start)
        parts = [self.leaves[k][begin:] for k, begin in zip(range(i, j), begins, strict=True)]
        depths = [np.arange(begin, begin + len(part)) for begin, part in zip(begins, parts, strict=True)]
        offsets = [0, *accumulate(map(len, parts))]
        rows = [
            (offset + depth - begin, number)
            for k, offset, begin in zip(range(i, j), offsets, begins, strict=False)
            for depth, number in self.asked[k]
            if depth >= begin
        ]
        ends = self._ends(begins, offsets)
        return PackedTree(np.concatenate(parts), np.concatenate(depths), ends, tuple(rows))

    def fresh(self, start: int | None = None) -> dict[int, int]:
        """How many tokens are computed for each question beyond those of the questions before it.

        `start` is the depth that all have without computing; None says that each leaf is computed as a whole.
        """
        computed: dict[int, int] = {}
        for shared, questions in zip(self.shared, self.asked, strict=True):
            done = 0 if start is None else max(shared, start)
            for depth, number in questions:
                computed[number] = max(0, depth + 1 - done)
                done = max(done, depth + 1)
        return computed

    def stems(self, i: int, j: int, least: int) -> list[tuple[int, int]]:
        """The stretches from the root that have this many tokens and go on for as long as nothing branches off.

        Each is given as a leaf that it is a part of and the depth at which it ends; those of late questions are last.
        """
        starts = [k for k in range(i, j) if k == i or self.shared[k] < least]
        runs = [(a, b) for a, b in zip(starts, [*starts[1:], j], strict=True) if self.trunk(a, b) >= least]
        runs.sort(key=lambda run: max(number for questions in self.asked[slice(*run)] for _, number in questions))
        return [(a, self.trunk(a, b)) for a, b in runs]

    def columns(self, i: int, k: int, start: int, stop: int) -> Tokens:
        """Where in the pack of a run that begins with leaf i the tokens of its leaf k stand, from `start` to `stop`."""
        begins = self._begins(i, k + 1, start)
        offsets = [0, *accumulate(len(self.leaves[m]) - begin for m, begin in zip(range(i, k), begins, strict=False))]
        columns = np.empty(stop - start, dtype=np.int64)
        for begin, offset in zip(reversed(begins), reversed(offsets), strict=True):
            if begin < stop:
                columns[begin - start : stop - start] = np.arange(offset, offset + stop - begin)
                stop = begin
        return columns

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


_MAX_LOGITS = 2**26
"""Logits computed at once: 0.7 GB with what their softmax takes."""
_ALIGNED = 16  # a mask whose rows begin elsewhere is copied by every layer

Rows = Sequence[tuple[int, int]]
"""Places in a text, and the number of the question that is asked there."""
Follows = Sequence[Sequence[int]]
"""For each question, the tokens whose probability is wanted."""
Masks = Callable[[PackedTree, int], Any]
States = tuple[tuple[Any, Any], ...]
"""Each layer's keys and values, of shape (1, heads, tokens, size)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a pass says to `questions`, on the device still, which has work while the next pass is prepared.

    `logs` has the log probabilities (nats, of the whole vocabulary, float32) of what may follow each question, one
    after the other, and `likeliest` the likeliest token of each.
    """

    questions: Sequence[int]
    logs: Any
    likeliest: Any


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """A beginning that was computed: its tokens as a key, their number, and each layer's keys and values."""

    key: bytes = b""
    length: int = 0
    states: States = ()

    def cut(self, length: int) -> CachedPrefix:
        """The first `length` tokens of it; shares memory with the whole."""
        if length == self.length:
            return self
        states = tuple((k[..., :length, :], v[..., :length, :]) for k, v in self.states)
        return CachedPrefix(self.key[: WIDTH * length], length, states if length else ())


class PrefixCache:
    """Trunks for later, those that were used last, at most so many bytes of them."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._trunks: OrderedDict[bytes, CachedPrefix] = OrderedDict()
        self._keys: list[bytes] = []

    def __len__(self) -> int:
        return len(self._keys)

    def match(self, key: bytes) -> int:
        """How many tokens a sequence has in common at its beginning with the trunk that is most like it."""
        at = bisect_left(self._keys, key)
        return max((common(key, candidate) for candidate in self._keys[max(at - 1, 0) : at + 1]), default=0)

    def take(self, key: bytes) -> CachedPrefix:
        """As much of this beginning as is kept."""
        same = self.match(key)
        if not same:
            return CachedPrefix()
        at = bisect_left(self._keys, key[: WIDTH * same])
        self._trunks.move_to_end(self._keys[at])
        return self._trunks[self._keys[at]].cut(same)

    def keep(self, trunk: CachedPrefix) -> None:
        """Holds on to a trunk, and lets go of those unused the longest. One that is part of another is not held."""
        at, size = bisect_left(self._keys, trunk.key), _size(trunk)
        if at < len(self._keys) and self._keys[at].startswith(trunk.key):
            self._trunks.move_to_end(self._keys[at])
            return
        if size > self.most:
            return
        insort(self._keys, trunk.key)
        self._trunks[trunk.key] = trunk
        self.held += size
        while self.held > self.most:
            key, dropped = self._trunks.popitem(last=False)
            self.held -= _size(dropped)
            self._keys.remove(key)

    def clear(self) -> None:
        self._trunks.clear()
        self._keys.clear()
        self.held = 0


def _size(trunk: CachedPrefix) -> int:
    """What a trunk occupies; one that is cut from another holds on to all of it."""
    return sum(state.untyped_storage().nbytes() for pair in trunk.states for state in pair)


def read(answers: Sequence[Answer], follows: Follows) -> dict[int, tuple[list[float], int]]:
    """Answers brought over from the device, by question: log probabilities and likeliest token."""
    results: dict[int, tuple[list[float], int]] = {}
    logs = [log for each in answers for log in each.logs.tolist()]
    likeliest = [token for each in answers for token in each.likeliest.tolist()]
    at = 0
    for question, token in zip((number for answer in answers for number in answer.questions), likeliest, strict=True):
        results[question] = logs[at : (at := at + len(follows[question]))], token
    return results


class ForwardPass:
    """A model's forward passes. `most_rows` is how many places may be asked about in one, for want of memory."""

    def __init__(self, model: Any) -> None:
        self._torch, self._cache = (
            import_optional("torch", "local"),
            import_optional("transformers.cache_utils", "local"),
        )
        self.model, self.device, self.dtype = model, model.device, model.dtype
        self.vocabulary = model.get_input_embeddings().weight.shape[0]
        self.selects = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.most_rows = max(1, _MAX_LOGITS // self.vocabulary)

    def straight(
        self, trunk: CachedPrefix, tokens: Tokens, rows: Rows, follows: Follows
    ) -> tuple[Answer, CachedPrefix]:
        """The trunk with more tokens, one after the other."""
        cache = self._states(trunk)
        answer = self._run(tokens[None], [rows], follows, past_key_values=cache, use_cache=True)
        return answer, CachedPrefix(trunk.key + as_key(tokens), trunk.length + len(tokens), _pairs(cache))

    def packed(self, trunk: CachedPrefix, pack: PackedTree, masks: Masks, follows: Follows) -> tuple[Answer, States]:
        """A tree on the trunk; what is kept is of the trunk and the whole pack."""
        cache = self._states(trunk)
        answer = self._run(
            pack.tokens[None],
            [pack.rows],
            follows,
            attention_mask=masks(pack, trunk.length),
            position_ids=self._torch.from_numpy(pack.depths[None]).to(self.device),
            past_key_values=cache,
            use_cache=True,
        )
        return answer, _pairs(cache)

    def padded(self, texts: Sequence[Tokens], rows: Sequence[Rows], follows: Follows) -> Answer:
        """Texts side by side, filled up behind their ends, where no token that is asked about can see it."""
        longest = max(map(len, texts))
        # The last token is as good a filling as any, and is not taken for padding that lacks a mask.
        block = np.stack([np.pad(text, (0, longest - len(text)), mode="edge") for text in texts])
        return self._run(block, rows, follows, use_cache=False)

    def pick(self, states: States, columns: Tokens) -> States:
        """Only these tokens of what was kept, in memory of their own."""
        at = self._torch.from_numpy(columns).to(self.device)
        return tuple((k.index_select(-2, at), v.index_select(-2, at)) for k, v in states)

    def masks(self, window: int | None, kinds: Sequence[str]) -> Masks:
        """What makes the mask of a pack: one for all layers, or one for each kind of layer where `kinds` are given."""

        def make_masks(pack: PackedTree, past: int) -> Any:
            wide = self._mask(pack, past, None if kinds else window)
            if not kinds:
                return wide
            near = self._mask(pack, past, window) if window else wide
            return {kind: near if kind.startswith("sliding") else wide for kind in kinds}

        return make_masks

    def _mask(self, pack: PackedTree, past: int, window: int | None) -> Any:
        """0 where a token may look, the lowest number elsewhere: shape (1, 1, tokens, trunk and tokens)."""
        torch, n = self._torch, len(pack.tokens)
        wide = -(-(past + n) // _ALIGNED) * _ALIGNED
        mask = torch.zeros((n, wide), dtype=self.dtype, device=self.device)[:, : past + n]
        lowest = torch.finfo(self.dtype).min
        place = torch.arange(n, device=self.device)
        ends = torch.from_numpy(pack.ends).to(self.device)
        mask[:, past:].masked_fill_((place > place[:, None]) | (place[:, None] >= ends), lowest)
        if window is not None and past + n > window:
            depths = torch.from_numpy(pack.depths).to(self.device)
            seen = torch.cat([torch.arange(past, device=self.device), depths])
            mask.masked_fill_(seen <= (depths - window)[:, None], lowest)
        return mask[None, None]

    def _states(self, trunk: CachedPrefix) -> Any:
        """A cache that begins with the trunk, whose tensors are neither copied nor changed."""
        cache = self._cache.DynamicCache()
        for keys, values in trunk.states:
            layer = self._cache.DynamicLayer()
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
            cache.layers.append(layer)
        return cache

    def _run(self, block: Tokens, rows: Sequence[Rows], follows: Follows, **arguments: Any) -> Answer:
        """The answers for the rows of each line of a block, of shape (lines, tokens)."""
        torch = self._torch
        places = sorted({place for each in rows for place, _ in each})
        positions = torch.tensor(places or [0], device=self.device)
        tokens = torch.from_numpy(block).to(self.device)
        if self.selects:
            logits = self.model(input_ids=tokens, logits_to_keep=positions, **arguments).logits
        else:
            logits = self.model(input_ids=tokens, **arguments).logits[:, positions]
        at = {place: n for n, place in enumerate(places)}
        asked_rows = [
            (line * len(places) + at[place], number) for line, each in enumerate(rows) for place, number in each
        ]
        row_tokens = [(row, token) for row, number in asked_rows for token in follows[number]]
        logs = logits.flatten(0, 1).float()
        row, token = torch.tensor(row_tokens, dtype=torch.long, device=self.device).reshape(-1, 2).unbind(1)
        last = torch.tensor([row for row, _ in asked_rows], dtype=torch.long, device=self.device)
        return Answer(
            [number for _, number in asked_rows], logs[row, token] - logs.logsumexp(-1)[row], logs.argmax(-1)[last]
        )


def _pairs(cache: Any) -> States:
    return tuple((layer.keys, layer.values) for layer in cache.layers)
