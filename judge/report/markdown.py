"""The summary as Markdown, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from judge.report.result import Result
from judge.report.view import Cell, View, view
from judge.report.words import line

# A backslash makes any ASCII punctuation literal (CommonMark 2.4); these are the ones that can mean something here.
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>&])")


def render(result: Result) -> str:
    """GitHub-flavoured Markdown: the table, failures by kind, and how the numbers came to be."""
    shown = view(result)
    blocks = [f"## {escape(shown.title)}"]
    blocks += [f"> {escape(text)}" for text in shown.banners]
    blocks += [_summary(shown), escape(shown.caption.replace("* highest", "Bold: highest"))]
    if shown.failures:
        rows = [
            (escape(f.stage), escape(f.error), str(f.count), escape(", ".join(f.columns)), _cell_code(f.example))
            for f in shown.failures
        ]
        heads = ("stage", "error", "count", "columns", "for example")
        blocks += ["### Failures", _table(heads, rows, right={2})]
    blocks += ["### How", _how(shown)]
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    """The text on one line, with nothing in it that Markdown or HTML would read as markup."""
    return _SPECIAL.sub(r"\\\1", line(text))


def _code(text: str) -> str:
    """The text as a code span that no backtick in it can end."""
    flat = line(text)
    if not flat:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _cell_code(text: str) -> str:
    """A code span for a table cell, where a pipe wants a backslash even in code (GFM, 4.10)."""
    return _code(line(text, 200)).replace("|", "\\|")


def _summary(shown: View) -> str:
    rows = [
        (escape(system), *(_cell(shown.cells[system, column.name]) for column in shown.columns))
        for system in shown.systems
    ]
    heads = ("system", *(escape(c.name) for c in shown.columns))
    return _table(heads, rows, right=set(range(1, len(heads))))


def _cell(cell: Cell) -> str:
    mean = f"**{cell.mean}**" if cell.best else cell.mean
    coverage = f"({cell.coverage})" if cell.coverage else ""
    return " ".join(part for part in (mean, cell.interval, coverage) if part)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: set[int]) -> str:
    rule = ["---:" if place in right else "---" for place in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def _how(shown: View) -> str:
    lines = [f"- {name}: {escape(text)}" for name, text in shown.facts]
    lines += [f"- {escape(shown.usage)}"] if shown.usage else []
    lines += [f"- {escape(c.name)}: {_code(c.signature)}" for c in shown.columns if c.signature]
    return "\n".join(lines)
