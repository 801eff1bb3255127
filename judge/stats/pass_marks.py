"""Translate the pass mark of a criterion to a new judge, so that as many texts pass as before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judge.core.records import Column
from judge.stats.bootstrap import Bools, Floats
from judge.stats.run_differences import text_of
from judge.table import Table

MIN_ITEMS_OF_MARK = 20
"""Items below which half of them say too little about a mark."""
TOLERANCE = 0.02
"""The difference of pass rates up to which a translated mark keeps the gate."""
_SPLITS = 50
"""Random halves of the items; both halves are held back in turn."""
_DECIMALS = 2
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PassMark:
    """The pass mark of a criterion, and the one that lets as many texts pass by the new judge.

    Shares are from 0 to 1, of texts that are the same in both runs. `before` passes by the old
    judge and `after` by the new one at the same mark. `translated` is fitted on all these texts,
    and `refitted` passes at it. `held_back` passes at a mark that was fitted on the other half of
    the items: the mean over 50 random halves. `same_verdict` is the share of held-back texts that
    pass by both or fail by both.
    """

    column: str
    better: str
    mark: float
    translated: float
    texts: int
    items: int
    before: float
    after: float
    held_back: float
    refitted: float
    same_verdict: float

    @property
    def keeps_rate(self) -> bool:
        """Whether the pass rate stays within 2 points, on held-back texts and at the fitted mark.

        If scores are coarse, halves may miss the rate on both sides, and only their mean is near.
        """
        rates = (self.held_back, self.refitted)
        return all(abs(rate - self.before) <= TOLERANCE for rate in rates)


def translate_pass_marks(before: Table, after: Table, *, seed: int = 0) -> tuple[PassMark, ...]:
    """Return the translated mark of each criterion with a pass mark whose scores differ.

    Only texts that are the same in both runs count, from 20 items on. A criterion that is on
    another scale in the second run is left out.
    """
    text_before = {sample.key: text_of(sample) for sample in before.samples}
    sources = {
        sample.key: sample.source_item
        for sample in after.samples
        if text_before.get(sample.key) == text_of(sample)
    }
    new_columns = {column.name: column for column in after.columns}
    marks: list[PassMark] = []
    for column in before.columns:
        new_column = new_columns.get(column.name)
        if column.pass_at is None or column.judge or new_column is None:
            continue
        if (column.low, column.high, column.better) != (
            new_column.low,
            new_column.high,
            new_column.better,
        ):
            continue
        scored = _Scored.of(before, after, column, sources)
        if scored.n_items >= MIN_ITEMS_OF_MARK and not np.array_equal(scored.old, scored.new):
            marks.append(_translate(scored, column, seed))
    return tuple(marks)


@dataclass(frozen=True, slots=True)
class _Scored:
    """The scores of each text by both judges, and the number of its item."""

    old: Floats
    new: Floats
    item: Sequence[int]

    @classmethod
    def of(
        cls, before: Table, after: Table, column: Column, sources: dict[tuple[str, str], str]
    ) -> _Scored:
        old = {score.key: score.value for score in before.column_scores(column.name)}
        pairs = [
            (old[score.key], score.value, sources[score.key])
            for score in after.column_scores(column.name)
            if score.key in old and score.key in sources
        ]
        in_order = dict.fromkeys(source for _, _, source in pairs)
        numbers = {source: number for number, source in enumerate(in_order)}
        return cls(
            np.array([pair[0] for pair in pairs]),
            np.array([pair[1] for pair in pairs]),
            [numbers[source] for _, _, source in pairs],
        )

    @property
    def n_items(self) -> int:
        return len(set(self.item))


def _translate(scored: _Scored, column: Column, seed: int) -> PassMark:
    mark = column.pass_at or 0.0
    # On a scale whose lower end is better, the same is done with the signs turned.
    sign = -1.0 if column.better == "lower" else 1.0
    new = sign * scored.new
    passes_before = _passes(sign * scored.old, sign * mark)
    random = np.random.default_rng(seed)
    item = np.array(scored.item)
    rates: list[float] = []
    same: list[float] = []
    for _ in range(_SPLITS):
        first_half = random.permutation(scored.n_items) < scored.n_items / 2
        for is_fitted in (first_half[item], ~first_half[item]):
            held_back = ~is_fitted
            fitted = _fit(new[is_fitted], passes_before[is_fitted], sign * mark)
            passes = _passes(new[held_back], fitted)
            rates.append(float(passes.mean()))
            same.append(float((passes == passes_before[held_back]).mean()))
    translated = _fit(new, passes_before, sign * mark)
    return PassMark(
        column.name,
        column.better,
        mark,
        sign * translated,
        len(new),
        scored.n_items,
        before=float(passes_before.mean()),
        after=float(_passes(new, sign * mark).mean()),
        held_back=float(np.mean(rates)),
        refitted=float(_passes(new, translated).mean()),
        same_verdict=float(np.mean(same)),
    )


def _fit(new: Floats, passes_before: Bools, mark: float) -> float:
    """Return the mark at which the share of passing texts is nearest to that of the old judge.

    Candidates are the middles between neighbouring scores, and the old mark, which is kept if none
    is nearer. A mark is rounded if that changes no verdict.
    """
    values = np.unique(new)
    middles = (values[:-1] + values[1:]) / 2
    candidates = np.array([mark, values[0], *middles])
    rates = np.array([_passes(new, candidate).mean() for candidate in candidates])
    distance = np.abs(rates - passes_before.mean())
    nearest = candidates[distance <= distance.min() + _ROUNDING]
    # Of several marks that are equally near, the one nearest to the old mark.
    best = float(nearest[np.argmin(np.abs(nearest - mark))])
    rounded = round(best, _DECIMALS)
    if np.array_equal(_passes(new, rounded), _passes(new, best)):
        return rounded
    return best


def _passes(values: Floats, mark: float) -> Bools:
    passes: Bools = values >= mark - _ROUNDING
    return passes
