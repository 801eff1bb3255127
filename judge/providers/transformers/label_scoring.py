"""The exact probability of every label of a scale after each of many prompts.

Prompts that begin alike share the computing of what they have in common: a tree of them goes through the model in one
row, in which a token sees those before it in its own prompt only, on top of the keys and values of the trunk. Models
for which this does not give what a prompt gives by itself are found out, and fed with one prompt after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from judge.core.errors import Refused
from judge.core.huggingface import optional
from judge.providers.transformers.batching import Plain, Shared, Texts, Way
from judge.providers.transformers.forward import Answer, Follows, Kept, Passes, read
from judge.providers.transformers.label_tokens import Labels, Path
from judge.providers.transformers.parity_check import differs, forms, limits, out_of_memory
from judge.providers.transformers.prefix_tree import WIDTH, as_key

_TOKENS = {"cuda": 4096, "cpu": 2048}
"""Tokens of a pass: enough for the device to be busy, few enough for the mask, which grows with their square."""
_LEAST_TOKENS = 32
_SHORT = 24
_KEPT, _KEPT_SHARE = 2**30, 8
"""Bytes kept for later calls, and on a GPU the part of the free memory."""
_OFF = "as this model does not compute texts together as it does each by itself"
_UNTRIED = "as there is no room to see whether this model computes texts together as it does each by itself"


@dataclass(frozen=True, slots=True)
class Scored:
    """What a model says after one prompt.

    `shares` are the probabilities by label, in the order of the scale (each 0–1, together at most 1: what they lack
    is on no label). `reused` counts the prompt's tokens that were not computed for it; `likeliest` is the id of the
    likeliest next token.
    """

    shares: tuple[tuple[str, float], ...]
    reused: int
    likeliest: int


class GivenUp(Exception):
    """Nobody waits for the answers any more."""


_Found = dict[int, tuple[list[float], int]]
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
        self._torch, self._passes = optional("torch", "local"), Passes(model)
        self._tokens = self._wanted = most_tokens or _TOKENS.get(self._passes.device.type, _TOKENS["cpu"])
        config = model.config.get_text_config()
        self._positions = getattr(config, "max_position_embeddings", None) or math.inf
        self._kept = Kept(self._room() if keep_bytes is None else keep_bytes)
        self._masks = forms(self._passes, config)
        self._plain, self._shared = Plain(self._passes), Shared(self._passes, self._masks[0], self._kept)
        self._most_shared = math.inf if share else 0
        """The length up to which texts share, and beyond which it still has to be seen whether they may."""
        self._untried = limits(config)
        with self._torch.inference_mode():
            short = int(min(_SHORT, self._positions // 2))
            most = min([one for one in self._untried if one > 2 * short], default=self._positions)
            try:
                self._plain.alone = differs(self._plain, self._passes, short, most, 16 * short, least=4 * short)
            except MemoryError:
                self._plain.alone = True
            if share and (why := self._why_not(short, most, 2 * short // 3)):
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
    ) -> list[Scored]:
        """One Scored for each prompt, in order; `labels` has one entry for each prompt.

        Raises Refused where a single prompt does not fit into the memory (ask one by one to learn which), and for
        what `check` refuses; GivenUp once `given_up`, which is looked at after each pass, says that nobody waits.
        """
        numbers: dict[tuple[bytes, Path], int] = {}
        asked: list[list[int]] = []
        for prompt, scale in zip(prompts, labels, strict=True):
            self.check(prompt, scale)
            start = as_key(prompt)
            questions = zip(scale.inner, scale.following, strict=True)
            asked.append([numbers.setdefault((start + as_key(on), next_), len(numbers)) for on, next_ in questions])
        texts = {number: text for (text, _), number in numbers.items()}
        with self._torch.inference_mode():
            found, fresh = self._found(texts, [following for _, following in numbers], given_up)
        made = []
        for prompt, scale, each in zip(prompts, labels, asked, strict=True):
            computed = fresh.pop(each[0], 0)  # for the first prompt of several that are equal
            shares = scale.shares([found[number][0] for number in each])
            made.append(Scored(shares, len(prompt) - computed, found[each[0]][1]))
        return made

    def forget(self) -> None:
        """Lets go of the texts kept for later calls."""
        self._kept.clear()

    def _why_not(self, length: int, most: float, tokens: int) -> str:
        """Why texts of about this length may not share; empty where a form of mask gives what they give alone."""
        least = min(tokens, _LEAST_TOKENS)
        for n, masks in enumerate(self._masks):
            try:
                off = differs(Shared(self._passes, masks, Kept(0)), self._passes, length, most, tokens, least=least)
            except MemoryError:
                return _UNTRIED
            if not off:
                self._shared.masks, self._masks = masks, self._masks[n:]
                return ""
        return _OFF

    def _found(self, texts: Texts, follows: Follows, given_up: Callable[[], bool]) -> tuple[_Found, dict[int, int]]:
        """The answers to questions on texts, and how many tokens were computed for each."""
        lengths = {number: len(text) // WIDTH for number, text in texts.items()}
        while self._untried and self._untried[0] < min(self._most_shared, max(lengths.values(), default=0)):
            limit = self._untried.pop(0)
            if why := self._why_not(limit, self._positions, self._tokens):
                self._most_shared, self.learned["sharing"] = limit, f"off for more than {limit:,} tokens, {why}"
        found: _Found = {}
        fresh: dict[int, int] = {}
        long = {number for number, length in lengths.items() if length > self._most_shared}
        beyond = Plain(self._passes, alone=True) if self._most_shared else self._plain
        for way, wanted in ((self._shared, lengths.keys() - long), (beyond, long)):
            while left := {number: texts[number] for number in sorted(wanted - found.keys())}:
                found |= self._answered(way, left, follows, fresh, given_up)
        return found, fresh

    def _answered(
        self, way: Way, texts: Texts, follows: Follows, fresh: dict[int, int], given_up: Callable[[], bool]
    ) -> _Found:
        """The answers to all questions, or to those for which there was room; from then on a pass is smaller.

        Raises Refused where it cannot be.
        """
        answers: list[Answer] = []
        full = False
        try:
            for answer in way.answers(texts, follows, self._tokens, fresh):
                answers.append(answer)
                if given_up():
                    raise GivenUp
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            full = True
        if full:  # here the error is gone, and with it what it held of the pass
            self._shrink(way.size)
        return read(answers, follows)

    def _shrink(self, size: int) -> None:
        """Halves the passes after one of this size. Raises Refused where it could not be divided."""
        self._kept.clear()
        self._kept.most //= 2
        if self._passes.device.type == "cuda":
            self._torch.cuda.empty_cache()
        if size <= _LEAST_TOKENS:
            raise Refused(
                "out of memory with a single prompt: shorten the text, use a smaller model or a device with more "
                "memory, or end what else uses it"
            )
        self._tokens = max(_LEAST_TOKENS, min(size, self._tokens) // 2)
        self.learned["memory"] = f"{self._tokens:,} tokens at a time, as there is no room for {self._wanted:,}"

    def _room(self) -> int:
        if self._passes.device.type != "cuda":
            return _KEPT
        return int(self._torch.cuda.mem_get_info(self._passes.device)[0]) // _KEPT_SHARE
