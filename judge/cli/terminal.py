"""Input and output of commands: check files before anything is paid, print."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.core.errors import ConfigError, DataError, StorageError

if TYPE_CHECKING:
    from judge.config import RunConfig
    from judge.report.document import Document
    from judge.results.result import Result

CONFIGS = (".yaml", ".yml")
"""Suffixes of a run configuration."""
# Characters of a word in a message; paths and addresses are shorter.
_LONGEST_WORD = 1_000
_NARROWEST_TEXT = 20  # cells
# The formats that can have only one table of a report.
_TABLE_FORMATS = ("console", "markdown", "latex", "html")
# Suffixes of files that people write, and that a report must not overwrite.
_INPUT_SUFFIXES = (
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
    outputs: Mapping[str, Path | None],
    inputs: Iterable[Path | None] = (),
    format: str = "",
) -> None:
    """Check the files to write, by flag. Their folders may be missing.

    Raises ConfigError for a file that is also an input or another output, and for an existing file
    that may be somebody's data, suite or prompt by its suffix. With the suffix of the `format`, it
    is an older report. Raises StorageError for a file that cannot be written.
    """
    input_files = {path.resolve() for path in inputs if path is not None}
    flag_by_file: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in input_files:
            raise ConfigError(f"{flag} {path}: is also an input; name another file")
        first_flag = flag_by_file.setdefault(path.resolve(), flag)
        if first_flag != flag:
            problem = f"{first_flag} is the same file"
            raise ConfigError(f"{flag} {path}: {problem}; name another one")
        if path.exists() and not _looks_like_report(path, format):
            problem = "already exists and does not look like a report"
            raise ConfigError(f"{flag} {path}: {problem}; name another file")
        _check_writable(flag, path)


def input_files(config: RunConfig) -> list[Path]:
    """Return the files that a run reads, and its recording, which no report may overwrite."""
    from judge.data import samples

    inputs = [config.ratings, config.replay, config.record]
    if config.data is not None:
        # The data may be a folder or a pattern of many files. Missing data cannot be overwritten,
        # and the command itself names them.
        with suppress(DataError):
            inputs += [path for path, _ in samples.files(config.data)]
    return [path for path in inputs if path is not None]


def input_files_of_runs(*folders: Path) -> list[Path]:
    """Return the files that finished runs read, and their recordings.

    A folder that is no run has none: the command itself says what is wrong with it.
    """
    from judge.results.stored_info import read_info

    inputs: list[Path] = []
    for folder in folders:
        with suppress(StorageError):
            inputs += input_files(read_info(folder).config)
    return inputs


def _looks_like_report(path: Path, format: str) -> bool:
    """Return whether a report in this format may replace an existing file."""
    # The record of a run is JSON, but no report.
    if path.name == "run.json":
        return False
    suffix = path.suffix.lower()
    return suffix not in _INPUT_SUFFIXES or suffix == f".{format}"


def _check_writable(flag: str, path: Path) -> None:
    """Raise StorageError if a file, or the first missing folder above it, cannot be written."""
    from judge.core.files import try_writing  # it loads pydantic

    ancestors = (path, *path.absolute().parents)
    existing = next(ancestor for ancestor in ancestors if ancestor.exists())
    is_folder = existing.is_dir()
    if existing == path and is_folder:
        raise StorageError(f"{flag} {path}: {existing} is a folder")
    if existing != path and not is_folder:
        raise StorageError(f"{flag} {path}: {existing} is a file")
    try:
        if is_folder:
            try_writing(existing)
        else:
            # Opening for appending changes nothing.
            existing.open("ab").close()
    except OSError as error:
        reason = error.strerror or error
        problem = f"{existing} cannot be written to ({reason})"
        raise StorageError(f"{flag} {path}: {problem}") from error


def write(
    flag: str,
    path: Path,
    text: str,
    *,
    add: bool = False,
    folders: bool = False,
) -> None:
    """Write a whole file, or `add` to its end; `folders` creates its folders.

    Raises StorageError.
    """
    write_bytes(flag, path, text.encode(), add=add, folders=folders)


def write_bytes(
    flag: str,
    path: Path,
    content: bytes,
    *,
    add: bool = False,
    folders: bool = False,
) -> None:
    """Write a whole file, as `write`. Raises StorageError."""
    from judge.core.files import append_whole, write_whole  # it loads pydantic

    try:
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        if add:
            append_whole(path, content)
        else:
            write_whole(path, content)
    except OSError as error:
        raise StorageError(f"{flag} {path}: {error.strerror}") from error


def check_exports(exports: Iterable[str] | None) -> dict[str, Path]:
    """Return the file of each `--export FORMAT=FILE`.

    Raises ConfigError for an unknown format, and the errors of `check_outputs`.
    """
    from judge.core.plugins import require_known

    files: dict[str, Path] = {}
    for export in exports or ():
        format, _, file_name = export.partition("=")
        require_known("format", [format], ["otel"], "--export")
        if not file_name:
            raise ConfigError("--export otel: write otel=FILE")
        files[format] = Path(file_name)
    check_outputs({"--export": files.get("otel")}, format="json")
    return files


def write_exports(result: Result, files: Mapping[str, Path]) -> None:
    """Write the files of `--export`. Raises StorageError."""
    for path in files.values():
        write("--export", path, result.to_otel(), folders=True)


def print_untrusted(text: str, format: str = "") -> None:
    """Print text that may come from others; on a terminal, control characters are escaped.

    A report for the `console` is already escaped and has its own colours. A pipe gets every text
    unchanged.
    """
    if format != "console" and sys.stdout.isatty():
        from judge.core.format import escape_controls

        text = escape_controls(text)
    print_text(text)


def print_text(text: str) -> None:
    """Print text, unless a pipe's reader has seen enough, as in `judge criteria list | head -1`.

    The command then goes on, and its exit code is that of its result.
    """
    try:
        click.echo(text)
    except BrokenPipeError:
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)


def shows_report(format: str, *, quiet: bool) -> bool:
    """Return whether a command prints its report: `--quiet` silences the console's format only."""
    return not quiet or format != "console"


def print_report(
    finished: Any,
    format: str = "console",
    *,
    full: bool = False,
    wide: bool = False,
    folder: Path | None = None,
    output: Path | None = None,
    table: str | None = None,
    columns: Sequence[str] = (),
) -> None:
    """Print the report of a result, or write it to the file `output` and print that path.

    The console shows a summary, or everything with `full`. With `table`, the report is only the
    table of this name; with `columns`, it has only these (of the first table by default).
    `folder` is the run's folder: it replaces RUN in the suggested commands, and the last line names
    the page in it. `wide` is for CSV: a row per item and system.
    """
    from judge.core import plugins
    from judge.core.format import no_ansi

    document = plugins.document(finished)
    if table is not None or columns:
        document = _with_one_table(document, table, columns, format)
        full = True
    elif folder is not None and format == "console":
        document = _with_folder(document, folder)
    # Neither a file nor a pipe has colours, nor a terminal for which NO_COLOR is set.
    colour = output is None and sys.stdout.isatty() and not no_ansi()
    text = plugins.write(document, format, full=full, wide=wide, colour=colour)
    if output is not None:
        if format == "csv":
            from judge.report.renderers.csv import with_byte_order_mark

            text = with_byte_order_mark(text)
        write("--output", output, text)
        print_text(str(output))
    else:
        print_untrusted(text.rstrip("\n"), format)


def _with_one_table(
    document: Document,
    name: str | None,
    columns: Sequence[str],
    format: str,
) -> Document:
    """Return a document with only this table, and only these of its columns.

    Raises ConfigError for a format without tables, and for an unknown name.
    """
    from judge.report.table_selection import only_table

    if format not in _TABLE_FORMATS:
        known_formats = ", ".join(_TABLE_FORMATS)
        flag = "--columns" if name is None else "--table"
        problem = f"{format} has no tables to choose from"
        raise ConfigError(f"{flag}: {problem} (use: {known_formats})")
    return only_table(document, name, columns)


def _with_folder(document: Document, folder: Path) -> Document:
    """Return a document that names the folder of its run in its commands and its footer."""
    from dataclasses import replace

    quoted_folder = shlex.quote(str(folder))

    # A function, because re.sub would read a backslash in the folder's name as an escape.
    def folder_name(_: re.Match[str]) -> str:
        return quoted_folder

    # "judge report RUN --full" becomes "judge report runs/news --full".
    commands = [
        re.sub(r"\bRUN\b", folder_name, line, count=1) for line in document.next
    ]
    first_line, *others = document.footer or ("",)
    page = folder / "report.html"
    if page.exists():
        first_line = f"{first_line} · {page}" if first_line else str(page)
    return replace(document, next=tuple(commands), footer=(first_line, *others))


def print_message(message: str) -> None:
    """Print a message on standard error, with control characters escaped and long words cut.

    On a terminal, its lines fit into the window. If standard error cannot be written, the message
    is dropped, because the run may be paid.
    """
    from judge.core.format import escape_controls

    def cut(word: re.Match[str]) -> str:
        return f"{word[0][: _LONGEST_WORD - 1]}…"

    # A reply or a value from a file may be a word of millions of characters. The pattern is
    # r"\S{1000,}".
    shortened = escape_controls(re.sub(rf"\S{{{_LONGEST_WORD},}}", cut, message))
    with suppress(OSError):
        if sys.stderr.isatty():
            from judge.cli.message_lines import wrapped  # it loads rich

            shortened = wrapped(shortened, shutil.get_terminal_size((80, 24)).columns)
        click.echo(shortened, err=True)


def print_entry(label: str, text: str) -> None:
    """Print an entry of a list: its label, and beside it the text in lines that fit."""
    from rich.cells import cell_len

    from judge.core.line_breaks import wrapped

    label_width = cell_len(label)
    room = shutil.get_terminal_size((80, 24)).columns - label_width
    lines = wrapped(text, max(room, _NARROWEST_TEXT), cell_len)
    gap = "\n" + " " * label_width
    print_text(label + gap.join(lines))


def print_json(data: Any) -> None:
    """Print JSON. Raises ValueError for NaN and infinity."""
    print_untrusted(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
