"""The report of a run that scores texts: the means, and the Document that all formats write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any

from judge.core.format import number, one_line, plural
from judge.core.records import Column
from judge.core.scale_words import pass_text
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
    calibrated_columns,
    compared_columns,
    in_display_order,
    main_comparison,
    main_order,
    marks_against,
    places,
    shown_pass_rates,
    with_calibration,
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
from judge.report.views.pass_fail import pass_rate_blocks
from judge.report.views.summary import Mark, Row, means_data
from judge.results.result import Result, failure_counts
from judge.results.worst_texts import worst_texts
from judge.stats.analyze import pass_table
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS
from judge.stats.calibration import Calibrated
from judge.stats.ranks import Rank
from judge.stats.system_differences import Comparison, compare

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

    `systems` are ordered by the column `ranked_by`, the best first, then those without a value; if
    nothing was compared, `ranked_by` is empty and they keep the table's order. `rows` has the mean
    of each system in each column. `against` is the system that all are compared with, "" if every
    two are. `of_texts` are the columns with a value per text. `rates` are the columns of pass
    rates, by the names of the columns whose values pass.
    """

    ranked_by: str
    ranks: Mapping[str, Rank]
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

    def place(self, system: str) -> str:
        """Return 1 + the number of significantly better systems, such as `1`, or `1=` if shared."""
        if system not in self.ranks:
            return "–"
        low = self.ranks[system].low
        n_sharing = sum(rank.low == low for rank in self.ranks.values())
        return f"{low}=" if n_sharing > 1 else str(low)


def _in_printed_order(comparison: Comparison | Calibrated) -> dict[str, Rank]:
    """Return the ranks in the order of the printed ranks, then of the means.

    A system with few scores comes last among the systems with the same printed rank.
    """
    partly = comparison.partly_scored

    ranks = sorted(comparison.ranks, key=lambda rank: (rank.system in partly, rank.rank))
    if not comparison.against:
        # Sorting keeps the order of systems with the same printed rank.
        ranks.sort(key=lambda rank: rank.low)
    return {rank.system: rank for rank in ranks}


def build_leaderboard(result: Result) -> Leaderboard:
    """Collect the means of a result that scores texts, with their order and marks."""
    rates = shown_pass_rates(result)
    calibrated = calibrated_columns(result)
    main = main_order(result)
    against = main.against if main else ""
    groups = tuple(
        with_calibration(with_pass_rate(group, rates), calibrated)
        for group in in_display_order(result)
    )
    columns = [column for group in groups for column in group.columns]
    shown = _Shown(rates, calibrated)
    rows = _mean_rows(result, columns, shown, _tested_columns(result, shown, against))
    ranks = _in_printed_order(main) if main and len(main.ranks) > 1 else {}
    with_values = [column for column in columns if column in result.table.columns]
    corpus = result.table.corpus_columns
    return Leaderboard(
        ranked_by=main.column if main else "",
        ranks=ranks,
        systems=tuple(dict.fromkeys([*ranks, *count_texts(result)])),
        groups=groups,
        rows=rows,
        of_texts=tuple(column for column in with_values if column.name not in corpus),
        against=against,
        rates=rates,
        calibrated=calibrated,
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    """The columns that a leaderboard shows beside the means: pass rates, and means on people's scale.

    They are by the names of the columns that they were computed from.
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
    result: Result, shown: _Shown, against: str
) -> dict[str, Comparison | Calibrated]:
    """Return the systems' comparisons by column, including pass rates and calibrated means."""
    tested: dict[str, Comparison | Calibrated] = dict(compared_columns(result))
    for calibrated in result.calibrated:
        if calibrated.column in shown.calibrated:
            tested[shown.calibrated[calibrated.column].name] = calibrated
    if shown.rates and tested:
        seed = result.info.config.seed
        passing = compare(pass_table(result.table), seed=seed, against=against)
        tested |= {comparison.column: comparison for comparison in passing}
    return tested


def _marks(comparison: Comparison | Calibrated | None, column: Column) -> dict[str, Mark]:
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
    shown: _Shown,
    tested: Mapping[str, Comparison | Calibrated],
) -> dict[tuple[str, str], Row]:
    """Return the mean of each system in each column, also of pass rates."""
    totals = count_texts(result, generations=False)
    n_failed: Counter[tuple[str, str]] = Counter()
    for (_, _, system, name), n in failure_counts(result).items():
        n_failed[system, name] += n
    estimates = dict(result.estimates)
    for (system, name), estimate in result.pass_rates.items():
        if name in shown.rates:
            estimates[system, shown.rates[name].name] = estimate
    for calibrated in result.calibrated:
        if calibrated.column in shown.calibrated:
            name = shown.calibrated[calibrated.column].name
            estimates |= {(mean.system, name): mean.estimate for mean in calibrated.means}
    # A pass rate counts scores, and has the failures of these scores.
    scored_by_name = shown.scored_by_name()
    calibrated_names = {column.name for column in shown.calibrated.values()}
    rows = {}
    for column in columns:
        marks = _marks(tested.get(column.name), column)
        scored = scored_by_name.get(column.name, column.name)
        for system, total in totals.items():
            failed = n_failed[system, scored]
            row = Row(system, column.name, None, None, None, 0, total, failed, None, "")
            known = estimates.get((system, column.name))
            if known is not None:
                # A mean on people's scale is over all items. `n` of them are rated.
                n_texts = known.n if column.name in calibrated_names else total
                row = replace(
                    row,
                    total=n_texts,
                    mean=known.value,
                    low=known.low,
                    high=known.high,
                    n=known.n,
                    method=known.method,
                    mark=marks.get(system, ""),
                )
            rows[system, column.name] = row
    return rows


def _cell(result: Result, column: Column, row: Row, **fields: Any) -> Cell:
    """Write a mean with its interval and mark."""
    decimals = places(result, column)
    mean = "–" if row.mean is None else mean_text(column, row.mean, decimals)
    interval = interval_text(column, row.low, row.high, decimals)
    mark = "*" if row.mark in _TONES else ""
    return Cell(mean, interval, tone=_TONES.get(row.mark, ""), mark=mark, value=row.mean, **fields)


def view(result: Result) -> Document:
    """Build the report of a run that scores texts."""
    board = build_leaderboard(result)
    about = provenance.build_provenance(result)
    n_lost = sum(kind.count for kind in about.failures) - result.abstained
    rows = tuple(board.rows.values())
    return Document(
        title=about.title,
        finding=finding(result),
        scope=number_of_items(result),
        about=tuple(_facts(result, n_lost)),
        notices=(*about.banners, *_notices(result)),
        remarks=about.remarks,
        summary=tuple(_summary(result, board, n_lost)),
        sections=tuple(_sections(result, board)),
        footer=tuple(_footer(result, about.failures, n_lost)),
        next=tuple(_next_commands(result, board)),
        data=means_data(result, board.systems, board.columns, rows, about.failures),
        records=tuple(_records(result, board)),
        header=_FIELDS,
        wide_records=lambda: wide_records(result),
        tone="good" if _names_a_winner(result) else "",
        language=result.info.language_name,
    )


def _facts(result: Result, n_lost: int) -> Iterator[str]:
    """Yield the judge, the size of the run and its date."""
    info = result.info
    if info.judges:
        yield f"judge {one_line(info.model, _MAX_NAME)}"
    elif _has_given_scores(result):
        yield "a judge's scores from the data"
    else:
        yield "no judge"
    judged = [group for group in in_display_order(result) if group.columns[0].kind == "criterion"]
    n_criteria = len(judged)
    if result.overall is not None:  # the overall score is shown like a criterion
        n_criteria -= 1
    if n_criteria:
        yield f"{n_criteria} {'criterion' if n_criteria == 1 else 'criteria'}"
    texts = plural(sum(count_texts(result).values()), "text")
    yield from dict.fromkeys([number_of_items(result), texts])
    yield f"{n_lost:,} failed"
    if info.started:
        yield info.started[:10]


def _has_given_scores(result: Result) -> bool:
    """Return whether the data contain a judge's scores."""
    return any(
        column.kind == "criterion" and column.signature.is_external
        for column in result.table.columns
    )


def _notices(result: Result) -> Iterator[str]:
    """Yield what weakens the comparison of the systems."""
    main = main_comparison(result)
    notices = [failure_notice(result), few_items_notice(result, main) if main else ""]
    yield from filter(None, notices)
    sizes = set(count_texts(result, generations=False).values())
    if len(sizes) > 1:
        yield _UNEVEN


def _footer(
    result: Result, failures: Sequence[provenance.FailureKind], n_lost: int
) -> Iterator[str]:
    """Yield the counts and the cost, the agreement of a panel, and the most common failure."""
    output = _count_values(result, n_lost)
    done = "judged" if output.noun == "judgments" else "measured"
    counts = [f"{output.succeeded:,} {done}", f"{n_lost:,} failed"]
    if result.abstained:
        counts.append(f"{result.abstained:,} skipped by metrics")
    cost = result.info.cost
    if cost is not None and cost.usd:
        writing = provenance.generation_cost(result.info)
        generation = f" (generation ${writing:,.2f})" if writing else ""
        counts.append(f"${cost.usd:,.2f}{generation}")
    yield ", ".join(counts)
    yield from panel.summary_lines(result)
    if failures and n_lost:
        yield f"Failed   {provenance.failure_text(failures[0], 120)}"


def _names_a_winner(result: Result) -> bool:
    """Return whether the finding names a best system, or differences from the opponent of all."""
    main = main_order(result)
    if main is None:
        return False
    return 0 < len(main.best) < len(main.ranks) or bool(marks_against(main, ""))


def _summary(result: Result, board: Leaderboard, n_lost: int) -> Iterator[Block]:
    tiles = [*agreement_tiles(result)]
    closest = closest_pair(result)
    if closest:
        first, second, n_needed = closest
        pair = f"{one_line(first, 30)} and {one_line(second, 30)}"
        label = f"items needed to separate {pair} (80% power)"
        tiles.append(Tile(f"≈ {n_needed:,}", label, link="differences"))
    values = _count_values(result, n_lost)
    tiles.append(
        Tile(
            value=f"{values.failed:,} / {values.succeeded + values.failed:,}",
            label=f"{values.noun} failed",
            tone="bad" if n_lost else "",
            link="failures" if n_lost else "",
        )
    )
    yield Tiles(tuple(tiles))
    if board.systems:
        yield _short_table(result, board)
    lowest = worst_texts(result.table, _EXCERPTS)
    if lowest:
        has_high_scores = any(text.column.better == "lower" for text in lowest)
        title = "Worst" if has_high_scores else "Lowest"
        yield Excerpts(title, tuple(excerpt(result, text) for text in lowest))
    yield from checklist_summary(result)
    yield from claims_summary(result)
    rated = main_agreement(result)
    if rated:
        yield agreement_chart(rated)
    else:
        yield from metric_chart(result)


def _on_peoples_scale(result: Result) -> tuple[Block, ...]:
    rates = pass_rate_blocks(result.calibrated_pass_rates)
    return (*calibration_blocks(result.calibrated), *rates)


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
        yield Section(
            "calibrated", "On people's scale", lambda: _on_peoples_scale(result), folded=True
        )
    if result.drivers:
        yield Section(
            "drivers", "What the scores correlate with", lambda: drivers_blocks(result), folded=True
        )

    def charts() -> tuple[Block, ...]:
        return (*means_charts(result), *distribution_blocks(result), *correlation_blocks(result))

    yield Section("charts", "Charts", charts, folded=True)
    yield from panel.sections(result, folded=True)
    yield Section("method", "Method", lambda: provenance.method_blocks(result), folded=True)


@dataclass(frozen=True, slots=True)
class _ValueCounts:
    """How many judgments succeeded and failed, or without a judge how many values of metrics."""

    noun: str
    succeeded: int
    failed: int


def _count_values(result: Result, n_lost: int) -> _ValueCounts:
    criteria = {column.name for column in result.table.columns if column.kind == "criterion"}
    columns = criteria or {column.name for column in result.table.columns}
    n_succeeded = sum(score.column in columns for score in result.table.scores)
    if not criteria:
        return _ValueCounts("values", n_succeeded, n_lost)
    counts = failure_counts(result)
    n_failed = sum(n for (_, _, _, column), n in counts.items() if column in criteria)
    return _ValueCounts("judgments", n_succeeded, n_failed)


def _short_columns(board: Leaderboard) -> list[Column]:
    """Return the overall score, the criteria and one metric, or without criteria some metrics.

    Scores from elsewhere come before ROUGE. A column comes after its means on people's scale, and
    before its pass rate.
    """
    calibrated = {column.name for column in board.calibrated.values()}
    first_columns = [
        next(column for column in group.columns if column.name not in calibrated)
        for group in board.groups
    ]
    judged = [column for column in first_columns if column.kind == "criterion"]
    columns = judged[:_MAX_CRITERIA]
    if columns:
        metrics = {
            group.name: group.columns[0]
            for group in board.groups
            if group.columns[0].kind == "metric"
        }
        external = [name for name, column in metrics.items() if column.signature.is_external]
        preferred = [name for name in (*external, *REFERENCE_METRICS) if name in metrics]
        if preferred:
            columns.append(metrics[preferred[0]])
    else:
        directed = [column for column in board.columns if column.better]
        columns = (directed or [*board.columns])[:_MAX_METRICS]
    shown = []
    for column in columns:
        if column.name in board.calibrated:
            shown.append(board.calibrated[column.name])
        shown.append(column)
        if column.name in board.rates:
            shown.append(board.rates[column.name])
    return shown


def _short_table(result: Result, board: Leaderboard) -> Table:
    """Return a row per system: its rank, the overall score with a bar, criteria, one metric."""
    columns = _short_columns(board)
    limit_by_rate = {
        board.rates[column.name].name: pass_text(column)
        for column in columns
        if column.name in board.rates
    }
    title_by_name = {}
    for name, column in board.calibrated.items():
        title_by_name[column.name] = column_title(name)
        title_by_name[name] = "judge"
    heads = []
    for column in columns:
        if column.name in limit_by_rate:
            note = f"at {limit_by_rate[column.name]}"
            heads.append(Head("pass", note=note, better=column.better))
        else:
            title = title_by_name.get(column.name) or column_title(column.name)
            heads.append(Head(title, note=scale_text(column), better=column.better))
    rank_heads = [""] if board.ranks and not board.against else []
    rows = []
    for system in board.systems:
        cells = [
            _short_cell(result, board, board.rows[system, column.name], column, bar=index == 0)
            for index, column in enumerate(columns)
        ]
        cells.insert(0, Cell(one_line(system, _MAX_NAME), link=items.link(system=system)))
        if rank_heads:
            rank = board.place(system)
            tone: Tone = "strong" if rank in ("1", "1=") else ""
            cells.insert(0, Cell(rank, tone=tone))
        rows.append(cells)
    return table(
        (*rank_heads, Head("", numeric=False), *heads),
        rows,
        key=_short_key(board, columns, limit_by_rate),
        caption=f"Mean scores over {number_of_items(result)}.",
        name="leaderboard",
        sorts=True,
        short=True,
    )


def _short_cell(result: Result, board: Leaderboard, row: Row, column: Column, *, bar: bool) -> Cell:
    """Return a mean with a link to its texts: with a bar, or shaded by its share of the scale."""
    if row.mean is None:
        return Cell("–", tone="muted", title=f"no score in {row.total} texts")
    cell = _cell(result, column, row)
    is_long = bool(share_label(column)) or abs(row.mean) >= 100
    text = cell.text if is_long else number(row.mean, 2)
    share = column.share(row.mean)
    shade = None
    drawn = None
    if share is not None and bar:
        drawn = _bar(column, row, share)
    elif share is not None and column.kind == "criterion":
        shade = max(-1.0, (share - NEUTRAL) / (1 - NEUTRAL))
    # A pass rate and a mean on people's scale link to the scores that they were computed from.
    scored_by_name = _Shown(board.rates, board.calibrated).scored_by_name()
    scored = scored_by_name.get(column.name, column.name)
    has_texts = scored in {each.name for each in board.of_texts}
    return replace(
        cell,
        text=f"({row.coverage}) {text}" if row.coverage else text,
        title=" ".join(filter(None, (cell.text, cell.note, f"n = {row.n:,}"))),
        shade=shade,
        bar=drawn,
        link=items.link(system=row.system, column=scored) if has_texts else "",
    )


def _bar(column: Column, row: Row, share: float) -> Bar:
    """Return the bar of a mean with its interval, if it has one."""
    if row.low is None or row.high is None:
        return Bar(share)
    low = column.share(row.low)
    high = column.share(row.high)
    if low is None or high is None:
        return Bar(share)
    # If lower is better, the ends change places.
    return Bar(share, min(low, high), max(low, high))


def _short_key(
    board: Leaderboard, columns: Sequence[Column], limit_by_rate: Mapping[str, str]
) -> str:
    """Explain the marks that the short table has."""
    rows = [board.rows[system, column.name] for system in board.systems for column in columns]
    parts = []
    if any(row.mark in _TONES for row in rows):
        best = "significantly best"
        if board.against:
            best = f"significantly different from {one_line(board.against, 30)}"
        parts.append(f"* {best}")
    shown_means = [column for column in columns if column.name not in limit_by_rate]
    for is_external, words in ((False, "mean probability of"), (True, "share of")):
        labels = [
            share_label(column)
            for column in shown_means
            if column.signature.is_external is is_external
        ]
        labels = [label for label in dict.fromkeys(labels) if label]
        if labels:
            parts.append(f"%: {words} {' or '.join(labels)}")
    limits = set(limit_by_rate.values())
    if len(limits) == 1:
        parts.append(f"pass: share of texts at {limits.pop()} or better")
    elif limits:
        parts.append("pass: share of texts that pass")
    if board.calibrated:
        parts.append("means on people's scale; judge: its own means")
    scales = {scale_text(column) for column in columns} - {"", "0–1"}
    if len(scales) == 1:
        parts.append(f"criteria {scales.pop()}")
    lower = [column_title(column.name) for column in columns if column.better == "lower"]
    if lower:
        parts.append(f"lower is better: {', '.join(lower)}")
    if any(row.n and row.coverage for row in rows):
        parts.append("(a/b) a of b texts have a score")
    return " · ".join(parts)


def _all_scores(result: Result, board: Leaderboard) -> Iterator[Block]:
    """Yield the means of every column with their intervals, and how they were computed."""
    heads = []
    for group in board.groups:
        group_name = group.name if len(group.columns) > 1 else ""
        for column in group.columns:
            title = group.parts[column.name] or column.name
            note = scale_text(column)
            heads.append(Head(title, group_name, better=column.better, note=note))
    rank_heads = [Head("rank")] if board.ranks else []
    rows = []
    for system in board.systems:
        cells = [Cell(one_line(system, _MAX_NAME))]
        if board.ranks:
            cells.append(_rank_cell(board.ranks.get(system)))
        for column in board.columns:
            row = board.rows[system, column.name]
            cell = _cell(result, column, row)
            if row.coverage:
                cell = replace(cell, note=f"{cell.note} ({row.coverage})".lstrip())
            cells.append(cell)
        rows.append(cells)
    caption = " ".join(_caption(result, board))
    heads = [*rank_heads, *heads]
    yield table(("system", *heads), rows, caption=caption, name="scores", sorts=True)


def _rank_cell(rank: Rank | None) -> Cell:
    if rank is None:
        return Cell("–")
    interval = f"[{rank.low}, {rank.high}]" if rank.low < rank.high else ""
    return Cell(str(rank.rank), interval, value=rank.rank)


def _caption(result: Result, board: Leaderboard) -> Iterator[str]:
    """Say how the means, intervals, ranks and marks were made, one sentence each."""
    corpus = result.table.corpus_columns
    n_items = max((row.total for row in board.rows.values()), default=0)
    yield f"Means over {plural(n_items, 'item')}."
    yield from _interval_sentences(result)
    if board.ranks:
        has_ranges = any(rank.low < rank.high for rank in board.ranks.values())
        note = "; the range is the 95% interval of the rank" if has_ranges else ""
        scale = " on people's scale" if board.ranked_by in board.calibrated else ""
        yield f"Ranked by {column_title(board.ranked_by)}{scale}{note}."
    if any(row.mark in _TONES for row in board.rows.values()):
        which = "better than every other system"
        if board.against:
            which = f"different from {one_line(board.against)}"
        test = f"{TEST_NAME}; on people's scale a t test" if board.calibrated else TEST_NAME
        yield f"* significantly {which} ({test}, p < 0.05 after Holm)."
    whole = [column.name for column in result.table.columns if column.name in corpus]
    if whole:
        yield f"Computed over all texts of a system together: {', '.join(whole)}."
    if any(row.coverage for row in board.rows.values()):
        yield "(a/b): a of b texts have a score."
    titles_by_note: dict[str, list[str]] = {}
    for name, comparison in compared_columns(result).items():
        if comparison.note:
            titles_by_note.setdefault(comparison.note, []).append(column_title(name))
    for note, titles in titles_by_note.items():
        subject = ", ".join(titles) if len(titles) <= 4 else f"{len(titles)} columns"
        yield f"{subject}: {note}."


def _interval_sentences(result: Result) -> Iterator[str]:
    """Name the methods of the means' intervals, and say why some have none."""
    corpus = result.table.corpus_columns
    estimates = [each for (_, name), each in result.estimates.items() if name not in corpus]
    # An interval has equal ends if the values have no spread. Its method says so.
    with_width = [each for each in estimates if each.low is not None and each.low != each.high]
    methods = Counter(each.method for each in with_width)
    if methods:
        usual, *others = [name for name, _ in methods.most_common()]
        further = f"; for some columns {', '.join(others)}" if others else ""
        yield f"Intervals: {usual}{further}."
    if any(each.low is None and each.n < MIN_INTERVAL_ITEMS for each in estimates):
        yield f"Means over fewer than {MIN_INTERVAL_ITEMS} items have no interval."


def _next_commands(result: Result, board: Leaderboard) -> Iterator[str]:
    """Suggest commands; RUN stands for the folder of the run."""
    if any(rated.judges for rated in result.rated):
        yield "judge validate RUN"
    closest = closest_pair(result)
    leaders = [system for system in board.systems if board.place(system) == "1="]
    if board.against:
        leaders = list(closest[:2]) if closest else []
    if len(leaders) > 1 and closest:
        yield f"judge plan RUN --pair {quote(f'{leaders[0]},{leaders[1]}')}"
    if worst_texts(result.table, 1):
        yield "judge report RUN --worst 10"


def count_texts(result: Result, *, generations: bool = True) -> Counter[str]:
    """Count the texts of each system; without `generations`, its items."""
    texts = {
        (sample.system, sample.item if generations else sample.source_item): None
        for sample in result.table.samples
    }
    return Counter(system for system, _ in texts)


# fmt: off
_FIELDS = (
    "system", "column", "kind", "mean", "low", "high", "n", "total", "failed", "signature", "rank",
    "rank_low", "rank_high", "mark",
)
# fmt: on


def _records(result: Result, board: Leaderboard) -> Iterator[Mapping[str, Any]]:
    """Yield a row per column and system for CSV."""
    ranks = {
        (comparison.column, rank.system): rank
        for comparison in result.comparisons
        for rank in comparison.ranks
    }
    for column in board.columns:
        for system in board.systems:
            rank = ranks.get((column.name, system))
            known = asdict(board.rows[system, column.name])
            known["kind"] = column.kind
            known["signature"] = str(column.signature)
            known["rank"] = rank.rank if rank else None
            known["rank_low"] = rank.low if rank else None
            known["rank_high"] = rank.high if rank else None
            yield {name: known[name] for name in _FIELDS}


_WORDS = ("reason", "quote")
"""The texts of a score that a wide row has."""


def wide_records(result: Result) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the keys, and a row per item and system with all scores, their reasons and failures.

    A row ends with the data's own columns; a value that is no text or number is JSON.
    """
    stored = result.table
    word_keys = _word_keys(result)
    # Every row has every key, in this order.
    empty: dict[str, Any] = dict.fromkeys([column.name for column in stored.columns])
    empty |= dict.fromkeys(word_keys)
    empty["failures"] = ""
    values: dict[tuple[str, str], dict[str, Any]] = {}
    for sample in stored.samples:
        named = {"item": sample.item, "system": sample.system, "output": sample.output}
        values[sample.key] = {**named, **empty}
    for score in stored.scores:
        row = values.get(score.key)
        if row is None or score.opponent:
            continue
        row[score.column] = score.value
        for word in _WORDS:
            key = f"{score.column}_{word}"
            if key in word_keys:
                row[key] = getattr(score.provenance, word)
    for failure in stored.failures:
        row = values.get(failure.key)
        if row is not None:
            separator = "; " if row["failures"] else ""
            row["failures"] += f"{separator}{failure.column}: {failure.error}"
    keys = ("item", "system", "output", *empty)
    # A column of the data that has the name of another key gets a new heading.
    own_columns = stored.own_columns(keys)
    for sample in stored.samples:
        for name, heading in own_columns.items():
            cell = sample.extra.get(name)
            is_nested = isinstance(cell, list | tuple | Mapping)
            values[sample.key][heading] = json_cell(cell) if is_nested else cell
    return (*keys, *own_columns.values()), list(values.values())


def _word_keys(result: Result) -> dict[str, None]:
    """Return the keys of reasons and quotations, of the criteria that have some."""
    keys: dict[str, None] = {}
    for column in result.table.columns:
        if column.kind != "criterion":
            continue
        scores = result.table.column_scores(column.name)
        for word in _WORDS:
            if any(getattr(score.provenance, word) for score in scores):
                keys[f"{column.name}_{word}"] = None
    return keys
