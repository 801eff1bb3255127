"""The labels of a scale as token sequences, and their probabilities."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judge.core.errors import ConfigError

Path = tuple[int, ...]

_MAX_SPELLINGS, _MAX_REMEMBERED = 4096, 64


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a scale, as `names` in its order, and for each the token sequences that write it (`ways`).

    Together the sequences are a trie. `inner` are the places in it where a reply may go on, the shorter before the
    longer and the reply's beginning, (), the first; `following` has the tokens that may follow at each. Their
    probabilities are all that `shares` needs. `depth` is the number of tokens of the longest place.
    """

    names: tuple[str, ...]
    ways: tuple[tuple[Path, ...], ...]
    inner: tuple[Path, ...] = field(init=False, repr=False, compare=False)
    following: tuple[Path, ...] = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)
    _ends: Mapping[Path, tuple[int, Path | None]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ValueError where a sequence is empty or writes two labels."""
        writes = {way: place for place, ways in enumerate(self.ways) for way in ways}
        if len(writes) < sum(map(len, self.ways)) or () in writes:
            raise ValueError("a sequence of tokens has to write one label")
        goes_on: dict[Path, set[int]] = defaultdict(set)
        for way in writes:
            for n, token in enumerate(way):
                goes_on[way[:n]].add(token)
        inner = sorted(goes_on, key=lambda path: (len(path), path))
        ends = {
            way: (place, next((way[:n] for n in range(len(way) - 1, 0, -1) if way[:n] in writes), None))
            for way, place in writes.items()
        }
        values = tuple(inner), tuple(tuple(sorted(goes_on[path])) for path in inner), max(map(len, inner), default=0)
        for name, value in zip(("inner", "following", "depth", "_ends"), (*values, ends), strict=True):
            object.__setattr__(self, name, value)

    def shares(self, logs_by_place: Sequence[Sequence[float]]) -> tuple[tuple[str, float], ...]:
        """The probability of each label: that of all its sequences, less what goes on to be a longer label.

        `logs_by_place` holds for each place of `inner` the log probabilities (nats) of the tokens in `following`, given
        that place. The shares are in [0, 1] and sum to at most 1.
        """
        logs: dict[Path, float] = {(): 0.0}
        for path, tokens, each in zip(self.inner, self.following, logs_by_place, strict=True):
            logs |= {(*path, token): logs[path] + log for token, log in zip(tokens, each, strict=True)}
        masses = {way: math.exp(logs[way]) for way in self._ends}
        for way, (_, before) in self._ends.items():
            if before is not None:
                masses[before] -= math.exp(logs[way])
        sums = [math.fsum(max(0.0, masses[way]) for way in ways) for ways in self.ways]
        whole = max(1.0, math.fsum(sums))  # above 1 by rounding only
        return tuple((name, share / whole) for name, share in zip(self.names, sums, strict=True))


class LabelTokenizer:
    """Labels as a tokenizer of transformers writes them; those asked for are remembered.

    A label is written by each token whose text is the label but for white space around it, and as the tokenizer
    itself encodes it, with and without a space before it. Where one label begins another (1 and 10), what may
    follow the first to make the second is found in the same way.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._model = getattr(tokenizer, "name_or_path", "") or "the model"
        self._tokenizer = tokenizer
        self._special = frozenset(tokenizer.all_special_ids)
        self._known: dict[tuple[str, ...], Labels] = {}

    def __call__(self, labels: Sequence[str]) -> Labels:
        """Raises ConfigError, which names the label and the model, for one that no sequence of tokens writes."""
        names = tuple(labels)
        if names not in self._known:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            plain = [name.strip() for name in names]
            ways: dict[str, tuple[Path, ...]] = {}
            for text in sorted(set(plain), key=len):
                spellings = self._spell((), text, text)
                for shorter in [label for label in ways if text.startswith(label)]:
                    for way in ways[shorter]:
                        spellings |= self._spell(way, text[len(shorter) :], text)
                        if len(spellings) > _MAX_SPELLINGS:
                            raise ConfigError(f"{self._model}: too many labels begin like {text!r}; use other ones")
                if not spellings or not text:
                    raise ConfigError(
                        f"{self._model}: its tokenizer cannot write the label {text!r}: use labels that it can, "
                        "such as numbers, or another model"
                    )
                ways[text] = tuple(sorted(spellings))
            if len(ways) < len(names):
                raise ConfigError(f"{self._model}: two labels of {', '.join(map(repr, names))} are written alike")
            self._known[names] = Labels(names, tuple(ways[text] for text in plain))
        return self._known[names]

    @cached_property
    def _single_tokens(self) -> Mapping[str, list[int]]:
        """The tokens by the text they write alone, white space around it left out."""
        tokens: dict[str, list[int]] = defaultdict(list)
        ids = sorted(set(self._tokenizer.get_vocab().values()) - self._special)
        for token, text in zip(ids, self._tokenizer.batch_decode([[id] for id in ids], **_AS_IS), strict=True):
            tokens[text.strip()].append(token)
        return tokens

    def _spell(self, start: Path, rest: str, whole: str) -> set[Path]:
        """The sequences that begin with `start`, go on with what writes `rest`, and are then the text `whole`."""
        encode = self._tokenizer.encode
        tried: set[Path] = {(token,) for token in self._single_tokens.get(rest.strip(), ())}
        tried |= {tuple(encode(text, add_special_tokens=False)) for text in (rest, " " + rest)}
        paths = [start + path for path in tried if path and self._special.isdisjoint(path)]
        return {path for path in paths if self._tokenizer.decode(list(path), **_AS_IS).strip() == whole}


_AS_IS = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
