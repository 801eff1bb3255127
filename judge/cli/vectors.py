"""`judge vectors`: print the scoring vectors, or check a scorer's answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import option
from judge.cli.terminal import print_untrusted, write
from judge.core.errors import ConfigError, DataError


def vectors_command(
    *,
    check: Annotated[Path | None, option("Check a scorer's answers; - for standard input.", metavar="FILE")] = None,
    kind: Annotated[str, option("Only logprobs, draws, reply or pair (default: all).", metavar="NAME,...")] = "",
    level: Annotated[str, option("Only core or prose (default: both).", metavar="NAME,...")] = "",
    language: Annotated[str, option("Only en, ja, ko or zh (default: all).", metavar="NAME,...")] = "",
    output: Annotated[Path | None, option("Write the vectors here.", metavar="FILE", group="Output")] = None,
) -> None:
    """Print vectors that test a scorer, or check its answers.

    A scorer reads the lines and writes one JSON line for each: {"id": …, "value": …} or {"id": …, "error": …}. Exits
    with 1 if an answer is wrong.
    """
    from judge.commands.vectors import agreement, check_answers, vector_lines

    chosen = {"kind": kind, "level": level, "language": language}
    vectors = vector_lines(**{name: text.split(",") if text else [] for name, text in chosen.items()})
    if check is None:
        text = "".join(f"{line}\n" for line in vectors)
        if output is None:
            typer.echo(text.encode(), nl=False)
        else:
            write("--output", output, text)
        return
    if output is not None:
        raise ConfigError("--output: writes the vectors; leave it out with --check")
    piped = check == Path("-")
    try:
        lines = (sys.stdin.buffer.read() if piped else check.read_bytes()).split(b"\n")
    except OSError as error:
        raise DataError(f"--check {check}: {error.strerror or error}") from error
    listed = list(vectors.values())
    differences = check_answers(lines, "standard input" if piped else str(check), listed)
    for key, difference in differences.items():
        print_untrusted(f"{key}: {difference}")
    typer.echo(agreement(listed, differences))
    raise typer.Exit(1 if differences else 0)
