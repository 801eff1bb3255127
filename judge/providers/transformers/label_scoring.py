"""The exact probability of every label of a scale after each of many prompts.

A label's probability is that of all token sequences that write it. Prompts with a common prefix share its computation:
a tree of them goes through the model in one row, in which a token sees only the earlier tokens of its own prompt, on
top of the keys and values of the trunk. If a model gives other results this way than for single prompts, this is
detected, and it gets one prompt at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judge.core.errors import ConfigError, Refused
from judge.core.huggingface import import_optional
from judge.providers.transformers.batching import (
    BatchingStrategy,
    Padded,
    Texts,
    TreePacked,
    differs,
    forms,
    limits,
    out_of_memory,
)
from judge.providers.transformers.forward import WIDTH, Answer, Follows, ForwardPass, PrefixCache, as_key, read

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
            self._known[names] = self._labels(names)
        return self._known[names]

    @cached_property
    def _single_tokens(self) -> Mapping[str, list[int]]:
        """The tokens by the text they write alone, white space around it left out."""
        tokens: dict[str, list[int]] = defaultdict(list)
        ids = sorted(set(self._tokenizer.get_vocab().values()) - self._special)
        for token, text in zip(
            ids, self._tokenizer.batch_decode([[token_id] for token_id in ids], **_AS_IS), strict=True
        ):
            tokens[text.strip()].append(token)
        return tokens

    def _labels(self, names: tuple[str, ...]) -> Labels:
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
        return Labels(names, tuple(ways[text] for text in plain))

    def _spell(self, start: Path, rest: str, whole: str) -> set[Path]:
        """The sequences that begin with `start`, go on with what writes `rest`, and are then the text `whole`."""
        encode = self._tokenizer.encode
        tried: set[Path] = {(token,) for token in self._single_tokens.get(rest.strip(), ())}
        tried |= {tuple(encode(text, add_special_tokens=False)) for text in (rest, " " + rest)}
        return {
            start + path
            for path in tried
            if path
            and self._special.isdisjoint(path)
            and self._tokenizer.decode(list(start + path), **_AS_IS).strip() == whole
        }


_AS_IS = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}


_TOKENS = {"cuda": 4096, "cpu": 2048}
"""Tokens of a pass: enough for the device to be busy, few enough for the mask, which grows with their square."""
_LEAST_TOKENS = 32
_SHORT = 24
_KEPT_BYTES, _KEPT_SHARE = 2**30, 8
"""Bytes kept for later calls, and on a GPU the part of the free memory."""
_NOT_ALIKE = "as this model does not compute texts together as it does each by itself"
_UNTRIED = "as there is no room to see whether this model computes texts together as it does each by itself"


@dataclass(frozen=True, slots=True)
class LabelProbabilities:
    """What a model says after one prompt.

    `shares` are the probabilities by label, in the order of the scale (each 0–1, together at most 1: what they lack
    is on no label). `reused` counts the prompt's tokens that were not computed for it; `likeliest` is the id of the
    likeliest next token.
    """

    shares: tuple[tuple[str, float], ...]
    reused: int
    likeliest: int


class Cancelled(Exception):
    """Nobody waits for the answers any more."""


_Results = dict[int, tuple[list[float], int]]
"""By question: the log probabilities of what may follow, and the likeliest token."""


class Scorer:
    """Scores prompts with a causal language model of transformers, which is in eval mode and on its device.

    `most_tokens` is how many tokens one forward pass takes, None what suits the device. `share` False computes every
    prompt for itself. `keep_bytes` is how much of the device's memory may hold on to texts that were read, for later
    calls; None takes a part of what is free. Not to be called by two threads at once.

    `learned` says in words what turned out about the model and the device ("sharing", "memory"); empty where all is
    as wished. Making one runs the model on a few short texts, to see whether texts may share a pass; texts longer than
    the model's window are tried before the first such prompt.
    """

    def __init__(
        self, model: Any, *, most_tokens: int | None = None, share: bool = True, keep_bytes: int | None = None
    ) -> None:
        self.learned: dict[str, str] = {}
        self._torch, self._passes = import_optional("torch", "local"), ForwardPass(model)
        self._tokens = self._initial_tokens = most_tokens or _TOKENS.get(self._passes.device.type, _TOKENS["cpu"])
        config = model.config.get_text_config()
        self._positions = getattr(config, "max_position_embeddings", None) or math.inf
        self._prefixes = PrefixCache(self._free_bytes() if keep_bytes is None else keep_bytes)
        self._masks = forms(self._passes, config)
        self._plain, self._shared = Padded(self._passes), TreePacked(self._passes, self._masks[0], self._prefixes)
        self._most_shared = math.inf if share else 0
        """The length up to which texts share, and beyond which it still has to be seen whether they may."""
        self._untried = limits(config)
        with self._torch.inference_mode():
            short = int(min(_SHORT, self._positions // 2))
            most = min([limit for limit in self._untried if limit > 2 * short], default=self._positions)
            try:
                self._plain.alone = differs(self._plain, self._passes, short, most, 16 * short, least=4 * short)
            except MemoryError:
                self._plain.alone = True
            if share and (why := self._reason_not_shared(short, most, 2 * short // 3)):
                self._most_shared, self.learned["sharing"] = 0, f"off, {why}"

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
        if most >= self._passes.vocabulary or min(prompt) < 0:
            raise Refused(
                f"the tokenizer gives token {most:,}, the model has {self._passes.vocabulary:,}: "
                "they do not belong together; get the tokenizer's files again"
            )

    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        labels: Sequence[Labels],
        given_up: Callable[[], bool] = lambda: False,
    ) -> list[LabelProbabilities]:
        """One Scored for each prompt, in order; `labels` has one entry for each prompt.

        Raises Refused where a single prompt does not fit into the memory (ask one by one to learn which), and for
        what `check` refuses; GivenUp once `given_up`, which is looked at after each pass, says that nobody waits.
        """
        numbers: dict[tuple[bytes, Path], int] = {}
        questions_by_prompt: list[list[int]] = []
        for prompt, scale in zip(prompts, labels, strict=True):
            self.check(prompt, scale)
            start = as_key(prompt)
            questions = zip(scale.inner, scale.following, strict=True)
            questions_by_prompt.append(
                [numbers.setdefault((start + as_key(on), next_), len(numbers)) for on, next_ in questions]
            )
        texts = {number: text for (text, _), number in numbers.items()}
        with self._torch.inference_mode():
            results, fresh = self._compute(texts, [following for _, following in numbers], given_up)
        scored = []
        for prompt, scale, each in zip(prompts, labels, questions_by_prompt, strict=True):
            computed = fresh.pop(each[0], 0)  # for the first prompt of several that are equal
            shares = scale.shares([results[number][0] for number in each])
            scored.append(LabelProbabilities(shares, len(prompt) - computed, results[each[0]][1]))
        return scored

    def forget(self) -> None:
        """Lets go of the texts kept for later calls."""
        self._prefixes.clear()

    def _reason_not_shared(self, length: int, most: float, tokens: int) -> str:
        """Why texts of about this length may not share; empty where a form of mask gives what they give alone."""
        least = min(tokens, _LEAST_TOKENS)
        for n, masks in enumerate(self._masks):
            try:
                off = differs(
                    TreePacked(self._passes, masks, PrefixCache(0)), self._passes, length, most, tokens, least=least
                )
            except MemoryError:
                return _UNTRIED
            if not off:
                self._shared.masks, self._masks = masks, self._masks[n:]
                return ""
        return _NOT_ALIKE

    def _compute(self, texts: Texts, follows: Follows, given_up: Callable[[], bool]) -> tuple[_Results, dict[int, int]]:
        """The answers to questions on texts, and how many tokens were computed for each."""
        lengths = {number: len(text) // WIDTH for number, text in texts.items()}
        while self._untried and self._untried[0] < min(self._most_shared, max(lengths.values(), default=0)):
            limit = self._untried.pop(0)
            if why := self._reason_not_shared(limit, self._positions, self._tokens):
                self._most_shared, self.learned["sharing"] = limit, f"off for more than {limit:,} tokens, {why}"
        results: _Results = {}
        fresh: dict[int, int] = {}
        long = {number for number, length in lengths.items() if length > self._most_shared}
        beyond = Padded(self._passes, alone=True) if self._most_shared else self._plain
        for way, numbers in ((self._shared, lengths.keys() - long), (beyond, long)):
            while remaining := {number: texts[number] for number in sorted(numbers - results.keys())}:
                results |= self._run(way, remaining, follows, fresh, given_up)
        return results, fresh

    def _run(
        self, way: BatchingStrategy, texts: Texts, follows: Follows, fresh: dict[int, int], given_up: Callable[[], bool]
    ) -> _Results:
        """The answers to all questions, or to those for which there was room; from then on a pass is smaller.

        Raises Refused where it cannot be.
        """
        answers: list[Answer] = []
        full = False
        try:
            for answer in way.answers(texts, follows, self._tokens, fresh):
                answers.append(answer)
                if given_up():
                    raise Cancelled
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            full = True
        if full:  # here the error is gone, and with it what it held of the pass
            self._shrink(way.size)
        return read(answers, follows)

    def _shrink(self, size: int) -> None:
        """Halves the passes after one of this size. Raises Refused where it could not be divided."""
        self._prefixes.clear()
        self._prefixes.most //= 2
        if self._passes.device.type == "cuda":
            self._torch.cuda.empty_cache()
        if size <= _LEAST_TOKENS:
            raise Refused(
                "out of memory with a single prompt: shorten the text, use a smaller model or a device with more "
                "memory, or end what else uses it"
            )
        self._tokens = max(_LEAST_TOKENS, min(size, self._tokens) // 2)
        self.learned["memory"] = f"{self._tokens:,} tokens at a time, as there is no room for {self._initial_tokens:,}"

    def _free_bytes(self) -> int:
        if self._passes.device.type != "cuda":
            return _KEPT_BYTES
        return int(self._torch.cuda.mem_get_info(self._passes.device)[0]) // _KEPT_SHARE
