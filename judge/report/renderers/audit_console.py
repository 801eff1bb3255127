"""A card for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judge.audit.card import Card
from judge.report.renderers.terminal import written
from judge.report.views.audit import OPEN, TOLD, Bias, Detail, Layout, Matrix, Row, ShownCell, layout

_HEAD = ("Data", "Texts", "Judgments", "Language")
_NAME, _CELL = 22, 14  # columns of a terminal that a change's name and a cell take


def render(card: Card, *, colour: bool = False) -> str:
    """As wide as the terminal, or 80; without `colour` no escape code."""
    console, text = written(colour=colour)
    shown = layout(card)
    console.print(Text(shown.title, "bold"))
    console.print(Text(" · ".join(f"{name}: {text}" for name, text in shown.facts if name in _HEAD), "dim"))
    for note in shown.notes:
        console.print(Text(f"! {note}", "yellow"))
    for sentence in shown.told:
        console.print(_item(sentence))
    won = [one for one in shown.attacks if one.move[-1:] in (TOLD, OPEN)]
    for matrix, details in ((shown.sensitivity, shown.own), (shown.injection, won)):
        if matrix:
            _print_matrix(console, matrix, details)
    _print_biases(console, shown)
    _print_rest(console, shown)
    return "\n".join(row.rstrip() for row in text.getvalue().split("\n"))


def _item(text: str) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text("–"), Text(text, overflow="fold"))
    return grid


def _grid(*heads: str) -> Table:
    """Names to the left, all else to the right."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _print_matrix(console: Console, matrix: Matrix, details: Sequence[Detail]) -> None:
    console.print(Text(f"\n{matrix.title}", "bold"))
    for first, last in _chunks(len(matrix.criteria), max(1, (console.width - _NAME) // _CELL)):
        table = _grid("")
        for name in matrix.criteria[first:last]:
            table.add_column(name, justify="right", overflow="fold")
        for name, cells in matrix.rows:
            table.add_row(Text(name), *(_cell(cell) for cell in cells[first:last]))
        console.print(table)
    if matrix.told:
        console.print(Text(matrix.told, "dim"))
    if details:
        console.print(_details(details))


def _chunks(size: int, most: int) -> Iterator[tuple[int, int]]:
    return ((first, first + most) for first in range(0, size, most))


def _cell(cell: ShownCell | None) -> Text:
    if cell is None:
        return Text("–")
    mark = f"{cell.mark} " if cell.mark else ""
    style = "bold" if cell.own else "" if cell.told else "dim"
    return Text(f"{mark}{cell.text:>4} {cell.move}{cell.told or ' '}", style)


def _details(details: Sequence[Detail]) -> Table:
    table = _grid("", "")
    failed = any(one.failed != "0" for one in details)
    for head in ("moved", "against", "mean change", "n", *(["failed"] if failed else [])):
        table.add_column(head, justify="right", no_wrap=True)
    above = ""
    for one in details:
        name = f"{one.mark} {one.change}".lstrip()
        cells = [one.rate, one.against, one.move, one.n, *([one.failed] if failed else [])]
        table.add_row(Text("" if one.criterion == above else one.criterion), Text(name), *cells)
        above = one.criterion
    return table


def _print_biases(console: Console, shown: Layout) -> None:
    if not shown.biases:
        return
    console.print(Text("\nBias", "bold"))
    for bias in shown.biases:
        criteria = list(dict.fromkeys(row.criterion for group in bias.groups for row in group.rows))
        for first, last in _chunks(len(criteria), max(1, (console.width - _NAME) // _CELL)):
            console.print(_bias(bias, criteria[first:last]), "")
    console.print(Text(shown.biases_how, "dim"))
    if shown.use:
        console.print(Text("\nHow often each label is given"))
        table = _grid("", "")
        table.show_header = False
        for one in shown.use:
            table.add_row(Text(one.criterion), Text(one.told))
        console.print(table)


def _bias(bias: Bias, criteria: Sequence[str]) -> Table:
    """What was found below each other, the criteria beside each other; below a value its interval."""
    table = _grid(bias.probe)
    for name in criteria:
        table.add_column(name, justify="right", overflow="fold")
    for group in bias.groups:
        found = {row.criterion: row for row in group.rows if row.criterion in criteria}
        if found:
            of = f"{', '.join(dict.fromkeys(row.n for row in found.values()))}"
            table.add_row(
                Text.assemble(group.what, (f"\n{of}", "dim")), *(_found(found.get(name)) for name in criteria)
            )
    return table


def _found(row: Row | None) -> Text:
    if row is None:
        return Text("–")
    return Text.assemble((f"{row.value}{row.mark or ' '}", "bold" if row.mark else ""), (f"\n{row.interval} ", "dim"))


def _print_rest(console: Console, shown: Layout) -> None:
    for title, rows in (
        ("Left out", shown.left_out),
        ("Judgments that failed", shown.failures),
        ("How it was made", shown.facts),
    ):
        if rows:
            console.print(Text(f"\n{title}", "bold"))
        for name, text in rows:
            console.print(Padding(Text.assemble(f"{name}: ", (text, "dim")), (0, 0, 0, 2)))
    if shown.sensitivity or shown.injection:
        console.print(Text(f"\n{shown.how}", "dim"))
