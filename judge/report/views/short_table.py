"""The table of means on a report's first screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge.core.format import UNNAMED_SYSTEM, number, one_line, plural
from judge.core.records import Column
from judge.core.scale_words import pass_text
from judge.report.document import (
    Bar,
    Cell,
    Table,
    Tone,
    table,
)
from judge.report.document import Column as Head
from judge.report.format import (
    column_title,
    interval_text,
    scale_text,
    share_label,
)
from judge.report.views import items
from judge.report.views.board import Leaderboard, Shown, items_of_means, mean_cell
from judge.report.views.comparison_finding import REFERENCE_METRICS
from judge.report.views.lowest import NEUTRAL
from judge.report.views.summary import Row
from judge.results.result import Result
from judge.stats.derived_columns import OVERALL

MAX_NAME = 80  # characters of a system's name
_MAX_CRITERIA = 16  # columns of the short table
_MAX_METRICS = 5  # columns of the short table if no criterion was judged


def _short_columns(board: Leaderboard) -> list[Column]:
    """Return the overall score, the criteria and one metric, or without criteria some metrics.

    A column comes after its means on people's scale, and before its pass rate.
    """
    calibrated = {column.name for column in board.calibrated.values()}
    first_columns = []
    for group in board.groups:
        uncalibrated = [
            column for column in group.columns if column.name not in calibrated
        ]
        first_columns.append(uncalibrated[0])
    judged = [column for column in first_columns if column.kind == "criterion"]
    columns = judged[:_MAX_CRITERIA]
    if columns:
        columns += _preferred_metric(board)
    else:
        directed = [column for column in board.columns if column.better]
        candidates = directed or board.columns
        columns = list(candidates[:_MAX_METRICS])
    shown_columns: list[Column] = []
    for column in columns:
        if column.name in board.calibrated:
            shown_columns.append(board.calibrated[column.name])
        shown_columns.append(column)
        if column.name in board.rates:
            shown_columns.append(board.rates[column.name])
    return shown_columns


def _preferred_metric(board: Leaderboard) -> list[Column]:
    """Return the metric to show beside criteria, if any: scores from elsewhere come first."""
    metrics: dict[str, Column] = {}
    for group in board.groups:
        first_column = group.columns[0]
        if first_column.kind == "metric":
            metrics[group.name] = first_column
    external = [
        name for name, column in metrics.items() if column.signature.is_external
    ]
    for metric_name in (*external, *REFERENCE_METRICS):
        if metric_name in metrics:
            return [metrics[metric_name]]
    return []


def _omitted(board: Leaderboard, shown_columns: Sequence[Column]) -> str:
    """Count what the short table leaves out: `3 more metrics`; "" for nothing."""
    in_table = set(shown_columns)
    omitted = [group for group in board.groups if in_table.isdisjoint(group.columns)]
    if not omitted:
        return ""
    are_metrics = all(group.columns[0].kind == "metric" for group in omitted)
    noun = "metric" if are_metrics else "column"
    return plural(len(omitted), f"more {noun}")


def short_table(result: Result, board: Leaderboard) -> Table:
    """Return a row per system: its rank, the overall score with a bar, criteria, one metric.

    Of one system, return a row per column.
    """
    columns = _short_columns(board)
    # The values that pass, such as `≥ 4`, by the name of the pass rate's column.
    limit_by_rate = {}
    for column in columns:
        if column.name in board.rates:
            rate = board.rates[column.name]
            limit_by_rate[rate.name] = pass_text(column)
    heads = _heads(result, board, columns, limit_by_rate)
    if len(board.systems) == 1:
        whole_table = _table_of_one_system(result, board, columns, heads)
    else:
        whole_table = _table_of_systems(result, board, columns, heads)
    return replace(whole_table, omitted=_omitted(board, columns))


def _table_of_systems(
    result: Result,
    board: Leaderboard,
    columns: Sequence[Column],
    heads: Sequence[Head],
) -> Table:
    """Return a row per system; the first column of means has bars."""
    all_heads = [Head("", numeric=False), *heads]
    with_ranks = bool(board.ranks) and not board.against
    if with_ranks:
        all_heads.insert(0, Head("", name="rank"))
    star = "* significantly best"
    if board.against:
        star = f"* significantly different from {one_line(board.against, 30)}"
    rows = []
    for system in board.systems:
        link = items.link(system=system)
        cells = [Cell(one_line(system, MAX_NAME), link=link)]
        for index, column in enumerate(columns):
            row = board.rows[system, column.name]
            cells.append(_short_cell(result, board, row, column, bar=index == 0))
        if with_ranks:
            rank = board.printed_rank(system)
            tone: Tone = "strong" if rank in ("1", "1=") else ""
            cells.insert(0, Cell(rank, tone=tone))
        rows.append(cells)
    return table(
        all_heads,
        rows,
        star=star,
        caption=f"Mean scores over {items_of_means(result)}.",
        name="leaderboard",
        sorts=True,
        short=True,
        small_print=_small_print(rows, with_ranks=with_ranks),
    )


def _small_print(rows: Sequence[Sequence[Cell]], *, with_ranks: bool) -> str:
    """Explain the intervals below the means, and a rank that systems share."""
    explanations = []
    if any(cell.note.startswith("[") for row in rows for cell in row):
        explanations.append("[low, high]: 95% interval")
    if with_ranks and any(row[0].text.endswith("=") for row in rows):
        explanations.append("=: shared rank, no significant difference")
    return " · ".join(explanations)


def _heads(
    result: Result,
    board: Leaderboard,
    columns: Sequence[Column],
    limit_by_rate: Mapping[str, str],
) -> list[Head]:
    """Return the heads of the columns: titles, scales and better directions.

    Means on people's scale have the criterion's title, and the judge's means beside them `judge`.
    """
    title_by_name = {}
    for column_name, column in board.calibrated.items():
        title_by_name[column.name] = column_title(column_name)
        title_by_name[column_name] = "judge"
    has_overall = result.overall is not None
    abouts = _about_columns(board, columns, limit_by_rate, has_overall=has_overall)
    heads = []
    for column in columns:
        about = tuple(abouts[column.name])
        if column.name in limit_by_rate:
            note = f"at {limit_by_rate[column.name]}"
            heads.append(Head("pass", note=note, better=column.better, about=about))
        else:
            title = title_by_name.get(column.name) or column_title(column.name)
            note = scale_text(column)
            heads.append(Head(title, note=note, better=column.better, about=about))
    return heads


def _table_of_one_system(
    result: Result,
    board: Leaderboard,
    columns: Sequence[Column],
    heads: Sequence[Head],
) -> Table:
    """Return a row per column of the only system: mean, interval and number of items."""
    (system,) = board.systems
    # The key names the scale if all criteria have the same one.
    has_several_scales = len(_names_by_scale(board, columns)) > 1
    names_of_rates = {rate.name for rate in board.rates.values()}
    rows = []
    for column, head in zip(columns, heads, strict=True):
        row = board.rows[system, column.name]
        cell = _short_cell(result, board, row, column, bar=True)
        is_rate = column.name in names_of_rates
        note = head.note if has_several_scales or is_rate else ""
        row_name = f"{head.head} {note}".rstrip()
        # The number of items has a column of its own.
        items_text = f"{row.n:,}"
        if row.coverage:
            items_text = f"{items_text} of {row.total:,}"
        mean_without_interval = replace(cell, note="", coverage="")
        rows.append((row_name, mean_without_interval, cell.note or None, items_text))
    of_system = ""
    if system != UNNAMED_SYSTEM:
        of_system = f" of {one_line(system, MAX_NAME)}"
    row_heads = (
        Head("", numeric=False),
        Head("mean"),
        Head("95% interval", optional=True),
        Head("items"),
    )
    # The run's columns are rows here, so the key explains what their heads would.
    abouts = dict.fromkeys(text for head in heads for text in head.about)
    return table(
        row_heads,
        rows,
        key=" · ".join(abouts),
        caption=f"Mean scores{of_system}.",
        name="leaderboard",
        short=True,
    )


def _short_cell(
    result: Result,
    board: Leaderboard,
    row: Row,
    column: Column,
    *,
    bar: bool,
) -> Cell:
    """Return a mean with a link to its texts: with a bar, or shaded by its share of the scale."""
    if row.mean is None:
        return Cell("–", tone="muted", title=f"no score in {row.total} texts")
    cell = mean_cell(result, column, row)
    text = cell.text
    note = cell.note
    # Two decimals are enough for criteria. Systems often differ in the third decimal of a metric.
    # Percentages and large numbers are long already.
    is_long = bool(share_label(column)) or abs(row.mean) >= 100
    if column.kind == "criterion" and not is_long:
        text = number(row.mean, 2)
        note = interval_text(column, row.low, row.high, 2)
    share = column.share(row.mean)
    shade = None
    drawn_bar = None
    if share is not None and bar:
        drawn_bar = _bar(column, row, share)
    elif share is not None and column.kind == "criterion":
        # The shade runs from -1 to 1 around the neutral share; a low share is never darker than -1.
        shade = max(-1.0, (share - NEUTRAL) / (1 - NEUTRAL))
    # A pass rate and a mean on people's scale link to the scores that they were computed from.
    scored_by_name = Shown(board.rates, board.calibrated).scored_by_name()
    scored = scored_by_name.get(column.name, column.name)
    link = ""
    if scored in {column.name for column in board.of_texts}:
        link = items.link(system=row.system, column=scored)
    title_parts = filter(None, (cell.text, cell.note, f"n = {row.n:,}"))
    title = " ".join(title_parts)
    return replace(
        cell,
        text=text,
        note=note,
        title=title,
        shade=shade,
        bar=drawn_bar,
        link=link,
    )


def _bar(column: Column, row: Row, share: float) -> Bar:
    """Return the bar of a mean with its interval, if it has one."""
    if row.low is None or row.high is None:
        return Bar(share)
    lower_bound = column.share(row.low)
    upper_bound = column.share(row.high)
    if lower_bound is None or upper_bound is None:
        return Bar(share)
    # If lower is better, the ends change places.
    return Bar(share, min(lower_bound, upper_bound), max(lower_bound, upper_bound))


def _names_by_scale(
    board: Leaderboard, columns: Sequence[Column]
) -> dict[str, list[str]]:
    """Return the criteria on each scale; "" is a scale without whole ends.

    Criteria in percent are left out, and so is the overall score.
    """
    own_columns = {column.name for column in board.of_texts}
    names_by_scale: dict[str, list[str]] = {}
    for column in columns:
        is_own = column.kind == "criterion" and column.name in own_columns
        if is_own and not share_label(column):
            names_by_scale.setdefault(scale_text(column), []).append(column.name)
    return names_by_scale


def _keys_of_scales(
    board: Leaderboard,
    columns: Sequence[Column],
    *,
    has_overall: bool,
) -> dict[str, str]:
    """Return what the key says of the scale of each column.

    It is `criteria 1–5` if all have this scale. Otherwise each scale names its criteria: `aa, bb
    1–5`, except for one system, whose table has a row with the scale for each criterion.
    """
    names_by_scale = _names_by_scale(board, columns)
    keys: dict[str, str] = {}
    if len(names_by_scale) == 1:
        ((scale, names),) = names_by_scale.items()
        overall_scale = "overall 0–1, " if has_overall else ""
        if scale:
            keys = dict.fromkeys(names, f"{overall_scale}criteria {scale}")
    elif len(board.systems) > 1:
        if has_overall:
            keys[OVERALL] = "overall 0–1"
        for scale, names in names_by_scale.items():
            titles = ", ".join(map(column_title, names))
            if scale:
                keys |= dict.fromkeys(names, f"{titles} {scale}")
    return keys


def _about_columns(
    board: Leaderboard,
    columns: Sequence[Column],
    limit_by_rate: Mapping[str, str],
    *,
    has_overall: bool,
) -> dict[str, list[str]]:
    """Explain the marks that each column has."""
    limits = set(limit_by_rate.values())
    passing_texts = "texts that pass"
    if len(limits) == 1:
        passing_texts = f"texts at {limits.pop()} or better"
    keys_of_scales = _keys_of_scales(board, columns, has_overall=has_overall)
    lower_is_better = [column for column in columns if column.better == "lower"]
    titles_of_lower = ", ".join(column_title(column.name) for column in lower_is_better)
    calibrated = {column.name for column in board.calibrated.values()}
    abouts: dict[str, list[str]] = {}
    for column in columns:
        about = abouts.setdefault(column.name, [])
        rows = [board.rows[system, column.name] for system in board.systems]
        if column.name in limit_by_rate:
            about.append(f"pass: share of {passing_texts}")
        elif share_label(column):
            # A judge's values are probabilities. Scores from the data are verdicts, so that their
            # mean is a share.
            quantity = "share" if column.signature.is_external else "mean probability"
            about.append(f"%: {quantity} of {share_label(column)}")
        if column.name in calibrated or column.name in board.calibrated:
            about.append("means on people's scale; judge: its own means")
        if column.name in keys_of_scales:
            about.append(keys_of_scales[column.name])
        if column.better == "lower":
            about.append(f"lower is better: {titles_of_lower}")
        # The table of one system has a column for the number of items.
        is_partly_scored = any(row.n and row.coverage for row in rows)
        if len(board.systems) > 1 and is_partly_scored:
            about.append("(a/b) a of b texts have a score")
    return abouts
