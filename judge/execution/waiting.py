"""Who waits for which reply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from judge.core.records import Request, Response
from judge.execution.leases import Part
from judge.execution.pending import Case
from judge.scoring.strategies import Answer


class Waiting:
    """The cases that wait, by the keys of what they wait for. `resolve` gets each that has all it waited for."""

    def __init__(self, resolve: Callable[[Case], None]) -> None:
        self._resolve = resolve
        self._cases: dict[str, list[Case]] = {}

    def add(self, case: Case, requests: Mapping[str, Request], missing: Sequence[str]) -> list[Part]:
        """Have a case wait for what is missing; the parts of it that nobody waited for yet."""
        own = [(key, requests[key]) for key in missing if key not in self._cases]
        case.missing = len(missing)
        for key in missing:
            self._cases.setdefault(key, []).append(case)
        if not missing:
            self._resolve(case)
        return own

    def of(self, keys: Iterable[str]) -> list[Case]:
        """The cases that wait for any of these."""
        return list(dict.fromkeys(case for key in keys for case in self._cases[key]))

    def remove(self, keys: Iterable[str]) -> None:
        """Have nobody wait for these any more."""
        for key in keys:
            del self._cases[key]

    def answered(self, key: str, answer: Answer) -> list[Case]:
        """Hand on what came of a request of this run; the cases that waited for it."""
        cases = self._cases[key]
        cases[0].own = True
        for case in cases:
            case.asked = True
            if isinstance(answer, Response):
                case.fresh.add(key)
        return self.found(key, answer)

    def found(self, key: str, answer: Answer) -> list[Case]:
        """Hand on a reply that is in the cache; the cases that waited for it."""
        cases = self._cases.pop(key)
        for case in cases:
            case.answers[key] = answer
            case.missing -= 1
            if not case.missing:
                self._resolve(case)
        return cases
