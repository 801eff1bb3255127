"""The report of a run that scores texts: the means, and the Document that all formats write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from shlex import quote
from typing import Any

from judge.core.format import (
    UNNAMED_SYSTEM,
    first_names,
    one_line,
    plural,
    rough_count,
)
from judge.report.document import (
    Block,
    Cell,
    Document,
    Excerpts,
    Section,
    Tile,
    Tiles,
    Tone,
    table,
)
from judge.report.document import Column as Head
from judge.report.format import (
    column_title,
    scale_text,
)
from judge.report.views import items, panel, provenance
from judge.report.views.board import (
    Leaderboard,
    build_leaderboard,
    count_texts,
    items_of_means,
    mean_cell,
)
from judge.report.views.calibration import calibration_blocks
from judge.report.views.charts import distribution_blocks, means_charts, metric_chart
from judge.report.views.checklists import checklist_blocks, checklist_summary
from judge.report.views.claims import (
    claims_sections,
    claims_summary,
    has_unsupported_claims,
)
from judge.report.views.columns import (
    TEST_NAME,
    compared_columns,
    in_display_order,
    main_comparison,
    main_order,
    marks_against,
)
from judge.report.views.comparison_finding import closest_pair, criteria_contradict
from judge.report.views.difference_notices import few_items_notice
from judge.report.views.drivers import drivers_blocks
from judge.report.views.failure_notice import failed_criteria_notice, failure_notice
from judge.report.views.finding import finding, number_of_items, scope_of
from judge.report.views.human_agreement import (
    agreement_chart,
    agreement_tiles,
    main_agreement,
    people_blocks,
)
from judge.report.views.lowest import excerpt
from judge.report.views.matrices import correlation_blocks, difference_blocks
from judge.report.views.pass_fail import pass_rate_blocks
from judge.report.views.short_table import MAX_NAME, short_table
from judge.report.views.slicing_column import slicing_column
from judge.report.views.summary import means_data
from judge.results.failures import WORST
from judge.results.result import Result, failure_counts
from judge.results.wide_rows import wide_rows
from judge.results.worst_texts import worst_texts
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS
from judge.stats.panels import judged_columns
from judge.stats.ranks import Rank
from judge.stats.system_differences import Comparison

_EXCERPTS = 5  # of texts with the lowest scores
_MAX_WORST = 10  # texts that a suggested command lists
_WORST_SHARE = 0.25  # of the texts; beyond it, even a run with few texts has good ones
_UNEVEN = (
    "Not every system has a text for every item ({counts}): "
    "means over different items do not compare well."
)


def view(result: Result) -> Document:
    """Build the report of a run that scores texts."""
    board = build_leaderboard(result)
    sentences = finding(result)
    about = provenance.build_provenance(result)
    n_failures = sum(kind.count for kind in about.failures)
    n_lost = n_failures - result.abstained
    rows = tuple(board.rows.values())
    notices = (*about.banners, *_notices(result))
    failures = about.failures
    data = means_data(
        result, board.systems, board.columns, rows, failures, notices=notices
    )
    return Document(
        title=about.title,
        finding=sentences,
        scope=scope_of(result, sentences),
        about=tuple(_facts(result, n_lost)),
        notices=notices,
        remarks=about.remarks,
        summary=tuple(_summary(result, board, n_lost)),
        sections=tuple(_sections(result, board)),
        footer=tuple(_footer(result, failures, n_lost)),
        next=tuple(_next_commands(result, board)),
        data=data,
        records=tuple(_records(result, board)),
        header=_FIELDS,
        wide_records=lambda: wide_rows(result.table),
        tone=_tone(result),
        language=result.info.language_name,
    )


def _facts(result: Result, n_lost: int) -> Iterator[str]:
    """Yield the judge, the size of the run and its date."""
    info = result.info
    if info.judges:
        yield f"judge {one_line(info.model, MAX_NAME)}"
    elif _has_given_scores(result):
        yield "a judge's scores from the data"
    else:
        yield "no judge"
    kinds = [group.columns[0].kind for group in in_display_order(result)]
    n_criteria = kinds.count("criterion")
    if result.overall is not None:  # the overall score is shown like a criterion
        n_criteria -= 1
    if n_criteria:
        noun = "criterion" if n_criteria == 1 else "criteria"
        yield f"{n_criteria} {noun}"
    n_texts = sum(count_texts(result).values())
    texts = plural(n_texts, "text")
    # Without repeats, so that a run whose texts are items states their number once.
    yield from dict.fromkeys([number_of_items(result), texts])
    yield from _failed_texts(_count_values(result, n_lost))
    if info.started:
        yield info.started[:10]


def _has_given_scores(result: Result) -> bool:
    """Return whether the data contain a judge's scores."""
    criteria = [column for column in result.table.columns if column.kind == "criterion"]
    return any(column.signature.is_external for column in criteria)


def _notices(result: Result) -> Iterator[str]:
    """Yield what weakens the comparison of the systems."""
    notices = [failed_criteria_notice(result), failure_notice(result)]
    main = main_comparison(result)
    if main:
        notices.append(few_items_notice(result, main))
    yield from filter(None, notices)
    n_items = len({sample.source_item for sample in result.table.samples})
    items_by_system = count_texts(result, generations=False)
    counts = [
        f"{one_line(system, 30)} for {count:,} of {n_items:,}"
        for system, count in items_by_system.items()
        if count < n_items
    ]
    if counts:
        yield _UNEVEN.format(counts=first_names(counts, 3))


def _footer(
    result: Result,
    failures: Sequence[provenance.FailureKind],
    n_lost: int,
) -> Iterator[str]:
    """Yield the counts and the cost, the agreement of a panel, and the most common failure."""
    output = _count_values(result, n_lost)
    done = "judged" if output.noun == "judgments" else "measured"
    succeeded = f"{output.succeeded:,} {done}"
    counts = [succeeded, *_failed_texts(output)]
    if result.abstained:
        counts.append(f"{result.abstained:,} skipped by metrics")
    cost = result.info.cost
    if cost is not None and cost.usd:
        cost_text = f"${cost.usd:,.2f}"
        cost_of_generation = provenance.generation_cost(result.info)
        if cost_of_generation:
            cost_text += f" (generation ${cost_of_generation:,.2f})"
        counts.append(cost_text)
    yield ", ".join(counts)
    yield from panel.summary_lines(result)
    if failures and n_lost:
        yield provenance.failure_line(failures)


def _tone(result: Result) -> Tone:
    """Return the tone of the finding.

    It is good if the finding names a best system, or differences from the opponent of all, and a
    warning if a criterion contradicts it.
    """
    main = main_order(result)
    if main is None:
        return ""
    # If all systems share the top, the finding names no winner.
    some_are_best = 0 < len(main.best) < len(main.ranks)
    if not some_are_best and not marks_against(main, ""):
        return ""
    if isinstance(main, Comparison) and criteria_contradict(result, main):
        return "warning"
    return "good"


def _summary(result: Result, board: Leaderboard, n_lost: int) -> Iterator[Block]:
    tiles = [*agreement_tiles(result)]
    closest = closest_pair(result)
    if closest:
        first_system, second_system, n_needed = closest
        first_name = one_line(first_system, 30)
        second_name = one_line(second_system, 30)
        label = f"items needed to separate {first_name} and {second_name} (80% power)"
        rounded = rough_count(n_needed).removeprefix("about ")
        tile = Tile(f"≈ {rounded}", label, link="differences")
        tiles.append(tile)
    values = _count_values(result, n_lost)
    n_values = values.succeeded + values.failed
    failures = Tile(f"{values.failed:,} / {n_values:,}", f"{values.noun} failed")
    if values.failed:
        failures = replace(failures, tone="bad")
    if n_lost:
        failures = replace(failures, link="failures")
    tiles.append(failures)
    yield Tiles(tuple(tiles))
    if board.systems:
        yield short_table(result, board)
    # A text with the best value of its scale is not worth a look.
    lowest = [text for text in worst_texts(result.table, _EXCERPTS) if text.share < 1]
    if lowest:
        has_high_scores = any(text.column.better == "lower" for text in lowest)
        title = "Worst" if has_high_scores else "Lowest"
        excerpts = [excerpt(result, text) for text in lowest]
        yield Excerpts(title, tuple(excerpts))
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
    yield Section(
        "scores", "All scores", lambda: _all_scores(result, board), folded=True
    )
    if result.checklists:
        yield Section("checklists", "Checklists", lambda: checklist_blocks(result))
    yield from claims_sections(result)
    if failure_counts(result):
        yield Section("failures", "Failures", lambda: provenance.failure_blocks(result))
    yield from provenance.reading_section(result)
    if result.table.samples:
        title = f"All items ({len(result.table.items):,})"
        yield Section("items", title, lambda: [items.browser(result)])
    if len(board.systems) > 1 and result.comparisons:
        yield Section(
            "differences",
            "System against system",
            lambda: difference_blocks(result),
            folded=True,
        )
    if result.rated:
        yield Section(
            "people", "Against people", lambda: people_blocks(result), folded=True
        )
    if result.calibrated:
        yield Section(
            "calibrated",
            "On people's scale",
            lambda: _on_peoples_scale(result),
            folded=True,
        )
    if result.drivers:
        yield Section(
            "drivers",
            "What the scores correlate with",
            lambda: drivers_blocks(result),
            folded=True,
        )
    yield Section("charts", "Charts", lambda: _chart_blocks(result), folded=True)
    yield from panel.sections(result, folded=True)
    yield Section(
        "method", "Method", lambda: provenance.method_blocks(result), folded=True
    )


def _chart_blocks(result: Result) -> Iterator[Block]:
    yield from means_charts(result)
    yield from distribution_blocks(result)
    yield from correlation_blocks(result)


@dataclass(frozen=True, slots=True)
class _ValueCounts:
    """How many judgments succeeded and failed, or without a judge how many values of metrics.

    Beside judgments, `metrics_failed` counts the values of metrics that failed.
    """

    noun: str
    succeeded: int
    failed: int
    metrics_failed: int = 0


def _count_values(result: Result, n_lost: int) -> _ValueCounts:
    """Count judgments or values; a failed judgment that counts as the worst score has failed."""
    criteria = {
        column.name for column in result.table.columns if column.kind == "criterion"
    }
    criteria -= judged_columns(result.table.columns).keys()
    if not criteria:
        return _ValueCounts("values", len(result.table.scores), n_lost)
    methods = [
        row.provenance.method for row in result.table.scores if row.column in criteria
    ]
    n_worst = methods.count(WORST)
    n_without_score = 0
    for (_, _, _, column), count in failure_counts(result).items():
        if column in criteria:
            n_without_score += count
    return _ValueCounts(
        "judgments",
        succeeded=len(methods) - n_worst,
        failed=n_without_score + n_worst,
        metrics_failed=n_lost - n_without_score,
    )


def _failed_texts(counts: _ValueCounts) -> Iterator[str]:
    """Yield how many judgments failed, and how many values of metrics if any did."""
    yield f"{counts.failed:,} failed"
    if counts.metrics_failed:
        values = plural(counts.metrics_failed, "value")
        yield f"{values} of metrics failed"


def _all_scores(result: Result, board: Leaderboard) -> Iterator[Block]:
    """Yield the means of every column with their intervals, and how they were computed."""
    heads = []
    abouts = _about_columns(result, board)
    for group in board.groups:
        group_name = group.name if len(group.columns) > 1 else ""
        for column in group.columns:
            title = group.parts[column.name] or column_title(column.name)
            note = scale_text(column)
            about = tuple(abouts[column.name])
            head = Head(
                title,
                group_name,
                better=column.better,
                note=note,
                about=about,
            )
            heads.append(head)
    if board.ranks:
        rank_head = Head("rank", about=(_about_ranks(board),))
        heads.insert(0, rank_head)
    naming_head = "" if board.systems == (UNNAMED_SYSTEM,) else "system"
    rows = [_score_row(result, board, system) for system in board.systems]
    sentences = [
        f"Means over {items_of_means(result)}.",
        *_interval_sentences(result),
    ]
    caption = " ".join(sentences)
    yield table(
        [naming_head, *heads],
        rows,
        star=_star_text(board),
        caption=caption,
        name="scores",
        sorts=True,
    )


def _star_text(board: Leaderboard) -> str:
    """Say what the star of a mean means, and which test it is based on."""
    which = "better than every other system"
    if board.against:
        which = f"different from {one_line(board.against)}"
    test = TEST_NAME
    if board.calibrated:
        test = f"{TEST_NAME}; on people's scale a t test"
    return f"* significantly {which} ({test}, p < 0.05 after Holm)."


def _score_row(result: Result, board: Leaderboard, system: str) -> list[Cell]:
    """Return a system's name, its rank if there are ranks, and its mean in every column."""
    row_name = one_line(system, MAX_NAME)
    if board.systems == (UNNAMED_SYSTEM,):
        row_name = "mean"
    cells = [Cell(row_name)]
    if board.ranks:
        rank = board.ranks.get(system)
        cells.append(_rank_cell(rank))
    for column in board.columns:
        row = board.rows[system, column.name]
        cells.append(mean_cell(result, column, row))
    return cells


def _rank_cell(rank: Rank | None) -> Cell:
    if rank is None:
        return Cell("–")
    interval = ""
    if rank.low < rank.high:
        interval = f"[{rank.low}, {rank.high}]"
    return Cell(str(rank.rank), interval, value=rank.rank)


def _about_ranks(board: Leaderboard) -> str:
    """Say by which column the systems are ranked, and what a range is if one is shown."""
    sentence = f"Ranked by {column_title(board.ranked_by)}"
    if board.ranked_by in board.calibrated:
        sentence += " on people's scale"
    if any(rank.low < rank.high for rank in board.ranks.values()):
        sentence += "; the range is the 95% interval of the rank"
    return f"{sentence}."


def _about_columns(result: Result, board: Leaderboard) -> dict[str, list[str]]:
    """Say of each column what its counts mean, and how its values were computed."""
    corpus = result.table.corpus_columns
    corpus_names = [
        column.name for column in result.table.columns if column.name in corpus
    ]
    of_all_texts = ", ".join(corpus_names)
    # A single system needs no note that there is nothing to compare it with.
    notes = _comparison_notes(result) if len(board.systems) > 1 else {}
    abouts: dict[str, list[str]] = {}
    for column in board.columns:
        rows = [board.rows[system, column.name] for system in board.systems]
        about = abouts.setdefault(column.name, [])
        if column.name in corpus:
            sentence = f"Computed over all texts of a system together: {of_all_texts}."
            about.append(sentence)
        if any(row.coverage for row in rows):
            about.append("(a/b): a of b texts have a score.")
        if column.name in notes:
            about.append(notes[column.name])
    return abouts


def _comparison_notes(result: Result) -> dict[str, str]:
    """Return the note on the tests of a column, which begins with the columns that share it."""
    columns_by_note: dict[str, list[str]] = {}
    for column_name, comparison in compared_columns(result).items():
        if comparison.note:
            columns_by_note.setdefault(comparison.note, []).append(column_name)
    notes: dict[str, str] = {}
    for note, column_names in columns_by_note.items():
        # Metrics have dozens of columns, which share their notes.
        subject = f"{len(column_names)} columns"
        if len(column_names) <= 4:
            subject = ", ".join(map(column_title, column_names))
        notes |= dict.fromkeys(column_names, f"{subject}: {note}.")
    return notes


def _interval_sentences(result: Result) -> Iterator[str]:
    """Name the methods of the means' intervals, and say why some have none."""
    corpus = result.table.corpus_columns
    estimates = []
    for (_, column_name), estimate in result.estimates.items():
        if column_name not in corpus:
            estimates.append(estimate)
    without_interval = [estimate for estimate in estimates if estimate.low is None]
    methods: Counter[str] = Counter()
    for estimate in estimates:
        # An interval has equal ends if the values have no spread. Its method says so.
        if estimate.low is not None and estimate.low != estimate.high:
            methods[estimate.method] += 1
    if methods:
        usual, *others = [method for method, _ in methods.most_common()]
        sentence = f"Intervals: {usual}"
        if others:
            sentence += "; for some columns " + ", ".join(others)
        yield f"{sentence}."
    if any(estimate.n < MIN_INTERVAL_ITEMS for estimate in without_interval):
        yield f"Means over fewer than {MIN_INTERVAL_ITEMS} items have no interval."


def _next_commands(result: Result, board: Leaderboard) -> Iterator[str]:
    """Suggest commands; RUN stands for the folder of the run."""
    if any(rated.judges for rated in result.rated):
        yield "judge validate RUN"
    closest = closest_pair(result)
    main = main_order(result)
    leaders = list(main.best) if main else []
    if board.against:
        leaders = list(closest[:2]) if closest else []
    # The plan says how many items would decide between systems that do not differ significantly.
    if len(leaders) > 1 and closest:
        pair = quote(f"{leaders[0]},{leaders[1]}")
        yield f"judge plan RUN --pair {pair}"
    scored_texts = worst_texts(result.table, len(result.table.samples))
    if scored_texts:
        n_worst = min(_MAX_WORST, ceil(_WORST_SHARE * len(scored_texts)))
        yield f"judge report RUN --worst {n_worst}"
    if has_unsupported_claims(result):
        yield "judge report RUN --claims"
    by = slicing_column(result.table)
    if by:
        yield f"judge report RUN --by {quote(by)}"


# fmt: off
_FIELDS = (
    "system", "column", "kind", "mean", "low", "high", "n", "total", "failed", "signature", "rank",
    "rank_low", "rank_high", "mark",
)
# fmt: on


def _records(result: Result, board: Leaderboard) -> Iterator[Mapping[str, Any]]:
    """Yield a row per column and system for CSV."""
    ranks: dict[tuple[str, str], Rank] = {}
    for comparison in result.comparisons:
        for system_rank in comparison.ranks:
            ranks[comparison.column, system_rank.system] = system_rank
    for column in board.columns:
        for system in board.systems:
            rank = ranks.get((column.name, system))
            record = asdict(board.rows[system, column.name])
            record["kind"] = column.kind
            record["signature"] = str(column.signature)
            record["rank"] = rank.rank if rank else None
            record["rank_low"] = rank.low if rank else None
            record["rank_high"] = rank.high if rank else None
            yield {field_name: record[field_name] for field_name in _FIELDS}
