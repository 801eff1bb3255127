"""`judge validate`: compare a judge with human ratings."""

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
    full_option,
    option,
    output_option,
    quiet_option,
    read_config,
    report_format,
    table_option,
    to_config,
)
from judge.cli.run import execute, exit_with_status, refuse_options
from judge.cli.terminal import (
    check_outputs,
    input_files,
    input_files_of_runs,
    print_report,
    shows_report,
)
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.commands.validate.record import Validation


@click.command(cls=Command, takes="run")
@click.argument(
    "data",
    type=PATH,
    metavar="RUN|DATA|RUN.YAML",
    help="The folder of a run, or what to run.",
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
    "within-items, all-texts or systems (default: by texts per item).",
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
@option(
    "--items",
    "With --card: items to take (default: 100).",
    type=int,
    default=100,
    metavar="N",
)
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
    level: str | None,
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
    if level is not None:
        check_level(level)
    if output is not None:
        inputs = [*_inputs(data, options), *input_files_of_runs(*others)]
        check_outputs({"--output": output}, inputs, format)
    _check_others(data, others, card=card)
    show: Callable[..., None] | None = None
    if output is not None or shows_report(format, quiet=quiet):
        show = partial(
            print_report,
            format=format,
            full=full,
            output=output,
            table=table,
            columns=columns,
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
        supported = ("others", "level", "calibrate", *OF_A_FINISHED_RUN)
        refuse_options(data, besides=supported)
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

    `show` prints or writes the comparison; None with --quiet and no file to write.
    """
    from judge.config import RunConfig

    config, folder = to_config(data, options, RunConfig)
    check_run_folder(folder)
    result = execute(config, folder, quiet=quiet, rated=True)
    validation = compare_judges(
        result, *others, seed=config.seed, ratings=config.ratings
    )
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
    """Compare the judge of a finished run with people; `show` is as in `_validate_new_run`."""
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


def _inputs(data: Path, options: Mapping[str, Any]) -> list[Path]:
    """Return the files that this command reads, such as people's ratings."""
    from judge.config import RunConfig
    from judge.data import samples

    if samples.is_data(data):
        return [data, *input_files(read_config(data, options, RunConfig))]
    inputs = input_files_of_runs(data)
    ratings = options.get("ratings")
    if ratings is not None:
        inputs.append(Path(ratings))
    return inputs


def _check_others(data: Path, others: tuple[Path, ...], *, card: bool) -> None:
    """Raise ConfigError for `others` with --card, and for one that is not the folder of a run."""
    from judge.commands.finished_runs import check_run

    if card and others:
        advice = "make a card of each run"
        raise ConfigError(f"{others[0]}: --card is about one judge; {advice}")
    for run_folder in others:
        if not run_folder.is_dir():
            advice = f"name the folder of a run to compare with {data}"
            raise ConfigError(f"{run_folder}: no such folder; {advice}")
        check_run(run_folder)
