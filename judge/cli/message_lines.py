"""Break the lines of a message so that they fit into a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len

# `"helpful: Does it help?"`, `--map source=text`, `judge run data.csv`, or one word
_UNBROKEN = re.compile(
    r"(?:\(?(?:--[\w-]+|judge [a-z]+|pip install) (?=[^\s-]))?"  # goes with the next word
    r'(?:"[^"]*"|\S)+'
)


def wrapped(message: str, width: int) -> str:
    """Return the message in lines of at most `width` cells, broken at spaces.

    A word (such as a path), an option with its value and a quoted text stay whole, so that they can
    be copied. A word that is wider than a line has a line of its own. The further lines of an
    indented line are indented by two more.
    """
    lines: list[str] = []
    for line in message.split("\n"):
        if cell_len(line) <= width:
            lines.append(line)
        else:
            lines += _wrapped_line(line, width)
    return "\n".join(lines)


def _wrapped_line(line: str, width: int) -> Iterator[str]:
    """Yield the lines of a line that is too wide."""
    indent = line[: len(line) - len(line.lstrip())]
    further_indent = f"{indent}  " if indent else ""
    words = _words(line, width)
    current = indent + next(words, "")
    for word in words:
        if cell_len(f"{current} {word}") > width:
            yield current
            current = further_indent + word
        else:
            current += f" {word}"
    yield current


def _words(line: str, width: int) -> Iterator[str]:
    """Yield the words of a line; those that belong together are one unless they need two lines."""
    for match in _UNBROKEN.finditer(line):
        if cell_len(match[0]) <= width:
            yield match[0]
        else:
            yield from match[0].split()
