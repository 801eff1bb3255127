"""As few requests as possible: draws of one prompt, questions on one text, or criteria in one prompt, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from judge.core.records import Request, Response, Usage
from judge.execution.leases import Part
from judge.scoring import multi_criteria
from judge.scoring.strategies import MERGED

_MOST_QUESTIONS = 100


class Bundles:
    """The requests under way and the parts each was made of.

    `decides` bundles the questions on one text, else up to `draws` draws of one prompt are one request. Criteria merged
    in one prompt are one request too, unless whoever answers has their replies `apart`.
    """

    def __init__(self, *, decides: bool, draws: int, apart: bool = False) -> None:
        self._decides, self._draws, self._apart = decides, draws, apart
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._alone: set[str] = set()

    def of(self, parts: Iterable[Part]) -> Iterator[Request]:
        """The requests that ask for these parts; none where one under way is the same and brings them too."""
        alike: dict[tuple[object, ...], list[Part]] = {}
        for key, request in parts:
            kind = "" if self._decides else str(sorted(self._sent(request).items()))
            kind = key if key in self._alone else kind
            alike.setdefault((kind, *(tuple(m.items()) for m in request.messages)), []).append((key, request))
        for group in alike.values():
            rows = [[part] for part in group] if self._decides else _by_draw(group)
            size = _MOST_QUESTIONS if self._decides else self._draws
            for first in range(0, len(rows), size):
                bundle = self._bundled(tuple(part for row in rows[first : first + size] for part in row))
                if bundle is not None:
                    yield bundle

    def _sent(self, request: Request) -> dict[str, Any]:
        """The parameters that are sent for a part."""
        return {name: value for name, value in request.params.items() if self._apart or name != MERGED}

    def _bundled(self, parts: tuple[Part, ...]) -> Request | None:
        key, first = parts[0]
        bundle = first
        if len(parts) > 1 or MERGED in first.params:
            bundle = _questions(parts) if self._decides else self._drawn(parts)
            key = bundle.key()
        under_way = self._parts.get(key, ())
        self._parts[key] = under_way + parts
        return None if under_way else bundle

    def _drawn(self, parts: Sequence[Part]) -> Request:
        draws, first = len(_by_draw(parts)), parts[0][1]
        return replace(first, params=self._sent(first) | ({"n": draws} if draws > 1 else {}))

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

    def lacking(self, parts: Sequence[Part], answer: Response) -> Sequence[Part]:
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
                one
                for choice, row in zip(answer.choices, names, strict=False)
                for one in multi_criteria.split(choice, row)
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


def _questions(parts: Sequence[Part]) -> Request:
    questions = [question for _, part in parts for question in part.params["questions"]]
    return replace(parts[0][1], params={"questions": questions})
