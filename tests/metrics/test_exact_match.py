"""Exact match: equal texts, contained texts, case, several references."""

from __future__ import annotations

import pytest

from judge.core.records import Failure, Sample
from judge.metrics import exact_match


@pytest.mark.parametrize(
    ("output", "references", "options", "value"),
    [
        ("Paris", "Paris", {}, 1),
        (" Paris\n", "Paris", {}, 1),
        ("Paris.", "Paris", {}, 0),
        ("paris", "Paris", {}, 0),
        ("PARIS", "paris", {"ignore_case": True}, 1),
        ("It is Paris.", "Paris", {"contains": True}, 1),
        ("It is paris.", "Paris", {"contains": True}, 0),
        ("It is paris.", "PARIS", {"contains": True, "ignore_case": True}, 1),
        ("Lyon", ["Paris", "Lyon"], {}, 1),
        ("東京です", "東京", {"contains": True}, 1),
        ("", "Paris", {}, 0),
    ],
)
def test_values_by_hand(
    output: str, references: str | list[str], options: dict[str, bool], value: float
) -> None:
    assert exact_match.score([output], [references], **options) == [value]


def test_a_missing_reference_is_a_failure() -> None:
    (row,) = exact_match.ExactMatch().score([Sample("1", "a", "x")]).rows
    assert isinstance(row, Failure)
    assert row.error == "NoReference"
