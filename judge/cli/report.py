"""`judge report`: show a stored run again, or draw its charts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import Where, format_option, option, parse_option
from judge.cli.terminal import write
from judge.core.errors import ConfigError

_DRAWN = ("svg", "png")
CHARTS = "charts"
"""Folder of the charts in the folder of a run."""


def report_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    *,
    where: Where = None,
    format: Annotated[
        str,
        format_option("console", "markdown", "html", "json", "csv", "latex", *_DRAWN, more=" (its charts)"),
    ] = "console",
    output: Annotated[
        Path | None,
        option(
            "Write here; charts also into a folder (default: html and charts into the run's folder).",
            metavar="FILE|DIR",
        ),
    ] = None,
) -> None:
    """Show a stored run again, or draw its charts."""
    from judge.cli.run import show
    from judge.commands.validate import check_run
    from judge.results.result import load

    check_run(run)
    result = load(run)
    if where:
        if output is None and format in ("html", *_DRAWN):
            raise ConfigError(f"--where: {run} holds the report of the whole run; name another place with --output")
        result = result.where(**parse_option({"where": where})["where"])
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
