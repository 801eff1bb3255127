"""Split the change between two runs into the judge's part and the systems' part.

Texts that are the same in both runs are anchors, as only the judge can move their scores. Their
shift is subtracted from the changed texts' changes, assuming that the judge's shift is the same for
both (docs/decisions/0084).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from judge.core.records import Estimate
from judge.stats.bootstrap import (
    CONFIDENCE,
    MIN_INTERVAL_ITEMS,
    Bools,
    Floats,
    sum_of_squares,
    t_quantile,
    t_test,
    too_few,
    without_interval,
)
from judge.stats.paired_differences import ALL_EQUAL, PLACES
from judge.stats.power import MIN_ITEMS

MIN_SYSTEMS = 3
"""Systems with anchors that a shift for another system needs for an interval."""
_NO_INTERVAL = (
    f"the judge's shift was measured on fewer than {MIN_SYSTEMS} other systems: "
    "no interval"
)
_ROUNDING = 1e-9
_TINY = 1e-300  # a divisor that is not 0


@dataclass(frozen=True, slots=True)
class Split:
    """The `judge`'s part of a change and the `system`'s part, which is the rest.

    They sum to the change.
    """

    judge: Estimate
    system: Estimate


@dataclass(frozen=True, slots=True)
class _Anchors:
    """The texts that are the same in both runs (`cells`, systems × items), and their shifts.

    `shifts` has the mean shift of each system's anchors. `errors` (systems × items) has each
    anchor's part of its standard error: the squares of a row sum to the squared standard error.
    `usable` are the systems whose anchors cover five items.
    """

    cells: Bools
    shifts: Floats
    errors: Floats
    usable: Bools

    def sources(self, rows: slice) -> Floats:
        """Return the weights of the systems' shifts in the shift of each row (rows × systems).

        A system with enough anchors has its own shift, any other one the mean of those shifts.
        """
        has_anchors = self.usable[rows, None]
        own_anchors = np.eye(len(self.shifts), dtype=bool)[rows]
        mean_of_usable = self.usable / self.usable.sum()
        sources: Floats = np.where(has_anchors, own_anchors, mean_of_usable)
        return sources


def _anchors(differences: Floats, cells: Bools) -> _Anchors:
    """Return the shift of each system's anchors, and its errors."""
    n_anchors = cells.sum(axis=1)
    total_shifts = np.where(cells, differences, 0.0).sum(axis=1)
    # A system without anchors has the shift 0, which `usable` keeps from being used.
    shifts = total_shifts / np.maximum(n_anchors, 1)
    deviations = np.where(cells, differences - shifts[:, None], 0.0)
    # The squared standard error of a mean is Σ d² / (n (n − 1)).
    divisor = n_anchors * (n_anchors - 1)
    errors = deviations / np.sqrt(np.maximum(divisor, 1))[:, None]
    usable = n_anchors >= MIN_INTERVAL_ITEMS
    return _Anchors(cells, shifts, errors, usable)


@dataclass(frozen=True, slots=True)
class _ShiftError:
    """The error of the judge's shift, in which each system weighs as its changed texts do.

    `errors` has each item's part of the standard error, `items` marks the items with an anchor in
    use. `between` is the variance between `systems` systems, 0 if each system has anchors of its
    own, infinite if it cannot be estimated.
    """

    errors: Floats
    items: Bools
    between: float
    systems: int


def split_change(differences: Floats, changed: Bools, rows: slice) -> Split | None:
    """Split the mean change of these rows; None if no system has anchors of five items.

    `differences` are scores after minus before (systems × items, NaN for missing values). `changed`
    marks the cells whose text changed; the others are anchors.

    A system's shift J is the mean over its own anchors if they cover five items, else the mean of
    the other systems' shifts; their variance then counts too, as judges shift differently for
    different systems. The systems' part is the mean over items of Σ (change − J) over the changed
    cells, divided by the item's cells; the judge's part is the rest, so an anchor's shift counts as
    observed. Items are clusters: an item with both a changed text and an anchor counts as a pair,
    otherwise both variances add. Degrees of freedom: Welch (1947), less than the number of items.
    """
    is_known = ~np.isnan(differences)
    anchors = _anchors(differences, is_known & ~changed)
    if not anchors.usable.any():
        return None
    known_cells = is_known[rows]
    edited_cells = changed[rows] & known_cells
    cells_of_item = known_cells.sum(axis=0)
    items = cells_of_item > 0
    # An item without a cell has sums of 0, which are divided by 1.
    per_item = np.maximum(cells_of_item, 1)
    known_changes = np.where(known_cells, differences[rows], 0.0)
    edited_changes = np.where(edited_cells, differences[rows], 0.0)
    total_change = known_changes.sum(axis=0) / per_item
    edited_change = edited_changes.sum(axis=0) / per_item
    # The judge's part of the edited cells' change, if it shifts for them as for the anchors.
    edited_shares = edited_cells / per_item
    sources = anchors.sources(rows)
    shift_of_row = sources @ anchors.shifts
    imputed_change = shift_of_row @ edited_shares
    judge_change = total_change - edited_change + imputed_change
    system_change = edited_change - imputed_change

    weights = edited_shares[:, items].mean(axis=1)
    shift_error = _shift_error(anchors, sources, weights, rows)
    n_edited = int(edited_cells.any(axis=0).sum())
    judge = _estimate(judge_change, items, shift_error, sign=1)
    system = _estimate(
        system_change, items, shift_error, sign=-1, n_supporting=n_edited
    )
    return Split(judge, system)


def _shift_error(
    anchors: _Anchors, sources: Floats, weights: Floats, rows: slice
) -> _ShiftError:
    """Return the error of the mean shift of these rows, whose edited cells have these weights."""
    weights_of_systems = weights @ sources
    errors = weights_of_systems @ anchors.errors
    used_anchors = anchors.cells[weights_of_systems > 0]
    items_with_anchor: Bools = np.asarray(used_anchors.any(axis=0))
    borrowed_weights = weights[~anchors.usable[rows]]
    between = _variance_between(anchors.shifts[anchors.usable], borrowed_weights)
    return _ShiftError(errors, items_with_anchor, between, int(anchors.usable.sum()))


def _variance_between(shifts: Floats, borrowed: Floats) -> float:
    """Return the variance between systems of an imputed shift.

    `shifts` are those of the systems with enough anchors, `borrowed` the weights of the others. The
    variance is infinite if fewer than three systems have enough anchors.
    """
    if not borrowed.any():
        return 0.0
    n_systems = len(shifts)
    if n_systems < MIN_SYSTEMS:
        return inf
    variance = float(shifts.var(ddof=1))
    # The unknown shift varies as one system's does, and the mean that replaces it is uncertain.
    of_own_shifts = sum_of_squares(borrowed)
    of_mean_shift = float(borrowed.sum()) ** 2 / n_systems
    return variance * (of_own_shifts + of_mean_shift)


def _estimate(
    values: Floats,
    items: Bools,
    shift_error: _ShiftError,
    *,
    sign: int,
    n_supporting: int = MIN_ITEMS,
) -> Estimate:
    """Return the mean of `values` over `items`, with its own error and that of the judge's shift.

    The shift was added (`sign` is 1) or subtracted (−1). `n_supporting` is the number of items that
    are known to support the mean: below five there is no interval, below six no p.
    """
    n = int(items.sum())
    # Rounded, so that a change of 0 is 0 and not 1e-17, which would have a sign.
    mean = round(float(values[items].mean()), PLACES)
    n_supporting = min(n, n_supporting)
    has_test = n_supporting >= MIN_ITEMS
    if n_supporting < MIN_INTERVAL_ITEMS:
        return without_interval(
            name="difference", value=mean, n=n, reason=too_few(n_supporting)
        )
    if np.isinf(shift_error.between):
        return without_interval(name="difference", value=mean, n=n, reason=_NO_INTERVAL)
    deviations = np.where(items, values - mean, 0.0)
    errors = deviations / sqrt(n * (n - 1))
    # Added by item before squaring: a changed text and an anchor of one item are not independent.
    with_shift = errors + sign * shift_error.errors
    variance_over_items = sum_of_squares(with_shift)
    error = sqrt(variance_over_items + shift_error.between)
    p_value: float | None = None
    if error < _ROUNDING:
        if has_test:
            # Of the 2^n flips of n equal differences, two are as extreme: all and none.
            p_value = 2.0 ** (1 - n_supporting) if mean else 1.0
        test = "sign-flip permutation test"
        return without_interval(
            name="difference", value=mean, n=n, reason=ALL_EQUAL, p=p_value, test=test
        )
    freedom = _degrees_of_freedom(errors, items, shift_error, variance_over_items)
    half = t_quantile((1 - CONFIDENCE) / 2, freedom) * error
    test = ""
    if has_test:
        p_value = t_test(mean / error, freedom)
        test = "t test"
    n_anchored = int(shift_error.items.sum())
    method = (
        f"{100 * CONFIDENCE:g}% t interval over items, {n_anchored} with a text that is the same "
        "in both runs"
    )
    return Estimate(
        name="difference",
        value=mean,
        low=mean - half,
        high=mean + half,
        n=n,
        method=method,
        p=p_value,
        test=test,
    )


def _degrees_of_freedom(
    errors: Floats,
    items: Bools,
    shift_error: _ShiftError,
    variance_over_items: float,
) -> int:
    """Return Welch's (1947) degrees of freedom, less than the number of items.

    `errors` has each item's part of the standard error of the changes. The first step combines the
    variances of the changes and of the anchors (both over items), the second their sum
    `variance_over_items` with the variance between systems.
    """
    n_items = int(items.sum())
    n_anchored = int(shift_error.items.sum())
    of_changes = sum_of_squares(errors)
    of_anchors = sum_of_squares(shift_error.errors)
    scatter = of_changes**2 / (n_items - 1) + of_anchors**2 / (n_anchored - 1)
    welch = (of_changes + of_anchors) ** 2 / max(scatter, _TINY)
    used_items = items | shift_error.items
    freedom = min(welch, float(used_items.sum() - 1))
    scatter = variance_over_items**2 / max(freedom, 1.0)
    if shift_error.between:
        scatter += shift_error.between**2 / (shift_error.systems - 1)
    error = sqrt(variance_over_items + shift_error.between)
    combined = error**4 / max(scatter, _TINY)
    # Whole degrees of freedom, rounded down: 11.999… by rounding errors is 12.
    return max(1, int(combined + _ROUNDING))
