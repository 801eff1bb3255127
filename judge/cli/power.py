"""`judge power`: the differences that a run can detect, and the items that a difference needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from judge.cli.options import ReportFormat, option, takes
from judge.cli.terminal import print_report
from judge.core.errors import ConfigError


@takes("run", "where")
def power_command(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a run, as a pilot.")] = None,
    *,
    difference: Annotated[float | None, option("Show the items needed to detect this difference.", metavar="D")] = None,
    column: Annotated[list[str] | None, option("Only these columns (default: all).", metavar="NAME,...")] = None,
    pair: Annotated[str | None, option("Only these two systems, also for their own difference.", metavar="A,B")] = None,
    items: Annotated[int | None, option("Show what N items can detect (default: the run's).", metavar="N")] = None,
    sd: Annotated[
        float | None, option("Without a run: the standard deviation of paired differences.", metavar="SD")
    ] = None,
    power: Annotated[float, option("Probability of detecting the difference (default: 0.8).", metavar="P")] = 0.8,
    format: ReportFormat = "console",
    **options: Any,
) -> None:
    """Show how many items it takes to detect a difference.

    Without --pair or --difference, it shows which differences between systems the run can detect."""
    from judge.commands.power import run_power, sd_power
    from judge.config import load_config, split
    from judge.stats.power import ALPHA

    for name, value, holds, requirement in (
        ("difference", difference, difference is None or 0 < abs(difference) < float("inf"), "a number other than 0"),
        ("items", items, items is None or items > 1, "2 or more"),
        ("sd", sd, sd is None or 0 < sd < float("inf"), "above 0"),
        ("power", power, ALPHA < power < 1, f"between {ALPHA:g} and 1"),
    ):
        if not holds or value != value:
            raise ConfigError(f"--{name} {value:g}: must be {requirement}")
    finished: Any
    if run is not None and sd is None:
        names, where = split(",".join(column or [])), load_config(given=options).where
        finished = run_power(run, names, difference=difference, items=items, power=power, pair=pair, where=where)
    elif run is None and sd is not None and not (column or pair) and (items or difference):
        finished = sd_power(sd, difference=difference, items=items, power=power)
    else:
        raise ConfigError("give the folder of a run, or --sd with --items or --difference")
    print_report(finished, format, full=True)
