"""Render a result for a terminal or a log; `recording_console` does the same for other renderers."""

from __future__ import annotations

import shutil
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable


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
