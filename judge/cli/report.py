"""`judge report` and `judge compare`: show a stored run again, draw its charts, or compare two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from judge.cli.options import format_option, option, takes
from judge.cli.terminal import print_untrusted, use_color, write
from judge.core.errors import ConfigError

_DRAWN = ("svg", "png")
CHARTS = "charts"
"""Folder of the charts in the folder of a run."""


@takes("run", "where")
def report_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    *,
    format: Annotated[
        str,
        format_option(
            "console", "markdown", "html", "json", "csv", "latex", *_DRAWN, more=" (its charts)", open_ended=True
        ),
    ] = "console",
    output: Annotated[
        Path | None,
        option(
            "Write here; charts also into a folder (default: html and charts into the run's folder).",
            metavar="FILE|DIR",
            group="Output",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Show a stored run again, or draw its charts."""
    from judge.cli.run import show
    from judge.commands.validate import check_run
    from judge.config import load_config
    from judge.results.result import load

    check_run(run)
    result = load(run)
    if options:
        if output is None and format in ("html", *_DRAWN):
            raise ConfigError(f"--where: {run} holds the report of the whole run; name another place with --output")
        result = result.where(**load_config(given=options).where)
    if format in _DRAWN:
        from judge.report.renderers.svg import write as draw

        for path in draw(result, output or run / CHARTS, format):
            typer.echo(str(path))
        return
    if output is None and format == "html":
        output = run / "report.html"
    if output is not None:
        write("--output", output, result.report(format))
        typer.echo(str(output))
    else:
        show(result, format)


PAGE = "compared.html"


@takes("run", "seed")
def compare_command(
    before: Annotated[Path, typer.Argument(metavar="RUN_A", help="The folder of a run.")],
    after: Annotated[Path, typer.Argument(metavar="RUN_B", help="The folder of a later one on the same texts.")],
    *,
    format: Annotated[str, format_option("console", "markdown", "html", "json")] = "console",
    output: Annotated[
        Path | None,
        option(f"Write here (default: html to RUN_B/{PAGE}, else the console).", metavar="FILE", group="Output"),
    ] = None,
    **options: Any,
) -> None:
    """Show what changed between two runs on the same texts, with tests.

    Exits with 0 whether or not something changed."""
    from judge.commands.compare import compare
    from judge.config import load_config

    comparison = compare(before, after, seed=load_config(given=options).seed)
    if output is None and format == "html":
        output = after / PAGE
    if output is not None:
        write("--output", output, comparison.report(format))
        typer.echo(str(output))
    else:
        print_untrusted(comparison.report(format, colour=use_color()).rstrip("\n"), format)
