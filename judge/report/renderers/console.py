"""Render a Document for a terminal or a log: its summary, or with `full` everything."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from io import StringIO
from itertools import takewhile
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from judge.core.format import escape_controls, one_line
from judge.core.line_breaks import break_offsets, longest_piece, wrapped
from judge.core.messages import full_report, in_python
from judge.report import document as blocks
from judge.report.document import Document

_STYLES = {
    "strong": "bold",
    "good": "bold green",
    "bad": "red",
    "warning": "yellow",
    "muted": "dim",
    "": "",
}
_GAP = 2  # cells between columns
_INDENT = 2
# Stands for a space that Rich must not strip, and is replaced in the end.
_BLANK = "\ue000"
# "p = 0.004", "≥ 4", "[−0.05, 0.40]"
_TOGETHER = re.compile(
    r"(?:\b[np] )?[<>=≤≥≈] (?=[−+-]?[.\d])|\[[−+-]?[\d.,]*\d%?, (?=[−+-]?[\d.,]*\d%?\])"
)
_NAME = 28  # cells of the widest name of a row that is not folded
_WORD = 40  # cells of the longest word that is never broken
_MIN_NAME = 12  # names are folded to this width if all columns then fit
_HEAD = 24  # cells of the widest heading
_FOLDED = 8  # headings are folded to this width, if their words allow it
_BAR = 10  # cells of a full bar
_EXCERPTS = 3  # in the summary
_WIDE = "   "  # between the label of a line of the footer and its text
_LABEL = 9  # cells of `Lowest` and `Next`, with the gap


@dataclass(frozen=True, slots=True)
class _Screen:
    console: Console
    full: bool
    colour: bool


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of lines ready to print in `width` cells, in which the heading may be folded.

    `least` is the width of its longest word.
    """

    head: Text
    cells: Sequence[Text]
    numeric: bool
    width: int
    least: int


def render(
    document: Document,
    *,
    full: bool = False,
    colour: bool = False,
    width: int | None = None,
) -> str:
    """Write the finding, the summary and what to do next; with `full` also every section.

    `width` is in terminal cells (default: the terminal's, or 80). Without `colour` the text has no
    escape codes and no bars.
    """
    text = StringIO()
    columns_of_terminal = shutil.get_terminal_size((80, 24)).columns
    color_system: Literal["standard"] | None = "standard" if colour else None
    console = Console(
        file=text,
        width=width or columns_of_terminal,
        force_terminal=colour,
        force_jupyter=False,  # Jupyter mode writes nothing into the file
        color_system=color_system,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    screen = _Screen(console, full, colour)
    _print_finding(document, screen)
    for notice in document.notices:
        _print(blocks.Notice(notice), screen)
    for remark in document.remarks:
        _print(blocks.Paragraph(remark, "muted"), screen)
    for block in document.summary:
        if _is_in_summary(block, screen):
            # These begin with a blank line of their own.
            if not isinstance(block, blocks.Details | blocks.Heading):
                console.print()
            _print(block, screen)
    if full:
        for section in document.sections:
            _print_section(section, screen)
    _print_footer(document, screen)
    printed = text.getvalue().replace(_BLANK, " ")
    lines = [line.rstrip() for line in printed.split("\n")]
    return "\n".join(lines)


def _print_finding(document: Document, screen: _Screen) -> None:
    console = screen.console
    headline, *details = document.finding or (document.title,)
    if screen.full and document.finding:
        title = one_line(document.title)
        console.print(_text(title, "bold"))
        about = " · ".join(map(one_line, document.about))
        console.print(_text(about, "dim"))
    _print_headline(console, one_line(headline), one_line(document.scope))
    for sentence in details:
        text = _text(one_line(sentence))
        console.print(Padding(text, (0, 0, 0, 2)))


def _is_in_summary(block: blocks.Block, screen: _Screen) -> bool:
    """Return whether a block of the summary is printed."""
    if screen.full:
        # The sections have the short table in full.
        is_short = isinstance(block, blocks.Table) and block.short
        return not is_short and not _page_only(block)
    return not isinstance(block, blocks.Chart) and not _page_only(block)


def _print_section(section: blocks.Section, screen: _Screen) -> None:
    printed = [block for block in section.blocks if not _page_only(block)]
    if printed:
        # A heading begins with an empty line of its own.
        gap = "" if isinstance(printed[0], blocks.Heading) else "\n"
        screen.console.print(_text(f"\n{section.title}{gap}", "bold"))
    for block in printed:
        _print(block, screen)


def _print_footer(document: Document, screen: _Screen) -> None:
    """Print the last lines, and the commands that help now."""
    console = screen.console
    commands = _commands(document, screen)
    lines = document.footer
    if screen.full:
        # The full report has no use for lines such as "9 more: --full".
        lines = tuple(line for line in lines if not line.endswith(full_report()))
    if lines or commands:
        console.print()
    for line in lines:
        label, gap, rest = line.partition(_WIDE)
        if gap:
            _print_labelled(console, label, (rest.lstrip(),))
        else:
            console.print(_text(line), soft_wrap=True)
    if commands:
        _print_labelled(console, "Next", commands, fold=False)


def _commands(document: Document, screen: _Screen) -> list[str]:
    """Return the commands that the reader can use as they are."""
    if in_python():
        # They are commands of a shell.
        return []
    commands: list[str] = []
    for command in document.next:
        # RUN stands for a folder that the reader has to fill in.
        is_unfilled = "RUN" in command.split()
        is_done = screen.full and command.endswith("--full")
        if not (is_unfilled or is_done):
            commands.append(command)
    return commands


def _page_only(block: blocks.Block) -> bool:
    """Return whether only the page shows a block; a chart whose values are tabled, too."""
    if isinstance(block, blocks.Chart):
        return block.tabled
    return isinstance(block, blocks.ItemBrowser | blocks.Tiles)


def _text(text: str, style: str | Style = "") -> Text:
    """Return the text without control characters, which could change the terminal.

    No line breaks inside an interval or between a sign and its number.
    """

    def without_breaks(match: re.Match[str]) -> str:
        return match[0].replace(" ", _BLANK)

    unbroken = _TOGETHER.sub(without_breaks, text)
    return Text(escape_controls(unbroken), style)


def _assemble(*parts: str | Text | tuple[str, str]) -> Text:
    """Join texts and (text, style) pairs."""
    joined = Text()
    for part in parts:
        if isinstance(part, Text):
            joined.append_text(part)
        elif isinstance(part, str):
            joined.append_text(_text(part))
        else:
            text, style = part
            joined.append_text(_text(text, style))
    return joined


def _print_headline(console: Console, headline: str, scope: str) -> None:
    gap = console.width - cell_len(headline) - cell_len(scope)
    if scope and gap >= _GAP:
        space = " " * gap
        console.print(_assemble((headline, "bold"), space, (scope, "dim")))
    else:
        bold_headline = _text(headline, "bold")
        console.print(_folded(bold_headline, console.width))
        if scope:
            console.print(_text(f"  {scope}", "dim"))


def _print_labelled(
    console: Console,
    label: str,
    parts: Sequence[str],
    *,
    fold: bool = True,
) -> None:
    """Print `Label    part · part`, with whole parts on a line if they fit.

    A part that is longer than a line is folded, or without `fold` stays whole.
    """
    room = console.width - _LABEL
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(f"{lines[-1]} · {part}") <= room:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    if fold:
        folded_lines: list[str] = []
        for line in lines:
            folded_lines += wrapped(_text(line).plain, room, cell_len)
        lines = folded_lines
    for index, line in enumerate(lines):
        shown_label = label if index == 0 else ""
        padded_label = f"{shown_label:<{_LABEL}}"
        labelled = _assemble((padded_label, "dim"), line)
        console.print(labelled, soft_wrap=True)


@singledispatch
def _print(block: blocks.Block, screen: _Screen) -> None:
    """Print one block; a block that a terminal cannot show prints nothing."""


@_print.register
def _(block: blocks.Heading, screen: _Screen) -> None:
    heading = f"\n{one_line(block.text)}"
    screen.console.print(_text(heading, "bold"))


@_print.register
def _(block: blocks.Paragraph, screen: _Screen) -> None:
    text = _text(block.text, _STYLES[block.tone])
    screen.console.print(_folded(text, screen.console.width))


@_print.register
def _(block: blocks.Notice, screen: _Screen) -> None:
    notice = _text(f"! {block.text}", "yellow")
    screen.console.print(_folded(notice, screen.console.width))


@_print.register
def _(block: blocks.Facts, screen: _Screen) -> None:
    grid = Grid.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    name_lengths = [cell_len(name) for name, _ in block.pairs]
    longest_name = max(name_lengths, default=0)
    room = max(_FOLDED, screen.console.width - longest_name - _GAP)
    for name, text in block.pairs:
        folded_text = _folded(_text(text), room)
        grid.add_row(_assemble(name), folded_text)
    screen.console.print(grid)


@_print.register
def _(block: blocks.Bullets, screen: _Screen) -> None:
    for item in block.items:
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column()
        grid.add_column(overflow="fold")
        room = screen.console.width - 2
        folded_item = _folded(_text(item), room)
        grid.add_row("-", folded_item)
        screen.console.print(grid)


@_print.register
def _(block: blocks.Code, screen: _Screen) -> None:
    room = screen.console.width - _INDENT
    lines: list[str] = []
    for line in _text(block.text).plain.split("\n"):
        lines += _hanging_lines(line, room)
    code = Text("\n".join(lines))
    screen.console.print(Padding(code, (0, 0, 0, _INDENT)))


@_print.register
def _(block: blocks.Diff, screen: _Screen) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in block.lines:
        style = styles.get(line[:1], "")
        screen.console.print(_text(line, style), soft_wrap=True)


@_print.register
def _(block: blocks.Excerpts, screen: _Screen) -> None:
    parts = []
    for excerpt in block.excerpts:
        facts = (excerpt.item, excerpt.system, excerpt.column, excerpt.score)
        part = " ".join(one_line(fact, 30) for fact in facts if fact)
        parts.append(part)
    if not screen.full:
        printed = parts[:_EXCERPTS]
        if block.n_more is not None:
            n_more = len(parts) - len(printed) + block.n_more
            if n_more:
                printed.append(f"{n_more:,} more")
        _print_labelled(screen.console, block.label, printed)
        return
    if block.label:
        screen.console.print(_text(block.label, "bold"))
    for part, excerpt in zip(parts, block.excerpts, strict=True):
        lines = [excerpt.reason]
        if excerpt.text:
            lines += [excerpt.note, f"Text: {excerpt.text}"]
        below = ""
        for line in filter(None, lines):
            below += f"\n{one_line(line, 300)}"
        text = _assemble(part, (below, "dim"))
        folded = _folded(text, screen.console.width - _INDENT)
        screen.console.print(Padding(folded, (0, 0, 0, _INDENT)))
    if block.rest:
        rest = _text(block.rest, "dim")
        screen.console.print(Padding(rest, (0, 0, 0, _INDENT)))


@_print.register
def _(block: blocks.Chart, screen: _Screen) -> None:
    alternative = f"{block.title}: {block.alt}"
    screen.console.print(_text(alternative, "dim"))


@_print.register
def _(block: blocks.Details, screen: _Screen) -> None:
    if any(isinstance(inner, blocks.Code) for inner in block.blocks):
        return  # prompts fill screens; the page has them
    heading = f"\n{one_line(block.title)}"
    screen.console.print(_text(heading, "bold"))
    for inner in block.blocks:
        _print(inner, screen)


@_print.register
def _(block: blocks.Table, screen: _Screen) -> None:
    """Print the table; columns that do not fit follow in tables below, or in the summary are
    counted.

    The first one or two columns, if they hold no numbers, name the rows and stand in each of these
    tables. If no column holds numbers, the widest ones are folded until all fit.
    """
    console = screen.console
    if block.caption and screen.full:
        console.print(_text(block.caption, "dim"))
    indices = range(len(block.columns))
    columns = [_column(block, index, screen) for index in indices]
    are_all_text = not any(column.numeric for column in columns)
    if not screen.full and not are_all_text and _total_width(columns) > console.width:
        columns = [_column(block, index, screen, narrow=True) for index in indices]
    if are_all_text:
        n_names = len(columns)
    else:
        names = list(takewhile(lambda column: not column.numeric, block.columns[:2]))
        n_names = max(1, len(names))
    values = columns[n_names:]
    named = _fitted_names(columns[:n_names], values, console.width)
    room = console.width - _total_width(named)
    parts = _parts(values, room)
    for part in parts if screen.full else parts[:1]:
        grid = _grid(named, part, len(block.rows), console.width)
        console.print(grid)
    shown_block = block if screen.colour else replace(block, bold="")
    key = shown_block.whole_key
    if not screen.full:
        n_hidden = sum(map(len, parts[1:]))
        more = _hidden_note(n_hidden, block)
        key = " · ".join(filter(None, (key, more)))
    if key:
        console.print(_text(key, "dim"))


def _hidden_note(n_hidden: int, block: blocks.Table) -> str:
    """Say what of a table only the full report shows, and how to get it; "" for nothing.

    `n_hidden` is the number of columns that do not fit.
    """
    hidden: list[str] = []
    if n_hidden:
        noun = "column" if n_hidden == 1 else "columns"
        hidden.append(f"{n_hidden} more {noun}")
    if block.omitted:
        hidden.append(block.omitted)
    if block.short:
        hidden.append("intervals and details")
    if not hidden:
        return ""
    return ", ".join(hidden) + f": {full_report()}"


def _total_width(columns: Sequence[_Column]) -> int:
    """Return the cells that columns side by side take."""
    widths = [column.width + _GAP for column in columns]
    return sum(widths) - _GAP


def _fitted_names(
    names: Sequence[_Column],
    others: Sequence[_Column],
    width: int,
) -> list[_Column]:
    """Return the columns that name the rows, folded as far as the others need the room."""
    widths = _folded_widths(names, width)
    if others:
        widths = _widths_beside(names, others, width)
    folded = zip(names, widths, strict=True)
    return [replace(column, width=new_width) for column, new_width in folded]


def _widths_beside(
    names: Sequence[_Column],
    others: Sequence[_Column],
    width: int,
) -> list[int]:
    """Return the widths of the columns that name the rows, beside the other columns.

    Each gets at most `_NAME` cells, or those of its longest word. Only the last one is folded more.
    """
    widths = []
    for column in names:
        most = max(_NAME, column.least)
        widths.append(min(column.width, most))
    *first_widths, last_width = widths
    last = names[-1]
    width_of_first_names = sum(first_width + _GAP for first_width in first_widths)
    others_width = sum(column.width + _GAP for column in others)
    taken = others_width + width_of_first_names
    floor = max(_MIN_NAME, last.least)
    # Fold the last one if all columns then fit. Otherwise folding would not help.
    if last_width + taken > width >= taken + floor:
        last_width = width - taken
    # Narrow screens: at least one column of numbers stands beside the names.
    widths_of_numbers = [column.width for column in others if column.numeric]
    widest = max(widths_of_numbers, default=0)
    room = width - widest - _GAP - width_of_first_names
    longest_word = min(last.least, width // 2)
    last_width = min(last_width, max(room, longest_word, _FOLDED))
    return [*first_widths, last_width]


def _folded_widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the widths of columns of text that fit side by side, the widest ones folded most.

    No word is broken unless the words alone are wider than the line.
    """
    widths = [column.width for column in columns]
    gaps = _GAP * (len(widths) - 1)
    floors = [max(_MIN_NAME, column.least) for column in columns]
    smallest_widths = map(min, widths, floors)
    if sum(smallest_widths) + gaps > width:
        floors = [_MIN_NAME for _ in columns]
    # Cell by cell, so that columns of nearly the same width end up equal.
    while sum(widths) + gaps > width:
        foldable = []
        for column_width, floor in zip(widths, floors, strict=True):
            can_be_folded = column_width > floor
            foldable.append(column_width if can_be_folded else 0)
        if not any(foldable):
            break
        widest = foldable.index(max(foldable))
        widths[widest] -= 1
    return widths


def _parts(columns: Sequence[_Column], room: int) -> list[list[_Column]]:
    """Split the columns into parts that fit beside the names."""
    parts: list[list[_Column]] = [[]]
    for column in columns:
        extended = [*parts[-1], column]
        width = sum(part_column.width + _GAP for part_column in extended)
        if parts[-1] and width > room:
            parts.append([])
        parts[-1].append(column)
    return parts


def _grid(
    names: Sequence[_Column],
    columns: Sequence[_Column],
    n_rows: int,
    width: int,
) -> Grid:
    grid = Grid(
        box=None,
        padding=(0, _GAP, 0, 0),
        pad_edge=False,
        collapse_padding=True,
        header_style="",
    )
    width_of_names = sum(name_column.width + _GAP for name_column in names)
    room = max(_FOLDED, width - width_of_names)
    shown_columns = [*names]
    for column in columns:
        fitting_width = min(column.width, room)
        shown_columns.append(replace(column, width=fitting_width))
    for index, column in enumerate(shown_columns):
        is_right = column.numeric and index >= len(names)
        head = _folded(column.head, column.width)
        justify: Literal["left", "right"] = "right" if is_right else "left"
        grid.add_column(head, justify=justify, width=column.width, overflow="fold")
    for index in range(n_rows):
        cells = []
        for column in shown_columns:
            folded_cell = _folded(column.cells[index], column.width)
            cells.append(folded_cell)
        grid.add_row(*cells)
    return grid


def _folded(text: Text, width: int) -> Text:
    """Return the text in lines of at most `width` cells, broken between words only."""
    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        pieces = line.divide(break_offsets(line.plain, width, cell_len))
        for piece in pieces[:-1]:
            piece.rstrip()
        lines += pieces
    return Text("\n").join(lines)


def _hanging_lines(line: str, width: int) -> list[str]:
    """Return a line in lines of at most `width` cells, the further ones indented by two more.

    So the reader sees which line breaks are the text's own.
    """
    if cell_len(line) <= width:
        return [line]
    own_indent = len(line) - len(line.lstrip(" "))
    indent = " " * (own_indent + _INDENT)
    room = max(_FOLDED, width - len(indent))
    first_line, *further_lines = wrapped(line, room, cell_len)
    indented_lines = [indent + further_line for further_line in further_lines]
    return [first_line, *indented_lines]


def _column(
    block: blocks.Table,
    index: int,
    screen: _Screen,
    *,
    narrow: bool = False,
) -> _Column:
    """Return a column ready to print; a `narrow` one has no bars and folds its heading."""
    column = block.columns[index]
    cells = [row[index] for row in block.rows]
    has_bars = screen.colour and not screen.full and not narrow
    longest_count = max((cell_len(cell.counted) for cell in cells), default=0)
    lines: list[Text] = []
    for cell, text in zip(cells, _aligned_texts(cells), strict=True):
        line = _text(text, _STYLES[cell.tone])
        if longest_count and not screen.full:
            # Padded, so that the numbers before it stay aligned.
            count = f"{cell.counted:{_BLANK}<{longest_count}}"
            line = _assemble(line, _BLANK, (count, "dim"))
        if cell.bar and has_bars:
            line = _assemble(line, " ", (_drawn_bar(cell.bar), "blue"))
        if cell.small_text and screen.full:
            line = _assemble(line, (f"\n{cell.small_text}", "dim"))
        lines.append(line)
    head = _heading(column, screen)
    printed_lines: list[str] = []
    for line in lines:
        printed_lines += line.plain.split("\n")
    cells_width = max(map(cell_len, printed_lines), default=0)
    lines_of_head = head.split("\n")
    head_width = max(map(cell_len, lines_of_head))
    if narrow:
        longest_word_of_head = longest_piece(head, cell_len)
        head_width = min(head_width, max(_FOLDED, longest_word_of_head))
    all_lines = [head, *printed_lines]
    longest_word = max(longest_piece(line, cell_len) for line in all_lines)
    return _Column(
        _text(head, "dim"),
        lines,
        column.numeric,
        width=max(cells_width, head_width),
        least=min(longest_word, _WORD),
    )


def _aligned_texts(cells: Sequence[blocks.Cell]) -> list[str]:
    """Return the texts of a column's cells with their marks, padded to align at the right."""
    # Marks are padded, so that numbers stay aligned at the right.
    mark_lengths = [cell_len(cell.mark) for cell in cells]
    longest_mark = max(mark_lengths, default=0)
    texts: list[str] = []
    for cell in cells:
        text = one_line(cell.text)
        padded_mark = f"{cell.mark:{_BLANK}<{longest_mark}}"
        texts.append(text + padded_mark)
    if not any(cell.bar for cell in cells):
        return texts
    # Bars begin at the same place only if the texts before them are equally long.
    longest_text = max(map(cell_len, texts))
    return [f"{text:{_BLANK}>{longest_text}}" for text in texts]


def _drawn_bar(bar: blocks.Bar) -> str:
    """Return a bar as blocks, at least one, padded to the length of a full bar."""
    n_blocks = max(1, round(_BAR * bar.end))
    filled_blocks = "█" * n_blocks
    return f"{filled_blocks:<{_BAR}}"


def _heading(column: blocks.Column, screen: _Screen) -> str:
    """Return the heading of a column; in full, with its group above and its better direction."""
    if not screen.full:
        return one_line(column.head, _HEAD)
    names = filter(None, (column.group, column.head))
    lines = [one_line(name, _HEAD) for name in names]
    return "\n".join(lines) + blocks.ARROWS[column.better]
