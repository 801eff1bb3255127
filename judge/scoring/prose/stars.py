"""Blank stars that repeat the number beside them: "4/5 ★★★★☆", "⭐⭐⭐⭐ (4/5)"."""

from __future__ import annotations

import re

_STARS = r"(?<![★⭐🌟☆✩])(?P<full>[★⭐🌟]++)(?P<empty>[☆✩]*+)(?![.0-9★⭐🌟])"
_NUMBER = (
    r"(?<![0-9.,/])(?P<number>[0-9]{1,3})(?:\s*+/\s*+(?P<top>[0-9]{1,3}))?(?![0-9.,/])"
)
_BETWEEN = r"[ *_()\[\]:–-]{0,8}"
_STARS_AND_NUMBER = re.compile(rf"(?P<head>){_STARS}{_BETWEEN}(?={_NUMBER})")
_NUMBER_AND_STARS = re.compile(rf"(?P<head>{_NUMBER}){_BETWEEN}{_STARS}")


def blank_repeated_stars(text: str) -> str:
    """Return a text of the same length without the stars that repeat a number beside them."""
    text = _STARS_AND_NUMBER.sub(_blank, text)
    return _NUMBER_AND_STARS.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    """Return a match without its stars; all of it if they are not as many as the number."""
    stars = match["full"] + match["empty"]
    agrees = len(match["full"]) == int(match["number"])
    if match["empty"] and match["top"]:
        agrees = agrees and len(stars) == int(match["top"])
    if not agrees:
        return match[0]
    head = match["head"]
    n_blanks = len(match[0]) - len(head)
    return head + " " * n_blanks
