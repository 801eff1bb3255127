"""What is to be judged, and how far it is on its way down the ladder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from judge.core.records import Criterion, Failure, Prompt, Request, Response, Sample, Score
from judge.scoring.strategies import Answer, Rung

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
class Case:
    """A judgment on its way down the ladder: `rungs[0]` is being tried, and `missing` of its replies are to come.

    `requests` are those of this rung by their keys, `answers` what they brought; `fresh` are the keys of what the cache
    does not hold yet. `spare` is a reply from a higher rung that `single` can be read from. `asked` says that it waited
    for requests, `own` that some of them were sent for it and not for an equal one. `prefix` is its requests'.
    """

    judgment: Judgment
    prompt: Prompt
    rungs: list[Rung]
    prefix: tuple[str, int] = ("", 0)
    notes: list[str] = field(default_factory=list)
    answers: dict[str, Answer | None] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    missing: int = 0
    spare: Response | None = None
    asked: bool = False
    own: bool = False

    @property
    def size(self) -> int:
        """Bytes that its prompt takes in memory."""
        return sum(sys.getsizeof(message["content"]) for message in self.prompt.messages)


def firsts(judgments: Sequence[Judgment]) -> dict[str, Judgment]:
    """The first judgment of each criterion, by its name."""
    found: dict[str, Judgment] = {}
    for judgment in judgments:
        found.setdefault(judgment.criterion.name, judgment)
    return found


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


def chunks(cases: Iterator[Case], first: int, size: int, put_back: Callable[[Case], None]) -> Iterator[list[Case]]:
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
