"""`judge init`: write a starter project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

_NEXT = (
    "judge run run.yaml    # score the replies and compare the two prompts; then open runs/first/report.html",
    "judge test .          # hold the scores against what the suite expects",
    "judge doctor          # what there is here for a real judge: keys, extras, cache",
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
    from judge.commands.init import create_project

    for path in create_project(folder):
        typer.echo(str(path))
    typer.echo("\nNothing in it needs a key or the network. Next:")
    inside = [f"cd {shlex.quote(str(folder))}"] if folder.resolve() != Path.cwd() else []
    for line in (*inside, *_NEXT):
        typer.echo(f"  {line}")
