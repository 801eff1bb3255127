"""What a run judges, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from judge.core.records import Criterion, Failure, Sample, Score
from judge.criteria.checklist import has_questions, questions_of
from judge.scoring import checklist

Row = Score | Failure
_LONG = 1_024
"""Characters of the shortest source that may be a prefix worth caching: a token is a character or more."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """One thing to be judged: a sample by a criterion, or a sample, shown first, against a rival."""

    sample: Sample
    criterion: Criterion
    rival: Sample | None = None

    @property
    def rival_name(self) -> str:
        """The rival's system, "" without one."""
        return self.rival.system if self.rival else ""

    @property
    def judged_text(self) -> str:
        """The judged texts, which no score must come from."""
        texts = (self.sample, self.rival) if self.rival else (self.sample,)
        return "\n".join(sample.output for sample in texts)


def by_question(judgments: Iterable[Judgment]) -> Iterator[Judgment]:
    """Replace every judgment by a checklist with one for each question about its text.

    A text without the questions that its column should have keeps one judgment, which fails when it is rendered.
    Raises DataError if its column has anything else.
    """
    parts: dict[str, list[Criterion]] = {}
    for judgment in judgments:
        criterion = judgment.criterion
        if not criterion.is_checklist:
            yield judgment
            continue
        if criterion.name not in parts:
            parts[criterion.name] = checklist.parts(criterion)
        count = 1
        if has_questions(criterion, judgment.sample):
            count = len(questions_of(criterion, judgment.sample))
        for part in parts[criterion.name][:count]:
            yield Judgment(judgment.sample, part)


def by_document(judgments: Sequence[Judgment]) -> Iterator[Judgment]:
    """Put judgments on one source together if sources are long enough for a provider to cache them."""
    place: dict[str, int] = {}
    long = False
    for judgment in judgments:
        source = judgment.sample.source or ""
        place.setdefault(source, len(place))
        long = long or len(source) >= _LONG
    if not long:
        return iter(judgments)
    order = sorted(range(len(judgments)), key=lambda n: place[judgments[n].sample.source or ""])
    return (judgments[n] for n in order)


def by_prompt(judgments: Iterable[Judgment]) -> Iterator[list[Judgment]]:
    """Put judgments together that share a prompt: the questions of a checklist about one text, asked together."""

    def prompt(judgment: Judgment) -> tuple[int, str] | int:
        criterion = judgment.criterion
        if criterion.part and criterion.together:
            return id(judgment.sample), checklist.whole(criterion).name
        return id(judgment)

    for _, group in groupby(judgments, key=prompt):
        yield list(group)
