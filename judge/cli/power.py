"""`judge power`: what a run of this size can show, and how many items a difference takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.options import option
from judge.errors import ConfigError

if TYPE_CHECKING:
    from judge.report import Result
    from judge.stats.power import Middle, Scatter

_NOTE = (
    "Two-sided test of one pair of systems at level .05, by the normal approximation; more pairs, corrected for their "
    "number, take more items."
)
_COUNTS = "Median over the pairs of systems between which values differ; in brackets the pair that scatters most."


def power_command(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a run, as a pilot.")] = None,
    *,
    difference: Annotated[float | None, option("How many items show this difference?", metavar="D")] = None,
    column: Annotated[list[str] | None, option("Only these columns (default: all).", metavar="NAME,...")] = None,
    items: Annotated[int | None, option("What do so many items show (default: the run's)?", metavar="N")] = None,
    sd: Annotated[
        float | None, option("Without a run: the standard deviation of paired differences.", metavar="SD")
    ] = None,
    power: Annotated[float, typer.Option(help="The chance to find the difference.", metavar="P")] = 0.8,
) -> None:
    """Say which differences between systems a run can show, and how many items a difference takes."""
    _check(difference, items, sd, power)
    if run is not None and sd is None:
        _of_run(run, difference, column, items, power)
    elif run is None and sd is not None and not column and (items or difference):
        _of_sd(sd, difference, items, power)
    else:
        raise ConfigError("give the folder of a run, or --sd with --items or --difference")


def _check(difference: float | None, items: int | None, sd: float | None, power: float) -> None:
    """Raises ConfigError for a number that means nothing."""
    from judge.stats.power import ALPHA

    for name, value, holds, what in (
        ("difference", difference, difference is None or 0 < abs(difference) < float("inf"), "a number other than 0"),
        ("items", items, items is None or items > 1, "2 or more"),
        ("sd", sd, sd is None or 0 < sd < float("inf"), "above 0"),
        ("power", power, ALPHA < power < 1, f"between {ALPHA:g} and 1"),
    ):
        if not holds or value != value:
            raise ConfigError(f"--{name} {value:g}: has to be {what}")


def _of_sd(sd: float, difference: float | None, items: int | None, power: float) -> None:
    """What follows from a standard deviation alone."""
    from judge.stats.power import LEAST, chance, detectable, needed

    if items:
        if items < LEAST:
            raise ConfigError(f"--items {items}: a test tells nothing apart on fewer than {LEAST} items")
        found = detectable(sd, items, power=power)
        typer.echo(f"{items:,} items find a difference of {found:.3g} at {power:.0%} power")
    if difference:
        typer.echo(f"a difference of {difference:g} takes {needed(sd, difference, power=power):,} items")
    if items and difference:
        typer.echo(f"{items:,} items find a difference of {difference:g} at {chance(sd, items, difference):.0%} power")
    typer.echo(_NOTE)


def _of_run(run: Path, difference: float | None, names: list[str] | None, items: int | None, power: float) -> None:
    """The same, column by column, from what the pairs of systems of a run differ by."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from judge.api.validate import check_run
    from judge.report import load
    from judge.report.words import line

    check_run(run)
    result = load(run)
    found = _scatters(result, run, names)
    heads = ["items", "pairs", "sd of differences", f"found at {power:.0%}"]
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", overflow="fold")
    for head in [*heads, f"items for {difference:g}"] if difference else heads:
        table.add_column(head, justify="right", no_wrap=True)
    for one in found:
        table.add_row(*map(Text, [line(one.column), *_cells(one, difference, items, power)]))
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(table)
    notes = [f"{line(one.column)}: {one.note}" for one in found if one.note]
    if "streamed" in result.info:
        notes.append(f"from the first {len(result.table.samples):,} texts")
    for note in notes:
        console.print(Text(note, "yellow"))
    console.print(Text(f"{_COUNTS} {_NOTE}", "dim"))


def _scatters(result: Result, run: Path, names: list[str] | None) -> list[Scatter]:
    """Of the columns named, or of all that have a better end and values of single texts. Raises ConfigError."""
    from judge.config import split
    from judge.registry import unknown
    from judge.stats.overall import overall
    from judge.stats.power import scatter

    table = result.table
    if result.rankings:
        raise ConfigError(f"{run}: texts were compared two by two, and so there are no differences of scores")
    weighed = overall(table)
    tables = [table] if weighed is None else [table, weighed[1]]
    columns = {
        column.name: (each, column)
        for each in tables
        for column in each.columns
        if column.better and column.name not in each.wholes
    }
    wanted = split(",".join(names)) if names else list(columns)
    for name in wanted:
        if name not in columns:
            raise ConfigError(f"--column: {unknown('column', name, list(columns))}")
    return [one for name in wanted for one in scatter(columns[name][0], [columns[name][1]])]


def _cells(one: Scatter, difference: float | None, items: int | None, power: float) -> list[str]:
    """Items, pairs, standard deviation, the difference that is found, and the items that the one asked about takes."""
    if not one.sd:
        return ["–"] * (5 if difference else 4)
    few, most = min(one.items), max(one.items)
    shown = f"{items:,}" if items else f"{few:,}" if few == most else f"{few:,}–{most:,}", f"{len(one.sd):,}"
    cells = [*shown, _both(one.spread(), ".3g"), _both(one.detectable(items, power=power), ".3g")]
    return [*cells, _both(one.needed(difference, power=power), ",.0f")] if difference else cells


def _both(found: Middle | None, format: str) -> str:
    if found is None:
        return "too few items"
    return f"{found.median:{format}} ({found.worst:{format}})"
