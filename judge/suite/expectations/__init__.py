"""The kinds of cases: one module each, which checks, describes and decides the cases of its kind."""

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
        """How an undecided case counts: pass or fail."""
        ...

    def sentence(self, case: Case, expected: Any) -> str:
        """The expectation as a sentence, the default name of a case."""
        ...

    def check(self, expected: Any, criterion: Criterion, texts: Sequence[Sample]) -> None:
        """Raises ConfigError for what cannot be expected of these texts on this criterion's scale."""
        ...

    def expected(self, context: CaseContext, expected: Any) -> str:
        """The expectation in short: `≥ 4`."""
        ...

    def decide(self, context: CaseContext, expected: Any) -> CaseOutcome:
        """Decide the case from its scores. Raises Undecidable if there is nothing to decide from."""
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
