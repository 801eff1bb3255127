"""What is printed: in colour only where somebody looks and wants it, as JSON where a program reads."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import typer

from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

BOTH = ("console", "json")
"""The formats of what is a table for people and a record for programs."""


def plain() -> bool:
    """Whether no control code may be written anywhere: $NO_COLOR is set, or the terminal is a dumb one."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def colour() -> bool:
    """Whether what is printed may have colour and weight."""
    return sys.stdout.isatty() and not plain()


def console(*, stderr: bool = False) -> Console:
    """Rich's console, which takes every text as it is."""
    from rich.console import Console

    forced = False if plain() else None
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, force_terminal=forced)


def check_format(format: str, what: str) -> None:
    """Raises ConfigError for a format that is not one of `BOTH`, in which `what` is shown."""
    if format not in BOTH:
        raise ConfigError(f"--format {format}: {what} is shown on the console or as json")


def echo(text: str, format: str = "") -> None:
    """Print what may hold the words of others: on a terminal with control characters written out.

    A report for the `console` comes clean and with its own colours; a pipe gets every text as it is.
    """
    if format != "console" and sys.stdout.isatty():
        from judge.report.format import clean

        text = clean(text)
    typer.echo(text)


def say(message: str) -> None:
    """Print a message beside the results: on standard error, with control characters written out."""
    from judge.report.format import clean

    typer.echo(clean(message), err=True)


def print_json(data: Any) -> None:
    """Plain JSON, two blanks deep. Raises ValueError for a number that JSON has not."""
    echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
