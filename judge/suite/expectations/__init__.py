"""The expectations of cases: one class per module, and their union."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import Discriminator, Tag

from judge.suite.expectations.agreement import Agreement
from judge.suite.expectations.case import Case
from judge.suite.expectations.drift import Drift
from judge.suite.expectations.label import Label
from judge.suite.expectations.order import Order
from judge.suite.expectations.score_range import ScoreRange


def matching_classes(keys: Mapping[str, Any]) -> list[type[Case]]:
    """Return the classes that match these keys; exactly one for a valid case."""
    return [expectation for expectation in EXPECTATIONS if expectation.matches(keys)]


def _tag(keys: Any) -> str | None:
    matching = matching_classes(keys) if isinstance(keys, dict) else []
    return matching[0].__name__ if len(matching) == 1 else None


Expectation = Annotated[
    Annotated[ScoreRange, Tag("ScoreRange")]
    | Annotated[Label, Tag("Label")]
    | Annotated[Order, Tag("Order")]
    | Annotated[Agreement, Tag("Agreement")]
    | Annotated[Drift, Tag("Drift")],
    Discriminator(_tag),
]
EXPECTATIONS: tuple[type[Case], ...] = tuple(get_args(tagged)[0] for tagged in get_args(get_args(Expectation)[0]))
