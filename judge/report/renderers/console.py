"""Render a Document for a terminal or a log: its summary, or with `full` everything."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from io import StringIO
from itertools import takewhile

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.table import Table as Grid
from rich.text import Text

from judge.core.format import escape_controls, one_line
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
_BLANK = "\ue000"  # stands for a space that Rich must not strip, and is replaced in the end
_NAME, _MIN_NAME = (
    28,
    12,
)  # widest name of a row, and the width to which names are folded if all columns then fit
_HEAD, _FOLDED = (
    24,
    8,
)  # widest heading, and the width to which it is folded if the table does not fit
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
    """A column of lines ready to print in `width` cells, in which the heading may be folded."""

    head: Text
    cells: Sequence[Text]
    numeric: bool
    width: int


def render(
    document: Document, *, full: bool = False, colour: bool = False, width: int | None = None
) -> str:
    """Write the finding, the summary and what to do next; with `full` also every section.

    `width` is in terminal cells (default: the terminal's, or 80). Without `colour` the text has no escape codes and no
    bars.
    """
    text = StringIO()
    console = Console(
        file=text,
        width=width or shutil.get_terminal_size((80, 24)).columns,
        force_terminal=colour,
        force_jupyter=False,  # Jupyter mode writes nothing into the file
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    screen = _Screen(console, full, colour)
    headline, *details = document.finding or (document.title,)
    if full and document.finding:
        console.print(_text(one_line(document.title), "bold"))
        console.print(_text(" · ".join(map(one_line, document.about)), "dim"))
    _print_headline(console, one_line(headline), one_line(document.scope))
    for sentence in details:
        console.print(Padding(_text(one_line(sentence)), (0, 0, 0, 2)))
    for notice in document.notices:
        _print(blocks.Notice(notice), screen)
    for block in document.summary:
        if full and isinstance(block, blocks.Table) and block.short:
            continue
        if not (_page_only(block) or (not full and isinstance(block, blocks.Chart))):
            if not isinstance(
                block, blocks.Details | blocks.Heading
            ):  # which begin with a blank line
                console.print()
            _print(block, screen)
    for section in document.sections if full else ():
        printed = [block for block in section.blocks if not _page_only(block)]
        if printed:
            console.print(_text(f"\n{section.title}\n", "bold"))
        for block in printed:
            _print(block, screen)
    commands = [
        c for c in document.next if "RUN" not in c.split() and not (full and c.endswith("--full"))
    ]
    if document.footer or commands:
        console.print()
    for line in document.footer:
        label, gap, rest = line.partition(_WIDE)
        if gap:
            _print_labelled(console, label, (rest.lstrip(),))
        else:
            console.print(_text(line), soft_wrap=True)
    if commands:
        _print_labelled(console, "Next", commands, fold=False)
    return "\n".join(line.rstrip() for line in text.getvalue().replace(_BLANK, " ").split("\n"))


def _page_only(block: blocks.Block) -> bool:
    return isinstance(block, blocks.ItemBrowser | blocks.Tiles) or (
        isinstance(block, blocks.Chart) and block.tabled
    )


def _text(text: str, style: str | Style = "") -> Text:
    """Return the text without control characters, which could change the terminal."""
    return Text(escape_controls(text), style)


def _assemble(*parts: str | Text | tuple[str, str]) -> Text:
    """Join texts and (text, style) pairs."""
    joined = Text()
    for part in parts:
        joined.append_text(
            part
            if isinstance(part, Text)
            else _text(*part)
            if isinstance(part, tuple)
            else _text(part)
        )
    return joined


def _print_headline(console: Console, headline: str, scope: str) -> None:
    gap = console.width - cell_len(headline) - cell_len(scope)
    if scope and gap >= _GAP:
        console.print(_assemble((headline, "bold"), " " * gap, (scope, "dim")))
    else:
        console.print(_text(headline, "bold"))
        if scope:
            console.print(_text(f"  {scope}", "dim"))


def _print_labelled(
    console: Console, label: str, parts: Sequence[str], *, fold: bool = True
) -> None:
    """Print `Label    part · part`, whole parts on a line where they fit; longer ones are folded or stay whole."""
    room = console.width - _LABEL
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(f"{lines[-1]} · {part}") <= room:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    if fold:
        lines = [part.plain.rstrip() for line in lines for part in _text(line).wrap(console, room)]
    for place, line in enumerate(lines):
        console.print(
            _assemble((f"{'' if place else label:<{_LABEL}}", "dim"), line), soft_wrap=True
        )


@singledispatch
def _print(block: blocks.Block, screen: _Screen) -> None:
    """Print one block; a block that a terminal cannot show prints nothing."""


@_print.register
def _(block: blocks.Heading, screen: _Screen) -> None:
    screen.console.print(_text(f"\n{one_line(block.text)}", "bold"))


@_print.register
def _(block: blocks.Paragraph, screen: _Screen) -> None:
    screen.console.print(_text(block.text, _STYLES[block.tone]))


@_print.register
def _(block: blocks.Notice, screen: _Screen) -> None:
    screen.console.print(_text(f"! {block.text}", "yellow"))


@_print.register
def _(block: blocks.Facts, screen: _Screen) -> None:
    grid = Grid.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in block.pairs:
        grid.add_row(_assemble(name), _assemble(text))
    screen.console.print(grid)


@_print.register
def _(block: blocks.Bullets, screen: _Screen) -> None:
    for item in block.items:
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column()
        grid.add_column(overflow="fold")
        grid.add_row("-", _text(item))
        screen.console.print(grid)


@_print.register
def _(block: blocks.Code, screen: _Screen) -> None:
    screen.console.print(Padding(_text(block.text), (0, 0, 0, 2)))


@_print.register
def _(block: blocks.Diff, screen: _Screen) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in block.lines:
        screen.console.print(_text(line, styles.get(line[:1], "")), soft_wrap=True)


@_print.register
def _(block: blocks.Excerpts, screen: _Screen) -> None:
    parts = [
        " ".join(one_line(part, 30) for part in (e.item, e.system, e.column, e.score) if part)
        for e in block.excerpts
    ]
    if not screen.full:
        _print_labelled(screen.console, block.label, parts[:_EXCERPTS])
        return
    if block.label:
        screen.console.print(_text(block.label, "bold"))
    for part, excerpt in zip(parts, block.excerpts, strict=True):
        more = (excerpt.note, f"Text: {excerpt.text}") if excerpt.text else ()
        lines = [one_line(line, 300) for line in (excerpt.reason, *more) if line]
        text = _assemble(part, ("".join(f"\n{line}" for line in lines), "dim"))
        screen.console.print(Padding(text, (0, 0, 0, 2)))


@_print.register
def _(block: blocks.Chart, screen: _Screen) -> None:
    screen.console.print(_text(f"{block.title}: {block.alt}", "dim"))


@_print.register
def _(block: blocks.Details, screen: _Screen) -> None:
    if any(isinstance(inner, blocks.Code) for inner in block.blocks):
        return  # prompts fill screens; the page has them
    screen.console.print(_text(f"\n{one_line(block.title)}", "bold"))
    for inner in block.blocks:
        _print(inner, screen)


@_print.register
def _(block: blocks.Table, screen: _Screen) -> None:
    """Print the table; columns that do not fit follow in tables below, or in the summary are only counted.

    The first one or two columns, if they hold no numbers, name the rows and stand in each of these tables. If no column
    holds numbers, the widest ones are folded until all fit.
    """
    console = screen.console
    if block.caption and screen.full:
        console.print(_text(block.caption, "dim"))
    every = [_column(block, place, screen) for place in range(len(block.columns))]
    folds = not any(column.numeric for column in block.columns)
    if (
        not screen.full
        and not folds
        and sum(column.width + _GAP for column in every) - _GAP > console.width
    ):
        every = [_column(block, place, screen, narrow=True) for place in range(len(block.columns))]
    n_names = max(1, len(list(takewhile(lambda column: not column.numeric, block.columns[:2]))))
    if folds:
        n_names = len(every)
    names, columns = every[:n_names], every[n_names:]
    widths = [min(_NAME, column.width) if columns else column.width for column in names]
    while (
        not columns
        and sum(widths) + _GAP * (n_names - 1) > console.width
        and max(widths) > _MIN_NAME
    ):
        widths[widths.index(max(widths))] -= 1
    taken = sum(column.width + _GAP for column in columns) + sum(
        width + _GAP for width in widths[:-1]
    )
    if widths[-1] + taken > console.width >= taken + _MIN_NAME:
        widths[-1] = console.width - taken
    room = console.width - sum(widths) - _GAP * (n_names - 1)
    parts: list[list[_Column]] = [[]]
    for column in columns:
        if parts[-1] and sum(known.width + _GAP for known in [*parts[-1], column]) > room:
            parts.append([])
        parts[-1].append(column)
    for part in parts if screen.full else parts[:1]:
        grid = Grid(
            box=None,
            padding=(0, _GAP, 0, 0),
            pad_edge=False,
            collapse_padding=True,
            header_style="",
        )
        for name, width in zip(names, widths, strict=True):
            grid.add_column(name.head, width=width, overflow="fold")
        for column in part:
            width = min(column.width, console.width)
            grid.add_column(
                column.head,
                justify="right" if column.numeric else "left",
                width=width,
                overflow="fold",
            )
        for place in range(len(block.rows)):
            grid.add_row(*(column.cells[place] for column in (*names, *part)))
        console.print(grid)
    hidden = sum(map(len, parts[1:]))
    key = block.key
    if not screen.full:
        more = f"{hidden} more {'column' if hidden == 1 else 'columns'}" if hidden else ""
        more = ", ".join(filter(None, (more, "intervals and details" if block.short else "")))
        key = " · ".join(filter(None, (key, f"{more}: --full" if more else "")))
    if key:
        console.print(_text(key, "dim"))


def _column(block: blocks.Table, place: int, screen: _Screen, *, narrow: bool = False) -> _Column:
    """Return a column ready to print, with bars on a terminal; a `narrow` one has no bars and folds its heading."""
    column, cells = block.columns[place], [row[place] for row in block.rows]
    marks = max((cell_len(cell.mark) for cell in cells), default=0)
    texts = [one_line(cell.text) + f"{cell.mark:{_BLANK}<{marks}}" for cell in cells]
    if any(cell.bar for cell in cells):
        width = max(map(cell_len, texts))
        texts = [f"{text:{_BLANK}>{width}}" for text in texts]
    lines = []
    for cell, text in zip(cells, texts, strict=True):
        line = _text(text, _STYLES[cell.tone])
        if cell.bar and screen.colour and not screen.full and not narrow:
            drawn = "█" * max(1, round(_BAR * cell.bar.end))
            line = _assemble(line, " ", (f"{drawn:<{_BAR}}", "blue"))
        if cell.note and screen.full:
            line = _assemble(line, (f"\n{cell.note}", "dim"))
        lines.append(line)
    above = [part for part in (column.group, column.head) if part] if screen.full else [column.head]
    head = (
        "\n".join(one_line(part, _HEAD) for part in above)
        + blocks.ARROWS[column.better] * screen.full
    )
    widest = max((cell_len(line) for text in lines for line in text.plain.split("\n")), default=0)
    heading = max(map(cell_len, head.split("\n")))
    return _Column(
        _text(head, "dim"),
        lines,
        column.numeric,
        max(widest, min(heading, _FOLDED) if narrow else heading),
    )
