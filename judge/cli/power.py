"""`judge power`: the differences that a run can detect, and the items that a difference needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from judge.cli.options import format_option, option, takes
from judge.cli.terminal import BOTH, console, print_json
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
    difference: Annotated[float | None, option("Show the items needed to detect this difference.", metavar="D")] = None,
    column: Annotated[list[str] | None, option("Only these columns (default: all).", metavar="NAME,...")] = None,
    pair: Annotated[str | None, option("Only these two systems, also for their own difference.", metavar="A,B")] = None,
    items: Annotated[int | None, option("Show what N items can detect (default: the run's).", metavar="N")] = None,
    sd: Annotated[
        float | None, option("Without a run: the standard deviation of paired differences.", metavar="SD")
    ] = None,
    power: Annotated[float, option("Probability of detecting the difference (default: 0.8).", metavar="P")] = 0.8,
    format: Annotated[str, format_option(*BOTH)] = "console",
    **options: Any,
) -> None:
    """Show how many items it takes to detect a difference.

    Without --pair or --difference: which differences between systems a run can detect."""
    from judge.config import load_config
    from judge.stats.power import ALPHA

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
        columns = [_column_json(scatter, named_pair, request) for scatter in scatters]
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
    heads = {
        "items": "items", "difference": "difference", "sd": "sd", "found": f"found at {request.power:.0%}",
        "items_for_it": "items for it", "items_needed": f"items for {request.difference or 0:g}",
    }  # fmt: skip
    if named_pair is None:
        del heads["difference"], heads["items_for_it"]
    if not request.difference:
        del heads["items_needed"]
    for head in ("", "pair of systems") if named_pair is None else ("",):
        table.add_column(head, overflow="fold")
    for head in heads.values():
        table.add_column(head, justify="right", no_wrap=True)
    for scatter in scatters:
        rows: dict[str, Spread | None] = {"": None}
        if len(scatter.pairs) > 1:
            rows = {" (median)": scatter.median, " (worst)": scatter.worst}
        elif scatter.pairs:
            rows = {"": scatter.worst}
        for place, (word, pair) in enumerate(rows.items()):
            cells = [one_line(scatter.column) if place == 0 else ""]
            if pair is not None:
                systems = f"{one_line(pair.systems[0])} – {one_line(pair.systems[1])}{word}"
                numbers = _numbers(pair, request) | {"items": request.items or pair.items}
                cells += [systems] if named_pair is None else []
                cells += [_cell(name, numbers[name]) for name in heads]
            table.add_row(*map(Text, cells), *[Text("–")] * (len(table.columns) - len(cells)))
    screen = console()
    if named_pair is not None:
        screen.print(Text(f"{one_line(named_pair[0])} less {one_line(named_pair[1])}", "bold"))
    screen.print(table)
    for note in notes:
        screen.print(Text(note, "yellow"))
    for explanation in _explanations(scatters, named_pair):
        screen.print(Text(explanation, "dim"))


def _cell(name: str, value: float | None) -> str:
    from judge.core.format import minus

    if value is None:
        return "too few items" if name == "found" else "–"
    if name in ("sd", "found"):
        return f"{value:.3g}"
    return minus(f"{value:+.3g}") if name == "difference" else f"{value:,}"


def _numbers(pair: Spread, request: _Request) -> dict[str, Any]:
    """What a pair of systems shows; `items_for_it` are for the difference in the run."""
    return {
        "pair": list(pair.systems),
        "items": pair.items,
        "difference": pair.mean,
        "sd": pair.sd,
        "found": pair.detectable(request.items, power=request.power),
        "items_for_it": pair.needed(power=request.power),
        "items_needed": pair.needed(request.difference, power=request.power) if request.difference else None,
    }


def _column_json(scatter: Scatter, named_pair: tuple[str, str] | None, request: _Request) -> dict[str, Any]:
    """A column as plain JSON: the numbers of a pair, or each for the median and the worst one; null without pairs."""
    column: dict[str, Any] = {
        "column": scatter.column,
        "systems": scatter.systems,
        "tests": scatter.tests,
        "level": scatter.level if scatter.tests else None,
        "least_items": scatter.least if scatter.tests else None,
    }
    needed = ["items_needed"] if request.difference else []
    if named_pair is not None:
        numbers = _numbers(scatter.pairs[0], request) if scatter.pairs else {}
        names = ["items", "difference", "sd", "found", "items_for_it", *needed]
        return {**column, "pair": list(named_pair), **{name: numbers.get(name) for name in names}}
    column |= {"pairs": len(scatter.pairs), "items": [pair.items for pair in scatter.pairs]}
    both = {"median": scatter.median, "worst": scatter.worst} if scatter.pairs else {}
    each = {place: _numbers(pair, request) for place, pair in both.items()}
    return column | {
        name: {place: numbers[name] for place, numbers in each.items()} or None
        for name in ["sd", "found", "pair", *needed]
    }
