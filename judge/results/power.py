"""Which differences a run can detect, and how many items a difference needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import one_line, plural
from judge.core.messages import in_python, option
from judge.stats.power import ALPHA, Scatter
from judge.stats.system_differences import Comparison


@dataclass(frozen=True, slots=True)
class PairPower:
    """The power of the test of two systems on one column.

    `place` is `median` for the pair of the column with the median `sd`, `worst` for the one that
    needs most items (`items` are then the fewest of any pair), and "" for a pair that was asked
    for. `difference` is the observed mean of the first system minus the second, with the standard
    deviation `sd` item by item. With `items` items the test detects `detectable`, None for too few
    items. The observed difference needs `items_for_observed`, the requested one `items_needed`;
    None if there is no such difference. `p` is that of the run's test with Holm's correction, if it
    has one.
    """

    place: str
    systems: tuple[str, str]
    items: int
    difference: float
    sd: float
    detectable: float | None
    items_for_observed: int | None
    items_needed: int | None
    p: float | None = None

    @property
    def significant(self) -> bool:
        return self.p is not None and self.p < ALPHA


@dataclass(frozen=True, slots=True)
class ColumnPower:
    """The power of one column's tests.

    p must be below `level`, which corrects for the `tests` of all pairs of `systems` systems. That
    takes `min_items` items at least. `note` says which pairs are left out, or why there are none.
    """

    column: str
    systems: int
    tests: int
    level: float
    min_items: int
    pairs: tuple[PairPower, ...]
    note: str = ""


@dataclass(frozen=True, repr=False)
class RunPower(plugins.Reported):
    """The power of a run's tests, by column; `difference`, `items` and `pair` are the request.

    `against` is the system with which the run compares all others, "" if it compares all pairs.
    """

    VIEW: ClassVar[str] = "judge.report.views.power:view"

    run: str
    difference: float | None
    items: int | None
    pair: tuple[str, str] | None
    columns: tuple[ColumnPower, ...]
    notes: tuple[str, ...] = ()
    against: str = ""

    def __repr__(self) -> str:
        return f"<RunPower: {plural(len(self.columns), 'column')}>"


def power_of(
    scatters: Sequence[Scatter],
    comparisons: Sequence[Comparison],
    *,
    difference: float | None,
    items: int | None,
    pair: tuple[str, str] | None,
    against: str,
) -> RunPower:
    """Return the power of a run's tests, from the spread of its differences and its comparisons.

    Raises ConfigError for a difference or a number of items that no test can have.
    """
    _check_request(difference, items)
    p_values: _PValues = {}
    for comparison in comparisons:
        for tested in comparison.differences:
            systems = frozenset((tested.system, tested.other))
            p_values[comparison.column, systems] = tested.adjusted
    columns = []
    for scatter in scatters:
        column = ColumnPower(
            column=scatter.column,
            systems=scatter.systems,
            tests=scatter.tests,
            level=scatter.level,
            min_items=scatter.least,
            pairs=tuple(_pair_powers(scatter, p_values, difference, items, one_pair=bool(pair))),
            note=scatter.note,
        )
        columns.append(column)
    columns_by_note: dict[str, list[str]] = {}
    for column in columns:
        if column.note:
            columns_by_note.setdefault(column.note, []).append(one_line(column.column))
    notes = [f"{', '.join(names)}: {note}" for note, names in columns_by_note.items()]
    notes += _too_few(columns, items)
    return RunPower("", difference, items, pair, tuple(columns), tuple(notes), against)


def _check_request(difference: float | None, items: int | None) -> None:
    """Raise ConfigError for a difference or a number of items that no test can have."""
    if difference is not None and not (difference and isfinite(difference)):
        argument = f"difference={difference:g}" if in_python() else f"--detect {difference:g}"
        raise ConfigError(f"{argument}: must be a number other than 0")
    if items is not None and items < 2:
        raise ConfigError(f"{option('items', items)}: must be 2 or more")


_PValues = dict[tuple[str, frozenset[str]], float | None]
"""p after Holm's correction, by column and pair of systems."""


def _pair_powers(
    scatter: Scatter,
    p_values: _PValues,
    difference: float | None,
    items: int | None,
    *,
    one_pair: bool,
) -> Iterator[PairPower]:
    """Yield the power of the pair that was asked for, or else of the median and the worst pair."""
    if not scatter.pairs:
        return
    # What holds for any two systems has to hold for the pair with the fewest items.
    fewest = items or min(spread.items for spread in scatter.pairs)
    if one_pair or len(scatter.pairs) == 1:
        spreads = {"": scatter.worst}
    else:
        spreads = {"median": scatter.median, "worst": scatter.hardest(difference, fewest)}
    for name, spread in spreads.items():
        size = fewest if name == "worst" else items or spread.items
        yield PairPower(
            place=name,
            systems=spread.systems,
            items=size,
            difference=spread.mean,
            sd=spread.sd,
            detectable=spread.detectable(size),
            items_for_observed=spread.needed(),
            items_needed=spread.needed(difference) if difference else None,
            p=p_values.get((scatter.column, frozenset(spread.systems))),
        )


def _too_few(columns: Sequence[ColumnPower], items: int | None) -> Iterator[str]:
    """Yield a note for each number of items with which no difference can be significant."""
    names_by_size: dict[tuple[int, int, int], list[str]] = {}
    for column in columns:
        available = items or max((pair.items for pair in column.pairs), default=0)
        if column.pairs and available < column.min_items:
            key = (available, column.systems, column.min_items)
            names_by_size.setdefault(key, []).append(one_line(column.column))
    for (available, systems, least), names in names_by_size.items():
        yield (
            f"{', '.join(names)}: with {plural(available, 'item')}, no difference between "
            f"{systems} systems can be significant. At least {least} are needed."
        )
