"""`judge power`: what a run of this size can show, and how many items a difference takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from judge.cli.options import Where, format_option, option, parse_option
from judge.cli.terminal import BOTH, check_format, console, print_json
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.results.result import Result
    from judge.stats.power import Scatter, Spread

_NOTE = (
    "Two-sided test of two systems at level .05, by the normal approximation; more systems are corrected for the "
    "number of their pairs, and take more items."
)
_COUNTS = (
    "sd: the standard deviation of the differences between two systems, item by item. Median: the pair in the middle "
    "by it, of those that differ by more here and less there; worst: the pair that scatters most."
)


def power_command(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a run, as a pilot.")] = None,
    *,
    where: Where = None,
    difference: Annotated[float | None, option("How many items show this difference?", metavar="D")] = None,
    column: Annotated[list[str] | None, option("Only these columns (default: all).", metavar="NAME,...")] = None,
    pair: Annotated[str | None, option("Only these two systems, also at the difference found.", metavar="A,B")] = None,
    items: Annotated[int | None, option("What do so many items show (default: the run's)?", metavar="N")] = None,
    sd: Annotated[
        float | None, option("Without a run: the standard deviation of paired differences.", metavar="SD")
    ] = None,
    power: Annotated[float, option("The chance to find the difference (default: 0.8).", metavar="P")] = 0.8,
    format: Annotated[str, format_option(*BOTH)] = "console",
) -> None:
    """Say which differences a run can show.

    Between systems, and how many items a difference takes."""
    check_format(format, "power")
    _check(difference, items, sd, power)
    if run is not None and sd is None:
        wanted = parse_option({"where": where}).get("where", {})
        _of_run(run, _Asked(difference, items, power), column, pair, format=format, where=wanted)
    elif run is None and sd is not None and not (column or pair) and (items or difference):
        _of_sd(sd, difference, items, power, format)
    else:
        raise ConfigError("give the folder of a run, or --sd with --items or --difference")


class _Asked(NamedTuple):
    """What is asked of a run."""

    difference: float | None
    items: int | None
    power: float


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


def _of_sd(sd: float, difference: float | None, items: int | None, power: float, format: str) -> None:
    """What follows from a standard deviation alone."""
    from judge.stats.power import MIN_ITEMS, detectable, needed, power_of

    if items and items < MIN_ITEMS:
        raise ConfigError(f"--items {items}: a test tells nothing apart on fewer than {MIN_ITEMS} items")
    found = detectable(sd, items, power=power) if items else None
    takes = needed(sd, difference, power=power) if difference else None
    chances = power_of(sd, items, difference) if items and difference else None
    if format == "json":
        asked = {"sd": sd, "items": items, "difference": difference, "power": power}
        print_json({**asked, "found": found, "items_needed": takes, "chance": chances, "notes": [_NOTE]})
        return
    if found is not None:
        typer.echo(f"{items:,} items find a difference of {found:.3g} at {power:.0%} power")
    if takes is not None:
        typer.echo(f"a difference of {difference:g} takes {takes:,} items")
    if chances is not None:
        typer.echo(f"{items:,} items find a difference of {difference:g} at {chances:.0%} power")
    typer.echo(_NOTE)


def _of_run(
    run: Path,
    asked: _Asked,
    names: list[str] | None,
    pair: str | None,
    *,
    format: str,
    where: Mapping[str, list[str]],
) -> None:
    """The same, column by column, from what the pairs of systems of a run differ by, or one of them."""
    from judge.commands.validate import check_run
    from judge.results.result import load

    check_run(run)
    result = load(run)
    if where:
        result = result.where(**where)
    two = None if pair is None else _two(pair, result.table.systems)
    found = _scatters(result, run, names, two)
    notes = [str(note) for note in result.info["notes"][:1]] if where else []
    notes += [*_about(found, asked.items)]
    if "streamed" in result.info:
        notes.append(f"from the first {len(result.table.samples):,} texts")
    if format == "json":
        columns = [_told(one, asked) if two is None else _told_of(one, two, asked) for one in found]
        print_json({**asked._asdict(), "columns": columns, "notes": [*notes, *_rests(found, two)]})
    else:
        _print(found, two, asked, notes)


def _two(pair: str, systems: Sequence[str]) -> tuple[str, str]:
    """The two systems, of which either may have a comma in its name. Raises ConfigError."""
    from judge.core.plugins import unknown_name_message

    parts = pair.split(",")
    cuts = [(",".join(parts[:at]).strip(), ",".join(parts[at:]).strip()) for at in range(1, len(parts))]
    known = next(((one, other) for one, other in cuts if {one, other} <= {*systems} and one != other), None)
    if known is not None:
        return known
    if len(cuts) != 1 or cuts[0][0] == cuts[0][1]:
        raise ConfigError(f"--pair {pair}: name two systems, such as --pair {','.join(systems[:2]) or 'a,b'}")
    wrong = next(name for name in cuts[0] if name not in systems)
    raise ConfigError(f"--pair: {unknown_name_message('system', wrong, list(systems))}")


def _about(found: Sequence[Scatter], items: int | None) -> Iterator[str]:
    """What cannot be said of a column, and where there are too few items for anything."""
    from judge.core.messages import one_line

    for one in found:
        if one.note:
            yield f"{one_line(one.column)}: {one.note}"
    few: dict[tuple[int, int, int], list[str]] = {}
    for one in found:
        most = items or max((pair.items for pair in one.pairs), default=0)
        if one.pairs and most < one.least:
            few.setdefault((most, one.systems, one.least), []).append(one_line(one.column))
    for (most, systems, least), names in few.items():
        yield (
            f"{', '.join(names)}: {most} items are too few to tell any two of {systems} systems apart, whatever they "
            f"score: it takes {least}"
        )


def _rests(found: Sequence[Scatter], two: tuple[str, str] | None) -> list[str]:
    """What the numbers mean, and the level that they rest on."""
    said = [_COUNTS] if two is None else ["sd: the standard deviation of the differences, item by item."]
    known = {one.systems: one for one in found if one.pairs}
    for systems, one in sorted(known.items()):
        if one.tests == 1:
            told = "Two-sided tests at level .05, by the normal approximation: two systems are one test a column."
        else:
            told = (
                f"Two-sided tests, by the normal approximation, corrected as the run's own are: {systems} systems are "
                f"{one.tests:,} pairs, so p has to be below .05 / {one.tests:,} = {one.level:.2g} (Holm's first step)."
            )
        said.append(f"{told} A sign-flip test takes {one.least} items for that, even where all of them agree.")
    return said


def _print(found: Sequence[Scatter], two: tuple[str, str] | None, asked: _Asked, notes: Sequence[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    from judge.core.messages import one_line

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", overflow="fold")
    heads = ["items", "sd", f"found at {asked.power:.0%}"]
    if two is None:
        table.add_column("pair of systems", overflow="fold")
    else:
        heads = ["items", "difference", *heads[1:], "items for it"]
    for head in [*heads, f"items for {asked.difference:g}"] if asked.difference else heads:
        table.add_column(head, justify="right", no_wrap=True)
    for one in found:
        for row in _rows(one, two, asked):
            table.add_row(*map(Text, row), *[Text("–")] * (len(table.columns) - len(row)))
    screen = console()
    if two is not None:
        screen.print(Text(f"{one_line(two[0])} less {one_line(two[1])}", "bold"))
    screen.print(table)
    for note in notes:
        screen.print(Text(note, "yellow"))
    for said in _rests(found, two):
        screen.print(Text(said, "dim"))


def _rows(one: Scatter, two: tuple[str, str] | None, asked: _Asked) -> Iterator[list[str]]:
    """The cells of a column: of the pair, or of the median and the worst one; the name alone where there is none."""
    from judge.core.messages import one_line

    if not one.pairs:
        yield [one_line(one.column)]
    elif two is not None:
        (pair,) = one.pairs
        yield [one_line(one.column), *_cells(pair, asked, found=True)]
    else:
        shown = {"": one.worst} if len(one.pairs) == 1 else {" (median)": one.median, " (worst)": one.worst}
        for name, (word, pair) in zip([one_line(one.column), ""], shown.items(), strict=False):
            yield [name, f"{one_line(pair.systems[0])} – {one_line(pair.systems[1])}{word}", *_cells(pair, asked)]


def _cells(pair: Spread, asked: _Asked, *, found: bool = False) -> list[str]:
    """Items, standard deviation, the difference that is found, and the items that the one asked about takes.

    Of one that was `found`, also that and the items that it takes.
    """
    from judge.core.messages import minus

    shown = pair.detectable(asked.items, power=asked.power)
    cells = [f"{asked.items or pair.items:,}", f"{pair.sd:.3g}", "too few items" if shown is None else f"{shown:.3g}"]
    if found:
        takes = pair.needed(power=asked.power)
        cells = [cells[0], minus(f"{pair.mean:+.3g}"), *cells[1:], "–" if takes is None else f"{takes:,}"]
    return [*cells, f"{pair.needed(asked.difference, power=asked.power):,}"] if asked.difference else cells


def _told(one: Scatter, asked: _Asked) -> dict[str, Any]:
    """A column as plain JSON: of each number that of the median pair and of the worst, null where there is none."""
    told: dict[str, Any] = {"sd": None, "found": None, "pair": None}
    if asked.difference:
        told["items_needed"] = None
    if one.pairs:
        both = {"median": one.median, "worst": one.worst}
        each = {name: _told_numbers(pair, asked) for name, pair in both.items()}
        told = {key: {name: each[name][key] for name in both} for key in told}
    return {**_level(one), "pairs": len(one.pairs), "items": [pair.items for pair in one.pairs], **told}


def _told_of(one: Scatter, two: tuple[str, str], asked: _Asked) -> dict[str, Any]:
    """The same of one pair, with the difference of the first less the second and the items that this one takes."""
    known: dict[str, Any] = {"items": None, "difference": None, "sd": None, "found": None, "items_for_it": None}
    if asked.difference:
        known["items_needed"] = None
    if one.pairs:
        (pair,) = one.pairs
        own = {"items": pair.items, "difference": pair.mean, "items_for_it": pair.needed(power=asked.power)}
        known |= {key: value for key, value in (_told_numbers(pair, asked) | own).items() if key in known}
    return {**_level(one), "pair": list(two), **known}


def _told_numbers(pair: Spread, asked: _Asked) -> dict[str, Any]:
    needed = pair.needed(asked.difference, power=asked.power) if asked.difference else None
    found = pair.detectable(asked.items, power=asked.power)
    return {"pair": list(pair.systems), "sd": pair.sd, "found": found, "items_needed": needed}


def _level(one: Scatter) -> dict[str, Any]:
    """A column, and what its tests are corrected by."""
    return {
        "column": one.column,
        "systems": one.systems,
        "tests": one.tests,
        "level": one.level if one.tests else None,
        "least_items": one.least if one.tests else None,
    }


def _scatters(result: Result, run: Path, names: list[str] | None, pair: tuple[str, str] | None) -> list[Scatter]:
    """Of the columns named, or of all that have a better end and values of single texts. Raises ConfigError."""
    from judge.config import split
    from judge.core.plugins import unknown_name_message
    from judge.stats.analyze import overall
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
        if column.better and column.name not in each.corpus_columns
    }
    wanted = split(",".join(names)) if names else list(columns)
    for name in wanted:
        if name not in columns:
            raise ConfigError(f"--column: {unknown_name_message('column', name, list(columns))}")
    return [one for name in wanted for one in scatter(columns[name][0], [columns[name][1]], pair)]
