"""Read the members of a JSON object with the places of their values."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    key: str
    value: object
    start: int
    end: int


def members(text: str, at: int) -> tuple[list[Member], int]:
    """Return the members of the JSON object at `at`, with the spans of their values, and the object's end.

    The standard decoder reports no spans, so the top level is walked here. Raises ValueError.
    """
    decoder = json.JSONDecoder(strict=False)
    members: list[Member] = []
    while True:
        key, at = decoder.raw_decode(text, _skip_whitespace(text, at + 1))
        at = _skip_whitespace(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise ValueError("a key and a colon are missing")
        start = _skip_whitespace(text, at + 1)
        value, end = decoder.raw_decode(text, start)
        members.append(Member(key, value, start, end))
        at = _skip_whitespace(text, end)
        if text[at : at + 1] == "}":
            return members, at + 1
        if text[at : at + 1] != ",":
            raise ValueError("a comma or the closing brace is missing")


def _skip_whitespace(text: str, at: int) -> int:
    """Return the next position without JSON white space."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at
