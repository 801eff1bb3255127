"""Where the variance of a mean comes from: items, generations of the same prompt, and the judge's draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from judge.core.records import Column, Score
from judge.stats.agreement import deviation_of_draws
from judge.table import Table


@dataclass(frozen=True, slots=True)
class VarianceShares:
    """The variance of a system's mean score in a column, as shares that sum to 1, averaged over the systems.

    `items`, `generations` and `draws` are what would vanish with infinitely many of them. `n_items` and
    `n_generations` are how many there are (means per system and item).
    """

    column: str
    items: float
    generations: float
    draws: float
    n_items: float
    n_generations: float

    def after(self, *, items: float = 1.0, generations: float = 1.0, draws: float = 1.0) -> float:
        """Return the variance with that many times the items, generations or draws, as a share of today's."""
        per_text = (self.generations + self.draws / draws) / generations
        return (self.items + per_text) / items


def variance_shares(table: Table) -> tuple[VarianceShares, ...]:
    """Return the shares for each criterion, if a system has several generations of two items or more.

    Components by analysis of variance of nested random effects, with items of unequal size (Searle, Casella and
    McCulloch 1992, section 3.6), negative ones 0. A draw's variance is known from the scores that are means of draws.
    """
    if not any(sample.cluster for sample in table.samples):
        return ()
    source_items = {sample.item: sample.source_item for sample in table.samples}
    found = []
    for column in table.columns:
        if column.kind != "criterion" or column.judge:
            continue
        by_system: dict[str, dict[str, list[Score]]] = {}
        for score in table.column_scores(column.name):
            if not score.rival and score.item:
                by_system.setdefault(score.system, {}).setdefault(source_items[score.item], []).append(score)
        parts = [part for items in by_system.values() if (part := _parts(column, items)) is not None]
        total = sum(sum(part[:3]) for part in parts)
        if parts and total > 0:
            items, generations, draws = (sum(part[place] for part in parts) / total for place in range(3))
            sizes = (fmean(part[3] for part in parts), fmean(part[4] for part in parts))
            found.append(VarianceShares(column.name, items, generations, draws, *sizes))
    return tuple(found)


def _parts(column: Column, items: Mapping[str, list[Score]]) -> tuple[float, float, float, float, float] | None:
    """Return the variance of a system's mean from items, generations and draws; items and generations per item."""
    groups = [[score.value for score in scores] for scores in items.values()]
    n, n_items = sum(map(len, groups)), len(groups)
    if n_items < 2 or n == n_items:
        return None
    means = [fmean(group) for group in groups]
    grand = sum(map(sum, groups)) / n
    within = sum((v - mean) ** 2 for group, mean in zip(groups, means, strict=True) for v in group) / (n - n_items)
    among = sum(len(group) * (mean - grand) ** 2 for group, mean in zip(groups, means, strict=True)) / (n_items - 1)
    size = (n - sum(len(group) ** 2 for group in groups) / n) / (n_items - 1)
    # A score that is an expectation or a single reply has no variance of draws.
    deviations = [(deviation_of_draws(column, score) or 0.0, score) for scores in items.values() for score in scores]
    draw = min(fmean(sd**2 / score.provenance.n for sd, score in deviations), within)
    of_items, of_generations = max(0.0, (among - within) / size), within - draw
    per_item = n / n_items
    return of_items / n_items, of_generations / n, draw / n, float(n_items), per_item
