"""The kinds of cases: one module each, with all that is to be known of what such a case expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from judge.core.records import Criterion, Sample
from judge.suite.expectations import agreement, drift, label, order, score_range
from judge.suite.expectations.context import CaseContext, CaseOutcome
from judge.suite.records import Case, Kind, Policy


class Expectation(Protocol):
    """A module of this package; `expected` is what a case of its kind expects."""

    @property
    def UNDECIDED(self) -> Policy:  # noqa: N802
        """What a case counts as whose numbers show neither that it holds nor that it does not."""
        ...

    def sentence(self, case: Case, expected: Any) -> str:
        """What a case says, as its name."""
        ...

    def check(self, expected: Any, criterion: Criterion, texts: Sequence[Sample]) -> None:
        """Raises ConfigError for what cannot be expected of these texts on this criterion's scale."""
        ...

    def expected(self, context: CaseContext, expected: Any) -> str:
        """What is expected in short: `≥ 4`."""
        ...

    def decide(self, context: CaseContext, expected: Any) -> CaseOutcome:
        """What the scores say of it. Raises Undecidable where there is nothing to decide from."""
        ...


_HOMES: Mapping[Kind, Expectation] = {
    "band": score_range,
    "label": label,
    "order": order,
    "agreement": agreement,
    "drift": drift,
}


def for_case(case: Case) -> Expectation:
    """The module of a case's kind."""
    return _HOMES[case.kind]
