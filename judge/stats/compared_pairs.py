"""The compared pairs of texts: the verdict of both orders, and each pair from both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal, NamedTuple

import numpy as np

from judge.core.records import IDENTICAL, Column, Failure, Score
from judge.stats.bootstrap import Bools, Floats, Ints
from judge.stats.coefficients import share
from judge.table import Text

TIE = 0.5  # of a win, for each text
NEAR_TIE = 1e-9
"""The largest rounding error of a tie."""
Orders = Literal[1, 2]
"""In how many orders each pair of texts is asked."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The combined answers about one pair of texts.

    `preference` (0–1) is for the pair's first text. `winner` is 1 for the first text, −1 for the
    second, 0 for neither: a text wins if an answer prefers it and none prefers the other text
    (Chen et al. 2024, AlpaGasus). `tied`: every answer was a tie, by its value or by its likeliest
    label. `flipped`: the answer changed with the order; None if the judge was not asked in both
    orders.
    """

    preference: float
    winner: int
    tied: bool
    flipped: bool | None


def tie_label(column: Column) -> str | None:
    """Return the label that counts as half a win, None if a criterion has none or several."""
    # Without values, the labels are numbers or two sides.
    values_of_labels = zip(column.labels, column.values, strict=False)
    labels_of_ties = [label for label, value in values_of_labels if value == TIE]
    if len(labels_of_ties) != 1:
        return None
    return labels_of_ties[0]


def verdict(
    forward: Score | None, backward: Score | None, tie_label: str | None = None
) -> Verdict:
    """Combine the answers about one pair of texts; one may be missing, but not both.

    `forward` is the answer with the first text shown first, `backward` with the second. The
    preference is the mean of `forward`'s value and 1 − `backward`'s. `tie_label` is the criterion's
    label for a tie, if it has one.
    """
    side = 0 if forward is None else preferred_side(forward, tie_label)
    side_of_second = 0 if backward is None else preferred_side(backward, tie_label)
    # Answers that prefer different texts cancel out, however strong each of them is.
    winner = _sign(side - side_of_second)
    tied = side == side_of_second == 0
    if forward is None or backward is None:
        return Verdict(
            preference=_preference_of_one_order(forward, backward),
            winner=winner,
            tied=tied,
            flipped=None,
        )
    for_first = _snapped(forward.value)
    for_second = _snapped(backward.value)
    preference = _snapped(TIE + (for_first - for_second) / 2)
    # About identical texts no judge was asked, so that no answer could change with the order.
    if IDENTICAL in (forward.provenance.method, backward.provenance.method):
        return Verdict(
            preference=preference,
            winner=winner,
            tied=tied,
            flipped=None,
        )
    flipped = side != -side_of_second
    return Verdict(
        preference=preference,
        winner=winner,
        tied=tied,
        flipped=flipped,
    )


def _preference_of_one_order(forward: Score | None, backward: Score | None) -> float:
    """Return the preference for the first text if only one order has an answer."""
    if forward is not None:
        return _snapped(forward.value)
    if backward is not None:
        return 1 - _snapped(backward.value)
    raise ValueError("a pair without an answer has no verdict")


def preferred_side(row: Score, tie_label: str | None = None) -> int:
    """Return 1 if the answer prefers the text shown first, −1 if the other, 0 for a tie.

    A tie has the value 0.5, or is the likeliest label.
    """
    if tie_label is not None and row.provenance.argmax == tie_label:
        return 0
    return _sign(_snapped(row.value) - TIE)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _snapped(value: float) -> float:
    """Return the value, or a tie if it differs from one by rounding only."""
    return TIE if abs(value - TIE) < NEAR_TIE else value


@dataclass(frozen=True, slots=True)
class Sides:
    """The compared pairs of texts, each from both sides, as arrays of equal length.

    `systems` are those that were compared. `item`, `system` and `opponent` are indices, `p` is the
    preference for `system`, `tied` whether every order said a tie, `winner` 1 if `system` won the
    pair, −1 if it lost, else 0. `longer` is by how many characters the system's text is longer than
    the opponent's, 0 if unknown. `flipped` (0 or 1) and `first`, the mean value of the text shown
    first, are NaN if the judge was not asked in both orders.
    """

    systems: tuple[str, ...]
    item: Ints
    system: Ints
    opponent: Ints
    p: Floats
    tied: Bools
    winner: Ints
    flipped: Floats
    first: Floats
    longer: Floats
    incomplete: int

    @classmethod
    def from_rows(
        cls, systems: tuple[str, ...], rows: Sequence[Side], incomplete: int
    ) -> Sides:
        """Return the rows as arrays."""
        item = np.array([row.item for row in rows], dtype=np.intp)
        system = np.array([row.system for row in rows], dtype=np.intp)
        opponent = np.array([row.opponent for row in rows], dtype=np.intp)
        preferences = np.array([row.p for row in rows], dtype=np.float64)
        tied = np.array([row.tied for row in rows], dtype=np.bool_)
        winner = np.array([row.winner for row in rows], dtype=np.intp)
        flipped = np.array([row.flipped for row in rows], dtype=np.float64)
        shown_first = np.array([row.first for row in rows], dtype=np.float64)
        longer = np.array([row.longer for row in rows], dtype=np.float64)
        return cls(
            systems,
            item=item,
            system=system,
            opponent=opponent,
            p=preferences,
            tied=tied,
            winner=winner,
            flipped=flipped,
            first=shown_first,
            longer=longer,
            incomplete=incomplete,
        )

    def between(self, values: Floats) -> Floats:
        """Return the sum of one value per side, systems × opponents."""
        size = len(self.systems)
        cell = self.system * size + self.opponent
        totals = np.bincount(cell, values, size * size)
        sums: Floats = totals.astype(np.float64)
        return sums.reshape(size, size)

    def by_item(self, chosen: Bools) -> Floats:
        """Return the mean preference of these sides by item, NaN without any."""
        items = self.item[chosen]
        n_items = int(self.item.max(initial=-1)) + 1
        sums = np.bincount(items, self.p[chosen], n_items)
        return share(sums, np.bincount(items, minlength=n_items))

    def against(self, system_name: str) -> Bools:
        """Return which sides have this system as the opponent; none if it was not compared."""
        if system_name not in self.systems:
            return np.zeros(len(self.opponent), dtype=bool)
        mask: Bools = self.opponent == self.systems.index(system_name)
        return mask


class Side(NamedTuple):
    """A compared pair of texts from one side, with the fields of `Sides`."""

    item: int
    system: int
    opponent: int
    p: float
    tied: bool
    winner: int
    longer: float
    flipped: float = nan
    first: float = nan

    def mirrored(self) -> Side:
        """Return the pair from the opponent's side."""
        complement = 1 - self.p
        return self._replace(
            system=self.opponent,
            opponent=self.system,
            p=complement,
            winner=-self.winner,
            longer=-self.longer,
        )


Answers = list[Score | None]
"""The answers about one pair of texts: with its first text shown first, and with its second."""


def complete_pairs(
    rows: Iterable[Score | Failure],
    systems: Sequence[str],
    orders: Orders,
) -> tuple[dict[tuple[str, str, str], Answers], int]:
    """Return the answers about each complete pair, and the number of incomplete pairs.

    A pair is an item and two systems in the order of `systems`. It is complete with answers in
    `orders` orders. The pairs are sorted, so that the order of the rows does not matter.
    """
    position = {system: index for index, system in enumerate(systems)}
    answers_by_pair: dict[tuple[str, str, str], Answers] = {}
    for row in rows:
        swapped = position[row.system] > position[row.opponent]
        earlier = row.opponent if swapped else row.system
        later = row.system if swapped else row.opponent
        answers = answers_by_pair.setdefault((row.item, earlier, later), [None, None])
        if isinstance(row, Score):
            answers[1 if swapped else 0] = row
    complete: dict[tuple[str, str, str], Answers] = {}
    for pair in sorted(answers_by_pair):
        answers = answers_by_pair[pair]
        n_answers = len(answers) - answers.count(None)
        if n_answers >= orders:
            complete[pair] = answers
    n_incomplete = len(answers_by_pair) - len(complete)
    return complete, n_incomplete


def collect_sides(
    rows: Iterable[Score | Failure],
    systems: Sequence[str],
    orders: Orders,
    source_items: Mapping[str, str],
    lengths: Mapping[Text, int],
    *,
    tie_label: str | None = None,
) -> Sides:
    """Collect the rows of one column, combining the two orders.

    `source_items` has the item of the data by the item of a row, because several generations belong
    to one item. `lengths` has the characters of texts by item of a row and system.
    """
    complete, incomplete = complete_pairs(rows, systems, orders)
    compared: set[str] = set()
    for _, first_name, second_name in complete:
        compared.update((first_name, second_name))
    names = tuple(system for system in systems if system in compared)
    system_index = {system: index for index, system in enumerate(names)}
    item_index = _index_of_items([item for item, _, _ in complete], source_items)
    sides: list[Side] = []
    for (item, first_name, second_name), (forward, backward) in complete.items():
        outcome = verdict(forward, backward, tie_label)
        first_length = lengths.get((item, first_name), 0)
        second_length = lengths.get((item, second_name), 0)
        side = Side(
            item=item_index[source_items.get(item, item)],
            system=system_index[first_name],
            opponent=system_index[second_name],
            p=outcome.preference,
            tied=outcome.tied,
            winner=outcome.winner,
            longer=first_length - second_length,
        )
        # Also with `orders=1`, preferences from the data may have some pairs in both orders.
        if outcome.flipped is not None and forward is not None and backward is not None:
            mean_of_first = (forward.value + backward.value) / 2
            side = side._replace(flipped=float(outcome.flipped), first=mean_of_first)
        sides += [side, side.mirrored()]
    return Sides.from_rows(names, sides, incomplete)


def _index_of_items(
    compared: Sequence[str], source_items: Mapping[str, str]
) -> dict[str, int]:
    """Number the items of the data: in the order of `source_items`, then as they were compared."""
    compared_items = set(compared)
    in_data = [
        source for item, source in source_items.items() if item in compared_items
    ]
    others = [source_items.get(item, item) for item in compared]
    in_order = dict.fromkeys(in_data + others)
    return {source: index for index, source in enumerate(in_order)}
