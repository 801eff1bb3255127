"""The helpers that tests use to check text do not accept too much."""

from __future__ import annotations

import pytest

from tests.factories import has_line, lines_hold


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("b trails by 1.00 (p < 0.001).", ("b", "1.00", "p < 0.001")),
        ("first\n5 of 6 texts", ("5", "6 texts")),
        ("5. The next sentence.", ("5", "next")),
        ("−0.50 [−0.61, −0.39]", ("0.50", "0.61")),
        ("15 (.05 / 3 comparisons)", ("15", ".05 / 3")),
    ],
)
def test_a_line_holds_facts_in_their_order(text: str, facts: tuple[str, ...]) -> None:
    assert has_line(text, *facts)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("first 5\nsecond 6", ("5", "6")),
        ("6 of 5 texts", ("5", "6")),
        ("15 texts", ("5",)),
        ("51 texts", ("5",)),
        ("0.5 points", ("5",)),
        ("5.5 points", ("5",)),
        ("5,000 points", ("5",)),
        ("1,005 points", ("005",)),
        ("5.50 points", ("5.5",)),
        ("5 texts", ("5", "5")),
    ],
)
def test_other_lines_orders_and_numbers_hold_no_fact(text: str, facts: tuple[str, ...]) -> None:
    assert not has_line(text, *facts)


def test_each_line_needs_its_own_facts() -> None:
    lines = ["a beats b", "c has 5 of 6 texts"]
    assert lines_hold(lines, [("a", "b"), ("5", "6")])
    assert not lines_hold(lines, [("a", "b")])
    assert not lines_hold(lines, [("5", "6"), ("a", "b")])
    assert not lines_hold(lines, [("a", "b"), ("5", "6"), ("c",)])
