"""The judgments of a run, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from judge.core.records import Criterion, Failure, Sample, Score
from judge.criteria.checklist import has_questions, questions_of
from judge.scoring import checklist

Row = Score | Failure
# Characters of the shortest source that a provider may cache: prefixes below 1,024 tokens are not
# cached, and a token has at least one character.
_SHORTEST_CACHED = 1_024


@dataclass(frozen=True, slots=True)
class Judgment:
    """A sample and a criterion, or a sample, shown first, and its opponent."""

    sample: Sample
    criterion: Criterion
    opponent: Sample | None = None

    @property
    def opponent_name(self) -> str:
        """The opponent's system, "" without one."""
        return self.opponent.system if self.opponent else ""

    @property
    def judged_text(self) -> str:
        """The judged texts, which no score must come from."""
        if self.opponent is None:
            return self.sample.output
        return f"{self.sample.output}\n{self.opponent.output}"


def by_question(judgments: Iterable[Judgment]) -> Iterator[Judgment]:
    """Replace every judgment by a checklist with one for each question about its text.

    A text whose column has no questions has one judgment, which fails when it is rendered. Raises
    DataError if the column has anything else.
    """
    parts: dict[str, list[Criterion]] = {}
    for judgment in judgments:
        criterion = judgment.criterion
        if not criterion.is_checklist:
            yield judgment
            continue
        if criterion.name not in parts:
            parts[criterion.name] = checklist.parts(criterion)
        n_questions = 1
        if has_questions(criterion, judgment.sample):
            n_questions = len(questions_of(criterion, judgment.sample))
        for part in parts[criterion.name][:n_questions]:
            yield Judgment(judgment.sample, part)


def by_document(judgments: Sequence[Judgment]) -> Iterator[Judgment]:
    """Put judgments on one source together if a provider may cache the source."""
    position_by_source: dict[str, int] = {}
    for judgment in judgments:
        source = judgment.sample.source or ""
        position_by_source.setdefault(source, len(position_by_source))
    if all(len(source) < _SHORTEST_CACHED for source in position_by_source):
        return iter(judgments)

    def position(judgment: Judgment) -> int:
        return position_by_source[judgment.sample.source or ""]

    # The sort is stable, so judgments on one source keep their order.
    return iter(sorted(judgments, key=position))


def by_prompt(judgments: Iterable[Judgment]) -> Iterator[list[Judgment]]:
    """Group judgments that share a prompt: a checklist's `together` questions about a text."""

    def prompt(judgment: Judgment) -> tuple[int, str] | int:
        criterion = judgment.criterion
        if criterion.part and criterion.together:
            return id(judgment.sample), checklist.whole(criterion).name
        return id(judgment)

    for _, group in groupby(judgments, key=prompt):
        yield list(group)
