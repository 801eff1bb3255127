"""Render the tables of a Document as LaTeX for a paper: booktabs, escaped names, small intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple
from unicodedata import east_asian_width

from judge.core.format import one_line
from judge.report import document as blocks
from judge.report.document import Document

_HEAD = """\
% Needs \\usepackage{booktabs}. Names in Japanese, Korean, Chinese and other scripts need LuaLaTeX or XeLaTeX and a font
% that has them.
"""
_NAME = 80  # characters of a name
_MAX_TEXTS = 2  # columns of text in a table of a paper

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
    "≥": "$\\geq$",
    "−": "$-$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "✓": "$\\surd$",
    "✗": "$\\times$",
    "\0": "{}",  # between two characters that would become one; `line` lets no such character through
}
_ESCAPED = str.maketrans(_CHARACTERS)
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=,)(?=,)")
_PIECE = re.compile(r"[^_/ ]{0,15}[_/ ]|[^_/ ]{1,16}")  # of a name, after which its line may end

_SPACE = 345.0  # points: the line of the article class
_SMALL, _SCRIPT = 9.5, 7.6  # points of an em where values stand, and of one where intervals do
_GAP, _LEAST = 8.0, 72.0  # points between columns, and of the narrowest column that names are broken for
_HEADING = 48.0  # points, beyond which a heading is broken
_WIDTHS = {
    "iljI.,:;'!| ": 0.3,
    "tfrsJ()[]/-": 0.42,
    "mM%−≈↑↓": 0.85,
    "W@": 1.05,
}  # of a character in ems; any other is `_USUAL`
_EMS = {character: width for characters, width in _WIDTHS.items() for character in characters}
_USUAL, _CAPITAL, _FULL = 0.53, 0.72, 1.0


class _Value(NamedTuple):
    """A value as plain text, what stands small `below` it, and whether it is bold."""

    text: str
    below: str
    bold: bool = False

    @property
    def width(self) -> float:
        """Width in points."""
        return max(_SMALL * _wide(self.text) + _SCRIPT * _wide(" "), _SCRIPT * _wide(self.below))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its heading, the panel's criterion above it or nothing, and its values by row.

    A heading of more points than `room` is broken.
    """

    head: str
    above: str
    values: Sequence[_Value]
    room: float = _SPACE

    @property
    def numbers(self) -> float:
        """Width of its values in points."""
        return max((value.width for value in self.values), default=0.0)

    @property
    def width(self) -> float:
        """Width in points."""
        return max(self.numbers, min(_SMALL * _wide(self.head), max(self.room, _SMALL * _unbroken(self.head))))


def render(document: Document) -> str:
    """Write the tables of the sections, or if they have none of the summary, or else the folded ones.

    Tables of mostly text are left out.

    A row has a line of values and below it one of small intervals. A table is no wider than a line of the article
    class, as far as that can be estimated: names are broken, and columns that still do not fit follow in a part below.
    """
    summary = [block for block in document.summary if isinstance(block, blocks.Table)]
    inner = [block for section in document.sections for block in section.blocks]
    tables = [block for block in inner if isinstance(block, blocks.Table)]
    tables = [table for table in tables if sum(not column.numeric for column in table.columns) <= _MAX_TEXTS]
    details = [block for block in inner if isinstance(block, blocks.Details)]
    folded = [block for each in details for block in each.blocks if isinstance(block, blocks.Table)]
    parts = [_HEAD, *(f"% {one_line(notice)}\n" for notice in document.notices)]
    for place, table in enumerate(tables or summary or folded, 1):
        name = re.sub("[^a-zA-Z0-9]+", "-", table.name).strip("-") or str(place)
        parts.append(("" if place == 1 else "\n") + _table(table.tall, f"tab:judge-{name}"))
    return "".join(parts)


def escape(text: str, limit: int = 0) -> str:
    """The text on one line as LaTeX prints it, in a table and in a caption."""
    return _LIGATURE.sub("\0", one_line(text, limit)).translate(_ESCAPED)


def _table(table: blocks.Table, label: str) -> str:
    title, *heads = table.columns
    names = [one_line(row[0].text, _NAME) for row in table.rows]
    columns = [
        _Column(
            one_line(column.head, _NAME) + blocks.ARROWS[column.better],
            column.group,
            [_Value(c.text + c.mark, c.note, bold=c.tone in ("strong", "good")) for c in cells],
        )
        for column, cells in zip(heads, list(zip(*(row[1:] for row in table.rows), strict=True)), strict=False)
    ]
    natural = _SMALL * max(map(_wide, [title.head, *names]))
    if natural + _together(columns) > _SPACE - _GAP:
        columns = [replace(column, room=_HEADING) for column in columns]
    least = max([_LEAST, *(_SMALL * _unbroken(name) for name in names)])
    most = max(least, _SPACE - _GAP - _together(columns))
    narrow = most if natural > most else 0.0
    widths = [column.width + _GAP for column in columns]
    parts = [
        "\n".join(_part(title.head, names, part, narrow))
        for part in blocks.side_by_side(columns, widths, _SPACE - _GAP - (narrow or natural))
    ]
    body = "\n\n\\medskip\n".join(parts)
    caption = escape(" ".join(filter(None, (table.caption, table.key))))
    return (
        f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n\\label{{{label}}}\n"
        f"\\small\n\\setlength{{\\tabcolsep}}{{{_GAP / 2:g}pt}}\n{body}\n\\end{{table}}\n"
    )


def _together(columns: Iterable[_Column]) -> float:
    """Width of the columns side by side, in points."""
    return sum(column.width + _GAP for column in columns)


def _part(title: str, names: Sequence[str], columns: Sequence[_Column], narrow: float) -> Iterator[str]:
    """The lines of one tabular; names are broken where their column is to be `narrow`, a number of points.

    A row starts with braces because LaTeX would read a `[` or `*` there as an argument of the last `\\\\`.
    """
    first = f"p{{{narrow:.0f}pt}}" if narrow else "l"
    yield f"\\begin{{tabular}}{{{first}{'r' * len(columns)}}}"
    yield "\\toprule"
    # The heading above a panel's columns: criteria and rules below them.
    above, rules, place = [], [], 2
    for criterion, group in groupby(columns, key=lambda column: column.above):
        width = len(list(group))
        above += [f"\\multicolumn{{{width}}}{{c}}{{{escape(criterion, _NAME)}}}"] if criterion else [""] * width
        rules += [f"\\cmidrule(lr){{{place}-{place + width - 1}}}"] if criterion else []
        place += width
    if rules:
        yield _row("", above)
        yield "".join(rules)
    heads = (
        escape(column.head)
        if _SMALL * _wide(column.head) <= column.width
        else f"\\parbox[b]{{{column.width:.0f}pt}}{{\\raggedleft {_broken(column.head)}}}"
        for column in columns
    )
    yield _row(f"{{}}{title}" if title else "", heads)
    yield "\\midrule"
    for at, name in enumerate(names):
        cells = []
        for value in (column.values[at] for column in columns):
            bold = f"\\textbf{{{escape(value.text.removesuffix('*'))}}}*" if value.bold else escape(value.text)
            cells.append(bold)
        yield _row("{}" + (f"\\raggedright {_broken(name)}" if narrow else escape(name)), cells)
        if any(column.values[at].below for column in columns):
            yield _row("", (_small(column.values[at].below) for column in columns))
    yield "\\bottomrule"
    yield "\\end{tabular}"


def _row(first: str, cells: Iterable[str]) -> str:
    return " & ".join([first, *cells]) + " \\\\"


def _small(text: str) -> str:
    return f"{{\\scriptsize {escape(text)}}}" if text else ""


def _broken(text: str) -> str:
    """A name that may go on in the next line after `_`, `/` and every 16 characters."""
    pieces = _PIECE.findall(text)
    return "".join(
        escape(piece) + (" " if piece.endswith(" ") else "\\allowbreak{}" if more else "")
        for piece, more in zip(pieces, [*pieces[1:], ""], strict=True)
    )


def _unbroken(text: str) -> float:
    """Ems of the longest part of a name that has to stay on one line."""
    return max(map(_wide, _PIECE.findall(text)), default=0.0)


def _wide(text: str) -> float:
    """Estimate the width of a text in Computer Modern, in ems."""

    def usual(character: str) -> float:
        return _FULL if east_asian_width(character) in "WF" else _CAPITAL if character.isupper() else _USUAL

    return sum(_EMS.get(character, usual(character)) for character in text)
