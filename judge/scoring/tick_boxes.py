"""Blank the options that a reply does not tick: "[ ] yes" beside "[x] no"."""

from __future__ import annotations

import re

# The boxes stand at the beginning of a line ("- [ ] yes", "1. [ ] yes") or after another option.
_BEFORE = r"(?:^[ \t>*•-]*+(?:[0-9]+[.)][ \t]*+)?|(?<=[ \t]))[*_]*+"
# "[ ] yes", "( ) yes", "☐ yes", to the end of the line or the next box
_UNTICKED = re.compile(
    rf"{_BEFORE}(?:\[[ \t]?\]|\([ \t]\)|☐)[*_]*+(?=[ \t]++[*_]*+\w)[^\n☐☑✅\[(]*+",
    re.MULTILINE,
)
# "[x]" of "[x] yes"
_TICK = re.compile(
    rf"{_BEFORE}(?:\[[xX✓✔]\]|\([xX✓✔]\)|☑)[*_]*+(?=[ \t]++[*_]*+\w)", re.MULTILINE
)


def has_boxes(text: str) -> bool:
    """Return whether a text has options with boxes, ticked or not."""
    return _UNTICKED.search(text) is not None or _TICK.search(text) is not None


def blank_unticked(text: str) -> str:
    """Return a text of the same length without ticks, and without the options that have none."""
    ticked = _UNTICKED.sub(_blank, text)
    return _TICK.sub(_blank, ticked)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
