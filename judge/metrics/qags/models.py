"""The back end `models` of QAGS, with two models of transformers.

- `locate`: find and check a model
- `excerpt`: the part of a text around a theme that fits into the generator's input
- `Generator`: questions by a sequence-to-sequence model trained to ask for a given answer
- `ExtractiveReader`: answers by a model that selects a span of the text (as for SQuAD)
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge import text
from judge.core import huggingface, normalization
from judge.core.errors import ConfigError
from judge.metrics.base import Tell, no_progress
from judge.metrics.qags.pipeline import UNANSWERABLE, ModelError

GENERATOR = "generator"
READER = "reader"
_HEADS = {GENERATOR: "AutoModelForSeq2SeqLM", READER: "AutoModelForQuestionAnswering"}


def locate(role: str, model: str, cache: Path | None = None) -> huggingface.ModelFiles:
    """Return the files of a folder or of a name on the hub, downloading those that are missing.

    Raises ConfigError for a model that is unavailable or incomplete, and for a reader that was not
    trained to answer.
    """
    files = huggingface.resolve(model, who="qags", role=role, cache=cache)
    # Checked now, because a reader is loaded only after all questions have been generated.
    if role == READER:
        advice = "name a model trained for extractive question answering (SQuAD)"
        files.check_head("QuestionAnswering", f"which was not made to answer questions: {advice}")
    return files


Span = tuple[int, int]
# "lorries", or a part of a long run without white space, as in Chinese
_WORD = re.compile(r"\S{1,20}")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage split around the theme; all is in `before` if the text does not have the theme."""

    before: str
    marked: str
    after: str

    @property
    def context(self) -> str:
        return self.before + self.marked + self.after


@dataclass(frozen=True, slots=True)
class _ThemedText:
    """A text with the span of a theme, which every excerpt of it contains."""

    whole: str
    theme: Span

    def excerpt(self, span: Span) -> Excerpt:
        """Return a part of the text, split around the theme."""
        start, stop = span
        theme_start, theme_end = self.theme
        before = self.whole[start:theme_start]
        after = self.whole[theme_end:stop]
        return Excerpt(before, self.whole[theme_start:theme_end], after)

    def extent(self, spans: Sequence[Span], first_index: int, last_index: int) -> Span:
        """Return the part from one of the spans to another, widened to the theme."""
        theme_start, theme_stop = self.theme
        start, _ = spans[first_index]
        _, stop = spans[last_index]
        return min(start, theme_start), max(stop, theme_stop)

    def spans_with_theme(self, spans: Sequence[Span]) -> tuple[int, int]:
        """Return the indices of the first and the last of the spans that hold the theme."""
        start, stop = self.theme
        first_index = _span_at(spans, start)
        last_index = _span_at(spans, max(start, stop - 1))
        return first_index, max(first_index, last_index)

    def grown(self, spans: Sequence[Span], fits: Callable[[Excerpt], bool]) -> Excerpt | None:
        """Add the spans after and before the theme in turn, on each side until one does not fit."""
        first_index, last_index = self.spans_with_theme(spans)
        largest = self.excerpt_between(spans, first_index, last_index)
        if not fits(largest):
            return None
        sides = ["after", "before"]
        while sides:
            side = sides.pop(0)
            wider_first = first_index - 1 if side == "before" else first_index
            wider_last = last_index + 1 if side == "after" else last_index
            if wider_first < 0 or wider_last >= len(spans):
                continue
            wider = self.excerpt_between(spans, wider_first, wider_last)
            if fits(wider):
                largest = wider
                first_index = wider_first
                last_index = wider_last
                sides.append(side)  # a side that did not fit is not tried again
        return largest

    def excerpt_between(self, spans: Sequence[Span], first_index: int, last_index: int) -> Excerpt:
        """Return the part from one of the spans to another, split around the theme."""
        return self.excerpt(self.extent(spans, first_index, last_index))


def _span_at(spans: Sequence[Span], position: int) -> int:
    """Return the index of the first span that ends after a character, otherwise of the last one."""
    for index, (_, stop) in enumerate(spans):
        if position < stop:
            return index
    return len(spans) - 1


def _theme_span(whole: str, theme: str) -> Span:
    """Return the first span of the theme, preferably of whole words; else the end of the text."""
    pattern = re.escape(theme)
    # "ice" is first looked for as a word, then in "police", then as "Ice".
    match = re.search(rf"(?<!\w){pattern}(?!\w)", whole)
    if match is None:
        match = re.search(pattern, whole)
    if match is None:
        match = re.search(pattern, whole, re.IGNORECASE)
    if theme and match:
        return match.span()
    return len(whole), len(whole)


def _sentence_spans(whole: str) -> list[Span]:
    """Return the spans of the sentences; a text without any is one."""
    spans: list[Span] = []
    start = 0
    for sentence in text.sentences(whole):
        start = whole.index(sentence, start)
        stop = start + len(sentence)
        spans.append((start, stop))
        start = stop
    return spans or [(0, len(whole))]


def excerpt(whole: str, theme: str, fits: Callable[[Excerpt], bool]) -> Excerpt | None:
    """Return the part of a text around a theme that fits, or None if the theme alone does not fit.

    It is the whole text if that fits, otherwise the theme's sentence and its neighbours that fit,
    otherwise a part of the sentence.
    """
    themed = _ThemedText(whole, _theme_span(whole, theme))
    everything = themed.excerpt((0, len(whole)))
    if fits(everything):
        return everything
    sentences = _sentence_spans(whole)
    whole_sentences = themed.grown(sentences, fits)
    if whole_sentences:
        return whole_sentences
    # Not even the sentence fits: grow from the theme word by word.
    first_index, last_index = themed.spans_with_theme(sentences)
    start, stop = themed.extent(sentences, first_index, last_index)
    words = [word.span() for word in _WORD.finditer(whole, start, stop)]
    part_of_sentence = themed.grown(words or [themed.theme], fits)
    if part_of_sentence:
        return part_of_sentence
    theme_alone = themed.excerpt(themed.theme)
    return theme_alone if fits(theme_alone) else None


TEMPLATE = "answer: {theme} context: {context}"
# {theme}
_FIELD = re.compile(r"\{(theme|context|before|after)\}")
# "question: Who came?": some models were trained to begin with the label
_LABEL = re.compile(r"\A\s*question\s*[:：]", re.IGNORECASE)
# Tokens of a batch with all beams: a decoding step costs the same for one text and for many.
_MIN_BATCH_TOKENS = 8_192
_KEPT_SETTINGS = (
    "bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id",
    "forced_eos_token_id", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
)  # fmt: skip


@dataclass(eq=False)
class Generator:
    """Questions by beam search: one for each distinct input, in batches."""

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
        if isinstance(self.template, str):
            fields.update(_FIELD.findall(self.template))
        has_context = "context" in fields or {"before", "after"} <= fields
        if "theme" not in fields or not has_context:
            raise ConfigError(
                "qags: template must contain {theme} and {context}, or {before}, {theme} and "
                f"{{after}}, not {self.template!r}"
            )
        shape = "default"
        if self.template != TEMPLATE:
            digest = hashlib.sha256(self.template.encode()).hexdigest()
            shape = digest[:8]
        sizes = f"beams={self.beams}|in={self.input_tokens}|out={self.question_tokens}"
        packages = huggingface.runtime("qags")
        self.signature = f"{self.weights.signed}|{sizes}|template={shape}|{packages}"

    @cached_property
    def _model(self) -> huggingface.LoadedModel:
        head = _HEADS[self.weights.role]
        model = huggingface.load_on(self.weights, head, self.device)
        with huggingface.translated_errors(model.files, 0):
            # One question without sampling. Only the special tokens of the model's own settings
            # are kept.
            defaults = model.network.generation_config
            special_tokens = {name: getattr(defaults, name, None) for name in _KEPT_SETTINGS}
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
    def _special(self) -> re.Pattern[str] | None:
        """Match special tokens, which work in a template, but not in a theme or output."""
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
        too_long = ModelError("NoQuestion", "the theme is too long for the generator's input")
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
        theme = self._letters(theme)
        output = self._letters(output)
        config = self._model.network.config
        model_limit = huggingface.limit(self._model.tokenizer, config, usual=self.input_tokens)
        limit = min(self.input_tokens, model_limit)

        def fits(part: Excerpt) -> bool:
            filled = self._filled(theme, part)
            return len(self._ids(filled)) <= limit

        fitting = excerpt(output, theme, fits)
        return self._filled(theme, fitting) if fitting else None

    def _letters(self, text: str) -> str:
        """Return a text with its special tokens split: `</s>` becomes `< /s>`."""
        text = normalization.whole(text).strip()
        if not self._special:
            return text

        def split(match: re.Match[str]) -> str:
            token = match[0]
            return f"{token[0]} {token[1:]}"

        return self._special.sub(split, text)

    def _filled(self, theme: str, part: Excerpt) -> str:
        fields = {
            "theme": theme,
            "context": part.context,
            "before": part.before,
            "after": part.after,
        }
        return _FIELD.sub(lambda field: fields[field[1]], self.template)

    def _ids(self, prompt: str) -> list[int]:
        return list(self._model.tokenizer.encode(prompt, verbose=False))

    def _generate(self, prompts: Sequence[str]) -> dict[str, str]:
        """Return what the model writes for each of the distinct prompts."""
        if not prompts:
            return {}
        prompt_ids = [self._ids(prompt) for prompt in prompts]
        lengths = [len(ids) for ids in prompt_ids]
        batch_tokens = self.batch_tokens or max(self._model.batch_tokens, _MIN_BATCH_TOKENS)
        batch_size = batch_tokens // self.beams
        replies: dict[str, str] = {}
        # Mixed lengths are fine, because padding is encoded only once.
        for indices in huggingface.batches(lengths, batch_size, mixed=True):
            batch_prompts = [prompts[index] for index in indices]
            batch_ids = [prompt_ids[index] for index in indices]
            replies |= zip(batch_prompts, self._generate_batch(batch_ids), strict=True)
            self.progress(len(replies), len(prompts))
        return replies

    def _generate_batch(self, ids: Sequence[Sequence[int]]) -> list[str]:
        torch = import_module("torch")
        model = self._model
        rows, mask = huggingface.padded(ids, model.pad)
        with (
            huggingface.translated_errors(model.files, rows.size * self.beams),
            torch.inference_mode(),
        ):
            input_ids = torch.from_numpy(rows).to(model.device)
            attention_mask = torch.from_numpy(mask).to(model.device)
            token_ids = model.network.generate(input_ids=input_ids, attention_mask=attention_mask)
            return list(model.tokenizer.batch_decode(token_ids, skip_special_tokens=True))


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

# As usual for SQuAD
WINDOW = 384
"""Tokens of a window."""
STRIDE = 128
"""Tokens that neighbouring windows share."""
SPAN = 30
"""Tokens of the longest answer."""


_PAIRS = 256  # questions with their texts that are tokenized together


@dataclass(eq=False)
class ExtractiveReader:
    """Answers by span selection: each distinct (question, text) once, in batches.

    Long texts are read in overlapping windows.
    """

    weights: huggingface.ModelFiles
    null: bool
    window: int = WINDOW
    stride: int = STRIDE
    device: str | None = None
    batch_tokens: int | None = None
    progress: Tell = no_progress

    def __post_init__(self) -> None:
        sizes = f"window={self.window}|stride={self.stride}|span={SPAN}"
        null = "yes" if self.null else "no"
        packages = huggingface.runtime("qags")
        self.signature = f"{self.weights.signed}|null={null}|{sizes}|{packages}"

    @cached_property
    def _model(self) -> huggingface.LoadedModel:
        head = _HEADS[self.weights.role]
        model = huggingface.load_on(self.weights, head, self.device)
        if self.null and model.tokenizer.cls_token_id not in _pair_ids(model):
            raise self.weights.error(
                "has no [CLS] token to mark a missing answer: set null to false"
            )
        return model

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return the answering span of the text, or UNANSWERABLE, for each (question, text).

        A span's score is the sum of the logits of its ends, the maximum over all windows. The null
        score is the score of [CLS], the minimum over all windows (SQuAD 2.0, Devlin et al. 2019,
        section 4.3). A blank text answers nothing. ModelError `NoQuestion` for a blank question,
        `QuestionTooLong` for a question of more than half a window.
        """
        distinct = list(dict.fromkeys(pairs))
        answers: dict[tuple[str, str], str | ModelError] = {}
        for start in range(0, len(distinct), _PAIRS):
            block = distinct[start : start + _PAIRS]
            windows_by_pair: dict[tuple[str, str], list[Any]] = {}
            for pair in block:
                windows = self._windows(*pair)
                if isinstance(windows, list):
                    windows_by_pair[pair] = windows
                else:
                    answers[pair] = windows  # it is answered without reading
            outputs = self._model.window_outputs(
                list(windows_by_pair.values()),
                self.batch_tokens,
                "start_logits",
                "end_logits",
            )
            for (pair, windows), logits in zip(windows_by_pair.items(), outputs, strict=True):
                _, text = pair
                answers[pair] = self._answer(text, windows, logits)
            self.progress(len(answers), len(distinct))
        return [answers[pair] for pair in pairs]

    def _windows(self, question: str, text: str) -> list[Any] | str | ModelError:
        """Return the windows of a question with a text, or the answer without reading."""
        question = normalization.whole(question).strip()
        text = normalization.whole(text)
        if not question:
            return ModelError("NoQuestion", "the question is empty")
        if not text.strip():
            return UNANSWERABLE
        model = self._model
        pair_tokenizer = model.pair_tokenizer()
        special = int(model.tokenizer.num_special_tokens_to_add(pair=True))
        limit = huggingface.limit(model.tokenizer, model.network.config)
        room = min(self.window, limit) - special
        size = len(pair_tokenizer.ids(question))
        if size > room // 2:
            return ModelError(
                "QuestionTooLong", f"the question has {size} tokens, the reader takes {room // 2}"
            )
        overlap = min(self.stride, (room - size) // 2)
        whole_size = room + special
        windows = pair_tokenizer.windows((question, text), 1, size=whole_size, overlap=overlap)
        return list(windows)

    def _answer(
        self,
        text: str,
        windows: Sequence[Any],
        logits: Sequence[Sequence[Floats]],
    ) -> str | ModelError:
        """Return the answer with the best score of all windows."""
        text = normalization.whole(text)
        answer = UNANSWERABLE
        best_score = -math.inf
        null_score = math.inf if self.null else -math.inf
        has_candidates = False
        for window, (padded_starts, padded_ends) in zip(windows, logits, strict=True):
            allowed = _allowed_tokens(text, window)
            has_candidates = has_candidates or any(allowed)
            # Padding follows the tokens of a short window.
            starts = padded_starts[: len(allowed)]
            ends = padded_ends[: len(allowed)]
            score, first_token, last_token = best_span(starts, ends, allowed, SPAN)
            if score > best_score:
                best_score = score
                start = window.offsets[first_token][0]
                stop = window.offsets[last_token][1]
                answer = text[start:stop].strip()
            if self.null:
                cls_index = window.ids.index(self._model.tokenizer.cls_token_id)
                score_of_cls = float(starts[cls_index] + ends[cls_index])
                null_score = min(null_score, score_of_cls)
        if has_candidates and best_score == -math.inf:
            return ModelError("NoAnswer", "the reader's scores are not numbers")
        return UNANSWERABLE if null_score > best_score else answer


def _allowed_tokens(text: str, window: Any) -> list[bool]:
    """Return which tokens may begin or end an answer: the text's, except white space."""
    allowed: list[bool] = []
    for sequence, (start, stop) in zip(window.sequence_ids, window.offsets, strict=True):
        # The question is sequence 0, the text sequence 1; special tokens have none.
        is_of_text = sequence == 1
        allowed.append(is_of_text and bool(text[start:stop].strip()))
    return allowed


def _pair_ids(model: huggingface.LoadedModel) -> list[int]:
    """Return the tokens of a short pair of texts with the model's special ones."""
    windows = model.pair_tokenizer().windows(("a", "b"), 1, size=16, overlap=0)
    return windows[0].ids


def best_span(
    starts: Floats,
    ends: Floats,
    allowed: Sequence[bool],
    longest: int,
) -> tuple[float, int, int]:
    """Return the maximum start + end over spans of 1 to `longest` tokens, and the span's two ends.

    Both ends have to be `allowed`; the maximum is -inf if nothing is. The shortest of equal spans
    wins, then the first.
    """
    import numpy as np

    allowed_starts = np.where(allowed, starts, -np.inf)
    allowed_ends = np.where(allowed, ends, -np.inf)
    count = len(allowed_starts)
    best = (-math.inf, 0, 0)
    # All spans of one length at a time; a longer span has to be better than the shorter ones.
    for more in range(min(longest, count)):
        n_starts = count - more
        totals = allowed_starts[:n_starts] + allowed_ends[more:]
        first_token = int(totals.argmax())
        if totals[first_token] > best[0]:
            best_total = float(totals[first_token])
            best = (best_total, first_token, first_token + more)
    return best
