"""The marks that Git leaves in a file with a merge conflict."""

from __future__ import annotations

import re

# "<<<<<<< HEAD", the first of three marks
_FIRST_MARK = re.compile(rb"^<<<<<<< ", re.MULTILINE)
_MARKS = "the lines that begin with <<<<<<<, ======= or >>>>>>>"
ADVICE = f"a merge conflict: keep one side, and delete the other and {_MARKS}"
ADVICE_FOR_LINES = (
    f"a merge conflict: delete {_MARKS}, and keep the lines of both sides"
)
"""For a file of lines that do not depend on each other, such as a recording."""


def conflict_line(text: str | bytes) -> int | None:
    """Return the line of the first mark, counted from 1; None if there is none."""
    content = text.encode(errors="replace") if isinstance(text, str) else text
    match = _FIRST_MARK.search(content)
    if match is None:
        return None
    lines_before = content.count(b"\n", 0, match.start())
    return lines_before + 1
