"""Input and output of commands: check files before anything is paid, print."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.core.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from judge.results.result import Result

CONFIGS = (".yaml", ".yml")
_LONGEST_WORD = 1_000  # characters in a message; paths and addresses are shorter


_INPUTS = (
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".csv",
    ".tsv",
    ".xlsx",
    ".parquet",
    ".jinja",
    ".py",
    ".ini",
    ".toml",
)


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = (), format: str = ""
) -> None:
    """Check the files to write, by flag; their folders may be missing.

    Raises ConfigError for one that is an input or another output, or that exists and whose name says data, suite or
    prompt (but one with the suffix of the `format` is an older report); StorageError if it cannot be written.
    """
    from judge.core.files import try_writing  # it loads pydantic

    read = {path.resolve() for path in inputs if path is not None}
    flags: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        suffix = path.suffix.lower()
        if path.resolve() in read:
            raise ConfigError(f"{flag} {path}: is also an input; name another file")
        if (first_flag := flags.setdefault(path.resolve(), flag)) != flag:
            raise ConfigError(f"{flag} {path}: {first_flag} is the same file; name another one")
        if path.exists() and (
            path.name == "run.json" or (suffix in _INPUTS and suffix != f".{format}")
        ):
            raise ConfigError(
                f"{flag} {path}: already exists and does not look like a report; name another file"
            )
        nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
        if nearest.is_dir() == (nearest == path):
            raise StorageError(
                f"{flag} {path}: {nearest} is a {'folder' if nearest.is_dir() else 'file'}"
            )
        try:
            if nearest.is_dir():
                try_writing(nearest)
            else:
                nearest.open("ab").close()
        except OSError as error:
            raise StorageError(
                f"{flag} {path}: {nearest} cannot be written to ({error.strerror or error})"
            ) from error


def write(flag: str, path: Path, text: str, *, add: bool = False, folders: bool = False) -> None:
    """Write a file, or `add` to its end; `folders` creates its folders. Raises StorageError."""
    try:
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if add else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(f"{flag} {path}: {error.strerror}") from error


def check_exports(exports: Iterable[str] | None) -> dict[str, Path]:
    """Return the file of each `--export FORMAT=FILE`. Raises as `check_outputs` does, and for an unknown format."""
    from judge.core.plugins import require_known

    files: dict[str, Path] = {}
    for format, sign, name in (export.partition("=") for export in exports or ()):
        require_known("format", [format], ["otel"], "--export")
        if not (sign and name):
            raise ConfigError("--export otel: write otel=FILE")
        files[format] = Path(name)
    check_outputs({"--export": files.get("otel")}, format="json")
    return files


def write_exports(result: Result, files: Mapping[str, Path]) -> None:
    """Write the files of `--export`. Raises StorageError."""
    for path in files.values():
        write("--export", path, result.to_otel(), folders=True)


def print_untrusted(text: str, format: str = "") -> None:
    """Print text that may come from others; on a terminal, control characters are escaped.

    A report for the `console` is already escaped and has its own colours; a pipe gets every text unchanged.
    """
    if format != "console" and sys.stdout.isatty():
        from judge.core.format import escape_controls

        text = escape_controls(text)
    click.echo(text)


def print_report(
    finished: Any,
    format: str = "console",
    *,
    full: bool = False,
    wide: bool = False,
    folder: Path | None = None,
    output: Path | None = None,
) -> None:
    """Print the report of a finished thing: on the console its summary, or with `full` everything.

    `folder` is that of the run: it replaces RUN in the suggested commands, and its page is named in the last line.
    With `output`, write the report to this file and print its path.
    """
    from judge.core import plugins
    from judge.core.format import no_ansi

    document = plugins.document(finished)
    if folder is not None and format == "console":
        from dataclasses import replace

        name = shlex.quote(str(folder))
        commands = tuple(
            re.sub(r"\bRUN\b", lambda _: name, command, count=1) for command in document.next
        )
        first, *lines = document.footer or ("",)
        page = folder / "report.html"
        footer = (" · ".join(filter(None, (first, str(page) if page.exists() else ""))), *lines)
        document = replace(document, next=commands, footer=footer)
    colour = output is None and sys.stdout.isatty() and not no_ansi()
    text = plugins.write(document, format, full=full, wide=wide, colour=colour)
    if output is not None:
        write("--output", output, text)
        click.echo(str(output))
    else:
        print_untrusted(text.rstrip("\n"), format)


def print_message(message: str) -> None:
    """Print a message on standard error, with control characters escaped and a word of thousands of them cut."""
    from judge.core.format import escape_controls

    short = re.sub(
        rf"\S{{{_LONGEST_WORD},}}", lambda word: f"{word[0][: _LONGEST_WORD - 1]}…", message
    )
    click.echo(escape_controls(short), err=True)


def print_json(data: Any) -> None:
    """Print JSON. Raises ValueError for NaN and infinity."""
    print_untrusted(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
