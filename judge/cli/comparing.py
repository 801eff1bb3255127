"""`judge compare`: two runs side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import Seed, option

PAGE = "compared.html"


def compare_command(
    before: Annotated[Path, typer.Argument(metavar="RUN_A", help="The folder of a run.")],
    after: Annotated[Path, typer.Argument(metavar="RUN_B", help="The folder of a later one on the same texts.")],
    *,
    seed: Seed = None,
    format: Annotated[str, typer.Option(help="console, markdown, html or json.")] = "console",
    output: Annotated[
        Path | None, option(f"Write here (default: html into RUN_B/{PAGE}, others to the console).")
    ] = None,
) -> None:
    """Show what moved from one run to another on the same texts, with tests. Leaves with 0 also where something did."""
    from judge.api import compare
    from judge.cli.running import write
    from judge.report.compared import check

    check(format)
    found = compare(before, after, seed=seed or 0)
    if output is None and format == "html":
        output = after / PAGE
    if output is not None:
        write(output, found.report(format))
    else:
        typer.echo(found.report(format, colour=sys.stdout.isatty()).rstrip("\n"))
