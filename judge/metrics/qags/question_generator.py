"""Questions by a sequence-to-sequence model that was trained to ask for a given answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from judge.core import huggingface, normalization
from judge.core.errors import ConfigError
from judge.metrics.base import Tell, no_progress
from judge.metrics.qags.excerpts import Excerpt, excerpt
from judge.metrics.qags.models import HEADS
from judge.metrics.qags.pipeline import ModelError

TEMPLATE = "answer: {theme} context: {context}"
"""The usual input. A template has {theme}, and {context} or both {before} and {after}."""
# A field of a template: {theme}
_FIELD = re.compile(r"\{(theme|context|before|after)\}")
# "question: Who came?": some models were trained to begin with the label
_LABEL = re.compile(r"\A\s*question\s*[:：]", re.IGNORECASE)
# Tokens of a batch with all beams: a decoding step costs the same for one text and for many.
_MIN_BATCH_TOKENS = 8_192
# The special tokens in a model's own generation settings. All other settings are replaced.
_SPECIAL_TOKEN_SETTINGS = (
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
)  # fmt: skip


@dataclass(eq=False)
class Generator:
    """Questions by beam search: one for each distinct input, in batches.

    - `input_tokens`, `question_tokens`: the most tokens of an input and of a question.
    - `batch_tokens`: tokens of a batch with all beams, None for what suits the device.
    """

    weights: huggingface.ModelFiles
    template: str = TEMPLATE
    beams: int = 4
    question_tokens: int = 32
    input_tokens: int = 128
    device: str | None = None
    batch_tokens: int | None = None
    progress: Tell = no_progress

    def __post_init__(self) -> None:
        fields: set[str] = set()
        # An option of a user may have any type.
        if isinstance(self.template, str):
            fields.update(_FIELD.findall(self.template))
        has_context = "context" in fields or {"before", "after"} <= fields
        if "theme" not in fields or not has_context:
            raise ConfigError(
                "qags: template must contain {theme} and {context}, or {before}, {theme} and "
                f"{{after}}, not {self.template!r}"
            )
        template_id = "default"
        if self.template != TEMPLATE:
            digest = hashlib.sha256(self.template.encode()).hexdigest()
            template_id = digest[:8]
        sizes = f"beams={self.beams}|in={self.input_tokens}|out={self.question_tokens}"
        packages = huggingface.runtime("qags")
        signed = self.weights.signed
        self.signature = f"{signed}|{sizes}|template={template_id}|{packages}"

    @cached_property
    def _model(self) -> huggingface.LoadedModel:
        head = HEADS[self.weights.role]
        model = huggingface.load_on(self.weights, head, self.device)
        with huggingface.translated_errors(model.files, 0):
            # One question, without sampling.
            defaults = model.network.generation_config
            special_tokens = {
                name: getattr(defaults, name, None) for name in _SPECIAL_TOKEN_SETTINGS
            }
            transformers = import_module("transformers")
            model.network.generation_config = transformers.GenerationConfig(
                **special_tokens,
                num_beams=self.beams,
                max_new_tokens=self.question_tokens,
                early_stopping=self.beams > 1,
                do_sample=False,
                num_return_sequences=1,
            )
        return model

    @cached_property
    def _special_token(self) -> re.Pattern[str] | None:
        """Match a special token of the model, such as `</s>`; None for a model without any."""
        added = self._model.tokenizer.added_tokens_decoder.values()
        names = {token.content for token in added if token.special}
        if not names:
            return None
        # The longest first, so that no token matches only a part of another.
        longest_first = sorted(names, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)))

    def questions(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return a question for each (theme, output).

        ModelError `NoQuestion` if the model writes none, or if the theme is too long.
        """
        prompt_by_pair = {pair: self._prompt(*pair) for pair in dict.fromkeys(pairs)}
        usable = [prompt for prompt in prompt_by_pair.values() if prompt is not None]
        distinct_prompts = list(dict.fromkeys(usable))
        reply_by_prompt = self._generate(distinct_prompts)
        problem = "the theme is too long for the generator's input"
        too_long = ModelError("NoQuestion", problem)
        no_reply = ModelError("NoQuestion", "the generator wrote nothing")
        questions: dict[tuple[str, str], str | ModelError] = {}
        for pair, prompt in prompt_by_pair.items():
            if prompt is None:
                questions[pair] = too_long
            else:
                question = _LABEL.sub("", reply_by_prompt[prompt], count=1).strip()
                questions[pair] = question or no_reply
        return [questions[pair] for pair in pairs]

    def _prompt(self, theme: str, output: str) -> str | None:
        """Return the model's input, cut around the theme; None if the theme alone is too long."""
        theme = self._split_special_tokens(theme)
        output = self._split_special_tokens(output)
        model = self._model
        config = model.network.config
        usual = self.input_tokens
        limit = min(usual, huggingface.limit(model.tokenizer, config, usual=usual))

        def fits(part: Excerpt) -> bool:
            filled = self._filled(theme, part)
            return len(self._ids(filled)) <= limit

        fitting = excerpt(output, theme, fits)
        return self._filled(theme, fitting) if fitting else None

    def _split_special_tokens(self, text: str) -> str:
        """Return a text with its special tokens split: `</s>` becomes `< /s>`.

        A template may have special tokens, but a theme or an output must not control the model.
        """
        text = normalization.whole(text).strip()
        if not self._special_token:
            return text

        def split(match: re.Match[str]) -> str:
            token = match[0]
            return f"{token[0]} {token[1:]}"

        return self._special_token.sub(split, text)

    def _filled(self, theme: str, part: Excerpt) -> str:
        """Return the template with its fields filled in."""
        fields = {
            "theme": theme,
            "context": part.context,
            "before": part.before,
            "after": part.after,
        }
        return _FIELD.sub(lambda field: fields[field[1]], self.template)

    def _ids(self, prompt: str) -> list[int]:
        """Return the token ids of a prompt."""
        return list(self._model.tokenizer.encode(prompt, verbose=False))

    def _generate(self, prompts: Sequence[str]) -> dict[str, str]:
        """Return what the model writes for each of the distinct prompts."""
        if not prompts:
            return {}
        prompt_ids = [self._ids(prompt) for prompt in prompts]
        lengths = [len(ids) for ids in prompt_ids]
        default_tokens = max(self._model.batch_tokens, _MIN_BATCH_TOKENS)
        batch_tokens = self.batch_tokens or default_tokens
        batch_size = batch_tokens // self.beams
        replies: dict[str, str] = {}
        # Prompts of different lengths may share a batch: padding costs little, because the prompt
        # is encoded once, and only the decoder runs for every token.
        for indices in huggingface.batches(lengths, batch_size, mixed=True):
            batch_prompts = [prompts[index] for index in indices]
            batch_ids = [prompt_ids[index] for index in indices]
            replies |= zip(batch_prompts, self._generate_batch(batch_ids), strict=True)
            self.progress(len(replies), len(prompts))
        return replies

    def _generate_batch(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return what the model writes for each prompt, given as token ids."""
        torch = import_module("torch")
        model = self._model
        rows, mask = huggingface.padded(ids, model.pad)
        with (
            huggingface.translated_errors(model.files, rows.size * self.beams),
            torch.inference_mode(),
        ):
            input_ids = torch.from_numpy(rows).to(model.device)
            attention_mask = torch.from_numpy(mask).to(model.device)
            token_ids = model.network.generate(
                input_ids=input_ids, attention_mask=attention_mask
            )
            replies = model.tokenizer.batch_decode(token_ids, skip_special_tokens=True)
            return list(replies)
