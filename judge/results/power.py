"""The results of `judge power`: the differences that a run can detect, and the items that a difference needs."""

from __future__ import annotations

from dataclasses import dataclass

from judge.stats.power import ALPHA


@dataclass(frozen=True, slots=True)
class PairPower:
    """The power of the test of two systems on one column.

    `place` is `median` or `worst` among the pairs of the column by `sd`, "" for a pair that was asked for. `difference`
    is the observed mean of the first system minus the second, with the standard deviation `sd` item by item. With
    `items` items the test detects `detectable`, None for too few items. The observed difference needs
    `items_for_observed`, the requested one `items_needed`; None if there is no such difference. `p` is that
    of the run's test with Holm's correction, if it has one.
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

    p must be below `level`, which corrects for the `tests` of all pairs of `systems` systems. That takes `min_items`
    items at least. `note` says which pairs are left out, or why there are none.
    """

    column: str
    systems: int
    tests: int
    level: float
    min_items: int
    pairs: tuple[PairPower, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunPower:
    """The power of a run's tests, by column; `difference`, `items`, `power` and `pair` are the request."""

    run: str
    difference: float | None
    items: int | None
    power: float
    pair: tuple[str, str] | None
    columns: tuple[ColumnPower, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SdPower:
    """The power of a test of two systems whose paired differences have the standard deviation `sd`.

    `items` items detect `detectable`, and `difference` with `achieved_power`; `difference` needs `items_needed`.
    """

    sd: float
    difference: float | None
    items: int | None
    power: float
    detectable: float | None
    items_needed: int | None
    achieved_power: float | None
