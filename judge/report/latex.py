"""The table of means or of standings as LaTeX, for a paper: booktabs, names escaped, intervals small."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from judge.records import Column
from judge.report.markdown import upright
from judge.report.panel import Group
from judge.report.ranked import Contest, ranked
from judge.report.result import Result
from judge.report.view import Cell, View, view
from judge.report.words import line

_HEAD = """\
% Needs \\usepackage{booktabs}. Names in Japanese, Korean, Chinese and other scripts need LuaLaTeX or XeLaTeX and a font
% that has them.
"""
_NAME = 80  # characters of a name
_ARROWS = {"higher": " $\\uparrow$", "lower": " $\\downarrow$", "": ""}

# What TeX reads as a command, makes another character of, or cannot print in its oldest encoding.
_CHARACTERS = {
    "\\": "\\textbackslash{}",
    "{": "\\{",
    "}": "\\}",
    "$": "\\$",
    "&": "\\&",
    "#": "\\#",
    "%": "\\%",
    "_": "\\_",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "\\symbol{34}",
    "'": "\\textquotesingle{}",
    "`": "\\textasciigrave{}",
    "–": "--",
    "—": "---",
    "…": "\\ldots{}",
    "≈": "$\\approx$",
    "≤": "$\\leq$",
    "−": "$-$",
    "\0": "{}",  # between two characters that would become one; `line` lets no such character through
}
_ESCAPED = str.maketrans(_CHARACTERS)
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=,)(?=,)")
_MINUS = re.compile(r"(?<![\w)])-(?=\d)")

_Row = tuple[str, list[str], list[str]]
"""What a row is of, its values, and what stands below each: as LaTeX."""


def render(result: Result) -> str:
    """A table of means, or one for each ranking. A system has a row of values and below it one of small intervals."""
    if result.rankings:
        contests = ranked(result).contests
        return _HEAD + "\n".join(_contest(contest, place) for place, contest in enumerate(contests, 1))
    return _HEAD + _means(view(result))


def escape(text: str, limit: int = 0) -> str:
    """The text on one line as LaTeX prints it, in a table and in a caption."""
    return _LIGATURE.sub("\0", line(text, limit)).translate(_ESCAPED)


def _means(shown: View) -> str:
    cells = [[shown.cells[system, column.name] for column in shown.columns] for system in shown.systems]
    names, heads = [escape(system, _NAME) for system in shown.systems], _heads(shown.groups)
    if upright(shown):
        cells = [list(row) for row in zip(*cells, strict=True)]
        heads = [f" & {' & '.join(names)} \\\\"]
        names = [_titled(column, *part) for group in shown.groups for column, part in _parts(group)]
    rows = [
        (name, [_marked(cell) for cell in row], [_small(cell.interval, cell.coverage) for cell in row])
        for name, row in zip(names, cells, strict=True)
    ]
    return _table(heads, len(cells[0]) if cells else 0, rows, shown.caption, "tab:judge")


def _parts(group: Group) -> Iterator[tuple[Column, tuple[str, ...]]]:
    """A group's columns and what each is called."""
    for column in group.columns:
        yield column, tuple(filter(None, (group.name, group.parts[column.name])))


def _titled(column: Column, *words: str) -> str:
    """A heading, with an arrow to the better end."""
    return escape(", ".join(words), _NAME) + _ARROWS[column.better]


def _heads(found: Sequence[Group]) -> list[str]:
    """The lines of the table's head: of a panel's criterion one over its columns."""
    names = [_titled(column, part[-1]) for group in found for column, part in _parts(group)]
    lines = [f"{{}}System & {' & '.join(names)} \\\\"]
    if any(group.judged for group in found):
        above, rules, at = [], [], 2
        for group in found:
            width = len(group.columns)
            above.append(f"\\multicolumn{{{width}}}{{c}}{{{escape(group.name, _NAME)}}}" if group.judged else "")
            rules += [f"\\cmidrule(lr){{{at}-{at + width - 1}}}"] if group.judged else []
            at += width
        lines = [f" & {' & '.join(above)} \\\\", "".join(rules), *lines]
    return lines


def _marked(cell: Cell) -> str:
    return f"\\textbf{{{_number(cell.mean)}}}*" if cell.best else _number(cell.mean + cell.mark)


def _small(*parts: str) -> str:
    text = " ".join(part for part in parts if part)
    return f"{{\\scriptsize {_number(text)}}}" if text else ""


def _number(text: str) -> str:
    """A number, an interval or a remark, with the minus of mathematics."""
    return _MINUS.sub("$-$", escape(text))


def _contest(contest: Contest, place: int) -> str:
    columns = [
        ([_number(value) for value, _ in column], [_small(remark) for _, remark in column])
        for column in contest.columns.values()
    ]
    rows = [
        (escape(system, _NAME), [values[at] for values, _ in columns], [remarks[at] for _, remarks in columns])
        for at, system in enumerate(contest.systems)
    ]
    told = f"{contest.label}: {contest.told[0]} [low, high]: {contest.ranking.method}. {contest.ranking.note}"
    heads = [f"{{}}System & {' & '.join(escape(name) for name in contest.columns)} \\\\"]
    return _table(heads, len(columns), rows, told, f"tab:judge-{place}")


def _table(heads: Iterable[str], columns: int, rows: Iterable[_Row], caption: str, label: str) -> str:
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_number(caption)}}}",
        f"\\label{{{label}}}",
        f"\\begin{{tabular}}{{l{'r' * columns}}}",
        "\\toprule",
        *heads,
        "\\midrule",
        *_body(rows),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _body(rows: Iterable[_Row]) -> Iterator[str]:
    """The rows. What comes after a row's end would be its option, were it `[` or `*`: hence the braces."""
    for name, values, below in rows:
        yield f"{{}}{name} & {' & '.join(values)} \\\\"
        if any(below):
            yield f" & {' & '.join(below)} \\\\"
