"""What is printed on a terminal, written into a text."""

from __future__ import annotations

import shutil
from io import StringIO

from rich.console import Console


def written(*, colour: bool, width: int | None = None) -> tuple[Console, StringIO]:
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
