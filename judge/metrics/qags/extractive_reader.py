"""Answers by a model that selects a span of the text, as for SQuAD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judge.core import huggingface, normalization
from judge.metrics.base import Tell, no_progress
from judge.metrics.qags.models import HEADS
from judge.metrics.qags.pipeline import UNANSWERABLE, ModelError

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

    Long texts are read in overlapping windows. `null` is whether the model was trained to mark with
    [CLS] that a text does not answer (SQuAD 2.0).
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
        head = HEADS[self.weights.role]
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
                answer_without_reading = self._answer_without_reading(*pair)
                if answer_without_reading is None:
                    windows_by_pair[pair] = self._windows(*pair)
                else:
                    answers[pair] = answer_without_reading
            outputs = self._model.window_outputs(
                list(windows_by_pair.values()),
                self.batch_tokens,
                "start_logits",
                "end_logits",
            )
            for pair, logits in zip(windows_by_pair, outputs, strict=True):
                _, text = pair
                answers[pair] = self._answer(text, windows_by_pair[pair], logits)
            self.progress(len(answers), len(distinct))
        return [answers[pair] for pair in pairs]

    def _answer_without_reading(
        self, question: str, text: str
    ) -> str | ModelError | None:
        """Return the answer for a pair that the model cannot read, None if it can."""
        if not question.strip():
            return ModelError("NoQuestion", "the question is empty")
        if not text.strip():
            return UNANSWERABLE
        size = self._question_size(question)
        limit = self._room // 2
        if size > limit:
            problem = f"the question has {size} tokens, the reader takes {limit}"
            return ModelError("QuestionTooLong", problem)
        return None

    @cached_property
    def _room(self) -> int:
        """The number of tokens of a window for the question and the text, without special ones."""
        model = self._model
        limit = huggingface.limit(model.tokenizer, model.network.config)
        return min(self.window, limit) - self._n_special_tokens

    @property
    def _n_special_tokens(self) -> int:
        return int(self._model.tokenizer.num_special_tokens_to_add(pair=True))

    def _question_size(self, question: str) -> int:
        """Return the number of tokens of a question."""
        valid_question = normalization.whole(question).strip()
        return len(self._model.pair_tokenizer().ids(valid_question))

    def _windows(self, question: str, text: str) -> list[Any]:
        """Return the windows of the text, each beside the whole question."""
        room_for_text = self._room - self._question_size(question)
        # At least half of each window must be new text.
        overlap = min(self.stride, room_for_text // 2)
        pair = (normalization.whole(question).strip(), normalization.whole(text))
        whole_size = self._room + self._n_special_tokens
        pair_tokenizer = self._model.pair_tokenizer()
        # The second text of the pair, number 1, is the long one.
        return list(pair_tokenizer.windows(pair, 1, size=whole_size, overlap=overlap))

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
        # Without a null score, the best span always answers.
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
    tokens = zip(window.sequence_ids, window.offsets, strict=True)
    for sequence, (start, stop) in tokens:
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
    """Return the best score of a span of 1 to `longest` tokens, and its first and last token.

    The score is the sum of the logits of both ends, which have to be `allowed`; -inf if no tokens
    are. The shortest of equal spans wins, then the first.
    """
    import numpy as np

    allowed_starts = np.where(allowed, starts, -np.inf)
    allowed_ends = np.where(allowed, ends, -np.inf)
    count = len(allowed_starts)
    best_score = -math.inf
    best_first = 0
    best_last = 0
    # All spans of one length at a time; a longer span has to be better than the shorter ones.
    for length in range(1, min(longest, count) + 1):
        steps_to_last = length - 1
        n_starts = count - steps_to_last
        scores = allowed_starts[:n_starts] + allowed_ends[steps_to_last:]
        first_token = int(scores.argmax())
        if scores[first_token] > best_score:
            best_score = float(scores[first_token])
            best_first = first_token
            best_last = first_token + steps_to_last
    return best_score, best_first, best_last
