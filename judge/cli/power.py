"""`judge power`: the differences that a run can detect, and the items that a difference needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from judge.cli.options import format_option, option, takes
from judge.cli.terminal import BOTH, check_format, console, print_json
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.stats.power import Scatter, Spread

_NOTE = (
    "Two-sided test of two systems at level .05, by the normal approximation; more systems are corrected for the "
    "number of their pairs, and take more items."
)
_COUNTS = (
    "sd: the standard deviation of the differences between two systems, item by item. Median: the pair in the middle "
    "by it, of those that differ by more here and less there; worst: the pair that scatters most."
)


class _Request(NamedTuple):
    """The question to a run; the field names are keys of the JSON output."""

    difference: float | None
    items: int | None
    power: float


@takes("run", "where")
def power_command(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a run, as a pilot.")] = None,
    *,
    difference: Annotated[float | None, option("How many items show this difference?", metavar="D")] = None,
    column: Annotated[list[str] | None, option("Only these columns (default: all).", metavar="NAME,...")] = None,
    pair: Annotated[str | None, option("Only these two systems, also at the difference found.", metavar="A,B")] = None,
    items: Annotated[int | None, option("What do so many items show (default: the run's)?", metavar="N")] = None,
    sd: Annotated[
        float | None, option("Without a run: the standard deviation of paired differences.", metavar="SD")
    ] = None,
    power: Annotated[float, option("The chance to find the difference (default: 0.8).", metavar="P")] = 0.8,
    format: Annotated[str, format_option(*BOTH)] = "console",
    **options: Any,
) -> None:
    """Say which differences a run can show.

    Between systems, and how many items a difference takes."""
    from judge.config import load_config
    from judge.stats.power import ALPHA

    check_format(format, "power")
    for name, value, holds, requirement in (
        ("difference", difference, difference is None or 0 < abs(difference) < float("inf"), "a number other than 0"),
        ("items", items, items is None or items > 1, "2 or more"),
        ("sd", sd, sd is None or 0 < sd < float("inf"), "above 0"),
        ("power", power, ALPHA < power < 1, f"between {ALPHA:g} and 1"),
    ):
        if not holds or value != value:
            raise ConfigError(f"--{name} {value:g}: has to be {requirement}")
    if run is not None and sd is None:
        where = load_config(given=options).where
        _show_for_run(run, _Request(difference, items, power), column, pair, format=format, where=where)
    elif run is None and sd is not None and not (column or pair) and (items or difference):
        _show_for_sd(sd, difference, items, power, format)
    else:
        raise ConfigError("give the folder of a run, or --sd with --items or --difference")


def _show_for_sd(sd: float, difference: float | None, items: int | None, power: float, format: str) -> None:
    """Print what follows from a standard deviation alone."""
    from judge.stats.power import MIN_ITEMS, detectable, needed, power_of

    if items and items < MIN_ITEMS:
        raise ConfigError(f"--items {items}: a test tells nothing apart on fewer than {MIN_ITEMS} items")
    detected = detectable(sd, items, power=power) if items else None
    n_items = needed(sd, difference, power=power) if difference else None
    chance = power_of(sd, items, difference) if items and difference else None
    if format == "json":
        request = {"sd": sd, "items": items, "difference": difference, "power": power}
        print_json({**request, "found": detected, "items_needed": n_items, "chance": chance, "notes": [_NOTE]})
        return
    if detected is not None:
        typer.echo(f"{items:,} items find a difference of {detected:.3g} at {power:.0%} power")
    if n_items is not None:
        typer.echo(f"a difference of {difference:g} takes {n_items:,} items")
    if chance is not None:
        typer.echo(f"{items:,} items find a difference of {difference:g} at {chance:.0%} power")
    typer.echo(_NOTE)


def _show_for_run(
    run: Path,
    request: _Request,
    names: list[str] | None,
    pair: str | None,
    *,
    format: str,
    where: Mapping[str, Any],
) -> None:
    """Print the same for each column of a run, from the differences between its pairs of systems or one of them."""
    from judge.commands.validate import check_run
    from judge.config import split
    from judge.core.format import one_line
    from judge.results.result import load

    check_run(run)
    result = load(run)
    if where:
        result = result.where(**where)
    named_pair = None if pair is None else _parse_pair(pair, result.table.systems)
    if result.rankings:
        raise ConfigError(f"{run}: texts were compared two by two, and so there are no differences of scores")
    scatters = result.power(*split(",".join(names or [])), pair=named_pair)
    notes = [str(note) for note in result.info["notes"][:1]] if where else []
    notes += [f"{one_line(scatter.column)}: {scatter.note}" for scatter in scatters if scatter.note]
    too_few: dict[tuple[int, int, int], list[str]] = {}
    for scatter in scatters:
        n_items = request.items or max((spread.items for spread in scatter.pairs), default=0)
        if scatter.pairs and n_items < scatter.least:
            too_few.setdefault((n_items, scatter.systems, scatter.least), []).append(one_line(scatter.column))
    notes += [
        f"{', '.join(labels)}: {n_items} items are too few to tell any two of {systems} systems apart, whatever "
        f"they score: it takes {least}"
        for (n_items, systems, least), labels in too_few.items()
    ]
    if "streamed" in result.info:
        notes.append(f"from the first {len(result.table.samples):,} texts")
    if format == "json":
        columns = [
            _column_json(scatter, request) if named_pair is None else _pair_json(scatter, named_pair, request)
            for scatter in scatters
        ]
        print_json({**request._asdict(), "columns": columns, "notes": [*notes, *_explanations(scatters, named_pair)]})
    else:
        _print_table(scatters, named_pair, request, notes)


def _parse_pair(pair: str, systems: Sequence[str]) -> tuple[str, str]:
    """Split `A,B` into two systems; their names may contain commas. Raises ConfigError."""
    from judge.core.plugins import unknown_name_message

    parts = pair.split(",")
    cuts = [(",".join(parts[:at]).strip(), ",".join(parts[at:]).strip()) for at in range(1, len(parts))]
    known = next(((first, second) for first, second in cuts if {first, second} <= {*systems} and first != second), None)
    if known is not None:
        return known
    if len(cuts) != 1 or cuts[0][0] == cuts[0][1]:
        raise ConfigError(f"--pair {pair}: name two systems, such as --pair {','.join(systems[:2]) or 'a,b'}")
    wrong = next(name for name in cuts[0] if name not in systems)
    raise ConfigError(f"--pair: {unknown_name_message('system', wrong, list(systems))}")


def _explanations(scatters: Sequence[Scatter], named_pair: tuple[str, str] | None) -> list[str]:
    """The meaning of the numbers and the level of the tests."""
    notes = [_COUNTS] if named_pair is None else ["sd: the standard deviation of the differences, item by item."]
    known = {scatter.systems: scatter for scatter in scatters if scatter.pairs}
    for systems, scatter in sorted(known.items()):
        if scatter.tests == 1:
            correction = "Two-sided tests at level .05, by the normal approximation: two systems are one test a column."
        else:
            correction = (
                f"Two-sided tests, by the normal approximation, corrected as the run's own are: {systems} systems are "
                f"{scatter.tests:,} pairs, so p has to be below .05 / {scatter.tests:,} = {scatter.level:.2g} "
                "(Holm's first step)."
            )
        notes.append(
            f"{correction} A sign-flip test takes {scatter.least} items for that, even where all of them agree."
        )
    return notes


def _print_table(
    scatters: Sequence[Scatter], named_pair: tuple[str, str] | None, request: _Request, notes: Sequence[str]
) -> None:
    from rich.table import Table
    from rich.text import Text

    from judge.core.format import one_line

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("", overflow="fold")
    heads = ["items", "sd", f"found at {request.power:.0%}"]
    if named_pair is None:
        table.add_column("pair of systems", overflow="fold")
    else:
        heads = ["items", "difference", *heads[1:], "items for it"]
    for head in [*heads, f"items for {request.difference:g}"] if request.difference else heads:
        table.add_column(head, justify="right", no_wrap=True)
    for scatter in scatters:
        for row in _table_rows(scatter, named_pair, request):
            table.add_row(*map(Text, row), *[Text("–")] * (len(table.columns) - len(row)))
    screen = console()
    if named_pair is not None:
        screen.print(Text(f"{one_line(named_pair[0])} less {one_line(named_pair[1])}", "bold"))
    screen.print(table)
    for note in notes:
        screen.print(Text(note, "yellow"))
    for explanation in _explanations(scatters, named_pair):
        screen.print(Text(explanation, "dim"))


def _table_rows(scatter: Scatter, named_pair: tuple[str, str] | None, request: _Request) -> Iterator[list[str]]:
    """The rows of a column: of the pair, or of the median and the worst one; the name alone if there is no pair."""
    from judge.core.format import one_line

    if not scatter.pairs:
        yield [one_line(scatter.column)]
    elif named_pair is not None:
        (pair,) = scatter.pairs
        yield [one_line(scatter.column), *_cells(pair, request, mean_too=True)]
    else:
        pairs = (
            {"": scatter.worst} if len(scatter.pairs) == 1 else {" (median)": scatter.median, " (worst)": scatter.worst}
        )
        for name, (word, pair) in zip([one_line(scatter.column), ""], pairs.items(), strict=False):
            yield [name, f"{one_line(pair.systems[0])} – {one_line(pair.systems[1])}{word}", *_cells(pair, request)]


def _cells(pair: Spread, request: _Request, *, mean_too: bool = False) -> list[str]:
    """Items, standard deviation, detectable difference, and the items that the requested difference needs.

    `mean_too` adds the difference in the run and the items that it needs.
    """
    from judge.core.format import minus

    detected = pair.detectable(request.items, power=request.power)
    cells = [
        f"{request.items or pair.items:,}",
        f"{pair.sd:.3g}",
        "too few items" if detected is None else f"{detected:.3g}",
    ]
    if mean_too:
        takes = pair.needed(power=request.power)
        cells = [cells[0], minus(f"{pair.mean:+.3g}"), *cells[1:], "–" if takes is None else f"{takes:,}"]
    return [*cells, f"{pair.needed(request.difference, power=request.power):,}"] if request.difference else cells


def _column_json(scatter: Scatter, request: _Request) -> dict[str, Any]:
    """A column as plain JSON, each number for the median and the worst pair; null if there is no pair."""
    numbers: dict[str, Any] = {"sd": None, "found": None, "pair": None}
    if request.difference:
        numbers["items_needed"] = None
    if scatter.pairs:
        both = {"median": scatter.median, "worst": scatter.worst}
        each = {name: _numbers_json(pair, request) for name, pair in both.items()}
        numbers = {key: {name: each[name][key] for name in both} for key in numbers}
    return {
        **_correction_json(scatter),
        "pairs": len(scatter.pairs),
        "items": [pair.items for pair in scatter.pairs],
        **numbers,
    }


def _pair_json(scatter: Scatter, named_pair: tuple[str, str], request: _Request) -> dict[str, Any]:
    """A column as plain JSON for one pair: the difference of the first less the second, and the items it needs."""
    numbers: dict[str, Any] = {"items": None, "difference": None, "sd": None, "found": None, "items_for_it": None}
    if request.difference:
        numbers["items_needed"] = None
    if scatter.pairs:
        (pair,) = scatter.pairs
        of_pair = {"items": pair.items, "difference": pair.mean, "items_for_it": pair.needed(power=request.power)}
        numbers |= {key: value for key, value in (_numbers_json(pair, request) | of_pair).items() if key in numbers}
    return {**_correction_json(scatter), "pair": list(named_pair), **numbers}


def _numbers_json(pair: Spread, request: _Request) -> dict[str, Any]:
    needed = pair.needed(request.difference, power=request.power) if request.difference else None
    detected = pair.detectable(request.items, power=request.power)
    return {"pair": list(pair.systems), "sd": pair.sd, "found": detected, "items_needed": needed}


def _correction_json(scatter: Scatter) -> dict[str, Any]:
    """The column and the correction of its tests."""
    return {
        "column": scatter.column,
        "systems": scatter.systems,
        "tests": scatter.tests,
        "level": scatter.level if scatter.tests else None,
        "least_items": scatter.least if scatter.tests else None,
    }
