"""`judge plan RUN`: which differences a run can detect, and how many items a difference needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from judge.commands.validate import open_run
from judge.core.errors import ConfigError
from judge.core.format import one_line, plural
from judge.core.plugins import unknown_name_message
from judge.results.planning import ColumnPower, PairPower, RunPower


def run_power(
    run: Path,
    *,
    difference: float | None = None,
    items: int | None = None,
    pair: str | None = None,
    where: Mapping[str, Any] | None = None,
) -> RunPower:
    """Return the power of a finished run's tests, of all systems or of one pair.

    Raises ConfigError for a ranking, an unknown system, and a difference or a number of items that no test can have;
    StorageError for a folder without a run.
    """
    if difference is not None and not 0 < abs(difference) < inf:
        raise ConfigError(f"--detect {difference:g}: must be a number other than 0")
    if items is not None and items < 2:
        raise ConfigError(f"--items {items}: must be 2 or more")
    result = open_run(run)
    if where:
        result = result.where(**where)
    systems = None if pair is None else _parse_pair(pair, result.table.systems)
    if result.rankings:
        raise ConfigError(
            f"{run}: a ranking compares texts two by two and has no differences of scores"
        )
    p_values = {
        (comparison.column, frozenset((tested.system, tested.other))): tested.adjusted
        for comparison in result.comparisons
        for tested in comparison.differences
    }
    powers = []
    for scatter in result.power(pair=systems):
        places = {}
        available = items
        if scatter.pairs:
            several = systems is None and len(scatter.pairs) > 1
            # What holds for any two systems has to hold for the pair with the fewest items.
            available = items or min(two.items for two in scatter.pairs)
            places = (
                {"median": scatter.median, "worst": scatter.hardest(difference, available)}
                if several
                else {"": scatter.worst}
            )
        pairs = tuple(
            PairPower(
                place=place,
                systems=two.systems,
                items=size,
                difference=two.mean,
                sd=two.sd,
                detectable=two.detectable(size),
                items_for_observed=two.needed(),
                items_needed=two.needed(difference) if difference else None,
                p=p_values.get((scatter.column, frozenset(two.systems))),
            )
            for place, two in places.items()
            for size in [(available if place == "worst" else items) or two.items]
        )
        test = scatter.systems, scatter.tests, scatter.level, scatter.least
        powers.append(ColumnPower(scatter.column, *test, pairs, scatter.note))
    notes = list(result.info.notes[:1]) if where else []
    lacking: dict[str, list[str]] = {}
    for column in powers:
        if column.note:
            lacking.setdefault(column.note, []).append(one_line(column.column))
    notes += [f"{', '.join(names)}: {note}" for note, names in lacking.items()]
    notes += _too_few(powers, items)
    against = result.info.against
    return RunPower(str(run), difference, items, systems, tuple(powers), tuple(notes), against)


def _too_few(columns: Sequence[ColumnPower], items: int | None) -> Iterator[str]:
    """Yield a note for each number of items with which no difference can be significant."""
    names: dict[tuple[int, int, int], list[str]] = {}
    for column in columns:
        available = items or max((pair.items for pair in column.pairs), default=0)
        if column.pairs and available < column.min_items:
            names.setdefault((available, column.systems, column.min_items), []).append(
                one_line(column.column)
            )
    for (available, systems, least), labels in names.items():
        yield (
            f"{', '.join(labels)}: with {plural(available, 'item')}, no difference between {systems} systems can be "
            f"significant. At least {least} are needed."
        )


def _parse_pair(pair: str, systems: Sequence[str]) -> tuple[str, str]:
    """Split `A,B` into two systems; their names may contain commas. Raises ConfigError."""
    parts = pair.split(",")
    cuts = [
        (",".join(parts[:at]).strip(), ",".join(parts[at:]).strip()) for at in range(1, len(parts))
    ]
    known = next(
        (
            (first, second)
            for first, second in cuts
            if {first, second} <= {*systems} and first != second
        ),
        None,
    )
    if known is not None:
        return known
    if len(cuts) != 1 or cuts[0][0] == cuts[0][1]:
        raise ConfigError(
            f"--pair {pair}: name two systems, such as --pair {','.join(systems[:2]) or 'a,b'}"
        )
    wrong = next(name for name in cuts[0] if name not in systems)
    raise ConfigError(f"--pair: {unknown_name_message('system', wrong, list(systems))}")
