"""Score prompts by the exact probability of every label; prompts that begin alike share the computing of that.

A prefix that several prompts have in common is computed once, into a key-value cache of transformers. What follows it
is computed in batches over that cache, repeated for each row and padded behind the rows' ends, where no token that is
asked about can see it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from judge.core.errors import Refused
from judge.core.huggingface import batches, import_optional
from judge.providers.transformers.labels import Labels, Path

_TOKENS = {"cuda": 8192, "cpu": 2048}
"""Tokens of a pass: enough for the device to be busy."""
_WORTH = {"cuda": 2048, "cpu": 256}
"""Tokens that a prefix has to save to be computed on its own: about what two passes more cost."""
_LEAST_TOKENS = 32
_MAX_LOGITS = 2**27
"""Logits computed at once: 0.3 GB in 16 bits."""
_CPU_BYTES = 2**30
_STORED_SHARE, _COPIED_SHARE = 1 / 8, 1 / 2
"""Of a GPU's free memory, for prefixes that later calls may need and for the repeated prefix of a batch."""
_MAX_STORED, _MIN_STORED = 64, 64
"""Prefixes that are kept for later calls, and the tokens that each has at least."""
_WORD = np.dtype(">u4")  # big-endian, so that bytes sort as the numbers do
WIDTH = _WORD.itemsize


@dataclass(frozen=True, slots=True)
class LabelProbabilities:
    """A model's answer to one prompt.

    `shares` are the probabilities by label, in the order of the scale (each 0–1, together at most 1: the rest is on no
    label); `likeliest` is the id of the likeliest next token.
    """

    shares: tuple[tuple[str, float], ...]
    likeliest: int


class Cancelled(Exception):
    """Nobody waits for the answers any more."""


def _as_key(tokens: Sequence[int]) -> bytes:
    """Tokens as bytes that sort, and begin alike, as the tokens do."""
    return np.asarray(tokens, dtype=_WORD).tobytes()


def _common(first: bytes, second: bytes) -> int:
    """How many tokens two keys have in common at their beginning."""
    n = min(len(first), len(second)) // WIDTH
    differs = np.frombuffer(first, _WORD, n) != np.frombuffer(second, _WORD, n)
    place = int(differs.argmax()) if n else 0
    return place if n and differs[place] else n


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A text that no other one continues. `shared` counts the tokens in common with the leaf before it.

    `questions` are asked here: after how many tokens, the fewest first, and the question's number.
    """

    key: bytes
    shared: int
    questions: list[tuple[int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.key) // WIDTH

    def tokens(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        return np.frombuffer(self.key, _WORD)[start:stop].astype(np.int64)


def _leaves(texts: Mapping[int, bytes]) -> list[_Leaf]:
    """The leaves, in order, of the tree of these texts, which are keys by the number of the question after each."""
    unique = sorted(set(texts.values()))
    keys = [key for key, after in zip(unique, [*unique[1:], b""], strict=True) if not after.startswith(key)]
    leaves = [_Leaf(key, _common(before, key)) for before, key in pairwise([b"", *keys])]
    for number, text in sorted(texts.items(), key=lambda entry: len(entry[1])):
        leaves[bisect_left(keys, text)].questions.append((len(text) // WIDTH, number))
    return leaves


@dataclass(frozen=True, slots=True)
class _Prefix:
    """Tokens as a key, and a `DynamicCache` of one row with their keys and values, None where there are none."""

    key: bytes = b""
    cache: Any = None

    def __len__(self) -> int:
        return len(self.key) // WIDTH

    @property
    def bytes(self) -> int:
        """The memory of the cache; one cut from another holds on to all of it."""
        return sum(state.untyped_storage().nbytes() for state in self._states())

    @property
    def token_bytes(self) -> int:
        """The bytes of keys and values for each token."""
        return int(sum(state.nbytes for state in self._states())) // max(1, len(self))

    def view(self, length: int, rows: int = 1) -> Any:
        """A cache that begins with the first `length` tokens in each of its rows, whose memory is not copied."""
        cache = copy(self.cache)
        cache.layers = [copy(layer) for layer in self.cache.layers]
        for layer in cache.layers:
            if layer.is_initialized:
                layer.keys = layer.keys[..., :length, :].expand(rows, -1, -1, -1)
                layer.values = layer.values[..., :length, :].expand(rows, -1, -1, -1)
        return cache

    def cut(self, length: int) -> _Prefix:
        return _Prefix(self.key[: WIDTH * length], self.view(length))

    def _states(self) -> list[Any]:
        layers = self.cache.layers if self.cache is not None else ()
        return [state for layer in layers if layer.is_initialized for state in (layer.keys, layer.values)]


class PrefixStore:
    """Prefixes for later calls, those used last at the end, which take `capacity` bytes at most."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._prefixes: list[_Prefix] = []

    def longest(self, key: bytes) -> _Prefix:
        """As much as is stored of the beginning of a text; an empty prefix where that is too little to be of use."""
        lengths = [_common(prefix.key, key) for prefix in self._prefixes]
        most = max(lengths, default=0)
        if most < _MIN_STORED:
            return _Prefix()
        prefix = self._prefixes.pop(lengths.index(most))
        self._prefixes.append(prefix)
        return prefix.cut(most)

    def add(self, prefix: _Prefix) -> None:
        """Keep a prefix in the place of its own beginnings, and let go of what was unused the longest."""
        longer = [held for held in self._prefixes if held.key.startswith(prefix.key)]
        self._prefixes = [held for held in self._prefixes if held not in longer and not prefix.key.startswith(held.key)]
        self._prefixes += longer or [prefix]
        while len(self._prefixes) > _MAX_STORED or sum(held.bytes for held in self._prefixes) > self.capacity:
            del self._prefixes[0]

    def clear(self) -> None:
        self._prefixes.clear()


@dataclass(slots=True)
class _Work:
    """One call's leaves, the tokens whose probability each question wants, and what has come of it.

    `answers` are the questions of each pass with the log probabilities (nats, float32) of the tokens wanted and the
    likeliest token of each question: on the device still, which has work while the next pass is prepared.
    """

    leaves: Sequence[_Leaf]
    follows: Sequence[Sequence[int]]
    given_up: Callable[[], bool]
    answers: list[tuple[list[int], Any, Any]] = field(default_factory=list)

    def beginning(self, first: int, stop: int) -> bytes:
        """What these leaves have in common, without tokens after which something is asked."""
        run = self.leaves[first:stop]
        lengths = [leaf.questions[0][0] - 1 for leaf in run]
        return run[0].key[: WIDTH * min(lengths + [leaf.shared for leaf in run[1:]])]

    def branches(self, first: int, stop: int) -> list[tuple[int, int]]:
        """The runs of leaves that begin to differ where two of all these first do."""
        fork = min(leaf.shared for leaf in self.leaves[first + 1 : stop])
        starts = [first, *(k for k in range(first + 1, stop) if self.leaves[k].shared == fork), stop]
        return list(pairwise(starts))


class Scorer:
    """Scores prompts with a causal language model of transformers, which is in eval mode and on its device.

    `most_tokens` is how many tokens one forward pass takes, None what suits the device. `share` False computes every
    prompt for itself. `keep_bytes` is how much of the device's memory may hold prefixes for later calls; None takes a
    part of what is free. Not to be called by two threads at once.

    `learned` says in words what the model and the device allow ("sharing", "memory"); empty where all is as wished.
    """

    def __init__(
        self, model: Any, *, most_tokens: int | None = None, share: bool = True, keep_bytes: int | None = None
    ) -> None:
        self.learned: dict[str, str] = {}
        self._torch, caches = import_optional("torch", "local"), import_optional("transformers.cache_utils", "local")
        self._model, self._new_cache = model, caches.DynamicCache
        kind = model.device.type if model.device.type in _TOKENS else "cpu"
        self._tokens = self._initial_tokens = most_tokens or _TOKENS[kind]
        self._worth = _WORTH[kind]
        free = int(self._torch.cuda.mem_get_info(model.device)[0]) if kind == "cuda" else None
        self._copied_bytes = _CPU_BYTES if free is None else int(free * _COPIED_SHARE)
        stored = _CPU_BYTES if free is None else int(free * _STORED_SHARE)
        self._store = PrefixStore(stored if keep_bytes is None else keep_bytes)
        self._config = model.config.get_text_config(decoder=True)
        self._positions = getattr(self._config, "max_position_embeddings", None) or math.inf
        self._vocabulary = model.get_input_embeddings().weight.shape[0]
        self._most_logits = max(1, _MAX_LOGITS // self._vocabulary)
        self._most_shared = self._longest_shared(caches) if share else 0
        self._size = 0

    def _longest_shared(self, caches: Any) -> float:
        """How long a text may be that begins with what was computed before; 0 where the model cannot go on from it."""
        kinds = {type(layer) for layer in self._new_cache(config=self._config).layers}
        by_token = {caches.DynamicLayer, caches.DynamicSlidingWindowLayer, getattr(caches, "DummyLayer", None)}
        if getattr(self._model, "_is_stateful", False) or not kinds <= by_token:
            self.learned["sharing"] = "off, as this model keeps a state in the place of keys and values for each token"
            return 0
        # Beyond these lengths all positions are encoded in another way, also those that were computed before.
        ropes = getattr(self._config, "rope_parameters", None) or {}
        changing = [
            rope.get("original_max_position_embeddings") or self._positions
            for rope in (ropes, *ropes.values())
            if isinstance(rope, dict) and rope.get("rope_type") in ("dynamic", "longrope")
        ]
        return min(changing, default=math.inf)

    def check(self, prompt: Sequence[int], labels: Labels) -> None:
        """Raises Refused for a prompt that the model cannot take: too long, or with tokens that it does not have."""
        if not prompt:
            raise Refused("the prompt has no tokens")
        if len(prompt) + labels.depth > self._positions:
            raise Refused(
                f"the prompt has {len(prompt):,} tokens, the model takes {self._positions:,}: "
                "shorten the text, or use a model that takes more"
            )
        most = max(max(prompt), max(max(way) for ways in labels.ways for way in ways))
        if most >= self._vocabulary or min(prompt) < 0:
            raise Refused(
                f"the tokenizer gives token {most:,}, the model has {self._vocabulary:,}: "
                "they do not belong together; get the tokenizer's files again"
            )

    def __call__(
        self, prompts: Sequence[Sequence[int]], labels: Sequence[Labels], given_up: Callable[[], bool] = lambda: False
    ) -> list[LabelProbabilities]:
        """One answer for each prompt, in order; `labels` has one entry for each prompt.

        Raises Refused where a single prompt does not fit into the memory (ask one by one to learn which), and for
        what `check` refuses; Cancelled once `given_up`, which is looked at before each pass, says that nobody waits.
        """
        numbers: dict[tuple[bytes, Path], int] = {}
        questions_by_prompt: list[list[int]] = []
        for prompt, scale in zip(prompts, labels, strict=True):
            self.check(prompt, scale)
            start = _as_key(prompt)
            places = (
                (start + _as_key(path), tokens) for path, tokens in zip(scale.inner, scale.following, strict=True)
            )
            questions_by_prompt.append([numbers.setdefault(place, len(numbers)) for place in places])
        texts = {number: text for (text, _), number in numbers.items()}
        logs: dict[int, list[float]] = {}
        likeliest: dict[int, int] = {}
        while remaining := {number: text for number, text in texts.items() if number not in logs}:
            short = {number: text for number, text in remaining.items() if len(text) <= WIDTH * self._most_shared}
            work = _Work(_leaves(short or remaining), [tokens for _, tokens in numbers], given_up)
            with self._torch.inference_mode():
                self._compute(work, shared=bool(short))
            for questions, every, likely in work.answers:
                values = iter(every.tolist())
                logs |= {number: [next(values) for _ in work.follows[number]] for number in questions}
                likeliest |= dict(zip(questions, likely.tolist(), strict=True))
        return [
            LabelProbabilities(scale.shares([logs[number] for number in here]), likeliest[here[0]])
            for scale, here in zip(labels, questions_by_prompt, strict=True)
        ]

    def forget(self) -> None:
        """Lets go of the prefixes kept for later calls."""
        self._store.clear()

    def _compute(self, work: _Work, *, shared: bool) -> None:
        """Answer all questions, or those for which there was room; from then on a pass is smaller.

        Raises Refused where it cannot be.
        """
        try:
            if shared:
                self._share(work, [(0, len(work.leaves))], self._store.longest(work.beginning(0, len(work.leaves))))
            else:
                self._score(work, range(len(work.leaves)), None)
            return
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
        # Here the error is gone, and with it what it held of the pass.
        self._store.clear()
        self._store.capacity //= 2
        if self._model.device.type == "cuda":
            self._torch.cuda.empty_cache()
        if self._size <= _LEAST_TOKENS:
            raise Refused(
                "out of memory with a single prompt: shorten the text, use a smaller model or a device with more "
                "memory, or end what else uses it"
            )
        self._tokens = max(_LEAST_TOKENS, min(self._size, self._tokens) // 2)
        self.learned["memory"] = f"{self._tokens:,} tokens at a time, as there is no room for {self._initial_tokens:,}"

    def _share(self, work: _Work, runs: list[tuple[int, int]], prefix: _Prefix) -> None:
        """Answer the questions of runs of leaves that begin with a prefix.

        A longer prefix of a run is computed by itself where that saves enough.
        """
        batch: list[int] = []
        while runs:
            first, stop = runs.pop()
            beginning, others = work.beginning(first, stop), stop - first - 1
            stored = max(prefix, self._store.longest(beginning), key=len)
            if others * (len(beginning) // WIDTH - len(prefix)) + len(stored) - len(prefix) < self._worth:
                if others:
                    runs += work.branches(first, stop)
                else:
                    batch.append(first)
            elif others:
                longer = self._extend(work, work.leaves[first], stored, len(beginning) // WIDTH)
                self._share(work, work.branches(first, stop), longer)
            else:
                self._score(work, [first], stored)
        self._score(work, sorted(batch), prefix)

    def _extend(self, work: _Work, leaf: _Leaf, prefix: _Prefix, stop: int) -> _Prefix:
        """The prefix with a leaf's tokens up to before `stop`, stored for later calls where much of it is new."""
        while len(prefix) < stop:
            start, end = len(prefix), min(stop, len(prefix) + self._tokens)
            cache = self._cache(prefix)
            self._forward(work, leaf.tokens(start, end)[None], cache, [end - start - 1])
            prefix = _Prefix(leaf.key[: WIDTH * end], cache)
        self._keep(prefix)
        return prefix

    def _score(self, work: _Work, places: Sequence[int], prefix: _Prefix | None) -> None:
        """Answer the questions of these leaves, which begin with a prefix, in batches of like length.

        Without a prefix, not even an empty one, nothing is stored, and no text is divided.
        """
        if not places:
            return
        start = len(prefix or ())
        lengths = [len(work.leaves[k]) - start for k in places]
        most = math.isqrt(self._most_logits // max(len(work.leaves[k].questions) for k in places))
        if prefix is None and self._most_shared:  # what is beside a text would decide how its positions are encoded
            most = 1
        for batch in batches(lengths, self._tokens):
            row_bytes = (start + lengths[batch[0]]) * prefix.token_bytes if prefix else 0
            rows = max(1, min(most, self._copied_bytes // max(1, row_bytes)))
            for at in range(0, len(batch), rows):
                self._answer(work, [work.leaves[places[k]] for k in batch[at : at + rows]], prefix)

    def _answer(self, work: _Work, leaves: Sequence[_Leaf], prefix: _Prefix | None) -> None:
        """Answer the questions of leaves in one pass over the prefix; a single leaf may take several."""
        cache, single = None, len(leaves) == 1
        if prefix is not None:
            if single:
                stop = min(len(leaves[0]) - self._tokens, leaves[0].questions[0][0] - 1)
                prefix = self._extend(work, leaves[0], prefix, stop)
            if single or len(prefix):
                cache = self._cache(prefix, len(leaves))
        start, longest = len(prefix or ()), max(map(len, leaves))
        # The last token is as good a filling as any, and is not taken for padding that lacks a mask.
        block = np.stack(
            [np.pad(leaf.tokens(start, len(leaf)), (0, longest - len(leaf)), mode="edge") for leaf in leaves]
        )
        columns = sorted({count - 1 - start for leaf in leaves for count, _ in leaf.questions})
        logits = self._forward(work, block, cache, columns)
        numbers: list[int] = []
        rows: list[tuple[int, int]] = []
        wanted: list[tuple[int, int]] = []
        for row, leaf in enumerate(leaves):
            for count, number in leaf.questions:
                wanted += [(len(numbers), token) for token in work.follows[number]]
                numbers.append(number)
                rows.append((row, columns.index(count - 1 - start)))
        row, column = self._torch.tensor(rows, device=logits.device).unbind(1)
        question, token = self._torch.tensor(wanted, device=logits.device).unbind(1)
        asked = logits[row, column].float()
        work.answers.append((numbers, asked[question, token] - asked.logsumexp(-1)[question], asked.argmax(-1)))
        if single and cache is not None:
            self._keep(_Prefix(leaves[0].key, cache))

    def _forward(self, work: _Work, block: npt.NDArray[np.int64], cache: Any, columns: Sequence[int]) -> Any:
        """The logits at some columns of a block of tokens, of shape (rows, columns, vocabulary)."""
        if work.given_up():
            raise Cancelled
        self._size = block.size if len(block) > 1 or cache is not None else 0
        tokens = self._torch.from_numpy(block).to(self._model.device)
        places = self._torch.tensor(columns, device=self._model.device)
        arguments = {"past_key_values": cache, "use_cache": True} if cache is not None else {"use_cache": False}
        return self._model(input_ids=tokens, logits_to_keep=places, **arguments).logits

    def _cache(self, prefix: _Prefix, rows: int = 1) -> Any:
        return prefix.view(len(prefix), rows) if len(prefix) else self._new_cache()

    def _keep(self, prefix: _Prefix) -> None:
        """Store a prefix of which a quarter is new at least."""
        held = len(self._store.longest(prefix.key))
        if len(prefix) >= held + max(_MIN_STORED, held // 3):
            self._store.add(prefix)


def out_of_memory(error: BaseException) -> bool:
    """Whether this says that there was no room left, on whatever device."""
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or any(phrase in str(error) for phrase in ("out of memory", "DefaultCPUAllocator", "ALLOC_FAILED"))
