"""Ask once more, for the score alone, after a reply that has none.

See docs/decisions/0064-a-reply-is-paid-once-with-a-score-or-without.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from judge.core.errors import JudgeError, ParseError
from judge.core.normalization import whole
from judge.core.records import (
    Choice,
    Criterion,
    Message,
    Prompt,
    Provenance,
    Request,
    Response,
)
from judge.scoring import parse
from judge.scoring.strategies import (
    TOKEN_LIMIT,
    Answer,
    Question,
    SamplingOptions,
    Strategy,
    average_draws,
    first_choices,
    read,
    read_draws,
    requests,
    score_reply,
)
from judge.scoring.written_score import ParsedScore

_NOT_REPAIRED = ("refusal", "content_filter", "abort")
"""Finish reasons after which judge does not ask again."""
_LONGEST_THINKING = 4_000
"""Characters of a reply's thinking that are sent back, from its end."""


@dataclass(frozen=True, slots=True)
class Repair(Question):
    """The question for the score alone, and how its answer is read, after a `reply` without one.

    `trouble` says why it has none, and `strategy` is the one that requested it.
    """

    reply: Choice
    strategy: Strategy
    trouble: ParseError

    def score(
        self,
        strategy: Strategy,
        answers: Sequence[Answer],
        notes: Sequence[str],
        judged: str,
    ) -> tuple[float, Provenance]:
        """Return the value of the answers, and its provenance. Raises like `score_reply`."""
        value, provenance = score_reply(
            strategy,
            answers,
            self.criterion,
            self.settings,
            notes,
            judged=judged,
        )
        return value, self.provenance(answers, provenance)

    def provenance(
        self, answers: Sequence[Answer], provenance: Provenance
    ) -> Provenance:
        """Return the provenance of a score that was read in the answer."""
        note = f"asked again for the score alone: {self.trouble}"
        if provenance.note:
            note = f"{provenance.note}; {note}"
        raw = parse.join_replies([self.reply, *first_choices(answers)])
        first_reply = _text_or_empty(self.reply)
        # A score off the scale, such as "9", is no reason.
        reason = first_reply if any(map(str.isalpha, first_reply)) else None
        return replace(
            provenance,
            reading="repaired",
            reason=reason,
            raw=raw,
            note=note,
        )

    def failure(self, answers: Sequence[Answer], error: JudgeError) -> ParseError:
        """Return the error of a judgment that still has no score."""
        raw = self.trouble.raw
        outcome = "was not answered"
        reason = ""
        if answers:
            raw = parse.join_replies([self.reply, *first_choices(answers)])
            outcome = "did not help"
        if str(error) != str(self.trouble):
            reason = f": {error}"
        return ParseError(
            f"{self.trouble}; the question for the score alone {outcome}{reason}", raw
        )


@dataclass(frozen=True, slots=True)
class DrawRepair(Repair):
    """The questions for the score alone after draws without a score, one per different reply.

    `draws` are all replies and `scores` what was read in them; `requested` is the number of
    requests. `questions` maps the replies without a score to the messages that ask again.
    """

    draws: tuple[Choice, ...] = ()
    scores: tuple[ParsedScore | None, ...] = ()
    requested: int = 0
    questions: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)

    def requests(
        self,
        strategy: Strategy,
        model: str,
        endpoint: str,
        prefix: tuple[str, int],
    ) -> tuple[Request, ...]:
        """Return a request for each question."""
        all_requests: list[Request] = []
        for messages in self.questions.values():
            prompt = replace(self.prompt, messages=messages)
            all_requests += requests(
                prompt,
                self.criterion,
                strategy,
                self.settings,
                model=model,
                endpoint=endpoint,
                prefix=prefix,
            )
        return tuple(all_requests)

    def score(
        self,
        strategy: Strategy,
        answers: Sequence[Answer],
        notes: Sequence[str],
        judged: str,
    ) -> tuple[float, Provenance]:
        """Return the mean over all draws, including those that were asked again."""
        repaired_by_text = self._repaired_scores(answers, judged)
        scores: list[ParsedScore | None] = []
        repaired = 0
        for draw, score in zip(self.draws, self.scores, strict=True):
            if score is None and draw.text in repaired_by_text:
                scores.append(repaired_by_text[draw.text])
                repaired += 1
            else:
                scores.append(score)
        all_notes = list(notes)
        if repaired:
            asked_again = f"{repaired} of {len(self.draws)} draws were asked again"
            all_notes.append(f"{asked_again} for the score alone: {self.trouble}")
        value, provenance = average_draws(
            self.draws,
            scores,
            self.criterion,
            requested=self.requested,
            notes=all_notes,
            trouble=self.trouble,
        )
        raw = parse.join_replies([*self.draws, *first_choices(answers)])
        return value, replace(provenance, raw=raw)

    def _repaired_scores(
        self, answers: Sequence[Answer], judged: str
    ) -> dict[str, ParsedScore]:
        """Return what the answers say, by the text of the draw that was asked again."""
        scores: dict[str, ParsedScore] = {}
        for text, answer in zip(self.questions, answers, strict=True):
            if not isinstance(answer, Response) or not answer.choices:
                continue
            choice = answer.choices[0]
            strict = self.settings.strict
            try:
                score = read(choice, self.criterion, judged, strict=strict)
            except ParseError:
                continue  # counted among the draws without a score
            scores[text] = replace(score, reading="repaired")
        return scores


def repair_reply(
    answers: Iterable[Answer],
    prompt: Prompt,
    criterion: Criterion,
    strategy: Strategy,
    *,
    settings: SamplingOptions,
    trouble: ParseError,
    question: str,
) -> Repair | None:
    """Return the question for the score alone after the first reply that allows it.

    Return None after a refusal, a reply that a filter or server broke off, an empty reply, or the
    answer to a typed question. Also after draws, because one cannot stand for all (see
    `repair_draws`). Only the finish reason says that a reply is a refusal.
    """
    if strategy in ("decisions", "samples"):
        return None
    for choice in first_choices(answers):
        messages = _question_after(choice, prompt, question)
        if messages is not None:
            strategies: tuple[Strategy, ...] = ("single",)
            if strategy == "logprobs":
                strategies = ("logprobs", "single")
            return Repair(
                prompt=replace(prompt, messages=messages, merged=()),
                criterion=_score_alone(criterion),
                settings=_repair_settings(settings, choice),
                strategies=strategies,
                reply=choice,
                strategy=strategy,
                trouble=trouble,
            )
    return None


def repair_draws(
    answers: Sequence[Answer],
    prompt: Prompt,
    criterion: Criterion,
    *,
    settings: SamplingOptions,
    judged: str | None,
    question: str,
) -> DrawRepair | None:
    """Return the questions after the draws that have no score.

    Return None if all have one or none can be asked again.
    """
    draws = first_choices(answers)
    strict = settings.strict
    read_score = partial(read, criterion=criterion, judged=judged, strict=strict)
    scores, trouble = read_draws(draws, read_score)
    questions: dict[str, tuple[Message, ...]] = {}
    asked_again: list[Choice] = []
    for draw, score in zip(draws, scores, strict=True):
        if score is None and draw.text not in questions:
            messages = _question_after(draw, prompt, question)
            if messages is not None:
                questions[draw.text] = messages
                asked_again.append(draw)
    if trouble is None or not questions:
        return None
    # One criterion and limit for all questions: the limit that suits the longest answer.
    draw_settings = [_repair_settings(settings, draw) for draw in asked_again]
    first = asked_again[0]
    longest_settings = max(draw_settings, key=lambda options: options.max_tokens or 0)
    all_replies = parse.join_replies(draws)
    return DrawRepair(
        prompt=replace(prompt, messages=questions[first.text], merged=()),
        criterion=_score_alone(criterion),
        settings=longest_settings,
        strategies=("single",),
        reply=first,
        strategy="samples",
        trouble=ParseError(str(trouble), all_replies),
        draws=tuple(draws),
        scores=tuple(scores),
        requested=len(answers),
        questions=questions,
    )


def _score_alone(criterion: Criterion) -> Criterion:
    return replace(criterion, reply="score", form="text", cite=False)


def _question_after(
    choice: Choice, prompt: Prompt, question: str
) -> tuple[Message, ...] | None:
    """Return the messages that ask again after a reply, None if it cannot be asked again."""
    if choice.shares is not None or choice.finish_reason in _NOT_REPAIRED:
        return None
    # A reply of thinking alone is sent back as the judge's turn, because chat templates want turns
    # to alternate.
    thinking = choice.text.strip()[-_LONGEST_THINKING:]
    text = whole(_text_or_empty(choice) or thinking)
    if not text:
        return None
    if prompt.merged and choice.finish_reason in ("stop", parse.NEARLY_JSON):
        # The reply is one value of a JSON object. The judge sees it with its key.
        key = json.dumps(prompt.criterion, ensure_ascii=False)
        text = f"{{{key}: {text}}}"
    reply: Message = {"role": "assistant", "content": text}
    next_question: Message = {"role": "user", "content": question}
    turns = (reply, next_question)
    return prompt.messages + turns


def _repair_settings(settings: SamplingOptions, choice: Choice) -> SamplingOptions:
    """Return how to ask again: a judge that writes down its thinking gets room to do so again."""
    thinks = _text_or_empty(choice) != whole(choice.text).strip()
    limit = TOKEN_LIMIT["reason_then_score"] if thinks else TOKEN_LIMIT["score"]
    return replace(settings, temperature=0.0, max_tokens=settings.max_tokens or limit)


def _text_or_empty(choice: Choice) -> str:
    """Return the text of a reply, finished or not, without its thinking; "" if nothing is left."""
    try:
        return parse.reply_text(replace(choice, finish_reason="stop"))
    except ParseError:
        return ""
