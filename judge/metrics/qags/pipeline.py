"""From outputs and their sources to themes, questions and answers: everything distinct is asked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from judge.metrics.qags.nouns import languages
from judge.metrics.qags.similarity import Similarities
from judge.metrics.qags.stages import Answers, Asked, Questions, Tell, Themes, Trouble

_Answer = str | Trouble


class Job(NamedTuple):
    """An output and the source that it is checked against, neither of them blank."""

    output: str
    source: str


@dataclass(frozen=True, slots=True)
class Stages:
    """The back ends of the three stages."""

    themes: Themes
    questions: Questions
    answers: Answers

    @property
    def signature(self) -> str:
        """`themes=…|questions=…|answers=…`, as the stages are signed after their calls."""
        named = (("themes", self.themes), ("questions", self.questions), ("answers", self.answers))
        return "|".join(f"{name}={_signed(name, stage.signature)}" for name, stage in named)


def _signed(name: str, signature: str) -> str:
    """A stage's signature in one part of the column's, and without its own name if it has that."""
    key, equals, rest = signature.partition("=")
    return (rest if equals and key in (name, name[:-1]) else signature).replace("|", " ")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an output: its working, or `trouble`, why there is no value (the working may be there as well).

    The lines that count are `counted`. The others (answered by neither text, or without question or answer) have no
    similarity; `note` says how many these are, and why.
    """

    asked: tuple[Asked, ...] = ()
    counted: tuple[Asked, ...] = ()
    trouble: Trouble | None = None
    note: str | None = None


class _Line(NamedTuple):
    asked: Asked
    trouble: Trouble | None = None

    @property
    def compared(self) -> bool:
        return self.trouble is None and bool(self.asked.from_source or self.asked.from_output)

    @property
    def reason(self) -> str:
        """Why it is not compared."""
        return self.trouble.error if self.trouble else "answered by neither text"


def ask(jobs: Sequence[Job], stages: Stages, alike: Similarities, *, most: int, tell: Tell) -> list[Outcome]:
    """The outcome of each job, in order, of at most so many themes each, spread evenly over the output.

    `tell` is called after each of the stages. Raises what the stages raise.
    """
    outputs = list(dict.fromkeys(job.output for job in jobs))
    found = dict(zip(outputs, stages.themes.themes(outputs), strict=True))
    themes = {output: [] if isinstance(listed, Trouble) else spread(listed, most) for output, listed in found.items()}
    tell(1, 4)
    questions = _each([(t, o) for o in outputs for t in themes[o]], stages.questions.questions)
    tell(2, 4)
    answers = _each(_to_answer(jobs, themes, questions), stages.answers.answers)
    tell(3, 4)
    lines = [[_line(theme, job, questions, answers) for theme in themes[job.output]] for job in jobs]
    compared = [line.asked for listed in lines for line in listed if line.compared]
    spoken = dict(zip(jobs, languages([job.source for job in jobs]), strict=True))
    of = [spoken[job] for job, listed in zip(jobs, lines, strict=True) for line in listed if line.compared]
    values = iter(alike.of([(one.from_source, one.from_output) for one in compared], of))
    tell(4, 4)
    made = []
    for job, listed in zip(jobs, lines, strict=True):
        asked = [replace(line.asked, similarity=next(values)) if line.compared else line.asked for line in listed]
        made.append(_outcome(found[job.output], listed, tuple(asked)))
    return made


def spread(themes: Sequence[str], most: int) -> list[str]:
    """At most so many of the themes: all, or those in the middle of so many equal parts of the list."""
    if len(themes) <= most:
        return list(themes)
    return [themes[(2 * place + 1) * len(themes) // (2 * most)] for place in range(most)]


def _each(
    asked: Sequence[tuple[str, str]], stage: Callable[[Sequence[tuple[str, str]]], list[_Answer]]
) -> dict[tuple[str, str], _Answer]:
    """Each distinct pair with what the stage says of it; blank is nothing."""
    distinct = list(dict.fromkeys(asked))
    replies = stage(distinct) if distinct else []
    stripped = (reply if isinstance(reply, Trouble) else reply.strip() for reply in replies)
    return dict(zip(distinct, stripped, strict=True))


def _to_answer(
    jobs: Sequence[Job], themes: Mapping[str, list[str]], questions: Mapping[tuple[str, str], _Answer]
) -> list[tuple[str, str]]:
    return [
        (question, text)
        for job in jobs
        for theme in themes[job.output]
        if (question := questions[theme, job.output]) and not isinstance(question, Trouble)
        for text in (job.source, job.output)
    ]


def _line(
    theme: str,
    job: Job,
    questions: Mapping[tuple[str, str], _Answer],
    answers: Mapping[tuple[str, str], _Answer],
) -> _Line:
    question = questions[theme, job.output]
    if isinstance(question, Trouble):
        return _Line(Asked(theme, "", "", "", {}), question)
    if not question:
        return _Line(Asked(theme, "", "", "", {}), Trouble("NoQuestion", "the question came back empty"))
    source, output = answers[question, job.source], answers[question, job.output]
    asked = Asked(theme, question, _said(source), _said(output), {})
    return _Line(asked, next((answer for answer in (source, output) if isinstance(answer, Trouble)), None))


def _said(answer: _Answer) -> str:
    return "" if isinstance(answer, Trouble) else answer


def _outcome(found: list[str] | Trouble, lines: Sequence[_Line], asked: tuple[Asked, ...]) -> Outcome:
    if isinstance(found, Trouble):
        return Outcome(trouble=found)
    if not found:
        what = "has no themes (nouns, names, amounts) to ask about: it is not measured"
        return Outcome(trouble=Trouble("NoThemes", what))
    why = Counter(line.reason for line in lines if not line.compared)
    left = sum(why.values())
    parts = [f"{len(lines)} of {len(found)} themes asked"] if len(lines) < len(found) else []
    listed = ", ".join(f"{number} {reason}" for reason, number in sorted(why.items()))
    parts += [f"{left} of {len(lines)} questions left out: {listed}"] if left else []
    note = "; ".join(parts) or None
    counted = tuple(one for line, one in zip(lines, asked, strict=True) if line.compared)
    return Outcome(asked, counted, None if counted else _nothing(lines, note), note)


def _nothing(lines: Sequence[_Line], note: str | None) -> Trouble:
    """Why an output has no line that counts: what all of them met with, or that nothing could be asked."""
    first = lines[0].trouble
    if first and all(line.trouble and line.trouble.error == first.error for line in lines):
        return Trouble(first.error, f"has {len(lines)} themes, none of which could be asked about: {first.message}")
    return Trouble("NothingAsked", f"is not measured, as no question says anything: {note}")
