"""What becomes of a judgment: a score or a failure, as a row of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from judge.core.errors import CriterionError, JudgeError, ParseError, ProviderError
from judge.core.records import Failure, Provenance, Reading, Response, Score
from judge.execution.judgments import Judgment
from judge.execution.reply_client import Answer
from judge.scoring import quotes
from judge.scoring.repair import Repair
from judge.scoring.strategies import Strategy


class RepairFailed(ParseError):
    """The question for the score alone did not help, after the trouble of a `repair`.

    `answered` is False if there was no reply to it.
    """

    def __init__(self, repair: Repair, answers: Sequence[Answer], error: JudgeError) -> None:
        replies = [answer for answer in answers if isinstance(answer, Response)]
        failure = repair.failure(replies, error)
        super().__init__(str(failure), failure.raw)
        self.repair = repair
        self.answered = bool(replies)


class UnusableAtLast(ParseError):
    """The reply has a score, which the last strategy cannot use."""


def first_error(outcome: object) -> JudgeError | None:
    """Return why the first reply of a judgment has no score, None if the judgment has one."""
    if isinstance(outcome, RepairFailed):
        return outcome.repair.trouble
    return outcome if isinstance(outcome, JudgeError) else None


def fails_one_judgment(error: BaseException) -> TypeGuard[JudgeError]:
    """Whether an error is that of one judgment, and not of the run."""
    if isinstance(error, ProviderError):
        return error.stops == "never"
    return isinstance(error, ParseError)


def score_row(judgment: Judgment, column: str, value: float, provenance: Provenance) -> Score:
    """Return the row of a score. A quotation counts only if it is in the texts."""
    sample = judgment.sample
    if provenance.quote:
        quote = quotes.find_quote(provenance.quote, sample.texts)
        provenance = replace(provenance, quote=quote)
    return Score(sample.item, sample.system, column, value, provenance, judgment.rival_name)


def failure_row(
    judgment: Judgment, column: str, error: JudgeError, strategy: Strategy | None = None
) -> Failure:
    """Return the row of a failure, with the strategy whose reply has no score."""
    stage = "render" if isinstance(error, CriterionError) else "request"
    kind, raw = type(error).__name__, ""
    method: Strategy | None = None
    reading: Reading | None = None
    if isinstance(error, ParseError):
        stage, kind, raw, method = "parse", ParseError.__name__, error.raw, strategy
    if isinstance(error, RepairFailed):
        method = error.repair.strategy
        reading = "repaired" if error.answered else None
    return Failure(
        judgment.sample.item,
        judgment.sample.system,
        column,
        stage,
        kind,
        str(error),
        raw,
        judgment.rival_name,
        method,
        reading,
    )
