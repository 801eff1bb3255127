"""Forward passes of a causal language model: what follows which tokens, and the keys and values that are kept."""

from __future__ import annotations

import inspect
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.core.huggingface import optional
from judge.providers.transformers.prefix_tree import WIDTH, Pack, Tokens, as_key, common

_MOST_LOGITS = 2**26
"""Logits computed at once: 0.7 GB with what their softmax takes."""
_ALIGNED = 16  # a mask whose rows begin elsewhere is copied by every layer

Rows = Sequence[tuple[int, int]]
"""Places in a text, and the number of the question that is asked there."""
Follows = Sequence[Sequence[int]]
"""For each question, the tokens whose probability is wanted."""
Masks = Callable[[Pack, int], Any]
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
class Trunk:
    """A beginning that was computed: its tokens as a key, their number, and each layer's keys and values."""

    key: bytes = b""
    length: int = 0
    states: States = ()

    def cut(self, length: int) -> Trunk:
        """The first `length` tokens of it; shares memory with the whole."""
        if length == self.length:
            return self
        states = tuple((k[..., :length, :], v[..., :length, :]) for k, v in self.states)
        return Trunk(self.key[: WIDTH * length], length, states if length else ())


class Kept:
    """Trunks for later, those that were used last, at most so many bytes of them."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._trunks: OrderedDict[bytes, Trunk] = OrderedDict()
        self._keys: list[bytes] = []

    def __len__(self) -> int:
        return len(self._keys)

    def match(self, key: bytes) -> int:
        """How many tokens a sequence has in common at its beginning with the trunk that is most like it."""
        at = bisect_left(self._keys, key)
        return max((common(key, one) for one in self._keys[max(at - 1, 0) : at + 1]), default=0)

    def take(self, key: bytes) -> Trunk:
        """As much of this beginning as is kept."""
        same = self.match(key)
        if not same:
            return Trunk()
        at = bisect_left(self._keys, key[: WIDTH * same])
        self._trunks.move_to_end(self._keys[at])
        return self._trunks[self._keys[at]].cut(same)

    def keep(self, trunk: Trunk) -> None:
        """Holds on to a trunk, and lets go of those unused the longest. One that is part of another is not held."""
        at, size = bisect_left(self._keys, trunk.key), _bytes(trunk)
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
            self.held -= _bytes(dropped)
            self._keys.remove(key)

    def clear(self) -> None:
        self._trunks.clear()
        self._keys.clear()
        self.held = 0


def _bytes(trunk: Trunk) -> int:
    """What a trunk occupies; one that is cut from another holds on to all of it."""
    return sum(state.untyped_storage().nbytes() for pair in trunk.states for state in pair)


def read(answers: Sequence[Answer], follows: Follows) -> dict[int, tuple[list[float], int]]:
    """Answers brought over from the device, by question: log probabilities and likeliest token."""
    found: dict[int, tuple[list[float], int]] = {}
    logs = [log for one in answers for log in one.logs.tolist()]
    likeliest = [token for one in answers for token in one.likeliest.tolist()]
    at = 0
    for question, token in zip((one for answer in answers for one in answer.questions), likeliest, strict=True):
        found[question] = logs[at : (at := at + len(follows[question]))], token
    return found


class Passes:
    """A model's forward passes. `most_rows` is how many places may be asked about in one, for want of memory."""

    def __init__(self, model: Any) -> None:
        self._torch, self._cache = optional("torch", "local"), optional("transformers.cache_utils", "local")
        self.model, self.device, self.dtype = model, model.device, model.dtype
        self.vocabulary = model.get_input_embeddings().weight.shape[0]
        self.selects = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.most_rows = max(1, _MOST_LOGITS // self.vocabulary)

    def straight(self, trunk: Trunk, tokens: Tokens, rows: Rows, follows: Follows) -> tuple[Answer, Trunk]:
        """The trunk with more tokens, one after the other."""
        cache = self._states(trunk)
        answer = self._asked(tokens[None], [rows], follows, past_key_values=cache, use_cache=True)
        return answer, Trunk(trunk.key + as_key(tokens), trunk.length + len(tokens), _pairs(cache))

    def packed(self, trunk: Trunk, pack: Pack, masks: Masks, follows: Follows) -> tuple[Answer, States]:
        """A tree on the trunk; what is kept is of the trunk and the whole pack."""
        cache = self._states(trunk)
        answer = self._asked(
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
        return self._asked(block, rows, follows, use_cache=False)

    def pick(self, states: States, columns: Tokens) -> States:
        """Only these tokens of what was kept, in memory of their own."""
        at = self._torch.from_numpy(columns).to(self.device)
        return tuple((k.index_select(-2, at), v.index_select(-2, at)) for k, v in states)

    def masks(self, window: int | None, kinds: Sequence[str]) -> Masks:
        """What makes the mask of a pack: one for all layers, or one for each kind of layer where `kinds` are given."""

        def made(pack: Pack, past: int) -> Any:
            wide = self._mask(pack, past, None if kinds else window)
            if not kinds:
                return wide
            near = self._mask(pack, past, window) if window else wide
            return {kind: near if kind.startswith("sliding") else wide for kind in kinds}

        return made

    def _mask(self, pack: Pack, past: int, window: int | None) -> Any:
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

    def _states(self, trunk: Trunk) -> Any:
        """A cache that begins with the trunk, whose tensors are neither copied nor changed."""
        cache = self._cache.DynamicCache()
        for keys, values in trunk.states:
            layer = self._cache.DynamicLayer()
            layer.lazy_initialization(keys, values)
            layer.keys, layer.values = keys, values
            cache.layers.append(layer)
        return cache

    def _asked(self, block: Tokens, rows: Sequence[Rows], follows: Follows, **how: Any) -> Answer:
        """The answers for the rows of each line of a block, of shape (lines, tokens)."""
        torch = self._torch
        places = sorted({place for each in rows for place, _ in each})
        kept = torch.tensor(places or [0], device=self.device)
        tokens = torch.from_numpy(block).to(self.device)
        if self.selects:
            logits = self.model(input_ids=tokens, logits_to_keep=kept, **how).logits
        else:
            logits = self.model(input_ids=tokens, **how).logits[:, kept]
        at = {place: n for n, place in enumerate(places)}
        asked = [(line * len(places) + at[place], one) for line, each in enumerate(rows) for place, one in each]
        wanted = [(row, token) for row, one in asked for token in follows[one]]
        logs = logits.flatten(0, 1).float()
        row, token = torch.tensor(wanted, dtype=torch.long, device=self.device).reshape(-1, 2).unbind(1)
        last = torch.tensor([row for row, _ in asked], dtype=torch.long, device=self.device)
        return Answer([one for _, one in asked], logs[row, token] - logs.logsumexp(-1)[row], logs.argmax(-1)[last])


def _pairs(cache: Any) -> States:
    return tuple((layer.keys, layer.values) for layer in cache.layers)
