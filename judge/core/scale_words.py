"""Words for the values of a scale whose labels are words, and for the least value that passes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from judge.core.format import minus
from judge.core.records import Column


def pass_text(column: Column) -> str:
    """Write the worst value that passes: `4`, or the label `good`.

    A label passes from the middle between its value and the next worse one (decision 71).
    """
    limit = column.pass_at or 0.0
    if in_words(column):
        levels = sorted(zip(column.values, column.labels, strict=True))
        passing_label = ""
        for (lower, lower_label), (higher, higher_label) in pairwise(levels):
            middle = (lower + higher) / 2
            if lower < higher and middle == limit:
                passing_label = higher_label
                if column.better == "lower":
                    passing_label = lower_label
        if passing_label:
            return passing_label
    return minus(f"{limit:g}")


def pass_mark(column: Column) -> str:
    """Write which values pass: `≥ 4`, or `≤ 2` if lower values are better."""
    sign = "≤" if column.better == "lower" else "≥"
    return f"{sign} {pass_text(column)}"


def in_words(column: Column) -> bool:
    """Return whether the labels of the column's scale are words, such as `pass` and `fail`."""
    return bool(column.values) and not is_numeric(column.labels)


def is_numeric(labels: Iterable[str]) -> bool:
    """Return whether all labels are numbers, such as `−1`, `+2` and `0.5`."""
    for label in labels:
        digits = label.lstrip("+-−").replace(".", "", 1)
        if not digits.isdigit():
            return False
    return True
