"""`judge compare`: what changed between two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import Seed, format_option, option
from judge.cli.terminal import print_untrusted, use_color, write

PAGE = "compared.html"


def compare_command(
    before: Annotated[Path, typer.Argument(metavar="RUN_A", help="The folder of a run.")],
    after: Annotated[Path, typer.Argument(metavar="RUN_B", help="The folder of a later one on the same texts.")],
    *,
    seed: Seed = None,
    format: Annotated[str, format_option("console", "markdown", "html", "json")] = "console",
    output: Annotated[
        Path | None, option(f"Write here (default: html into RUN_B/{PAGE}, others to the console).", metavar="FILE")
    ] = None,
) -> None:
    """Show what moved from one run to another.

    On the same texts, with tests. Leaves with 0 also where something did."""
    from judge.commands.compare import compare
    from judge.results.comparison import check

    check(format)
    comparison = compare(before, after, seed=seed or 0)
    if output is None and format == "html":
        output = after / PAGE
    if output is not None:
        write("--output", output, comparison.report(format))
        typer.echo(str(output))
    else:
        print_untrusted(comparison.report(format, colour=use_color()).rstrip("\n"), format)
