"""`judge init`, `judge doctor` and `judge schema`: begin a project, check the setup, help an editor."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import format_option, option, takes
from judge.cli.terminal import BOTH, console, print_json, print_message
from judge.core.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_NEXT = (
    "judge run run.yaml    # score the replies and compare the two prompts; then open runs/first/report.html",
    "judge test .          # check the suite's expectations",
    "judge doctor          # check your setup for a real judge: keys, extras, cache",
)


def init_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write it (default: this folder).", show_default=False)
    ] = Path(),
) -> None:
    """Write a starter project that passes at once.

    It has data, a criterion, run.yaml, a suite and a CI job, and needs no key. Writes nothing where one of its files is
    there already.
    """
    for path in create_project(folder):
        typer.echo(str(path))
    typer.echo("\nNothing in it needs a key or the network. Next:")
    inside = [f"cd {shlex.quote(str(folder))}"] if folder.resolve() != Path.cwd() else []
    for line in (*inside, *_NEXT):
        typer.echo(f"  {line}")


def create_project(folder: Path) -> list[Path]:
    """Write the starter project into a folder and return its files. Creates the folder if needed.

    Raises ConfigError and writes nothing if one of the files exists; raises StorageError if writing fails.
    """
    from importlib.resources import files

    contents = {folder / name: file for name, file in _walk(files("judge.cli") / "starter")}
    existing = [str(path) for path in contents if path.exists() or path.is_symlink()]
    if existing:
        verb = "is" if len(existing) == 1 else "are"
        raise ConfigError(
            f"{', '.join(existing)} {verb} there already, and nothing was written; name another folder: "
            "judge init FOLDER"
        )
    for path, file in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read_bytes())
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error
    return list(contents)


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """Yield the relative names and the files of a folder; its own files come before those of subfolders."""
    for entry in sorted(folder.iterdir(), key=lambda entry: (entry.is_dir(), entry.name)):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry


_SECONDS = 60.0
_MARKS = {"ok": ("✓", "green"), "lacking": ("–", "dim"), "wrong": ("✗", "bold red")}


@takes("run", "model", "base_url", "key_env", "cache")
def doctor_command(
    *,
    timeout: Annotated[
        float, option(f"Longest wait for a reply (default: {_SECONDS:g}).", metavar="SECONDS")
    ] = _SECONDS,
    format: Annotated[str, format_option(*BOTH)] = "console",
    **options: Any,
) -> None:
    """Check your setup, and optionally test a model.

    Lists versions, extras, keys and the cache. With --model it sends a few tiny requests and reports what the model
    accepts; without, it opens no connection. Exits with 2 if a named model cannot be used or the cache cannot be
    written.
    """
    from judge.commands.doctor import Diagnosis, announce, check_environment, check_model, open_checks
    from judge.commands.public import run_sync
    from judge.config import load_config

    config = load_config(given={**options, "timeout": timeout})
    findings = check_environment(config)
    if checks := open_checks(config):
        if announcement := announce(checks):
            print_message(announcement)
        findings += run_sync(lambda: check_model(config, checks))
    diagnosis = Diagnosis(tuple(findings))
    if format == "json":
        print_json(diagnosis.to_dict())
    else:
        from rich.table import Table
        from rich.text import Text

        screen = console()
        for part in dict.fromkeys(finding.part for finding in diagnosis.findings):
            table = Table.grid(padding=(0, 1))
            table.add_column(no_wrap=True)
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold")
            for finding in diagnosis.findings:
                if finding.part == part:
                    table.add_row(Text(*_MARKS[finding.state]), Text(finding.name), Text(finding.said))
                    if finding.mend:
                        table.add_row("", "", Text(finding.mend, "dim" if finding.state == "lacking" else "bold"))
            screen.print(Text(part, "bold"))
            screen.print(table)
            screen.print()
    raise typer.Exit(0 if diagnosis.ok else 2)


def schema_command(
    file: Annotated[str, typer.Argument(metavar="run|suite|criterion", help="The kind of file.")],
) -> None:
    """Print the JSON schema of a file, for editors.

    Of run.yaml, of a suite (*.judge.yaml), or of the YAML header of a criterion (.jinja).
    """
    from judge.config import json_schema, run_schema
    from judge.criteria.template import Header
    from judge.suite.schema import schema

    schemas: dict[str, Callable[[], dict[str, Any]]] = {
        "run": run_schema,
        "suite": schema,
        "criterion": lambda: json_schema(Header, "judge.criterion/1", "Header of a criterion's file."),
    }
    if file not in schemas:
        raise ConfigError(f"judge schema {file}: name run, suite or criterion")
    print_json(schemas[file]())
