"""How far the judges of a panel agree, and the texts on which they differ most."""

from __future__ import annotations

from collections.abc import Iterator

from judge.report.document import Block, Cell, Column, Content, Excerpt, Excerpts, Section, table
from judge.report.format import column_title, score_text
from judge.report.views import items
from judge.report.views.columns import estimate_cell
from judge.results.result import Result
from judge.stats.analyze import panel_splits

_ALPHA = "Krippendorff's alpha: 1 is perfect agreement, 0 that of chance; below 0 they disagree more than by chance."
_SPLIT = "Split: the judges' values differ by half of the scale or more."
_NO_MAJORITY = "Without a majority, the value is the mean of the labels with the most votes."


def sections(result: Result, *, folded: bool = False) -> Iterator[Section]:
    """Yield the section on a panel's agreement, if several judges judged."""
    if any(column.judge for column in result.table.columns):
        yield Section(
            "agreement", "Agreement of the judges", lambda: _blocks(result), folded=folded
        )


def summary_lines(result: Result) -> Iterator[str]:
    """Yield a line with the texts on which a panel is split, by criterion."""
    if any(row.split for row in panel_splits(result.table)):
        splits = (
            f"{column_title(row.criterion)} {row.split:,} of {row.n:,}"
            for row in panel_splits(result.table)
        )
        yield f"Panel    split on {', '.join(splits)}"


def _blocks(result: Result) -> Iterator[Block]:
    splits = panel_splits(result.table)
    rows: list[tuple[Content, ...]] = []
    for row in splits:
        link = (
            items.link(column=items.spread_name(row.criterion))
            if row.split and not result.rankings
            else ""
        )
        alpha = result.agreement.get(row.criterion)
        n_split = Cell(f"{row.split:,} of {row.n:,}", link=link)
        undecided = None if row.no_majority is None else f"{row.no_majority:,} of {row.n:,}"
        rows.append(
            (row.criterion, estimate_cell(alpha, 2), alpha.n if alpha else None, n_split, undecided)
        )
    no_majority = Column("no majority", optional=True, about=_NO_MAJORITY)
    yield table(
        ("criterion", "alpha", "texts", "split", no_majority),
        rows,
        f"{_ALPHA} {_SPLIT}",
        name="agreement",
    )
    columns = {column.criterion: column for column in result.table.columns if column.judge}
    widest = []
    for column, split in (
        (columns[row.criterion], split) for row in splits for split in row.widest
    ):
        ends = (score_text(column, pick(split.values.values())) for pick in (min, max))
        each = (f"{judge} {score_text(column, value)}" for judge, value in split.values.items())
        systems = f"{split.system} against {split.rival}" if split.rival else split.system
        title, link = column_title(column.criterion), items.link(item=split.item)
        widest.append(
            Excerpt(
                " to ".join(ends), systems, split.item, title, reason=" · ".join(each), link=link
            )
        )
    if widest:
        yield Excerpts("Widest splits", tuple(widest))
