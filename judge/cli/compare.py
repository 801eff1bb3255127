"""`judge compare`: show what changed between two stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from judge.cli.options import (
    PATH,
    Command,
    full_option,
    report_format,
    report_output_option,
)
from judge.cli.terminal import check_outputs, input_files_of_runs, print_report

PAGE = "compared.html"
"""The page of a comparison, in the folder of the later run."""


@click.command(cls=Command, takes="run", only=("seed",))
@click.argument("before", type=PATH, metavar="RUN_A", help="The folder of a run.")
@click.argument(
    "after",
    type=PATH,
    metavar="RUN_B",
    help="The folder of a later one on the same texts.",
)
@report_format
@full_option
@report_output_option(f"html to RUN_B/{PAGE}, else the console")
def compare_command(
    before: Path,
    after: Path,
    *,
    format: str,
    full: bool,
    output: Path | None,
    **options: Any,
) -> None:
    """Show what changed between two runs.

    \b
    Example:
      judge compare runs/old runs/new

    The runs are on the same texts; each change comes with a test. Exits with 0 whether or not
    something changed.
    """
    from judge.commands.compare.command import compare
    from judge.config import load_config

    if output is not None:
        check_outputs({"--output": output}, input_files_of_runs(before, after), format)
    seed = load_config(options=options).seed
    comparison = compare(before, after, seed=seed)
    if output is None and format == "html":
        output = after / PAGE
    print_report(comparison, format, full=full, output=output)
