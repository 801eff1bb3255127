"""Questions by a sequence-to-sequence model that was trained to ask for a given answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from judge import records
from judge.errors import ConfigError
from judge.metrics.bertscore.extras import quiet
from judge.metrics.bertscore.torch_encoder import padded
from judge.metrics.qags.excerpts import Excerpt, excerpt
from judge.metrics.qags.stages import Tell, Trouble
from judge.metrics.qags.weights import Loaded, Weights, load, runtime

TEMPLATE = "answer: {theme} context: {context}"
_FIELD = re.compile(r"\{(theme|context|before|after)\}")
_LABEL = re.compile(r"\s*question\s*[:：]", re.IGNORECASE)  # some models were trained to begin so
_NO_LIMIT = 10**6  # transformers writes 10**30 where a tokenizer knows no limit


class Generator:
    """Questions from a model: one for each distinct input, many at once, by beam search."""

    def __init__(
        self,
        weights: Weights,
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
    def _model(self) -> Loaded:
        model = load(self._weights, self._device)
        with quiet():
            _settle(model.network.generation_config, self._beams, self._question_tokens)
        return model

    @cached_property
    def _limit(self) -> int:
        """How many tokens of input: what was asked for, or less where the model has no room for it."""
        positions = getattr(self._model.config, "max_position_embeddings", None)
        known = [n for n in (self._model.tokenizer.model_max_length, positions) if isinstance(n, int)]
        return min([self._input_tokens, *(n for n in known if 0 < n < _NO_LIMIT)])

    def questions(self, asked: Sequence[tuple[str, str]]) -> list[str | Trouble]:
        """For each (theme, output) a question; Trouble `NoQuestion` where the model wrote none or had no room."""
        prompts = {one: self._prompt(*one) for one in dict.fromkeys(asked)}
        wanted = list(dict.fromkeys(prompt for prompt in prompts.values() if prompt is not None))
        written = self._written(wanted)
        return [_question(written[prompt] if (prompt := prompts[one]) is not None else None) for one in asked]

    def _prompt(self, theme: str, output: str) -> str | None:
        """The model's input, cut around the theme's sentence; None where the theme alone is too long for it."""
        theme, output = records.whole(theme).strip(), records.whole(output).strip()

        def fits(part: Excerpt) -> bool:
            return len(self._ids(self._filled(theme, part))) <= self._limit

        part = excerpt(output, theme, fits)
        return self._filled(theme, part) if part else None

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
        most = self._batch_tokens or self._model.batch_tokens
        for batch in batches([len(row) for row in ids], most):
            texts = self._generated([ids[n] for n in batch])
            made |= zip((prompts[n] for n in batch), texts, strict=True)
            if self._progress:
                self._progress(len(made), len(prompts))
        return made

    def _generated(self, ids: Sequence[Sequence[int]]) -> list[str]:
        torch, model = import_module("torch"), self._model
        rows, mask = (torch.from_numpy(array).to(model.device) for array in padded(ids, model.pad))
        with torch.inference_mode():
            found = model.network.generate(input_ids=rows, attention_mask=mask)
        return list(model.tokenizer.batch_decode(found, skip_special_tokens=True))


def _check(template: object) -> None:
    fields = set(_FIELD.findall(template)) if isinstance(template, str) else set()
    if "theme" not in fields or not ("context" in fields or {"before", "after"} <= fields):
        raise ConfigError(
            "qags: template has to hold {theme} and {context}, or {before}, {theme} and {after}, "
            f"and does not: {template!r}"
        )


def _settle(config: Any, beams: int, question_tokens: int) -> None:
    """The settings in place of the model's own, so that what it says is decided by them: no sampling, one question."""
    config.update(
        num_beams=beams,
        max_new_tokens=question_tokens,
        max_length=None,
        early_stopping=beams > 1,
        do_sample=False,
        num_return_sequences=1,
        temperature=None,
        top_p=None,
        top_k=None,
    )


def _question(written: str | None) -> str | Trouble:
    if written is None:
        return Trouble("NoQuestion", "the theme is too long for the generator's input")
    question = _LABEL.sub("", written, count=1) if _LABEL.match(written) else written
    return question.strip() or Trouble("NoQuestion", "the generator wrote nothing")


def batches(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Places of `lengths`, longest first, in batches of at most `tokens` tokens with padding, and of one text at least.

    Unlike BERTScore's these mix lengths freely: each step of writing costs as much for one text as for many, and
    padding is read but once.
    """
    made: list[list[int]] = []
    room = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if room == 0:
            made.append([])
            room = max(1, tokens // max(1, lengths[place]))
        made[-1].append(place)
        room -= 1
    return made
