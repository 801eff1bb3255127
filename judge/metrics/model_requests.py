"""What a metric asks the run's judge model, and what it gets: `judge.execution.metric_client` does the asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Ask = Callable[[Sequence["Wanted"]], list["str | Trouble"]]
"""Asks a judge model, many prompts at once, by the run's cache, retries and accounts: texts that `read` accepted."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A prompt for the judge model: its text, the longest reply in tokens, and what turns the reply into an answer.

    `read` raises ParseError for a reply of no use, which is then neither kept nor paid for twice.
    """

    prompt: str
    max_tokens: int
    read: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why one thing that a metric wanted could not be had: the kind (CamelCase) and what happened, in words.

    `failed` where a judge was asked and its reply is missing or of no use: nothing is known of the text then.
    """

    error: str
    message: str
    failed: bool = False
