"""`judge report`: a stored run shown again, or its charts drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import option

_DRAWN = ("svg", "png")
CHARTS = "charts"
"""The folder in a run's own for its charts."""


def report_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    *,
    format: Annotated[
        str, typer.Option(help="console, markdown, html, json, csv, latex, or its charts as svg or png.")
    ] = "console",
    output: Annotated[
        Path | None,
        option("Write here: a file, for charts also a folder (default: html and charts into the run's folder)."),
    ] = None,
) -> None:
    """Show a stored run again, or draw its charts."""
    from judge.api.validate import check_run
    from judge.cli.running import show, write
    from judge.report import load

    check_run(run)
    result = load(run)
    if format in _DRAWN:
        from judge.report.figures import write as draw

        for path in draw(result, output or run / CHARTS, format):
            typer.echo(str(path))
        return
    if output is None and format == "html":
        output = run / "report.html"
    if output is not None:
        write(output, result.report(format))
    else:
        show(result, format)
