"""Whether a model gives the same when it computes texts together as when it reads each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from judge.providers.transformers.batching import Plain, Way
from judge.providers.transformers.forward import Follows, Masks, Passes, read
from judge.providers.transformers.prefix_tree import as_key

_SEEN = 64
_ALIKE = {"float32": 1e-3, "float64": 1e-3}
_ALIKE_HALF = 0.05
"""The greatest `difference` that is taken for rounding, the second that of numbers of 16 bits (0.01 where all is right,
0.15 where a mask is not heeded)."""
_BROKEN = (RuntimeError, TypeError, ValueError, AttributeError, LookupError, AssertionError, MemoryError)
"""What models raise that were not made for what they are given."""


def limits(config: Any) -> list[int]:
    """Lengths beyond which a model may read a text in another way: its windows, its positions before stretching."""
    found = {getattr(config, "attention_chunk_size", None), getattr(config, "original_max_position_embeddings", None)}
    found.add(_window(config))
    ropes = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    for rope in [ropes, *ropes.values()]:
        if isinstance(rope, dict):
            found.add(rope.get("original_max_position_embeddings"))
            if rope.get("rope_type") == "dynamic":
                found.add(getattr(config, "max_position_embeddings", None))
    return sorted(int(one) for one in found if one)


def forms(passes: Passes, config: Any) -> list[Masks]:
    """The forms of masks that models take, the likeliest for this one first."""
    near, kinds = _window(config), tuple(sorted(set(getattr(config, "layer_types", None) or ())))
    wanted = [(near, kinds), (near, ()), (None, ())] if near else [(None, ()), (None, kinds)]
    return [passes.masks(seen, names) for seen, names in dict.fromkeys(wanted)]


def out_of_memory(error: BaseException) -> bool:
    """Whether this says that there was no room left, on whatever device."""
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or any(one in str(error) for one in ("out of memory", "DefaultCPUAllocator", "ALLOC_FAILED"))


def differs(way: Way, passes: Passes, length: int, most: float, tokens: int, *, least: int) -> bool:
    """Whether a way gives other answers than each text by itself, for texts of about this length, or none at all.

    No text has more than `most` tokens, and no pass more than `tokens` where that can be; where there is no room for
    it, half as many, down to `least`. Raises MemoryError where there is none for that either.
    """
    alike = _ALIKE.get(str(passes.dtype).removeprefix("torch."), _ALIKE_HALF)
    while True:
        try:
            return not difference(way, passes, _texts(passes.vocabulary, length, most), tokens) <= alike
        except _BROKEN as error:
            if not out_of_memory(error):
                return True
        tokens //= 2
        if tokens < least:
            raise MemoryError


def difference(way: Way, passes: Passes, texts: Sequence[Sequence[int]], tokens: int) -> float:
    """How much the log probabilities that a way gives differ from those of each text by itself.

    It is the root mean square as a share of their standard deviation over the vocabulary, for the worst text.
    """
    keys = dict(enumerate(map(as_key, texts)))
    follows = [np.unique(np.linspace(0, passes.vocabulary - 1, _SEEN).astype(int)).tolist()] * len(keys)
    given = _logs(way, [keys], follows, tokens)
    alone = _logs(Plain(passes, alone=True), [{n: key} for n, key in keys.items()], follows, tokens)
    apart = np.sqrt(np.square(given - alone).mean(-1)) / np.maximum(alone.std(-1), 1e-6)
    return float(apart.max())


def _window(config: Any) -> int | None:
    """How many tokens the layers with a sliding window see, None where there are none such."""
    used = getattr(config, "use_sliding_window", True)
    found = getattr(config, "sliding_window", None)
    return int(found) if used and found else None


def _logs(way: Way, parts: Sequence[Mapping[int, bytes]], follows: Follows, tokens: int) -> npt.NDArray[np.float64]:
    found = read([answer for part in parts for answer in way.answers(part, follows, tokens, {})], follows)
    return np.array([found[n][0] for n in range(len(follows))])


def _texts(vocabulary: int, length: int, most: float) -> list[list[int]]:
    """Made-up texts that part just before a length, and well beyond it, one of which is the beginning of others."""
    spare = int(min(length // 2 + 8, most - length - 12))
    drawn = np.random.default_rng(0).integers(0, vocabulary, (10, length + 20)).tolist()
    trunk = drawn[0][: length - 8]
    first, long = trunk + drawn[1][:7], trunk + drawn[2][: max(0, spare) + 8]
    ends = [first + drawn[3][:1], first + drawn[4][:9], trunk + drawn[5][:5], first]
    return ends + [long + drawn[n][:size] for n, size in ((6, 3), (7, 12), (8, 6)) if spare > 0]
