"""`judge report`, `compare` and `validate`: show, check or compare stored runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import (
    PATH,
    Command,
    check_run_folder,
    columns_option,
    export_option,
    format_option,
    full_option,
    option,
    output_option,
    quiet_option,
    report_format,
    table_option,
    to_config,
)
from judge.cli.run import execute, exit_with_status, refuse_options
from judge.cli.terminal import (
    check_exports,
    check_outputs,
    print_report,
    shows_report,
    write_exports,
)
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.commands.validate.record import Validation
    from judge.results.result import Result


CHARTS = "charts"
"""Folder of the charts in the folder of a run."""
PAGE = "compared.html"
"""The page of a comparison, in the folder of the later run."""
_CHART_FORMATS = ("svg", "png", "pdf")
_OUTPUT_HELP = (
    "Write here; charts also into a folder (default: html and charts into the run's folder)."
)


@click.command(cls=Command, takes="run", only=("where",))
@click.argument("run", type=PATH, metavar="RUN", help="The folder of a run.")
@option("--item", "Show one item: texts, scores, reasons and ratings.", metavar="ID")
@option("--system", "With --item or --worst, only this system.", metavar="NAME")
@option(
    "--worst",
    "Show the N worst texts with their inputs, reasons and own columns.",
    type=int,
    metavar="N",
)
@option("--by", "Compare the items by their value in this column.", metavar="COLUMN")
@format_option(
    "console",
    "markdown",
    "html",
    "json",
    "csv",
    "latex",
    *_CHART_FORMATS,
    more=" (its charts)",
    open_ended=True,
)
@option("--output", _OUTPUT_HELP, type=PATH, metavar="FILE|DIR", group="Output")
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
@option("--wide", "With --format csv: a row per item and system.", is_flag=True, group="Output")
@export_option
def report_command(
    run: Path,
    *,
    item: str | None,
    system: str | None,
    worst: int | None,
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
        check_outputs({"--output": output}, format=format)
    parts = {"--item": item, "--worst": worst, "--by": by}
    of_whole_run = {
        "--figure": figure,
        "--table": table,
        "--columns": columns,
        "--wide": wide,
        f"--format {format}": draws_charts,
    }
    _refuse_unused(parts, of_whole_run)
    is_part = item is not None or worst is not None
    _check_modifiers(
        format=format, system=system, is_part=is_part, failures_as=failures_as, wide=wide
    )

    where = load_config(options=options).where
    result = _selected(result, where, failures_as)
    # An export has the selected rows only, like the report.
    exports = check_exports(export)
    write_exports(result, exports)

    part_of_run = _part_of(result, item=item, worst=worst, system=system, by=by)
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


def _selected(result: Result, where: Mapping[str, Any] | None, failures_as: str | None) -> Result:
    """Return the result of the selected rows, with failures counted as the worst score if asked."""
    from judge.results.failures import failures_as_worst

    if where:
        result = result.where(**where)
    if failures_as is not None:
        result = failures_as_worst(result)
    return result


def _check_modifiers(
    *, format: str, system: str | None, is_part: bool, failures_as: str | None, wide: bool
) -> None:
    """Raise ConfigError for an option without the one that it modifies, or for an unknown value.

    `is_part` says whether the report is about one item or the worst texts.
    """
    from judge.results.failures import WORST

    if system is not None and not is_part:
        raise ConfigError("--system: is for --item ID or --worst N")
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
    result: Result, *, item: str | None, worst: int | None, system: str | None, by: str | None
) -> Any:
    """Return the item, the worst texts or the slices to show; None for the whole run."""
    from judge.commands.slices.command import slices
    from judge.core.plugins import require_known
    from judge.results.item import item_of
    from judge.results.worst_list import worst_list

    if item is not None:
        return item_of(result, item, system)
    if worst is not None:
        if system is None:
            return worst_list(result, worst)
        require_known("system", [system], result.table.systems, "--system")
        texts_of_system = result.where(system=system)
        return worst_list(texts_of_system, worst)
    return None if by is None else slices(result, by)


def _check_whole_run(run: Path, *, where: bool, failures_as: str | None) -> None:
    """Raise ConfigError if a report of changed or selected rows would replace the run's own."""
    if where or failures_as:
        flag = "--where" if where else "--failures-as"
        raise ConfigError(
            f"{flag}: {run} holds the report of the whole run; name another file with --output"
        )


def _draw_figure(result: Result, name: str, output: Path | None) -> None:
    """Draw one chart of a result into a file, whose ending is the format, and print its path."""
    from judge.cli.terminal import write_bytes
    from judge.core import plugins
    from judge.report.renderers import svg

    path = output or Path(f"{name}.svg")
    format = path.suffix.removeprefix(".").lower()
    if format not in _CHART_FORMATS:
        endings = ", ".join(f".{ending}" for ending in _CHART_FORMATS)
        raise ConfigError(f"--output {path}: the name of a figure's file ends in {endings}")
    content = svg.figure(plugins.document(result), name, format)
    write_bytes("--output", path, content)
    click.echo(str(path))


def _draw(result: Result, output: Path, format: str) -> None:
    """Draw the charts of a result, and print their paths."""
    from judge.core import plugins
    from judge.report.renderers.svg import write

    for path in write(plugins.document(result), output, format):
        click.echo(str(path))


@click.command(cls=Command, takes="run", only=("seed",))
@click.argument("before", type=PATH, metavar="RUN_A", help="The folder of a run.")
@click.argument(
    "after", type=PATH, metavar="RUN_B", help="The folder of a later one on the same texts."
)
@report_format
@full_option
@option(
    "--output",
    f"Write here (default: html to RUN_B/{PAGE}, else the console).",
    type=PATH,
    metavar="FILE",
    group="Output",
)
def compare_command(
    before: Path, after: Path, *, format: str, full: bool, output: Path | None, **options: Any
) -> None:
    """Show what changed between two runs.

    \b
    Example:
      judge compare runs/old runs/new

    The runs are on the same texts; each change comes with a test. Exits with 0 whether or not
    something changed."""
    from judge.commands.compare.command import compare
    from judge.config import load_config

    check_outputs({"--output": output}, format=format)
    seed = load_config(options=options).seed
    comparison = compare(before, after, seed=seed)
    if output is None and format == "html":
        output = after / PAGE
    print_report(comparison, format, full=full, output=output)


@click.command(cls=Command, takes="run")
@click.argument(
    "data", type=PATH, metavar="RUN|DATA|RUN.YAML", help="The folder of a run, or what to run."
)
@click.argument(
    "others",
    type=PATH,
    nargs=-1,
    metavar="[RUN]...",
    help="Folders of other runs on the same texts, with other judges or prompts.",
)
@option(
    "--level",
    "within-items, all-texts or systems (means).",
    default="within-items",
    metavar="NAME",
    known=("within-items", "all-texts", "systems"),
)
@option(
    "--epsilon",
    "Advantage granted to the judge in the alt-test (default: 0.2).",
    type=float,
    default=0.2,
    metavar="E",
)
@option(
    "--card",
    "Test the judge on changed texts: can it be trusted?",
    is_flag=True,
)
@option("--items", "With --card: items to take (default: 100).", type=int, default=100, metavar="N")
@option(
    "--probes",
    "With --card: sensitivity,bias,injection (default: all).",
    metavar="NAME,...",
    known=("sensitivity", "bias", "injection"),
)
@report_format
@table_option("metrics")
@columns_option
@full_option
@output_option
@quiet_option
def validate_command(
    data: Path,
    others: tuple[Path, ...],
    *,
    level: str,
    epsilon: float,
    card: bool,
    items: int,
    probes: str | None,
    format: str,
    table: str | None,
    columns: tuple[str, ...],
    full: bool,
    output: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare a judge with human ratings, or make its card.

    \b
    Example:
      judge validate runs/first --ratings ratings.csv

    Also compares baselines that need no judge, and the human raters with each other. --card also
    tests the judge with changed texts and works without ratings; of a finished run, it asks no
    judge."""
    from judge.cli.card import OF_A_FINISHED_RUN, refuse_without_card, show_card
    from judge.commands.validate.command import validate
    from judge.commands.validate.record import check_level
    from judge.data import samples
    from judge.stats.alt_test import check_epsilon

    # A wrong option is an error before a run is made and paid for.
    check_epsilon(epsilon)
    check_level(level)
    check_outputs({"--output": output}, format=format)
    _check_others(data, others, card=card)
    show: Callable[..., None] | None = None
    if output is not None or shows_report(format, quiet=quiet):
        show = partial(
            print_report, format=format, full=full, output=output, table=table, columns=columns
        )
    if card:
        show_card(
            data,
            options,
            show,
            items=items,
            probes=probes,
            epsilon=epsilon,
            quiet=quiet,
        )
        return
    refuse_without_card()
    compare_judges = partial(validate, level=level, epsilon=epsilon)
    if samples.is_data(data):
        _validate_new_run(data, others, options, compare_judges, show, quiet=quiet)
    else:
        refuse_options(data, besides=("others", "level", "calibrate", *OF_A_FINISHED_RUN))
        _validate_finished_run(data, others, options, compare_judges, show)


def _validate_new_run(
    data: Path,
    others: tuple[Path, ...],
    options: Mapping[str, Any],
    compare_judges: Callable[..., Validation],
    show: Callable[..., None] | None,
    *,
    quiet: bool,
) -> None:
    """Make a run of the data, compare its judge with people, and exit like `judge run`.

    Without `show`, nothing is shown.
    """
    from judge.config import RunConfig

    config, folder = to_config(data, options, RunConfig)
    check_run_folder(folder)
    result = execute(config, folder, quiet=quiet, rated=True)
    validation = compare_judges(result, *others, seed=config.seed, ratings=config.ratings)
    if show is not None:
        # The footer names the page of the run, which does not show other runs.
        folder_of_page = None if others else folder
        show(validation, folder=folder_of_page)
    exit_with_status(result)


def _validate_finished_run(
    run: Path,
    others: tuple[Path, ...],
    options: Mapping[str, Any],
    compare_judges: Callable[..., Validation],
    show: Callable[..., None] | None,
) -> None:
    """Compare the judge of a finished run with people. Without `show`, nothing is shown."""
    from judge.config import RunConfig

    config = RunConfig.load(options=options)
    validation = compare_judges(
        run,
        *others,
        where=config.where,
        ratings=config.ratings,
        rating_criterion=config.rating_criterion,
        seed=config.seed,
        calibrate=config.calibrate,
    )
    if show is not None:
        # The page of a run does not have the ratings of another file.
        is_page_of_run = not others and not config.ratings
        show(validation, folder=run if is_page_of_run else None)


def _check_others(data: Path, others: tuple[Path, ...], *, card: bool) -> None:
    """Raise ConfigError if other runs to compare with are not there, or none can be."""
    from judge.commands.finished_runs import check_run

    if card and others:
        raise ConfigError(f"{others[0]}: --card is about one judge; make a card of each run")
    for run_folder in others:
        if not run_folder.is_dir():
            raise ConfigError(
                f"{run_folder}: no such folder; name the folder of a run to compare with {data}"
            )
        check_run(run_folder)
