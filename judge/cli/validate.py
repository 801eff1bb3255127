"""`judge validate`: compare a judge with human ratings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import Quiet, format_option, option, takes, to_config
from judge.cli.run import execute, exit_with_status, refuse_options
from judge.cli.terminal import print_untrusted, use_color
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.data.samples import Values
    from judge.results.result import Result


@takes("run")
def validate_command(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="RUN|DATA|RUN.YAML", help="The folder of a run, or what to run.")],
    others: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Folders of other runs on the same texts: their judges beside the first."),
    ] = None,
    *,
    level: Annotated[
        str,
        option(
            "document (within each item; default), item (over all texts) or system (between means).",
            metavar="NAME",
            known=("document", "item", "system"),
        ),
    ] = "document",
    format: Annotated[str, format_option("console", "markdown", "json", "csv", "latex")] = "console",
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Compare a judge with human ratings, between baselines and inter-annotator agreement."""
    from judge.commands.validate import check_rated, check_run
    from judge.config import RunConfig
    from judge.data import samples
    from judge.results.validation import check

    runs = tuple(others or ())
    check(format, level)
    for run in runs:
        if not run.is_dir():
            raise ConfigError(f"{run}: no folder of a run to set beside {data}")
        check_run(run)
    if not samples.is_data(data):
        refuse_options(ctx, data, besides=("others", "level", "quiet", "seed", "calibrate", "where"))
        config = RunConfig.load(given=options)
        _show((data, *runs), config.seed, format, level, calibrate=config.calibrate, where=config.where)
        return
    config, folder = to_config(data, options, RunConfig)
    result, progress = execute(config, folder, quiet=quiet, check=check_rated)
    _show((result, *runs), config.seed, format, level)
    exit_with_status(result, progress, folder)


def _show(
    runs: Sequence[Result | Path],
    seed: int,
    format: str,
    level: str,
    *,
    calibrate: bool = False,
    where: Values | None = None,
) -> None:
    from judge.commands.validate import validate

    validation = validate(*runs, seed=seed, calibrate=calibrate, where=where)
    print_untrusted(validation.report(format, level, colour=use_color()).rstrip("\n"), format)
