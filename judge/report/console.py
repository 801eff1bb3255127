"""The summary for a terminal or a log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judge.records import Column
from judge.report.result import Result
from judge.report.view import Cell, View, view
from judge.report.words import line

_NAME, _HEAD, _GAP = 28, 24, 2  # widest system name, widest column name before folding, padding of a column


def render(result: Result, *, width: int | None = None, colour: bool = False) -> str:
    """The table of means with intervals, then failures by kind, notes, signatures and usage.

    `width` in terminal cells (the terminal's, or 80); columns that do not fit follow in tables below. Without
    `colour` there is no escape code in the text.
    """
    text = StringIO()
    console = Console(
        file=text,
        width=width or shutil.get_terminal_size((80, 24)).columns,
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    shown = view(result)
    console.print(Text(shown.title, "bold"))
    for banner in shown.banners:
        console.print(Text(f"! {banner}", "yellow"))
    for columns in _blocks(shown, console.width):
        console.print(_table(shown, columns))
    console.print(Text(shown.caption, "dim"))
    _print_failures(console, shown)
    _print_facts(console, shown)
    return "\n".join(row.rstrip() for row in text.getvalue().split("\n"))


def _blocks(shown: View, width: int) -> Iterator[list[tuple[Column, int]]]:
    """The columns with their widths, in groups that fit beside the systems' names; at least one a group."""
    names = min(_NAME, max((cell_len(line(s)) for s in shown.systems), default=0))
    group: list[tuple[Column, int]] = []
    left = width - names - _GAP
    for column in shown.columns:
        cells = [shown.cells[system, column.name] for system in shown.systems]
        texts = [part for cell in cells for part in _parts(cell)]
        need = max([min(_HEAD, cell_len(line(column.name))), *map(cell_len, texts)])
        if group and need + _GAP > left:
            yield group
            group, left = [], width - names - _GAP
        group.append((column, need))
        left -= need + _GAP
    if group:
        yield group


def _parts(cell: Cell) -> list[str]:
    """The lines of a cell: `48/50 *3.92` and `[3.70, 4.11]`."""
    mean = ("*" if cell.best else "") + cell.mean
    return [part for part in (f"{cell.coverage} {mean}".lstrip(), cell.interval) if part]


def _table(shown: View, columns: list[tuple[Column, int]]) -> RichTable:
    table = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("system", max_width=_NAME, overflow="fold")
    for column, wide in columns:
        table.add_column(Text(line(column.name)), justify="right", width=wide, overflow="fold")
    for system in shown.systems:
        cells = [shown.cells[system, column.name] for column, _ in columns]
        table.add_row(Text(line(system)), *(_cell(cell) for cell in cells))
    return table


def _cell(cell: Cell) -> Text:
    mean, *interval = _parts(cell)
    text = Text(mean.removeprefix(cell.coverage), "bold green" if cell.best else "")
    return Text.assemble((cell.coverage, "yellow"), text, *((f"\n{part}", "dim") for part in interval))


def _print_failures(console: Console, shown: View) -> None:
    if not shown.failures:
        return
    total = sum(kind.count for kind in shown.failures)
    console.print(Text(f"\nFailures: {total:,}", "bold"))
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", min_width=6)
    grid.add_column(overflow="fold")
    for kind in shown.failures:
        columns = ", ".join(line(name) for name in kind.columns)
        text = Text(f"{line(kind.stage)}  {line(kind.error)}  ({columns})\n")
        text.append(f"e.g. {line(kind.example, 300)}", "dim")
        grid.add_row(f"{kind.count:,}", text)
    console.print(grid)


def _print_facts(console: Console, shown: View) -> None:
    console.print()
    for name, text in shown.facts:
        console.print(Text.assemble((f"{name:<10}", "dim"), text), soft_wrap=True)
    if shown.usage:
        console.print(Text.assemble((f"{'Usage':<10}", "dim"), shown.usage), soft_wrap=True)
    signed = [column for column in shown.columns if column.signature]
    if signed:
        console.print(Text("\nSignatures", "bold"))
    for column in signed:
        console.print(Text.assemble(f"  {line(column.name)}  ", (line(column.signature), "dim")), soft_wrap=True)
