"""Pending judgments, the requests they wait for, and the batching of those requests.

One request carries as much as it can: the draws of one prompt, the questions on one text, or merged criteria.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from judge.core.records import Criterion, Failure, Prompt, Request, Response, Sample, Score, Usage
from judge.execution.leases import Part
from judge.scoring import multi_criteria
from judge.scoring.strategies import MERGED, Answer, Strategy

Row = Score | Failure
_LONG = 1_024
"""Characters of the shortest source that may be a prefix worth caching: a token is a character or more."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """One thing to be judged: a sample by a criterion, or a sample, shown first, against a rival."""

    sample: Sample
    criterion: Criterion
    rival: Sample | None = None


@dataclass(slots=True, eq=False)
class PendingJudgment:
    """A judgment in progress: `strategies[0]` is being tried, and `missing` of its replies are still to come.

    `requests` are those of this strategy by their keys, `answers` their replies. `uncached` are the keys of replies
    that the cache does not hold yet. `fallback` is a reply to an earlier strategy from which the strategy `single` can
    be read. `waited` says that the judgment waited for requests, `requested_here` that some of them were sent for it
    and not for an equal one. `prefix` is its requests'.
    """

    judgment: Judgment
    prompt: Prompt
    strategies: list[Strategy]
    prefix: tuple[str, int] = ("", 0)
    notes: list[str] = field(default_factory=list)
    answers: dict[str, Answer | None] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    uncached: set[str] = field(default_factory=set)
    missing: int = 0
    fallback: Response | None = None
    waited: bool = False
    requested_here: bool = False

    @property
    def size(self) -> int:
        """Bytes that its prompt takes in memory."""
        return sum(sys.getsizeof(message["content"]) for message in self.prompt.messages)


def firsts(judgments: Sequence[Judgment]) -> dict[str, Judgment]:
    """The first judgment of each criterion, by its name."""
    by_criterion: dict[str, Judgment] = {}
    for judgment in judgments:
        by_criterion.setdefault(judgment.criterion.name, judgment)
    return by_criterion


def by_document(judgments: Sequence[Judgment]) -> Iterator[Judgment]:
    """The judgments, those on one source together where sources are long enough for a provider to cache them."""
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


def chunks(
    cases: Iterator[PendingJudgment], first: int, size: int, put_back: Callable[[PendingJudgment], None]
) -> Iterator[list[PendingJudgment]]:
    """The cases in lists: one of `first` of them, then `size` at a time, and those of one prompt together.

    `put_back` takes a case that `cases` is to give once more.
    """
    while chunk := list(islice(cases, first)):
        while (following := next(cases, None)) is not None:
            if following.prompt.messages is not chunk[-1].prompt.messages:
                put_back(following)
                break
            chunk.append(following)
        yield chunk
        first = size


class Subscribers:
    """The cases that wait, by the keys of what they wait for. `resolve` gets each that has all it waited for."""

    def __init__(self, resolve: Callable[[PendingJudgment], None]) -> None:
        self._resolve = resolve
        self._cases: dict[str, list[PendingJudgment]] = {}

    def add(self, case: PendingJudgment, requests: Mapping[str, Request], missing: Sequence[str]) -> list[Part]:
        """Have a case wait for what is missing; the parts of it that nobody waited for yet."""
        new_parts = [(key, requests[key]) for key in missing if key not in self._cases]
        case.missing = len(missing)
        for key in missing:
            self._cases.setdefault(key, []).append(case)
        if not missing:
            self._resolve(case)
        return new_parts

    def waiting_for(self, keys: Iterable[str]) -> list[PendingJudgment]:
        """The cases that wait for any of these."""
        return list(dict.fromkeys(case for key in keys for case in self._cases[key]))

    def remove(self, keys: Iterable[str]) -> None:
        """Have nobody wait for these any more."""
        for key in keys:
            del self._cases[key]

    def answered(self, key: str, answer: Answer) -> list[PendingJudgment]:
        """Hand on what came of a request of this run; the cases that waited for it."""
        cases = self._cases[key]
        cases[0].requested_here = True
        for case in cases:
            case.waited = True
            if isinstance(answer, Response):
                case.uncached.add(key)
        return self.deliver(key, answer)

    def deliver(self, key: str, answer: Answer) -> list[PendingJudgment]:
        """Hand on a reply that is in the cache; the cases that waited for it."""
        cases = self._cases.pop(key)
        for case in cases:
            case.answers[key] = answer
            case.missing -= 1
            if not case.missing:
                self._resolve(case)
        return cases


_MOST_QUESTIONS = 100


class RequestBatcher:
    """The requests under way and the parts each was made of.

    `decides` bundles the questions on one text, else up to `draws` draws of one prompt are one request. Criteria merged
    in one prompt are one request too, unless whoever answers has their replies `apart`.
    """

    def __init__(self, *, decides: bool, draws: int, apart: bool = False) -> None:
        self._decides, self._draws, self._apart = decides, draws, apart
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._alone: set[str] = set()

    def requests_for(self, parts: Iterable[Part]) -> Iterator[Request]:
        """The requests that ask for these parts; none where one under way is the same and brings them too."""
        alike: dict[tuple[object, ...], list[Part]] = {}
        for key, request in parts:
            kind = "" if self._decides else str(sorted(self._sent_params(request).items()))
            kind = key if key in self._alone else kind
            alike.setdefault((kind, *(tuple(m.items()) for m in request.messages)), []).append((key, request))
        for group in alike.values():
            rows = [[part] for part in group] if self._decides else _by_draw(group)
            size = _MOST_QUESTIONS if self._decides else self._draws
            for first in range(0, len(rows), size):
                bundled = tuple(part for row in rows[first : first + size] for part in row)
                key, bundle = bundled[0]
                if len(bundled) > 1 or MERGED in bundle.params:
                    if self._decides:
                        questions = [question for _, part in bundled for question in part.params["questions"]]
                        params = {"questions": questions}
                    else:
                        draws = len(_by_draw(bundled))
                        params = self._sent_params(bundle) | ({"n": draws} if draws > 1 else {})
                    bundle = replace(bundle, params=params)
                    key = bundle.key()
                under_way = self._parts.get(key, ())
                self._parts[key] = under_way + bundled
                if not under_way:
                    yield bundle

    def _sent_params(self, request: Request) -> dict[str, Any]:
        """The parameters that are sent for a part."""
        return {name: value for name, value in request.params.items() if self._apart or name != MERGED}

    def parts(self, request: Request) -> tuple[Part, ...]:
        """The parts of a request under way."""
        return self._parts[request.key()]

    def pop(self, request: Request) -> tuple[Part, ...]:
        """The parts of a request that is no longer under way."""
        return self._parts.pop(request.key())

    def refused(self, parts: Sequence[Part]) -> bool:
        """Whether to ask for these parts again, each alone: one question may be what all were refused for."""
        if len(parts) == 1 or not self._decides:
            return False
        self._alone.update(key for key, _ in parts)
        return True

    def missing_parts(self, parts: Sequence[Part], answer: Response) -> Sequence[Part]:
        """The parts that an answer has nothing for. What a server draws at once is not more than it just did."""
        rows = [[part] for part in parts] if self._decides else _by_draw(parts)
        got = len(answer.choices)
        if not 0 < got < len(rows):
            return ()
        self._draws = min(self._draws, got)
        return [part for row in rows[got:] for part in row]

    def split(self, parts: Sequence[Part], answer: Response) -> list[Response]:
        """An answer as one for each part in turn, as far as it goes; the usage stays with the first.

        Without any reply, it is what each part gets.
        """
        merged = MERGED in parts[0][1].params and not self._apart
        if (len(parts) == 1 and not merged) or not answer.choices:
            return [answer] * len(parts)
        choices = answer.choices
        if merged:
            rows = _by_draw(parts)
            names = [[part.params[MERGED] for _, part in row] for row in rows]
            choices = tuple(
                part_choice
                for choice, row in zip(answer.choices, names, strict=False)
                for part_choice in multi_criteria.split_reply(choice, row)
            )
        bare = replace(answer, usage=Usage(), unmet=tuple(name for name in answer.unmet if name != "n"))
        first, *others = (replace(bare, choices=(choice,)) for choice in choices)
        return [replace(first, usage=answer.usage), *others]


def _by_draw(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of each draw."""
    rows: dict[int, list[Part]] = {}
    for part in parts:
        rows.setdefault(part[1].draw, []).append(part)
    return list(rows.values())
