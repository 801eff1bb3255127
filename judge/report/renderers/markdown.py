"""Render a result as Markdown for a comment on a pull request: the numbers in the open, their making folded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from judge.core.format import one_line

LIMIT = 60_000
"""Characters at most, whatever the size of the run: a comment on GitHub holds 65,536."""
_OPEN, _FAILED = 45_000, 12_000  # of these for what is not folded, and of those for the failures
_TABLE = 25_000  # for one table, so that there is room for the next one
_MOST_COLUMNS = 24  # of a table
_NAME, _TEXT = 80, 3_000  # characters of a name, of a paragraph
_REST = "The rest is in report.html."

# A backslash makes any ASCII punctuation literal (CommonMark 2.4); these are the ones that can mean something here.
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>&$]|(?<=:)/(?=/)|(?<=(?i:www))\.)")
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:[\s-]|$)|=))")  # a list, a rule, a heading's line
# GitHub links people, addresses and issues after Markdown is done: only a character without width keeps it from that.
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
_ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)", re.IGNORECASE)


def escape(text: str, limit: int = _TEXT) -> str:
    """The text on one line, with nothing in it that Markdown, HTML or GitHub would read as markup, link or mention."""
    literal = _BLOCK.sub(r"\1\\", _SPECIAL.sub(r"\\\1", one_line(text, limit)))
    return _LINKED.sub(r"\g<0>&#8203;", literal)


def summary(text: str, limit: int = _NAME) -> str:
    """The text on one line for `<summary>`, in which Markdown has no say: HTML that links to nothing."""
    literal = html.escape(one_line(text, limit), quote=False)
    return _ADDRESS.sub(r"\g<0>&#8203;", _LINKED.sub(r"\g<0>&#8203;", literal))


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> str:
    """A table of cells that are Markdown: the first columns are names, the others numbers."""
    rule = ["---"] * names + ["---:"] * (len(heads) - names)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def page_of(blocks: Iterable[str], limit: int, rest: str) -> str:
    """The blocks below each other, in about `limit` characters: from the first that does not fit on only `rest`."""
    page = ""
    for block in blocks:
        if len(page) + len(block) > limit:
            return page + rest
        page += f"{block}\n\n"
    return page.rstrip("\n") + "\n"


def folded(title: str, text: str) -> str:
    """A text below a title that opens it."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"
