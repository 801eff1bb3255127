"""The report of a run that scores texts: the table of means, and the Document that all formats write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from shlex import quote
from typing import Any

from judge.core.format import number, one_line, plural
from judge.core.records import Column
from judge.core.stored_records import json_cell
from judge.report.document import (
    Bar,
    Block,
    Cell,
    Document,
    Excerpts,
    Section,
    Table,
    Tile,
    Tiles,
    Tone,
    table,
)
from judge.report.document import Column as Head
from judge.report.format import (
    column_title,
    interval_text,
    mean_text,
    pass_text,
    scale_text,
    share_label,
)
from judge.report.views import items, panel, provenance
from judge.report.views.calibration import calibration_blocks
from judge.report.views.charts import distribution_blocks, means_charts, metric_chart
from judge.report.views.checklists import checklist_blocks, checklist_summary
from judge.report.views.claims import claims_section, claims_summary
from judge.report.views.columns import (
    TEST_NAME,
    Group,
    compared_columns,
    in_display_order,
    main_comparison,
    marks_against,
    places,
    shown_pass_rates,
    with_pass_rate,
)
from judge.report.views.comparison_finding import REFERENCE_METRICS, closest_pair
from judge.report.views.difference_notices import few_items_notice
from judge.report.views.drivers import drivers_blocks
from judge.report.views.failure_notice import failure_notice
from judge.report.views.finding import finding, number_of_items
from judge.report.views.human_agreement import (
    agreement_chart,
    agreement_tiles,
    main_agreement,
    people_blocks,
)
from judge.report.views.lowest import NEUTRAL, excerpt
from judge.report.views.matrices import correlation_blocks, difference_blocks
from judge.report.views.summary import Mark, Row, means_data
from judge.results.result import Result, failure_counts
from judge.results.worst_texts import worst_texts
from judge.stats.analyze import pass_table
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS
from judge.stats.system_differences import Comparison, Rank, compare

_MAX_NAME = 80  # characters of a system's name
_MAX_CRITERIA = 16  # columns of the short table
_MAX_METRICS = 5  # columns of the short table if no criterion was judged
_EXCERPTS = 5
_UNEVEN = (
    "Not every system has a text for every item: means over different items do not compare well."
)
_TONES: Mapping[str, Tone] = {"best": "good", "better": "good", "worse": "bad"}
"""The tones of the marks of significant differences; they get a star."""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The means of a result. The overall score comes first, then criteria, then metrics.

    `systems` are ordered by the column `ranked_by`, the best first, then those without a value; if nothing was
    compared, `ranked_by` is empty and they keep the table's order. `rows` has the mean of each system in each column.
    `against` is the system that all are compared with, "" if every two are. `of_texts` are the columns with a value per
    text, `rates` those of pass rates, by the names of the columns whose values pass.
    """

    ranked_by: str
    ranks: Mapping[str, Rank]
    systems: tuple[str, ...]
    groups: tuple[Group, ...]
    rows: Mapping[tuple[str, str], Row]
    of_texts: tuple[Column, ...]
    against: str
    rates: Mapping[str, Column]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for group in self.groups for column in group.columns)

    def place(self, system: str) -> str:
        """Return `1=` for a system that shares the first place: 1 + the number of significantly better systems."""
        if system not in self.ranks:
            return "–"
        low = self.ranks[system].low
        shared = sum(rank.low == low for rank in self.ranks.values()) > 1
        return f"{low}{'=' if shared else ''}"


def _in_printed_order(comparison: Comparison) -> dict[str, Rank]:
    """Return the ranks in the order of the printed places; within one, the system with the better mean first.

    Whoever has few scores comes last within its place.
    """
    partly = comparison.partly_scored
    ranks = sorted(
        comparison.ranks,
        key=lambda rank: (0 if comparison.against else rank.low, rank.system in partly, rank.rank),
    )
    return {rank.system: rank for rank in ranks}


def build_leaderboard(result: Result) -> Leaderboard:
    """Collect the means of a result that scores texts, with their order and marks."""
    rates, main = shown_pass_rates(result), main_comparison(result)
    groups = tuple(with_pass_rate(group, rates) for group in in_display_order(result))
    total, failed = count_texts(result, generations=False), Counter[tuple[str, str]]()
    for (_, _, name, column_name), n in failure_counts(result).items():
        failed[name, column_name] += n
    against = main.against if main else ""
    tested = dict(compared_columns(result))
    if rates and tested:
        seed = result.info.config.seed
        passing = compare(pass_table(result.table), seed=seed, against=against)
        tested |= {comparison.column: comparison for comparison in passing}
    estimates = dict(result.estimates)
    estimates |= {
        (system, rates[name].name): e
        for (system, name), e in result.pass_rates.items()
        if name in rates
    }
    scores = {rate.name: name for name, rate in rates.items()}
    rows = {}
    columns = [column for group in groups for column in group.columns]
    for column in columns:
        marks: dict[str, Mark] = {}
        if comparison := tested.get(column.name):
            best: Mark = "best" if len(comparison.best) == 1 else "same"
            marks = {
                **marks_against(comparison, column.better),
                **dict.fromkeys(comparison.best, best),
            }
        for system in total:
            counts = total[system], failed[system, scores.get(column.name, column.name)]
            row = Row(system, column.name, None, None, None, 0, *counts, None, "")
            if e := estimates.get((system, column.name)):
                mark = marks.get(system, "")
                row = replace(
                    row, mean=e.value, low=e.low, high=e.high, n=e.n, method=e.method, mark=mark
                )
            rows[system, column.name] = row
    ranks = _in_printed_order(main) if main and len(main.ranks) > 1 else {}
    return Leaderboard(
        ranked_by=main.column if main else "",
        ranks=ranks,
        systems=tuple(dict.fromkeys([*ranks, *total])),
        groups=groups,
        rows=rows,
        of_texts=tuple(
            c
            for c in columns
            if c in result.table.columns and c.name not in result.table.corpus_columns
        ),
        against=against,
        rates=rates,
    )


def _cell(result: Result, column: Column, row: Row, **fields: Any) -> Cell:
    """Write a mean with its interval and mark."""
    decimals = places(result, column)
    mean = "–" if row.mean is None else mean_text(column, row.mean, decimals)
    interval = interval_text(column, row.low, row.high, decimals)
    mark = "*" if row.mark in _TONES else ""
    return Cell(mean, interval, tone=_TONES.get(row.mark, ""), mark=mark, value=row.mean, **fields)


def view(result: Result) -> Document:
    """Build the report of a run that scores texts."""
    board, main, info = build_leaderboard(result), main_comparison(result), result.info
    about = provenance.build_provenance(result)
    lost = sum(kind.count for kind in about.failures) - result.abstained
    criteria = sum(1 for group in in_display_order(result) if group.columns[0].kind == "criterion")
    criteria -= result.overall is not None
    facts = [
        f"judge {one_line(info.model, _MAX_NAME)}" if info.judges else "no judge",
        f"{criteria} {'criterion' if criteria == 1 else 'criteria'}" if criteria else "",
        *dict.fromkeys(
            (number_of_items(result), plural(sum(count_texts(result).values()), "text"))
        ),
        f"{lost:,} failed",
        info.started[:10],
    ]
    noun, succeeded, _ = _made(result, lost)
    counts = [
        f"{succeeded:,} {'judged' if noun == 'judgments' else 'measured'}",
        f"{lost:,} failed",
    ]
    if result.abstained:
        counts.append(f"{result.abstained:,} skipped by metrics")
    if info.cost is not None and info.cost.usd:
        writing = provenance.generation_cost(info)
        counts.append(
            f"${info.cost.usd:,.2f}" + (f" (generation ${writing:,.2f})" if writing else "")
        )
    return Document(
        title=about.title,
        finding=finding(result),
        scope=number_of_items(result),
        about=tuple(filter(None, facts)),
        notices=(
            *about.banners,
            *filter(None, [failure_notice(result), few_items_notice(result, main) if main else ""]),
            *[_UNEVEN] * (len({*count_texts(result, generations=False).values()}) > 1),
        ),
        summary=tuple(_summary(result, board, lost)),
        sections=tuple(_sections(result, board)),
        footer=(
            ", ".join(counts),
            *panel.summary_lines(result),
            *(
                f"Failed   {provenance.failure_text(kind, 120)}"
                for kind in about.failures[:1]
                if lost
            ),
        ),
        next=tuple(_next_commands(result, board)),
        data=means_data(
            result, board.systems, board.columns, tuple(board.rows.values()), about.failures
        ),
        records=tuple(_records(result, board)),
        header=_FIELDS,
        wide_records=lambda: wide_records(result),
        tone="good"
        if main and (0 < len(main.best) < len(main.ranks) or marks_against(main, ""))
        else "",
        language=info.language_name,
    )


def _summary(result: Result, board: Leaderboard, lost: int) -> Iterator[Block]:
    tiles = [*agreement_tiles(result)]
    if closest := closest_pair(result):
        first, second, needed = closest
        label = (
            f"items needed to separate {one_line(first, 30)} and {one_line(second, 30)} (80% power)"
        )
        tiles.append(Tile(f"≈ {needed:,}", label, link="differences"))
    noun, succeeded, failed = _made(result, lost)
    label, link = f"{noun} failed", "failures" if lost else ""
    tiles.append(Tile(f"{failed:,} / {succeeded + failed:,}", label, "bad" if lost else "", link))
    yield Tiles(tuple(tiles))
    if board.systems:
        yield _short_table(result, board)
    if lowest := worst_texts(result.table, _EXCERPTS):
        yield Excerpts("Lowest", tuple(excerpt(result, text) for text in lowest))
    yield from checklist_summary(result)
    yield from claims_summary(result)
    if rated := main_agreement(result):
        yield agreement_chart(rated)
    else:
        yield from metric_chart(result)


def _sections(result: Result, board: Leaderboard) -> Iterator[Section]:
    yield Section("scores", "All scores", lambda: _all_scores(result, board), folded=True)
    if result.checklists:
        yield Section("checklists", "Checklists", lambda: checklist_blocks(result))
    yield from claims_section(result)
    if failure_counts(result):
        yield Section("failures", "Failures", lambda: provenance.failure_blocks(result))
    yield from provenance.reading_section(result)
    if result.table.samples:
        yield Section(
            "items", f"All items ({len(result.table.items):,})", lambda: [items.browser(result)]
        )
    if len(board.systems) > 1 and result.comparisons:
        yield Section(
            "differences", "System against system", lambda: difference_blocks(result), folded=True
        )
    if result.rated:
        yield Section("people", "Against people", lambda: people_blocks(result), folded=True)
    if result.calibrated:
        make = partial(calibration_blocks, result.calibrated)
        yield Section("calibrated", "On people's scale", make, folded=True)
    if result.drivers:
        yield Section(
            "drivers", "What the scores correlate with", lambda: drivers_blocks(result), folded=True
        )

    def charts() -> tuple[Block, ...]:
        return (*means_charts(result), *distribution_blocks(result), *correlation_blocks(result))

    yield Section("charts", "Charts", charts, folded=True)
    yield from panel.sections(result, folded=True)
    yield Section("method", "Method", lambda: provenance.method_blocks(result), folded=True)


def _made(result: Result, lost: int) -> tuple[str, int, int]:
    """Return what was made, how many, and how many failed: judgments, or if there is no judge the metrics' values."""
    criteria = {column.name for column in result.table.columns if column.kind == "criterion"}
    columns = criteria or {column.name for column in result.table.columns}
    succeeded = sum(score.column in columns for score in result.table.scores)
    if not criteria:
        return "values", succeeded, lost
    failed = sum(n for (*_, column), n in failure_counts(result).items() if column in criteria)
    return "judgments", succeeded, failed


def _short_table(result: Result, board: Leaderboard) -> Table:
    """Rank, system, the overall score with a bar, the criteria, and one metric: scores from elsewhere before ROUGE."""
    columns = [group.columns[0] for group in board.groups if group.columns[0].kind == "criterion"][
        :_MAX_CRITERIA
    ]
    if columns:
        metrics = {
            group.name: group.columns[0]
            for group in board.groups
            if group.columns[0].kind == "metric"
        }
        external = [name for name, column in metrics.items() if column.signature.is_external]
        reference = next(
            (metrics[name] for name in (*external, *REFERENCE_METRICS) if name in metrics), None
        )
        columns += [reference] if reference else []
    else:
        columns = ([column for column in board.columns if column.better] or [*board.columns])[
            :_MAX_METRICS
        ]
    columns = [
        shown for column in columns for shown in (column, board.rates.get(column.name)) if shown
    ]
    passing = {
        board.rates[column.name].name: pass_text(column)
        for column in columns
        if column.name in board.rates
    }
    heads = [
        Head("pass", note=f"at {passing[column.name]}", better=column.better)
        if column.name in passing
        else Head(column_title(column.name), note=scale_text(column), better=column.better)
        for column in columns
    ]
    ranked = [""] if board.ranks and not board.against else []
    rows = []
    for system in board.systems:
        place = board.place(system)
        ranks = [Cell(place, tone="strong" if place in ("1", "1=") else "")] if ranked else []
        cells = [
            _short_cell(result, board, board.rows[system, c.name], c, bar=k == 0)
            for k, c in enumerate(columns)
        ]
        rows.append(
            (*ranks, Cell(one_line(system, _MAX_NAME), link=items.link(system=system)), *cells)
        )
    key = _short_key(board, columns, passing)
    return table(
        (*ranked, Head("", numeric=False), *heads),
        rows,
        key=key,
        name="leaderboard",
        sorts=True,
        short=True,
    )


def _short_cell(result: Result, board: Leaderboard, row: Row, column: Column, *, bar: bool) -> Cell:
    if row.mean is None:
        return Cell("–", tone="muted", title=f"no score in {row.total} texts")
    cell = _cell(result, column, row)
    share = column.share(row.mean)
    ends = [None if end is None else column.share(end) for end in (row.low, row.high)]
    low, high = sorted(end for end in ends if end is not None) if None not in ends else (None, None)
    text = cell.text if share_label(column) or abs(row.mean) >= 100 else number(row.mean, 2)
    score = next((name for name, rate in board.rates.items() if rate == column), column.name)
    shaded = share is not None and column.kind == "criterion" and not bar
    return replace(
        cell,
        text=f"({row.coverage}) {text}" if row.coverage else text,
        title=" ".join(filter(None, (cell.text, cell.note, f"n = {row.n:,}"))),
        shade=max(-1.0, (share - NEUTRAL) / (1 - NEUTRAL))
        if shaded and share is not None
        else None,
        bar=Bar(share, low, high) if bar and share is not None else None,
        link=items.link(system=row.system, column=score)
        if score in {c.name for c in board.of_texts}
        else "",
    )


def _short_key(board: Leaderboard, columns: Sequence[Column], passing: Mapping[str, str]) -> str:
    rows = [board.rows[system, column.name] for system in board.systems for column in columns]
    scales = {scale_text(column) for column in columns} - {"", "0–1"}
    shares = dict.fromkeys(share_label(column) for column in columns if column.name not in passing)
    shares.pop("", None)
    least = {*passing.values()}
    lower = [column_title(column.name) for column in columns if column.better == "lower"]
    best = (
        f"significantly different from {one_line(board.against, 30)}"
        if board.against
        else "significantly best"
    )
    parts = {
        f"* {best}": any(row.mark in _TONES for row in rows),
        f"%: mean probability of {' or '.join(shares)}": shares,
        f"pass: share of texts {f'at {min(least)} or better' if len(least) == 1 else 'that pass'}": least,
        f"criteria {min(scales, default='')}": len(scales) == 1,
        f"lower is better: {', '.join(lower)}": lower,
        "(a/b) a of b texts have a score": any(row.n and row.coverage for row in rows),
    }
    return " · ".join(part for part, needed in parts.items() if needed)


def _all_scores(result: Result, board: Leaderboard) -> Iterator[Block]:
    """The means of every column with their intervals, and how they were computed."""
    heads = [
        Head(group.parts[column.name] or column.name, group.name if len(group.columns) > 1 else "",
             better=column.better, note=scale_text(column))
        for group in board.groups
        for column in group.columns
    ]  # fmt: skip
    ranks = [Head("rank")] if board.ranks else []
    rows = []
    for system in board.systems:
        cells = []
        for column in board.columns:
            row = board.rows[system, column.name]
            cell = _cell(result, column, row)
            cells.append(
                replace(
                    cell,
                    note=f"{cell.note} ({row.coverage})".lstrip() if row.coverage else cell.note,
                )
            )
        if board.ranks:
            rank = board.ranks.get(system)
            interval = f"[{rank.low}, {rank.high}]" if rank and rank.low < rank.high else ""
            cells.insert(
                0,
                Cell(str(rank.rank) if rank else "–", interval, value=rank.rank if rank else None),
            )
        rows.append((Cell(one_line(system, _MAX_NAME)), *cells))
    caption = " ".join(_caption(result, board))
    yield table(("system", *ranks, *heads), rows, caption=caption, name="scores", sorts=True)


def _caption(result: Result, board: Leaderboard) -> Iterator[str]:
    """Say how the means, intervals, ranks and marks were made, one sentence each."""
    of_items = [
        e for (_, name), e in result.estimates.items() if name not in result.table.corpus_columns
    ]
    methods = Counter(e.method for e in of_items if e.low is not None and e.low != e.high)
    yield f"Means over {plural(max((row.total for row in board.rows.values()), default=0), 'item')}."
    if methods:
        usual, *others = [name for name, _ in methods.most_common()]
        yield f"Intervals: {usual}{'; for some columns ' + ', '.join(others) if others else ''}."
    if any(e.low is None and e.n < MIN_INTERVAL_ITEMS for e in of_items):
        yield f"Means over fewer than {MIN_INTERVAL_ITEMS} items have no interval."
    if board.ranks:
        ranges = any(rank.low < rank.high for rank in board.ranks.values())
        note = "; the range is the 95% interval of the rank" if ranges else ""
        yield f"Ranked by {column_title(board.ranked_by)}{note}."
    if any(row.mark in _TONES for row in board.rows.values()):
        which = (
            f"different from {one_line(board.against)}"
            if board.against
            else "better than every other system"
        )
        yield f"* significantly {which} ({TEST_NAME}, p < 0.05 after Holm)."
    if corpus := [
        column.name for column in result.table.columns if column.name in result.table.corpus_columns
    ]:
        yield f"Computed over all texts of a system together: {', '.join(corpus)}."
    if any(row.coverage for row in board.rows.values()):
        yield "(a/b): a of b texts have a score."
    reasons: dict[str, list[str]] = {}
    for name, comparison in compared_columns(result).items():
        if comparison.note:
            reasons.setdefault(comparison.note, []).append(column_title(name))
    for why, titles in reasons.items():
        yield f"{', '.join(titles) if len(titles) <= 4 else f'{len(titles)} columns'}: {why}."


def _next_commands(result: Result, board: Leaderboard) -> Iterator[str]:
    """Suggest commands; RUN stands for the folder of the run."""
    if any(rated.judges for rated in result.rated):
        yield "judge validate RUN"
    first = [system for system in board.systems if board.place(system) == "1="]
    if board.against:
        first = [*closest[:2]] if (closest := closest_pair(result)) else []
    if len(first) > 1 and closest_pair(result):
        yield f"judge plan RUN --pair {quote(f'{first[0]},{first[1]}')}"
    if lowest := worst_texts(result.table, 1):
        yield f"judge report RUN --item {quote(lowest[0].score.item)}"


def count_texts(result: Result, *, generations: bool = True) -> Counter[str]:
    """Count the texts of each system; without `generations`, its items."""
    texts = ((s.system, s.item if generations else s.source_item) for s in result.table.samples)
    return Counter(system for system, _ in dict.fromkeys(texts))


_FIELDS = (
    "system", "column", "kind", "mean", "low", "high", "n", "total", "failed", "signature", "rank", "rank_low",
    "rank_high", "mark",
)  # fmt: skip


def _records(result: Result, board: Leaderboard) -> Iterator[Mapping[str, Any]]:
    """Yield a row per column and system for CSV."""
    ranks = {
        (comparison.column, rank.system): rank
        for comparison in result.comparisons
        for rank in comparison.ranks
    }
    for column in board.columns:
        for system in board.systems:
            place = (
                getattr(ranks.get((column.name, system)), end, None)
                for end in ("rank", "low", "high")
            )
            known = {
                **asdict(board.rows[system, column.name]),
                **{"kind": column.kind, "signature": str(column.signature)},
                **dict(zip(("rank", "rank_low", "rank_high"), place, strict=True)),
            }
            yield {name: known[name] for name in _FIELDS}


def wide_records(result: Result) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the keys, and a row per item and system with all scores, their reasons and the failures.

    A row ends with the data's own columns; a value that is no text or number is JSON.
    """
    judged = [column.name for column in result.table.columns if column.kind == "criterion"]
    words = {
        f"{name}_{field}": None
        for name in judged
        for field in ("reason", "quote")
        if any(getattr(s.provenance, field) for s in result.table.column_scores(name))
    }
    empty: dict[str, Any] = (
        {column.name: None for column in result.table.columns} | words | {"failures": ""}
    )
    values: dict[tuple[str, str], dict[str, Any]] = {
        s.key: {"item": s.item, "system": s.system, "output": s.output, **empty}
        for s in result.table.samples
    }
    for score in result.table.scores:
        if (row := values.get(score.key)) is not None and not score.rival:
            row[score.column] = score.value
            for field in ("reason", "quote"):
                if (name := f"{score.column}_{field}") in words:
                    row[name] = getattr(score.provenance, field)
    for failure in result.table.failures:
        if (row := values.get(failure.key)) is not None:
            row["failures"] += f"{'; ' if row['failures'] else ''}{failure.column}: {failure.error}"
    keys = ("item", "system", "output", *empty)
    own_columns = result.table.own_columns(keys)
    for sample in result.table.samples:
        cells = {heading: sample.extra.get(name) for name, heading in own_columns.items()}
        values[sample.key] |= {
            heading: json_cell(cell) if isinstance(cell, list | tuple | Mapping) else cell
            for heading, cell in cells.items()
        }
    return (*keys, *own_columns.values()), list(values.values())
