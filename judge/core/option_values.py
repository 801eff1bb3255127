"""Values as users write them: `a=b,c=d`, the ends of a scale, `1-5`, and numbers in a table."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_LARGEST = 1e15  # of a number in a table; whole numbers up to this are exact
# "4", "-1", "0.5"
_NUMBER = r"-?\d+(?:\.\d+)?"
# "1-5", "0 to 1", "-1..1", "1–5", "1〜5"
_ENDS = re.compile(rf"\s*({_NUMBER})\s*(?:[-–—~〜]|\.\.|to)\s*({_NUMBER})\s*")


def parse_ends(value: Any) -> tuple[float, float]:
    """Return the lowest and the highest value of a scale, from `1-5` or a list of two numbers.

    Raises ValueError.
    """
    numbers = two_numbers(value)
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise ValueError("write the lowest and the highest value, such as 1-5")
    return numbers[0], numbers[1]


def two_numbers(value: Any) -> list[float]:
    """Return the numbers of `1-5` or of a list, in any order; fewer if it is something else."""
    # A command line gives a list of texts.
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    ends: Any = value
    if isinstance(value, str):
        # "１～５" in full width is "1~5".
        match = _ENDS.fullmatch(unicodedata.normalize("NFKC", value))
        ends = match.groups() if match else ()
    numbers: list[float] = []
    if isinstance(ends, list | tuple):
        for end in ends:
            number = finite_number(end)
            if number is not None:
                numbers.append(number)
    return numbers


def finite_number(cell: Any) -> float | None:
    """Return the number in a cell, None if it has none; true and false are no numbers.

    Nor is a number beyond ±1e15: no score is that large, and sums of squares might overflow.
    """
    if isinstance(cell, bool):
        return None
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if abs(value) <= _LARGEST else None


def parse_assignments(text: str, form: str) -> dict[str, list[str]]:
    """Return the values of each name in `a=b,c=d`.

    A comma belongs to the value unless NAME= follows.

    Raises ValueError, with the `form` to write.
    """
    values: dict[str, list[str]] = {}
    for assignment in re.split(r",(?=[^,=]+=)", text):
        name, equals, value = (piece.strip() for piece in assignment.partition("="))
        if not (equals and name and value):
            raise ValueError(f"write {form}")
        values.setdefault(name, []).append(value)
    return values
