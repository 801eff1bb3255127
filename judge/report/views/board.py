"""The means of a run that scores texts, with their ranks and marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.core.format import plural
from judge.core.records import Column, Estimate
from judge.report.document import (
    Cell,
    Tone,
)
from judge.report.format import (
    interval_text,
    mean_text,
)
from judge.report.views.columns import (
    Group,
    calibrated_columns,
    compared_columns,
    in_display_order,
    main_order,
    marks_against,
    places,
    shown_pass_rates,
    with_calibration,
    with_pass_rate,
)
from judge.report.views.printed_ranks import in_printed_order, printed_ranks
from judge.report.views.summary import Mark, Row
from judge.results.result import Result, failure_counts
from judge.stats.calibration import Calibrated
from judge.stats.derived_columns import pass_table
from judge.stats.ranks import Rank
from judge.stats.system_differences import Comparison, compare

TONES: Mapping[str, Tone] = {"best": "good", "better": "good", "worse": "bad"}
"""The tones of the marks of significant differences; they get a star."""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The means of a result. The overall score comes first, then criteria, then metrics.

    `systems` are ordered by the column `ranked_by`, the best first, then those without a value; if
    nothing was compared, `ranked_by` is empty and they keep the table's order. `rows` has the mean
    of each system in each column. `against` is the system that all are compared with, "" if every
    two are. `of_texts` are the columns with a value per text. `rates` are the columns of pass
    rates, by the names of the columns whose values pass. `printed_ranks` are those of the short
    table (see `shared_ranks`).
    """

    ranked_by: str
    ranks: Mapping[str, Rank]
    printed_ranks: Mapping[str, int]
    systems: tuple[str, ...]
    groups: tuple[Group, ...]
    rows: Mapping[tuple[str, str], Row]
    of_texts: tuple[Column, ...]
    against: str
    rates: Mapping[str, Column]
    calibrated: Mapping[str, Column]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for group in self.groups for column in group.columns)

    def printed_rank(self, system: str) -> str:
        """Return the rank to print, such as `1`, or `1=` if systems share it."""
        if system not in self.printed_ranks:
            return "–"
        rank = self.printed_ranks[system]
        n_sharing = list(self.printed_ranks.values()).count(rank)
        return f"{rank}=" if n_sharing > 1 else str(rank)


def build_leaderboard(result: Result) -> Leaderboard:
    """Collect the means of a result that scores texts, with their order and marks."""
    rates = shown_pass_rates(result)
    calibrated = calibrated_columns(result)
    main = main_order(result)
    ranked_by = main.column if main else ""
    against = main.against if main else ""
    groups = []
    for group in in_display_order(result):
        rated_group = with_pass_rate(group, rates)
        groups.append(with_calibration(rated_group, calibrated))
    columns = [column for group in groups for column in group.columns]
    shown_columns = Shown(rates, calibrated)
    tested = _tested_columns(result, shown_columns, against)
    rows = _mean_rows(result, columns, shown_columns, tested)
    ranks: dict[str, Rank] = {}
    ranks_to_print: dict[str, int] = {}
    if main and len(main.ranks) > 1:
        ranks = {rank.system: rank for rank in in_printed_order(main)}
        ranks_to_print = printed_ranks(main)
    with_values = [column for column in columns if column in result.table.columns]
    corpus = result.table.corpus_columns
    systems = dict.fromkeys([*ranks, *count_texts(result)])
    of_texts = tuple(column for column in with_values if column.name not in corpus)
    return Leaderboard(
        ranked_by=ranked_by,
        ranks=ranks,
        printed_ranks=ranks_to_print,
        systems=tuple(systems),
        groups=tuple(groups),
        rows=rows,
        of_texts=of_texts,
        against=against,
        rates=rates,
        calibrated=calibrated,
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """The columns that a leaderboard shows beside the means.

    These are pass rates and means on people's scale, by the names of the columns that they were
    computed from.
    """

    rates: Mapping[str, Column]
    calibrated: Mapping[str, Column]

    def scored_by_name(self) -> dict[str, str]:
        """Return the column with the scores by the name of the column shown."""
        names: dict[str, str] = {}
        for columns in (self.rates, self.calibrated):
            names |= {column.name: scored for scored, column in columns.items()}
        return names


def _tested_columns(
    result: Result,
    shown_columns: Shown,
    against: str,
) -> dict[str, Comparison | Calibrated]:
    """Return the systems' comparisons by column, including pass rates and calibrated means."""
    tested: dict[str, Comparison | Calibrated] = dict(compared_columns(result))
    for calibrated in result.calibrated:
        column = shown_columns.calibrated.get(calibrated.column)
        if column is not None:
            tested[column.name] = calibrated
    if shown_columns.rates and tested:
        seed = result.info.config.seed
        passing = compare(pass_table(result.table), seed=seed, against=against)
        tested |= {comparison.column: comparison for comparison in passing}
    return tested


def _marks(
    comparison: Comparison | Calibrated | None, column: Column
) -> dict[str, Mark]:
    """Return the marks of the systems that differ significantly, or that share the top."""
    if comparison is None:
        return {}
    best: Mark = "best" if len(comparison.best) == 1 else "same"
    marks: dict[str, Mark] = {**marks_against(comparison, column.better)}
    marks.update(dict.fromkeys(comparison.best, best))
    return marks


def _mean_rows(
    result: Result,
    columns: Sequence[Column],
    shown_columns: Shown,
    tested: Mapping[str, Comparison | Calibrated],
) -> dict[tuple[str, str], Row]:
    """Return the mean of each system in each column, also of pass rates."""
    totals = count_texts(result, generations=False)
    n_failed: Counter[tuple[str, str]] = Counter()
    for (_, _, system, column_name), count in failure_counts(result).items():
        n_failed[system, column_name] += count
    estimates = _shown_estimates(result, shown_columns)
    # A pass rate counts scores, and has the failures of these scores.
    scored_by_name = shown_columns.scored_by_name()
    calibrated_names = {column.name for column in shown_columns.calibrated.values()}
    rows: dict[tuple[str, str], Row] = {}
    for column in columns:
        marks = _marks(tested.get(column.name), column)
        scored = scored_by_name.get(column.name, column.name)
        for system, total in totals.items():
            failed = n_failed[system, scored]
            row = Row(system, column.name, None, None, None, 0, total, failed, None, "")
            estimate = estimates.get((system, column.name))
            if estimate is not None:
                # A mean on people's scale is over all items. `n` of them are rated.
                n_texts = estimate.n if column.name in calibrated_names else total
                row = replace(
                    row,
                    total=n_texts,
                    mean=estimate.value,
                    low=estimate.low,
                    high=estimate.high,
                    n=estimate.n,
                    method=estimate.method,
                    mark=marks.get(system, ""),
                )
            rows[system, column.name] = row
    return rows


def _shown_estimates(
    result: Result, shown_columns: Shown
) -> dict[tuple[str, str], Estimate]:
    """Return the means by system and column, with those of pass rates and on people's scale."""
    estimates = dict(result.estimates)
    for (system, criterion_name), estimate in result.pass_rates.items():
        if criterion_name in shown_columns.rates:
            rate = shown_columns.rates[criterion_name]
            estimates[system, rate.name] = estimate
    for calibrated in result.calibrated:
        if calibrated.column in shown_columns.calibrated:
            column = shown_columns.calibrated[calibrated.column]
            for mean in calibrated.means:
                estimates[mean.system, column.name] = mean.estimate
    return estimates


def mean_cell(result: Result, column: Column, row: Row, **fields: Any) -> Cell:
    """Write a mean with its interval and mark."""
    decimals = places(result, column)
    mean = "–"
    if row.mean is not None:
        mean = mean_text(column, row.mean, decimals)
    interval = interval_text(column, row.low, row.high, decimals)
    mark = "*" if row.mark in TONES else ""
    tone = TONES.get(row.mark, "")
    return Cell(
        mean,
        interval,
        tone=tone,
        mark=mark,
        value=row.mean,
        coverage=row.coverage,
        **fields,
    )


def items_of_means(result: Result) -> str:
    """Return how many items the systems have texts for: `24 items` or `12 to 24 items`."""
    counts = count_texts(result, generations=False).values()
    most = max(counts, default=0)
    fewest = min(counts, default=0)
    items = plural(most, "item")
    return items if fewest == most else f"{fewest:,} to {items}"


def count_texts(result: Result, *, generations: bool = True) -> Counter[str]:
    """Count the texts of each system; without `generations`, its items."""
    # A dict and no set, because it keeps the order of the systems.
    texts: dict[tuple[str, str], None] = {}
    for sample in result.table.samples:
        item = sample.item if generations else sample.source_item
        texts[sample.system, item] = None
    return Counter(system for system, _ in texts)
