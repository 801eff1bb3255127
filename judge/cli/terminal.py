"""What a command reads: of a file that is not there, what stands in its place.

Files that a command writes: what speaks against one is said before anything is asked and paid.

How every command of this program behaves: `--json` beside `--format`, plain help, completion of names.

What is printed: in colour only where somebody looks and wants it, as JSON where a program reads.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand

from judge.core.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from rich.console import Console

PLANS = (".yaml", ".yml")
_MOST_NAMES = 3


def require_existing(data: Path) -> None:
    """Raises ConfigError for data or a plan that is not there, which names the files that are; a pattern may be any."""
    from judge.data.rows import SUFFIXES

    folder = data.parent
    if data.exists() or data.is_symlink() or any(sign in str(data) for sign in "*?["):
        return
    if not folder.is_dir():
        raise ConfigError(f"{data}: no such file: there is no folder {folder}")
    kinds = PLANS if data.suffix in PLANS else SUFFIXES
    beside = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in kinds)
    if near := difflib.get_close_matches(data.name, beside, n=_MOST_NAMES):
        raise ConfigError(f"{data}: no such file; near it: {', '.join(near)}")
    if not beside:
        raise ConfigError(
            f"{data}: no such file, and no {'plan' if data.suffix in PLANS else 'data'} file is in {folder}"
        )
    more = f" and {len(beside) - _MOST_NAMES} more" if len(beside) > _MOST_NAMES else ""
    raise ConfigError(f"{data}: no such file; there: {', '.join(beside[:_MOST_NAMES])}{more}")


_INPUTS = (".yaml", ".yml", ".json", ".jsonl", ".csv", ".tsv", ".parquet", ".jinja", ".py", ".ini", ".toml")


def reject_overlap(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raises ConfigError where two outputs (by flag) are one file, or one is among the inputs."""
    read = {path.resolve() for path in inputs if path is not None}
    flags: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in read:
            raise ConfigError(f"{flag} {path}: is read here as well; name another file")
        if (first_flag := flags.setdefault(path.resolve(), flag)) != flag:
            raise ConfigError(f"{flag} {path}: {first_flag} is the same file; name another one")


def reject_input_as_output(outputs: Mapping[str, Path | None]) -> None:
    """Raises ConfigError for a report in the place of a file that by its name is data, a suite or a prompt."""
    for flag, path in outputs.items():
        if path is not None and path.suffix.lower() in _INPUTS and path.exists():
            raise ConfigError(f"{flag} {path}: is there already, and by its name no report; name another file")


def check_writable(outputs: Mapping[str, Path | None]) -> None:
    """Raises StorageError for a file that cannot be written; its folders may be still to be made."""
    for flag, path in outputs.items():
        if path is None:
            continue
        nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
        if nearest.is_dir() == (nearest == path):
            raise StorageError(f"{flag} {path}: {nearest} is a {'folder' if nearest.is_dir() else 'file'}")
        if not os.access(nearest, os.W_OK):
            raise StorageError(f"{flag} {path}: {nearest} cannot be written to")


def write(flag: str, path: Path, text: str, *, add: bool = False, folders: bool = False) -> None:
    """Write a file, or `add` behind what is there; its `folders` are made where asked for. Raises StorageError."""
    try:
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if add else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(f"{flag} {path}: {error.strerror}") from error


class Command(TyperCommand):
    """A command that takes `--json` for `--format json`, where it has `--format`."""

    def __init__(self, name: str | None, *, params: list[Any] | None = None, **settings: Any) -> None:
        with_json: list[Any] = []
        for parameter in params or ():
            with_json += [parameter, _json_option()] if parameter.name == "format" else [parameter]
        super().__init__(name, params=with_json, **settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As for any command; `json` is gone from the parameters, and `format` says so. Raises ConfigError."""
        rest: list[str] = super().parse_args(ctx, args)
        if ctx.params.pop("json", False) and not ctx.resilient_parsing:
            format_given = ctx.get_parameter_source("format").name == "COMMANDLINE"
            if format_given and (format := ctx.params["format"]) != "json":
                raise ConfigError(f"--json is short for --format json, and --format {format} was given; leave out one")
            ctx.params["format"] = "json"
            ctx.set_parameter_source("format", ctx.get_parameter_source("json"))
        return rest


class Commands(typer.Typer):
    """A group of such commands, which without arguments prints its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As Typer's; `cls` is `Command`."""
        return super().command(name, cls=Command, **settings)


@cache
def _json_option() -> Any:
    """The option `--json`, as Typer makes one."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def _command(json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False) -> None: ...

    return next(parameter for parameter in typer.main.get_command(app).params if parameter.name == "json")


def completed(known: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """A shell's completion of one of the known names, also after others and a comma."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in known() if name.startswith(last)]

    return complete


BOTH = ("console", "json")
"""The formats of what is a table for people and a record for programs."""


def no_ansi() -> bool:
    """Whether no control code may be written anywhere: $NO_COLOR is set, or the terminal is a dumb one."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def use_color() -> bool:
    """Whether what is printed may have colour and weight."""
    return sys.stdout.isatty() and not no_ansi()


def console(*, stderr: bool = False) -> Console:
    """Rich's console, which takes every text as it is."""
    from rich.console import Console

    forced = False if no_ansi() else None
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, force_terminal=forced)


def check_format(format: str, subject: str) -> None:
    """Raises ConfigError for a format that is not one of `BOTH`, in which `what` is shown."""
    if format not in BOTH:
        raise ConfigError(f"--format {format}: {subject} is shown on the console or as json")


def print_untrusted(text: str, format: str = "") -> None:
    """Print what may hold the words of others: on a terminal with control characters written out.

    A report for the `console` comes clean and with its own colours; a pipe gets every text as it is.
    """
    if format != "console" and sys.stdout.isatty():
        from judge.core.messages import escape_controls

        text = escape_controls(text)
    typer.echo(text)


def print_message(message: str) -> None:
    """Print a message beside the results: on standard error, with control characters written out."""
    from judge.core.messages import escape_controls

    typer.echo(escape_controls(message), err=True)


def print_json(data: Any) -> None:
    """Plain JSON, two blanks deep. Raises ValueError for a number that JSON has not."""
    print_untrusted(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
