"""`judge report`: show a stored run, one part of it, or its charts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import (
    PATH,
    RUN_FORMATS,
    Command,
    columns_option,
    export_option,
    format_option,
    full_option,
    option,
    report_output_option,
    table_option,
)
from judge.cli.terminal import (
    check_exports,
    check_outputs,
    input_files_of_runs,
    print_report,
    print_text,
    write_exports,
)
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.results.result import Result


CHARTS = "charts"
"""Folder of the charts in the folder of a run."""
_CHART_FORMATS = ("svg", "png", "pdf")


@click.command(cls=Command, takes="run", only=("where",))
@click.argument("run", type=PATH, metavar="RUN", help="The folder of a run.")
@option("--item", "Show one item: texts, scores, reasons and ratings.", metavar="ID")
@option(
    "--system", "With --item, --worst or --claims, only this system.", metavar="NAME"
)
@option(
    "--worst",
    "Show the N worst texts with their inputs, reasons and own columns.",
    type=int,
    metavar="N",
)
@option(
    "--claims",
    "Show the unsupported claims; json and csv have all.",
    is_flag=True,
)
@option("--by", "Compare the items by their value in this column.", metavar="COLUMN")
@format_option(*RUN_FORMATS, *_CHART_FORMATS, more=" (its charts)", open_ended=True)
@report_output_option("html and charts into the run's folder", "FILE|DIR")
@option(
    "--failures-as",
    "Count each failed judgment as the worst score of its scale.",
    metavar="NAME",
    known=("worst",),
)
@option(
    "--figure",
    "Write only this chart, without its title; --output names the file.",
    metavar="NAME",
    group="Output",
)
@table_option("leaderboard")
@columns_option
@full_option
@option(
    "--wide",
    "With --format csv: a row per item and system.",
    is_flag=True,
    group="Output",
)
@export_option
def report_command(
    run: Path,
    *,
    item: str | None,
    system: str | None,
    worst: int | None,
    claims: bool,
    by: str | None,
    format: str,
    output: Path | None,
    failures_as: str | None,
    figure: str | None,
    table: str | None,
    columns: tuple[str, ...],
    full: bool,
    wide: bool,
    export: tuple[str, ...],
    **options: Any,
) -> None:
    """Show a stored run again, or draw its charts.

    \b
    Example:
      judge report runs/first --worst 10
    """
    from judge.commands.finished_runs import open_run
    from judge.config import load_config

    draws_charts = format in _CHART_FORMATS
    result = open_run(run)
    # The output of charts may be a folder that exists.
    if not draws_charts:
        check_outputs({"--output": output}, input_files_of_runs(run), format)
    _check_options(
        item=item,
        system=system,
        worst=worst,
        claims=claims,
        by=by,
        format=format,
        failures_as=failures_as,
        figure=figure,
        table=table,
        columns=columns,
        wide=wide,
    )
    where = load_config(options=options).where
    result = _selected(result, where, failures_as)
    # An export has the selected rows only, like the report.
    write_exports(result, check_exports(export))

    part_of_run = _part_of(
        result, item=item, worst=worst, claims=claims, system=system, by=by
    )
    if part_of_run is not None:
        # Only slices have a summary.
        is_full = full or by is None
        print_report(part_of_run, format, full=is_full, output=output)
        return
    if figure is not None:
        _draw_figure(result, figure, output)
        return
    # Without --output, the page and the charts go into the run's folder.
    if output is None and (draws_charts or format == "html"):
        _check_whole_run(run, where=bool(where), failures_as=failures_as)
    if draws_charts:
        _draw(result, output or run / CHARTS, format)
        return
    if output is None and format == "html":
        output = run / "report.html"
    print_report(
        result,
        format,
        full=full,
        wide=wide,
        folder=run,
        output=output,
        table=table,
        columns=columns,
    )


def _selected(
    result: Result,
    where: Mapping[str, Any] | None,
    failures_as: str | None,
) -> Result:
    """Return the result of the selected rows, with failures counted as the worst score if asked."""
    from judge.results.failures import failures_as_worst

    if where:
        result = result.where(**where)
    if failures_as is not None:
        result = failures_as_worst(result)
    return result


def _check_options(
    *,
    item: str | None,
    system: str | None,
    worst: int | None,
    claims: bool,
    by: str | None,
    format: str,
    failures_as: str | None,
    figure: str | None,
    table: str | None,
    columns: tuple[str, ...],
    wide: bool,
) -> None:
    """Raise ConfigError for options that exclude or need each other, or for an unknown value."""
    from judge.results.failures import WORST

    parts = {"--item": item, "--worst": worst, "--claims": claims or None, "--by": by}
    of_whole_run = {
        "--figure": figure,
        "--table": table,
        "--columns": columns,
        "--wide": wide,
        f"--format {format}": format in _CHART_FORMATS,
    }
    _refuse_unused(parts, of_whole_run)
    takes_system = item is not None or worst is not None or claims
    if system is not None and not takes_system:
        raise ConfigError("--system: is for --item ID, --worst N or --claims")
    if failures_as not in (None, WORST):
        raise ConfigError(f"--failures-as {failures_as}: the only value is {WORST}")
    if wide and format != "csv":
        raise ConfigError("--wide: is for --format csv")


def _refuse_unused(parts: Mapping[str, Any], of_whole_run: Mapping[str, Any]) -> None:
    """Raise ConfigError for options that cannot be followed together.

    A report shows one of the `parts` of a run or all of it, as the options `of_whole_run` say.
    """
    chosen_parts = [flag for flag, value in parts.items() if value is not None]
    if not chosen_parts:
        return
    first_part, *other_parts = chosen_parts
    chosen_of_whole_run = [flag for flag, value in of_whole_run.items() if value]
    unused = [*other_parts, *chosen_of_whole_run]
    if unused:
        raise ConfigError(f"{unused[0]}: cannot be combined with {first_part}")


def _part_of(
    result: Result,
    *,
    item: str | None,
    worst: int | None,
    claims: bool,
    system: str | None,
    by: str | None,
) -> Any:
    """Return the item, worst texts, claims or slices to show; None for the whole run."""
    from judge.commands.slices.command import slices
    from judge.core.plugins import require_known
    from judge.results.claim_list import claim_list
    from judge.results.item import item_of
    from judge.results.worst_list import worst_list

    if item is not None:
        return item_of(result, item, system)
    if by is not None:
        return slices(result, by)
    if worst is None and not claims:
        return None
    if system is not None:
        require_known("system", [system], result.table.systems, "--system")
        result = result.where(system=system)
    return claim_list(result) if worst is None else worst_list(result, worst)


def _check_whole_run(run: Path, *, where: bool, failures_as: str | None) -> None:
    """Raise ConfigError if a report of changed or selected rows would replace the run's own."""
    if where or failures_as:
        flag = "--where" if where else "--failures-as"
        problem = f"{run} holds the report of the whole run"
        raise ConfigError(f"{flag}: {problem}; name another file with --output")


def _draw_figure(result: Result, name: str, output: Path | None) -> None:
    """Draw one chart of a result into a file, whose ending is the format, and print its path."""
    from judge.cli.terminal import write_bytes
    from judge.core import plugins
    from judge.report.renderers import svg

    path = output or Path(f"{name}.svg")
    format = path.suffix.removeprefix(".").lower()
    if format not in _CHART_FORMATS:
        endings = ", ".join(f".{ending}" for ending in _CHART_FORMATS)
        rule = f"the name of a figure's file ends in {endings}"
        raise ConfigError(f"--output {path}: {rule}")
    content = svg.figure(plugins.document(result), name, format)
    write_bytes("--output", path, content)
    print_text(str(path))


def _draw(result: Result, output: Path, format: str) -> None:
    """Draw the charts of a result, and print their paths."""
    from judge.core import plugins
    from judge.report.renderers.svg import write

    for path in write(plugins.document(result), output, format):
        print_text(str(path))
