"""Translate the pass mark of a criterion to a new judge, so that as many texts pass as before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judge.core.records import Column
from judge.stats.bootstrap import Bools, Floats
from judge.stats.run_differences import text_of
from judge.table import Table, Text

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
        largest_gap = max(abs(rate - self.before) for rate in rates)
        return largest_gap <= TOLERANCE


def translate_pass_marks(
    before: Table, after: Table, *, seed: int = 0
) -> tuple[PassMark, ...]:
    """Return the translated mark of each criterion with a pass mark whose scores differ.

    Only texts that are the same in both runs count, from 20 items on. A criterion that is on
    another scale in the second run is left out.
    """
    text_before = {sample.key: text_of(sample) for sample in before.samples}
    # The items of the texts that are the same in both runs.
    sources: dict[Text, str] = {}
    for sample in after.samples:
        if text_before.get(sample.key) == text_of(sample):
            sources[sample.key] = sample.source_item
    new_columns = {column.name: column for column in after.columns}
    marks: list[PassMark] = []
    for column in before.columns:
        new_column = new_columns.get(column.name)
        if column.pass_at is None or column.judge or new_column is None:
            continue
        old_scale = (column.low, column.high, column.better)
        new_scale = (new_column.low, new_column.high, new_column.better)
        if old_scale != new_scale:
            continue
        scored = _Scored.of(before, after, column, sources)
        scores_differ = not np.array_equal(scored.old, scored.new)
        if scores_differ and scored.n_items >= MIN_ITEMS_OF_MARK:
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
        cls,
        before: Table,
        after: Table,
        column: Column,
        sources: dict[Text, str],
    ) -> _Scored:
        """Return the scores of a column; `sources` has the items of the texts to use."""
        value_before = {
            score.key: score.value for score in before.column_scores(column.name)
        }
        old: list[float] = []
        new: list[float] = []
        source_items: list[str] = []
        for score in after.column_scores(column.name):
            if score.key in value_before and score.key in sources:
                old.append(value_before[score.key])
                new.append(score.value)
                source_items.append(sources[score.key])
        distinct_items = dict.fromkeys(source_items)
        number_of_item = {
            source: number for number, source in enumerate(distinct_items)
        }
        items = [number_of_item[source] for source in source_items]
        return cls(np.array(old), np.array(new), items)

    @property
    def n_items(self) -> int:
        return len(set(self.item))


def _translate(scored: _Scored, column: Column, seed: int) -> PassMark:
    """Translate the mark of one column, and try it on held-back items."""
    # If lower values are better, all values change their sign, so that larger ones pass.
    sign = -1.0 if column.better == "lower" else 1.0
    mark = sign * (column.pass_at or 0.0)
    old = sign * scored.old
    new = sign * scored.new
    passes_before = _passes(old, mark)
    held_back_rates: list[float] = []
    same_verdicts: list[float] = []
    for is_fitted in _random_halves(scored, seed):
        held_back = ~is_fitted
        fitted_mark = _fit(new[is_fitted], passes_before[is_fitted], mark)
        passes = _passes(new[held_back], fitted_mark)
        held_back_rates.append(float(passes.mean()))
        is_same = passes == passes_before[held_back]
        same_verdicts.append(float(is_same.mean()))
    translated = _fit(new, passes_before, mark)
    with_old_mark = _passes(new, mark)
    with_new_mark = _passes(new, translated)
    return PassMark(
        column.name,
        column.better,
        mark=sign * mark,
        translated=sign * translated,
        texts=len(new),
        items=scored.n_items,
        before=float(passes_before.mean()),
        after=float(with_old_mark.mean()),
        held_back=float(np.mean(held_back_rates)),
        refitted=float(with_new_mark.mean()),
        same_verdict=float(np.mean(same_verdicts)),
    )


def _random_halves(scored: _Scored, seed: int) -> Iterator[Bools]:
    """Yield which texts are in a random half of the items, and then the other half."""
    random = np.random.default_rng(seed)
    item = np.array(scored.item)
    for _ in range(_SPLITS):
        # By items: the texts of an item are alike, so they must not be in both halves.
        first_half = random.permutation(scored.n_items) < scored.n_items / 2
        yield first_half[item]
        yield ~first_half[item]


def _fit(new: Floats, passes_before: Bools, mark: float) -> float:
    """Return the mark at which the share of passing texts is nearest to that of the old judge.

    Candidates are the middles between neighbouring scores, and the old mark, which is kept if none
    is nearer. A mark is rounded if that changes no verdict.
    """
    values = np.unique(new)
    middles = (values[:-1] + values[1:]) / 2
    candidates = np.array([mark, values[0], *middles])
    pass_rates = np.array([_passes(new, candidate).mean() for candidate in candidates])
    distance = np.abs(pass_rates - passes_before.mean())
    nearest = candidates[distance <= distance.min() + _ROUNDING]
    # Of several marks that are equally near, the one nearest to the old mark.
    nearest_to_old = np.argmin(np.abs(nearest - mark))
    best = float(nearest[nearest_to_old])
    rounded = round(best, _DECIMALS)
    if np.array_equal(_passes(new, rounded), _passes(new, best)):
        return rounded
    return best


def _passes(values: Floats, mark: float) -> Bools:
    passes: Bools = values >= mark - _ROUNDING
    return passes
