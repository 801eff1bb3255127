"""`judge import`: start from another tool's evaluation file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import option
from judge.cli.terminal import print_untrusted


def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON, YAML or Python file.", show_default=False)],
    *,
    data: Annotated[
        Path | None, option("Rows for OpenAI graders: {item, sample} or plain columns.", metavar="FILE", group="Data")
    ] = None,
    out: Annotated[
        Path | None, option("Folder to write (default: imported/NAME).", metavar="FOLDER", group="Output")
    ] = None,
) -> None:
    """Start from OpenAI graders, promptfoo or DeepEval.

    Writes criteria, data, run.yaml and, for expectations, a suite; lists what changes in meaning and what has no
    counterpart. Python files are parsed, never run; existing files are never overwritten.
    """
    from judge.commands.importing import import_file

    project = import_file(file, data)
    folder = out or Path("imported") / file.stem
    for path in project.write(folder):
        print_untrusted(str(path))
    for title, notes in (("Changed in meaning", project.changes), ("No counterpart", project.missing)):
        if notes:
            typer.echo(f"\n{title}")
            for note in notes:
                print_untrusted(f"- {note}")
    model = "" if "model" in project.config else " --model NAME"
    typer.echo("\nNext:")
    if project.cases:
        typer.echo(f"  judge test {shlex.quote(str(folder / project.suite))}{model}")
    if project.criteria or project.config.get("metrics"):
        typer.echo(f"  judge plan {shlex.quote(str(folder / 'run.yaml'))}{model}")
