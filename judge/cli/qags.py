"""One item of a run: the questions and answers of QAGS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judge.cli.terminal import console, print_json

if TYPE_CHECKING:
    from judge.core.records import Sample
    from judge.results.result import Result

_METRIC = "qags"


def show_item(result: Result, item: str, system: str | None, format: str) -> None:
    """Print the questions and answers of one item."""
    from judge.commands.preparation import samples_of_item

    rows = samples_of_item(list(result.table.samples), item, system)
    notes = [str(note) for note in result.info.get("notes") or () if str(note).startswith(f"{_METRIC}:")]
    if format == "json":
        print_json({"outputs": [_output_json(result, row) for row in rows], "notes": notes})
    else:
        _print_questions(result, rows, notes)


def _output_json(result: Result, sample: Sample) -> dict[str, Any]:
    """An output's values by column, what could not be measured, and its questions, as plain JSON."""
    from dataclasses import asdict

    from judge.core.records import Score
    from judge.report.views.qags import is_qags, qags_table

    columns = {column.name: column for column in result.table.columns if is_qags(column)}
    qags_rows = [row for row in result.table.rows() if row.column in columns]
    rows = {row.column: row for row in qags_rows if (row.item, row.system) == (sample.item, sample.system)}
    lines = next(filter(None, (qags_table(columns[name], row) for name, row in rows.items())), ())
    return {
        "item": sample.item,
        "system": sample.system,
        "values": {name: row.value for name, row in rows.items() if isinstance(row, Score)},
        "failures": {name: row.message for name, row in rows.items() if not isinstance(row, Score)},
        "questions": [asdict(line) for line in lines],
    }


def _print_questions(result: Result, samples: Sequence[Sample], notes: Sequence[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    from judge.core.format import one_line
    from judge.report.views.qags import HEADS, qags_tables

    screen = console()
    for title, lines in qags_tables(result, samples):
        screen.print(Text(one_line(title), "bold"))
        if lines:
            table = Table(box=None, padding=(0, 2, 0, 0))
            for head in HEADS:
                table.add_column(head, overflow="fold")
            for line in lines:
                table.add_row(*map(Text, line.cells))
            screen.print(table)
        screen.print()
    for note in notes:
        screen.print(Text(one_line(note)))
