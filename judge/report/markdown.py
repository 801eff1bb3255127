"""The summary as Markdown, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from judge.report.about import About
from judge.report.drivers import Moved, moved
from judge.report.panel import ALPHA, Agreed
from judge.report.ranked import Contest, Ranked, ranked
from judge.report.result import Result
from judge.report.view import Cell, View, view
from judge.report.words import line

# A backslash makes any ASCII punctuation literal (CommonMark 2.4); these are the ones that can mean something here.
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>&])")


def render(result: Result) -> str:
    """GitHub-flavoured Markdown: the means or the rankings, failures by kind, and how the numbers came to be."""
    shown = ranked(result) if result.rankings else view(result)
    blocks = [f"## {escape(shown.about.title)}"]
    blocks += [f"> {escape(text)}" for text in shown.about.banners]
    blocks += _rankings(shown) if isinstance(shown, Ranked) else _means(shown)
    blocks += _moved(moved(result))
    blocks += _agreement(shown.agreement)
    blocks += _failures(shown.about)
    blocks += ["### How", _how(shown.about)]
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


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] | None = None) -> str:
    """A table; `right` are the columns of numbers, all but the first one if it is None."""
    numbers = set(range(1, len(heads)) if right is None else right)
    rule = ["---:" if place in numbers else "---" for place in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def _means(shown: View) -> list[str]:
    rows = [
        (escape(system), *(_cell(shown.cells[system, column.name]) for column in shown.columns))
        for system in shown.systems
    ]
    heads = ("system", *(_head(*part) for group in shown.groups for part in group.parts.items()))
    return [_table(heads, rows), escape(shown.caption.replace("* highest", "Bold: highest"))]


def _head(column: str, part: str) -> str:
    """A column's heading: its name, and of a panel's own column that it is the mean."""
    return escape(column if not part or column.endswith(f"/{part}") else f"{column} ({part})")


def _cell(cell: Cell) -> str:
    mean = f"**{cell.mean}**" if cell.best else cell.mean
    coverage = f"({cell.coverage})" if cell.coverage else ""
    return " ".join(part for part in (mean, cell.interval, coverage) if part)


def _rankings(shown: Ranked) -> list[str]:
    blocks = [block for contest in shown.contests for block in _contest(contest)]
    return [*blocks, escape(shown.caption)]


def _contest(contest: Contest) -> Iterator[str]:
    yield f"### {escape(contest.label)}"
    cells = [[f"{value} {interval}".rstrip() for value, interval in column] for column in contest.columns.values()]
    names = [escape(system) for system in contest.systems]
    yield _table(("system", *contest.columns), zip(names, *cells, strict=True))
    if len(contest.systems) > 2:
        yield "Win rates in per cent, row against column:"
        rows = [(name, *(met.text for met in row)) for name, row in zip(names, contest.matrix, strict=True)]
        yield _table(("", *names), rows)
    yield escape(" ".join(contest.told))
    if contest.ranking.note:
        yield escape(contest.ranking.note)


def _moved(shown: Moved | None) -> list[str]:
    if shown is None:
        return []
    rows = []
    for row in chain.from_iterable(shown.criteria):
        pulls = [row.pulls.get(name) for name in shown.heads]
        cells = [f"{pull.text} {pull.interval}".rstrip() if pull else "–" for pull in pulls]
        share = f"{row.together} {row.interval}".rstrip() or "–"
        texts = ", ".join(part for part in (row.texts, row.scope, row.note) if part)
        rows.append((_head(row.name, row.part), share, row.chance or "–", *cells, escape(texts)))
    heads = ("scores", "together", "by chance", *shown.heads, "texts")
    return ["### What moves the judge", escape(shown.lead), _table(heads, rows), escape(shown.how)]


def _agreement(agreement: Sequence[Agreed]) -> list[str]:
    if not agreement:
        return []
    rows = [(escape(one.criterion), f"{one.alpha} {one.interval}".rstrip(), one.n) for one in agreement]
    return ["### Agreement of the judges", _table(("criterion", "alpha", "texts"), rows), escape(ALPHA)]


def _failures(shown: About) -> list[str]:
    if not shown.failures:
        return []
    rows = [
        (escape(f.stage), escape(f.error), str(f.count), escape(", ".join(f.columns)), _cell_code(f.example))
        for f in shown.failures
    ]
    heads = ("stage", "error", "count", "columns", "for example")
    return ["### Failures", _table(heads, rows, right=[2])]


def _how(shown: About) -> str:
    lines = [f"- {name}: {escape(text)}" for name, text in shown.facts]
    lines += [f"- {escape(shown.usage)}"] if shown.usage else []
    lines += [f"- Judge {escape(name)}: {escape(text)}" for name, text in shown.judges]
    lines += [
        f"- {escape(one.name)}: {_code(one.signature)}{f' ({escape(one.made)})' if one.made else ''}"
        for one in shown.signed
        if one.signature
    ]
    return "\n".join(lines)
