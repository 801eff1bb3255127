"""The part of a text around a theme that fits into a generator's input.

Questions by a sequence-to-sequence model that was trained to ask for a given answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from judge import text
from judge.core import huggingface, records
from judge.core.errors import ConfigError
from judge.metrics.qags.pipeline import ModelError, Tell
from judge.metrics.qags.weights import LoadedModel, load, runtime

Span = tuple[int, int]
_WORD = 30  # no word is longer: further on there is no white space to be waited for


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage and where the theme is in it; where the theme is not in the text, `before` is the passage."""

    before: str
    marked: str
    after: str

    @property
    def context(self) -> str:
        return self.before + self.marked + self.after


def excerpt(whole: str, theme: str, fits: Callable[[Excerpt], bool]) -> Excerpt | None:
    """The text if it fits; else the theme's sentence and as many around it as fit; else a part of that sentence.

    None where not even the theme alone fits.
    """
    place = _place(whole, theme)

    def at(span: Span) -> Excerpt:
        return Excerpt(whole[span[0] : place[0]], whole[place[0] : place[1]], whole[place[1] : span[1]])

    def fitting(span: Span) -> bool:
        return fits(at(span))

    if fitting((0, len(whole))):
        return at((0, len(whole)))
    spans = _sentences(whole)
    first = _sentence_of(spans, place[0])
    last = max(first, _sentence_of(spans, max(place[0], place[1] - 1)))
    if fitting(_reach(spans, first, last, place)):
        return at(_widened(spans, first, last, place, fitting))
    narrow = _narrowed(whole, _reach(spans, first, last, place), place, fitting)
    return at(narrow) if narrow else None


def _place(whole: str, theme: str) -> Span:
    """Where the theme stands first, as words of their own if it does so anywhere; the text's end if nowhere."""
    found = (
        re.search(rf"(?<!\w){re.escape(theme)}(?!\w)", whole)
        or re.search(re.escape(theme), whole)
        or re.search(re.escape(theme), whole, re.IGNORECASE)
    )
    return found.span() if theme and found else (len(whole), len(whole))


def _sentences(whole: str) -> list[Span]:
    spans, start = [], 0
    for sentence in text.sentences(whole):
        start = whole.index(sentence, start)
        spans.append((start, start + len(sentence)))
        start += len(sentence)
    return spans or [(0, len(whole))]


def _sentence_of(spans: list[Span], place: int) -> int:
    return next((n for n, (_, stop) in enumerate(spans) if place < stop), len(spans) - 1)


def _reach(spans: list[Span], first: int, last: int, place: Span) -> Span:
    """From one sentence's start to another's end; the theme's place is always within."""
    return min(spans[first][0], place[0]), max(spans[last][1], place[1])


def _widened(spans: list[Span], first: int, last: int, place: Span, fitting: Callable[[Span], bool]) -> Span:
    """Neighbouring sentences added after and before in turn, each side until one does not fit."""
    sides = [1, -1]
    while sides:
        side = sides.pop(0)
        low, high = (first, last + 1) if side > 0 else (first - 1, last)
        if low >= 0 and high < len(spans) and fitting(_reach(spans, low, high, place)):
            first, last = low, high
            sides.append(side)
    return _reach(spans, first, last, place)


def _narrowed(whole: str, sentence: Span, place: Span, fitting: Callable[[Span], bool]) -> Span | None:
    """The most characters on both sides of the theme that fit, by halving; no word is cut in two."""

    def margin(size: int) -> Span:
        return max(sentence[0], place[0] - size), min(sentence[1], place[1] + size)

    if not fitting(place):
        return None
    low, high = 0, sentence[1] - sentence[0]
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fitting(margin(middle)) else (low, middle - 1)
    start, stop = margin(low)
    if start > sentence[0] and not whole[start - 1].isspace():
        cut = re.search(r"\s", whole[start : min(start + _WORD, place[0])])
        start += cut.end() if cut else 0
    if stop < sentence[1] and not whole[stop].isspace():
        cut = re.search(r"\s\S*\Z", whole[max(stop - _WORD, place[1]) : stop])
        stop -= len(cut.group()) if cut else 0
    return start, stop


TEMPLATE = "answer: {theme} context: {context}"
_FIELD = re.compile(r"\{(theme|context|before|after)\}")
_LABEL = re.compile(r"\s*question\s*[:：]", re.IGNORECASE)  # some models were trained to begin so
_LEAST = 8_192  # tokens of a batch with all beams: each step of writing costs as much for one text as for many
_KEPT = (
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
)  # fmt: skip


class Generator:
    """Questions from a model: one for each distinct input, many at once, by beam search."""

    def __init__(
        self,
        weights: huggingface.ModelFiles,
        *,
        template: str,
        beams: int,
        question_tokens: int,
        input_tokens: int,
        device: str | None = None,
        batch_tokens: int | None = None,
        progress: Tell | None = None,
    ) -> None:
        _check(template)
        self._weights, self._template, self._device = weights, template, device
        self._beams, self._question_tokens, self._input_tokens = beams, question_tokens, input_tokens
        self._batch_tokens, self._progress = batch_tokens, progress
        shape = "default" if template == TEMPLATE else hashlib.sha256(template.encode()).hexdigest()[:8]
        sizes = f"beams={beams}|in={input_tokens}|out={question_tokens}"
        self.signature = f"{weights.signed}|{sizes}|template={shape}|{runtime()}"

    @cached_property
    def _model(self) -> LoadedModel:
        model = load(self._weights, self._device)
        with huggingface.translated_errors(model.files, 0):
            model.network.generation_config = _settled(
                model.network.generation_config, self._beams, self._question_tokens
            )
        return model

    @cached_property
    def _limit(self) -> int:
        """How many tokens of input: what was asked for, or less where the model has no room for it."""
        known = huggingface.limit(self._model.tokenizer, self._model.network.config, usual=self._input_tokens)
        return min(self._input_tokens, known)

    @cached_property
    def _special(self) -> re.Pattern[str] | None:
        """Tokens such as the end of the text: a template may have them, in a theme or output they are letters."""
        added = self._model.tokenizer.added_tokens_decoder.values()
        names = sorted({token.content for token in added if token.special}, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names))) if names else None

    def questions(self, asked: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """For each (theme, output) a question; Trouble `NoQuestion` where the model wrote none or had no room."""
        prompts = {one: self._prompt(*one) for one in dict.fromkeys(asked)}
        wanted = list(dict.fromkeys(prompt for prompt in prompts.values() if prompt is not None))
        written = self._written(wanted)
        return [_question(written[prompt] if (prompt := prompts[one]) is not None else None) for one in asked]

    def _prompt(self, theme: str, output: str) -> str | None:
        """The model's input, cut around the theme's sentence; None where the theme alone is too long for it."""
        theme, output = self._letters(theme), self._letters(output)

        def fits(part: Excerpt) -> bool:
            return len(self._ids(self._filled(theme, part))) <= self._limit

        part = excerpt(output, theme, fits)
        return self._filled(theme, part) if part else None

    def _letters(self, text: str) -> str:
        text = records.whole(text).strip()
        return self._special.sub(lambda token: f"{token[0][0]} {token[0][1:]}", text) if self._special else text

    def _filled(self, theme: str, part: Excerpt) -> str:
        fields = {"theme": theme, "context": part.context, "before": part.before, "after": part.after}
        return _FIELD.sub(lambda field: fields[field[1]], self._template)

    def _ids(self, prompt: str) -> list[int]:
        return list(self._model.tokenizer.encode(prompt, verbose=False))

    def _written(self, prompts: Sequence[str]) -> dict[str, str]:
        if not prompts:
            return {}
        ids = [self._ids(prompt) for prompt in prompts]
        made: dict[str, str] = {}
        most = (self._batch_tokens or max(self._model.batch_tokens, _LEAST)) // self._beams
        # Lengths are mixed, as padding is read but once.
        for batch in huggingface.batches([len(row) for row in ids], most, mixed=True):
            texts = self._generated([ids[n] for n in batch])
            made |= zip((prompts[n] for n in batch), texts, strict=True)
            if self._progress:
                self._progress(len(made), len(prompts))
        return made

    def _generated(self, ids: Sequence[Sequence[int]]) -> list[str]:
        torch, model = import_module("torch"), self._model
        rows, mask = huggingface.padded(ids, model.pad)
        with huggingface.translated_errors(model.files, rows.size * self._beams), torch.inference_mode():
            found = model.network.generate(
                input_ids=torch.from_numpy(rows).to(model.device),
                attention_mask=torch.from_numpy(mask).to(model.device),
            )
            return list(model.tokenizer.batch_decode(found, skip_special_tokens=True))


def _check(template: object) -> None:
    fields = set(_FIELD.findall(template)) if isinstance(template, str) else set()
    if "theme" not in fields or not ("context" in fields or {"before", "after"} <= fields):
        raise ConfigError(
            "qags: template has to hold {theme} and {context}, or {before}, {theme} and {after}, "
            f"and does not: {template!r}"
        )


def _settled(own: Any, beams: int, question_tokens: int) -> Any:
    """Fresh settings with the model's own tokens: what it says is decided by these, no sampling, one question."""
    return import_module("transformers").GenerationConfig(
        **{name: getattr(own, name, None) for name in _KEPT},
        num_beams=beams,
        max_new_tokens=question_tokens,
        early_stopping=beams > 1,
        do_sample=False,
        num_return_sequences=1,
    )


def _question(written: str | None) -> str | ModelError:
    if written is None:
        return ModelError("NoQuestion", "the theme is too long for the generator's input")
    question = _LABEL.sub("", written, count=1) if _LABEL.match(written) else written
    return question.strip() or ModelError("NoQuestion", "the generator wrote nothing")
