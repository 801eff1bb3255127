"""The pipeline of QAGS: themes of an output → a question for each → its answers from the source and from the output.

The stages are protocols; the back ends `lexical`, `models` and `llm` implement them. No request is sent twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from judge.metrics.common import ModelError as ModelError  # a stage's result if it fails
from judge.metrics.qags.answer_candidates import languages
from judge.metrics.qags.similarity import Similarities, normalised

UNANSWERABLE = ""
"""The answer if the text does not answer the question."""
Tell = Callable[[int, int], None]


class AnswerCandidates(Protocol):
    """Finds the themes of texts. `signature` goes into the column's signature."""

    signature: str

    def themes(self, outputs: Sequence[str]) -> list[list[str] | ModelError]:
        """Return each text's themes in order of appearance, each once; an empty list if it has none."""
        ...


class Questions(Protocol):
    """Writes a question for a theme, which the text that has the theme should answer with it."""

    signature: str

    def questions(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return a question for each (theme, output)."""
        ...


class Answers(Protocol):
    """Answers a question from a text."""

    signature: str

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return an answer, or UNANSWERABLE, for each distinct (question, text)."""
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


_Answer = str | ModelError
NEITHER = "answered by neither"
OTHERWISE = "the output answers otherwise"
"""Reasons for leaving a line out although no stage failed."""


class Job(NamedTuple):
    """An output and its source, neither of them blank."""

    output: str
    source: str


@dataclass(frozen=True, slots=True)
class Stages:
    """The back ends of the three stages."""

    themes: AnswerCandidates
    questions: Questions
    answers: Answers

    @property
    def signature(self) -> str:
        """Return `themes=…|questions=…|answers=…` with the signatures that the stages have after their calls."""
        parts = []
        for name, stage in (("themes", self.themes), ("questions", self.questions), ("answers", self.answers)):
            key, equals, rest = stage.signature.partition("=")
            signature = rest if equals and key in (name, name[:-1]) else stage.signature  # no name twice
            parts.append(f"{name}={signature.replace('|', ' ')}")
        return "|".join(parts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for an output: its lines, or `trouble`, the reason for no value (there may be lines as well).

    `counted` are the lines that count; `note` says how many others there are, and why.
    """

    asked: tuple[Asked, ...] = ()
    trouble: ModelError | None = None
    note: str | None = None

    @property
    def counted(self) -> tuple[Asked, ...]:
        return tuple(line for line in self.asked if not line.left_out)


class _Attempt(NamedTuple):
    """A line and what went wrong with it."""

    asked: Asked
    trouble: ModelError | None = None


def ask(
    jobs: Sequence[Job], stages: Stages, alike: Similarities, *, most: int, consistent: bool, tell: Tell
) -> list[Outcome]:
    """Return the outcome of each job, in order. At most `most` themes of an output count, spread evenly over it.

    `consistent` leaves out questions that the output does not answer with the theme. `tell` is called after each stage.
    Raises what the stages raise.
    """
    outputs = list(dict.fromkeys(job.output for job in jobs))
    candidates = dict(zip(outputs, stages.themes.themes(outputs), strict=True))
    themes = {
        output: [] if isinstance(listed, ModelError) else spread(listed, most) for output, listed in candidates.items()
    }
    tell(1, 4)
    questions = _ask_distinct([(t, o) for o in outputs for t in themes[o]], stages.questions.questions)
    tell(2, 4)
    to_answer = [
        (question, text)
        for job in jobs
        for theme in themes[job.output]
        if (question := questions[theme, job.output]) and not isinstance(question, ModelError)
        for text in (job.source, job.output)
    ]
    answers = _ask_distinct(to_answer, stages.answers.answers)
    tell(3, 4)
    lines = [[_attempt(theme, job, questions, answers, consistent) for theme in themes[job.output]] for job in jobs]
    language_of = dict(zip(jobs, languages([job.source for job in jobs]), strict=True))
    attempted = ((job, line.asked) for job, listed in zip(jobs, lines, strict=True) for line in listed)
    counted = [(language_of[job], counted_line) for job, counted_line in attempted if not counted_line.left_out]
    pairs = [(line.from_source, line.from_output) for _, line in counted]
    values = iter(alike.of(pairs, [language for language, _ in counted]))
    compared = [
        [
            line if line.asked.left_out else line._replace(asked=replace(line.asked, similarity=next(values)))
            for line in listed
        ]
        for listed in lines
    ]
    tell(4, 4)
    return [_outcome(candidates[job.output], listed) for job, listed in zip(jobs, compared, strict=True)]


def spread(themes: Sequence[str], most: int) -> list[str]:
    """Return at most `most` themes: all, or the middle ones of `most` equal parts of the list."""
    if len(themes) <= most:
        return list(themes)
    return [themes[(2 * place + 1) * len(themes) // (2 * most)] for place in range(most)]


def _ask_distinct(
    pairs: Sequence[tuple[str, str]], stage: Callable[[Sequence[tuple[str, str]]], list[_Answer]]
) -> dict[tuple[str, str], _Answer]:
    """Ask a stage about each distinct pair; replies are stripped of white space."""
    distinct = list(dict.fromkeys(pairs))
    replies = stage(distinct) if distinct else []
    stripped = (reply if isinstance(reply, ModelError) else reply.strip() for reply in replies)
    return dict(zip(distinct, stripped, strict=True))


def _attempt(
    theme: str,
    job: Job,
    questions: Mapping[tuple[str, str], _Answer],
    answers: Mapping[tuple[str, str], _Answer],
    consistent: bool,
) -> _Attempt:
    question = questions[theme, job.output]
    if not question:
        question = ModelError("NoQuestion", "the question came back empty")
    if isinstance(question, ModelError):
        return _Attempt(Asked(theme, "", "", "", {}, _reason(question)), question)
    both = answers[question, job.source], answers[question, job.output]
    source, output = ("" if isinstance(answer, ModelError) else answer for answer in both)
    trouble = next((answer for answer in both if isinstance(answer, ModelError)), None)
    left_out = ""
    if trouble:
        left_out = _reason(trouble)
    elif not source and not output:
        left_out = NEITHER
    elif consistent and normalised(output) != normalised(theme):
        left_out = OTHERWISE
    return _Attempt(Asked(theme, question, source, output, {}, left_out), trouble)


def _reason(trouble: ModelError) -> str:
    return f"{trouble.error}: {trouble.message}"


def kinds(lines: Iterable[Asked]) -> str:
    """Count the lines left out by kind of reason: `1 NoQuestion, 2 answered by neither`."""
    counts = Counter(line.left_out.partition(":")[0] for line in lines if line.left_out)
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))


def _outcome(themes: list[str] | ModelError, attempts: Sequence[_Attempt]) -> Outcome:
    if isinstance(themes, ModelError):
        return Outcome(trouble=themes)
    if not themes:
        message = "has no themes (nouns, names, amounts) to ask about: it is not measured"
        return Outcome(trouble=ModelError("NoThemes", message))
    asked = tuple(attempt.asked for attempt in attempts)
    parts = [f"{len(attempts)} of {len(themes)} themes asked"] if len(attempts) < len(themes) else []
    if left_out := sum(bool(line.left_out) for line in asked):
        parts.append(f"{left_out} of {len(attempts)} questions left out: {kinds(asked)}")
    note = "; ".join(parts) or None
    count = f"{len(attempts)} theme{'s' * (len(attempts) > 1)}"
    troubles = [attempt.trouble for attempt in attempts if attempt.trouble]
    if failed := [trouble for trouble in troubles if trouble.failed]:
        first = failed[0]
        message = f"is not measured: for {len(failed)} of {count} the judge gave no question or answer: {first.message}"
        return Outcome(asked, ModelError(first.error, message, failed=True), note)
    if not all(line.left_out for line in asked):
        return Outcome(asked, None, note)
    if len(troubles) == len(attempts) and len({trouble.error for trouble in troubles}) == 1:
        message = f"has {count}, none of which could be asked about: {troubles[0].message}"
        return Outcome(asked, ModelError(troubles[0].error, message), note)
    message = f"is not measured, as no question says anything: {note}"
    return Outcome(asked, ModelError("NothingAsked", message), note)
