"""Render the tables of a Document as LaTeX for a paper: booktabs, escaped names, small intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from judge.core.format import one_line
from judge.report import document as blocks
from judge.report.document import Document

_HEAD = """\
% Needs \\usepackage{booktabs,adjustbox}. Names in Japanese, Korean, Chinese and other scripts need LuaLaTeX or XeLaTeX
% and a font that has them.
"""
_NAME = 80  # characters of a name
_MAX_TEXTS = 2  # columns of text in a table of a paper
_WIDE = 20  # characters, beyond which a heading is broken

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
    "▲": "$\\uparrow$",
    "▼": "$\\downarrow$",
    "λ": "$\\lambda$",
    "ρ": "$\\rho$",
    "✓": "$\\surd$",
    "✗": "$\\times$",
    "\0": "{}",  # between two characters that would become one; `line` lets no such character through
}
_ESCAPED = str.maketrans(_CHARACTERS)
_LIGATURE = re.compile(r"(?<=-)(?=-)|(?<=,)(?=,)")
_PIECE = re.compile(r"[^_/ ]{0,15}[_/ ]|[^_/ ]{1,16}")  # of a name, after which its line may end


def render(document: Document) -> str:
    """Write the tables of the sections, or if they have none of the summary, or else the folded
    ones.

    Tables of mostly text are left out.

    A row has a line of values and below it one of small intervals. Tables of many columns go on in
    a part below, and LaTeX shrinks what is wider than a line.
    """
    summary = [block for block in document.summary if isinstance(block, blocks.Table)]
    inner = [block for section in document.sections for block in section.blocks]
    tables = [block for block in inner if isinstance(block, blocks.Table)]
    tables = [
        table
        for table in tables
        if sum(not column.numeric for column in table.columns) <= _MAX_TEXTS
    ]
    details = [block for block in inner if isinstance(block, blocks.Details)]
    folded = [block for each in details for block in each.blocks if isinstance(block, blocks.Table)]
    parts = [_HEAD, *(f"% {one_line(notice)}\n" for notice in document.notices)]
    for place, table in enumerate(tables or summary or folded, 1):
        name = re.sub("[^a-zA-Z0-9]+", "-", table.name).strip("-") or str(place)
        body = "\n\n\\medskip\n".join("\n".join(_part(part)) for part in table.tall.pages)
        caption = escape(" ".join(filter(None, (table.caption, table.key))))
        parts += [
            "" if place == 1 else "\n",
            f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n\\label{{tab:judge-{name}}}\n",
            f"\\small\n\\setlength{{\\tabcolsep}}{{4pt}}\n{body}\n\\end{{table}}\n",
        ]
    return "".join(parts)


def escape(text: str, limit: int = 0) -> str:
    """The text on one line as LaTeX prints it, in a table and in a caption."""
    return _LIGATURE.sub("\0", one_line(text, limit)).translate(_ESCAPED)


def _part(table: blocks.Table) -> Iterator[str]:
    """The lines of one tabular.

    A row starts with braces because LaTeX would read a `[` or `*` there as an argument of the last `\\\\`.
    """
    title, *columns = table.columns
    yield "\\begin{adjustbox}{max width=\\linewidth}"
    yield f"\\begin{{tabular}}{{l{'r' * len(columns)}}}"
    yield "\\toprule"
    # The heading above a panel's columns: criteria and rules below them.
    above, rules, place = [], [], 2
    for criterion, group in groupby(columns, key=lambda column: column.group):
        width = len(list(group))
        above += (
            [f"\\multicolumn{{{width}}}{{c}}{{{escape(criterion, _NAME)}}}"]
            if criterion
            else [""] * width
        )
        rules += [f"\\cmidrule(lr){{{place}-{place + width - 1}}}"] if criterion else []
        place += width
    if rules:
        yield _row("", above)
        yield "".join(rules)
    heads = []
    for column in columns:
        head = one_line(column.head, _NAME) + blocks.ARROWS[column.better]
        pieces = (
            escape(piece) + (" " if piece.endswith(" ") else "\\allowbreak{}")
            for piece in _PIECE.findall(head)
        )
        heads.append(
            escape(head)
            if len(head) <= _WIDE
            else f"\\parbox[b]{{6em}}{{\\raggedleft {''.join(pieces)}}}"
        )
    yield _row(f"{{}}{title.head}" if title.head else "", heads)
    yield "\\midrule"
    for name, *cells in table.rows:
        texts = [
            (escape(cell.text), escape(cell.mark), cell.tone in ("strong", "good"))
            for cell in cells
        ]
        values = (
            f"\\textbf{{{text}}}{mark}" if bold else text + mark for text, mark, bold in texts
        )
        yield _row("{}" + escape(name.text, _NAME), values)
        if any(cell.note for cell in cells):
            yield _row(
                "", (f"{{\\scriptsize {escape(cell.note)}}}" if cell.note else "" for cell in cells)
            )
    yield "\\bottomrule"
    yield "\\end{tabular}"
    yield "\\end{adjustbox}"


def _row(first: str, cells: Iterable[str]) -> str:
    return " & ".join([first, *cells]) + " \\\\"
