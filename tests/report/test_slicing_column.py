"""The column of the data that a report suggests for its slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import judge
from judge.core.records import Sample
from judge.report.views.slicing_column import slicing_column
from judge.table import Table


def samples(extra: Callable[[int, str], Mapping[str, Any]]) -> tuple[Sample, ...]:
    """Return two systems' texts of 20 items with the data's own columns."""
    return tuple(
        Sample(f"i{n}", system, "text", extra=extra(n, system))
        for n in range(20)
        for system in "ab"
    )


def test_a_column_that_divides_the_items_into_groups_is_suggested() -> None:
    grouped = samples(lambda n, _: {"ticket": f"T{n}", "channel": "web" if n % 3 else "mail"})
    assert slicing_column(Table(grouped, (), ())) == "channel"


@pytest.mark.parametrize(
    "extra",
    [
        lambda n, _: {},
        lambda n, _: {"channel": "web"},
        lambda n, _: {"ticket": f"T{n}"},
        lambda n, _: {"channel": "mail" if n < 4 else "web"},
        lambda n, system: {"checked_by": "anna" if system == "a" else "ben"},
        lambda n, _: {"channel": "web" if n % 2 else None},
        lambda n, _: {"stars": 1 + n % 2},
        lambda n, _: {"stars": f"{n % 2}.5"},
    ],
    ids=[
        "no column",
        "one value",
        "a name",
        "too few items",
        "differs in an item",
        "missing",
        "a number",
        "a number as text",
    ],
)
def test_a_column_without_groups_is_not_suggested(
    extra: Callable[[int, str], Mapping[str, Any]],
) -> None:
    assert slicing_column(Table(samples(extra), (), ())) == ""


@pytest.mark.parametrize("header", ["good", "good (0-1)", "good（0～1）"])
def test_a_column_that_scores_were_read_from_is_not_suggested(header: str) -> None:
    rows = [{"item": n, header: "yes" if n % 2 else "no"} for n in range(20)]
    result = judge.evaluate(rows, judge_columns="good", cache=False)
    assert slicing_column(result.table) == ""
