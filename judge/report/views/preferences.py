"""How often a ranking's judge and people prefer the same text: a section of a ranking, and the report of validate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from judge.core.format import format_interval, number, one_line, plural
from judge.core.records import Estimate
from judge.report.document import Block, Cell, Column, Document, Paragraph, Section, Table, table
from judge.report.format import column_title
from judge.results.validation import Validation
from judge.stats.pairwise_agreement import PreferenceAgreement

_KEY = "Same: share of pairs on which both prefer the same text; a tie against a preference counts half."
_DERIVED = "People rated single texts: they prefer the text with the higher rating."
_NAME = 40  # characters of a judge or rater


def view(validation: Validation) -> Document:
    """Lay out the comparison of a ranking with people."""
    compared = validation.preferences
    first, *others = sentences(compared)
    records = [
        {
            "criterion": each.criterion, "judge": each.judge, "kind": row.kind, "rater": row.name,
            "measure": measure, **{k: v for k, v in asdict(estimate).items() if k not in ("name", "p")},
        }
        for each in compared
        for row in each.rows
        for measure, estimate in (("same", row.same), ("kappa", row.kappa))
        if estimate is not None
    ]  # fmt: skip
    return Document(
        title=one_line(validation.title),
        finding=(first.removesuffix("."), *others),
        scope="",
        notices=tuple(map(one_line, validation.notes)),
        summary=(_table(compared, short=True),),
        sections=(Section("people", "Agreement with people", lambda: blocks(compared)),),
        data={"title": validation.title, "notes": validation.notes, "preferences": [*map(asdict, compared)]},
        records=tuple(records),
    )


def sentences(compared: Sequence[PreferenceAgreement]) -> Iterator[str]:
    """Say how often each judge prefers what people prefer, and how often people agree with each other."""
    for each in compared:
        about = f" in {column_title(each.criterion)}" if len({c.criterion for c in compared}) > 1 else ""
        people, *_ = each.rows
        yield (
            f"{one_line(each.judge, _NAME)} agrees with people{about} on {_share(people.same)} of "
            f"{plural(people.same.n, 'pair')}."
        )
        for row in each.rows:
            if row.kind == "raters" and each.judge == compared[0].judge:
                yield f"Two raters agree on {_share(row.same)} of {plural(row.same.n, 'comparison')}."


def _share(estimate: Estimate) -> str:
    interval = format_interval(estimate.low, estimate.high, 0, 100)
    return f"{100 * estimate.value:.0f}% {interval}".rstrip()


def blocks(compared: Sequence[PreferenceAgreement]) -> list[Block]:
    """Return the table with its notes and methods."""
    notes = [_DERIVED] if any(each.derived for each in compared) else []
    notes += [
        f"{each.criterion}: {plural(each.excluded, 'pair')} excluded, because the prompt used one of its texts."
        for each in compared
        if each.excluded
    ]
    methods = dict.fromkeys(e.method for each in compared for row in each.rows for e in (row.same, row.kappa) if e)
    return [_table(compared, short=False), Paragraph(" ".join([*notes, f"Method: {'; '.join(methods)}."]))]


def _table(compared: Sequence[PreferenceAgreement], *, short: bool) -> Table:
    several = len({each.criterion for each in compared}) > 1
    rows = []
    for each in compared:
        for row in each.rows:
            title = f"{column_title(each.criterion)}: " if several else ""
            sides = f"{one_line(each.judge, _NAME)} and {one_line(row.name, _NAME) or 'people'}"
            name = f"{title}{'two raters' if row.kind == 'raters' else sides}"
            rows.append((name, _cell(row.same, 100), _cell(row.kappa, 1), Cell(f"{row.same.n:,}")))
    heads = [Column("", numeric=False), *map(Column, ("same", "kappa", "pairs"))]
    return table(heads, rows, key=_KEY, name="preferences", short=short)


def _cell(estimate: Estimate | None, factor: int) -> Cell:
    if estimate is None:
        return Cell("–", tone="muted")
    text = f"{100 * estimate.value:.0f}%" if factor > 1 else number(estimate.value, 2)
    return Cell(
        text, format_interval(estimate.low, estimate.high, 0 if factor > 1 else 2, factor), value=estimate.value
    )
