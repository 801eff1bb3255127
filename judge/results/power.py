"""Which differences a run can detect, and how many items a difference needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import one_line, plural
from judge.core.messages import in_python, option
from judge.stats.power import ALPHA, Scatter
from judge.stats.system_differences import Comparison

_SMALLEST_SHARE = 0.001
"""The smallest difference to detect, as a share of a scale: 0.004 on 1 to 5, 0.1 on 0 to 100."""


@dataclass(frozen=True, slots=True)
class PairPower:
    """The power of the test of two systems on one column.

    `place` is the pair's place in the column: `median` has the median `sd`, `worst` needs the most
    items, and "" was requested or is the only pair. For `worst`, `items` are the fewest that any
    pair has.

    `difference` is the observed mean of the first system minus the second, and `sd` the standard
    deviation of the differences by item. `detectable` is the smallest difference that the test
    detects with `items` items, None for too few items. `items_for_observed` are needed to detect
    the observed difference, `items_needed` to detect the requested one; None if there is none. `p`
    is the p-value of the run's test with Holm's correction, if the run has that test.
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

    A difference is significant if p is below `level`, which corrects for the number of `tests` of
    the pairs of `systems` systems. No p can be below it with fewer than `min_items` items. `note`
    lists the pairs that are left out, or explains why there are none.
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
    lengths: Mapping[str, float],
    difference: float | None,
    items: int | None,
    pair: tuple[str, str] | None,
    against: str,
) -> RunPower:
    """Return the power of a run's tests, from the spread of its differences and its comparisons.

    `lengths` are the lengths of the columns' scales, as far as they have ends. The items that the
    `difference` needs are computed where it can be meant: 0.05 is nothing on BLEU's 0 to 100.
    Raises ConfigError for a difference or a number of items that no test can have.
    """
    _check_request(difference, items)
    p_values = _p_values(comparisons)
    columns: list[ColumnPower] = []
    without_difference: list[str] = []
    for scatter in scatters:
        length = lengths.get(scatter.column)
        difference_on_scale = difference
        if difference is not None and not _is_on_scale(difference, length):
            difference_on_scale = None
            without_difference.append(one_line(scatter.column))
        powers = _pair_powers(
            scatter, p_values, difference_on_scale, items, one_pair=bool(pair)
        )
        column = ColumnPower(
            column=scatter.column,
            systems=scatter.systems,
            tests=scatter.tests,
            level=scatter.level,
            min_items=scatter.least,
            pairs=tuple(powers),
            note=scatter.note,
        )
        columns.append(column)
    notes = [*_column_notes(columns), *_too_few_items(columns, items)]
    if without_difference:
        names = ", ".join(without_difference)
        notes.append(
            f"{names}: a difference of {difference:g} does not fit the scale, so its items are not "
            "computed."
        )
    return RunPower(
        run="",
        difference=difference,
        items=items,
        pair=pair,
        columns=tuple(columns),
        notes=tuple(notes),
        against=against,
    )


def _is_on_scale(difference: float, length: float | None) -> bool:
    """Return whether a difference can be one on a scale of this length, or of an unknown one."""
    return length is None or _SMALLEST_SHARE * length <= difference <= length


def _check_request(difference: float | None, items: int | None) -> None:
    """Raise ConfigError for a difference or a number of items that no test can have."""
    if difference is not None and not (difference > 0 and isfinite(difference)):
        # The option has another name than the argument.
        argument = f"--detect {difference:g}"
        if in_python():
            argument = f"difference={difference:g}"
        raise ConfigError(f"{argument}: must be a number above 0")
    if items is not None and items < 2:
        raise ConfigError(f"{option('items', items)}: must be 2 or more")


_PValues = dict[tuple[str, frozenset[str]], float | None]
"""p after Holm's correction, by column and pair of systems in any order."""


def _p_values(comparisons: Sequence[Comparison]) -> _PValues:
    p_values: _PValues = {}
    for comparison in comparisons:
        for tested in comparison.differences:
            systems = frozenset((tested.system, tested.other))
            p_values[comparison.column, systems] = tested.adjusted
    return p_values


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
    # The worst pair stands for any two systems, so it gets the fewest items that a pair has.
    fewest_of_pairs = min(spread.items for spread in scatter.pairs)
    fewest = items or fewest_of_pairs
    if one_pair or len(scatter.pairs) == 1:
        spread_by_kind = {"": scatter.worst}
    else:
        hardest = scatter.hardest(difference, fewest)
        spread_by_kind = {"median": scatter.median, "worst": hardest}
    for pair_kind, spread in spread_by_kind.items():
        n_items = items or spread.items
        if pair_kind == "worst":
            n_items = fewest
        systems = frozenset(spread.systems)
        yield PairPower(
            place=pair_kind,
            systems=spread.systems,
            items=n_items,
            difference=spread.mean,
            sd=spread.sd,
            detectable=spread.detectable(n_items),
            items_for_observed=spread.needed(),
            items_needed=spread.needed(difference) if difference else None,
            p=p_values.get((scatter.column, systems)),
        )


def _column_notes(columns: Sequence[ColumnPower]) -> Iterator[str]:
    """Yield each note of the columns once, after the names of its columns."""
    names_by_note: dict[str, list[str]] = {}
    for column in columns:
        if column.note:
            names = names_by_note.setdefault(column.note, [])
            names.append(one_line(column.column))
    for note, names in names_by_note.items():
        yield f"{', '.join(names)}: {note}"


def _too_few_items(columns: Sequence[ColumnPower], items: int | None) -> Iterator[str]:
    """Yield a note for the columns with too few items for any difference to be significant.

    Columns with equal numbers share a note.
    """
    names_by_numbers: dict[tuple[int, int, int], list[str]] = {}
    for column in columns:
        if not column.pairs:
            continue
        most_items = max(pair.items for pair in column.pairs)
        available = items or most_items
        if available < column.min_items:
            numbers = (available, column.systems, column.min_items)
            names = names_by_numbers.setdefault(numbers, [])
            names.append(one_line(column.column))
    for (available, systems, least), names in names_by_numbers.items():
        items_available = plural(available, "item")
        yield (
            f"{', '.join(names)}: with {items_available}, no difference between {systems} systems "
            f"can be significant. At least {least} are needed."
        )
