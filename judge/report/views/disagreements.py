"""The texts on which a judge and people disagree most, their levels against each other, and each
rater."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from math import ceil
from typing import Any

from judge.core.format import one_line, plural, signed
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
    table,
)
from judge.report.format import column_title, mean_text, score_text, share_label
from judge.report.views import items
from judge.report.views.columns import estimate_cell
from judge.results.result import Result
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import Level
from judge.stats.correlation import OVER
from judge.stats.disagreements import Confusion, Disagreements, Gap, disagreements
from judge.stats.human_agreement import judges_of

_GAPS = 5  # on each side of the shown texts, shared by the criteria
_MAX_TEXT = 300  # characters of a judged text
_MAX_COMMENT = 120
_STRONG = 0.9  # shade of the largest count


def of_result(result: Result) -> tuple[Disagreements, ...]:
    """Return the disagreements of a run's judges with the ratings in its table."""
    judges = judges_of(result.table, result.info.model)
    return disagreements(result.table.samples, judges, Bootstrap(seed=result.info.config.seed))


def blocks(
    compared: Sequence[Disagreements], best: str, level: Level, *, linked: bool
) -> Iterator[Block]:
    """Yield the disagreements of the judge `best`; those of other judges are folded.

    `level` is that of the correlations. With `linked`, texts link to the page's item browser.
    """
    for judge in sorted(dict.fromkeys(d.judge for d in compared), key=lambda name: name != best):
        by_judge = [d for d in compared if d.judge == judge]
        several = f" of {judge}" if len(by_judge) < len(compared) else ""
        inner = tuple(_of_judge(by_judge, several, level, linked))
        if judge == best:
            yield from inner
        elif inner:
            yield Details(f"Disagreements{several}", inner)


def _of_judge(
    compared: Sequence[Disagreements], judge: str, level: Level, linked: bool
) -> Iterator[Block]:
    each = ceil(_GAPS / len(compared))
    sides = (
        ("Judge higher than people", "higher", "high"),
        ("Judge lower than people", "lower", ""),
    )
    for label, side, order in sides:
        gaps = [(d, gap) for d in compared for gap in getattr(d, side)[:each]]
        gaps.sort(key=lambda pair: -_share(*pair))
        if gaps:
            yield Heading(f"{label}{judge}")
            yield Excerpts(
                "", tuple(_excerpt(d, gap, order if linked else None) for d, gap in gaps)
            )
    yield from (_confusion_table(d, d.confusion) for d in compared if d.confusion)
    rows, correlations = [], dict[str, None]()
    for d in (d for d in compared if d.raters):
        usable = level if any(level in rater.spearman for rater in d.raters) else "all-texts"
        correlations[OVER[usable]] = None
        for rater in d.raters:
            points = estimate_cell(rater.difference, 2, signed)
            rows.append(
                (
                    d.criterion,
                    rater.rater,
                    estimate_cell(rater.spearman.get(usable), 2),
                    points,
                    rater.texts,
                )
            )
    if rows:
        yield table(
            ("criterion", Column("rater", numeric=False), "Spearman", "judge − rater", "texts"),
            rows,
            f"Spearman's correlation {'; or '.join(correlations)}. Judge − rater: mean difference in points.",
            caption="Judge against each rater.",
            name="each-rater",
        )


def _share(d: Disagreements, gap: Gap) -> float:
    """Return the size of a gap as a share of the scale; rounded, because equal ones keep their
    order."""
    return round(abs(gap.size) / _span(d), 9)


def _span(d: Disagreements) -> float:
    return (d.column.high or 0.0) - (d.column.low or 0.0)


def _excerpt(d: Disagreements, gap: Gap, order: str | None) -> Excerpt:
    """Return a text; with an `order` it links to the items in this order of the gaps."""
    link = ""
    if order is not None:
        link = items.link(
            item=gap.item, system=gap.system, column=items.gap_name(d.criterion), order=order
        )
    raters = ", ".join(
        f"{rater}: {score_text(d.column, vote)}"
        + (f" “{one_line(gap.comments[rater], _MAX_COMMENT)}”" if rater in gap.comments else "")
        for rater, vote in gap.ratings
    )
    return Excerpt(
        f"{signed(100 * gap.size, 0)}%"
        if share_label(d.column)
        else signed(gap.size, 1 if _span(d) > 1 else 2),
        gap.system,
        gap.item,
        column_title(d.criterion),
        reason=" ".join(filter(None, (gap.reason, gap.quote and f"“{gap.quote}”"))),
        note=" · ".join(filter(None, (_scores_text(d, gap), raters))),
        text=one_line(gap.output, _MAX_TEXT),
        tone="bad" if _share(d, gap) >= 0.5 else "",
        link=link,
    )


def _scores_text(d: Disagreements, gap: Gap) -> str:
    """Write both sides in points of the scale, or in percent for the probability of a label."""
    judge, people = (
        mean_text(d.column, value, 2).removesuffix(".00") for value in (gap.judge, gap.people)
    )
    return f"judge {judge}, people {people}"


def finding(compared: Iterable[Disagreements], judge: str) -> Iterator[str]:
    """Yield a sentence about the largest gap of a judge, as a share of the scale, if there is any."""
    gaps = [(d, gap) for d in compared if d.judge == judge for gap in (*d.higher[:1], *d.lower[:1])]
    if gaps:
        d, gap = max(gaps, key=lambda pair: _share(*pair))
        text = ", ".join((gap.item, gap.system, d.criterion))
        yield f"Largest disagreement: {text}: {_scores_text(d, gap)}."


def _confusion_table(d: Disagreements, confusion: Confusion) -> Table:
    """Tabulate people's levels by the judge's; a darker cell has more ratings, green is the same
    level."""
    most = max(map(max, confusion.counts))
    names = confusion.labels
    rows: list[list[Content]] = [
        [
            f"people {name}",
            *(
                Cell(
                    f"{n:,}",
                    value=n,
                    shade=_STRONG * n / most * (1 if p == j else -1) if n else None,
                )
                for j, n in enumerate(counts)
            ),
        ]
        for p, (name, counts) in enumerate(zip(names, confusion.counts, strict=True))
    ]
    exact, near = (f"{confusion.share(distance):.0%}" for distance in (0, 1))
    return table(
        ("", *(Column(name, group="judge") for name in names)),
        rows,
        # Of two levels, none is more than one level apart from the other.
        f"Same level {exact}."
        if len(names) < 3
        else f"Same level {exact}, at most one level apart {near}.",
        caption=f"Confusion by level: {plural(confusion.n, 'rating')} of {d.criterion}, the judge's likeliest level.",
        name=f"confusion-{d.criterion}",
    )


def data(compared: Iterable[Disagreements], criterion: str) -> dict[str, Any]:
    """Return what JSON has of a criterion: `disagreements`, an entry per judge."""
    entries = []
    for d in (d for d in compared if d.criterion == criterion):
        entry = {
            name: value
            for name, value in asdict(d).items()
            if name not in ("criterion", "column", "named")
        }
        if d.confusion:
            entry["confusion"] |= {"exact": d.confusion.share(0), "adjacent": d.confusion.share(1)}
        entries.append(entry)
    return {"disagreements": entries} if entries else {}
