"""Blank a percentage that repeats the fraction before it: "4/5 = 80%"."""

from __future__ import annotations

import re

_FRACTION_AND_PERCENT = re.compile(
    r"(?<![0-9.,/])(?P<fraction>(?P<number>[0-9]{1,3}(?:\.[0-9])?)\s?/\s?(?P<top>[0-9]{1,3}))"
    r"\s?[=≈]\s?(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,2})?)\s?%"
)
_ROUNDING = 0.5


def blank_repeated_percent(text: str) -> str:
    """Return a text of the same length without the percentages that repeat a fraction."""
    return _FRACTION_AND_PERCENT.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    """Return a match without its percentage; all of it if that is another share."""
    top = float(match["top"])
    if not top:
        return match[0]
    percent = 100 * float(match["number"]) / top
    if abs(percent - float(match["percent"])) > _ROUNDING:
        return match[0]
    fraction: str = match["fraction"]
    return fraction.ljust(len(match[0]))
