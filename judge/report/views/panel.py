"""How far the judges of a panel agree, and the texts on which they differ most."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.records import Column
from judge.report.document import (
    Block,
    Cell,
    Content,
    Excerpt,
    Excerpts,
    Section,
    table,
)
from judge.report.document import Column as Head
from judge.report.format import column_title, score_text, shortest_places
from judge.report.views import items
from judge.report.views.columns import estimate_cell
from judge.report.views.item_measures import spread_name
from judge.results.result import Result
from judge.stats.panels import Split, panel_splits

_ALPHA = (
    "Krippendorff's alpha: 1 is perfect agreement, 0 that of chance; below 0 they disagree more "
    "than by chance."
)
_SPLIT = "Split: the judges' values differ by half of the scale or more."
_NO_MAJORITY = (
    "Without a majority, the value is the mean of the labels with the most votes."
)


def sections(result: Result, *, folded: bool = False) -> Iterator[Section]:
    """Yield the section on a panel's agreement, if several judges judged."""
    if any(column.judge for column in result.table.columns):
        yield Section(
            "agreement",
            "Agreement of the judges",
            lambda: _blocks(result),
            folded=folded,
        )


def summary_lines(result: Result) -> Iterator[str]:
    """Yield a line with the texts on which a panel is split, by criterion."""
    splits = panel_splits(result.table)
    if any(row.split for row in splits):
        counts = []
        for row in splits:
            title = column_title(row.criterion)
            counts.append(f"{title} {row.split:,} of {row.n:,}")
        counts_of_criteria = ", ".join(counts)
        yield f"Panel    split on {counts_of_criteria}"


def _blocks(result: Result) -> Iterator[Block]:
    """Yield the agreement on each criterion, and the texts on which the judges differ most."""
    splits = panel_splits(result.table)
    rows: list[tuple[Content, ...]] = []
    for row in splits:
        link = ""
        # The item browser of a ranking has no spreads to sort by.
        if row.split and not result.rankings:
            link = items.link(column=spread_name(row.criterion))
        alpha = result.agreement.get(row.criterion)
        split = Cell(f"{row.split:,} of {row.n:,}", link=link)
        n_texts = alpha.n if alpha else None
        no_majority = None
        if row.no_majority is not None:
            no_majority = f"{row.no_majority:,} of {row.n:,}"
        agreement = estimate_cell(alpha, 2)
        rows.append((row.criterion, agreement, n_texts, split, no_majority))
    no_majority_head = Head("no majority", optional=True, about=(_NO_MAJORITY,))
    heads = ("criterion", "alpha", "texts", "split", no_majority_head)
    yield table(heads, rows, f"{_ALPHA} {_SPLIT}", name="agreement")
    columns = {
        column.criterion: column for column in result.table.columns if column.judge
    }
    widest = []
    for row in splits:
        column = columns[row.criterion]
        values = [value for split in row.widest for value in split.values.values()]
        places = shortest_places(values)
        widest += [_excerpt(column, split, places) for split in row.widest]
    if widest:
        yield Excerpts("Widest splits", tuple(widest))


def _excerpt(column: Column, split: Split, places: int) -> Excerpt:
    """Return a text with the lowest and the highest score, and that of each judge."""
    values = split.values.values()
    lowest = score_text(column, min(values), places)
    highest = score_text(column, max(values), places)
    scores = []
    for judge, value in split.values.items():
        score = score_text(column, value, places)
        scores.append(f"{judge} {score}")
    system = split.system
    if split.opponent:
        system = f"{system} against {split.opponent}"
    return Excerpt(
        score=f"{lowest} to {highest}",
        system=system,
        item=split.item,
        column=column_title(column.criterion),
        reason=" · ".join(scores),
        link=items.link(item=split.item),
    )
