"""Render a result for a terminal or a log; `recording_console` does the same for other renderers."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judge.core.format import one_line
from judge.report.views import people as validation
from judge.report.views.columns import ALPHA
from judge.report.views.leaderboard_old import Cell, build_leaderboard, verdict
from judge.report.views.provenance import Provenance
from judge.report.views.ranking_old import RankingView, build_ranking
from judge.report.views.score_drivers import drivers_sentence
from judge.results.result import Result


def recording_console(*, colour: bool, width: int | None = None) -> tuple[Console, StringIO]:
    """A console and the text it writes: as wide as the terminal, or 80; without `colour` no escape code."""
    text = StringIO()
    console = Console(
        file=text,
        width=width or shutil.get_terminal_size((80, 24)).columns,
        force_terminal=colour,
        force_jupyter=False,  # which would show the lines in the notebook, and write nothing
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    return console, text


def printed(recording: StringIO) -> str:
    """What was printed, without spaces at the ends of lines."""
    return "\n".join(row.rstrip() for row in recording.getvalue().split("\n"))


def plain_table(*heads: str) -> RichTable:
    """A table without a frame, with these columns of text; the caller adds those of numbers."""
    table = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


_NAME, _HEAD, _GAP = 28, 30, 2  # widest system name, widest column name before folding, padding of a column
_NARROW_NAME = 16  # a system name may be folded to this width if all columns then fit beside it
_MOST_IN_MATRIX = 12  # systems in a matrix of win rates


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table: its heading and cells, each of one line or more."""

    head: str
    cells: Sequence[Text]

    @property
    def width(self) -> int:
        head = max(min(_HEAD, cell_len(part)) for part in self.head.split("\n"))
        return max([head, *(cell_len(part) for cell in self.cells for part in cell.plain.split("\n"))])


def render(result: Result, *, width: int | None = None, colour: bool = False) -> str:
    """The verdict, the table of means or the rankings, with intervals, then notes, failures by kind, signatures, usage.

    `width` in terminal cells (the terminal's, or 80); columns that do not fit follow in tables below. Without
    `colour` there is no escape code in the text.
    """
    console, recording = recording_console(colour=colour, width=width)
    view = build_ranking(result) if result.rankings else build_leaderboard(result)
    about = view.about
    console.print(Text(about.title, "bold"))
    if answer := verdict(result):
        console.print(Text(answer))
    if isinstance(view, RankingView):
        _print_rankings(console, view)
    else:
        columns = []
        if view.ranks:
            standings = [view.ranks.get(system) for system in view.systems]
            columns = [_Column("rank", [_cell(str(s.rank), s.interval) if s else Text("–") for s in standings])]
        columns += [
            _Column(
                "\n".join(one_line(part) for part in (group.heading, group.parts[column.name]) if part),
                [_mean(view.cells[system, column.name]) for system in view.systems],
            )
            for group in view.groups
            for column in group.columns
        ]
        _print_table(console, "system", view.systems, columns)
        console.print(Text(f"{view.ranked} {view.caption}".lstrip(), "dim"))
    for banner in about.all_banners:
        console.print(Text(f"! {banner}", "yellow"))
    if sentence := drivers_sentence(result):
        console.print(Text(f"\n{sentence}"))
    validation.show(console, result.calibrated)
    if agreement := view.agreement:
        console.print(Text("\nAgreement of the judges", "bold"))
        alphas = _Column("alpha", [_cell(row.alpha, row.interval) for row in agreement])
        counts = _Column("texts", [Text(row.n) for row in agreement])
        _print_table(console, "criterion", [row.criterion for row in agreement], [alphas, counts])
        console.print(Text(ALPHA, "dim"))
    if about.failures:
        console.print(Text(f"\nFailures: {sum(kind.count for kind in about.failures):,}", "bold"))
        grid = RichTable.grid(padding=(0, 2, 0, 0))
        grid.add_column(justify="right", min_width=6)
        grid.add_column(overflow="fold")
        for kind in about.failures:
            names = ", ".join(one_line(name) for name in kind.columns)
            text = Text(f"{one_line(kind.stage)}  {one_line(kind.error)}  ({names})\n")
            text.append(f"e.g. {one_line(kind.example, 300)}", "dim")
            grid.add_row(f"{kind.count:,}", text)
        console.print(grid)
    _print_facts(console, about)
    return printed(recording)


def _print_table(console: Console, first: str, names: Sequence[str], columns: Sequence[_Column]) -> None:
    """A table, or several with as many columns as fit beside the names; at least one column each."""
    names = [one_line(name) for name in names]
    wide = min(_NAME, max(map(cell_len, [first, *names])))
    if wide > (remaining := console.width - _GAP - sum(column.width + _GAP for column in columns)) >= _NARROW_NAME:
        wide = remaining
    for group in _groups_that_fit(columns, console.width - wide - _GAP):
        table = plain_table()
        table.add_column(first, max_width=wide, overflow="fold")
        for column in group:
            table.add_column(Text(column.head), justify="right", width=column.width, overflow="fold")
        for place, name in enumerate(names):
            table.add_row(Text(name), *(column.cells[place] for column in group))
        console.print(table)


def _groups_that_fit(columns: Iterable[_Column], room: int) -> Iterator[list[_Column]]:
    group: list[_Column] = []
    remaining = room
    for column in columns:
        if group and column.width + _GAP > remaining:
            yield group
            group, remaining = [], room
        group.append(column)
        remaining -= column.width + _GAP
    if group:
        yield group


def _cell(value: str, interval: str = "") -> Text:
    return Text.assemble(value, (f"\n{interval}" if interval else "", "dim"))


def _mean(cell: Cell) -> Text:
    """The lines of a cell: `48/50 *3.92` or `≈3.92`, and `[3.70, 4.11]`."""
    text = Text(cell.coverage, "yellow")
    text = Text.assemble(text, " " if cell.coverage else "", (cell.mark + cell.mean, "bold green" if cell.best else ""))
    return Text.assemble(text, (f"\n{cell.interval}" if cell.interval else "", "dim"))


def _print_rankings(console: Console, view: RankingView) -> None:
    for contest in view.contests:
        console.print(Text(f"\n{one_line(contest.label)}", "bold"))
        columns = [_Column(head, [_cell(*cell) for cell in cells]) for head, cells in contest.columns.items()]
        _print_table(console, "system", contest.systems, columns)
        size = len(contest.systems)
        if size > _MOST_IN_MATRIX:
            console.print(Text(f"The win rates of {size} systems against each other are in the HTML report.", "dim"))
        elif size > 2:  # the columns have the rows' numbers
            names = [f"{number} {system}" for number, system in enumerate(contest.systems, 1)]
            rates = [
                _Column(str(number), [Text(met.text or "·") for met in column])
                for number, column in enumerate(zip(*contest.matrix, strict=True), 1)
            ]
            console.print(Text("\nWin rates in per cent, row against column", "bold"))
            _print_table(console, "", names, rates)
        console.print(Text(" ".join(contest.sentences)))
        if contest.ranking.note:
            console.print(Text(one_line(contest.ranking.note), "yellow"))
    console.print(Text(f"\n{view.caption}", "dim"))


def _print_facts(console: Console, provenance: Provenance) -> None:
    console.print()
    for name, text in provenance.facts:
        console.print(Text.assemble((f"{name:<10}", "dim"), text), soft_wrap=True)
    if provenance.usage:
        console.print(Text.assemble((f"{'Usage':<10}", "dim"), provenance.usage), soft_wrap=True)
    if provenance.judges:
        console.print(Text("\nJudges" if len(provenance.judges) > 1 else "\nJudge", "bold"))
    for name, text in provenance.judges:
        console.print(Text.assemble(f"  {name}  ", (text, "dim")), soft_wrap=True)
    signed_columns = [column for column in provenance.signed if column.signature]
    if signed_columns:
        console.print(Text("\nSignatures", "bold"))
    for column in signed_columns:
        method = f"  ({column.methods})" if column.methods else ""
        console.print(
            Text.assemble(f"  {one_line(column.name)}  ", (one_line(column.signature) + method, "dim")), soft_wrap=True
        )
