"""The texts on which a judge and people disagree most.

Beside them are the judge's levels against people's, and the judge against each rater.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from judge.core.format import UNNAMED_SYSTEM, one_line, plural, signed, whole_percent
from judge.report.document import (
    Block,
    Cell,
    Column,
    Content,
    Details,
    Excerpt,
    Excerpts,
    Heading,
    Table,
    Tone,
    table,
)
from judge.report.format import (
    column_title,
    mean_text,
    score_text,
    share_label,
    shortest_places,
)
from judge.report.views import items
from judge.report.views.columns import estimate_cell
from judge.report.views.item_measures import gap_name
from judge.results.result import Result
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import Level
from judge.stats.correlation import OVER
from judge.stats.disagreements import Confusion, Disagreements, Gap, disagreements
from judge.stats.rated_columns import judges_of

_MAX_GAPS = 5  # texts on each side, shared by the criteria
_MAX_TEXT = 300  # characters of a judged text
_MAX_COMMENT = 120  # characters of a rater's comment
_STRONGEST_SHADE = 0.9  # of the largest count
_LARGE_GAP = 0.5  # of the scale


def of_result(result: Result) -> tuple[Disagreements, ...]:
    """Return the disagreements of a run's judges with the ratings in its table."""
    judges = judges_of(result.table, result.info.model)
    bootstrap = Bootstrap(seed=result.info.config.seed)
    return disagreements(result.table.samples, judges, bootstrap)


def blocks(
    compared: Sequence[Disagreements],
    best: str,
    level: Level,
    *,
    linked: bool,
) -> Iterator[Block]:
    """Yield the disagreements of the judge `best`; other judges' disagreements are folded.

    `level` is the level of the correlations. With `linked`, texts link to the page's item browser.
    """
    names = dict.fromkeys(disagreement.judge for disagreement in compared)
    judges = sorted(names, key=lambda judge: judge != best)
    for judge in judges:
        of_judge = [
            disagreement for disagreement in compared if disagreement.judge == judge
        ]
        suffix = f" of {judge}" if len(of_judge) < len(compared) else ""
        inner = tuple(_blocks_of_judge(of_judge, suffix, level, linked=linked))
        if judge == best:
            yield from inner
        elif inner:
            yield Details(f"Disagreements{suffix}", inner)


def _blocks_of_judge(
    compared: Sequence[Disagreements],
    suffix: str,
    level: Level,
    *,
    linked: bool,
) -> Iterator[Block]:
    """Yield a judge's largest gaps on each side, the confusion tables and the raters.

    `suffix` names the judge in headings.
    """
    longest = ceil(_MAX_GAPS / len(compared))
    higher: list[_ShownGap] = []
    lower: list[_ShownGap] = []
    for comparison in compared:
        higher += [_ShownGap(comparison, gap) for gap in comparison.higher[:longest]]
        lower += [_ShownGap(comparison, gap) for gap in comparison.lower[:longest]]
    if higher:
        yield Heading(f"Judge higher than people{suffix}")
        order = "high" if linked else None
        n_more = sum(comparison.n_higher for comparison in compared) - len(higher)
        yield _excerpts(higher, (*higher, *lower), n_more, order)
    if lower:
        yield Heading(f"Judge lower than people{suffix}")
        order = "" if linked else None
        n_more = sum(comparison.n_lower for comparison in compared) - len(lower)
        yield _excerpts(lower, (*higher, *lower), n_more, order)
    for comparison in compared:
        if comparison.confusion:
            yield _confusion_table(comparison.criterion, comparison.confusion)
    if any(disagreement.raters for disagreement in compared):
        yield _rater_table(compared, level)


def _rater_table(compared: Sequence[Disagreements], level: Level) -> Table:
    """Return a row per criterion and rater, at the level if its criterion has values there."""
    rows = []
    correlations: dict[str, None] = {}
    for comparison in compared:
        if not comparison.raters:
            continue
        has_values = any(level in rater.spearman for rater in comparison.raters)
        usable = level if has_values else "all-texts"
        correlations[OVER[usable]] = None
        for rater in comparison.raters:
            spearman = estimate_cell(rater.spearman.get(usable), 2)
            difference = estimate_cell(rater.difference, 2, signed)
            row = (comparison.criterion, rater.rater, spearman, difference, rater.texts)
            rows.append(row)
    heads = (
        "criterion",
        Column("rater", numeric=False),
        "Spearman",
        "judge − rater",
        "texts",
    )
    levels = "; or ".join(correlations)
    return table(
        heads,
        rows,
        f"Spearman's correlation {levels}. Judge − rater: mean difference in points.",
        caption="Judge against each rater.",
        name="each-rater",
    )


@dataclass(frozen=True, slots=True)
class _ShownGap:
    """A gap with its judge and criterion."""

    compared: Disagreements
    gap: Gap

    @property
    def span(self) -> float:
        """The length of the scale."""
        column = self.compared.column
        return (column.high or 0.0) - (column.low or 0.0)

    @property
    def share(self) -> float:
        """The size of the gap as a share of the scale.

        It is rounded, so that gaps of equal size on different scales keep their order.
        """
        return round(abs(self.gap.size) / self.span, 9)

    @property
    def size_text(self) -> str:
        """The size in points of the scale, or in percent for the probability of a label."""
        if share_label(self.compared.column):
            percentage = signed(100 * self.gap.size, 0)
            return f"{percentage}%"
        places = 1 if self.span > 1 else 2
        return signed(self.gap.size, places)

    def scores_text(self, listed: Sequence[_ShownGap]) -> str:
        """Return both sides in points of the scale, or in percent for the probability of a label.

        Each side has the same number of decimals in all texts that are `listed` together.
        """
        column = self.compared.column
        in_points = [
            entry.gap for entry in listed if not share_label(entry.compared.column)
        ]
        judge_places = shortest_places(gap.judge for gap in in_points)
        people_places = shortest_places(gap.people for gap in in_points)
        judge = mean_text(column, self.gap.judge, judge_places)
        people = mean_text(column, self.gap.people, people_places)
        return f"judge {judge}, people {people}"

    @property
    def ratings_text(self) -> str:
        """Each rater's rating and comment."""
        ratings = []
        for rater, vote in self.gap.ratings:
            vote_text = score_text(self.compared.column, vote)
            rating = f"{rater}: {vote_text}"
            if rater in self.gap.comments:
                comment = one_line(self.gap.comments[rater], _MAX_COMMENT)
                rating += f" “{comment}”"
            ratings.append(rating)
        return ", ".join(ratings)


def _excerpts(
    gaps: Iterable[_ShownGap],
    listed: Sequence[_ShownGap],
    n_more: int,
    order: str | None,
) -> Excerpts:
    """Return the texts, the largest gap first.

    `listed` are those of both sides, and `n_more` counts the texts that this side leaves out. With
    an `order`, a text links to the items in this order of the gaps.
    """
    largest_first = sorted(gaps, key=lambda gap: -gap.share)
    excerpts = [_excerpt(gap, listed, order) for gap in largest_first]
    return Excerpts("", tuple(excerpts), n_more)


def _excerpt(
    text: _ShownGap, listed: Sequence[_ShownGap], order: str | None
) -> Excerpt:
    gap = text.gap
    criterion = text.compared.criterion
    link = ""
    if order is not None:
        column = gap_name(criterion)
        link = items.link(item=gap.item, system=gap.system, column=column, order=order)
    quote = f"“{gap.quote}”" if gap.quote else ""
    reason = " ".join(filter(None, (gap.reason, quote)))
    notes = filter(None, (text.scores_text(listed), text.ratings_text))
    tone: Tone = "bad" if text.share >= _LARGE_GAP else ""
    return Excerpt(
        score=text.size_text,
        system="" if gap.system == UNNAMED_SYSTEM else gap.system,
        item=gap.item,
        column=column_title(criterion),
        reason=reason,
        note=" · ".join(notes),
        text=one_line(gap.output, _MAX_TEXT),
        tone=tone,
        link=link,
    )


def finding(compared: Iterable[Disagreements], judge: str) -> Iterator[str]:
    """Yield a sentence about the judge's largest gap, as a share of the scale, if it has any."""
    gaps: list[_ShownGap] = []
    for comparison in compared:
        if comparison.judge == judge:
            largest_gaps = (*comparison.higher[:1], *comparison.lower[:1])
            gaps += [_ShownGap(comparison, gap) for gap in largest_gaps]
    if gaps:
        largest = max(gaps, key=lambda gap: gap.share)
        system = "" if largest.gap.system == UNNAMED_SYSTEM else largest.gap.system
        names = filter(None, (largest.gap.item, system, largest.compared.criterion))
        text = ", ".join(names)
        scores = largest.scores_text([largest])
        yield f"Largest disagreement: {text}: {scores}."


def _confusion_table(criterion: str, confusion: Confusion) -> Table:
    """Tabulate people's levels by the judge's.

    A darker cell has more ratings. Green is the same level, red another one.
    """
    most = max(map(max, confusion.counts))
    names = confusion.labels
    rows: list[list[Content]] = []
    for people_level, counts in enumerate(confusion.counts):
        row: list[Content] = [f"people {names[people_level]}"]
        for judge_level, count in enumerate(counts):
            shade = None
            if count:
                sign = 1 if people_level == judge_level else -1
                shade = _STRONGEST_SHADE * count / most * sign
            row.append(Cell(f"{count:,}", value=count, shade=shade))
        rows.append(row)
    share_of_same = confusion.share(0)
    table_key = f"Same level {whole_percent(share_of_same)}"
    if len(names) > 2:  # with two levels, all are at most one level apart
        share_of_near = confusion.share(1)
        table_key += f", at most one level apart {whole_percent(share_of_near)}"
    ratings = plural(confusion.n, "rating")
    heads = [Column(level_name, group="judge") for level_name in names]
    return table(
        ("", *heads),
        rows,
        f"{table_key}.",
        caption=f"Confusion by level: {ratings} of {criterion}, the judge's likeliest level.",
        name=f"confusion-{criterion}",
    )


def data(compared: Iterable[Disagreements], criterion: str) -> dict[str, Any]:
    """Return the JSON of a criterion: `disagreements` with an entry per judge, or nothing."""
    entries = []
    for comparison in compared:
        if comparison.criterion != criterion:
            continue
        entry = asdict(comparison)
        for field_name in ("criterion", "column", "named"):
            del entry[field_name]
        if comparison.confusion:
            exact = comparison.confusion.share(0)
            adjacent = comparison.confusion.share(1)
            entry["confusion"] |= {"exact": exact, "adjacent": adjacent}
        entries.append(entry)
    return {"disagreements": entries} if entries else {}
