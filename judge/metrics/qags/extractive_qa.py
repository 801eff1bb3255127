"""Answers by a model that points at a span of the text (extractive question answering, as for SQuAD)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from judge.core import huggingface, records
from judge.core.errors import ConfigError
from judge.metrics.qags.pipeline import UNANSWERABLE, ModelError, Tell
from judge.metrics.qags.weights import LoadedModel, load, runtime

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

WINDOW, STRIDE, SPAN = 384, 128, 30
"""Tokens read at once, tokens that neighbouring windows share, tokens of the longest answer: as is usual for SQuAD."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The special tokens before, between and after question and text, and the segment numbers of all five."""

    before: list[int]
    between: list[int]
    after: list[int]
    segments: tuple[int, int, int, int, int] | None

    @property
    def size(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)

    def ids(self, question: Sequence[int], text: Sequence[int]) -> list[int]:
        return [*self.before, *question, *self.between, *text, *self.after]

    def types(self, question: int, text: int) -> list[int]:
        sizes = (len(self.before), question, len(self.between), text, len(self.after))
        return [kind for kind, size in zip(self.segments or (), sizes, strict=True) for _ in range(size)]


@dataclass(frozen=True, slots=True)
class _Tokens:
    ids: list[int]
    offsets: list[tuple[int, int]]
    told: list[bool]
    """Whether a token says anything: no answer begins or ends with white space alone."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Tokens `start` to `stop` of the text of one of the pairs."""

    pair: int
    start: int
    stop: int


@dataclass(slots=True)
class _Found:
    """The best span of a text so far, as places of tokens, and the best that speaks for its saying nothing."""

    score: float = -math.inf
    first: int = 0
    last: int = 0
    null: float = math.inf


class ExtractiveReader:
    """Answers from a model: each distinct (question, text) once, many at once, long texts in overlapping windows."""

    def __init__(
        self,
        weights: huggingface.ModelFiles,
        *,
        null: bool,
        window: int = WINDOW,
        stride: int = STRIDE,
        device: str | None = None,
        batch_tokens: int | None = None,
        progress: Tell | None = None,
    ) -> None:
        self._weights, self._null, self._device = weights, null, device
        self._longest, self._stride = window, stride
        self._batch_tokens, self._progress = batch_tokens, progress
        sizes = f"window={window}|stride={stride}|span={SPAN}"
        self.signature = f"{weights.signed}|null={'yes' if null else 'no'}|{sizes}|{runtime()}"

    @cached_property
    def _model(self) -> LoadedModel:
        model = load(self._weights, self._device)
        if (inside := huggingface.backend(model.tokenizer)) is None:
            raise self._weights.error(
                "its tokenizer does not say where its tokens stand; name a model with a fast one (tokenizer.json)"
            )
        inside.no_truncation()
        inside.no_padding()
        return model

    @cached_property
    def _frame(self) -> Frame:
        made = frame(self._model.tokenizer)
        if self._null and self._model.tokenizer.cls_token_id not in [*made.before, *made.after]:
            raise self._weights.error("has no [CLS] to say null with: set null to false")
        return made

    @cached_property
    def _room(self) -> int:
        """How many tokens of question and text are read at once."""
        return (
            min(self._longest, huggingface.limit(self._model.tokenizer, self._model.network.config)) - self._frame.size
        )

    def answers(self, asked: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """For each (question, text) the span that answers, as it stands in the text, or UNANSWERABLE.

        A span's score is the sum of its ends' logits, the best over all windows; the null score is that of [CLS], the
        least over all windows, as each speaks for itself alone (SQuAD 2.0, Devlin et al. 2019, section 4.3). A text of
        white space answers nothing. Trouble `NoQuestion` for a blank question, `QuestionTooLong` for one that would
        take more than half of a window.
        """
        pairs = list(dict.fromkeys(asked))
        clean = [(records.whole(question).strip(), records.whole(text)) for question, text in pairs]
        askable = [n for n, (question, text) in enumerate(clean) if question and text.strip()]
        found = dict(zip(askable, self._read([clean[n] for n in askable]), strict=True)) if askable else {}
        told: dict[tuple[str, str], str | ModelError] = {}
        for n, pair in enumerate(pairs):
            blank = UNANSWERABLE if clean[n][0] else ModelError("NoQuestion", "the question is empty")
            told[pair] = found.get(n, blank)
        return [told[pair] for pair in asked]

    def _read(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        questions = {question: self._tokens(question).ids for question, _ in pairs}
        texts = {text: self._tokens(text) for _, text in pairs}
        found = [_Found() for _ in pairs]
        windows = [
            _Window(n, start, stop)
            for n, (question, text) in enumerate(pairs)
            if len(questions[question]) <= self._room // 2
            for start, stop in windows_of(len(texts[text].ids), self._room - len(questions[question]), self._stride)
        ]
        rows = [(questions[pairs[w.pair][0]], texts[pairs[w.pair][1]], w) for w in windows]
        lengths = [self._frame.size + len(question) + w.stop - w.start for question, _, w in rows]
        done = 0
        for batch in huggingface.batches(lengths, self._batch_tokens or self._model.batch_tokens):
            self._take([rows[n] for n in batch], found)
            done += len(batch)
            if self._progress:
                self._progress(done, len(windows))
        return [
            self._answer(one, text, texts[text], len(questions[question]))
            for one, (question, text) in zip(found, pairs, strict=True)
        ]

    def _tokens(self, text: str) -> _Tokens:
        inside = huggingface.backend(self._model.tokenizer)
        inside.encode_special_tokens = True  # a text that has [SEP] in it has the letters, and not the token
        encoded = inside.encode(text, add_special_tokens=False)
        offsets = list(encoded.offsets)
        return _Tokens(list(encoded.ids), offsets, [bool(text[start:stop].strip()) for start, stop in offsets])

    def _take(self, rows: Sequence[tuple[list[int], _Tokens, _Window]], found: list[_Found]) -> None:
        """Read windows together, and keep of each what is better than what its text had."""
        import numpy as np

        ids = [self._frame.ids(question, text.ids[w.start : w.stop]) for question, text, w in rows]
        starts, ends = self._logits(ids, [(len(question), w.stop - w.start) for question, _, w in rows])
        allowed = np.zeros(starts.shape, dtype=bool)
        befores = [len(self._frame.before) + len(question) + len(self._frame.between) for question, _, _ in rows]
        for row, before, (_, text, w) in zip(allowed, befores, rows, strict=True):
            row[before : before + w.stop - w.start] = text.told[w.start : w.stop]
        scores, firsts, lasts = best_spans(starts, ends, allowed, SPAN)
        for n, (before, (_, _, w)) in enumerate(zip(befores, rows, strict=True)):
            one = found[w.pair]
            if scores[n] > one.score:
                shift = w.start - before
                one.score, one.first, one.last = float(scores[n]), int(firsts[n]) + shift, int(lasts[n]) + shift
            if self._null:
                at = ids[n].index(self._model.tokenizer.cls_token_id)
                one.null = min(one.null, float(starts[n, at] + ends[n, at]))

    def _logits(self, ids: Sequence[Sequence[int]], sizes: Sequence[tuple[int, int]]) -> tuple[Floats, Floats]:
        """The model's start and end logits, both of shape (windows, longest window)."""
        torch, model = import_module("torch"), self._model
        rows, mask = huggingface.padded(ids, model.pad)
        fields: dict[str, Any] = {"input_ids": rows, "attention_mask": mask}
        if self._frame.segments:
            fields["token_type_ids"] = huggingface.padded([self._frame.types(*size) for size in sizes], 0)[0]
        with huggingface.translated_errors(model.files, rows.size), torch.inference_mode():
            found = model.network(**{name: torch.from_numpy(array).to(model.device) for name, array in fields.items()})
            return found.start_logits.double().cpu().numpy(), found.end_logits.double().cpu().numpy()

    def _answer(self, one: _Found, text: str, tokens: _Tokens, asked: int) -> str | ModelError:
        if asked > self._room // 2:
            return ModelError("QuestionTooLong", f"the question has {asked} tokens, the reader takes {self._room // 2}")
        if not any(tokens.told):
            return UNANSWERABLE
        if one.score == -math.inf:
            return ModelError("NoAnswer", "the reader's scores are not numbers")
        if self._null and one.null > one.score:
            return UNANSWERABLE
        return text[tokens.offsets[one.first][0] : tokens.offsets[one.last][1]].strip()


def frame(tokenizer: Any) -> Frame:
    """How a fast tokenizer of transformers puts a question and a text together."""
    encoded = tokenizer("a", "b")
    ids, places = encoded["input_ids"], encoded.sequence_ids(0)
    types = encoded.get("token_type_ids")
    asked, told = ([n for n, place in enumerate(places) if place == which] for which in (0, 1))
    if not asked or not told or asked[-1] > told[0]:
        raise ConfigError("qags: the reader's tokenizer does not put a question before a text; use another model")
    parts = slice(0, asked[0]), slice(asked[-1] + 1, told[0]), slice(told[-1] + 1, len(ids))
    before, between, after = (ids[part] for part in parts)
    segments = None
    if types:
        kinds = [types[part][0] if ids[part] else 0 for part in parts]
        segments = (kinds[0], types[asked[0]], kinds[1], types[told[0]], kinds[2])
    return Frame(before, between, after, segments)


def windows_of(count: int, size: int, stride: int) -> list[tuple[int, int]]:
    """Starts and stops of windows of `size` tokens over `count`; neighbours share `stride` tokens, half at most."""
    step = size - min(stride, size // 2)
    starts = [0, *range(step, max(0, count - size) + step, step)] if count > size else [0]
    return [(start, min(start + size, count)) for start in starts]


def best_spans(
    starts: Floats, ends: Floats, allowed: npt.NDArray[np.bool_], longest: int
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of each row the greatest start + end over spans of 1 to `longest` tokens with both ends allowed, and its ends.

    All arrays have the shape (rows, tokens). Of equal spans the shortest wins, of these the first. A row with nothing
    allowed has the score -inf.
    """
    import numpy as np

    begin, finish = np.where(allowed, starts, -np.inf), np.where(allowed, ends, -np.inf)
    every, width = np.arange(len(starts)), starts.shape[1]
    score = np.full(len(starts), -np.inf)
    first, last = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.int64)
    for more in range(min(longest, width)):
        total = begin[:, : width - more] + finish[:, more:]
        at = total.argmax(axis=1)
        better = total[every, at] > score
        score = np.where(better, total[every, at], score)
        first, last = np.where(better, at, first), np.where(better, at + more, last)
    return score, first, last
