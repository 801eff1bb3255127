"""The stages of QAGS: what each takes and gives. Back ends stand in `lexical`, `models` and `llm`.

themes of an output → a question for each → its answer from the source and from the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from judge.metrics.model_requests import Trouble as Trouble  # what a stage gives in the place of what it cannot

UNANSWERABLE = ""
"""The answer of a question that the text does not answer."""
Tell = Callable[[int, int], None]


class Themes(Protocol):
    """Answer candidates. `signature` names what makes them, for the column's signature."""

    signature: str

    def themes(self, outputs: Sequence[str]) -> list[list[str] | Trouble]:
        """For each text its themes in order of appearance, each once; an empty list where it has none."""
        ...


class Questions(Protocol):
    """One question for a theme, which the text it was taken from answers with the theme."""

    signature: str

    def questions(self, asked: Sequence[tuple[str, str]]) -> list[str | Trouble]:
        """For each (theme, output) a question."""
        ...


class Answers(Protocol):
    """The answer that a text gives to a question."""

    signature: str

    def answers(self, asked: Sequence[tuple[str, str]]) -> list[str | Trouble]:
        """For each distinct (question, text) an answer, or UNANSWERABLE."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of an output's working: a theme, its question, and the answers from the source and from the output.

    `similarity` by name, each 0–1 (corrected BERTScore, F1, exact match, ROUGE; BERTScore may be below 0); empty where
    the line counts for nothing, and `left_out` says why.
    """

    theme: str
    question: str
    from_source: str
    from_output: str
    similarity: dict[str, float]
    left_out: str = ""
