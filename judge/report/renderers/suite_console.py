"""Outcomes for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judge.report.format import count, line, seconds
from judge.report.renderers.terminal import written
from judge.report.views.comparison import RunComparison
from judge.report.views.suite import Row, Shown, changed, shown, totals
from judge.suite.records import Outcome

_STYLES = {"✓": "green", "✗": "bold red", "?": "bold yellow", "!": "bold magenta"}
_DIFF = {"+": "green", "-": "red"}
_LINES = 40  # of a prompt's diff


def render(outcomes: Sequence[Outcome], *, colour: bool = False) -> str:
    """As wide as the terminal, or 80; without `colour` no escape code. What all suites came to is the last line."""
    console, text = written(colour=colour)
    for outcome in outcomes:
        _print_suite(console, shown(outcome))
        if outcome.comparison is not None:
            _print_compared(console, outcome.comparison, colour)
        console.print()
    if len(outcomes) > 1:
        console.print(Text(totals(outcomes), _told(all(one.passed for one in outcomes))))
    rows = [row.rstrip() for row in text.getvalue().split("\n")]
    return "\n".join(rows).strip("\n") + "\n"


def _told(passed: bool) -> str:
    return "bold green" if passed else "bold red"


def _print_suite(console: Console, suite: Shown) -> None:
    console.print(Text.assemble((suite.name, "bold"), (f"  {suite.path}", "dim")))
    console.print(Text.assemble((suite.told, _told(suite.passed)), (f" {seconds(suite.seconds)}", "dim")))
    if suite.trouble:
        console.print(Padding(Text(suite.trouble), (0, 0, 0, 2)))
    if suite.rows:
        console.print()
        console.print(_table(suite.rows, console.width))
    if suite.unmet:
        console.print(Text("\nNot met", "bold"))
    for row in suite.unmet:
        console.print(Padding(Text.assemble((row.where, "dim"), f" {row.name}: {row.state}"), (0, 0, 0, 2)))
        if row.detail:
            console.print(Padding(Text(row.detail, "dim"), (0, 0, 0, 4)))
    if suite.flaky:
        console.print(Text.assemble(("\nFlaky", "bold"), f": {suite.flaky}: so many single replies say the opposite."))
    for note in suite.notes:
        console.print(Text(f"! {note}", "yellow"))


def _table(rows: Sequence[Row], width: int) -> Table:
    """What a verdict says stands below what was found."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("", no_wrap=True)
    table.add_column("case", overflow="fold", max_width=width * 2 // 5)
    table.add_column("expected", overflow="fold", max_width=width // 5)
    table.add_column("found", overflow="fold")
    for row in rows:
        before = f"\nbefore {row.before}" if row.before else ""
        said = f"\n{row.said}" if row.said else ""
        found = Text.assemble(row.found, (said, "" if not row.met else "dim"), (before, "dim"))
        name = Text(row.name, "" if row.met else "bold")
        table.add_row(Text(row.mark, _STYLES[row.mark]), name, row.expected, found)
    return table


def _print_compared(console: Console, found: RunComparison, colour: bool) -> None:
    """The runs side by side as `judge compare` shows them, and the lines of the prompts that differ."""
    console.print(Text("\nAgainst the baseline", "bold"))
    console.print(Text.from_ansi(found.report("console", colour=colour).rstrip("\n")), soft_wrap=True)
    for change in found.changes:
        lines = changed(change)
        if lines:
            console.print(Text(f"\nPrompt of {line(', '.join(change.columns))}", "bold"))
        for text in lines[:_LINES]:
            console.print(Padding(Text(text, _DIFF.get(text[:1], "dim")), (0, 0, 0, 2)))
        if len(lines) > _LINES:
            console.print(Padding(Text(f"… {count(len(lines) - _LINES, 'more line')}", "dim"), (0, 0, 0, 2)))
