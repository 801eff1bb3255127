"""Pending judgments, the requests they wait for, and how requests travel together.

There is one `PendingRequest` for each reply that the cache would hold: every draw of a prompt, every question of a
checklist and every typed question has its own. It owns the judgments that wait for it, and its state:

    queued ──> in flight ──> answered  (with a reply, which is in the cache, or an error)
      ^            │
      └────────────┘  (the reply did not have it)

One message to the model, a bundle, carries as many of them as it can.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import chain, groupby, zip_longest
from typing import Any

from judge.core.records import Criterion, Failure, Prompt, Request, Response, Sample, Score, Usage
from judge.criteria.checklist import has_questions, questions_of
from judge.scoring import checklist, multi_criteria
from judge.scoring.strategies import MERGED, Answer, Repair, SamplingOptions, Strategy

Row = Score | Failure
_LONG = 1_024
"""Characters of the shortest source that may be a prefix worth caching: a token is a character or more."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """One thing to be judged: a sample by a criterion, or a sample, shown first, against a rival."""

    sample: Sample
    criterion: Criterion
    rival: Sample | None = None

    def judged(self, settings: SamplingOptions) -> str | None:
        """Return the judged texts, which no score must come from."""
        texts = (self.sample, self.rival) if self.rival else (self.sample,)
        return "\n".join(sample.output for sample in texts)


@dataclass(slots=True, eq=False)
class PendingJudgment:
    """A judgment in progress: `requests` are those of `strategies[0]`, by key, and `answers` the replies so far.

    `fallback` is a reply to an earlier strategy from which the strategy `single` can be read. `waited` is True once the
    judgment has waited for a request, and `requested_here` if that was sent for it and not for an equal judgment.
    `asked_again` is True if it failed on stored replies, which are to be replaced. `prefix` is that of its requests.
    In a `repair`, all else is about the question for the score alone, and `first` is the judgment as it was before.
    """

    judgment: Judgment
    prompt: Prompt
    strategies: list[Strategy]
    prefix: tuple[str, int] = ("", 0)
    notes: list[str] = field(default_factory=list)
    requests: dict[str, Request] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    fallback: Response | None = None
    repair: Repair | None = None
    first: PendingJudgment | None = None
    waited: bool = False
    requested_here: bool = False
    asked_again: bool = False

    @property
    def criteria(self) -> list[str]:
        """The names of all criteria, or parts of a checklist, that its prompt asks about."""
        return [name for name, _ in self.prompt.merged] or [self.judgment.criterion.name]

    @property
    def size(self) -> int:
        """Bytes that its prompt takes in memory."""
        return sum(sys.getsizeof(message["content"]) for message in self.prompt.messages)


class State(Enum):
    """How far a request is; the module's docstring shows the transitions."""

    QUEUED = auto()
    IN_FLIGHT = auto()
    ANSWERED = auto()


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request for one reply. `subscribers` are the judgments that wait for it, in the order they came."""

    key: str
    request: Request
    subscribers: dict[PendingJudgment, None] = field(default_factory=dict)
    state: State = State.QUEUED
    answer: Answer | None = None


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


def by_prompt(cases: Iterable[PendingJudgment]) -> Iterator[list[PendingJudgment]]:
    """Put judgments together that follow each other and share their messages: the questions of a checklist."""
    return (list(group) for _, group in groupby(cases, key=lambda case: id(case.prompt.messages)))


class Bundles:
    """The bundles that are queued or in flight, and the requests that each carries.

    Up to `draws` draws of one prompt are one bundle. The questions of a checklist are one bundle too, unless whoever
    answers has their replies `apart`.
    """

    def __init__(self, *, draws: int, apart: bool) -> None:
        self._draws, self._apart = draws, apart
        self._requests: dict[str, list[PendingRequest]] = {}

    def __getitem__(self, bundle: Request) -> list[PendingRequest]:
        return self._requests[bundle.key()]

    def pop(self, bundle: Request) -> list[PendingRequest]:
        """Return the requests of a bundle that has been answered, and forget it."""
        return self._requests.pop(bundle.key())

    def clear(self) -> None:
        """Forget all bundles; none may be in flight."""
        self._requests.clear()

    def make(self, requests: Iterable[PendingRequest]) -> Iterator[Request]:
        """Yield the bundles for these requests, without those that join one in flight."""
        groups: dict[tuple[object, ...], list[list[PendingRequest]]] = {}
        for pending in requests:
            messages = tuple(tuple(message.items()) for message in pending.request.messages)
            alike = groups.setdefault(messages, [])
            for group in alike:
                if self._params(group[0].request) == self._params(pending.request):
                    group.append(pending)
                    break
            else:
                alike.append([pending])
        for group in chain.from_iterable(groups.values()):
            rows = self._rows(group)
            for first in range(0, len(rows), self._draws):
                some = rows[first : first + self._draws]
                members = [pending for row in some for pending in row]
                bundle = members[0].request
                if len(members) > 1 or MERGED in bundle.params:
                    params: dict[str, Any] = self._params(bundle)
                    if len(some) > 1:
                        params = params | {"n": len(some)}
                    bundle = replace(bundle, params=params)
                if (queued := self._requests.get(bundle.key())) is not None:
                    queued += members
                else:
                    self._requests[bundle.key()] = members
                    yield bundle

    def split(
        self, members: Sequence[PendingRequest], answer: Response
    ) -> list[tuple[PendingRequest, Response | None]]:
        """Return the part of an answer that is each request's; None if it is missing and has to be asked for again.

        The usage stays with the first. Without any choice, the answer is everybody's.
        """
        merged = MERGED in members[0].request.params and not self._apart
        if not answer.choices or (len(members) == 1 and not merged):
            return [(pending, answer) for pending in members]
        rows = self._rows(members)
        if len(answer.choices) < len(rows):  # a server draws no more at once than it just did
            self._draws = min(self._draws, len(answer.choices))
        bare = replace(
            answer, usage=Usage(), unmet=tuple(name for name in answer.unmet if name != "n")
        )
        parts: list[tuple[PendingRequest, Response | None]] = []
        for row, choice in zip_longest(rows, answer.choices[: len(rows)]):
            if choice is None:
                parts += [(pending, None) for pending in row]
                continue
            names = [pending.request.params.get(MERGED, "") for pending in row]
            judged = next((case.judgment.sample.output for case in row[0].subscribers), None)
            choices = (
                multi_criteria.split_reply(choice, names, judged) if merged else [choice] * len(row)
            )
            usage = Usage() if parts else answer.usage
            for pending, part in zip(row, choices, strict=True):
                parts.append((pending, replace(bare, choices=(part,), usage=usage)))
                usage = Usage()
        return parts

    def _rows(self, requests: Iterable[PendingRequest]) -> list[list[PendingRequest]]:
        """Return the requests that one choice of the answer is for: those of one draw."""
        rows: dict[int, list[PendingRequest]] = {}
        for pending in requests:
            rows.setdefault(pending.request.draw, []).append(pending)
        return list(rows.values())

    def _params(self, request: Request) -> dict[str, Any]:
        """Return the parameters that are sent."""
        return {
            name: value for name, value in request.params.items() if self._apart or name != MERGED
        }
