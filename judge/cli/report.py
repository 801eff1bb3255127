"""`judge report`, `compare`, `validate` and `power`: show, check or compare stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import (
    Export,
    Full,
    Output,
    Quiet,
    ReportFormat,
    format_option,
    option,
    takes,
    to_config,
)
from judge.cli.run import execute, exit_with_status, refuse_options
from judge.cli.terminal import check_exports, check_outputs, print_report, write_exports
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.results.result import Result


_DRAWN = ("svg", "png")
_OUTPUT = "Write here; charts also into a folder (default: html and charts into the run's folder)."
CHARTS = "charts"
"""Folder of the charts in the folder of a run."""


@takes("run", "where")
def report_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    *,
    item: Annotated[
        str | None, option("Show one item: texts, scores, reasons and ratings.", metavar="ID")
    ] = None,
    system: Annotated[str | None, option("With --item, only this system.", metavar="NAME")] = None,
    by: Annotated[
        str | None, option("Compare the slices that this column makes.", metavar="COLUMN")
    ] = None,
    format: Annotated[
        str,
        format_option(
            "console",
            "markdown",
            "html",
            "json",
            "csv",
            "latex",
            *_DRAWN,
            more=" (its charts)",
            open_ended=True,
        ),
    ] = "console",
    output: Annotated[Path | None, option(_OUTPUT, metavar="FILE|DIR", group="Output")] = None,
    failures_as: Annotated[
        str | None,
        option(
            "Count each failed judgment as the worst score of its scale.",
            metavar="NAME",
            known=("worst",),
        ),
    ] = None,
    full: Full = False,
    wide: Annotated[
        bool, option("With --format csv: a row per item and system.", "--wide", group="Output")
    ] = False,
    export: Export = None,
    **options: Any,
) -> None:
    """Show a stored run again, or draw its charts."""
    from judge.commands.slices import slices
    from judge.commands.validate import open_run
    from judge.config import load_config
    from judge.results.failures import WORST, failures_as_worst
    from judge.results.item import item_of

    result = open_run(run)
    if format not in _DRAWN:
        check_outputs({"--output": output}, format=format)
    if system is not None and item is None:
        raise ConfigError("--system: is for --item ID")
    if failures_as not in (None, WORST):
        raise ConfigError(f"--failures-as {failures_as}: the only way is {WORST}")
    if wide and format != "csv":
        raise ConfigError("--wide: is for --format csv")
    if where := load_config(given=options).where:
        result = result.where(**where)
    if failures_as is not None:
        result = failures_as_worst(result)
    write_exports(result, check_exports(export))
    if item is not None or by is not None:
        part = slices(result, by or "") if item is None else item_of(result, item, system)
        print_report(part, format, full=full or item is not None, output=output)
        return
    if (where or failures_as) and not output and format in ("html", *_DRAWN):
        given = "--where" if where else "--failures-as"
        raise ConfigError(
            f"{given}: {run} holds the report of the run as it is; name another file with --output"
        )
    if format in _DRAWN:
        _draw(result, output or run / CHARTS, format)
        return
    output = output or (run / "report.html" if format == "html" else None)
    print_report(result, format, full=full, wide=wide, folder=run, output=output)


def _draw(result: Result, output: Path, format: str) -> None:
    """Draw the charts of a result, and print their paths."""
    from judge.core import plugins
    from judge.report.renderers.svg import write

    for path in write(plugins.document(result), output, format):
        typer.echo(str(path))


PAGE = "compared.html"


@takes("run", "seed")
def compare_command(
    before: Annotated[Path, typer.Argument(metavar="RUN_A", help="The folder of a run.")],
    after: Annotated[
        Path, typer.Argument(metavar="RUN_B", help="The folder of a later one on the same texts.")
    ],
    *,
    format: ReportFormat = "console",
    full: Full = False,
    output: Annotated[
        Path | None,
        option(
            f"Write here (default: html to RUN_B/{PAGE}, else the console).",
            metavar="FILE",
            group="Output",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Show what changed between two runs.

    The runs are on the same texts; each change comes with a test. Exits with 0 whether or not something changed."""
    from judge.commands.compare import compare
    from judge.config import load_config

    check_outputs({"--output": output}, format=format)
    comparison = compare(before, after, seed=load_config(given=options).seed)
    if output is None and format == "html":
        output = after / PAGE
    print_report(comparison, format, full=full, output=output)


_Judged = Annotated[
    Path, typer.Argument(metavar="RUN|DATA|RUN.YAML", help="The folder of a run, or what to run.")
]
_Others = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN", help="Folders of other runs on the same texts, with other judges or prompts."
    ),
]
_Level = Annotated[
    str,
    option(
        "document (within items), item (all texts) or system (means).",
        metavar="NAME",
        known=("document", "item", "system"),
    ),
]


@takes("run")
def validate_command(
    ctx: typer.Context,
    data: _Judged,
    others: _Others = None,
    *,
    level: _Level = "document",
    epsilon: Annotated[
        float, option("Advantage granted to the judge in the alt-test (default: 0.2).", metavar="E")
    ] = 0.2,
    format: ReportFormat = "console",
    full: Full = False,
    output: Output = None,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Compare a judge with human ratings.

    Also compares baselines that need no judge, and the human raters with each other."""
    from judge.commands.validate import validate
    from judge.stats.alt_test import check_epsilon

    check_epsilon(epsilon)
    show = partial(print_report, format=format, full=full, output=output)
    compared = partial(validate, level=level, epsilon=epsilon)
    _with_people(ctx, [data, *(others or ())], options, compared, show, quiet=quiet)


_OF_FINISHED = (
    "others",
    "level",
    "full",
    "output",
    "quiet",
    "seed",
    "where",
    "ratings",
    "calibrate",
    "epsilon",
)
"""The options of `validate` that a finished run takes."""


def _with_people(
    ctx: typer.Context,
    sources: Sequence[Path],
    options: Mapping[str, Any],
    compare: partial[Any],
    show: partial[None],
    *,
    quiet: bool,
) -> None:
    """Compare the judges of finished runs, or of a run that is made first, with people."""
    from judge.commands.validate import check_run
    from judge.config import RunConfig
    from judge.data import samples
    from judge.results.validation import check_level

    data, *runs = sources
    check_level(compare.keywords["level"])
    check_outputs({"--output": show.keywords["output"]}, format=show.keywords["format"])
    for run in runs:
        if not run.is_dir():
            raise ConfigError(
                f"{run}: no such folder; name the folder of a run to compare with {data}"
            )
        check_run(run)
    if samples.is_data(data):
        config, folder = to_config(data, options, RunConfig)
        result = execute(config, folder, quiet=quiet, rated=True)
        show(
            compare(result, *runs, seed=config.seed, ratings=config.ratings),
            folder=None if runs else folder,
        )
        exit_with_status(result)
    refuse_options(ctx, data, besides=_OF_FINISHED)
    config = RunConfig.load(given=options)
    selected = {
        "where": config.where,
        "ratings": config.ratings,
        "seed": config.seed,
        "calibrate": config.calibrate,
    }
    # The page of a run does not have the ratings of another file.
    show(compare(data, *runs, **selected), folder=None if runs or config.ratings else data)
