"""What a judge makes of two wordings of a criterion: what moved, what turned, and which goes better with people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean

import numpy as np

from judge.commands.compare import compare
from judge.core.records import Sample
from judge.report.views.criterion_diff import Agreement, Judged, RankChange, Turned
from judge.results.result import Result
from judge.stats.correlation import shifted, usual_level
from judge.stats.rated_columns import taken
from judge.stats.resampling import Floats

_PLACES = 9  # equal values may differ by rounding


def shifts(before: Result, after: Result, rows: Sequence[Sample]) -> tuple[Judged, tuple[str, ...]]:
    """Two runs of one criterion on the same texts against each other, and what there is to know besides.

    `rows` are the texts with their ratings by people.
    """
    column, seed = before.table.columns[0], before.info["plan"]["seed"]
    sides, notes = (before, after), tuple[str, ...]()
    ends = [(side.table.columns[0].low, side.table.columns[0].high) for side in sides]
    if ends[0] != ends[1]:
        notes = ("The scales are not the same: scores are compared as shares of their scale, 0 to 1.",)
        sides = _as_shares(before), _as_shares(after)
    had, has = ({(s.item, s.system) for s in side.table.of(column.name)} for side in sides)
    moved = replace(compare(*sides, seed=seed), changes=()) if had & has else None
    turned = (*_labels(before, after), *_orders(before, after, column.name))
    places = tuple(_places(before, after, column.name))
    judgments, failed = (_asked(before), _asked(after)), (before.failed, after.failed)
    found = Judged(judgments, failed, moved, turned, places, column.criterion)
    return _against(found, rows, before, after), notes


def _asked(result: Result) -> int:
    return len(result.table.scores) + len(result.failures)


def _as_shares(result: Result) -> Result:
    """The same with every value as a share of its scale."""
    ends = {c.name: (c.low, c.high - c.low) for c in result.table.columns if c.low is not None and c.high is not None}
    columns = tuple(replace(column, low=0.0, high=1.0, labels=()) for column in result.table.columns)
    scores = tuple(
        replace(score, value=(score.value - ends[score.column][0]) / ends[score.column][1])
        for score in result.table.scores
    )
    return replace(result, table=replace(result.table, columns=columns, scores=scores))


def _labels(before: Result, after: Result) -> Iterator[Turned]:
    """Texts of which the likeliest label is another one, of all judges; nothing where the scales have other labels."""
    if before.table.columns[0].labels != after.table.columns[0].labels:
        return
    had, has = (
        {(s.item, s.system, s.column): s.provenance.argmax for s in side.table.scores if s.provenance.argmax}
        for side in (before, after)
    )
    both = had.keys() & has.keys()
    if both:
        yield Turned("likeliest label is another one", sum(had[key] != has[key] for key in both), len(both))


def _orders(before: Result, after: Result, column: str) -> Iterator[Turned]:
    """Pairs of texts within an item, and pairs of systems by their means, of which the other one is ahead now."""
    old, new = (np.round(side.table.matrix(column), _PLACES) for side in (before, after))
    if len(old) < 2:
        return
    turned, of = 0, 0
    for one, other in zip(old.T, new.T, strict=True):
        known = ~(np.isnan(one) | np.isnan(other))
        of += int(known.sum()) * (int(known.sum()) - 1) // 2
        turned += _reversed(one[known], other[known])
    yield Turned("order of two texts within an item", turned, of)
    both = ~(np.isnan(old) | np.isnan(new))
    scored = both.any(axis=1)
    means = [
        np.round([fmean(row[of].tolist()) for row, of in zip(side[scored], both[scored], strict=True)], _PLACES)
        for side in (old, new)
    ]
    yield Turned("order of two systems' means", _reversed(*means), len(list(combinations(means[0], 2))))


def _reversed(one: Floats, other: Floats) -> int:
    """How many pairs are in the opposite order; a tie is in no order."""
    signs = [np.sign(side[:, None] - side[None, :]) for side in (one, other)]
    return int((signs[0] * signs[1] < 0).sum()) // 2


def _places(before: Result, after: Result, column: str) -> Iterator[RankChange]:
    """The systems that have another rank."""
    had, has = (
        {r.system: (r.rank, r.low, r.high) for c in side.comparisons if c.column == column for r in c.ranks}
        for side in (before, after)
    )
    for system in has:
        if system in had and had[system][0] != has[system][0]:
            yield RankChange(system, had[system], has[system])


def _against(found: Judged, rows: Sequence[Sample], before: Result, after: Result) -> Judged:
    """With the agreement with people's ratings, or why there is none."""
    rated = [row for row in rows if found.rating in row.human]
    if not rated:
        known = dict.fromkeys(name for row in rows for name in row.human)
        others = f" called {found.rating} (--human names another: {', '.join(known)})" if known else ""
        return replace(found, lacking=f"No text has a rating by people{others} to hold the two against")
    agreement, why = _agreement(rated, before, after, found.rating)
    lacking = "" if agreement else f"Agreement with people's {found.rating} cannot be had: {why}"
    return replace(found, agreement=agreement, lacking=lacking, level=usual_level(rated))


def _agreement(
    rated: Sequence[Sample], before: Result, after: Result, rating: str
) -> tuple[tuple[Agreement, ...], str]:
    """Spearman with people before and after, by level, on the texts that have both scores; why a level has none."""
    column, seed = before.table.columns[0], before.info["plan"]["seed"]
    old, new = (taken(column, side.table, column.name).values for side in (before, after))
    found, why = shifted(rated, rating, old, new, seed=seed)
    return tuple(Agreement(level, *shift) for level, shift in found.items()), why
