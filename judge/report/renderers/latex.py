"""Render the tables of a Document as LaTeX for a paper.

They use booktabs; names are escaped and intervals small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from math import ceil
from textwrap import fill

from judge.core.errors import ConfigError
from judge.core.format import one_line
from judge.core.line_breaks import longest_piece, pieces
from judge.core.messages import full_report, in_python, option
from judge.report import document as blocks
from judge.report.document import Document

_HEAD = "% Needs \\usepackage{booktabs,graphicx}.\n"
_OTHER_SCRIPTS = (
    "% Compile with LuaLaTeX or XeLaTeX, and a font that has all letters of the names (for "
    "Japanese, for\n% example \\setmainfont{Noto Serif CJK JP}): pdfLaTeX lacks letters of other "
    "scripts.\n"
)
_LAST_LATIN = "\u017f"  # the last letter that the default fonts of pdfLaTeX can accent
_SHRUNK = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%"
"""Begins a box that is made as narrow as the line, if it is wider."""
_COMMENT = 100  # characters of a comment line
_NAME = 80  # characters of a name
_MAX_TEXTS = 2  # columns of text in a table of a paper
_WIDE = 20  # characters, beyond which a heading is broken
_MOST_SIDE_BY_SIDE = 10  # columns of numbers
_MOST_WITH_INTERVALS = 6
_LETTERS_PER_EM = 1.8  # of small type, on average
_NARROWEST = 6  # em of a broken heading
_WIDEST = 14
_WIDE_TEXT = 40  # characters, beyond which a text is broken into lines
_WIDEST_TEXT = 22  # em of a broken text
_LINES_OF_PAGE = 44  # of small type, with room for a caption
_LINES_OF_HEADINGS = 3

# The characters that TeX reads as commands, replaces by others, or cannot print in OT1, its default
# font encoding: it prints `<` as `¡`. Of straight quotes TeX makes curly ones.
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
    # Not arrows, which say what is better.
    "▲": "$\\bigtriangleup$",
    "▼": "$\\bigtriangledown$",
    "→": "$\\rightarrow$",
    "ε": "$\\epsilon$",
    "λ": "$\\lambda$",
    "ω": "$\\omega$",
    "ρ": "$\\rho$",
    "✓": "$\\surd$",
    "✗": "$\\times$",
    # An apostrophe, which `_APOSTROPHE` marks: TeX prints it curved.
    "\1": "'",
    # Marks the gaps of `_LIGATURE_GAP`. A text has none, because `one_line` escapes controls.
    "\0": "{}",
}
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")  # Student's
_ESCAPED = str.maketrans(_CHARACTERS)
# The gap in `--` and `,,`. TeX's fonts would join them to a dash and a quotation mark.
_LIGATURE_GAP = re.compile(r"(?<=-)(?=-)|(?<=,)(?=,)")


def render(document: Document, *, full: bool = False) -> str:
    """Write the document's main table, or with `full` all that `_all_tables` selects.

    The main table is the summary's; a comment names the others. A row has a line of values and
    below it one of small intervals. A table with many columns continues in a part below, and LaTeX
    shrinks a part that is wider than a line. Raises ConfigError for a report without such tables.
    """
    tables = _all_tables(document)
    if not tables:
        latex_option = option("format", "latex")
        markdown_option = option("format", "markdown")
        raise ConfigError(
            f"{latex_option}: this report has no table of numbers; {markdown_option} has its texts"
        )
    comments = ""
    for note in (*document.notices, *document.remarks):
        comments += _comment(one_line(note))
    chosen = tables
    if not full:
        main, *_ = [*_tables(document.summary), *tables]
        chosen = [main]
        names_of_others = [table.name for table in tables if table.name != main.name]
        comments += _note_on_others(names_of_others)
    labels = _labels(chosen)
    floats = [
        _floats(table, label) for table, label in zip(chosen, labels, strict=True)
    ]
    text = "\n".join(chain.from_iterable(floats))
    other_scripts = _OTHER_SCRIPTS if max(text, default="") > _LAST_LATIN else ""
    return f"{_HEAD}{other_scripts}{comments}{text}"


def escape(text: str, limit: int = 0) -> str:
    """Return the text on one line as LaTeX prints it, in a table and in a caption."""
    marked = _LIGATURE_GAP.sub("\0", one_line(text, limit))
    marked = _APOSTROPHE.sub("\1", marked)
    return marked.translate(_ESCAPED)


def _note_on_others(table_names: Iterable[str]) -> str:
    """Return a comment that says how to get the tables of these names; "" for none."""
    named = filter(None, table_names)
    names = ", ".join(one_line(name, _NAME) for name in named)
    if not names:
        return ""
    if in_python():
        return _comment(f"{full_report()} writes all: {names}")
    one_table = option("table", "NAME")
    sentence = f"{one_table} writes one of the others, {full_report()} all"
    return _comment(f"{sentence}: {names}")


def _comment(text: str) -> str:
    """Return a text as comment lines. No word or name with hyphens is broken."""
    lines = fill(
        text,
        _COMMENT,
        initial_indent="% ",
        subsequent_indent="% ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{lines}\n"


def _all_tables(document: Document) -> list[blocks.Table]:
    """Return the tables of the sections, the folded ones last, except tables of mostly text.

    If only folded ones have numbers, return the summary's tables, or else all folded ones.
    """
    in_sections: list[blocks.Table] = []
    folded: list[blocks.Table] = []
    for section in document.sections:
        in_sections += filter(_is_numeric, _tables(section.blocks))
        for block in section.blocks:
            if isinstance(block, blocks.Details):
                folded += _tables(block.blocks)
    if in_sections:
        return [*in_sections, *filter(_is_numeric, folded)]
    return _tables(document.summary) or folded


def _tables(group: Iterable[blocks.Block]) -> list[blocks.Table]:
    return [block for block in group if isinstance(block, blocks.Table)]


def _is_numeric(table: blocks.Table) -> bool:
    """Return whether few of a table's columns are text."""
    texts = sum(not column.numeric for column in table.columns)
    return texts <= _MAX_TEXTS


def _labels(tables: Sequence[blocks.Table]) -> list[str]:
    """Return a label for each table: its name in ASCII, and its number if another has the same."""
    names: list[str] = []
    labels: list[str] = []
    for number, table in enumerate(tables, 1):
        # `Agreement: fluency` becomes `Agreement-fluency`.
        label_name = re.sub("[^a-zA-Z0-9]+", "-", table.name).strip("-")
        label = label_name
        if not label_name or label_name in names:
            label = f"{label_name}-{number}".strip("-")
        names.append(label_name)
        labels.append(label)
    return labels


def _floats(table: blocks.Table, label_name: str) -> Iterator[str]:
    """Yield the table as a float, or as several if it is longer than a page.

    A float holds several parts if they fit on its page.
    """
    texts = filter(None, (table.caption, table.longest_key))
    caption = escape(" ".join(texts))
    heading = [f"\\caption{{{caption}}}", f"\\label{{tab:judge-{label_name}}}"]
    pages: list[list[str]] = []
    room = 0
    for part in _parts(table):
        for page_of_part in _pages(part):
            n_lines = sum(map(_n_lines, page_of_part.rows)) + _LINES_OF_HEADINGS
            if n_lines > room:
                pages.append([])
                room = _LINES_OF_PAGE
            tabular = "\n".join(_tabular(page_of_part))
            pages[-1].append(tabular)
            room -= n_lines
    for tabulars in pages:
        yield _float(heading, tabulars)
        heading = [f"\\caption{{(continued) {caption}}}"]


def _pages(table: blocks.Table) -> Iterator[blocks.Table]:
    """Yield the table in parts of as many rows as fit on a page."""
    rows: list[tuple[blocks.Cell, ...]] = []
    n_lines = _LINES_OF_HEADINGS
    for row in table.rows:
        n_lines += _n_lines(row)
        if rows and n_lines > _LINES_OF_PAGE:
            yield replace(table, rows=tuple(rows))
            rows = []
            n_lines = _LINES_OF_HEADINGS + _n_lines(row)
        rows.append(row)
    yield replace(table, rows=tuple(rows))


def _n_lines(row: Sequence[blocks.Cell]) -> int:
    """Return the lines of a row: its values, and below them the intervals, or a long text."""
    longest = max(len(cell.text) for cell in row)
    n_lines = max(1, ceil(longest / (_WIDEST_TEXT * _LETTERS_PER_EM)))
    return n_lines + any(cell.small_text for cell in row[1:])


def _float(heading: Sequence[str], tabulars: Sequence[str]) -> str:
    lines = [
        "\\begin{table}",
        "\\centering",
        *heading,
        "\\small",
        "\\setlength{\\tabcolsep}{4pt}",
        "\n\n\\medskip\n".join(tabulars),
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _parts(table: blocks.Table) -> tuple[blocks.Table, ...]:
    """Return the table in parts that fit on a line and are large enough to read.

    A wide table of few rows is turned.
    """
    if len(table.rows) <= _MOST_WITH_INTERVALS:
        table = table.tall
    has_intervals = any(cell.small_text for row in table.rows for cell in row)
    most_columns = _MOST_WITH_INTERVALS if has_intervals else _MOST_SIDE_BY_SIDE
    return table.parts(most_columns)


def _tabular(table: blocks.Table) -> Iterator[str]:
    """Yield the lines of one tabular."""
    title, *columns = table.columns
    yield _SHRUNK
    alignment = "".join("r" if column.numeric else "l" for column in columns)
    yield f"\\begin{{tabular}}{{l{alignment}}}"
    yield "\\toprule"
    yield from _group_headings(columns)
    heads = [_column_head(column) for column in columns]
    yield _row(_row_name(title.head) if title.head else "", heads)
    yield "\\midrule"
    for name_cell, *cells in table.rows:
        values = [
            _value(cell, column) for cell, column in zip(cells, columns, strict=True)
        ]
        yield _row(_row_name(name_cell.text), values)
        if any(cell.small_text for cell in cells):
            yield _row("", map(_small_note, cells))
    yield "\\bottomrule"
    yield "\\end{tabular}}"


def _row_name(text: str) -> str:
    # The braces: LaTeX would read a `[` or `*` after the last row's `\\` as its argument.
    return "{}" + escape(text, _NAME)


def _group_headings(columns: Iterable[blocks.Column]) -> Iterator[str]:
    """Yield a line of headings above the columns and one of rules below it, if any have a group."""
    headings: list[str] = []
    rules: list[str] = []
    first_column = 2  # the first column names the rows
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        if group:
            last_column = first_column + width - 1
            group_name = escape(group, _NAME)
            headings.append(f"\\multicolumn{{{width}}}{{c}}{{{group_name}}}")
            rules.append(f"\\cmidrule(lr){{{first_column}-{last_column}}}")
        else:
            headings += [""] * width
        first_column += width
    if rules:
        yield _row("", headings)
        yield "".join(rules)


def _column_head(column: blocks.Column) -> str:
    """Return the heading of a column; a long one is broken into lines, never inside a word."""
    head = one_line(column.head, _NAME) + blocks.ARROWS[column.better]
    if len(head) <= _WIDE:
        return escape(head)
    broken = ""
    for piece in pieces(head):
        line_end = " " if piece.endswith(" ") else "\\allowbreak{}"
        broken += escape(piece) + line_end
    width = ceil(longest_piece(head) / _LETTERS_PER_EM)
    width = min(max(width, _NARROWEST), _WIDEST)
    side = "\\raggedleft" if column.numeric else "\\raggedright"
    return f"\\parbox[b]{{{width}em}}{{{side} {broken}}}"


def _value(cell: blocks.Cell, column: blocks.Column) -> str:
    text = escape(cell.text)
    if not column.numeric and len(cell.text) > _WIDE_TEXT:
        text = f"\\parbox[t]{{{_WIDEST_TEXT}em}}{{\\raggedright {text}\\strut}}"
    if cell.tone in ("strong", "good"):
        text = f"\\textbf{{{text}}}"
    return text + escape(cell.mark)


def _small_note(cell: blocks.Cell) -> str:
    if not cell.small_text:
        return ""
    note = escape(cell.small_text)
    return f"{{\\scriptsize {note}}}"


def _row(first_cell: str, cells: Iterable[str]) -> str:
    all_cells = " & ".join([first_cell, *cells])
    return f"{all_cells} \\\\"
