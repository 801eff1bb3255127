"""The outcome of a judgment: a score or a failure, as a row of the table."""

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
    """A `repair` question, for the score alone, did not help.

    `answered` is False if there was no reply to it.
    """

    def __init__(
        self,
        repair: Repair,
        answers: Sequence[Answer],
        error: JudgeError,
    ) -> None:
        replies = [answer for answer in answers if isinstance(answer, Response)]
        failure = repair.failure(replies, error)
        super().__init__(str(failure), failure.raw)
        self.repair = repair
        self.answered = bool(replies)


class UnusableAtLast(ParseError):
    """The reply has a score, but the last strategy cannot use it."""


def first_error(outcome: object) -> JudgeError | None:
    """Return the error of a judgment's first reply, None if the judgment has a score."""
    if isinstance(outcome, RepairFailed):
        return outcome.repair.trouble
    return outcome if isinstance(outcome, JudgeError) else None


def fails_one_judgment(error: BaseException) -> TypeGuard[JudgeError]:
    """Return whether an error belongs to one judgment, and not to the run."""
    if isinstance(error, ProviderError):
        return error.stops == "never"
    return isinstance(error, ParseError)


def score_row(
    judgment: Judgment,
    column: str,
    value: float,
    provenance: Provenance,
) -> Score:
    """Return the row of a score. A quotation counts only if it is in the texts."""
    sample = judgment.sample
    if provenance.quote:
        quote = quotes.find_quote(provenance.quote, sample.texts)
        provenance = replace(provenance, quote=quote)
    return Score(
        item=sample.item,
        system=sample.system,
        column=column,
        value=value,
        provenance=provenance,
        opponent=judgment.opponent_name,
    )


def failure_row(
    judgment: Judgment,
    column: str,
    error: JudgeError,
    strategy: Strategy | None = None,
) -> Failure:
    """Return the row of a failure, with the strategy whose reply has no score."""
    stage = "render" if isinstance(error, CriterionError) else "request"
    error_name = type(error).__name__
    raw_reply = ""
    method: Strategy | None = None
    reading: Reading | None = None
    if isinstance(error, ParseError):
        stage = "parse"
        # Reports group failures by this name, so its subclasses share it.
        error_name = ParseError.__name__
        raw_reply = error.raw
        method = strategy
    if isinstance(error, RepairFailed):
        method = error.repair.strategy
        reading = "repaired" if error.answered else None
    return Failure(
        item=judgment.sample.item,
        system=judgment.sample.system,
        column=column,
        stage=stage,
        error=error_name,
        message=str(error),
        raw=raw_reply,
        opponent=judgment.opponent_name,
        method=method,
        reading=reading,
    )
